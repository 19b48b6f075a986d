"""Rounding of a linear program's solution to a channel of integers within its budget."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.design import DesignError

_NOTHING = 1e-9  # a column that no input reports more often than this is left out
_STEPS = 60


def settled(law: NDArray[np.float64], epsilon: float) -> Matrix:
    """Return the channel of integers nearest to a law whose exact epsilon is at most `epsilon`.

    Parameters
    ----------
    law : ndarray of float64, shape (inputs, reports)
        P(report | input), right up to the tolerances of the solver.
    epsilon : float
        Privacy budget, above zero.

    Returns
    -------
    Matrix

    Raises
    ------
    DesignError
        If the law is so far from keeping the budget that it would have to be changed by more than 1e-4.

    Notes
    -----
    Entries are held in [c_y, e^eps c_y], c_y being the largest of column y divided by e^eps, and rows are
    scaled to 1. What is then still too much is taken off by mixing every row with the mean of the rows, which
    brings all ratios of a column nearer to 1.
    """
    held = np.maximum(law, 0.0)
    top = held.max(axis=0)
    held = np.where(top > _NOTHING, np.maximum(held, top * math.exp(-epsilon)), 0.0)
    held /= held.sum(axis=1, keepdims=True)
    if not np.isfinite(held).all() or np.abs(held - law).max() > 1e-4:
        raise DesignError("the solver's table is no law of that epsilon")
    mean = held.mean(axis=0)
    share = 0.0
    for _ in range(_STEPS):
        channel = Matrix((1.0 - share) * held + share * mean)
        excess = channel.epsilon - epsilon
        if excess <= 0.0:
            return channel
        if not math.isfinite(excess) or share > 1e-4:
            break
        share = max(2.0 * share, share + excess, 2.0**-50)
    raise DesignError(f"no integers near the solver's table keep the budget {epsilon:.6g}")
