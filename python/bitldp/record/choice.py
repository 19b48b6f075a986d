"""Choice between mechanisms for one attribute of a record, and the variance that sampling it leaves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.categorical.blocks import BlockDesign
from bitldp.categorical.responses import GRR
from bitldp.categorical.subset import SubsetSelection
from bitldp.categorical.unary import OUE, SUE
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.frequencies import Frequencies
from bitldp.mechanism.numeric import Numeric
from bitldp.numeric.duchi import Duchi
from bitldp.numeric.hybrid import Hybrid
from bitldp.numeric.piecewise import Piecewise, PiecewiseSub
from bitldp.numeric.three_outputs import ThreeOutputs

__all__ = [
    "NUMBERS",
    "ORACLES",
    "SLACK",
    "indicators",
    "indicators_worst",
    "mean_indicators",
    "number_mechanism",
    "oracle",
    "thriftiest",
]

SLACK = 0.02
"""Relative variance given up for a shorter report."""

ORACLES: Mapping[str, type[Frequencies]] = {
    kind.__name__: kind for kind in (GRR, OUE, SUE, SubsetSelection, BlockDesign)
}
"""Mechanisms of one category that have an exact variance, by the name of the class."""

NUMBERS: Mapping[str, type[Numeric]] = {
    kind.__name__: kind for kind in (Duchi, Hybrid, Piecewise, PiecewiseSub, ThreeOutputs)
}
"""Mechanisms of one number that have a closed form, which is the same wherever it is built."""


def thriftiest(costs: Sequence[float], bits: Sequence[int], known: float = math.inf) -> int:
    """Return the index of the fewest bits among those within `SLACK` of the least cost.

    Where several have as few, the one of the least cost. Where a cost is within `SLACK` of one that is known
    to be the least of all, though nothing here has it, the others are held to that.
    """
    most = (1.0 + SLACK) * min(costs)
    if min(costs) <= (1.0 + SLACK) * known < most:
        most = (1.0 + SLACK) * known
    return min((size, cost, position) for position, (cost, size) in enumerate(zip(costs, bits, strict=True))
               if cost <= most)[2]  # fmt: skip


def oracle(name: str, size: int, epsilon: float) -> Mechanism:
    """Return the mechanism of one category of `size`; "best" compares all of `ORACLES`."""
    return _oracle(name, size, epsilon)


@lru_cache(maxsize=256)
def _oracle(name: str, size: int, epsilon: float) -> Mechanism:
    kinds = ORACLES.values() if name == "best" else (ORACLES[name],)
    return _chosen([(kind, {"categories": size}) for kind in kinds], epsilon)


@lru_cache(maxsize=256)
def number_mechanism(name: str, epsilon: float, interval: tuple[float, float], clip: bool) -> Mechanism:
    """Return the mechanism of one number of an interval; "best" compares all of `NUMBERS`."""
    kinds = NUMBERS.values() if name == "best" else (NUMBERS[name],)
    return _chosen([(kind, {"interval": interval, "clip": clip}) for kind in kinds], epsilon)


def _chosen(kinds: Iterable[tuple[Any, dict[str, Any]]], epsilon: float) -> Mechanism:
    made, refused = [], []
    for kind, parameters in kinds:
        try:
            made.append(kind(epsilon=epsilon, **parameters))
        except ValueError as error:  # too many categories for it
            refused.append(error)
    if not made:
        raise refused[0]
    if len(made) == 1 or epsilon == 0.0:  # at 0 all are alike: none is informative
        return made[0]
    costs = [each.mean_variance() for each in made]
    return made[thriftiest(costs, [each.report_bits for each in made])]


def indicators(oracle: Any, x: NDArray[Any], size: int, scale: float) -> NDArray[np.float64]:
    """Return the variance of the indicators of a category that is released with the chance 1/scale.

    A letter L is unbiased for the indicator i, and decoded as 1/size + scale (L - 1/size) where the attribute
    is sampled, 1/size where it is not: unbiased again, with the second moment about 1/size scaled.
    Frequencies that are estimated from the attribute's own reports have the same variance where all
    categories are as frequent, and less where they are not.
    """
    own = (x[..., None] == np.arange(size)) - 1.0 / size
    return scale * oracle.variance(x) + (scale - 1.0) * np.square(own)


def mean_indicators(oracles: Sequence[Any], sizes: Sequence[int] | NDArray[Any], scale: float) -> float:
    """Return the mean of `indicators` over the categories of all attributes and uniform inputs."""
    one_of = {id(each): each for each in oracles}  # `oracle` gives the same object for the same parameters
    both = Counter(zip(map(id, oracles), sizes, strict=True))
    means = [
        scale * one_of[own].mean_variance() + (scale - 1.0) * (1.0 - 1.0 / size) / size for own, size in both
    ]
    weights = [size * times for (_, size), times in both.items()]
    return float(np.average(means, weights=weights))


def indicators_worst(oracle: Any, size: int, scale: float) -> float:
    """Return the largest of `indicators`."""
    return float(indicators(oracle, np.zeros(1, np.int64), size, scale).max())
