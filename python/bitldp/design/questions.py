"""Linear questions about one of k inputs: the matrices of the usual ones, by name."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_ANSWERS", "NAMES", "gram_of", "questions"]

Floats = NDArray[np.float64]

NAMES = ("cdf", "histogram", "identity", "marginals", "moments", "ranges")
"""Workloads that have a name; "identity" is "histogram"."""

MOST_ANSWERS = 1 << 18
"""Questions of one workload: all ranges of 512 values are 131,328."""

_DEGREES = 2


def questions(name: str, size: int, sizes: Sequence[int] = ()) -> Floats:
    """Return the matrix of a named workload: what each input counts for in each answer.

    Parameters
    ----------
    name : str
        "histogram" (or "identity"): the share of each input. "cdf": the share at most x, for every x but the
        last. "ranges": the share from x to y, for all x <= y, ordered by x, then y. "moments": the means of
        x/(k - 1) and of its square. "marginals": of inputs that are cells of a table, the shares of all
        values of each attribute, then of all pairs of values of each two.
    size : int
        k, the number of inputs.
    sizes : sequence of int, optional
        Values of each attribute, whose product is k; for marginals. The last one runs fastest.

    Returns
    -------
    ndarray of float64, shape (answers, k)
    """
    cells = np.arange(size)
    if name in ("histogram", "identity"):
        return np.eye(size)
    if name == "cdf":
        return (cells <= cells[:-1, None]).astype(np.float64)
    if name == "moments":
        return np.stack([(cells / (size - 1)) ** degree for degree in range(1, _DEGREES + 1)])
    if name == "ranges":
        first, last = np.triu_indices(size)
        return ((cells >= first[:, None]) & (cells <= last[:, None])).astype(np.float64)
    values = np.unravel_index(cells, tuple(sizes))
    rows = []
    for count in (1, 2):
        for chosen in itertools.combinations(range(len(sizes)), min(count, len(sizes))):
            table = np.ravel_multi_index([values[each] for each in chosen], [sizes[each] for each in chosen])
            rows.append(table == np.arange(math.prod(sizes[each] for each in chosen))[:, None])
        if len(sizes) == 1:
            break
    return np.concatenate(rows).astype(np.float64)


def gram_of(name: str, size: int, sizes: Sequence[int] = ()) -> Floats:
    """Return W^T W of a named workload; of ranges without making W."""
    if name == "ranges":
        low, high = np.minimum.outer(*(np.arange(size),) * 2), np.maximum.outer(*(np.arange(size),) * 2)
        return ((low + 1) * (size - high)).astype(np.float64)
    table = questions(name, size, sizes)
    return np.asarray(table.T @ table)
