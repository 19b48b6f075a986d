"""Intervals of many estimates, made together where one law is behind them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.intervals import ByLetters, Counted, joined

__all__ = ["Intervals"]


class Intervals:
    """Intervals of one level: estimates are added, and all their intervals made at the end.

    The search for the limits of a mean takes as long for one entry as for a thousand, so that columns, and
    groups, of one law are searched together. What comes out is the same as of each by itself.

    Attributes
    ----------
    level : float
        See `bitldp.Estimate.confidence_interval`.
    """

    def __init__(self, level: float) -> None:
        self.level = checks.chance("level", level)
        self._size = 0
        self._alone: list[tuple[int, Estimate]] = []
        self._alike: dict[Hashable, list[tuple[int, Estimate]]] = {}

    def add(self, estimate: Estimate, law: Hashable) -> int:
        """Add an estimate; return the number of its first entry among all that were added.

        The `law` is what the limits of two estimates with letters share where it is equal: the mechanism.
        """
        first = self._size
        self._size += np.size(estimate.value)
        limits = estimate.limits
        flat = np.ndim(estimate.value) == 1
        if flat and isinstance(limits, ByLetters) and limits.law.mixed.least.ndim == 1:
            self._alike.setdefault(law, []).append((first, estimate))
        elif flat and isinstance(limits, Counted):  # which need no law but their own numbers
            self._alike.setdefault(Counted, []).append((first, estimate))
        else:
            self._alone.append((first, estimate))
        return first

    def ends(self) -> tuple[list[float | None], list[float | None]]:
        """Return the lower and upper ends of all entries; None for one that is not known."""
        low, high = np.full(self._size, math.nan), np.full(self._size, math.nan)

        def write(starts: Sequence[int], sizes: Sequence[int], estimate: Estimate) -> None:
            places = np.concatenate([np.arange(a, a + n) for a, n in zip(starts, sizes, strict=True)])
            for ends, made in zip((low, high), estimate.confidence_interval(self.level), strict=True):
                ends[places] = np.ravel(made)

        for first, each in self._alone:
            write([first], [np.size(each.value)], each)
        for several in self._alike.values():
            starts, estimates = zip(*several, strict=True)
            value, stderr = (np.concatenate([getattr(e, name) for e in estimates]) for name in _BOTH)
            together = Estimate(value, stderr, estimates[0].n, limits=joined(estimates))
            write(starts, [len(each.value) for each in estimates], together)
        return _known(low), _known(high)


_BOTH = ("value", "stderr")


def _known(numbers: NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(number) else number for number in numbers.tolist()]
