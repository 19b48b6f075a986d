"""Certified bound of what unbiased dither costs records of a ball, from the law between grid points.

Numbers are scaled to [-1, 1], so the ball of norm p has radius 1 and a record x has ``sum |x_l|^p <= 1``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bitldp.accounting import divergence
from bitldp.accounting.loss_table import LossTable
from bitldp.base import checks
from bitldp.compression.ball import _bounds

__all__ = ["curve", "law", "mesh", "pure", "record"]

_POINTS, _VALUES = 512, 64  # the largest table whose mesh is looked at

_UP = 1.0 + 2.0**-40
_RATIO = 1.07  # of neighbouring places of the mesh: it costs about 0.1 % of a divergence
_LEAST = 0.01  # the least place, in units of a coordinate of a record that is spread evenly
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
    steep = _bounds.steepest(table.rows) * length
    looked = _looked(table, math.inf, diameter, power, features, positive)
    return min(steep, features * table.epsilon, looked) * _UP


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
    found = np.full(len(alphas), math.inf)
    if bound in ("best", "steepest"):
        # in an l1 ball the squares of the distances sum to no more than in the l2 ball of that radius
        found = np.minimum(found, alphas * (_bounds.steepest(table.rows) * diameter) ** 2 / 2.0)
    for i, alpha in enumerate(alphas.tolist()):
        if bound in ("best", "interpolated"):
            found[i] = min(found[i], _looked(table, alpha, diameter, power, features, positive))
        if bound in ("best", "coupled"):
            capacity = diameter**power
            coupled = _bounds.dithered(divergences(alpha), alpha, power, capacity, features)
            found[i] = min(found[i], coupled)
    return found * _UP


def _looked(
    table: LossTable, alpha: float, diameter: float, power: int, features: int, positive: bool
) -> float:
    """Return the bound of `record`, infinite where its mesh would be too large."""
    points, values = table.rows.shape
    if points > _POINTS or values > _VALUES or not table.rows.all():
        return math.inf
    # Two records are two radii apart; where none is negative, p-th powers are twice those of one.
    capacity = (diameter / (points - 1)) ** power / (2.0 if positive else 1.0)
    return record(table.rows, alpha, power, capacity, features, positive)


def mesh(points: int, power: int, features: int, positive: bool = False) -> NDArray[np.float64]:
    """Return places of [-1, 1], ascending: all points of the grid, and ever closer ones toward the middle.

    Of [0, 1] and toward 0, if all numbers are positive.
    """
    least = _LEAST * features ** (-1.0 / power)
    count = math.ceil(-math.log(least) / math.log(_RATIO)) + 1
    places = np.geomspace(least, 1.0, count)
    places[-1] = 1.0
    if positive:
        return np.unique(np.concatenate([places, np.linspace(0.0, 1.0, points)]))
    grid = np.linspace(-1.0, 1.0, points)
    return np.unique(np.concatenate([-places, places, grid, [0.0] if power == 1 else []]))


def law(
    rows: NDArray[np.float64], places: NDArray[np.float64], positive: bool = False
) -> NDArray[np.float64]:
    """Return the law of a coordinate at places of [-1, 1] or [0, 1]: the mixture of the rows next to each."""
    steps = places * (len(rows) - 1) if positive else (places + 1.0) * ((len(rows) - 1) / 2.0)
    low = np.clip(np.floor(steps).astype(np.int64), 0, len(rows) - 2)
    share = np.clip(steps - low, 0.0, 1.0)[:, None]
    mixed: NDArray[np.float64] = (1.0 - share) * rows[low] + share * rows[low + 1]
    return mixed


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

    In a cell between neighbouring places of the mesh the law is affine in u, and in v. Then
    E = e^((alpha-1) D) is jointly convex in the two laws (for alpha = infinity, e^D, the largest of ratios
    that are convex in u and in v). So E is at most the bilinear function M with its values at the corners.
    Three more steps make a bilinear bound of D - c |u|^p - c |v|^p, whose largest value is at a corner:

    - ln M <= ln m + M/m - 1. If r is how much ln E differs between corners and m the middle, this exceeds
      ln E at a corner by at most e^(r/2) - 1 - r/2. (If that is more than r, the largest corner is taken.)
    - u^2 is at least its chord less w^2/4, with w the width of the cell; |u| is linear where 0 is a place.
    - E at the corners is computed from the rows, and rounded up.

    What is lost is quadratic in the width of cells; they narrow toward 0, where the coordinates of most
    records are. Two inputs t apart cost about alpha I t^2/2, with I the Fisher information, so in high
    dimensions the bound is close to 2 alpha I in the l2 ball: that of Gaussian noise of variance 1/I.
    """
    places = mesh(len(rows), power, features, positive)
    table = law(rows, places, positive)
    scale = 1.0 if math.isinf(alpha) else alpha - 1.0
    divergences = _ratios(table) if math.isinf(alpha) else _divergences(table, alpha)
    gains = divergences + _excess(scale * divergences) / scale
    widths = np.square(np.diff(places)) / 4.0 if power == 2 else np.zeros(len(places) - 1)
    chords = np.abs(places) ** power - np.maximum(np.append(widths, 0.0), np.append(0.0, widths))
    chords *= np.where(chords > 0.0, 1.0 - 2.0**-48, 1.0)
    costs = chords[:, None] + chords
    return _dual(gains.ravel(), costs.ravel(), capacity, features) * _UP


def _divergences(table: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Return the Rényi divergences of every two laws, rounded up."""
    return divergence.divergences(LossTable(table, math.inf), alpha)


def _ratios(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest log-ratio between every two laws, of the one to the other, rounded up."""
    logs = np.log(table)
    found = np.full((len(logs), len(logs)), -math.inf)
    for column in logs.T:
        np.maximum(found, column[:, None] - column, out=found)
    losses: NDArray[np.float64] = np.maximum(found, 0.0) + (1.0 + float(np.abs(logs).max())) * 2.0**-49
    return losses


def _excess(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much the tangent of the logarithm may exceed it at each place, in the cells around it."""
    corners = (logs[:-1, :-1], logs[1:, :-1], logs[:-1, 1:], logs[1:, 1:])
    largest = np.maximum(np.maximum(corners[0], corners[1]), np.maximum(corners[2], corners[3]))
    least = np.minimum(np.minimum(corners[0], corners[1]), np.minimum(corners[2], corners[3]))
    half = np.minimum((largest - least) / 2.0, 2.0)  # at 2, the tangent's excess is above the range
    cells = np.where(half < 1.0, np.expm1(half) - half, largest - least) * _UP
    found = np.zeros_like(logs)
    for part in (found[:-1, :-1], found[1:, :-1], found[:-1, 1:], found[1:, 1:]):
        np.maximum(part, cells, out=part)
    return found


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
    found = below[0]
    if below[1] >= 0.0:
        return found  # the capacity is no constraint
    above = piece(high)
    while above[1] < 0.0:
        low, below, high = high, above, 4.0 * high
        above = piece(high)
    found = min(found, below[0], above[0])
    for _ in range(_CUTS):
        price = (above[0] - below[0] + below[1] * low - above[1] * high) / (below[1] - above[1])
        if not low < price < high:
            break
        least = below[0] + below[1] * (price - low)
        now = piece(price)
        found = min(found, now[0])
        if found <= least * _ENOUGH:
            break
        if now[1] < 0.0:
            low, below = price, now
        else:
            high, above = price, now
    return found
