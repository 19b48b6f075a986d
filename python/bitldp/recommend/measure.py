"""What mechanisms are compared by, for each task: computed from the integers of one that was built."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from bitldp.letters.directions import least_spread
from bitldp.recommend.distance import distances
from bitldp.recommend.ordered import range_spread

__all__ = ["MEASURES", "closed_form", "measured"]

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


def measured(task: str, mechanism: Any, norm: str = "", users: int = 0) -> tuple[float, float]:
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
        found = distances(mechanism, users) if task == "distribution" else range_spread(mechanism)
        return float(np.mean(found)), float(np.max(found))
    if task == "label":
        wrong = 1.0 - float(mechanism.probabilities()[0, 0])
        return wrong, wrong
    if task == "point":
        return mechanism.expected_error(), mechanism.worst_error()
    if task == "vector" and norm != "linf":
        return _vectors(mechanism, 1.0 if norm == "l1" else 2.0)
    count = mechanism.columns if task == "vector" else 1
    mean, worst = count * mechanism.mean_variance(), count * mechanism.worst_variance()
    return mean, max(mean, worst) if task == "top" else worst


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
    flat, spike = np.full(count, count ** (-1.0 / power)), np.eye(1, count)[0]
    totals = [float(np.sum(mechanism.variance(x))) for x in (flat, spike, np.zeros(count), 0.5 * flat)]
    return totals[0], max(totals)
