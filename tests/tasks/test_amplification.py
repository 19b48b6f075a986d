"""The central bound of shuffled reports: its formula, its condition, and what it refuses."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from bitldp.amplification import shuffled_central_epsilon


def by_the_book(epsilon: float, n: int, delta: float) -> Decimal:
    """Return Theorem 3.1 in 50 digits."""
    with localcontext() as context:
        context.prec = 50
        grown, users = Decimal(epsilon).exp(), Decimal(n)
        ratio = (grown - 1) / (grown + 1)
        root = 8 * (grown * (4 / Decimal(delta)).ln()).sqrt() / users.sqrt()
        return (1 + ratio * (root + 8 * grown / users)).ln()


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 4.0, 7.0])
@pytest.mark.parametrize("n", [10**6, 10**8, 10**15])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.3])
def test_formula(epsilon, n, delta):
    bound = shuffled_central_epsilon(epsilon, n, delta)
    exact = by_the_book(epsilon, n, delta)
    assert exact <= Decimal(bound) <= exact * Decimal(1.0 + 2e-12)
    assert bound < epsilon


def test_a_known_value():
    assert shuffled_central_epsilon(1.0, 100_000, 1e-6) == pytest.approx(0.072554924887005, rel=2e-12)


def test_it_never_exceeds_the_local_epsilon():
    n = math.ceil(16.0 * math.log(2.0 / 1e-6) * math.exp(0.01)) + 1
    assert float(by_the_book(0.01, n, 1e-6)) > 0.01  # the theorem alone says less than the local guarantee
    assert shuffled_central_epsilon(0.01, n, 1e-6) == 0.01
    assert shuffled_central_epsilon(0.0, 1_000, 1e-6) == 0.0


def test_it_falls_with_n_and_rises_with_epsilon():
    by_n = [shuffled_central_epsilon(2.0, 10**k, 1e-6) for k in range(4, 12)]
    assert (np.diff(by_n) < 0.0).all()
    by_epsilon = [shuffled_central_epsilon(e, 10**6, 1e-6) for e in np.linspace(0.1, 7.0, 20)]
    assert (np.diff(by_epsilon) > 0.0).all()


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 6.0])
def test_the_condition_is_that_of_the_theorem(epsilon):
    needed = 16.0 * math.log(2.0 / 1e-5) * math.exp(epsilon)
    assert shuffled_central_epsilon(epsilon, math.ceil(needed) + 1, 1e-5) <= epsilon
    with pytest.raises(ValueError, match=rf"n: the bound needs .* {math.ceil(needed)} users, got"):
        shuffled_central_epsilon(epsilon, math.floor(needed) - 1, 1e-5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1.0, 1000, 1e-6), ValueError, "local_epsilon: must be zero or more"),
        ((math.inf, 1000, 1e-6), ValueError, "local_epsilon: must be finite"),
        ((math.nan, 1000, 1e-6), ValueError, "local_epsilon: must be finite"),
        (("1", 1000, 1e-6), TypeError, "local_epsilon: must be a real number"),
        ((1.0, 0, 1e-6), ValueError, "n: must be at least 1"),
        ((1.0, 1e6, 1e-6), TypeError, "n: must be an integer"),
        ((1.0, 10**6, 0.0), ValueError, "delta: must be above 0 and below 1"),
        ((1.0, 10**6, 1.0), ValueError, "delta: must be above 0 and below 1"),
        ((1.0, 10**6, math.nan), ValueError, "delta: must be finite"),
        ((800.0, 10**6, 1e-6), ValueError, r"e\^805.447 users"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        shuffled_central_epsilon(*arguments)
