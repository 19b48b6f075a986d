"""A published claim that is true is shown as one: rounding does not take the exact epsilon past it."""

from __future__ import annotations

import itertools
import math
import warnings

import bitldp
import numpy as np
import pytest

EPSILONS = [0.0, 1e-9, 1e-4, 0.1, math.log(2.0), 1.0, 2.0, math.pi, 7.7, 20.0, 30.0]


def quiet(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error", bitldp.PrivacyClaimWarning)  # the claim is true: nothing to warn of
        return make()


def alike(count):
    """Return losses under which every candidate but the true one is as bad."""
    return 1.0 - np.eye(count)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_lsrr_with_groups_of_equal_sizes(epsilon):
    """Trees that are full: every candidate has groups of the same sizes, so the claim is Theorem 1's."""
    for count, groups in itertools.product((2, 4, 8, 16, 64), (2, 3, 4)):
        mechanism = quiet(
            lambda count=count, groups=groups: bitldp.LSRR(
                count, epsilon=epsilon, groups=groups, calibration="paper"
            )
        )
        exact = mechanism.guarantee.record
        assert exact <= epsilon
        assert exact == pytest.approx(epsilon, rel=1e-6, abs=1e-13)


def test_two_groups_on_forty_points():
    """What `explain lsrr --points 40 --epsilon 2 --calibration paper` shows."""
    mechanism = quiet(lambda: bitldp.LSRR(40, epsilon=2.0, groups=2, calibration="paper"))
    assert 2.0 - 1e-12 < mechanism.guarantee.record <= 2.0
    assert "does NOT hold" not in str(mechanism.guarantee)


def test_what_is_wrong_in_theory_stays_as_it_was_published():
    """Three candidates in three groups have unequal sizes: the claim fails by a sixth, at any epsilon."""
    for epsilon in (1e-9, 1e-4, 1.0):
        with pytest.warns(bitldp.PrivacyClaimWarning):
            mechanism = bitldp.LSRR(3, epsilon=epsilon, calibration="paper")
        law = mechanism.probabilities()
        assert law[0].max() / law[0].min() == pytest.approx(math.exp(epsilon), rel=1e-14)
        assert mechanism.guarantee.record > 1.05 * epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_exponential(epsilon):
    for count in (2, 7, 100):
        for options in ({}, {"metric": alike(count)}, {"features": 3}):
            exact = quiet(
                lambda count=count, options=options: bitldp.Exponential(
                    count, epsilon=epsilon, calibration="paper", **options
                )
            )
            assert exact.guarantee.record <= epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("alpha", [1e-6, 0.1, 1.0, 10.0, 1e4, 1e6])
def test_moue(epsilon, alpha):
    for features, bits in ((1, 2), (3, 10), (768, 32)):
        for calibration in ("paper", "exact"):
            mechanism = quiet(
                lambda options=(features, bits, calibration): bitldp.MOUE(
                    options[0],
                    bits=options[1],
                    integer_bits=0,
                    epsilon=epsilon,
                    alpha=alpha,
                    calibration=options[2],
                )
            )
            assert mechanism.guarantee.record <= epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_others(epsilon):
    makers = [
        *(
            lambda d=d: bitldp.Duchi(epsilon=epsilon, features=d, spend="cube", calibration="paper")
            for d in (1, 3, 101)
        ),
        *(lambda d=d: bitldp.EXP(d, epsilon=epsilon) for d in (2, 10, 1000)),
        *(lambda d=d: bitldp.PS(d, k=1, epsilon=epsilon) for d in (2, 10, 1000)),
        *(
            lambda c=c: bitldp.LabelRR(c, epsilon=epsilon, beta=epsilon - math.log(c - 1))
            for c in (2, 3, 10, 1000, 10**6, 10**9)
        ),
    ]
    for make in makers:
        assert quiet(make).guarantee.record <= epsilon
