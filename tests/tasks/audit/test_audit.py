"""Audits: correct mechanisms pass, and the bounds are what they say.

All audits are seeded. Unless a test says otherwise they hold at confidence 0.999, so a correct mechanism
fails one with probability at most 0.001, once and for all when its seed is chosen.
"""

from __future__ import annotations

import math
import tracemalloc
import warnings

import bitldp
import numpy as np
import pytest
from bitldp.audit import audit
from bitldp.audit.events import clopper_pearson
from bitldp.audit.run import drawn_pairs
from scipy import stats


def quiet(kind, *arguments, **parameters):
    """Build a mechanism whose claim may fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        return kind(*arguments, **parameters)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_correct_mechanisms_pass(case, seed):
    mechanism = case.make()
    result = audit(mechanism, n=10_000, rng=seed)
    assert result.passed, result
    assert 0.0 < result.lower <= result.exact <= mechanism.guarantee.record


@pytest.mark.parametrize(
    "mechanism",
    [
        bitldp.FRR(3, epsilon=0.0),
        bitldp.OUE(5, epsilon=0.0),
        bitldp.GRR(3, epsilon=0.0),
        bitldp.BRR(20, epsilon=0.0),
        bitldp.GRR(40, epsilon=12.0),
        bitldp.WarnerRR(epsilon=30.0),
        bitldp.FRR(1, bits=2, integer_bits=1, epsilon=20.0),
        bitldp.SUE(100, epsilon=5.0),
    ],
    ids=repr,
)
def test_extreme_budgets_pass(mechanism):
    assert audit(mechanism, n=5_000, rng=1).passed


@pytest.mark.parametrize(
    ("mechanism", "share"),
    [
        (bitldp.WarnerRR(epsilon=1.0), 0.97),
        (bitldp.GRR(10, epsilon=2.0), 0.95),
        (bitldp.BRR(400, epsilon=1.0, m="best"), 0.94),
        (bitldp.SUE(20, epsilon=2.0), 0.95),
        (bitldp.OUE(20, epsilon=2.0), 0.94),
        (bitldp.FRR(1, bits=3, integer_bits=1, epsilon=2.0), 0.9),
    ],
    ids=repr,
)
@pytest.mark.slow
def test_bounds_are_near_the_exact_epsilon(mechanism, share):
    """The worst pair and event were found; n = 100,000."""
    result = audit(mechanism, rng=5)
    assert share * mechanism.guarantee.record <= result.lower <= mechanism.guarantee.record
    assert result.exact == pytest.approx(mechanism.guarantee.record, rel=1e-12)


def test_independent_bits_are_combined():
    """A record's bound is far above what any bit of it could show."""
    mechanism = bitldp.FRR(2, bits=5, integer_bits=2, epsilon=6.0)
    result = audit(mechanism, rng=2)
    assert result.lower > 2.5 * mechanism.guarantee.bit
    assert "likelihood" in result.event


def test_a_failing_claim_is_refuted():
    mechanism = quiet(bitldp.FRR, 5, epsilon=1.0, calibration="paper")
    result = audit(mechanism, n=20_000, rng=1)
    assert result.passed
    assert result.lower > 5.0 > result.claimed == 1.0
    assert "claimed 1: refuted" in str(result)


def test_a_given_pair_is_compared():
    for mechanism, pair in (
        (bitldp.GRR(10, epsilon=1.0), (3, 8)),
        (bitldp.GRR(4, epsilon=2.0, features=2), (np.array([1, 1]), np.array([2, 2]))),
        (bitldp.GRR(4, epsilon=2.0, features=2), (np.array([1, 0]), np.array([2, 3]))),
        (bitldp.SUE(5, epsilon=1.0), (2, 4)),
        (bitldp.FRR(2, epsilon=3.0), (np.array([1.0, -2.0]), np.array([-1.5, 2.0]))),
        (bitldp.BRR(21, epsilon=1.0, interval=(0.0, 1.0)), (0.0, 1.0)),
        (bitldp.BRR(21, epsilon=1.0, interval=(0.0, 1.0)), (0.013, 0.99)),  # between the points: searched
        (
            bitldp.BitRand(1, categories=3, epsilon_x=2.0, epsilon_y=1.0),
            ((np.array([1.0]), 2), (np.array([-3.0]), 0)),
        ),
    ):
        result = audit(mechanism, n=20_000, rng=1, pair=pair)
        assert result.passed, result
        assert result.lower > 0.15 * mechanism.guarantee.record
        assert any(result.pair[0] is each or np.all(result.pair[0] == each) for each in pair) or isinstance(
            mechanism, bitldp.BitRand
        )


def test_a_given_event_is_bounded():
    mechanism = bitldp.GRR(10, epsilon=1.0)
    p, q = mechanism.probabilities()[3, [3, 4]]
    result = audit(mechanism, n=200_000, rng=1, pair=(3, 8), event=lambda reports: reports == 3)
    assert result.passed
    assert math.log(p / q) - 0.06 < result.lower <= 1.0
    assert result.event == "the given event"
    assert result.between == ("pair[0]", "pair[1]")
    assert audit(mechanism, n=1_000, rng=1, event=lambda reports: reports > 4).passed


@pytest.mark.parametrize("n", [1, 7, 1000])
@pytest.mark.parametrize("tail", [0.2, 1e-3, 1e-9])
def test_clopper_pearson(n, tail):
    counts = np.unique(np.linspace(0, n, 12).astype(int))
    low, high = clopper_pearson(counts, n, tail)
    for k, lower, upper in zip(counts, low, high, strict=True):
        interval = stats.binomtest(int(k), n).proportion_ci(1.0 - 2.0 * tail, method="exact")
        assert lower == pytest.approx(interval.low, rel=1e-6, abs=1e-300)
        assert upper == pytest.approx(interval.high, rel=1e-6)
    # the defining tails, which the interval above cannot resolve when `tail` is small
    np.testing.assert_allclose(stats.binom.sf(counts[1:] - 1, n, low[1:]), tail, rtol=1e-6)
    np.testing.assert_allclose(stats.binom.cdf(counts[:-1], n, high[:-1]), tail, rtol=1e-6)
    assert low[0] == 0.0
    assert high[-1] == 1.0


@pytest.mark.slow
def test_all_bounds_hold_together():
    """200 audits at confidence 0.5, each of 240 bounds: P(more than 122 fail) < 1e-3 at most."""
    mechanism = bitldp.GRR(10, epsilon=1.0)
    failed = sum(not audit(mechanism, n=300, confidence=0.5, rng=seed).passed for seed in range(200))
    assert failed <= int(stats.binom.isf(1e-3, 200, 0.5)) == 122


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [bitldp.GRR(4, epsilon=1.0, features=2), bitldp.Duchi(epsilon=2.0, features=3)], ids=repr
)
def test_all_bounds_of_pairs_hold_together(mechanism):
    """60 audits at confidence 0.5, on inputs drawn anew: P(more than 42 fail) < 1e-3 at most."""
    failed = sum(not audit(mechanism, n=300, confidence=0.5, rng=seed).passed for seed in range(60))
    assert failed <= int(stats.binom.isf(1e-3, 60, 0.5)) == 42


def test_what_would_have_been_seen_is_seen():
    """Faults of that size at n = 20,000 are found with probability 0.95: P(fewer than 33 of 40) < 0.003."""

    class Steep(bitldp.GRR):
        def randomize(self, x, **options):
            return bitldp.GRR(self.categories, epsilon=self.epsilon + excess).randomize(x, **options)

    mechanism = bitldp.GRR(3, epsilon=1.0)
    excess = audit(mechanism, n=20_000, rng=0).detectable
    assert 0.05 < excess < 0.2
    found = sum(not audit(Steep(3, epsilon=1.0), n=20_000, rng=seed).passed for seed in range(40))
    assert found >= 33
    excess /= 10.0
    assert sum(not audit(Steep(3, epsilon=1.0), n=20_000, rng=seed).passed for seed in range(10)) <= 2


def test_what_would_have_been_seen_shrinks_with_the_root_of_n():
    small, large = (audit(bitldp.GRR(3, epsilon=1.0), n=n, rng=1).detectable for n in (10_000, 1_000_000))
    assert 8.0 < small / large < 12.0
    assert audit(bitldp.GRR(40, epsilon=12.0), n=100, rng=1).detectable > 1.0  # most events are never seen


def test_inputs_are_drawn_anew():
    known = bitldp.GRR(5, epsilon=1.0, features=3).extremes()
    drawn = {tuple(drawn_pairs(known, np.random.default_rng(seed))[0][1].tolist()) for seed in range(20)}
    assert len(drawn) > 2
    assert all(len(set(each)) > 1 for each in drawn)  # the columns differ
    many = bitldp.GRR(1000, epsilon=1.0).extremes()
    one, other = drawn_pairs(many, np.random.default_rng(1))[0]
    assert one != other
    assert (
        drawn_pairs(bitldp.GRR(5, epsilon=1.0).extremes(), np.random.default_rng(1)) == []
    )  # all are compared


def test_reproducible():
    mechanism = bitldp.FRR(2, epsilon=3.0)
    first, second = (audit(mechanism, n=2_000, rng=9) for _ in range(2))
    assert first.to_dict() == second.to_dict()
    sequence = np.random.SeedSequence(9)
    assert audit(mechanism, n=2_000, rng=sequence).lower == first.lower
    assert audit(mechanism, n=2_000, rng=np.random.default_rng(10)).lower != first.lower
    assert audit(mechanism, n=2_000).passed  # with keys of the operating system


@pytest.mark.slow
def test_memory_is_bounded():
    """50,000 reports of 2,000 bits are 100 MB for each of four inputs; a few blocks are held."""
    mechanism = bitldp.FRR(200, epsilon=10.0)
    audit(mechanism, n=100, rng=1)  # imports
    tracemalloc.start()
    try:
        assert audit(mechanism, n=50_000, rng=1).passed
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
