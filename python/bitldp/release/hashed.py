"""A release of a word's cell under a public hash function of the record's own."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import hash_cells, hash_supports
from bitldp.release.base import Call
from bitldp.release.window import WindowRelease, window

__all__ = ["Hashed", "hashed"]

_MOST = 1 << 16  # cells


class Hashed(NamedTuple):
    """Local hashing: a word's cell, by a function that is drawn without looking at it, is randomized.

    Any two words have cells of their own under most functions, and the law of the cell is e^epsilon-close for
    any two cells: so epsilon is that of the release, whatever the functions are.

    Attributes
    ----------
    release : WindowRelease
        Randomized response of the cell.
    """

    release: WindowRelease

    @property
    def cells(self) -> int:
        """How many cells a function has."""
        return self.release.alphabet

    def chances(self) -> tuple[float, float]:
        """Return P(a report supports the word | it is the record's), and P(it does | it is another).

        Over a uniform function two words' cells are independent and uniform, within 2**-32.
        """
        return self.release.chances()[0], 1.0 / self.cells

    def randomize(self, seeds: NDArray[np.uint32], keys: NDArray[np.uint64], call: Call) -> NDArray[np.uint8]:
        """Release the cell of each record's key under the function of its seed."""
        return self.release.randomize(hash_cells(seeds, keys, self.cells), call)

    def supports(
        self,
        seeds: NDArray[np.uint32],
        reports: NDArray[np.uint32],
        keys: NDArray[np.uint64],
        threads: int | None = None,
    ) -> NDArray[np.int64]:
        """Return how many reports support each key."""
        return hash_supports(seeds, reports, keys, self.cells, threads=threads).astype(np.int64)


def spread(epsilon: float, cells: int) -> float:
    """Return the variance of the indicator of a word that a record has not: q(1-q)/(p-q)^2.

    Infinite where epsilon is so small that no double tells p from q.
    """
    p, q = 1.0 / (1.0 + (cells - 1) * math.exp(-epsilon)), 1.0 / cells
    return q * (1.0 - q) / (p - q) ** 2 if p != q else math.inf


@lru_cache(maxsize=64)
def hashed(epsilon: float) -> Hashed:
    """Return local hashing at an exact epsilon, with the cells of least variance: about e^epsilon + 1.

    Source: Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation",
    USENIX Security 2017, Section 4.4 (optimized local hashing, OLH).
    """
    best = min(_MOST, 1 + math.floor(math.exp(min(epsilon, 20.0))))
    cells = [each for each in (best, best + 1) if 2 <= each <= _MOST]
    if epsilon > 0.0:
        cells.sort(key=lambda each: spread(epsilon, each))
    return Hashed(window(cells[0], 1, epsilon))
