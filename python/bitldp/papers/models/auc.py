"""Area under the ROC curve: what accuracy hides where classes are uneven."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["auc"]


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Return the chance that a record of a class scores above one that is not of it, ties counting half.

    Parameters
    ----------
    labels : array_like of int, shape (n,)
        Class numbers from 0 on.
    scores : array_like of float, shape (n,) or (n, classes)
        Of class 1; or of every class, whose areas against all others are averaged.

    Returns
    -------
    float
        In [0, 1]; NaN where there is no record of some class, or of no other.
    """
    y, s = np.asarray(labels), np.asarray(scores, np.float64)
    if s.ndim == 2:
        return float(np.mean([auc(y == each, s[:, each]) for each in range(s.shape[1])]))
    ones = int(np.count_nonzero(y == 1))
    if ones in (0, len(y)):
        return float("nan")
    _, places, counts = np.unique(s, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2.0  # mean rank of equal scores, from 1
    above = float(ranks[places][y == 1].sum()) - ones * (ones + 1) / 2.0
    return above / (ones * (len(y) - ones))
