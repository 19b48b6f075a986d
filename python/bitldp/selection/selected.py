"""Reports of a coordinate and its value, and what a server adds up of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.base.arrays import place
from bitldp.estimate.means import MeanAccumulator

__all__ = ["SelectedMeanAccumulator", "SelectedReports", "floats"]


class SelectedReports(NamedTuple):
    """What is released of n vectors: one coordinate of each, and the report of its value.

    Attributes
    ----------
    indices : ndarray of unsigned int, shape (n,)
        The coordinates; `dimensions` stands for none.
    codes : ndarray, shape (n,)
        The reports of their values; that of a fixed value where there is no coordinate.
    """

    indices: NDArray[Any]
    codes: NDArray[Any]


class SelectedMeanAccumulator(MeanAccumulator):
    """Mean and variance of sparse updates: the letter at the selected coordinate, 0 at all others.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are accumulated.
    letters : ndarray of float64, shape (alphabet,)
        What each code is worth.
    check : callable
        Checks reports and returns them as a pair.
    """

    def __init__(
        self,
        mechanism: Any,
        letters: NDArray[np.float64],
        check: Callable[[Any], SelectedReports],
    ) -> None:
        super().__init__(mechanism, mechanism.selection.channel.dimensions, mechanism.decode)
        self._worth = letters
        self._check = check

    def _add_letters(self, reports: Any) -> None:
        """Add a batch of reports: a pair (indices, codes), each of shape (n,)."""
        indices, codes = self._check(reports)
        n, features = len(codes), len(self._summed[1])
        if n == 0:
            return
        places, letters = indices.astype(np.intp), self._worth[codes]
        mean = np.bincount(places, letters, features + 1)[:features] / n
        squares = np.bincount(places, np.square(letters), features + 1)[:features]
        self._combine(n, mean, np.maximum(squares - n * np.square(mean), 0.0))


def floats(name: str, values: ArrayLike, dimensions: int) -> NDArray[Any]:
    """Return vectors that are finite everywhere: an error must not depend on what is drawn."""
    table = checks.numbers(name, values)
    if table.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name}: dtype {table.dtype} is not allowed; float32 and float64 are")
    if table.ndim != 2 or table.shape[1] != dimensions:
        raise ValueError(f"{name}: shape must be (n, {dimensions}), got {table.shape}")
    bad = ~np.isfinite(table)
    if bad.any():
        raise ValueError(f"{name}: {place(bad)} is not finite")
    return table
