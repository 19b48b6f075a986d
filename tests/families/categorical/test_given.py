"""Mechanisms from a table of one's own: exact, unbiased, refused where the table is none."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import bitldp
import numpy as np
import pytest
from support.cases import GIVEN


def test_epsilon_is_that_of_the_integers() -> None:
    mechanism = bitldp.from_matrix(GIVEN)
    rows = mechanism.channel.weights()
    ratios = [Fraction(max(column), min(column)) for column in zip(*rows, strict=True)]
    exact = math.log(max(ratios))
    assert exact <= mechanism.guarantee.record <= exact * (1.0 + 1e-14)
    assert mechanism.guarantee.holds
    np.testing.assert_allclose(mechanism.probabilities(), GIVEN, atol=1e-15)


def test_a_claim_stands_beside_the_truth() -> None:
    with pytest.warns(bitldp.PrivacyClaimWarning, match="claimed epsilon 1 per record, but the exact one is"):
        mechanism = bitldp.from_matrix(GIVEN, claimed=1.0)
    assert not mechanism.guarantee.holds
    assert mechanism.guarantee.claimed == 1.0
    with pytest.warns(bitldp.PrivacyClaimWarning):
        never = bitldp.from_matrix([[1.0, 0.0], [0.5, 0.5]], claimed=3.0)
    assert never.guarantee.record == math.inf


def test_indicators_and_letters_have_the_right_means() -> None:
    numbers = np.array([-3.0, 0.0, 1.0, 4.0, 10.0])
    mechanism = bitldp.from_matrix(GIVEN, values=numbers)
    law = mechanism.probabilities()
    np.testing.assert_allclose(law @ mechanism._indicators(np.arange(7)), np.eye(5), atol=1e-9)
    np.testing.assert_allclose(law @ mechanism.letters, numbers, atol=1e-8)
    spread = law @ np.square(mechanism.letters) - np.square(numbers)
    np.testing.assert_allclose(mechanism.letter_variance(), spread, rtol=1e-9)


def test_no_other_letters_vary_less_on_average() -> None:
    """The best decode of seven reports beats the inverse of five of them."""
    mechanism, law = bitldp.from_matrix(GIVEN), GIVEN
    part = np.zeros((7, 5))
    part[:5] = np.linalg.inv(law[:, :5])  # those of the first five reports alone
    worse = (law @ np.square(part) - np.eye(5)).mean()
    assert mechanism.mean_variance() < worse


def test_randomized_response_by_its_table_is_randomized_response() -> None:
    peer = bitldp.GRR(6, epsilon=1.5)
    mechanism = bitldp.from_matrix(peer.probabilities())
    assert mechanism.guarantee.record == pytest.approx(peer.guarantee.record, rel=1e-12)
    assert mechanism.mean_variance() == pytest.approx(peer.mean_variance(), rel=1e-9)
    assert mechanism.worst_variance() == pytest.approx(peer.worst_variance(), rel=1e-9)
    advice = bitldp.recommend("frequency", epsilon=1.5001, categories=6, extra=[mechanism])
    assert "MatrixResponse" in str(advice)


@pytest.mark.statistical
def test_estimates_cover() -> None:
    """Of 20,000 records, 200 seeds: 95 % intervals of shares and of the mean hold the truth, alpha 1e-6."""
    numbers = np.array([-3.0, 0.0, 1.0, 4.0, 10.0])
    mechanism = bitldp.from_matrix(GIVEN, labels=list("abcde"), values=numbers)
    codes = np.random.default_rng(1).choice(5, 20_000, p=[0.4, 0.3, 0.2, 0.06, 0.04])
    records = np.array(list("abcde"))[codes]
    shares, mean = np.bincount(codes, minlength=5) / len(codes), numbers[codes].mean()
    held = of_mean = 0
    for seed in range(200):
        reports = mechanism.randomize(records, rng=seed)
        low, high = mechanism.estimate_frequencies(reports).confidence_interval(0.95)
        held += int(((low <= shares) & (shares <= high)).sum())
        low, high = mechanism.estimate_mean(reports).confidence_interval(0.95)
        of_mean += int(low[0] <= mean <= high[0])
    assert held >= 0.92 * 1000  # 4.4 standard errors below .95
    assert of_mean >= 0.88 * 200


def test_labels_numbers_and_streams() -> None:
    mechanism = bitldp.from_matrix(GIVEN, labels=["a", "b", "c", "d", "e"], values=range(5))
    reports = mechanism.randomize(["a", "e"] * 500, rng=1)
    assert reports.max() <= 6
    assert mechanism.estimate_frequencies(reports).labels.tolist() == list("abcde")
    accumulator = mechanism.accumulator()
    packed = mechanism.randomize(["a", "e"] * 500, rng=1, output="packed")
    accumulator.update(packed, output="packed", records=1000)
    np.testing.assert_array_equal(accumulator.estimate().value, mechanism.estimate_frequencies(reports).value)
    with pytest.raises(ValueError, match="values: are required"):
        bitldp.from_matrix(GIVEN).estimate_mean(reports)
    dependent = bitldp.from_matrix([[0.5, 0.5], [0.5, 0.5]])
    assert dependent.guarantee.record == 0.0
    with pytest.raises(ValueError, match="no unbiased decode exists"):
        dependent.estimate_frequencies([0, 1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"matrix": [[0.5, 0.5], [0.5, 0.6]]}, "matrix: row 1 sums to 1.1; each row holds the probabilities"),
        ({"matrix": [[0.5, 0.5], [1.5, -0.5]]}, "matrix: row 1, column 0: must be a number from 0 to 1"),
        ({"matrix": [0.5, 0.5]}, "matrix: two axes"),
        ({"matrix": [[1.0], [1.0]]}, "matrix: two axes"),
        ({"matrix": [["a", "b"], ["c", "d"]]}, "matrix: "),
        ({"matrix": GIVEN, "labels": ["a", "b"]}, "categories: 2 do not fit the 5 rows"),
        ({"matrix": GIVEN, "values": [1.0, 2.0]}, "values: 5 finite numbers"),
        ({"matrix": GIVEN, "values": [1.0, 2.0, 3.0, 4.0, math.nan]}, "values: 5 finite numbers"),
        ({"matrix": GIVEN, "claimed": -1.0}, "claimed: "),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        bitldp.from_matrix(**given)


def test_audits_take_mechanisms_with_labels() -> None:
    pytest.importorskip("scipy", reason="the extra design is not installed")
    from bitldp.audit import audit

    mechanism = bitldp.GRR(["no", "yes"], epsilon=1.0)
    assert audit(mechanism, n=2_000, rng=1).passed
    assert audit(mechanism, n=2_000, rng=1, pair=("yes", "no")).passed
    with pytest.raises(ValueError, match="pair"):
        audit(mechanism, n=2_000, rng=1, pair=("yes", "maybe"))
