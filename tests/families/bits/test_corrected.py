"""LATENT and OME on corrected budgets: BitRand's Theorems 5 and 6, the figures held for its Figure 9."""

from __future__ import annotations

import math

import bitldp
import numpy as np
import pytest
from bitldp.bits import latent_corrected_epsilon, ome_corrected_epsilon

FIGURE_9A = [(r, 10) for r in (10, 100, 1000, 10_000)]
FIGURE_9B = [(1000, bits) for bits in (5, 10, 20, 100, 1000)]


def test_figure_9_of_latent():
    """The paper prints 4.57 to 4.75: 4.571 to 4.573, from the formula."""
    factors = [latent_corrected_epsilon(*size, 0.1, 7.0) / 0.1 for size in FIGURE_9A + FIGURE_9B]
    assert min(factors) == pytest.approx(4.571, abs=5e-4)
    assert max(factors) == pytest.approx(4.573, abs=5e-4)
    grown = math.expm1(0.1 / 100)  # of ten features of ten bits
    assert factors[0] == pytest.approx(8 * (8 + 7 * grown) / (7 * (2 + grown)))


def test_figure_9_of_ome():
    """At alpha 100 the modulus is 4.6e5 to 4.6e9 and what it is the modulus of is negative; at 1, twice."""
    factors = [ome_corrected_epsilon(*size, 0.1, 100.0) / 0.1 for size in FIGURE_9A + FIGURE_9B]
    assert max(factors) < 0
    moduli = [f"{-factor:.1e}" for factor in factors]
    assert moduli[:4] == ["4.6e+05", "4.6e+06", "4.6e+07", "4.6e+08"]
    assert moduli[-1] == "4.6e+09"
    for size in FIGURE_9A + FIGURE_9B:
        assert ome_corrected_epsilon(*size, 0.1, 1.0) / 0.1 == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 10.0, 700.0, 1e6])
@pytest.mark.parametrize("alpha", [1.0, 7.0, 1e6])
@pytest.mark.parametrize(("features", "bits"), [(1, 2), (384, 10)])
def test_latent_spends_what_is_corrected_to_the_budget(features, bits, alpha, epsilon):
    mechanism = bitldp.MOUE(
        features, bits=bits, integer_bits=1, epsilon=epsilon, alpha=alpha, calibration="corrected"
    )
    assert mechanism.paper_reported_epsilon() == pytest.approx(epsilon, rel=1e-12)
    assert mechanism.paper_reported_epsilon() <= epsilon
    assert mechanism.guarantee.claimed == epsilon
    assert mechanism.guarantee.holds
    same = bitldp.MOUE(
        features,
        bits=bits,
        integer_bits=1,
        epsilon=mechanism.formula_epsilon,
        alpha=alpha,
        calibration="paper",
    )
    np.testing.assert_array_equal(mechanism.channel.thresholds(), same.channel.thresholds())
    assert same.formula_epsilon == mechanism.formula_epsilon < epsilon


def test_latent_and_ome_of_the_papers_settings():
    """At epsilon 1 LATENT (alpha 7) spends 1/4.571, OME (alpha 1) a half."""
    latent = bitldp.MOUE(768, epsilon=1.0, alpha=7.0, calibration="corrected")
    assert latent.formula_epsilon == pytest.approx(7 / 32, rel=1e-3)
    assert latent.guarantee.record == pytest.approx(7 / 8 * latent.formula_epsilon, rel=1e-3)
    ome = bitldp.UER(768, epsilon=1.0, alpha=1.0, calibration="corrected")
    assert ome.formula_epsilon == 0.5
    assert ome.probabilities()[0, :, 0] == pytest.approx(0.5, rel=1e-12)
    assert ome.probabilities()[0, :, 1] == pytest.approx(1 / (1 + math.exp(0.5 / 7680)), rel=1e-12)
    assert ome.guarantee.holds


def test_what_has_no_corrected_budget():
    with pytest.raises(ValueError, match=r"calibration: .*alpha=1 or more"):
        bitldp.MOUE(4, epsilon=1.0, alpha=0.5, calibration="corrected")
    with pytest.raises(ValueError, match=r"calibration: .*only with alpha=1, got alpha=10"):
        bitldp.UER(4, epsilon=1.0, alpha=10.0, calibration="corrected")
    with pytest.raises(ValueError, match=r"unit: .*calibration='corrected'"):
        bitldp.MOUE(4, epsilon=1.0, alpha=7.0, calibration="corrected", unit="feature")
    with pytest.raises(ValueError, match=r"calibration: must be one of 'exact', 'paper'"):
        bitldp.FRR(4, epsilon=1.0, calibration="corrected")  # type: ignore[arg-type]


def test_explain_tells_both_budgets():
    errors = bitldp.MOUE(100, epsilon=1.0, alpha=7.0, calibration="corrected")._facts()["errors"]
    assert errors["epsilon_of_the_formula"] == pytest.approx(7 / 32, rel=1e-3)
    assert errors["reported_as_corrected_epsilon"] == pytest.approx(1.0, rel=1e-12)
    assert "epsilon_of_the_formula" not in bitldp.MOUE(100, epsilon=1.0)._facts()["errors"]
