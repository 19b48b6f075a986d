"""Parameters at their extremes: a finite one costs a finite epsilon, one too large is refused by name."""

from __future__ import annotations

import math
import warnings

import bitldp
import numpy as np
import pytest


def quiet(build):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        return build()


@pytest.mark.parametrize("beta", [37.0, 40.0, 800.0, 1.7e308, -37.0, -800.0, -1.7e308])
@pytest.mark.parametrize("classes", [2, 5, 1000])
def test_no_beta_makes_an_answer_certain(classes, beta):
    mechanism = quiet(lambda: bitldp.LabelRR(classes, epsilon=1.0, beta=beta))
    assert 30.0 - math.log(classes) < mechanism.guarantee.record < 37.0 + math.log(classes)
    assert mechanism.probabilities().min() > 0.0


@pytest.mark.parametrize("kind", [bitldp.MOUE, bitldp.UER])
@pytest.mark.parametrize("epsilon", [1e4, 1e5, 1.7e308])
@pytest.mark.parametrize("alpha", [1e-6, 0.5, 10.0, 1e6])
def test_no_budget_of_a_paper_makes_a_bit_certain(kind, epsilon, alpha):
    mechanism = quiet(lambda: kind(3, epsilon=epsilon, alpha=alpha, calibration="paper"))
    assert mechanism.guarantee.bit < 80.0
    assert math.isfinite(mechanism.guarantee.record)
    assert all(0 < q < 1 << 64 and 0 < p < 1 << 64 for p, q in mechanism.channel.thresholds()[0])


@pytest.mark.parametrize("epsilon", [100.0, 1e6, 1.7e308])
def test_exact_calibration_ends_at_a_ceiling(epsilon):
    bit = -math.log(2.0**-53)
    ceilings = [
        (bitldp.GRR(5, epsilon=epsilon), bit + math.log(4)),
        (bitldp.WarnerRR(epsilon=epsilon), bit),
        (bitldp.LabelRR(5, epsilon=epsilon), bit + math.log(4)),
        (bitldp.SUE(5, epsilon=epsilon), 2 * bit),
        (bitldp.OUE(5, epsilon=epsilon), -math.log(2.0**-60)),
        (bitldp.MOUE(1, bits=2, integer_bits=0, epsilon=epsilon), 2 * (60 * math.log(2) - math.log(11))),
        (bitldp.BRR(20, epsilon=epsilon, m=4), bit + math.log(16 / 4)),
    ]
    for mechanism, ceiling in ceilings:
        assert mechanism.guarantee.holds
        assert ceiling - 1e-6 < mechanism.guarantee.record < ceiling + 1e-6
    assert bitldp.FRR(1, epsilon=1e6).guarantee.bit == pytest.approx(bit)
    assert math.isfinite(quiet(lambda: bitldp.FRR(3, epsilon=epsilon, calibration="paper")).guarantee.record)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: bitldp.FRR(3, epsilon=10**400), "epsilon: must be finite in double precision"),
        (lambda: bitldp.GRR(3, epsilon=10**400), "epsilon: must be finite in double precision"),
        (lambda: bitldp.Duchi(epsilon=10**400), "epsilon: must be finite in double precision"),
        (lambda: bitldp.LabelRR(3, epsilon=1.0, beta=-(10**400)), "beta: must be finite in double"),
        (lambda: bitldp.MOUE(3, epsilon=1.0, alpha=10**400), "alpha: must be finite in double"),
        (lambda: bitldp.Piecewise(epsilon=1.0, interval=(0, 10**400)), "interval: must be finite in double"),
        (lambda: bitldp.BRR(3, epsilon=1.0, interval=(0, 10**400)), "interval: must be finite in double"),
        (
            lambda: bitldp.FRR(2**63, epsilon=1.0),
            "features: must be at most 4294967295, got 9223372036854775808",
        ),
        (lambda: bitldp.FRR(10**12, epsilon=1.0), "features: must be at most 4294967295, got 1000000000000"),
        (lambda: bitldp.FRR(10**5000, epsilon=1.0), "features: must be at most 4294967295, got a number of"),
        (lambda: bitldp.MOUE(10**12, epsilon=1.0), "features: must be at most 4294967295"),
        (
            lambda: bitldp.BitRand(10**12, categories=2, epsilon_x=1.0, epsilon_y=1.0),
            "features: must be at most",
        ),
        (
            lambda: bitldp.BitRand(3, categories=2**33, epsilon_x=1.0, epsilon_y=1.0),
            "categories: must be at most",
        ),
        (
            lambda: bitldp.UER(10**8, bits=5, integer_bits=2, epsilon=1.0, calibration="paper"),
            "features: must be at most 16777216 where bits is odd",
        ),
        (lambda: bitldp.Duchi(epsilon=1.0, features=10**400), "features: must be at most 4294967295"),
        (lambda: bitldp.GRR(2**33, epsilon=1.0), "categories: must be at most 4294967295, got 8589934592"),
        (lambda: bitldp.GRR(3, epsilon=1.0, features=10**400), "features: must be at most 4294967295"),
        (lambda: bitldp.LabelRR(2**33, epsilon=1.0), "categories: must be at most 4294967295"),
        (lambda: bitldp.OUE(2**33, epsilon=1.0), "categories: must be at most 2147483648"),
        (lambda: bitldp.SUE(2**63, epsilon=1.0), "categories: must be at most 2147483648"),
    ],
)
def test_too_large_is_refused_by_name(build, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        build()


def test_many_features_are_built_and_decoded():
    mechanism = bitldp.FRR(10**6, epsilon=1e6)
    assert mechanism.guarantee.holds
    assert mechanism.unbias(np.zeros(10**6, np.uint16)).shape == (10**6,)


@pytest.mark.parametrize("output", [None, 1, b"codes"])
def test_the_form_is_named_when_it_is_no_word(output):
    both = bitldp.BitRand(3, categories=4, epsilon_x=1.0, epsilon_y=1.0)
    for mechanism, inputs in (
        (bitldp.FRR(3, epsilon=1.0), (np.zeros(3),)),
        (bitldp.GRR(3, epsilon=1.0), ([0],)),
        (bitldp.OUE(3, epsilon=1.0), ([0],)),
        (bitldp.BRR(3, epsilon=1.0), ([0],)),
        (bitldp.BRR(4, epsilon=1.0, regions=[0, 0, 1, 1]), ([0],)),
        (both, (np.zeros(3), 0)),
    ):
        with pytest.raises(TypeError) as caught:
            mechanism.randomize(*inputs, output=output)
        assert str(caught.value).startswith("output: must be a str, not ")


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 1, 7777, 3], ValueError, r"y: the integer at index \(2,\) is outside \[0, 4\)"),
        ([0, 1, -1, 3], ValueError, r"y: the integer at index \(2,\) is outside \[0, 4\)"),
        ([0.0, 1.0, 2.0, 3.0], TypeError, "y: must be an array of integers, not float64"),
        (["a", "b", "c", "d"], TypeError, "y: must be an array of integers"),
    ],
)
def test_bad_labels_are_called_y(labels, error, message):
    both = bitldp.BitRand(3, categories=4, epsilon_x=1.0, epsilon_y=1.0)
    out = np.full((4, 3), 9, np.uint16)
    with pytest.raises(error, match=f"^{message}") as caught:
        both.randomize(np.zeros((4, 3)), labels, out=out)
    assert "7777" not in str(caught.value)
    assert (out == (0 if error is ValueError else 9)).all()  # a label is refused; a call does not fit


def test_first_chunk_of_a_record_is_within_the_stream():
    both = bitldp.BitRand(3, categories=4, epsilon_x=1.0, epsilon_y=1.0)
    with pytest.raises(ValueError, match=r"^first_chunk"):
        both.randomize(np.zeros(3), 0, first_chunk=2**62)


@pytest.mark.parametrize("kind", [bitldp.FRR, bitldp.MOUE])
def test_decode_takes_the_integers_that_unbias_takes(kind):
    mechanism = kind(3, epsilon=9.0)
    reports = mechanism.randomize(np.zeros((5, 3)), rng=1)
    for dtype in (np.int16, np.int64, np.uint32, np.uint64):
        np.testing.assert_array_equal(mechanism.decode(reports.astype(dtype)), mechanism.decode(reports))
    np.testing.assert_array_equal(mechanism.decode(reports.tolist()), mechanism.decode(reports))
    with pytest.raises(ValueError, match=r"^reports: the integer at index \(0, 2\) is outside \[0, 1024\)"):
        mechanism.decode([[0, 1, 1024]])
    with pytest.raises(TypeError, match=r"^reports: must be an array of integers"):
        mechanism.decode([0.5])
