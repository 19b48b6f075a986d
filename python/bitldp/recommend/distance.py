"""How far an estimated distribution is from the true one: the measure of task "distribution".

Wasserstein-1 on an interval of length 1 is the mean of abs(estimated - true distribution function). Of an
estimate that is normal with a bias b and a standard deviation s, E abs = s sqrt(2/pi) e^(-b^2/2s^2) + b (1 -
2 Phi(-b/s)); of the square wave, which has no closed form, it is the mean over counts drawn by its law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.ordered.hierarchy import Hierarchy
from bitldp.ordered.square_wave import SquareWave
from bitldp.recommend.ordered import node_law

__all__ = ["SHAPES", "distances"]

_GRID = np.linspace(0.0, 1.0, 257)
_DRAWS = 12
_erf = np.vectorize(math.erf, otypes=[np.float64])

Below = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def _normal(middle: float, width: float) -> Below:
    """Return the distribution function of a normal law that is cut to [0, 1]."""

    def below(x: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = (math.erf((end - middle) / (width * math.sqrt(2.0))) for end in (0.0, 1.0))
        return np.asarray((_erf((x - middle) / (width * math.sqrt(2.0))) - low) / (high - low))

    return below


def _beta(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(x**5 * (6.0 - 5.0 * x))


def _humps(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(0.5 * _normal(0.25, 0.08)(x) + 0.5 * _normal(0.7, 0.1)(x))


def _step(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(0.5 * x + 0.5 * np.clip((x - 0.3) / 0.1, 0.0, 1.0))


SHAPES: Mapping[str, Below] = MappingProxyType({"Beta(5, 2)": _beta, "two humps": _humps, "a step": _step})
"""Distribution functions on [0, 1] that errors are measured at: skewed (Li et al. 2020), two normal laws at
.25 and .7, and half of all even while the other half is within a tenth."""


def distances(mechanism: Any, users: int) -> list[float]:
    """Return the expected Wasserstein-1 distance at each of `SHAPES`, as a share of the interval.

    Parameters
    ----------
    mechanism : SquareWave, Hierarchy or one of `ORACLES`
        Of numbers, of cells of the interval, or of bins of it, in which records count as spread evenly.
    users : int
        Records that the estimate is from.
    """
    if isinstance(mechanism, SquareWave):
        return [_of_wave(mechanism, below, users) for below in SHAPES.values()]
    if isinstance(mechanism, Hierarchy):
        count, places = mechanism.size, np.rint(_GRID * mechanism.size).astype(np.int64)
        grid, variances = places / count, mechanism.range_variance(0, places)
    else:
        count, grid = mechanism.categories, _GRID
        bins = np.clip(_GRID[:, None] * count - np.arange(count), 0.0, 1.0)  # what is below, in part
        variances = node_law(mechanism).variance(bins, np.full(count, 1.0 / count))
    edges, spread = np.linspace(0.0, 1.0, count + 1), np.sqrt(variances / users)
    return [
        _mean(_folded(np.interp(grid, edges, below(edges)) - below(grid), spread))
        for below in SHAPES.values()
    ]


def _of_wave(mechanism: SquareWave, below: Below, users: int) -> float:
    middles = (np.arange(mechanism.cells - 1) + 0.5) / (mechanism.cells - 1)  # between points
    edges = np.concatenate([[0.0], middles, [1.0]])
    found = mechanism.simulate_distribution(np.diff(below(edges)), users, draws=_DRAWS)
    sums = np.concatenate([np.zeros((_DRAWS, 1)), np.cumsum(found, axis=1)], axis=1)
    return float(np.mean([_mean(np.abs(np.interp(_GRID, edges, row) - below(_GRID))) for row in sums]))


def _folded(bias: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the modulus of a normal number."""
    s = np.maximum(spread, 1e-300)
    return np.asarray(
        s * math.sqrt(2.0 / math.pi) * np.exp(-0.5 * np.square(bias / s))
        + bias * _erf(bias / s / math.sqrt(2.0))
    )


def _mean(values: NDArray[np.float64]) -> float:
    """Return the mean over [0, 1] of what is known at even steps."""
    return float((values.sum() - 0.5 * (values[0] + values[-1])) / (len(values) - 1))
