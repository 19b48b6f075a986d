"""Epsilon of one bit a coordinate: the worst of both records, each within the ball by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["joint"]

_PRICES = 120  # of the capacity of a record, from the least to the largest that are looked at
_CLOSER = 24  # the same, around the best, and again
_ROUNDS = 7
_RANGE = 1e-9  # of the largest price that matters: the least
_SLACK = 2.0**-45  # of a logarithm: more than a few of them and their sums lose


def joint(
    rows: NDArray[np.float64], power: int, capacity: float, features: int, positive: bool = False
) -> float:
    """Return a bound of the epsilon of two records of the ball at delta 0, dithered without bias.

    Parameters
    ----------
    rows : ndarray of float64, shape (points, values)
        P(value | point) of a coordinate, none of them 0.
    power, capacity, features, positive
        As of `bounds.record`.

    Returns
    -------
    float
        Rounded up.

    Notes
    -----
    With y the reports of all coordinates, the loss is the sum of ln P(y_l|x_l) less that of ln P(y_l|x'_l): a
    maximum over x and one over x', each with a capacity C of its own. So for any prices c, c' >= 0, by
    Lagrangian duality, it is at most

        C (c + c') + d max over y of (max over u of (ln P(y|u) - c |u|^p)
                                      + max over v of (-ln P(y|v) - c' |v|^p)).

    Between two points P is affine, so the inner maxima are at points, at 0, or where a derivative is 0: they
    are computed, not searched on a mesh. One price for both would let one record spend the capacity of the
    other: of a law that is nearly certain at one end, 1.48 times as much.
    """
    edges = np.linspace(0.0 if positive else -1.0, 1.0, len(rows))
    table = rows
    if not positive and not (edges == 0.0).any():
        middle = len(rows) // 2
        edges = np.insert(edges, middle, 0.0)
        table = np.insert(rows, middle, (rows[middle - 1] + rows[middle]) / 2.0, axis=0)
    steepest = float((np.abs(np.diff(table, axis=0)) / np.diff(edges)[:, None] / table.min()).max())
    slack = (1.0 + float(np.abs(np.log(table)).max())) * _SLACK
    most = max(steepest, 1e-300) * (1.0 + features ** (1.0 / power)) * 2.0
    both = [np.append(0.0, np.geomspace(most * _RANGE, most, _PRICES))] * 2
    best = np.inf
    for _ in range(_ROUNDS):
        gains = _largest(table, edges, power, both[0], 1.0)[:, None]
        losses = _largest(table, edges, power, both[1], -1.0)[None]
        tops = (gains + losses).max(axis=2) + slack
        values = capacity * (both[0][:, None] + both[1]) + features * np.maximum(tops, 0.0)
        places = np.unravel_index(int(values.argmin()), values.shape)
        best = min(best, float(values[places]))
        both = [_around(prices, int(place)) for prices, place in zip(both, places, strict=True)]
    return best * (1.0 + 2.0**-40)


def _around(prices: NDArray[np.float64], place: int) -> NDArray[np.float64]:
    low, high = prices[max(place - 1, 0)], prices[min(place + 1, len(prices) - 1)]
    return np.append(prices[place], np.linspace(low, high, _CLOSER))


def _largest(
    table: NDArray[np.float64],
    edges: NDArray[np.float64],
    power: int,
    prices: NDArray[np.float64],
    sign: float,
) -> NDArray[np.float64]:
    """Return max over u of (sign ln P(y|u) - price abs(u)^p), shape (prices, values).

    Of a piece a + b u the derivative is sign b/(a + b u) - price p abs(u)^(p-1) sgn(u).
    """
    slopes = np.diff(table, axis=0) / np.diff(edges)[:, None]
    bases = table[:-1] - slopes * edges[:-1, None]
    low, high, cost = edges[:-1, None], edges[1:, None], prices[:, None, None]
    side = np.sign(low + high)
    result = (sign * np.log(table) - cost * (np.abs(edges) ** power)[:, None]).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if power == 1:
            roots = [sign * side / cost - bases / slopes]
        else:
            root = np.sqrt(np.square(bases) + 2.0 * sign * np.square(slopes) / cost)
            roots = [(-bases + root) / (2.0 * slopes), (-bases - root) / (2.0 * slopes)]
        for places in roots:
            inner = np.clip(np.where(np.isfinite(places), places, low), low, high)
            share = (inner - low) / (high - low)
            chances = (1.0 - share) * table[:-1] + share * table[1:]
            found = sign * np.log(chances) - cost * np.abs(inner) ** power
            result = np.maximum(result, found.max(axis=1))
    return np.asarray(result)
