"""Symmetric randomized response of bits, and f-RR's law without a codec."""

from __future__ import annotations

import math

import bitldp
import numpy as np
import pytest
from bitldp.bits import frr_flips


@pytest.mark.parametrize(("features", "bits", "epsilon"), [(1024, 10, 0.5), (3, 8, 20.0), (1, 2, 0.0)])
def test_eq_15_has_its_epsilon_exactly(features, bits, epsilon):
    words = {"bits": bits, "integer_bits": 1, "epsilon": epsilon}
    share = epsilon / (features * bits)
    for calibration in ("exact", "paper"):
        mechanism = bitldp.SymmetricRR(features, calibration=calibration, **words)
        law = mechanism.probabilities()
        np.testing.assert_allclose(law[0, :, 0], 1.0 / (1.0 + math.exp(-share)), rtol=1e-12)
        np.testing.assert_allclose(law[0].sum(axis=-1), 1.0, rtol=1e-15)
        assert mechanism.guarantee.record <= epsilon
        assert mechanism.guarantee.record == pytest.approx(epsilon, rel=1e-6)
        assert mechanism.guarantee.holds


@pytest.mark.parametrize(("features", "bits", "epsilon"), [(1000, 10, 1.0), (5, 32, 40.0)])
def test_the_flips_are_those_of_the_mechanism(features, bits, epsilon):
    with pytest.warns(bitldp.PrivacyClaimWarning):
        mechanism = bitldp.FRR(features, bits=bits, epsilon=epsilon, calibration="paper")
    flips = frr_flips(features, bits, epsilon)
    np.testing.assert_allclose(flips, mechanism.probabilities()[0, :, 1], rtol=1e-14)
    exact = features * np.abs(np.log(flips / (1.0 - flips))).sum()
    assert exact == pytest.approx(mechanism.guarantee.record, rel=1e-9)


@pytest.mark.parametrize("bits", [10, 64, 200])
def test_without_the_bit_aware_term_all_bits_are_alike(bits):
    epsilon, features = 3.0, 7
    alpha = math.sqrt((epsilon + features * bits) / (2.0 * features * bits))
    np.testing.assert_allclose(
        frr_flips(features, bits, epsilon, bit_aware=False), alpha / (1.0 + alpha), rtol=1e-12
    )
    steps = np.exp(2.0 * epsilon * np.arange(bits) / bits).sum()
    alpha = math.sqrt((epsilon + features * bits) / (2.0 * features * steps))
    weights = alpha * np.exp(epsilon * np.arange(bits) / bits)
    np.testing.assert_allclose(frr_flips(features, bits, epsilon), weights / (1.0 + weights), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"), [((0, 3, 1.0), "features"), ((1, 0, 1.0), "bits"), ((1, 3, -1.0), "epsilon")]
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        frr_flips(*arguments)
