"""Budgets near the ends of the doubles: kept, or refused by name; nothing overflows on the way."""

from __future__ import annotations

import math

import bitldp
import numpy as np
import pytest
from bitldp.compression import CLDP, LaplaceBall, RandomCodebook, SignSGD, Skellam, VectorMVU
from bitldp.privacy import added

BUDGETS = (0.0, 5e-324, 1e-12, 20.0, 700.0, 1e308)
ONE_NUMBER = {
    "Duchi": bitldp.Duchi,
    "Piecewise": bitldp.Piecewise,
    "PiecewiseSub": bitldp.PiecewiseSub,
    "Hybrid": bitldp.Hybrid,
    "ThreeOutputs": bitldp.ThreeOutputs,
    "Laplace": bitldp.Laplace,
    "LDPFLDuchi": bitldp.LDPFLDuchi,
    "BitBudgets": bitldp.BitBudgets,
    "BitBudgets-8": lambda epsilon: bitldp.BitBudgets(epsilon=epsilon, bits=8),
    "MVU-1": lambda epsilon: bitldp.MVU(epsilon=epsilon, output_bits=1),
    "GeneralizedRR": lambda epsilon: bitldp.GeneralizedRR(epsilon=epsilon, bits=8),
    "BitwiseRR": lambda epsilon: bitldp.BitwiseRR(epsilon=epsilon, bits=8),
    "BitwiseRR-1": lambda epsilon: bitldp.BitwiseRR(epsilon=epsilon, bits=1),
}
RECORDS = {
    "Duchi-cube": lambda epsilon: bitldp.Duchi(epsilon=epsilon, features=4, spend="cube"),
    "HypercubePrivUnit": lambda epsilon: bitldp.HypercubePrivUnit(4, epsilon=epsilon),
    "BallWindow": lambda epsilon: bitldp.BallWindow(4, epsilon=epsilon),
    "JointWindow": lambda epsilon: bitldp.JointWindow(4, epsilon=epsilon),
    "SampledSigns": lambda epsilon: bitldp.SampledSigns(4, epsilon=epsilon),
    "CLDP": lambda epsilon: CLDP(4, epsilon=epsilon),
    "SignSGD": lambda epsilon: SignSGD(4, epsilon=epsilon),
    "EXP": lambda epsilon: bitldp.EXP(4, epsilon=epsilon),
    "PS": lambda epsilon: bitldp.PS(4, k=2, epsilon=epsilon),
    "PE": lambda epsilon: bitldp.PE(4, k=2, epsilon=epsilon),
}


def tried(call, *arguments, **options):
    """Return what a call returns and None, or None and the text of its ValueError."""
    try:
        return call(*arguments, **options), None
    except ValueError as error:
        return None, str(error)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("name", [*ONE_NUMBER, *RECORDS])
def test_a_budget_is_kept_or_refused(name, epsilon):
    mechanism, refusal = tried((ONE_NUMBER | RECORDS)[name], epsilon=epsilon)
    if refusal is not None:
        assert refusal.startswith("epsilon")
        return
    assert mechanism.guarantee.record <= epsilon
    assert mechanism.guarantee.holds
    x = np.full((6, 4), 0.25) if name in RECORDS else np.linspace(-1.5, 1.5, 6)
    reports = mechanism.randomize(x, rng=1)
    if name not in ONE_NUMBER:
        return
    letters, refusal = tried(getattr, mechanism, "letters")
    if refusal is not None:
        assert "no unbiased decode exists" in refusal
        return
    assert np.isfinite(letters).all()
    assert math.isfinite(mechanism.worst_variance())
    assert len(mechanism.decode(reports)) == 6


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 20.0, 1e4, 1e308])
def test_labels_with_laplace_noise(epsilon):
    mechanism = bitldp.LabelLaplace(3, epsilon=epsilon)
    assert mechanism.guarantee.record <= epsilon
    assert mechanism.randomize([0, 1, 2], rng=1).shape == (3, 3)


def test_the_paper_s_pe_at_any_budget():
    for epsilon in (700.0, 1e4, 1e308):
        mechanism = bitldp.PE(7, k=3, epsilon=epsilon, calibration="paper")
        assert mechanism.p == 1.0
        assert mechanism.guarantee.record < 45.0


def test_sums_beyond_the_doubles_are_infinite():
    assert added(1e308, 1e308) == math.inf
    both = bitldp.TwoStage(bitldp.PS(5, k=2, epsilon=1e308), bitldp.Duchi(epsilon=1e308))
    assert both.guarantee.claimed == math.inf
    assert both.guarantee.record < 90.0


@pytest.mark.parametrize("kind", [SignSGD, Skellam, VectorMVU])
def test_tiny_budgets_with_a_delta_are_refused(kind):
    """The search for the noise ends, where it once halved for ever."""
    pytest.importorskip("dp_accounting")
    with pytest.raises(ValueError, match="epsilon"):
        kind(4, epsilon=5e-324, delta=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-3, 700.0, 1e308])
def test_signs_with_a_delta(epsilon):
    """At the low end the Renyi conversion gives epsilon 0; at the high one, a sign is hardly ever wrong."""
    pytest.importorskip("dp_accounting")
    mechanism = SignSGD(5, epsilon=epsilon, delta=1e-6)
    assert mechanism.guarantee.holds
    assert math.isfinite(mechanism.guarantee.record)
    assert mechanism.sigma > 0.0


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-160, 1e-18, 1e-12])
@pytest.mark.parametrize(
    "build",
    [
        lambda epsilon: bitldp.HeavyHitters(epsilon=epsilon),
        lambda epsilon: RandomCodebook(8, epsilon=epsilon),
        lambda epsilon: RandomCodebook(2, epsilon=epsilon),
        lambda epsilon: LaplaceBall(8, epsilon=epsilon),
    ],
)
def test_a_budget_that_no_double_tells_from_zero_is_kept_or_refused(build, epsilon):
    mechanism, refusal = tried(build, epsilon=epsilon)
    if refusal is not None:
        assert refusal.startswith("epsilon")
    else:
        assert 0.0 <= mechanism.guarantee.record <= epsilon


@pytest.mark.slow
def test_designs_spend_what_they_say():
    """MVU all but 1e-6, of one bit 1e-9; MinimaxVariance all but 1.1e-9, and 1.1e-8 of few points."""
    for epsilon in (0.05, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0):
        for most, mechanism in (
            (1e-6, bitldp.MVU(epsilon=epsilon)),
            (1e-9, bitldp.MVU(epsilon=epsilon, output_bits=1)),
            (1.1e-9, bitldp.MinimaxVariance(epsilon=epsilon)),
            (1.1e-8, bitldp.MinimaxVariance(epsilon=epsilon, grid_points=5)),
        ):
            assert 0.0 <= 1.0 - mechanism.guarantee.record / epsilon <= most
