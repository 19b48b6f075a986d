"""GRR, LabelRR, WarnerRR, SUE and OUE: the sampled law, and frequencies without bias."""

from __future__ import annotations

import math

import bitldp
import numpy as np
import pytest
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
N = 1 << 20


@pytest.mark.parametrize(
    "mechanism",
    [
        bitldp.GRR(7, epsilon=1.0),
        bitldp.GRR(128, epsilon=4.0),
        bitldp.LabelRR(10, epsilon=2.5),
        bitldp.LabelRR(4, epsilon=3.0, beta=-3.0),
        bitldp.WarnerRR(epsilon=0.5),
        bitldp.GRR(6, epsilon=0.0),
    ],
    ids=["GRR-7", "GRR-128", "LabelRR", "LabelRR-beta", "WarnerRR", "GRR-0"],
)
def test_goodness_of_fit(mechanism):
    """Chi-squared over all reports of an input, n = 2^20, alpha = 1e-6."""
    law = mechanism.probabilities()
    np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=1e-12)
    for x in (0, len(law) - 1):
        counts = np.bincount(mechanism.randomize(np.full(N, x), rng=31 + x), minlength=len(law))
        assert oracle.p_value(counts, law[x]) > ALPHA


@pytest.mark.parametrize("kind", [bitldp.SUE, bitldp.OUE])
def test_goodness_of_fit_of_unary_bits(kind):
    """Chi-squared over all 16 reports of an input, n = 2^20, alpha = 1e-6."""
    mechanism = kind(4, epsilon=1.0)
    thresholds = [mechanism.channel.thresholds()] * 4
    for x in (0, 2):
        one_hot = tuple(int(place == x) for place in range(4))
        law = np.array(oracle.bits_law(thresholds, [one_hot])[0], dtype=np.float64)
        bits = mechanism.randomize(np.full(N, x), rng=41 + x).astype(np.int64)
        assert oracle.p_value(np.bincount(bits @ [8, 4, 2, 1], minlength=16), law) > ALPHA


def test_probabilities_are_the_formulas():
    p, q = bitldp.SUE(9, epsilon=2.0).probabilities()
    assert p == pytest.approx(math.e / (1 + math.e), rel=1e-12)
    assert q == pytest.approx(1 / (1 + math.e), rel=1e-12)
    p, q = bitldp.OUE(9, epsilon=2.0).probabilities()
    assert p == 0.5
    assert q == pytest.approx(1 / (1 + math.exp(2)), rel=1e-12)
    law = bitldp.GRR(9, epsilon=2.0).probabilities()
    assert np.diagonal(law) == pytest.approx(math.exp(2) / (math.exp(2) + 8), rel=1e-12)
    law = bitldp.WarnerRR(epsilon=2.0).probabilities()
    assert law[1, 0] == pytest.approx(1 / (1 + math.exp(2)), rel=1e-12)


def test_packed_reports_agree():
    grr = bitldp.GRR(11, epsilon=1.0)
    x = np.arange(100) % 11
    packed = grr.randomize(x, rng=1, output="packed")
    np.testing.assert_array_equal(bitldp.unpack(packed, 4, 100), grr.randomize(x, rng=1))
    sue = bitldp.SUE(11, epsilon=1.0)
    np.testing.assert_array_equal(
        sue.randomize(x, rng=1, output="packed"), np.packbits(sue.randomize(x, rng=1))
    )


TRUTH = np.random.default_rng(5).choice(6, 200_000, p=[0.5, 0.25, 0.15, 0.06, 0.04, 0.0])


@pytest.mark.parametrize(
    "mechanism",
    [
        bitldp.GRR(6, epsilon=1.0),
        bitldp.LabelRR(6, epsilon=1.0),
        bitldp.LabelRR(6, epsilon=4.0, beta=-4.0),
        bitldp.SUE(6, epsilon=1.0),
        bitldp.OUE(6, epsilon=1.0),
    ],
    ids=["GRR", "LabelRR", "LabelRR-below", "SUE", "OUE"],
)
def test_frequencies_within_their_standard_error(mechanism):
    """All six within 5 standard errors; n = 200,000."""
    estimate = mechanism.estimate_frequencies(mechanism.randomize(TRUTH, rng=17))
    truth = np.bincount(TRUTH, minlength=6) / len(TRUTH)
    assert estimate.n == len(TRUTH)
    assert np.all(np.abs(estimate.value - truth) < 5 * estimate.stderr)
    projected = mechanism.estimate_frequencies(mechanism.randomize(TRUTH, rng=17), project=True)
    assert projected.value.min() >= 0.0
    assert projected.value.sum() == pytest.approx(1.0)
    assert np.abs(projected.value - truth).sum() <= np.abs(estimate.value - truth).sum() + 1e-12


@pytest.mark.parametrize("kind", [bitldp.GRR, bitldp.OUE, bitldp.SUE])
def test_standard_errors_and_variances_are_those_of_simulation(kind):
    """Spread of 400 estimates of n = 500 within 15 %, variance of a report within 5 % of the formulas."""
    mechanism = kind(4, epsilon=1.0)
    x = np.repeat([0, 1, 1, 3], 125)
    rng = np.random.default_rng(3)
    estimates = [mechanism.estimate_frequencies(mechanism.randomize(x, rng=rng)) for _ in range(400)]
    spread = np.std([estimate.value for estimate in estimates], axis=0)
    variances = mechanism.variance(x).mean(axis=0)  # coins only: the records are fixed
    np.testing.assert_allclose(spread, np.sqrt(variances / len(x)), rtol=0.15)
    assert np.all(np.mean([estimate.stderr for estimate in estimates], axis=0) > 0.9 * spread)
    reports = mechanism.randomize(np.full(N // 4, 2), rng=1)
    p, q = mechanism.probabilities() if kind is not bitldp.GRR else mechanism.probabilities()[2, [2, 0]]
    hits = reports if reports.ndim == 2 else reports[:, None] == np.arange(4)
    letters = (hits - q) / (p - q)
    np.testing.assert_allclose(letters.var(axis=0), mechanism.variance(np.array([2]))[0], rtol=0.05)


def test_unary_letters_are_unbiased():
    mechanism = bitldp.OUE(3, epsilon=1.0)
    p, q = mechanism.probabilities()
    letters = mechanism.decode(np.array([[0, 1, 0]]))[0]
    assert p * letters[1] + (1 - p) * letters[0] == pytest.approx(1.0)
    assert q * letters[1] + (1 - q) * letters[0] == pytest.approx(0.0)


def test_several_features_are_estimated_apart():
    mechanism = bitldp.GRR(5, epsilon=9.0, features=2)
    x = np.stack([np.arange(50_000) % 5, np.zeros(50_000, np.int64)], axis=1)
    estimate = mechanism.estimate_frequencies(mechanism.randomize(x, rng=2))
    assert estimate.value.shape == (2, 5)
    assert np.all(np.abs(estimate.value - [[0.2] * 5, [1, 0, 0, 0, 0]]) < 5 * estimate.stderr)
    assert mechanism.randomize(x[0], rng=2).shape == (2,)


def test_categories_have_no_mean():
    for mechanism in (bitldp.GRR(3, epsilon=1.0), bitldp.OUE(3, epsilon=1.0), bitldp.WarnerRR(epsilon=1.0)):
        with pytest.raises(ValueError, match="use estimate_frequencies"):
            mechanism.estimate_mean([0, 1])


def test_nothing_is_estimated_at_epsilon_zero():
    for kind in (bitldp.GRR, bitldp.LabelRR, bitldp.SUE, bitldp.OUE):
        mechanism = kind(3, epsilon=0.0)
        reports = mechanism.randomize([0, 1, 2])
        with pytest.raises(ValueError, match="no unbiased decode exists at epsilon 0"):
            mechanism.estimate_frequencies(reports)
        with pytest.raises(ValueError, match="no unbiased decode exists at epsilon 0"):
            mechanism.variance([0])


def test_epsilon_zero_ignores_its_input_and_still_checks_it():
    mechanism = bitldp.GRR(7, epsilon=0.0)
    np.testing.assert_array_equal(
        mechanism.randomize(np.zeros(500, np.int64), rng=1), mechanism.randomize(np.full(500, 6), rng=1)
    )
    with pytest.raises(ValueError, match="x"):
        mechanism.randomize([0, 7])


def test_labels_by_dictionary():
    colours = bitldp.Categories(["red", "green", "blue"])
    mechanism = bitldp.GRR(len(colours), epsilon=8.0)
    reports = mechanism.randomize(colours.encode(["blue"] * 2000), rng=1)
    assert np.mean(colours.decode(reports) == "blue") > 0.9
