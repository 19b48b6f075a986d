"""Measures that mechanisms are compared by, for each task: computed from the integers of one that was built.

Task "distribution" has the Wasserstein-1 distance between an estimated distribution and the true one: on an
interval of length 1 the mean of abs(estimated - true distribution function). Of an estimate that is normal
with a bias b and a standard deviation s, E abs = s sqrt(2/pi) e^(-b^2/2s^2) + b (1 - 2 Phi(-b/s)); of the
square wave, which has no closed form, it is the mean over counts drawn by its law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.categorical.blocks import BlockDesign
from bitldp.categorical.hashing import OLH
from bitldp.categorical.responses import GRR
from bitldp.categorical.subset import SubsetSelection
from bitldp.categorical.unary import UnaryEncoding
from bitldp.letters.directions import least_spread
from bitldp.letters.solve import indicators
from bitldp.mechanism.numeric import Numeric
from bitldp.ordered.hierarchy import Hierarchy
from bitldp.ordered.ranges import NodeLaw, sets_law, typical_ends
from bitldp.ordered.square_wave import SquareWave
from bitldp.ordered.workload import WorkloadDesign
from bitldp.record.privunit import HypercubePrivUnit
from bitldp.record.signs import SampledSigns
from bitldp.record.window import JointWindow

__all__ = [
    "MEASURES",
    "SHAPES",
    "Measured",
    "closed_form",
    "distances",
    "influence",
    "least_letters",
    "measured",
    "node_law",
    "range_spread",
    "table_spread",
]


_GRID = np.linspace(0.0, 1.0, 257)
_DRAWS, _FIRST = 12, 2  # times that counts are drawn, and at first
_SURE = 0.1  # relative standard error at which no more are
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
        return _of_wave(mechanism, users)
    if isinstance(mechanism, Hierarchy):
        count, places = mechanism.categories, np.rint(_GRID * mechanism.categories).astype(np.int64)
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


def _of_wave(mechanism: SquareWave, users: int) -> list[float]:
    """Return the mean distances over drawn counts: two draws of each shape, or twelve where two differ."""
    found = np.stack([_drawn(mechanism, below, users, _FIRST, 0) for below in SHAPES.values()])
    error = math.sqrt(float(found.var(axis=1, ddof=1).sum()) / _FIRST)
    if error > _SURE * float(found.mean(axis=1).sum()):
        more = [_drawn(mechanism, below, users, _DRAWS - _FIRST, 1) for below in SHAPES.values()]
        found = np.concatenate([found, np.stack(more)], axis=1)
    return [float(row.mean()) for row in found]


def _drawn(mechanism: SquareWave, below: Below, users: int, draws: int, seed: int) -> NDArray[np.float64]:
    """Return the distances of estimates from counts that are drawn so many times."""
    middles = (np.arange(mechanism.cells - 1) + 0.5) / (mechanism.cells - 1)  # between points
    edges = np.concatenate([[0.0], middles, [1.0]])
    result = mechanism.simulate_distribution(np.diff(below(edges)), users, draws=draws, seed=seed)
    sums = np.concatenate([np.zeros((draws, 1)), np.cumsum(result, axis=1)], axis=1)
    return np.array([_mean(np.abs(np.interp(_GRID, edges, row) - below(_GRID))) for row in sums])


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


def node_law(mechanism: Any) -> NodeLaw:
    """Return for which categories a report of one of `ORACLES` counts, alone and by twos."""
    if isinstance(mechanism, BlockDesign):
        return sets_law(*mechanism.probabilities(), mechanism.blocks.cells, mechanism.blocks.width)
    size = mechanism.categories
    if isinstance(mechanism, SubsetSelection):
        return sets_law(*mechanism.probabilities(), size, mechanism.size)
    if isinstance(mechanism, GRR):
        p = 1.0 / (1.0 + (size - 1) * math.exp(-mechanism.guarantee.record))
        return sets_law(p, (1.0 - p) / (size - 1), size, 1)
    if not isinstance(mechanism, (UnaryEncoding, OLH)):
        raise ValueError(f"{type(mechanism).__name__}: how its reports count for two categories is not known")
    p, q = (
        mechanism.probabilities()
    )  # of independent bits, or as good as that: a hash function is drawn for each record
    return NodeLaw(p, q, p * q, q * q)


def range_spread(mechanism: Any) -> NDArray[np.float64]:
    """Return n times the variance of the shares of typical ranges, all values being as frequent."""
    if isinstance(mechanism, Hierarchy):
        return mechanism._typical()
    starts, stops = typical_ends(mechanism.categories)
    if isinstance(mechanism, WorkloadDesign):
        return table_spread(mechanism.probabilities(), starts, stops)
    return node_law(mechanism).of_counts(stops - starts, mechanism.categories)


def table_spread(law: NDArray[np.float64], starts: NDArray[Any], stops: NDArray[Any]) -> NDArray[np.float64]:
    """Return n times the variance of shares of ranges by a table, decoded with the least that is unbiased."""
    letters, size = least_letters(law), len(law)
    below = np.concatenate([np.zeros((len(letters), 1)), np.cumsum(letters, axis=1)], axis=1)
    sums = below[:, stops] - below[:, starts]
    mean = np.clip(stops - starts, 0, size) / size
    return np.asarray((law.mean(axis=0) @ np.square(sums)) - np.square(mean))


def least_letters(law: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the unbiased indicators of every category that have the least variance, by report.

    Raises
    ------
    ValueError
        Where there are none.
    """
    letters = indicators(law)
    if letters is None:
        raise ValueError("has no unbiased decode: its rows depend on each other")
    return letters


MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "mean": "variance of a record's unbiased letter, per coordinate",
        "vector": "total variance of a record's unbiased vector over its coordinates, in squared radii",
        "frequency": "variance of a record's unbiased indicator, per category of a feature",
        "record": "variance of a record's unbiased number or indicator, per number and category",
        "point": "expected loss of a reported value",
        "distribution": "expected Wasserstein-1 distance, as a share of the interval, over public shapes",
        "range": "n times the variance of the share of a range, over ranges of evenly spread ends",
        "top": "variance of a record's unbiased indicator of one word, that it has not or that it has",
        "label": "chance that a reported label is false",
    }
)


Measured = tuple[float, float]
"""Mean and worst of a task's measure."""


def measured(task: str, mechanism: Any, norm: str = "", users: int = 0) -> Measured:
    """Return mean and worst of the task's measure.

    Parameters
    ----------
    task : str
        One of `MEASURES`.
    mechanism : Mechanism
        What was built for it, for vectors for a radius of 1.
    norm : str
        Of the ball of vectors.
    users : int
        Records that a distribution is estimated from.
    """
    if task in ("distribution", "range"):
        result = distances(mechanism, users) if task == "distribution" else range_spread(mechanism)
        return float(np.mean(result)), float(np.max(result))
    if task == "label":
        wrong = 1.0 - float(mechanism.probabilities()[0, 0])
        return wrong, wrong
    if task == "point":
        return mechanism.expected_error(), mechanism.worst_error()
    if task in ("frequency", "record") and mechanism._takes == "reals":  # answers as numbers 0 and 1
        spread = mechanism.variance(np.array([0.0, 1.0]))
        return float(spread.mean()), float(spread.max())
    if task == "vector" and norm != "linf":
        return _vectors(mechanism, 1.0 if norm == "l1" else 2.0)
    count = mechanism.columns if task == "vector" else 1
    mean, worst = count * mechanism.mean_variance(), count * mechanism.worst_variance()
    return mean, max(mean, worst) if task == "top" else worst


def influence(task: str, mechanism: Any, liars: float) -> float:
    """Return how far a share of liars moves an entry that the task is about; 0 without any.

    A range of an oracle is a set of its categories.

    Raises
    ------
    ValueError
        Where that is not bounded. The message says why.
    """
    if not liars:
        return 0.0
    if isinstance(mechanism, Matrix):
        raise ValueError("how far liars move the decode of a table is not bounded")
    sets = task == "range" and not isinstance(mechanism, Hierarchy)
    return float(mechanism.influence(liars, total=sets))


def closed_form(task: str, norm: str, features: int, epsilon: float) -> float:
    """Return the least mean that is known in closed form, where no mechanism here has it; else infinity.

    Of vectors of the l2 ball, that of PrivUnit, whose law is continuous.
    """
    return least_spread(features, epsilon) if (task, norm) == ("vector", "l2") else math.inf


def _vectors(mechanism: Any, power: float) -> tuple[float, float]:
    """Return the total variance of a vector of length 1, and the worst of some vectors of the ball.

    The former has equal coordinates. The others are a spike, zero, and half of the former.
    """
    count = mechanism.columns
    if isinstance(
        mechanism, (Numeric, HypercubePrivUnit, JointWindow, SampledSigns)
    ):  # each coordinate alone
        even = count ** (-1.0 / power)
        at, one, none, half = mechanism.variance(np.array([even, 1.0, 0.0, 0.5 * even])).tolist()
        spiked = one + (count - 1) * none
        return count * at, max(count * at, spiked, count * none, count * half)
    flat, spike = np.full(count, count ** (-1.0 / power)), np.eye(1, count)[0]
    totals = [float(np.sum(mechanism.variance(x))) for x in (flat, spike, np.zeros(count), 0.5 * flat)]
    return totals[0], max(totals)
