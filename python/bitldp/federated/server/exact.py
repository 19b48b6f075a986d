"""Sums of vectors that do not depend on the order: formed without any rounding, and rounded once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["ExactSum"]


class ExactSum:
    """Exact sum of vectors of doubles, streamed: the same in any order and in blocks of any size.

    Parameters
    ----------
    size : int
        Coordinates of a vector.

    Notes
    -----
    Of each block the leading bits are taken off, as multiples of one unit that is so large that their sums
    have no rounding (Rump, Ogita and Oishi, "Accurate floating-point summation", SIAM J. Sci. Comput. 31,
    2008), until nothing is left; the sums of the parts are kept as a few doubles a coordinate, whose sum is
    exact (Knuth's two-sum).
    """

    def __init__(self, size: int) -> None:
        self._parts: list[NDArray[np.float64]] = [np.zeros(size)]

    def add(self, rows: NDArray[np.float64]) -> None:
        """Add the vectors of a table, shape (n, size), all finite and below 2**960."""
        rest = np.array(rows, dtype=np.float64)
        # n + 2 parts below the unit's 2**52 multiples, as the paper's Algorithm 3.3 has it
        spare = math.ceil(math.log2(len(rest) + 2)) if len(rest) else 0
        part = np.empty_like(rest)
        while rest.size:
            top = max(float(rest.max()), -float(rest.min()))
            if top == 0.0:
                return
            unit = math.ldexp(1.0, math.frexp(top)[1] + spare)
            np.add(rest, unit, out=part)
            part -= unit
            rest -= part
            self._take(part.sum(axis=0))

    def _take(self, vector: NDArray[np.float64]) -> None:
        """Add one vector exactly: what each kept part cannot hold goes on to the next."""
        left = vector
        for place, part in enumerate(self._parts):
            both = part + left
            moved = both - part
            left = (part - (both - moved)) + (left - moved)
            self._parts[place] = both
        if left.any():
            self._parts.append(left)

    @property
    def value(self) -> NDArray[np.float64]:
        """The sum, rounded once, shape (size,)."""
        if len(self._parts) == 1:
            return self._parts[0].copy()
        return np.array([math.fsum(column) for column in zip(*self._parts, strict=True)])
