"""Epsilon: claimed against exact, exact against enumeration, calibration within the budget."""

from __future__ import annotations

import math
import pickle
import warnings

import bitldp
import numpy as np
import pytest
from bitldp import privacy
from bitldp._core import Bits, Unary, Window
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracle

EPSILONS = [1e-3, 0.1, 1.0, 4.0, 12.0]


def quietly(build):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        return build()


def paper(kind, features, bits=10, **parameters):
    return quietly(lambda: kind(features, bits=bits, calibration="paper", **parameters))


@pytest.mark.parametrize(
    ("mechanism", "holds", "exact"),
    [
        (lambda: paper(bitldp.FRR, 1000, epsilon=1.0), False, 4311.28),
        (lambda: paper(bitldp.MOUE, 1024, epsilon=0.5), True, 0.454546),
        (lambda: paper(bitldp.UER, 1024, epsilon=0.5), False, 34884.84),
        (lambda: bitldp.LabelRR(10, epsilon=1.0), True, 1.0),
        (lambda: quietly(lambda: bitldp.LabelRR(10, epsilon=1.0, beta=-5.0)), False, 2.802775),
        (lambda: bitldp.BRR(100, epsilon=2.0), True, 2.0),
    ],
    ids=["FRR", "MOUE", "UER", "LabelRR", "LabelRR-beta", "BRR"],
)
def test_claims_of_the_papers(mechanism, holds, exact):
    guarantee = mechanism().guarantee
    assert guarantee.holds is holds
    assert guarantee.record == pytest.approx(exact, rel=1e-5)


def build_bits(kind, epsilon):
    if kind is bitldp.UER:
        return paper(kind, 1, bits=3, integer_bits=1, epsilon=epsilon)
    return kind(1, bits=3, integer_bits=1, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", [bitldp.FRR, bitldp.MOUE, bitldp.UER])
def test_bits_by_enumeration(kind, epsilon):
    mechanism = build_bits(kind, epsilon)
    (law,) = mechanism.channel.thresholds()
    exact = oracle.epsilon_of(oracle.bits_law(law))
    assert exact <= mechanism.guarantee.record <= exact * (1.0 + 1e-12)
    assert mechanism.guarantee.feature == mechanism.guarantee.record
    worst = max(oracle.epsilon_of(oracle.bits_law([bit])) for bit in law)
    assert worst <= mechanism.guarantee.bit <= worst * (1.0 + 1e-12)


def test_paper_frr_by_enumeration():
    mechanism = paper(bitldp.FRR, 1, bits=3, integer_bits=1, epsilon=2.0)
    exact = oracle.epsilon_of(oracle.bits_law(mechanism.channel.thresholds()[0]))
    assert mechanism.guarantee.record == pytest.approx(exact, rel=1e-14)
    assert mechanism.guarantee.record >= exact


def test_record_is_the_product_of_its_features():
    mechanism = paper(bitldp.UER, 2, bits=3, integer_bits=1, epsilon=1.0)
    laws = mechanism.channel.thresholds()
    assert len(laws) == 2  # odd l: even and odd positions change places in every second feature
    exact = oracle.epsilon_of(oracle.bits_law(laws[0] + laws[1]))
    assert exact <= mechanism.guarantee.record <= exact * (1.0 + 1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", [bitldp.SUE, bitldp.OUE])
def test_one_hot_by_enumeration(kind, epsilon):
    mechanism = kind(3, epsilon=epsilon)
    law = [mechanism.channel.thresholds()] * 3
    one_hot = oracle.epsilon_of(oracle.bits_law(law, [(1, 0, 0), (0, 1, 0), (0, 0, 1)]))
    arbitrary = oracle.epsilon_of(oracle.bits_law(law))
    assert one_hot <= mechanism.guarantee.record <= one_hot * (1.0 + 1e-12)
    assert arbitrary <= mechanism.epsilon_arbitrary <= arbitrary * (1.0 + 1e-12)
    assert mechanism.guarantee.given == "one-hot input"


@pytest.mark.parametrize("count", range(2, 13))
def test_windows_by_enumeration(count):
    for m in range(1, count):
        for epsilon in (0.01, 1.0, 5.0):
            channel = bitldp.BRR(count, epsilon=epsilon, m=m).channels[0]
            exact = oracle.epsilon_of(oracle.window_law(channel))
            assert exact <= channel.epsilon <= exact * (1.0 + 1e-12)
            assert channel.epsilon <= epsilon


def test_windows_in_space_by_enumeration():
    points = np.random.default_rng(3).random((12, 2))
    for m in ("paper", 1, 4, 11):
        mechanism = bitldp.BRR(points, epsilon=1.0, m=m)
        distances = np.linalg.norm(points[:, None] - points, axis=-1)
        order = np.argsort(distances, axis=1, kind="stable")
        rows = oracle.window_law(mechanism.channels[0], order)
        exact = oracle.epsilon_of(rows)
        assert exact <= mechanism.guarantee.record * (1.0 + 1e-15)
        assert mechanism.guarantee.record <= 1.0
        np.testing.assert_allclose(mechanism.probabilities(), np.array(rows, dtype=np.float64), rtol=1e-12)


def test_categories_by_enumeration():
    for mechanism in (
        bitldp.GRR(5, epsilon=0.3),
        bitldp.LabelRR(7, epsilon=2.0),
        bitldp.WarnerRR(epsilon=1.0),
    ):
        exact = oracle.epsilon_of(oracle.window_law(mechanism.channel))
        assert exact <= mechanism.guarantee.record <= exact * (1.0 + 1e-12)


@pytest.mark.slow
@given(
    features=st.integers(1, 2000),
    bits=st.integers(2, 32),
    epsilon=st.floats(0.05, 50.0),
    unit=st.sampled_from(["record", "feature"]),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_frr_spends_its_budget_and_no_more(features, bits, epsilon, unit):
    mechanism = bitldp.FRR(features, bits=bits, integer_bits=1, epsilon=epsilon, unit=unit)
    covered = mechanism.guarantee.record if unit == "record" else mechanism.guarantee.feature
    assert covered <= epsilon
    parts = bits * (features if unit == "record" else 1)
    largest, least = 2.0 * epsilon * bits / (parts * (bits + 1)), 2.0 * epsilon / (parts * (bits + 1))
    if least > 1e-6 and largest < 18.0:
        assert covered >= epsilon * (1.0 - 1e-9)
    assert mechanism.guarantee.holds


@given(
    features=st.integers(1, 2000),
    bits=st.integers(2, 32),
    epsilon=st.floats(0.05, 50.0),
    alpha=st.floats(0.05, 50.0),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_moue_spends_its_budget_and_no_more(features, bits, epsilon, alpha):
    mechanism = bitldp.MOUE(features, bits=bits, integer_bits=1, epsilon=epsilon, alpha=alpha)
    assert mechanism.guarantee.record <= epsilon
    if 1e-5 < epsilon / (features * bits) < 15.0:
        assert mechanism.guarantee.record >= epsilon * (1.0 - 1e-9)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.01, 0.5, 1.0, 4.0])
def test_moue_on_both_branches(alpha, share):
    """Compare with q = 1/(1 + alpha e^delta), e^delta of the branch that binds."""
    mechanism = bitldp.MOUE(1, bits=2, integer_bits=0, epsilon=2 * share, alpha=alpha)
    q = mechanism.probabilities()[0, 0, 1]
    grown = math.exp(share)
    if alpha >= 1.0 or share > -math.log(alpha):
        odds = ((1 + alpha) * grown - 1) / alpha
    else:
        odds = grown / (1 + alpha - grown * alpha)
    assert q == pytest.approx(1 / (1 + alpha * odds), rel=1e-9)


@given(count=st.integers(2, 100_000), epsilon=st.floats(1e-5, 18.0))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_categories_spend_their_budget_and_no_more(count, epsilon):
    kinds = [bitldp.GRR, bitldp.LabelRR] if count <= 65_000 else []
    for mechanism in [kind(count, epsilon=epsilon) for kind in [*kinds, bitldp.SUE, bitldp.OUE]]:
        assert epsilon * (1.0 - 1e-9) <= mechanism.guarantee.record <= epsilon


def test_a_feature_takes_its_share():
    mechanism = bitldp.GRR(10, epsilon=1.0, features=3)
    assert mechanism.guarantee.feature == pytest.approx(1 / 3, rel=1e-9)
    assert 1.0 - 1e-9 <= mechanism.guarantee.record <= 1.0
    mechanism = bitldp.GRR(10, epsilon=1.0, features=3, unit="feature")
    assert mechanism.guarantee.record == pytest.approx(3.0, rel=1e-9)
    assert mechanism.guarantee.holds


def test_bitrand_adds_up():
    both = bitldp.BitRand(6, categories=3, epsilon_x=2.0, epsilon_y=0.5)
    x, y = both.features_mechanism.guarantee, both.label_mechanism.guarantee
    assert x.record + y.record <= both.guarantee.record <= both.guarantee.claimed
    assert both.guarantee.claimed == 2.5
    assert both.guarantee.holds
    assert both.guarantee.bit == both.guarantee.feature == y.record  # the label is the worst of both
    by_field = bitldp.BitRand(6, categories=3, epsilon_x=2.0, epsilon_y=0.5, unit="feature").guarantee
    assert by_field.feature == pytest.approx(2.0, rel=1e-9)
    assert by_field.claimed == 2.0
    assert by_field.holds
    with pytest.warns(bitldp.PrivacyClaimWarning, match="BitRand") as caught:
        both = bitldp.BitRand(6, categories=3, epsilon_x=2.0, epsilon_y=0.5, calibration="paper")
    assert len(caught) == 1
    assert not both.guarantee.holds


def test_epsilon_zero_is_a_law():
    assert bitldp.FRR(3, epsilon=0.0).guarantee.record == 0.0
    assert bitldp.MOUE(3, epsilon=0.0).guarantee.record == 0.0
    assert bitldp.UER(3, epsilon=0.0, alpha=1.0).guarantee.record == 0.0
    for kind in (bitldp.SUE, bitldp.OUE, bitldp.GRR, bitldp.LabelRR, bitldp.BRR):
        for count in (2, 7, 50):
            assert kind(count, epsilon=0.0).guarantee.record == 0.0
    law = bitldp.GRR(7, epsilon=0.0).probabilities()
    np.testing.assert_allclose(law, 1 / 7, rtol=1e-15)


def test_huge_epsilon_stays_finite_and_within():
    for mechanism in (
        bitldp.FRR(2, epsilon=1e6),
        bitldp.MOUE(2, epsilon=1e6),
        bitldp.SUE(4, epsilon=1e6),
        bitldp.OUE(4, epsilon=1e6),
        bitldp.GRR(4, epsilon=1e6),
        bitldp.BRR(40, epsilon=1e6),
    ):
        assert 10.0 < mechanism.guarantee.record < 1e4
        assert mechanism.guarantee.holds


def test_certain_answers_cost_infinity():
    assert Bits([[1.0]], [[0.0]], 1).epsilon == (math.inf,) * 3
    assert Bits([[0.5, 0.25]], [[0.5, 0.0]], 4).epsilon[0] == math.inf
    assert Bits([[1.0]], [[1.0]], 1).epsilon == (0.0,) * 3
    assert Unary(3, 0.5, 0.0).epsilon[2] == math.inf
    assert Window(3, 1, 1.0).epsilon == math.inf


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 0.5, 0.7, 20.0, 80.0, 1e4])
def test_paper_q_at_any_budget(epsilon):
    """Compare q with 1/(1 + alpha e^E), and p - q likewise, from tiny to huge budgets."""
    mechanism = paper(bitldp.MOUE, 1, bits=2, integer_bits=0, epsilon=epsilon, alpha=10.0)
    p, q = mechanism.probabilities()[0, 0]
    share = min(epsilon / 2, 700.0)
    formula = math.exp(-share) / (math.exp(-share) + 10.0)
    assert q == pytest.approx(max(formula, 2.0**-60), rel=1e-9, abs=2.0**-64)
    gap = -math.expm1(-share) * 10.0 / 11.0 / (math.exp(-share) + 10.0)
    assert p - q == pytest.approx(gap, rel=1e-9)
    quietly(lambda: paper(bitldp.UER, 1, bits=2, integer_bits=0, epsilon=epsilon))


def test_calibration_gives_up_on_a_stubborn_channel():
    with pytest.raises(ValueError, match="epsilon: no channel"):
        privacy.calibrated(lambda target: target, 1.0, lambda channel: 2.0)


def test_share_composes_within_the_budget():
    for epsilon in (0.1, 1.0, 3.7, 1e-5):
        for parts in (1, 3, 7, 10, 49):
            each = privacy.share(epsilon, parts)
            assert epsilon * (1 - 1e-14) <= privacy.composed(each, parts) <= epsilon


def test_guarantee_is_one_line_and_a_value():
    guarantee = paper(bitldp.FRR, 1000, epsilon=1.0).guarantee
    assert str(guarantee) == (
        "exact epsilon 4311.28 per record, 4.31128 per feature, 0.87641 worst bit; "
        "claimed 1 per record: does NOT hold"
    )
    assert "\n" not in repr(guarantee)
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee
    with pytest.raises(AttributeError):
        guarantee.record = 1.0
    assert "given the public region" in str(
        bitldp.BRR([0.0, 1.0, 5.0, 9.0], epsilon=1.0, regions=[0, 0, 1, 1]).guarantee
    )


def test_the_warning_points_at_the_caller():
    with pytest.warns(
        bitldp.PrivacyClaimWarning, match=r"claimed epsilon 1 .* exact one is 4311\.28"
    ) as caught:
        bitldp.FRR(1000, epsilon=1.0, calibration="paper")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bitldp.MOUE(10, epsilon=1.0, calibration="paper")  # its claim holds
        pickle.loads(pickle.dumps(paper(bitldp.FRR, 10, epsilon=1.0)))  # warned about when it was built


def test_uer_refuses_exact_calibration():
    with pytest.raises(ValueError, match="calibration: 'exact' exists for UER only with alpha=1"):
        bitldp.UER(10, epsilon=1.0, alpha=10.0)
    same = bitldp.UER(10, epsilon=1.0)  # what is left of alpha is the default
    assert same == bitldp.UER(10, epsilon=1.0, alpha=1.0)
    assert same.channel.thresholds() == bitldp.MOUE(10, epsilon=1.0, alpha=1.0).channel.thresholds()
    assert same.guarantee.record == pytest.approx(1.0, rel=1e-9)
