"""Columns of numbers with intervals of their own under one mechanism: mapped to its interval, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.estimate.estimates import Estimate
from bitldp.tables.answer import Moved
from bitldp.tables.reading import Reading

__all__ = ["Scales"]


@dataclass(frozen=True)
class Scales:
    """Affine maps of intervals of columns to the one interval of a mechanism.

    The map is fixed and public, made before anything is randomized: it changes no epsilon. Both ends of a
    column's interval are mapped to those of the mechanism's exactly, and numbers outside move to the ends.

    Attributes
    ----------
    intervals : tuple of (float, float)
        One for each column of numbers.
    span : (float, float)
        The mechanism's.
    """

    intervals: tuple[tuple[float, float], ...]
    span: tuple[float, float]

    @property
    def _ends(self) -> NDArray[np.float64]:
        return np.array(self.intervals, np.float64).T

    @property
    def _factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Factor and shift that make a number of the mechanism one of each column."""
        low, high = self._ends
        scale = (high - low) / (self.span[1] - self.span[0])
        return scale, low - scale * self.span[0]

    def unit(self, place: int) -> float:
        """Return how many of a column's units one of the mechanism is."""
        return float(self._factors[0][place])

    def outside(self, x: NDArray[Any]) -> int:
        """Return how many numbers, shape (n, columns), lie outside their interval."""
        low, high = self._ends
        return int(np.count_nonzero((x < low) | (x > high)))

    def mapped(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """Return numbers, shape (n, columns), as the mechanism takes them."""
        low, high = self._ends
        share = (x.astype(np.float64).clip(low, high) - low) / (high - low)
        first, last = self.span
        mapped: NDArray[np.float64] = np.where(share >= 1.0, last, first + share * (last - first))
        return mapped.clip(first, last)

    def reading(self, made: Reading, place: int, number: Reading | None = None) -> Reading:
        """Return the reading of a column of the mechanism as one of the column's own interval.

        Parameters
        ----------
        made : Reading
            Of a number, or of its square.
        place : int
            Which of the columns.
        number : Reading, optional
            With the reading of a square: that of the number.
        """
        scale, shift = (float(each[place]) for each in self._factors)
        if number is None:
            return _affine([(scale, made)], shift, (self.intervals[place]), made, made.floor * scale**2)
        low, high = self.intervals[place]
        span = 0.0 if low <= 0.0 <= high else min(low**2, high**2), max(low**2, high**2)
        return _affine([(scale**2, made), (2.0 * scale * shift, number)], shift**2, span, made, 0.0)

    def estimate(self, made: Estimate, places: Sequence[int]) -> Estimate:
        """Return estimates of the means of some columns in their own intervals."""
        scale, shift = (each[list(places)] for each in self._factors)
        return replace(
            made,
            value=made.value * scale + shift,
            stderr=made.stderr * scale,
            limits=None if made.limits is None else Moved(made.limits, scale, shift),
        )


def _affine(
    parts: Sequence[tuple[float, Reading]],
    shift: float,
    span: tuple[float, float],
    made: Reading,
    floor: float,
) -> Reading:
    """Return the reading of a sum of readings of one report, each times a number, and of a shift."""

    def read(reports: Any) -> NDArray[np.float64]:
        return np.asarray(sum(factor * each.read(reports) for factor, each in parts) + shift)

    tables = [factor * each.table for factor, each in parts if each.table is not None]
    listed = len(tables) == len(parts)
    ends = sum(np.sort(factor * each.ends, axis=0) for factor, each in parts) + shift
    return replace(
        made,
        read=read,
        ends=np.asarray(ends),
        span=span,
        floor=floor,
        table=np.asarray(sum(tables) + shift) if listed else None,
        codes=made.codes if listed else None,
    )
