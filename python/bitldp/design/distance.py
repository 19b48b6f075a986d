"""Distances between points of the grid, for privacy under a metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks

Metric: TypeAlias = float | tuple[tuple[float, ...], ...]
"""The power p of |x - y|^p, or a table of distances."""

MetricLike: TypeAlias = float | ArrayLike | Callable[[float, float], float]


def canonical(metric: MetricLike | None, points: Sequence[float]) -> Metric | None:
    """Return a metric in the form in which it is compared and stored.

    Parameters
    ----------
    metric : None, float, array_like of shape (B, B), or callable
        None for plain privacy; p > 0 for |x - y|^p; distances of the B points; or ``metric(x, y)``.
    points : sequence of float
        The B points.

    Raises
    ------
    ValueError, TypeError
        Unless the distances are finite, symmetric, zero from a point to itself and above zero otherwise. The
        triangle inequality is not asked for: where it fails, the shortest way round is what binds.
    """
    if metric is None:
        return None
    if callable(metric):
        metric = [[metric(x, y) for y in points] for x in points]
    if np.ndim(metric) == 0:
        return checks.positive("metric", metric)
    try:
        table = np.asarray(metric, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("metric: must be a power, a table of numbers or a function of two numbers") from None
    count = len(points)
    if table.shape != (count, count):
        raise ValueError(f"metric: a table must have shape ({count}, {count}), got {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("metric: distances must be finite")
    if (np.diagonal(table) != 0.0).any() or not (table[~np.eye(count, dtype=np.bool_)] > 0.0).all():
        raise ValueError("metric: distances must be 0 from a point to itself, and above 0 to any other")
    if (table != table.T).any():
        raise ValueError("metric: distances must be symmetric")
    return tuple(tuple(row) for row in table.tolist())


def distances(metric: Metric, count: int) -> NDArray[np.float64]:
    """Return the table of distances of `count` equidistant points of [0, 1]."""
    if isinstance(metric, tuple):
        return np.array(metric)
    steps = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    table: NDArray[np.float64] = np.power(steps / (count - 1), metric)
    return table


def shortest(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lengths of the shortest ways between points (Floyd and Warshall)."""
    ways: NDArray[np.float64] = table.copy()
    for middle in range(len(ways)):
        np.minimum(ways, ways[:, middle, None] + ways[middle], out=ways)
    return ways


def binding(table: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the pairs of points whose distance is shorter than any way over others; they imply the rest.

    Notes
    -----
    P(z|i) <= e^d(i,k) P(z|k) <= e^(d(i,k) + d(k,j)) P(z|j), so a pair needs a row of its own only where its
    distance is below the length of every detour. With |x - y| these are the neighbours.
    """
    apart = shortest(table) + np.diag(np.full(len(table), np.inf))  # a detour leaves both ends
    detour = np.min(apart[:, :, None] + apart[None, :, :], axis=1)
    # Equal up to rounding: the detour's own rows then imply the pair, up to the same rounding.
    alone: NDArray[np.bool_] = table < detour * (1.0 - 1e-12)
    np.fill_diagonal(alone, val=False)
    return alone
