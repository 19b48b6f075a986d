"""Bounds of what a channel per coordinate costs records of a ball, from its integer law.

Lengths are counted in steps of the grid. A record of d coordinates in an l_p ball of radius R differs from
another by ``sum over l of |i_l - i'_l|^p <= (2 R)^p``, which is the capacity here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["costs", "dithered", "greedy", "relaxed", "steepest", "worst_losses"]

_UP = 1.0 + 2.0**-40
_MESH = 64  # parts of a step that are looked at
_SEARCH = 60  # thirds by which the best price is bracketed


def costs(points: int, power: float) -> NDArray[np.float64]:
    """Return ``|i - j|^power`` between any two of the grid's points."""
    places = np.arange(points, dtype=np.float64)
    distances: NDArray[np.float64] = np.abs(places[:, None] - places) ** power
    return distances


def greedy(divergences: NDArray[np.float64], power: float, capacity: float) -> float:
    """Return Lemma 7's bound: the capacity, all spent at the best price.

    Parameters
    ----------
    divergences : ndarray of float64, shape (points, points)
        What a coordinate costs that changes from one point to another.
    power : float
        p of the l_p ball.
    capacity : float
        (2 R)^p.

    Returns
    -------
    float
        ``capacity * max over i, j of D_ij/|i - j|^p``, rounded up.

    Notes
    -----
    Source: Chaudhuri, Guo and Rabbat, "Privacy-aware compression for federated data analysis", UAI 2022,
    Lemma 7. In units of its Eq. 4 the capacity is ``(B_in - 1)^p Delta^p``.
    """
    table = costs(len(divergences), power)
    apart = table > 0.0
    return capacity * float((divergences[apart] / table[apart]).max()) * _UP


def relaxed(divergences: NDArray[np.float64], power: float, capacity: float, features: int) -> float:
    """Return the linear program's bound, the relaxation of the knapsack; never more than `greedy`.

    Parameters
    ----------
    divergences, power, capacity
        As of `greedy`.
    features : int
        Coordinates, d.

    Returns
    -------
    float
        The program's value, rounded up.

    Notes
    -----
    The program (Eq. 4 of the paper) has a weight for each pair of points in each coordinate. It is the same
    for all coordinates and convex, so the mean of a solution over the coordinates is as good: d times a
    program of one coordinate with the capacity shared evenly, whose value is the least concave function
    above the points (cost, divergence) and (0, 0). So it is found exactly for any d, without a solver.
    """
    table = costs(len(divergences), power)
    best: dict[float, float] = {0.0: 0.0}
    for cost, gain in zip(table.ravel().tolist(), divergences.ravel().tolist(), strict=True):
        best[cost] = max(best.get(cost, 0.0), gain)
    hull: list[tuple[float, float]] = []
    for x, y in sorted(best.items()):
        if hull and y <= hull[-1][1]:
            continue  # costs more and gains nothing
        while len(hull) > 1 and _below(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    each = np.interp(capacity / features, [x for x, _ in hull], [y for _, y in hull])
    return features * float(each) * _UP


def dithered(
    divergences: NDArray[np.float64], alpha: float, power: float, capacity: float, features: int
) -> float:
    """Return a bound of the Rényi divergence of records that are dithered without bias.

    Parameters
    ----------
    divergences : ndarray of float64, shape (points, points)
        The Rényi divergence of order `alpha` of a coordinate that changes from one point to another.
    alpha : float
        The order.
    power, capacity, features
        As of `relaxed`; the capacity bounds the records before the dither.

    Returns
    -------
    float
        Rounded up.

    Notes
    -----
    Dither two inputs that are u steps apart with the same coin: they become points m or m + 1 apart, where
    m = floor(u), the latter with the chance f = u - m. The sum ``sum P^alpha Q^(1-alpha)`` is jointly convex,
    so that of the mixtures is at most the mean of that of the points: a coordinate costs at most

        ln((1 - f) e^((alpha-1) D(m)) + f e^((alpha-1) D(m+1)))/(alpha - 1),

    D(m) being the largest divergence of two points at most m apart. A record costs at most the Lagrangian
    dual of the knapsack, at any price of the capacity; the best price is searched.
    """
    points = len(divergences)
    gaps = np.abs(np.arange(points)[:, None] - np.arange(points))
    farther = np.zeros(points)
    np.maximum.at(farther, gaps.ravel(), divergences.ravel())
    exponents = (alpha - 1.0) * np.maximum.accumulate(farther)
    shares = np.arange(1, _MESH + 1) / _MESH
    with np.errstate(divide="ignore"):  # ln(1 - f) at f = 1
        upper = np.logaddexp(exponents[:-1, None] + np.log1p(-shares), exponents[1:, None] + np.log(shares))
    gains = np.concatenate([[0.0], upper.ravel() / (alpha - 1.0)])
    # each gain is that of the end of its part of a step, each cost that of the start: it errs upward
    starts = np.concatenate([[0.0], np.arange((points - 1) * _MESH) / _MESH]) ** power
    each = capacity / features

    def dual(price: float) -> float:
        return price * each + float((gains - price * starts).max())

    low, high = math.log(1e-12), math.log(1e12)
    scale = max(float(gains[-1]), 1e-300) / max(each, 1e-300)
    for _ in range(_SEARCH):  # the dual is convex in the price, so it has one valley
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        if dual(scale * math.exp(left)) <= dual(scale * math.exp(right)):
            high = right
        else:
            low = left
    return features * min(dual(scale * math.exp(high)), float(gains[-1])) * _UP


def _below(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies on or below the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def worst_losses(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest log-ratio of any report between every two rows, rounded up."""
    with np.errstate(divide="ignore"):
        logs = np.log(rows[:, rows.any(axis=0)])
    if np.isneginf(logs).any():
        unequal = np.isneginf(logs)[:, None, :] != np.isneginf(logs)[None, :, :]
        if unequal.any():
            return np.where(np.eye(len(rows), dtype=bool), 0.0, math.inf)
    found = np.stack([np.abs(logs - row).max(axis=1) for row in logs])
    losses: NDArray[np.float64] = found + (1.0 + np.abs(logs).max()) * 2.0**-50
    np.fill_diagonal(losses, 0.0)
    return losses


def steepest(rows: ArrayLike) -> float:
    """Return how fast, in units a step, the logarithm of any report's chance changes with the input at most.

    Between two points the dither mixes their rows, so that with r the ratio of a chance at one of them to
    that at the other, the chance goes as 1 + f (r - 1), whose logarithm is steepest where it is least: by
    r - 1 a step, for r > 1. The log-ratio of two inputs is at most that times their distance.
    """
    table = np.asarray(rows, dtype=np.float64)
    table = table[:, table.any(axis=0)]
    if not table.all():
        return math.inf
    ratio = float(np.maximum(table[1:] / table[:-1], table[:-1] / table[1:]).max(initial=1.0))
    return (ratio - 1.0) + ratio * 2.0**-50
