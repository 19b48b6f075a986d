"""Variance of an unbiased letter as a function of the input, dither included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Spread:
    """Second moments of a letter at the points to which an input is dithered.

    Attributes
    ----------
    points : ndarray of float64, shape (S + 1,)
        The equidistant points, ascending.
    moments : ndarray of float64, shape (S + 1,)
        E[(letter - middle)^2] for an input at each point, the middle being that of the interval.

    Notes
    -----
    Dither mixes the laws of the two neighbouring points linearly, so the second moment of an input between
    them is the linear interpolation. The letter's mean is the input x, so its variance is that moment less
    (x - middle)^2: a concave parabola between any two points.
    """

    points: NDArray[np.float64]
    moments: NDArray[np.float64]

    @property
    def middle(self) -> float:
        """The middle of the interval."""
        return float(self.points[0] + (self.points[-1] - self.points[0]) / 2.0)

    def scaled(self, factor: float) -> Spread:
        """Return the spread of letters whose moments are `factor` times as large."""
        return Spread(self.points, factor * self.moments)

    def at(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance at every x, which is clipped to the interval first."""
        inside = np.clip(np.asarray(x, dtype=np.float64), self.points[0], self.points[-1])
        moments: NDArray[np.float64] = np.interp(inside, self.points, self.moments)
        return moments - np.square(inside - self.middle)

    def mean(self) -> float:
        """Return the mean of the variance over inputs that are uniform on the interval."""
        cells = (self.moments[1:] + self.moments[:-1]) / 2.0
        return float(cells.mean() - np.square(self.points[-1] - self.points[0]) / 12.0)

    def worst(self) -> float:
        """Return the largest variance of any input."""
        offsets = self.points - self.middle
        slopes = np.diff(self.moments) / np.diff(offsets)
        summits = np.clip(slopes / 2.0, offsets[:-1], offsets[1:])
        return float(np.max(self.moments[:-1] + slopes * (summits - offsets[:-1]) - np.square(summits)))
