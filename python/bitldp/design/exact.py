"""Rounding of a table of floats to unbiased integers over 2**64 that keep the budget exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.design.distance import Metric, distances, shortest
from bitldp.design.result import Design, DesignError, Weights, judged, residuals
from bitldp.privacy import ONE

Floats = NDArray[np.float64]

_SUM = 1e-6  # how far from 1 the rows of a solution may sum; the solver's tolerance is far below

# Shares of the average row that are mixed into all rows until the budget holds.
_SHARES = (0.0, *(10.0**-power for power in range(12, 2, -1)))


def exact(
    shape: tuple[int, int],
    budget: float,
    metric: Metric | None,
    criterion: str,
    solution: tuple[Floats, Floats],
) -> Design:
    """Round a table and letters of the search to a design of integers.

    Raises
    ------
    DesignError
        If no integers nearby keep the budget without bias.

    Notes
    -----
    Mixing the same row into all rows brings every ratio nearer to 1. If it is the average row, whose mean
    letter is the middle m of the points, the letters m + (a - m)/(1 - share) undo it in the mean. What
    rounding leaves of the bias is made up for in each row by moving mass between two reports.
    """
    table, letters = solution
    if not (np.isfinite(table).all() and np.abs(table.sum(axis=1) - 1.0).max() < _SUM):
        raise DesignError("the rows of the solver's table do not sum to 1")
    table = _raised(np.maximum(table, 0.0), budget, metric)
    table /= table.sum(axis=1, keepdims=True)
    reason = ""
    for share in _SHARES:
        mixed = (1.0 - share) * table + share * table.mean(axis=0)
        stretched = tuple(float(a) for a in 0.5 + (letters - 0.5) / (1.0 - share))
        try:
            weights = unbiased([_rounded(row) for row in mixed], stretched)
            return judged(shape, budget, metric, criterion, weights, stretched)
        except DesignError as error:
            reason = str(error)
    raise DesignError(f"no integers near the solution keep the budget without bias: {reason}")


def _raised(table: Floats, budget: float, metric: Metric | None) -> Floats:
    """Return the least table above a given one that keeps the budget, but for rows that sum to more than 1.

    P_ij becomes max_k P_kj e^-(eps d(i,k)), which no other row exceeds by more than it may. The solver keeps
    its inequalities to a tolerance, so this adds about as much; the search is given a little less than the
    budget, which lets the rows be renormalised.
    """
    if metric is None:
        return np.asarray(np.maximum(table, table.max(axis=0) * math.exp(-budget)))
    shares = np.exp(-budget * shortest(distances(metric, len(table))))
    return np.asarray(np.stack([(table * row[:, None]).max(axis=0) for row in shares]))


def _rounded(row: Floats) -> list[int]:
    """Return integers next to a row, with the sum 2**64. What is possible at all stays possible."""
    # Scaling by a power of two is exact.
    weights = [max(1, int(p * 2.0**64)) if p > 0.0 else 0 for p in row.tolist()]
    weights[int(np.argmax(row))] += ONE - sum(weights)
    return weights


def unbiased(weights: Sequence[Sequence[int]], letters: tuple[float, ...]) -> Weights:
    """Adjust integers so that the means of their letters are the points, to rounding.

    Raises
    ------
    DesignError
        If a row's two likely reports have not the mass that must be moved.
    """
    rows = [list(row) for row in weights]
    values = np.array(letters)
    for row, rest in zip(rows, residuals(weights, letters), strict=True):
        # Two reports, both likely and their letters far apart: little mass then moves much of the mean.
        mass = np.array([weight / ONE for weight in row])
        first = int(np.argmax(mass))
        low, high = sorted((first, int(np.argmax(mass * np.abs(values - values[first])))))
        gap = Fraction(letters[high]) - Fraction(letters[low])
        if gap == 0:
            raise DesignError("all likely letters of a row are the same")
        moved = round(rest * ONE / gap)
        row[low] -= moved
        row[high] += moved
        if row[low] <= 0 or row[high] <= 0:
            raise DesignError("the bias of a row is too large to be made up for")
    return tuple(map(tuple, rows))


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
        raise DesignError("the solver's table does not satisfy that epsilon")
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
