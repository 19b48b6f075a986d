"""Solver for mechanisms of least variance: optimised tables and letters, as exact integers.

The minimum variance unbiased mechanism of Chaudhuri, Guo and Rabbat, "Privacy-aware compression for federated
data analysis" (UAI 2022), Section 4: of all tables from the points of a grid to as many letters as a report
of b bits has, the one whose letters have the point as their mean and the least variance. The paper solves
a quadratic program with a trust region; here it is a sequence of linear programs.
"""

from __future__ import annotations

import math
from functools import lru_cache

from bitldp._core import Matrix
from bitldp.base import checks
from bitldp.design import _cache
from bitldp.design.distance import Metric, MetricLike, canonical
from bitldp.design.exact import exact, unbiased
from bitldp.design.result import Design, DesignError, Weights, judged
from bitldp.privacy import ONE, calibrated

__all__ = [
    "BITS",
    "INPUT_BITS",
    "LEAST",
    "METRIC_BITS",
    "MOST",
    "Design",
    "DesignError",
    "at_hand",
    "design",
    "load_or_solve",
]

BITS = 8
"""The most bits of a report."""

INPUT_BITS = 9
"""The most bits of a point; with more than 6 and reports of several bits, a search takes a minute."""

METRIC_BITS = 6
"""The most bits of a report under a metric."""

LEAST = 1e-4
"""The least budget that the solver is given: below it, doubles blur what the rows differ by."""

MOST = 16.0
"""The most that is spent of a budget; beyond it, the dither is all of the variance that matters."""

LEAST_OF_ONE_BIT = 1e-9
"""The same for reports of one bit, which are designed in closed form: below it, 2**-64 is too coarse."""

_RAREST = 1 << 24  # the least weight in the closed form: an epsilon of 27.7

_MARGIN = 1e-6  # of the budget (at most 1): for the tolerance of the solver


def design(
    input_bits: int,
    output_bits: int,
    epsilon: float,
    *,
    metric: MetricLike | None = None,
    objective: str = "mean",
) -> Design:
    """Solve for the mechanism of least variance.

    Parameters
    ----------
    input_bits : int
        b_in: the grid has 2**b_in equidistant points from 0 to 1; 1 to 9.
    output_bits : int
        b_out: a report is one of 2**b_out; 1 to 8, to 6 with a metric.
    epsilon : float
        Budget between any two points; with a metric, that for a distance of 1. From 1e-4 on, from 1e-9 with
        one output bit. At most 16 is spent, 27.7 with one output bit.
    metric : float, array_like of shape (2**b_in, 2**b_in), or callable, optional
        Privacy of two points x, y is epsilon times their distance: p > 0 stands for abs(x - y)**p, else
        a table, or a function of two numbers of [0, 1]. None: every two points are at distance 1.
    objective : {"mean", "worst"}
        Sum of the variances at the points (the paper's), or the largest variance in [0, 1] with dither.

    Returns
    -------
    Design
        Exact integers: their epsilon is at most the budget, their letters unbiased to 1e-9.

    Raises
    ------
    ValueError, TypeError
        For an argument out of its range; the message names it.
    DesignError
        If the solver fails, or its solution cannot be made exact. No iterate is returned then.
    MissingExtraError
        If SciPy is not installed.

    Notes
    -----
    The optimum over table and letters is not convex: the search, from six starts, finds a local one. It is
    deterministic for a version of SciPy. More output bits are never worse: they contain the design of fewer.
    """
    shape, budget, table = _checked(input_bits, output_bits, epsilon, metric, objective)
    return _solve(shape, budget, table, objective)


def load_or_solve(
    input_bits: int,
    output_bits: int,
    epsilon: float,
    *,
    metric: MetricLike | None = None,
    objective: str = "mean",
) -> Design:
    """Return the shipped or cached design; where there is none, solve and cache it.

    Parameters, result and errors are those of `design`. What is loaded is checked as if it were new: its
    checksum, shape, row sums, exact epsilon and bias. A file that fails is logged and solved again.
    """
    return _load_or_solve(*_checked(input_bits, output_bits, epsilon, metric, objective), objective)


def at_hand(input_bits: int, output_bits: int, epsilon: float) -> bool:
    """Tell whether the design of least mean variance is shipped, cached, or known without a search."""
    shape, budget, _ = _checked(input_bits, output_bits, epsilon, None, "mean")
    key = _cache.Key(shape, budget, None, "mean")
    closed = _is_closed(shape, None, "mean")
    return closed or _cache.shipped(key) is not None or _cache.load(key) is not None


@lru_cache(maxsize=256)
def _load_or_solve(shape: tuple[int, int], budget: float, metric: Metric | None, criterion: str) -> Design:
    key = _cache.Key(shape, budget, metric, criterion)
    if _is_closed(shape, metric, criterion):
        return _one_bit(shape, budget)
    found = _cache.shipped(key) or _cache.load(key)
    if found is None:
        found = _solve(*key)
        _cache.store(key, found)
    return found


def _checked(
    input_bits: int, output_bits: int, epsilon: float, metric: MetricLike | None, objective: str
) -> tuple[tuple[int, int], float, Metric | None]:
    most = BITS if metric is None else METRIC_BITS
    inputs = checks.integer("input_bits", input_bits, 1, INPUT_BITS)
    outputs = checks.integer("output_bits", output_bits, 1, most)
    checks.choice("objective", objective, ("mean", "worst"))
    budget = checks.positive("epsilon", epsilon)
    count = 1 << inputs
    table = canonical(metric, [i / (count - 1) for i in range(count)])
    least = LEAST_OF_ONE_BIT if _is_closed((inputs, outputs), table, objective) else LEAST
    if not budget * _widest(table) >= least:
        raise ValueError(
            f"epsilon: {outputs} output bits need at least {least:g} for the greatest distance, got "
            f"{budget * _widest(table):g}"
        )
    return (inputs, outputs), budget, table


def _is_closed(shape: tuple[int, int], metric: Metric | None, criterion: str) -> bool:
    """Return whether the optimum is known without a search: unbiased reports of one bit."""
    return metric is None and shape[1] == 1 and criterion == "mean"


def _widest(metric: Metric | None) -> float:
    """Return the greatest distance of two points of [0, 1]."""
    return max(map(max, metric)) if isinstance(metric, tuple) else 1.0


def _solve(shape: tuple[int, int], budget: float, metric: Metric | None, criterion: str) -> Design:
    """Solve with a little less than the budget, and round to integers that keep it."""
    if _is_closed(shape, metric, criterion):
        return _one_bit(shape, budget)
    from bitldp.design import _search

    target = min(budget, MOST / _widest(metric))
    counts = (1 << shape[0], 1 << shape[1])
    found = _search.best(counts, target - _MARGIN * min(1.0, target), metric, criterion)
    made = exact(shape, budget, metric, criterion, found)
    fewer = _narrower(shape, budget, metric, criterion)
    return made if fewer is None or made.objective < fewer.objective else _widened(fewer)


def _narrower(shape: tuple[int, int], budget: float, metric: Metric | None, criterion: str) -> Design | None:
    """Return the design of one bit less, which a report of more bits contains; None where there is none."""
    if shape[1] == 1:
        return None
    try:
        return _load_or_solve((shape[0], shape[1] - 1), budget, metric, criterion)
    except DesignError:  # so few letters may not suffice for what the metric asks
        return None


def _widened(fewer: Design) -> Design:
    """Return a design as one of a bit more, with letters that are never reported."""
    spare = len(fewer.letters)
    return judged(
        (fewer.input_bits, fewer.output_bits + 1),
        fewer.budget,
        fewer.metric,
        fewer.criterion,
        tuple((*row, *(0,) * spare) for row in fewer.weights),
        (*fewer.letters, *fewer.letters[-1:] * spare),
    )


def _one_bit(shape: tuple[int, int], budget: float) -> Design:
    """Return the optimum for reports of one bit: randomized response of the dithered number.

    Without bias, the chance of the upper letter is linear in the point, so the ends settle the design; least
    variance means the largest excess of e^eps/(1 + e^eps) over 1/2 there.
    """
    count = 1 << shape[0]

    def build(target: float) -> tuple[Weights, tuple[float, ...]]:
        # How much likelier the one report is than the other: exact where it is nearly 0, or nearly all.
        excess = int(math.tanh(target / 2.0) * ONE)
        if target > 1.0:
            excess = ONE - 2 * max(_RAREST, math.ceil(ONE / (1.0 + math.exp(min(target, 700.0)))))
        reach = 0.5 * (ONE / excess)
        upper = [(ONE - excess) // 2 + excess * i // (count - 1) for i in range(count)]
        letters = (0.5 - reach, 0.5 + reach)
        return unbiased([[ONE - weight, weight] for weight in upper], letters), letters

    weights, letters = calibrated(build, budget, lambda built: Matrix.from_weights(built[0]).epsilon)
    return judged(shape, budget, None, "mean", weights, letters)
