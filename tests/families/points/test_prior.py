"""Priors of candidates: BRR's best m by them, and the optimal release of many candidates."""

from __future__ import annotations

import pickle

import bitldp
import numpy as np
import pytest
from bitldp import BRR

POINTS = np.random.default_rng(11).random((24, 2)) * 10.0
SKEWED = np.exp(-np.arange(24) / 4.0)


@pytest.mark.parametrize("candidates", [24, POINTS], ids=["line", "plane"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_best_m_is_that_of_the_prior(candidates, epsilon):
    """Of all m, by the law itself; the expected error is the mean over the prior."""
    errors = []
    for m in range(1, 24):
        mechanism = BRR(candidates, epsilon=epsilon, m=m, prior=SKEWED)
        points = mechanism.points.reshape(24, -1)
        losses = np.sqrt(np.square(points[:, None] - points).sum(axis=2))
        rows = np.sum(mechanism.probabilities() * losses, axis=1)
        errors.append(np.average(rows, weights=SKEWED))
        assert mechanism.expected_error() == pytest.approx(errors[-1], rel=1e-9)
        assert mechanism.worst_error() == pytest.approx(rows.max(), rel=1e-9)
    best = BRR(candidates, epsilon=epsilon, m="best", prior=SKEWED)
    assert errors[best.m - 1] <= min(errors) * (1 + 1e-9)
    assert best.guarantee == BRR(candidates, epsilon=epsilon, m=best.m).guarantee


def test_an_even_prior_changes_nothing():
    for candidates in (24, POINTS):
        plain, even = (
            BRR(candidates, epsilon=1.0, m="best"),
            BRR(candidates, epsilon=1.0, m="best", prior=np.full(24, 7)),
        )
        assert plain.m == even.m
        assert plain.expected_error() == pytest.approx(even.expected_error(), rel=1e-12)


def test_a_prior_may_change_m():
    ends = np.zeros(400)
    ends[:20] = 1.0  # all at one end, whose window lies on one side
    plain, skewed = BRR(400, epsilon=1.0, m="best"), BRR(400, epsilon=1.0, m="best", prior=ends)
    assert skewed.m != plain.m
    other = BRR(400, epsilon=1.0, m=plain.m, prior=ends)
    assert skewed.expected_error() < other.expected_error()
    assert pickle.loads(pickle.dumps(skewed)) == skewed != other


def test_regions_have_their_part_of_the_prior():
    regions = np.arange(24) % 3
    mechanism = BRR(POINTS, epsilon=1.0, m="best", regions=regions, prior=SKEWED)
    parts = [BRR(POINTS[each::3], epsilon=1.0, m="best", prior=SKEWED[each::3]) for each in range(3)]
    assert mechanism.m == tuple(part.m for part in parts)
    shares = [SKEWED[each::3].sum() for each in range(3)]
    errors = [part.expected_error() for part in parts]
    assert mechanism.expected_error() == pytest.approx(np.average(errors, weights=shares), rel=1e-9)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([1.0, 2.0], "prior: shape must be"),
        ([-1.0, 1.0, 1.0, 1.0, 1.0], "prior: must be a sequence of finite numbers"),
        ([np.nan, 1.0, 1.0, 1.0, 1.0], "prior: must be a sequence of finite numbers"),
        (np.zeros(5), "prior: must not be zero"),
        (["a"] * 5, "prior: must be numbers"),
    ],
)
def test_bad_priors(prior, message):
    with pytest.raises((ValueError, TypeError), match=message):
        BRR(5, epsilon=1.0, prior=prior)


@pytest.mark.slow
def test_the_optimal_release_of_a_thousand():
    """Through the mechanism: the integers keep the budget, its loss is below BRR's, a pickle is the same."""
    pytest.importorskip("scipy", reason="the solver is an extra")
    mechanism = bitldp.OptimalUtility(1000, epsilon=1.0)
    assert mechanism.guarantee.record <= 1.0
    assert mechanism.guarantee.record == pytest.approx(1.0, rel=1e-5)
    assert mechanism.expected_error() < bitldp.BRR(1000, epsilon=1.0, m="best").expected_error() / 1.05
    again = pickle.loads(pickle.dumps(mechanism))
    x = np.arange(1000)
    np.testing.assert_array_equal(again.randomize(x, rng=1), mechanism.randomize(x, rng=1))
