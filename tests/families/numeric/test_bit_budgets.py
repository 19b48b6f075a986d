"""Optimal bit budgets: the shares, the law of independent bits, unbiased letters, the choice of l."""

from __future__ import annotations

import pickle

import bitldp
import numpy as np
import pytest
from bitldp import BitBudgets
from bitldp.audit import audit
from bitldp.numeric import bit_budgets
from support import oracle

N = 1 << 18


def noise(weights, budgets):
    return np.sum(weights * np.exp(budgets) / np.expm1(budgets) ** 2)


def test_vector_24(vectors):
    given, expected = vectors[24]["inputs"], vectors[24]["expected"]
    mechanism = BitBudgets(epsilon=given["eps_bits"], bits=given["l"])
    np.testing.assert_allclose(mechanism.budgets, expected["waterfill_eps_msb_first"], atol=1e-9)
    variances = mechanism.variance(mechanism.points)
    np.testing.assert_allclose(variances, expected["waterfill_variance_on_grid"], atol=1e-9)


@pytest.mark.parametrize("bits", [1, 2, 5, 8])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 4.0, 30.0])
def test_the_shares_are_optimal(bits, epsilon):
    """They sum to the budget; no shift between two bits lowers the variance."""
    shares, weights = bit_budgets.shares(bits, epsilon), bit_budgets.weights(bits)
    assert shares.sum() == pytest.approx(epsilon, rel=1e-12)
    assert np.all(shares > 0.0)
    best = noise(weights, shares)
    for first in range(bits):
        for second in range(bits):
            for part in (1e-3, 0.05):
                shifted = shares.copy()
                shifted[first] += part * shares[second]
                shifted[second] -= part * shares[second]
                assert noise(weights, shifted) >= best * (1 - 1e-10)


@pytest.mark.parametrize("bits", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 9.0])
def test_exact_epsilon_and_means_by_enumeration(bits, epsilon):
    mechanism = BitBudgets(epsilon=epsilon, bits=bits, interval=(-1.0, 3.0))
    law = oracle.bits_law(mechanism.channel.thresholds()[0])
    assert mechanism.guarantee.record == pytest.approx(oracle.epsilon_of(law), rel=1e-13)
    assert epsilon * (1 - 1e-9) <= mechanism.guarantee.record <= epsilon
    assert mechanism.guarantee.bit == pytest.approx(mechanism.budgets.max(), rel=1e-9)
    np.testing.assert_allclose(mechanism.probabilities(), np.array(law, float), rtol=1e-12)
    table = mechanism.probabilities()
    np.testing.assert_allclose(table @ mechanism.letters, mechanism.points, atol=1e-12)
    expected = table @ np.square(mechanism.letters - 1.0) - np.square(mechanism.points - 1.0)
    np.testing.assert_allclose(mechanism.variance(mechanism.points), expected, rtol=1e-9)


def test_one_bit_is_duchi():
    for epsilon in (0.2, 1.0, 5.0):
        one, duchi = BitBudgets(epsilon=epsilon, bits=1), bitldp.Duchi(epsilon=epsilon)
        np.testing.assert_allclose(one.letters, duchi.letters, rtol=1e-9)
        assert one.worst_variance() == pytest.approx(duchi.worst_variance(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 4.0, 8.0, 20.0])
def test_the_best_length(epsilon):
    chosen = BitBudgets(epsilon=epsilon)
    worst = [BitBudgets(epsilon=epsilon, bits=bits).worst_variance() for bits in range(1, 9)]
    assert chosen.worst_variance() == min(worst)
    assert chosen.bits == 1 + int(np.argmin(worst))
    if chosen.bits > 1:  # and still worse than one symbol for the number
        assert chosen.worst_variance() > bitldp.Piecewise(epsilon=epsilon).worst_variance()


@pytest.mark.parametrize("x", [-1.0, -0.31, 0.5])
def test_mean_and_variance_by_simulation(x):
    """Both within 5 standard errors, the variance's by the fourth moment of the sample; n = 2^18."""
    mechanism = BitBudgets(epsilon=6.0, bits=3)
    letters = mechanism.decode(mechanism.randomize(np.full(N, x), rng=5))
    variance = float(mechanism.variance(x))
    assert abs(letters.mean() - x) < 5 * np.sqrt(variance / N)
    fourth = np.mean((letters - x) ** 4)
    assert abs(np.square(letters - x).mean() - variance) < 5 * np.sqrt((fourth - variance**2) / N)


def test_goodness_of_fit():
    """Chi-squared over all codes, between two points too, n = 2^18, alpha = 1e-6."""
    mechanism = BitBudgets(epsilon=3.0, bits=3)
    law, points = mechanism.probabilities(), mechanism.points
    for place, share in ((0, 0.0), (2, 0.25), (7, 0.0)):
        after = min(place + 1, 7)
        x = (1 - share) * points[place] + share * points[after]
        counts = np.bincount(mechanism.randomize(np.full(N, x), rng=place), minlength=8)
        assert oracle.p_value(counts, (1 - share) * law[place] + share * law[after]) > 1e-6


def test_forms_of_the_reports():
    x = np.random.default_rng(3).uniform(-1.0, 1.0, (500, 4)).astype(np.float32)
    for spend in ("split", "sample"):
        mechanism = BitBudgets(epsilon=12.0, features=4, bits=3, spend=spend)
        codes = mechanism.randomize(x, rng=1)
        values = mechanism.randomize(x, rng=1, output="values")
        np.testing.assert_allclose(values, mechanism.decode(codes), rtol=1e-6)
        packed = mechanism.randomize(x, rng=1, output="packed")
        if spend == "split":
            np.testing.assert_array_equal(bitldp.unpack(packed, 3, 2000), codes.ravel())
            out = np.empty_like(codes)
            assert mechanism.randomize(x, rng=1, out=out, threads=2) is out
            np.testing.assert_array_equal(out, codes)
            assert mechanism.report_bits == 12
        estimate = mechanism.estimate_mean(codes)
        assert np.all(np.abs(estimate.value - x.mean(axis=0)) < 5 * estimate.stderr)


def test_pickle():
    for mechanism in (BitBudgets(epsilon=4.0), BitBudgets(epsilon=4.0, bits=2, features=3)):
        again = pickle.loads(pickle.dumps(mechanism))
        assert again == mechanism
        assert hash(again) == hash(mechanism)
        np.testing.assert_array_equal(again.letters, mechanism.letters)
    assert BitBudgets(epsilon=4.0) == BitBudgets(epsilon=4.0, bits=BitBudgets(epsilon=4.0).bits)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0.0,), {}, "epsilon: at least 1e-06"),
        ((-1.0,), {}, "epsilon: must be zero or more"),
        ((1.0,), {"bits": 0}, "bits: must be between 1 and 8"),
        ((1.0,), {"bits": 9}, "bits: must be between 1 and 8"),
        ((1.0,), {"bits": 2.5}, "bits: must be an integer"),
        ((1.0,), {"interval": (2.0, 1.0)}, "interval"),
    ],
)
def test_bad_parameters(arguments, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        BitBudgets(epsilon=arguments[0], **options)


def test_bad_inputs():
    mechanism = BitBudgets(epsilon=2.0, bits=2)
    with pytest.raises(ValueError, match="NaN"):
        mechanism.randomize(np.array([np.nan]))
    with pytest.raises(ValueError, match="outside"):
        mechanism.decode([4])


def test_audit_finds_the_budget():
    result = audit(BitBudgets(epsilon=2.0, bits=2), n=40_000, rng=1)
    assert result.passed
    assert 0.8 < result.lower <= 2.0
