"""Variance of an unbiased letter: of one input, dither included, and of many inputs with a known mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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

    @cached_property
    def mixed(self) -> Mixed:
        """Between which bounds the variance over records of a known mean lies."""
        return Mixed.of_points(self.points, self.moments)


@dataclass(frozen=True, eq=False)
class Mixed:
    """Least and largest variance of a letter over records that have a known mean.

    Attributes
    ----------
    points : ndarray of float64, shape (S + 1,)
        Values of records, ascending, from the least to the largest.
    least, most : ndarray of float64, shape (S + 1,) or (2, ...)
        Bounds of E[(letter - middle)^2] over records whose mean is each point, the middle being that of the
        points; of two points, perhaps by entry.
    floor : float
        What the variance is never below.

    Notes
    -----
    The letter of a record x has the mean x. Records of the mean m have, as a mixture, second moments between
    the convex and the concave hull of those at the points, and a variance of that less (m - middle)^2.
    """

    points: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    floor: float = 0.0

    @property
    def span(self) -> float:
        """How far apart two records may be."""
        return float(self.points[-1] - self.points[0])

    def bounds(self, mean: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return both variances at every mean, which is clipped to the points first."""
        inside = np.clip(mean, self.points[0], self.points[-1])
        middle = self.points[0] + self.span / 2.0
        less = np.square(inside - middle)
        least = np.maximum(self._between(self.least, inside) - less, self.floor)
        return least, np.maximum(self._between(self.most, inside) - less, least)

    def _between(self, moments: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(self.points) > 2:
            return np.asarray(np.interp(mean, self.points, moments))
        share = (mean - self.points[0]) / self.span
        return np.asarray(moments[0] * (1.0 - share) + moments[1] * share)

    def at(self, index: Any) -> Mixed:
        """Return those of some entries, where they differ by entry."""
        if self.least.ndim == 1:
            return self
        least, most = (np.stack([each[index] for each in side]) for side in (self.least, self.most))
        return replace(self, least=least, most=most)

    def by_entry(self, shape: tuple[int, ...]) -> Mixed:
        """Return the same for entries of a shape, where they differ by its last axis."""
        if self.least.ndim == 1:
            return self

        def spread_out(side: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.broadcast_to(side.reshape(2, *(1,) * (len(shape) - 1), -1), (2, *shape))

        return replace(self, least=spread_out(self.least), most=spread_out(self.most))

    @classmethod
    def of_points(cls, points: NDArray[np.float64], *moments: NDArray[np.float64]) -> Mixed:
        """Return the bounds for records at points, in any order, where these have such second moments."""
        places, which = np.unique(points, return_inverse=True)
        least, most = np.full(len(places), np.inf), np.full(len(places), -np.inf)
        for each in moments:
            np.minimum.at(least, which, each)
            np.maximum.at(most, which, each)
        return cls(places, -concave_hull(places, -least), concave_hull(places, most))

    @classmethod
    def of_range(cls, low: float, high: float, moment: float | None = None) -> Mixed:
        """Return what is known of letters from `low` to `high` of any law; `moment` bounds the second one."""
        if moment is None:
            moment = ((high - low) / 2.0) ** 2
        return cls(np.array([low, high]), np.zeros(2), np.full(2, moment))


def concave_hull(points: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, at every ascending point, the least concave function that is nowhere below the values."""
    bends = np.diff(np.diff(values) / np.diff(points))
    if (bends <= 0.0).all():
        return values
    if (bends >= 0.0).all():
        return np.asarray(np.interp(points, points[[0, -1]], values[[0, -1]]))
    kept: list[int] = []
    for each in range(len(points)):  # Andrew's monotone chain
        while len(kept) > 1:
            before, last = kept[-2:]
            rise = (values[each] - values[before]) * (points[last] - points[before])
            if (values[last] - values[before]) * (points[each] - points[before]) > rise:
                break
            kept.pop()
        kept.append(each)
    return np.asarray(np.interp(points, points[kept], values[kept]))
