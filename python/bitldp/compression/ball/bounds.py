"""Bounds of the privacy loss of records of a ball, from the integer law of one coordinate.

Lengths are counted in steps of the grid. A record of d coordinates in an l_p ball of radius R differs from
another by ``sum over l of |i_l - i'_l|^p <= (2 R)^p``, which is the capacity here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.accounting import divergence
from bitldp.accounting.loss_table import LossTable
from bitldp.base import checks
from bitldp.compression.ball.joint import joint

__all__ = [
    "costs",
    "curve",
    "dithered",
    "greedy",
    "law",
    "mesh",
    "pure",
    "record",
    "relaxed",
    "steepest",
    "worst_losses",
]

_UP = 1.0 + 2.0**-40
_MESH = 64  # parts of a step that are looked at
_SEARCH = 60  # thirds by which the best price is bracketed


def costs(points: int, power: float) -> NDArray[np.float64]:
    """Return ``|i - j|^power`` between any two of the grid's points."""
    positions = np.arange(points, dtype=np.float64)
    return np.abs(positions[:, None] - positions) ** power


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
    Dither two inputs that are u steps apart with the same random number: they become points m or m + 1 apart,
    where m = floor(u), the latter with the chance f = u - m. The sum ``sum P^alpha Q^(1-alpha)`` is jointly
    convex, so that of the mixtures is at most the mean of that of the points: a coordinate costs at most

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
    """Return whether b lies on or below the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def worst_losses(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest log-ratio of any report between every two rows, rounded up."""
    with np.errstate(divide="ignore"):
        logs = np.log(rows[:, rows.any(axis=0)])
    if np.isneginf(logs).any():
        unequal = np.isneginf(logs)[:, None, :] != np.isneginf(logs)[None, :, :]
        if unequal.any():
            return np.where(np.eye(len(rows), dtype=bool), 0.0, math.inf)
    result = np.stack([np.abs(logs - row).max(axis=1) for row in logs])
    losses: NDArray[np.float64] = result + (1.0 + np.abs(logs).max()) * 2.0**-50
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


_POINTS, _VALUES = 512, 64  # the largest table whose mesh is looked at

_RATIO = 1.07  # of neighbouring points of the mesh: it costs about 0.1 % of a divergence
_LEAST = 0.01  # the least point, in units of a coordinate of a record that is spread evenly
_CUTS = 60  # of the search for the price; any price gives a bound
_ENOUGH = 1.0 + 1e-6


def pure(table: LossTable, diameter: float, power: int, features: int, positive: bool = False) -> float:
    """Return a bound of the epsilon of a record at delta 0: the least that is known for unbiased dither.

    Parameters
    ----------
    table : LossTable
        The law of a coordinate.
    diameter : float
        The largest distance of two records, in steps of the grid.
    power : {1, 2}
        p of the ball.
    features : int
        Coordinates, d.
    positive : bool
        Whether no coordinate is below 0, which is then the first point and not the middle of them.

    Returns
    -------
    float
        Rounded up.
    """
    # by Cauchy and Schwarz, the l1 norm is at most sqrt(d) times the l2 norm
    length = diameter * (1.0 if power == 1 else math.sqrt(features))
    steep = steepest(table.rows) * length
    result = min(steep, features * table.epsilon)
    if table.rows.shape[1] == 2 and table.rows.all():
        capacity = _capacity(table, diameter, power, positive)
        return min(result, joint(table.rows, power, capacity, features, positive)) * _UP
    return min(result, _looked(table, math.inf, diameter, power, features, positive)) * _UP


def curve(
    bound: str,
    table: LossTable,
    divergences: Callable[[float], NDArray[np.float64]],
    alphas: NDArray[np.float64],
    diameter: float,
    power: int,
    features: int,
    positive: bool = False,
) -> NDArray[np.float64]:
    """Return a bound of the Rényi divergence of two records at every order, dithered without bias.

    Parameters
    ----------
    bound : {"best", "coupled", "steepest", "interpolated"}
        Which; "best" is the least.
    table, diameter, power, features, positive
        As of `pure`.
    divergences : callable
        The divergences of every two points at an order.
    alphas : ndarray of float64, shape (n,)
        Orders.

    Returns
    -------
    ndarray of float64, shape (n,)
        Rounded up.

    Raises
    ------
    ValueError
        For another bound.
    """
    if bound == "greedy":
        raise ValueError("bound: 'greedy' needs dither='conditional', which keeps records in a ball")
    checks.choice("bound", bound, ("best", "coupled", "steepest", "interpolated"))
    result = np.full(len(alphas), math.inf)
    if bound in ("best", "steepest"):
        # in an l1 ball the squares of the distances sum to no more than in the l2 ball of that radius
        result = np.minimum(result, alphas * (steepest(table.rows) * diameter) ** 2 / 2.0)
    for i, alpha in enumerate(alphas.tolist()):
        if bound in ("best", "interpolated"):
            result[i] = min(result[i], _looked(table, alpha, diameter, power, features, positive))
        if bound in ("best", "coupled"):
            capacity = diameter**power
            coupled = dithered(divergences(alpha), alpha, power, capacity, features)
            result[i] = min(result[i], coupled)
    return result * _UP


def _looked(
    table: LossTable, alpha: float, diameter: float, power: int, features: int, positive: bool
) -> float:
    """Return the bound of `record`, infinite where its mesh would be too large."""
    points, values = table.rows.shape
    if points > _POINTS or values > _VALUES or not table.rows.all():
        return math.inf
    capacity = _capacity(table, diameter, power, positive)
    return record(table.rows, alpha, power, capacity, features, positive)


def _capacity(table: LossTable, diameter: float, power: int, positive: bool) -> float:
    """Return what the p-th powers of a record's coordinates add up to, with the largest one as 1.

    Two records are two radii apart; where none is negative, p-th powers are twice those of one.
    """
    return (diameter / (len(table.rows) - 1)) ** power / (2.0 if positive else 1.0)


def mesh(points: int, power: int, features: int, positive: bool = False) -> NDArray[np.float64]:
    """Return points of [-1, 1], ascending: all of the grid, and ever closer ones toward the middle.

    Of [0, 1] and toward 0, if all numbers are positive.
    """
    least = _LEAST * features ** (-1.0 / power)
    count = math.ceil(-math.log(least) / math.log(_RATIO)) + 1
    positions = np.geomspace(least, 1.0, count)
    positions[-1] = 1.0
    if positive:
        return np.unique(np.concatenate([positions, np.linspace(0.0, 1.0, points)]))
    grid = np.linspace(-1.0, 1.0, points)
    return np.unique(np.concatenate([-positions, positions, grid, [0.0] if power == 1 else []]))


def law(
    rows: NDArray[np.float64], positions: NDArray[np.float64], positive: bool = False
) -> NDArray[np.float64]:
    """Return the law of a coordinate at points of [-1, 1] or [0, 1]: the mixture of the rows next to each."""
    steps = positions * (len(rows) - 1) if positive else (positions + 1.0) * ((len(rows) - 1) / 2.0)
    low = np.clip(np.floor(steps).astype(np.int64), 0, len(rows) - 2)
    share = np.clip(steps - low, 0.0, 1.0)[:, None]
    return (1.0 - share) * rows[low] + share * rows[low + 1]


def record(
    rows: NDArray[np.float64],
    alpha: float,
    power: int,
    capacity: float,
    features: int,
    positive: bool = False,
) -> float:
    """Return a bound of the Rényi divergence of two records of the ball, dithered without bias.

    Parameters
    ----------
    rows : ndarray of float64, shape (points, values)
        P(value | point) of a coordinate.
    alpha : float
        The order; infinity for the epsilon at delta 0.
    power : {1, 2}
        p of the ball.
    capacity : float
        What ``sum |x_l|^p`` is at most, with the largest coordinate as 1, and what rounding may add.
    features : int
        Coordinates, d.
    positive : bool
        As of `pure`.

    Returns
    -------
    float
        Rounded up.

    Notes
    -----
    Let D(u, v) be the divergence of the laws of a coordinate at u and at v. Both records are of the ball, so
    for any price c >= 0, by Lagrangian duality,

        sum over l of D(x_l, x'_l) <= 2 c capacity + d sup over u, v of (D(u, v) - c |u|^p - c |v|^p).

    In a cell between neighbouring points of the mesh the law is affine in u, and in v. Then
    E = e^((alpha-1) D) is jointly convex in the two laws (for alpha = infinity, e^D, the largest of ratios
    that are convex in u and in v). So E is at most the bilinear function M with its values at the corners.
    Three more steps make a bilinear bound of D - c |u|^p - c |v|^p, whose largest value is at a corner:

    - ln M <= ln m + M/m - 1. If r is how much ln E differs between corners and m the middle, this exceeds
      ln E at a corner by at most e^(r/2) - 1 - r/2. (If that is more than r, the largest corner is taken.)
    - u^2 is at least its chord less w^2/4, with w the width of the cell; |u| is linear where 0 is a point of
      it.
    - E at the corners is computed from the rows, and rounded up.

    What is lost is quadratic in the width of cells; they narrow toward 0, where the coordinates of most
    records are. Two inputs t apart cost about alpha I t^2/2, with I the Fisher information, so in high
    dimensions the bound is close to 2 alpha I in the l2 ball: that of Gaussian noise of variance 1/I.
    """
    positions = mesh(len(rows), power, features, positive)
    table = law(rows, positions, positive)
    scale = 1.0 if math.isinf(alpha) else alpha - 1.0
    divergences = _ratios(table) if math.isinf(alpha) else _divergences(table, alpha)
    gains = divergences + _excess(scale * divergences) / scale
    widths = np.square(np.diff(positions)) / 4.0 if power == 2 else np.zeros(len(positions) - 1)
    chords = np.abs(positions) ** power - np.maximum(np.append(widths, 0.0), np.append(0.0, widths))
    chords *= np.where(chords > 0.0, 1.0 - 2.0**-48, 1.0)
    costs = chords[:, None] + chords
    return _dual(gains.ravel(), costs.ravel(), capacity, features) * _UP


def _divergences(table: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Return the Rényi divergences of every two laws, rounded up."""
    return divergence.divergences(LossTable(table, math.inf), alpha)


def _ratios(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest log-ratio between every two laws, of the one to the other, rounded up."""
    logs = np.log(table)
    result = np.full((len(logs), len(logs)), -math.inf)
    for column in logs.T:
        np.maximum(result, column[:, None] - column, out=result)
    return np.maximum(result, 0.0) + (1.0 + float(np.abs(logs).max())) * 2.0**-49


def _excess(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much the tangent of the logarithm may exceed it at each point, in the cells around it."""
    corners = (logs[:-1, :-1], logs[1:, :-1], logs[:-1, 1:], logs[1:, 1:])
    largest = np.maximum(np.maximum(corners[0], corners[1]), np.maximum(corners[2], corners[3]))
    least = np.minimum(np.minimum(corners[0], corners[1]), np.minimum(corners[2], corners[3]))
    half = np.minimum((largest - least) / 2.0, 2.0)  # at 2, the tangent's excess is above the range
    cells = np.where(half < 1.0, np.expm1(half) - half, largest - least) * _UP
    result = np.zeros_like(logs)
    for part in (result[:-1, :-1], result[1:, :-1], result[:-1, 1:], result[1:, 1:]):
        np.maximum(part, cells, out=part)
    return result


def _dual(gains: NDArray[np.float64], costs: NDArray[np.float64], capacity: float, features: int) -> float:
    """Return the least over prices c of 2 c capacity + d max(gain - c cost), to a relative 1e-6.

    It is convex in c and piecewise linear; the next price is where the lines of two pieces meet.
    """

    def piece(price: float) -> tuple[float, float]:
        """Return value and slope."""
        values = gains - price * costs
        best = int(values.argmax())
        top, cost = float(values[best]), float(costs[best])
        if top < 0.0:  # no coordinate changes
            top, cost = 0.0, 0.0
        return 2.0 * price * capacity + features * top, 2.0 * capacity - features * cost

    low, high = 0.0, 1.0
    below = piece(low)
    result = below[0]
    if below[1] >= 0.0:
        return result  # the capacity is no constraint
    above = piece(high)
    while above[1] < 0.0:
        low, below, high = high, above, 4.0 * high
        above = piece(high)
    result = min(result, below[0], above[0])
    for _ in range(_CUTS):
        price = (above[0] - below[0] + below[1] * low - above[1] * high) / (below[1] - above[1])
        if not low < price < high:
            break
        least = below[0] + below[1] * (price - low)
        now = piece(price)
        result = min(result, now[0])
        if result <= least * _ENOUGH:
            break
        if now[1] < 0.0:
            low, below = price, now
        else:
            high, above = price, now
    return result
