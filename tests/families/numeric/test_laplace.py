"""Laplace and Label-Laplace: exact epsilon, exact means, variance, refusals."""

from __future__ import annotations

import math
import pickle

import bitldp
import bitldp.audit
import numpy as np
import pytest
from bitldp._core import CHUNK
from bitldp.numeric import LabelLaplace, Laplace
from hypothesis import given, settings
from hypothesis import strategies as st

BUDGETS = [1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_epsilon_is_used_up_and_never_exceeded(epsilon):
    mechanism = Laplace(epsilon=epsilon)
    law = mechanism.probabilities()
    exact = np.log(law.max(axis=0) / law.min(axis=0)).max()
    assert mechanism.guarantee.holds
    assert mechanism.guarantee.delta == 0.0
    assert mechanism.guarantee.record <= epsilon
    assert mechanism.guarantee.record == pytest.approx(epsilon, rel=1e-9 if epsilon <= 16 else 1e-6)
    assert exact == pytest.approx(mechanism.guarantee.record, rel=1e-9)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    st.floats(1e-3, 40.0),
    st.tuples(st.floats(-10.0, 10.0), st.floats(0.1, 10.0)),
)
def test_letters_are_unbiased_and_the_variance_is_that_of_the_law(epsilon, place):
    low, high = place[0], place[0] + place[1]
    mechanism = Laplace(epsilon=epsilon, interval=(low, high))
    law, letters, points = mechanism.probabilities(), mechanism.letters, mechanism.points
    scale = np.abs(letters).max()
    assert np.abs(law @ letters - points).max() <= 1e-12 * scale
    variance = law @ np.square(letters - mechanism._spread.middle) - np.square(
        points - mechanism._spread.middle
    )
    assert mechanism.variance(points) == pytest.approx(variance, rel=1e-7)
    ideal = 2.0 * ((high - low) / epsilon) ** 2
    assert mechanism.mean_variance() == pytest.approx(ideal, rel=0.01)
    assert mechanism.worst_variance() == pytest.approx(ideal, rel=0.01)


@pytest.mark.parametrize(("epsilon", "expected"), [(0.5, 32), (1, 8), (2, 2), (4, 0.5), (8, 0.125)])
def test_table_of_mean_squared_errors(epsilon, expected):
    assert Laplace(epsilon=epsilon).mean_variance() == pytest.approx(expected, rel=0.01)


def test_reference_cases(vectors):
    case = vectors[23]
    for epsilon, expected in zip(case["inputs"]["eps"], case["expected"]["laplace"], strict=True):
        # The continuous law's; the discrete one is as near as its grid.
        assert Laplace(epsilon=epsilon, interval=(0.0, 1.0)).mean_variance() == pytest.approx(
            expected, rel=0.01
        )
    case = vectors[24]
    found = Laplace(epsilon=case["inputs"]["eps"]).variance(case["inputs"]["x"])
    assert found == pytest.approx(case["expected"]["laplace"], rel=0.01)


def test_a_tiny_budget_is_kept_with_less_variance():
    mechanism = Laplace(epsilon=1e-4)
    assert 0.0 < mechanism.guarantee.record <= 1e-4
    assert np.abs(mechanism.probabilities() @ mechanism.letters - mechanism.points).max() < 1e-9
    assert mechanism.mean_variance() < 8.0 / 1e-8


def test_epsilon_zero_says_nothing():
    mechanism = Laplace(epsilon=0.0)
    assert mechanism.guarantee.record == 0.0
    a, b = (mechanism.randomize(np.full(100, x), rng=3) for x in (-1.0, 1.0))
    assert np.array_equal(a, b)
    assert np.ptp(mechanism.probabilities(), axis=0).max() == 0.0
    for call in (lambda: mechanism.letters, lambda: mechanism.variance(0.0), mechanism.accumulator):
        with pytest.raises(ValueError, match="epsilon 0"):
            call()
    with pytest.raises(ValueError, match=r"^x: element 0"):
        mechanism.randomize(np.array([np.nan]))


def test_simulation():
    """With n = 400,000; five standard errors, fixed key."""
    for features, spend in [(1, "split"), (4, "split"), (4, "sample")]:
        mechanism = Laplace(epsilon=3.0, features=features, spend=spend, interval=(-2.0, 1.0))
        x = np.linspace(-1.9, 0.9, features)
        values = mechanism.decode(mechanism.randomize(np.tile(x, (400_000, 1)), rng=5))
        variance = mechanism.variance(x)
        assert np.all(np.abs(values.mean(axis=0) - x) < 5 * np.sqrt(variance / 400_000))
        assert values.var(axis=0) == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize("mechanism", [Laplace(epsilon=1.0), LabelLaplace(4, epsilon=1.0)])
def test_threads_and_chunks_change_nothing(mechanism):
    label = isinstance(mechanism, LabelLaplace)
    x = np.arange(2 * CHUNK + 5) % 4 if label else np.linspace(-1.0, 1.0, 2 * CHUNK + 5)
    whole = mechanism.randomize(x, rng=3)
    assert np.array_equal(mechanism.randomize(x, rng=3, threads=2), whole)
    tail = mechanism.randomize(x[CHUNK:], rng=3, first_chunk=4 if label else 1)
    assert np.array_equal(tail, whole[CHUNK:])
    packed = mechanism.randomize(x, rng=3, output="packed")
    bits = (mechanism.alphabet - 1).bit_length()
    assert np.array_equal(bitldp._core.unpack(packed, bits, whole.size), whole.ravel())
    assert len(packed) == math.ceil(mechanism.report_bits * len(x) / 8)
    values = mechanism.randomize(x, rng=3, output="values")
    assert np.array_equal(values, mechanism.decode(whole))


@pytest.mark.parametrize("mechanism", [Laplace(epsilon=1.5, features=3), LabelLaplace(5, epsilon=0.7)])
def test_pickle_hash_repr(mechanism):
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert repr(again) == repr(mechanism)


def test_labels_cost_two_entries():
    mechanism = LabelLaplace(3, epsilon=2.0)
    assert mechanism.guarantee.record == pytest.approx(2.0, rel=1e-12)
    assert mechanism.guarantee.record <= 2.0
    zero, one = mechanism.probabilities()
    # Entry by entry, the worst reports of two labels: both entries that differ, nothing from the third.
    worst = np.log(one / zero).max() + np.log(zero / one).max()
    assert worst == pytest.approx(mechanism.guarantee.record, rel=1e-9)
    letters = mechanism.letters
    assert zero @ letters == pytest.approx(0.0, abs=1e-12)
    assert one @ letters == pytest.approx(1.0, abs=1e-12)
    variance = one @ np.square(letters - 1.0)
    assert mechanism.variance([0, 2]) == pytest.approx(np.full((2, 3), variance), rel=1e-9)
    assert variance == pytest.approx(2.0, rel=0.01)  # 2 (2/epsilon)^2


def test_frequencies_of_labels():
    """With n = 200,000; five standard errors, fixed key."""
    mechanism = LabelLaplace(4, epsilon=3.0)
    x = np.repeat([0, 1, 3], [100_000, 60_000, 40_000])
    reports = mechanism.randomize(x, rng=9)
    found = mechanism.estimate_frequencies(reports)
    assert np.all(np.abs(found.value - [0.5, 0.3, 0.0, 0.2]) < 5 * found.stderr)
    projected = mechanism.estimate_frequencies(reports, project=True).value
    assert projected.min() >= 0.0
    assert projected.sum() == pytest.approx(1.0)
    assert np.mean(mechanism.classify(reports) == x) > 0.5
    sharp = LabelLaplace(4, epsilon=40.0)
    assert np.array_equal(sharp.classify(sharp.randomize(x[:1000], rng=1)), x[:1000])
    single = mechanism.randomize(2, rng=1)
    assert single.shape == (4,)
    assert mechanism.decode(single).shape == (4,)


def test_bad_labels_and_parameters_are_refused():
    for error, name, call in [
        (ValueError, "categories", lambda: LabelLaplace(1, epsilon=1.0)),
        (TypeError, "categories", lambda: LabelLaplace(2.5, epsilon=1.0)),
        (ValueError, "epsilon", lambda: LabelLaplace(3, epsilon=-1.0)),
        (ValueError, "epsilon", lambda: LabelLaplace(3, epsilon=math.nan)),
        (ValueError, "x", lambda: LabelLaplace(3, epsilon=1.0).randomize([0, 3])),
        (ValueError, "x", lambda: LabelLaplace(3, epsilon=1.0).randomize([[0], [1]])),
        (TypeError, "x", lambda: LabelLaplace(3, epsilon=1.0).randomize([0.5])),
        (ValueError, "output", lambda: LabelLaplace(3, epsilon=1.0).randomize([0], output="bits")),
        (ValueError, "reports", lambda: LabelLaplace(3, epsilon=1.0).decode([[0, 1]])),
        (ValueError, "reports", lambda: LabelLaplace(3, epsilon=1.0).decode([[0, 1, 9999]])),
        (ValueError, "LabelLaplace", lambda: LabelLaplace(3, epsilon=0.0).accumulator()),
        (ValueError, "LabelLaplace", lambda: LabelLaplace(3, epsilon=1.0).estimate_mean([0])),
        (ValueError, "interval", lambda: Laplace(epsilon=1.0, interval=(1.0, -1.0))),
        (ValueError, "interval", lambda: Laplace(epsilon=1.0, interval=(0.0, math.nan))),
        (ValueError, "interval", lambda: Laplace(epsilon=1.0, interval=(1e15, 1e15 + 1.0))),
        (ValueError, "epsilon", lambda: Laplace(epsilon=math.inf)),
        (ValueError, "x", lambda: Laplace(epsilon=1.0).randomize(np.array([0.0, np.nan]))),
        (ValueError, "x", lambda: Laplace(epsilon=1.0, clip=False).randomize(np.array([0.0, 1.5]))),
        (TypeError, "x", lambda: Laplace(epsilon=1.0).randomize(np.array([True]))),
    ]:
        with pytest.raises(error, match=f"^{name}"):
            call()


@pytest.mark.parametrize("mechanism", [Laplace(epsilon=1.0), LabelLaplace(3, epsilon=1.0)])
def test_audit_agrees(mechanism):
    found = bitldp.audit.audit(mechanism, n=20_000, rng=1)
    assert found.passed
    assert found.lower > 0.2
