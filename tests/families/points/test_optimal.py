"""The optimal release of a candidate: the value of the program, its integers, its refusals."""

from __future__ import annotations

import pickle
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp import OptimalUtility
from bitldp.audit import audit
from bitldp.base.errors import MissingExtraError
from bitldp.design import DesignError, exact, optimal
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
N = 1 << 18
POINTS = np.random.default_rng(11).random((24, 2)) * 10.0
CASES = {
    "line": lambda epsilon: OptimalUtility(20, epsilon=epsilon),
    "interval": lambda epsilon: OptimalUtility(9, epsilon=epsilon, interval=(-3.0, 5.0), rounding="dither"),
    "plane": lambda epsilon: OptimalUtility(POINTS, epsilon=epsilon),
    "prior": lambda epsilon: OptimalUtility(6, epsilon=epsilon, prior=[8, 4, 2, 1, 1, 0]),
    "regions": lambda epsilon: OptimalUtility(POINTS, epsilon=epsilon, regions=np.arange(24) % 3),
    "jaccard": lambda epsilon: OptimalUtility(12, epsilon=epsilon, utility="jaccard"),
    "losses": lambda epsilon: OptimalUtility(3, epsilon=epsilon, metric=[[0, 1, 9], [4, 0, 1], [2, 2, 0]]),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def build(request):
    return request.param


def test_vector_19(vectors):
    given, expected = vectors[19]["inputs"], vectors[19]["expected"]
    mechanism = OptimalUtility(given["N"], epsilon=given["eps"])
    assert mechanism.expected_error() == pytest.approx(expected["LP_optimum"], abs=vectors[19]["tolerance"])
    assert mechanism.expected_error() >= expected["LP_optimum"] - 1e-9


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0, 12.0, 20.0])
def test_exact_epsilon_by_enumeration(build, epsilon):
    mechanism = build(epsilon)
    laws = [
        [[Fraction(weight, oracle.ONE) for weight in row] for row in channel.weights()]
        for channel in mechanism.channels
    ]
    worst = max(oracle.epsilon_of(law) for law in laws)
    assert mechanism.guarantee.record == pytest.approx(worst, rel=1e-14)
    assert mechanism.guarantee.holds
    # with little to spend, the best is to report one candidate whatever the input is
    silent = mechanism.guarantee.record == 0.0
    assert silent or epsilon * (1 - 1e-5) <= mechanism.guarantee.record <= epsilon
    assert not (silent and epsilon > 1.0)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_nothing_else_has_less_loss(epsilon):
    """Of BRR, the exponential mechanism, L-SRR and GRR, on a line and in the plane."""
    for candidates in (20, POINTS):
        best = OptimalUtility(candidates, epsilon=epsilon).expected_error() * (1 - 1e-6)
        others = [bitldp.BRR(candidates, epsilon=epsilon, m=m) for m in ("paper", "best", 1)]
        others += [kind(candidates, epsilon=epsilon) for kind in (bitldp.Exponential, bitldp.LSRR)]
        assert all(best < other.expected_error() for other in others)
    ratio = (
        bitldp.BRR(20, epsilon=epsilon, m="best").expected_error()
        / OptimalUtility(20, epsilon=epsilon).expected_error()
    )
    assert 1.0 < ratio < 1.31


def test_two_candidates_are_randomized_response():
    mechanism = OptimalUtility(2, epsilon=1.3)
    assert mechanism.expected_error() == pytest.approx(1.0 / (1.0 + np.exp(1.3)), rel=1e-6)


def test_the_prior_shapes_the_law():
    prior = np.array([8.0, 4.0, 2.0, 1.0, 1.0, 0.0])
    mechanism = OptimalUtility(6, epsilon=1.0, prior=prior)
    uniform = OptimalUtility(6, epsilon=1.0)
    losses = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    rows = np.sum(uniform.probabilities() * losses, axis=1)
    assert mechanism.expected_error() < np.average(rows, weights=prior)
    own = np.sum(mechanism.probabilities() * losses, axis=1)
    assert mechanism.expected_error() == pytest.approx(np.average(own, weights=prior), rel=1e-12)
    assert OptimalUtility(6, epsilon=1.0, prior=2 * prior).expected_error() == mechanism.expected_error()


def test_regions_are_programs_of_their_own():
    mechanism = CASES["regions"](1.0)
    parts = [OptimalUtility(POINTS[each::3], epsilon=1.0).expected_error() for each in range(3)]
    assert mechanism.expected_error() == pytest.approx(np.mean(parts), rel=1e-9)


def test_goodness_of_fit(build):
    """Chi-squared over all reports of an input, n = 2^18, alpha = 1e-6."""
    mechanism = build(2.0)
    law = mechanism.probabilities()
    for x in (0, len(law) - 1):
        value = x if mechanism.interval is None else mechanism.points[x]
        counts = np.bincount(mechanism.randomize(np.full(N, value), rng=51 + x), minlength=len(law))
        assert counts[law[x] == 0.0].sum() == 0
        assert oracle.p_value(counts[law[x] > 0.0], law[x][law[x] > 0.0]) > ALPHA


def test_no_unbiased_decode():
    mechanism = OptimalUtility(20, epsilon=1.0)
    for ask in (mechanism.accumulator, lambda: mechanism.estimate_mean([1]), lambda: mechanism.variance([1])):
        with pytest.raises(ValueError, match="OptimalUtility: no unbiased decode exists"):
            ask()


def test_pickle(build):
    mechanism = build(1.0)
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    np.testing.assert_array_equal(again.probabilities(), mechanism.probabilities())
    assert mechanism != build(1.1)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((1025,), {}, "candidates: at most 1024"),
        ((5,), {"epsilon": 0.0}, "epsilon: 0.001 to 30"),
        ((5,), {"epsilon": 31.0}, "epsilon: 0.001 to 30"),
        ((5,), {"epsilon": -1.0}, "epsilon: must be zero or more"),
        ((5,), {"prior": [1.0, 2.0]}, "prior: shape must be"),
        ((5,), {"prior": [-1.0, 1.0, 1.0, 1.0, 1.0]}, "prior: must be a sequence of finite numbers"),
        ((5,), {"prior": [np.nan, 1.0, 1.0, 1.0, 1.0]}, "prior: must be a sequence of finite numbers"),
        ((5,), {"prior": np.zeros(5)}, "prior: must not be zero"),
        ((5,), {"prior": ["a"] * 5}, "prior: must be numbers"),
        ((5,), {"metric": np.ones((4, 4))}, "metric: a table must hold numbers"),
    ],
)
def test_bad_parameters(arguments, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        OptimalUtility(*arguments, **{"epsilon": 1.0, **options})


def test_a_failed_solve_raises(monkeypatch):
    from scipy import optimize

    def fails(*arguments, **options):
        return optimize.OptimizeResult(status=4, message="numerical difficulties", x=np.zeros(12))

    monkeypatch.setattr(optimize, "linprog", fails)
    with pytest.raises(DesignError, match="failed: numerical difficulties"):
        optimal.least_loss(np.ones((3, 3)), 1.0)


def test_a_law_that_is_none_is_refused():
    with pytest.raises(DesignError, match="does not satisfy that epsilon"):
        exact.settled(np.eye(3), 1.0)
    with pytest.raises(DesignError, match="does not satisfy that epsilon"):
        exact.settled(np.full((3, 3), 0.1), 1.0)
    near = np.array([[0.7310586, 0.2689414], [0.2689414, 0.7310586]])  # e^1 : 1, rounded up
    channel = exact.settled(near, 1.0)
    assert 1.0 - 1e-6 < channel.epsilon <= 1.0


def test_without_scipy(monkeypatch):
    monkeypatch.setattr("bitldp.base.errors.missing", list)
    with pytest.raises(MissingExtraError, match=r'pip install "bitldp\[design\]"'):
        optimal.least_loss(np.ones((3, 3)), 1.0)


def test_audit_finds_the_budget():
    result = audit(OptimalUtility(6, epsilon=2.0), n=40_000, rng=1)
    assert result.passed
    assert 1.0 < result.lower <= 2.0
