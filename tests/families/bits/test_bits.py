"""FRR, MOUE, UER and BitRand: the sampled law, the four outputs, unbiased letters and their variance."""

from __future__ import annotations

import warnings

import bitldp
import numpy as np
import pytest
from bitldp._core import Bits, FixedPoint
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed, so a test passes or fails once and for all
N = 1 << 20


def build(kind, features=1, bits=5, epsilon=6.0, **parameters):
    parameters.setdefault("integer_bits", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        if kind is bitldp.UER:
            parameters |= {"calibration": "paper"}
            parameters.setdefault("alpha", 2.0)
        return kind(features, bits=bits, epsilon=epsilon, **parameters)


KINDS = [bitldp.FRR, bitldp.MOUE, bitldp.UER]


def row(mechanism, law, code):
    """P(report | code) over all code words, in order."""
    bits = tuple(code >> place & 1 for place in reversed(range(mechanism.bits)))
    return np.array(oracle.bits_law(mechanism.channel.thresholds()[law], [bits])[0], dtype=np.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [1.3, -3.875])
def test_goodness_of_fit(kind, value):
    """Chi-squared over all 32 reports of one input, n = 2^20, alpha = 1e-6."""
    mechanism = build(kind)
    x = np.full((N, 1), value, dtype=np.float32)
    code = int(mechanism.codec.encode(x[:1])[0, 0])
    counts = np.bincount(mechanism.randomize(x, rng=2024).ravel(), minlength=32)
    assert oracle.p_value(counts, row(mechanism, 0, code)) > ALPHA


def test_goodness_of_fit_of_paper_frr():
    """Chi-squared over all 1024 reports of l = 10, n = 2^21, alpha = 1e-6."""
    mechanism = build(bitldp.FRR, bits=10, epsilon=1.0, calibration="paper")
    x = np.full((2 * N, 1), 1.3)
    code = int(mechanism.codec.encode(x[:1])[0, 0])
    counts = np.bincount(mechanism.randomize(x, rng=5).ravel(), minlength=1024)
    assert oracle.p_value(counts, row(mechanism, 0, code)) > ALPHA


def test_goodness_of_fit_of_uer_with_odd_words():
    """Chi-squared of both laws at once over 32 x 32 reports, n = 2^20 records, alpha = 1e-6."""
    mechanism = build(bitldp.UER, features=3, bits=5, alpha=1.5)
    x = np.full((N, 3), -1.5)
    code = int(mechanism.codec.encode(x[:1])[0, 0])
    reports = mechanism.randomize(x, rng=6).astype(np.int64)
    first, second = row(mechanism, 0, code), row(mechanism, 1, code)
    np.testing.assert_array_equal(mechanism.probabilities()[0, 1::2], mechanism.probabilities()[1, ::2][:2])
    for left, right, law in ((0, 1, np.outer(first, second)), (1, 2, np.outer(second, first))):
        counts = np.bincount(reports[:, left] * 32 + reports[:, right], minlength=1024)
        assert oracle.p_value(counts, law) > ALPHA


def test_goodness_of_fit_of_the_bare_channel():
    """Chi-squared of asymmetric bits on plain code words, n = 2^20, alpha = 1e-6."""
    channel = Bits([[0.9, 0.25, 0.5]], [[0.125, 0.75, 0.5]], 1)
    codes = np.full(N, 5, np.uint8)
    reports = channel.randomize(codes, None, b"k" * 32, "codes", None, None, 0)
    law = np.array(oracle.bits_law(channel.thresholds()[0], [(1, 0, 1)])[0], dtype=np.float64)
    assert oracle.p_value(np.bincount(reports, minlength=8), law) > ALPHA


def test_neighbouring_features_are_independent():
    """Chi-squared of pairs of reports, n = 2^20 pairs, alpha = 1e-6."""
    mechanism = build(bitldp.FRR, features=4, bits=3, epsilon=8.0, integer_bits=1)
    x = np.zeros((N // 2, 4))
    reports = mechanism.randomize(x, rng=8).astype(np.int64)
    law = row(mechanism, 0, 4)
    for left, right in ((0, 1), (0, 2), (3, 1)):
        counts = np.bincount(reports[:, left] * 8 + reports[:, right], minlength=64)
        assert oracle.p_value(counts, np.outer(law, law)) > ALPHA


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("bits", "integer_bits"), [(2, 0), (5, 2), (8, 3), (10, 5), (17, 4), (32, 9)])
def test_outputs_agree(kind, bits, integer_bits):
    mechanism = build(kind, features=3, bits=bits, integer_bits=integer_bits)
    x = np.random.default_rng(0).normal(0, 3, (50, 3)).astype(np.float32)
    codes = mechanism.randomize(x, rng=9)
    assert codes.shape == (50, 3)
    assert codes.dtype == np.min_scalar_type(2**bits - 1)
    spread = codes.astype(np.int64)[..., None] >> np.arange(bits - 1, -1, -1) & 1
    ones = mechanism.randomize(x, rng=9, output="bits")
    assert ones.dtype == np.uint8
    np.testing.assert_array_equal(ones, spread.reshape(50, 3 * bits))
    packed = mechanism.randomize(x, rng=9, output="packed")
    np.testing.assert_array_equal(packed, np.packbits(ones))
    np.testing.assert_array_equal(bitldp.unpack(packed, bits, 150), codes.ravel())
    np.testing.assert_array_equal(bitldp.pack(codes, bits), packed)
    for dtype in (np.float32, np.float64):
        values = mechanism.randomize(x.astype(dtype), rng=9, output="values")
        assert values.dtype == dtype
        np.testing.assert_array_equal(values, mechanism.decode(codes, dtype=dtype))
    np.testing.assert_array_equal(
        mechanism.decode(codes, dtype=np.float64), FixedPoint.decode(mechanism.codec, codes, np.float64)
    )


def test_a_record_alone_and_one_feature():
    mechanism = build(bitldp.FRR, features=3)
    x = np.array([1.0, -2.0, 0.25], dtype=np.float32)
    np.testing.assert_array_equal(mechanism.randomize(x, rng=1), mechanism.randomize(x[None], rng=1)[0])
    single = build(bitldp.FRR)
    assert single.randomize(x, rng=1).shape == (3,)
    np.testing.assert_array_equal(single.randomize(x, rng=1), single.randomize(x[:, None], rng=1)[:, 0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("bits", "integer_bits"), [(5, 2), (19, 3)])
@pytest.mark.parametrize("sign", ["bitrand", "ldpfl"])
def test_letters_are_unbiased_exactly(kind, bits, integer_bits, sign):
    """The letters' mean and variance under the law, by enumeration over the reported magnitude's parts."""
    mechanism = build(kind, features=2, bits=bits, integer_bits=integer_bits, epsilon=30.0, sign=sign)
    for law in mechanism.channel.thresholds():
        for one, zero in law:
            p, q = one / oracle.ONE, zero / oracle.ONE
            low, high = -q / (p - q), (1 - q) / (p - q)
            assert p * high + (1 - p) * low == pytest.approx(1.0, abs=1e-12)
            assert q * high + (1 - q) * low == pytest.approx(0.0, abs=1e-12)
    if bits > 8:
        return
    reports = np.repeat(np.arange(2**bits), 2).reshape(-1, 2)
    letters = mechanism.unbias(reports)
    x = np.array([[0.7, -1.9], [-3.4, 2.2], [0.0, -0.1]])
    codes = mechanism.codec.encode(x)
    variances = mechanism.variance(x)
    pattern = [0, 1] if kind is bitldp.UER else [0, 0]
    for place in np.ndindex(x.shape):
        chances = row(mechanism, pattern[place[1]], int(codes[place]))
        mean = chances @ letters[:, place[1]]
        assert mean == pytest.approx(mechanism.codec.decode(codes, np.float64)[place], abs=1e-10)
        assert chances @ (letters[:, place[1]] - mean) ** 2 == pytest.approx(variances[place], rel=1e-10)


@pytest.mark.parametrize(("bits", "integer_bits"), [(6, 2), (21, 3)])
def test_letters_are_unbiased_by_simulation(bits, integer_bits):
    """Mean within 5 standard errors, and variance within 5 %, of the closed form; n = 2^18."""
    mechanism = build(bitldp.MOUE, features=2, bits=bits, integer_bits=integer_bits, epsilon=40.0, alpha=1.5)
    x = np.tile([[1.3, -2.7]], (N // 4, 1))
    letters = mechanism.unbias(mechanism.randomize(x, rng=3))
    truth = mechanism.codec.decode(mechanism.codec.encode(x[0]), np.float64)
    variance = mechanism.variance(x[:1])[0]
    assert np.all(np.abs(letters.mean(axis=0) - truth) < 5 * np.sqrt(variance / len(x)))
    np.testing.assert_allclose(letters.var(axis=0), variance, rtol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_expected_error_by_enumeration(kind):
    mechanism = build(kind, features=2, bits=5, epsilon=4.0)
    values = mechanism.decode(np.arange(32, dtype=np.uint8), dtype=np.float64)
    distances = np.abs(values[:, None] - values)
    laws = [
        np.array([row(mechanism, law, code) for code in range(32)]) for law in range(mechanism.channel.laws)
    ]
    by_law = [float(np.sum(law * distances) / 32) for law in laws]
    assert mechanism.expected_error() == pytest.approx(np.mean(by_law), rel=1e-12)


def test_the_bound_of_theorem_4_is_a_bound():
    for bits, integer_bits in ((4, 1), (10, 5), (16, 3)):
        for epsilon in (0.1, 1.0, 10.0):
            mechanism = build(bitldp.FRR, features=20, bits=bits, integer_bits=integer_bits, epsilon=epsilon)
            assert mechanism.expected_error() < mechanism.error_bound()


def test_no_unbiased_decode_where_a_bit_is_silent():
    mechanism = build(bitldp.FRR, epsilon=0.0)
    reports = mechanism.randomize(np.zeros(4))
    for attempt in (mechanism.unbias, mechanism.estimate_mean, mechanism.variance):
        with pytest.raises(ValueError, match="no unbiased decode exists, because position 0"):
            attempt(reports)
    with pytest.raises(ValueError, match="no unbiased decode"):
        mechanism.accumulator()
    assert mechanism.decode(reports).shape == (4,)
    with pytest.raises(ValueError, match="use estimate_mean"):
        mechanism.estimate_frequencies(reports)


def test_bitrand_is_frr_and_label_rr():
    x, y = np.random.default_rng(0).normal(0, 3, (200, 3)), np.arange(200) % 4
    both = bitldp.BitRand(3, categories=4, epsilon_x=20.0, epsilon_y=1.0)
    codes, labels = both.randomize(x, y, rng=4)
    np.testing.assert_array_equal(codes, bitldp.FRR(3, epsilon=20.0).randomize(x, rng=4))
    assert not np.array_equal(labels, bitldp.LabelRR(4, epsilon=1.0).randomize(y, rng=4))  # a key of its own
    values, classes = both.decode((codes, labels))
    np.testing.assert_array_equal(values, both.features_mechanism.decode(codes))
    np.testing.assert_array_equal(classes, labels)
    assert both.estimate_mean(codes).value.shape == (3,)
    assert both.estimate_frequencies(labels).value.shape == (4,)
    np.testing.assert_array_equal(both.variance(x), both.features_mechanism.variance(x))
    np.testing.assert_array_equal(both.variance([[1, 2, 3]]), both.variance([[1.0, 2.0, 3.0]]))
    bits, classes = both.probabilities()
    assert bits.shape == (1, 10, 2)
    assert classes.shape == (4, 4)
    one_code, one_label = both.randomize(x[0], y[0], rng=4)
    assert one_code.shape == (3,)
    assert one_label.shape == ()


def test_plans_are_cached():
    assert bitldp.FRR(77, epsilon=1.5).channel is bitldp.FRR(77, epsilon=1.5, sign="ldpfl").channel


@pytest.mark.parametrize(
    "mechanism",
    [
        bitldp.FRR(1, bits=6, integer_bits=2, epsilon=4.0),
        bitldp.MOUE(1, bits=6, integer_bits=2, epsilon=6.0),
        bitldp.MOUE(1, bits=2, integer_bits=0, epsilon=0.5, sign="bitrand"),
    ],
    ids=str,
)
def test_the_bias_of_a_spelled_word_by_enumeration(mechanism):
    (law,), bits = mechanism.probabilities(), mechanism.codec.bits
    words = np.arange(1 << bits)
    ones = words[:, None] >> np.arange(bits - 1, -1, -1) & 1
    values = mechanism.decode(words)
    worst = 0.0
    for word, value in zip(ones, values, strict=True):
        chances = np.where(word == 1, law[:, 0], law[:, 1])
        mean = np.where(ones == 1, chances, 1.0 - chances).prod(axis=1) @ values
        worst = max(worst, abs(mean - value))
    assert mechanism.decode_bias() == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("classes", [4, ["a", "b", "c", "d"]])
def test_a_refused_label_leaves_zeros_and_a_call_that_does_not_fit_nothing(classes):
    mechanism = bitldp.BitRand(3, categories=classes, epsilon_x=4.0, epsilon_y=1.0)
    x, names = np.full((5, 3), 0.5, np.float32), np.asarray(range(4) if classes == 4 else classes)
    labels, wrong = names[[0, 1, 2, 3, 0]], np.array([0, 1, 9, 3, 0]) if classes == 4 else list("abxda")
    for output, width in (("codes", 3), ("values", 3), ("bits", 30)):
        expected, _ = mechanism.randomize(x, labels, rng=1, output=output)
        assert expected.shape == (5, width)
        out = np.full_like(expected, 7)
        with pytest.raises(ValueError, match=r"^y: .*2"):
            mechanism.randomize(x, wrong, rng=1, output=output, out=out)
        assert (out == 0).all()
        out[...] = 7
        for unfit in (labels[:3], labels.reshape(5, 1)):
            with pytest.raises(ValueError, match=r"^y: shape"):
                mechanism.randomize(x, unfit, rng=1, output=output, out=out)
        with pytest.raises(ValueError, match=r"^x"):
            mechanism.randomize(x[:, :2], wrong, rng=1, output=output, out=out)
        with pytest.raises(TypeError, match=r"^out"):
            mechanism.randomize(x, wrong, rng=1, output=output, out=out.astype(np.complex64))
        assert (out == 7).all()
        assert mechanism.randomize(x, labels, rng=1, output=output, out=out)[0] is out
        np.testing.assert_array_equal(out, expected)
