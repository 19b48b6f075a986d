"""Every first row against closed forms written here: records of categories, numbers, and one category."""

from __future__ import annotations

import math
from math import comb

import numpy as np
import pytest
from bitldp import recommend

MOST = 1.02
EPSILONS = [1.0, 2.0, 4.0, 6.0, 8.0, 12.0]


def least_of_caps(d: int, k: int, epsilon: float) -> float:
    """Return the least mean variance of lists of w-subsets of m of d attributes, kappa of which hit or more.

    With r = w/k, a uniform list has a hits with P(a), binomial; those of kappa or more are e^eps times as
    likely. p is the chance that an attribute's subset holds its category, q that it holds another one.
    """
    best = math.inf
    for m in range(1, d + 1):
        for w in range(1, k // 2 + 1):
            r = w / k
            chances = np.array([comb(m, a) * r**a * (1.0 - r) ** (m - a) for a in range(m + 1)])
            hits = np.arange(m + 1) / m
            for kappa in range(1, m + 1):
                law = chances * np.where(np.arange(m + 1) >= kappa, math.exp(epsilon), 1.0)
                p = float((law * hits).sum() / law.sum())
                q = (w - p) / (k - 1)
                if p - q < 1e-9:
                    continue
                scale = d / m
                own = scale * p * (1.0 - p) / (p - q) ** 2 + (scale - 1.0) * (1.0 - 1.0 / k) ** 2
                other = scale * q * (1.0 - q) / (p - q) ** 2 + (scale - 1.0) / k**2
                best = min(best, own / k + other * (1.0 - 1.0 / k))
    return best


def least_of_windows(d: int, epsilon: float, criterion: str) -> float:
    """Return the least variance of m of d numbers by a cube of half width b about them in that of 1 + b.

    The cube is e^eps times as likely as the rest: a continuous law, and the limit of grids.
    """
    b = np.geomspace(1e-3, 30.0, 3000)
    square = 1.0 if criterion == "worst" else 1.0 / 3.0
    best = math.inf
    for m in range(1, min(d, 30) + 1):
        share = np.exp(m * np.log(b / (1.0 + b)))
        part = share * math.expm1(epsilon) / (1.0 + share * math.expm1(epsilon))
        second = (part * (square + b * b / 3.0) + (1.0 - part) * np.square(1.0 + b) / 3.0) / np.square(part)
        best = min(best, float((d / m * second - square).min()))
    return best


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 6, 16])
@pytest.mark.parametrize("d", [2, 3, 5, 10, 16])
def test_no_record_of_categories_is_over_the_cap(k: int, d: int) -> None:
    for epsilon in EPSILONS:
        first = recommend("frequency", epsilon=epsilon, categories=[k] * d).rows[0]
        assert first.mean <= MOST * least_of_caps(d, k, epsilon), (epsilon, first.name)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["mean", "worst"])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 6, 10, 16, 100])
def test_no_record_of_numbers_is_over_the_joint_window(d: int, criterion: str) -> None:
    """Within 1 % of the continuous law where it is recommended, and of what is better within 2 %."""
    for epsilon in [*EPSILONS, 10.0]:
        first = recommend("mean", epsilon=epsilon, features=d, criterion=criterion).rows[0]  # type: ignore[arg-type]
        most = 1.01 if first.name.startswith("JointWindow") else MOST
        assert first.cost(criterion) <= most * least_of_windows(d, epsilon, criterion), (epsilon, first.name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "epsilon", "variance"),
    [
        *((2, 4.0, 0.3000), (2, 8.0, 0.02245), (2, 10.0, 0.0074)),
        *((3, 4.0, 0.6077), (3, 8.0, 0.05558), (3, 12.0, 0.00859)),
        *((6, 4.0, 1.549), (6, 8.0, 0.2683), (6, 12.0, 0.0610)),
        *((16, 4.0, 4.685), (16, 8.0, 1.271), (16, 12.0, 0.567)),
        *((100, 4.0, 31.03), (100, 8.0, 9.69), (100, 12.0, 5.29)),
    ],
)
def test_means_of_several_numbers(d: int, epsilon: float, variance: float) -> None:
    assert recommend("mean", epsilon=epsilon, features=d).rows[0].mean <= 1.01 * variance


@pytest.mark.slow
@pytest.mark.parametrize("size", [6, 8, 10, 16, 32])
def test_ranges_are_those_of_the_design(size: int) -> None:
    """Where the design is at hand, the first row is within 2 % of a bound for all unbiased mechanisms."""
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        advice = recommend("range", epsilon=epsilon, size=size)
        if advice.bound is not None:
            assert advice.rows[0].mean <= MOST * advice.bound.value
        else:
            assert advice.rows[0].name == "WorkloadDesign"
