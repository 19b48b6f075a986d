"""Integers of reports by group: one pass over the reports for all groups, in place of one for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Grouping"]

_EXACT = 1 << 53  # doubles add integers exactly below it
_LEAST = 1 << 10  # rows of a piece, below which pieces cost more than they save


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of the records of a batch.

    Attributes
    ----------
    which : ndarray of int64, shape (n,)
        Group of each record.
    count : int
        Groups, each of which has a record.
    """

    which: NDArray[np.int64]
    count: int

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Records of each group."""
        return np.bincount(self.which, minlength=self.count)

    def codes(self, codes: NDArray[Any], alphabet: int) -> NDArray[np.int64]:
        """Return how often each code comes in each column, shape (groups, columns, alphabet).

        `codes` has the shape (n, columns), and was checked to be below `alphabet`.
        """
        cells, shape = self.which * alphabet, (self.count, 1, alphabet)
        counts = [
            np.bincount(cells + column, minlength=self.count * alphabet).reshape(shape) for column in codes.T
        ]
        return counts[0] if len(counts) == 1 else np.concatenate(counts, axis=1)

    def sums(self, values: NDArray[Any], most: int) -> NDArray[np.int64] | None:
        """Return the sums of integers of shape (n, columns), from 0 to `most`: shape (groups, columns).

        None where they are too large for sums of doubles to be exact.
        """
        rows = min(len(values), _EXACT // max(1, most))
        if rows < min(len(values), _LEAST):
            return None
        sums = np.zeros((self.count, values.shape[1]), np.int64)
        for start in range(0, len(values), max(1, rows)):
            which = self.which[start : start + rows]
            for j, column in enumerate(values[start : start + rows].T):
                sums[:, j] += np.bincount(which, column, self.count).astype(np.int64)
        return sums
