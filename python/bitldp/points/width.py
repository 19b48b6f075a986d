"""Number of candidates that BRR favours: Algorithm 2 for any losses, its closed form on a line, the best m.

The paper is "Bipartite randomized response mechanism for local differential privacy" (Zhang, Zhu, Chen and
Hu, arXiv:2504.20926). Losses of a candidate are sorted in ascending order; a window of width m puts weight
e^epsilon on the first m of them and weight 1 on the rest.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_TIE = 1e-12  # of the largest loss: some thousand units in the last place
_LARGE = 700.0  # e^700 is still a double; every formula has reached its limit by then


def nearest_first(losses: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return for every candidate the candidates from least to largest loss, ties to the lower index.

    Equal distances that are computed from coordinates may differ in their last bits, and differently on each
    machine. Neighbours in the sorted row are therefore ties if they differ by at most 1e-12 of the largest
    absolute loss of the row. A candidate comes before others at the same loss, so m = 1 favours the candidate
    itself.
    """
    order = np.argsort(losses, axis=1, kind="stable")
    for row, (loss, by_loss) in enumerate(zip(losses, order, strict=True)):
        rises = np.diff(loss[by_loss]) > _TIE * np.abs(loss).max()
        if rises.all():
            continue
        ranks = np.append(0, np.cumsum(rises))
        rank = np.empty(len(loss), np.intp)
        rank[by_loss] = 2 * ranks
        rank[row] -= 1  # before its ties, after all that is less
        order[row] = np.argsort(rank, kind="stable")
    return order


def paper_width(sorted_losses: NDArray[np.float64], epsilon: float) -> int:
    """Return m by Algorithm 2: the least local m over the candidates.

    Parameters
    ----------
    sorted_losses : ndarray of float64, shape (k, N)
        Losses in ascending order, a row for each candidate (equal rows may be left out).
    epsilon : float
        Exact epsilon of the release.

    Returns
    -------
    int
        m in [1, N].

    Notes
    -----
    Algorithm 1 raises s_i to e^epsilon as long as dQ/ds_i < 0, that is while
    ``lambda_i sum_j s_j < sum_j lambda_j s_j`` with s_j = e^epsilon for j < i and 1 from i on. With prefix
    sums P this is ``lambda_i (N + (i - 1) h) < P_N + h P_(i-1)``, h = e^epsilon - 1; it is divided by h where
    h is large.
    """
    count = sorted_losses.shape[1]
    growth = math.expm1(min(epsilon, _LARGE))
    ones, raised = (1.0, growth) if growth <= 1.0 else (1.0 / growth, 1.0)
    prefix = np.cumsum(sorted_losses, axis=1)
    earlier = np.arange(1, count)
    left = sorted_losses[:, 1:] * (ones * count + raised * earlier)
    falls = left < ones * prefix[:, -1:] + raised * prefix[:, :-1]
    local = np.where(falls.all(axis=1), count, 1 + np.argmin(falls, axis=1))
    return int(local.min())


def equidistant_width(count: int, epsilon: float) -> int:
    """Return m of `count` equidistant points in closed form, as Algorithm 2 gives it for epsilon > 0.

    Notes
    -----
    Algorithm 3 of the paper, corrected: m = max(1, min(m1, m2)) for every epsilon (the paper skips m2 for
    epsilon >= 1), and m2 = i - 1 for even i (the paper has i + 1). m1 comes from a candidate at the end, m2
    from the one in the middle. Differences of nearly equal roots are written as quotients, which keeps them
    exact as epsilon goes to 0: m1 = (R - (N - h/2))/h = N (N + 1)/(R + N - h/2), R = sqrt(N^2 e^eps + h^2/4),
    h = e^eps - 1.
    """
    growth = math.expm1(min(epsilon, _LARGE))
    root = math.hypot(count * math.sqrt(1.0 + growth), growth / 2.0)
    rest = count - growth / 2.0
    end = count * (count + 1) / (root + rest) if rest >= 0.0 else (root - rest) / growth
    if count % 2 == 0:
        middle = math.floor(count / (math.sqrt(1.0 + growth) + 1.0) + 1.0)
    else:
        middle = math.floor((count**2 - 1) / (math.sqrt((1.0 + growth) * (count**2 - 1) + 1.0) + count) + 1.0)
    return max(1, min(math.floor(end), middle if middle % 2 else middle - 1))


def printed_equidistant_width(count: int, epsilon: float) -> int:
    """Return m as Algorithm 3 of the paper prints it, which is wrong; for comparison only.

    From epsilon 1 on m is m1 alone (Theorem 1.2), and m2 = i + 1 for even i.
    """
    growth = math.expm1(min(epsilon, _LARGE))
    root = math.hypot(count * math.sqrt(1.0 + growth), growth / 2.0)
    end = math.floor((root - (count - growth / 2.0)) / growth)
    if epsilon >= 1.0:
        return max(1, end)
    if count % 2 == 0:
        middle = math.floor(count / (math.sqrt(1.0 + growth) + 1.0) + 1.0)
    else:
        square = count**2 - 1
        middle = math.floor(square / (math.sqrt((1.0 + growth) * square + 1.0) + count) + 1.0)
    return max(1, min(end, middle if middle % 2 else middle + 1))


def equidistant_column_sums(
    count: int, step: float = 1.0, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the sum over `count` equidistant candidates of the i-th smallest distance, for i = 1 to `count`.

    Each candidate's distances are multiplied by its weight, if there are any.

    The sorted distances of a candidate that has a neighbours on its nearer side are 0, 1, 1, ..., a, a, then
    a + 1, a + 2, ...: floor(i/2) up to i = 2a + 1 and i - 1 - a from there on.
    """
    nearer = np.minimum(np.arange(count), np.arange(count)[::-1])
    per_side = np.bincount(nearer, weights, count)  # candidates with a neighbours on the nearer side
    whole = per_side.sum()
    rank = np.arange(1, count + 1)
    bound = rank // 2  # i <= 2a + 1 exactly where a >= floor(i/2)
    below = np.append(0, np.cumsum(per_side))[bound]
    sum_below = np.append(0, np.cumsum(per_side * np.arange(count)))[bound]
    with np.errstate(over="ignore"):  # the caller refuses sums that are not finite
        sums: NDArray[np.float64] = step * ((whole - below) * bound + below * (rank - 1) - sum_below)
    return sums


def best_width(column_sums: NDArray[np.float64], epsilon: float) -> int:
    """Return the m in [1, N - 1] that minimises the global expected error Q_g (Eq. 11); the least such m."""
    count = len(column_sums)
    prefix = np.cumsum(column_sums)
    width = np.arange(1, count)
    low = math.exp(-epsilon)  # weights e^epsilon and 1, divided by e^epsilon
    errors = (prefix[:-1] + low * (prefix[-1] - prefix[:-1])) / (width + low * (count - width))
    return 1 + int(np.argmin(errors))


def limit_ratio(epsilon: float) -> float:
    """Return the limit of Q_g(BRR)/Q_g(GRR) for many equidistant points.

    Parameters
    ----------
    epsilon : float
        Exact epsilon of both, zero or more.

    Returns
    -------
    float
        (7h + 9)/(4(h + 1)^2), h = e^(epsilon/2). Theorem 3 of the paper has another limit, see
        `printed_limit_ratio`.
    """
    low = math.exp(-epsilon / 2.0)  # divided through by h^2
    return (7.0 * low + 9.0 * low * low) / (4.0 * (1.0 + low) ** 2)


def printed_limit_ratio(epsilon: float) -> float:
    """Return the limit as Theorem 3 of the paper prints it: (7h + 1)/(4h(h + 1)), which is wrong.

    Parameters
    ----------
    epsilon : float
        Exact epsilon of both, zero or more.

    Returns
    -------
    float
        Paper-reported only, for comparison with `limit_ratio`, which simulation confirms.
    """
    low = math.exp(-epsilon / 2.0)
    return (7.0 * low + low * low) / (4.0 * (1.0 + low))
