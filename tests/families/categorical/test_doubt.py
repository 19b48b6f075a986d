"""What no honest records give: the sum of the ones of unary encodings, and of subsets."""

from __future__ import annotations

from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.categorical.unary import ALPHA

UNARY = [bitldp.OUE, bitldp.SUE]


def drawn(mechanism: Any, x: Any, seed: int, liars: int = 0, ones: int = 64) -> Any:
    reports = mechanism.randomize(x, rng=seed)
    lies = np.zeros((liars, reports.shape[1]), reports.dtype)
    lies[:, :ones] = 1
    return mechanism.estimate_frequencies(np.concatenate([reports, lies]))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", UNARY)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_honest_records_are_not_doubted(kind: Any, epsilon: float) -> None:
    """60 samples a law of 20 to 20,000 records: alpha 1e-6 each, whatever the categories are."""
    mechanism, rng = kind(64, epsilon=epsilon), np.random.default_rng(3)
    for seed in range(60):
        n = (20, 300, 20_000)[seed % 3]
        x = (np.zeros(n, int), rng.integers(0, 64, n))[seed % 2]
        assert drawn(mechanism, x, seed).doubt == ""


@pytest.mark.parametrize("kind", UNARY)
def test_one_in_a_hundred_reports_of_all_ones_are_seen(kind: Any) -> None:
    mechanism = kind(64, epsilon=1.0)
    estimate = drawn(mechanism, np.zeros(9_900, int), 1, liars=100)
    assert "ones each, where honest ones hold" in estimate.doubt
    assert estimate.doubt in str(estimate)
    assert estimate.doubt in estimate[3].doubt
    assert "1,000,000" in estimate.doubt
    fewer = drawn(mechanism, np.zeros(9_900, int), 1, liars=2000, ones=0)
    assert "honest ones hold" in fewer.doubt  # too few are as far off


def test_the_bound_is_above_the_exact_tail() -> None:
    """Of one or two records and few categories: all sums, by convolution; doubted only below alpha."""
    for mechanism in (bitldp.OUE(4, epsilon=6.0), bitldp.SUE(3, epsilon=12.0), bitldp.OUE(30, epsilon=8.0)):
        p, q = mechanism._law()
        for n in (1, 2, 5):
            law = np.ones(1)
            for chance in [p] * n + [q] * (n * (mechanism._size - 1)):
                law = np.convolve(law, [1.0 - chance, chance])
            seen = [bool(mechanism._doubt(n, np.array([ones]))) for ones in range(len(law))]
            assert law[seen].sum() <= ALPHA
    assert seen[-1]  # it can tell


def test_subsets_are_of_one_size() -> None:
    mechanism = bitldp.SubsetSelection(16, epsilon=1.0)
    assert drawn(mechanism, np.arange(16), 1).doubt == ""
    assert "each should hold exactly 4" in drawn(mechanism, np.arange(16), 1, liars=1, ones=16).doubt


def test_several_reports_of_one_answer_are_not_doubted() -> None:
    rappor = bitldp.RAPPOR(64, epsilon=4.0)
    assert rappor.estimate_frequencies(np.ones((100, 64), np.uint8)).doubt == ""
