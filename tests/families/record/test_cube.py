"""Whole records of signs: the law by enumeration, letters, thresholds, variances, streams."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import warnings
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp import Cube, Duchi, HypercubePrivUnit, PrivacyClaimWarning, reference
from bitldp._core import available_isas
from bitldp.accounting import laws
from bitldp.audit import audit
from bitldp.release import cube as release
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
ONE = 1 << 64


def corners(bits):
    """Return all records of signs as numbers of [-1, 1], shape (2^r, r), first place most significant."""
    return (np.arange(1 << bits)[:, None] >> np.arange(bits - 1, -1, -1) & 1) * 2.0 - 1.0


def cube_of(mechanism):
    return mechanism.channels[0]


def law_of(mechanism):
    channel = cube_of(mechanism)
    return reference.cube_law(channel.bits, channel.near, channel.far, channel.high)


def duchi(epsilon, features, calibration="exact"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)
        return Duchi(epsilon=epsilon, features=features, spend="cube", calibration=calibration)


SMALL = [
    *(
        duchi(epsilon, d, which)
        for epsilon in (0.5, 3.0)
        for d in range(1, 7)
        for which in ("exact", "paper")
    ),
    *(HypercubePrivUnit(6, epsilon=2.0, threshold=kappa) for kappa in range(1, 7)),
    *(HypercubePrivUnit(d, epsilon=1.0) for d in range(1, 7)),
]
SMALL_IDS = [f"{type(each).__name__}-{i}" for i, each in enumerate(SMALL)]


@pytest.mark.parametrize("mechanism", SMALL, ids=SMALL_IDS)
def test_epsilon_and_letters_by_enumeration(mechanism):
    """Over all reports and inputs: the exact epsilon, and P . letters = input."""
    law, features = law_of(mechanism), mechanism.features
    exact = reference.exact_epsilon(law)
    guarantee = mechanism.guarantee
    assert exact <= guarantee.record <= exact * (1 + 1e-12) + 1e-15
    assert guarantee.bit == guarantee.feature == guarantee.record
    inputs = corners(features)
    mean = reference.probabilities(law) @ mechanism.decode((inputs > 0).astype(np.uint8))
    np.testing.assert_allclose(mean, inputs, atol=1e-12)
    # One feature is enough: neighbours at distance one reach the same epsilon.
    table = reference.probabilities(law)
    near = [np.log(table[v] / table[v ^ 1 << i]).max() for v in range(len(table)) for i in range(features)]
    assert math.isclose(max(near), exact, rel_tol=1e-9)


@pytest.mark.parametrize("mechanism", SMALL[::3], ids=SMALL_IDS[::3])
def test_goodness_of_fit(mechanism):
    """Chi-squared over all reports, n = 2^16, alpha = 1e-6."""
    features = mechanism.features
    record = corners(features)[(1 << features) * 2 // 3]
    codes = mechanism.randomize(np.tile(record, (1 << 16, 1)), rng=4)
    found = np.bincount(codes @ (1 << np.arange(features - 1, -1, -1)), minlength=1 << features)
    row = reference.probabilities(law_of(mechanism))[(1 << features) * 2 // 3]
    assert oracle.p_value(found, row) > ALPHA


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
def test_duchi_has_the_letters_of_the_paper(epsilon):
    for d in range(1, 40):
        if d % 2:
            constant = 2 ** (d - 1) / math.comb(d - 1, (d - 1) // 2)
        else:
            constant = (2 ** (d - 1) + math.comb(d, d // 2) / 2) / math.comb(d - 1, d // 2)
        letter = constant * (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
        assert math.isclose(duchi(epsilon, d, "paper").letters[1], letter, rel_tol=1e-9)
        exact = duchi(epsilon, d).letters[1]
        if d % 2:
            assert math.isclose(exact, letter, rel_tol=1e-9)
        else:
            near = sum(math.comb(d, a) for a in range(d // 2 + 1, d + 1))
            expected = (math.exp(epsilon) * near + 2**d - near) / math.comb(d - 1, d // 2)
            assert math.isclose(exact, expected / math.expm1(epsilon), rel_tol=1e-9)
    one, cube = Duchi(epsilon=epsilon), duchi(epsilon, 1)
    np.testing.assert_allclose(cube.letters, one.letters, rtol=1e-9)
    np.testing.assert_allclose(cube.probabilities(), one.probabilities(), rtol=1e-9)
    np.testing.assert_allclose(cube.variance([-1.0, 0.3]), one.variance([-1.0, 0.3]), rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 4.0])
def test_the_papers_claim_fails_for_an_even_number(epsilon):
    """Ties are in both halves: ln(e^eps + 1), which never goes below ln 2."""
    for d in (2, 6, 768):
        with pytest.warns(PrivacyClaimWarning, match="claimed epsilon"):
            mechanism = Duchi(epsilon=epsilon, features=d, spend="cube", calibration="paper")
        assert not mechanism.guarantee.holds
        assert math.isclose(mechanism.guarantee.record, math.log(math.exp(epsilon) + 1), rel_tol=1e-9)
        assert duchi(epsilon, d).guarantee.holds
        assert duchi(epsilon, d + 1, "paper").guarantee.holds


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 8.0, 30.0])
@pytest.mark.parametrize("features", [1, 2, 7, 768])
def test_the_budget_is_kept_and_used(epsilon, features):
    for mechanism in (duchi(epsilon, features), HypercubePrivUnit(features, epsilon=epsilon)):
        guarantee = mechanism.guarantee
        assert guarantee.holds
        assert epsilon * (1 - 1e-7) <= guarantee.record <= epsilon


@pytest.mark.parametrize(("epsilon", "variance"), [(1, 4858), (4, 334), (8, 102), (16, 36.8)])
def test_known_variances_of_768_features(epsilon, variance):
    """Within 1 %; and no other threshold is better, by integers."""
    mechanism = HypercubePrivUnit(768, epsilon=epsilon)
    assert math.isclose(mechanism.worst_variance(), variance, rel_tol=0.01)
    for kappa in (mechanism.threshold - 1, mechanism.threshold + 1):
        other = HypercubePrivUnit(768, epsilon=epsilon, threshold=kappa)
        assert other.worst_variance() >= mechanism.worst_variance()


def test_best_threshold_is_best_of_all():
    for features, epsilon in [(1, 1.0), (2, 0.3), (9, 2.0), (30, 7.0), (30, 40.0)]:
        best = HypercubePrivUnit(features, epsilon=epsilon).worst_variance()
        every = [
            HypercubePrivUnit(features, epsilon=epsilon, threshold=kappa) for kappa in range(1, features + 1)
        ]
        assert math.isclose(best, min(each.worst_variance() for each in every), rel_tol=1e-9)


def test_vector_of_privunit(vectors):
    """The vector is about caps of the sphere, with the same formula for p; the cube's variance is near."""
    case = vectors[25]
    inputs, expected = case["inputs"], case["expected"]
    d, epsilon, share = inputs["d"], inputs["eps"], expected["cap_mass"]
    odds = math.exp(epsilon) * share / (1 - share)
    assert math.isclose(odds / (1 + odds), expected["p"], rel_tol=1e-6)
    mechanism = HypercubePrivUnit(d, epsilon=epsilon, threshold=math.ceil(d * (1 + inputs["gamma"]) / 2))
    near, far = mechanism.channel.sizes()
    odds = math.exp(epsilon) * (near / far)
    assert math.isclose(mechanism.channel.high / ONE, odds / (1 + odds), rel_tol=1e-9)
    assert math.isclose(mechanism.worst_variance(), expected["inv_m2"], rel_tol=0.005)


WIDE = [
    Duchi(epsilon=4.0, features=5, spend="cube", interval=(0.0, 10.0)),
    Duchi(epsilon=4.0, features=6, spend="cube", interval=(0.0, 10.0)),
    HypercubePrivUnit(7, epsilon=3.0, interval=(0.0, 10.0)),
    HypercubePrivUnit(7, epsilon=3.0, interval=(0.0, 10.0), threshold=6),
    HypercubePrivUnit(1, epsilon=3.0, interval=(0.0, 10.0)),
]


@pytest.mark.parametrize("mechanism", WIDE, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_and_variance(mechanism, dtype):
    """Within 5 standard errors, and these within 5 % of the closed form's; n = 40,000."""
    n, features = 40_000, mechanism.features
    records = np.random.default_rng(11).uniform(0, 10, (n, features)).astype(dtype)
    reports = mechanism.randomize(records, rng=21)
    estimate = mechanism.estimate_mean(reports)
    assert np.all(np.abs(estimate.value - records.mean(axis=0)) < 5 * estimate.stderr)
    total = mechanism.variance(records).mean(axis=0) + records.var(axis=0)
    np.testing.assert_allclose(estimate.stderr, np.sqrt(total / n), rtol=0.05)
    parts = [mechanism.accumulator() for _ in range(2)]
    parts[0].update(reports[:1000])
    parts[1].update(reports[1000:])
    parts[0].merge(type(parts[1]).from_json(parts[1].to_json(), mechanism))
    np.testing.assert_allclose(parts[0].estimate().value, estimate.value, rtol=1e-12)


@pytest.mark.parametrize("mechanism", WIDE, ids=repr)
def test_forms_streams_and_copies(mechanism):
    channel, features = cube_of(mechanism), mechanism.features
    n = 2 * channel.chunk + 3
    x = np.random.default_rng(3).uniform(-1, 11, (n, features))
    codes = mechanism.randomize(x, rng=9)
    assert codes.dtype == np.uint8
    assert codes.shape == x.shape
    values = mechanism.randomize(x, rng=9, output="values")
    np.testing.assert_array_equal(values, mechanism.decode(codes))
    packed = mechanism.randomize(x, rng=9, output="packed", threads=1)
    np.testing.assert_array_equal(packed, np.packbits(codes.ravel()))
    out = np.empty_like(codes)
    assert mechanism.randomize(x, rng=9, out=out, threads=3) is out
    np.testing.assert_array_equal(out, codes)
    np.testing.assert_array_equal(mechanism.randomize(np.asfortranarray(x), rng=9), codes)
    cut = channel.chunk
    tail = mechanism.randomize(x[cut:], rng=9, first_chunk=1)
    np.testing.assert_array_equal(np.concatenate([mechanism.randomize(x[:cut], rng=9), tail]), codes)
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    np.testing.assert_array_equal(again.randomize(x, rng=9), codes)
    assert repr(again) == repr(mechanism)
    if features == 1:
        np.testing.assert_array_equal(mechanism.randomize(x[:, 0], rng=9), codes[:, 0])
    else:
        np.testing.assert_array_equal(mechanism.randomize(x[0], rng=9), codes[0])
    assert mechanism.outside(x) == np.count_nonzero((x < 0) | (x > 10))
    same = pickle.loads(pickle.dumps(channel))
    assert (same.high, same.near, same.far, same.sizes()) == (
        channel.high,
        channel.near,
        channel.far,
        channel.sizes(),
    )


def test_no_call_repeats_another():
    mechanism = HypercubePrivUnit(64, epsilon=1.0)
    assert not np.array_equal(mechanism.randomize(np.zeros(64)), mechanism.randomize(np.zeros(64)))


STREAM = """
import hashlib, numpy as np, bitldp
x = (np.arange(40_000).reshape(100, 400) * 7919 % 2003 - 1001) / 1001.0
one = bitldp.HypercubePrivUnit(400, epsilon=4.0).randomize(x, rng=1)
cube = bitldp.Duchi(epsilon=4.0, features=10, spend="cube")
two = cube.randomize(x.reshape(-1, 10).astype(np.float32), rng=1)
print(hashlib.sha256(one.tobytes() + two.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_streams_are_those_of_old_on_every_instruction_set():
    digests = {
        subprocess.run(
            [sys.executable, "-c", STREAM],
            env={**os.environ, "BITLDP_ISA": isa},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.strip()
        for isa in available_isas()
    }
    assert digests == {"b8b83905d974aa58c0e6bee7ed48d1cc73c608802d9f47d1bd79ec2350ca847a"}


def test_nothing_is_said_at_epsilon_zero():
    for mechanism in (duchi(0.0, 6), duchi(0.0, 5), HypercubePrivUnit(6, epsilon=0.0)):
        assert mechanism.guarantee.record == 0.0
        ones, zeros = (mechanism.randomize(np.full((9, mechanism.features), x), rng=1) for x in (1.0, -1.0))
        np.testing.assert_array_equal(ones, zeros)
        for call in (mechanism.decode, mechanism.estimate_mean, mechanism.variance):
            with pytest.raises(ValueError, match="no unbiased decode"):
                call(ones)
        with pytest.raises(ValueError, match="x: element 2"):
            mechanism.randomize(np.array([0.0, 0.0, np.nan, 0.0, 0.0, 0.0])[: mechanism.features])


def test_long_records():
    mechanism = HypercubePrivUnit(100_000, epsilon=8.0)
    assert mechanism.guarantee.holds
    reports = mechanism.randomize(np.ones((40, 100_000), np.float32), rng=2)
    letters = mechanism.decode(reports).mean(axis=1)
    # The mean of a record's letters is 1 with a standard deviation that the two sets make: 5 standard errors.
    assert abs(letters.mean() - 1.0) < 5 * letters.std() / np.sqrt(40) + 1e-12


def test_reference_samplers_follow_the_law():
    """Chi-squared of agreements, n = 2^17, alpha = 1e-6, of the NumPy versions and the channel alike."""
    rng, n = np.random.default_rng(5), 1 << 17
    channel = Cube(9, 6, 5, ONE // 4 * 3)
    signs = rng.integers(0, 2, (n, 9)).astype(np.uint8)
    row = reference.probabilities(reference.cube_law(9, 6, 5, channel.high))[0]
    counts = np.bincount([z.bit_count() for z in range(512)], row[::1], 10)[::-1]
    for reports in (
        reference.cap(signs, 6, 0.75, rng),
        channel.randomize(signs, None, None, bytes(32), "codes", None, None, 0),
    ):
        assert oracle.p_value(np.bincount((reports == signs).sum(axis=1), minlength=10), counts) > ALPHA
    row = reference.probabilities(reference.cube_law(9, 5, 4, channel.high))[0]
    counts = np.bincount([z.bit_count() for z in range(512)], row, 10)[::-1]
    found = (reference.half_cube(signs, 0.75, rng) == signs).sum(axis=1)
    assert oracle.p_value(np.bincount(found, minlength=10), counts) > ALPHA


def strings_from(bits, near):
    """Return the share of strings of `bits` bits that agree in `near` places or more, to 100 digits."""
    with localcontext(Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        half = bits // 2
        # C(2h, h)/4^h is the product of (2i - 1)/(2i).
        term = Decimal(1)
        for start in range(1, half + 1, 1024):
            block = range(start, min(start + 1024, half + 1))
            term *= Decimal(math.prod(2 * i - 1 for i in block)) / Decimal(math.prod(2 * i for i in block))
        above = (1 + term) / 2
        for a in range(half, near):
            above -= term
            term = term * (bits - a) / (a + 1)
        return above


@pytest.mark.slow
def test_epsilon_of_long_records_by_decimals():
    """Of 2^18 features: ln of p (1 - t)/((1 - p) t), t from decimals of 100 digits, and never below it."""
    bits = 1 << 18
    for epsilon in (0.5, 8.0):
        channel = cube_of(HypercubePrivUnit(bits, epsilon=epsilon))
        assert channel.bits == bits
        with localcontext(Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)):
            share, high = strings_from(bits, channel.near), Decimal(channel.high)
            exact = ((1 - share) * high / (share * (ONE - high))).ln()
            assert exact <= Decimal(channel.epsilon) <= exact * (1 + Decimal("1e-13"))
        assert epsilon * (1 - 1e-9) <= channel.epsilon <= epsilon


@pytest.mark.slow
@pytest.mark.statistical
def test_agreements_of_long_records():
    """Chi-squared of agreements, n = 512 records of 2^20 features, 16 cells of equal mass, alpha = 1e-6."""
    bits, n = 1 << 20, 512
    mechanism = HypercubePrivUnit(bits, epsilon=2.0)
    channel = cube_of(mechanism)
    places = np.arange(bits // 2 - 8192, bits // 2 + 8193)
    weights = np.cumsum(np.log(np.r_[1.0, (bits - places[:-1]) / places[1:]]))
    mass = np.exp(weights - weights.max())
    near = places >= channel.near
    p = channel.high / ONE
    law = np.where(near, p * mass / mass[near].sum(), (1 - p) * mass / mass[~near].sum())
    cells = np.minimum((np.cumsum(law) * 16).astype(int), 15)
    zeros = np.zeros((16, bits), np.uint8)
    counts = np.zeros(16)
    for start in range(0, n, 16):
        reports = channel.randomize(zeros, None, None, bytes([9] * 32), "packed", None, None, start // 8)
        agreements = bits - np.unpackbits(reports).reshape(16, -1).sum(axis=1, dtype=np.int64)
        counts += np.bincount(cells[agreements - places[0]], minlength=16)
    assert channel.chunk == 8
    assert oracle.p_value(counts, np.bincount(cells, law, 16)) > ALPHA


@pytest.mark.parametrize("bits", [1000, 9999])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 16.0, 200.0])
def test_thresholds_of_long_records_need_no_other_places(bits, epsilon, monkeypatch):
    """Comparing those about the best one gives what comparing all gives."""
    search = release.best_threshold.__wrapped__
    everything = search(bits, epsilon)
    monkeypatch.setattr(release, "_WHOLE", 0)
    assert search(bits, epsilon) == everything


@pytest.mark.parametrize("near", [2, 51, 60, 99])
def test_accounts_of_long_records_round_against_the_release(near, monkeypatch):
    """Rounded, the likely symbol is no less likely and the other no more, both by next to nothing."""
    channel = Cube(100, near, near - 1, ONE - (ONE >> 9))
    [exact] = [part.tables[0] for part in laws.parts(channel)]
    monkeypatch.setattr(laws, "_LONG", 0)
    (close, away), own = channel.sizes(), min(channel.sizes())
    inside, outside = (
        Fraction(own * channel.high, close * ONE),
        Fraction(own * (ONE - channel.high), away * ONE),
    )
    assert 0 <= -laws._share(-own * channel.high, close) - inside <= inside / (1 << 900)
    assert 0 <= outside - laws._share(own * (ONE - channel.high), away) <= outside / (1 << 900)
    [rounded] = [part.tables[0] for part in laws.parts(channel)]
    assert rounded.epsilon == exact.epsilon
    np.testing.assert_allclose(rounded.rows, exact.rows, rtol=1e-15)


def test_letters_need_the_leading_bits_of_sizes_alone():
    """The quotient of whole integers and that of their leading bits are the same double, at 4,000 bits."""
    channel = HypercubePrivUnit(4000, epsilon=3.0).channel
    (near, far), (inner, outer) = channel.sizes(), channel.edges()
    mean = channel.high * inner * far - (ONE - channel.high) * outer * near
    assert inner == outer
    assert release.scale_of(channel) == ONE * near * far / mean


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: Cube(0, 1, 0, 1), ValueError, "bits: 0"),
        (lambda: Cube(5, 3, 1, 1), ValueError, "far: 1"),
        (lambda: Cube(5, 6, 5, 1), ValueError, "near: 6"),
        (lambda: Cube(5, 3, 2, ONE + 1), ValueError, "high: "),
        (lambda: HypercubePrivUnit(0, epsilon=1.0), ValueError, "features: "),
        (lambda: HypercubePrivUnit((1 << 22) + 1, epsilon=1.0), ValueError, "features: "),
        (lambda: HypercubePrivUnit(5, epsilon=-1.0), ValueError, "epsilon: "),
        (lambda: HypercubePrivUnit(5, epsilon=math.nan), ValueError, "epsilon: "),
        (lambda: HypercubePrivUnit(5, epsilon=1.0, threshold=0), ValueError, "threshold: "),
        (lambda: HypercubePrivUnit(5, epsilon=1.0, threshold=6), ValueError, "threshold: "),
        (lambda: HypercubePrivUnit(5, epsilon=1.0, threshold=2.0), TypeError, "threshold: "),
        (lambda: HypercubePrivUnit(5, epsilon=1.0, clip=1), TypeError, "clip: "),
        (lambda: HypercubePrivUnit(5, epsilon=1.0, interval=(1.0, 1.0)), ValueError, "interval: "),
        (lambda: Duchi(epsilon=1.0, features=5, spend="cube", k=2), ValueError, "k: "),
        (lambda: Duchi(epsilon=1.0, features=5, spend="whole"), ValueError, "spend: "),
        (lambda: Duchi(epsilon=1.0, features=5, calibration="best"), ValueError, "calibration: "),
        (lambda: bitldp.Piecewise(epsilon=1.0, features=5, spend="cube"), ValueError, "spend: "),
    ],
)
def test_parameters_out_of_range(build, error, text):
    with pytest.raises(error, match=text):
        build()


@pytest.mark.parametrize(
    ("x", "options", "error", "text"),
    [
        (np.zeros((2, 4)), {}, ValueError, "x: shape"),
        (np.zeros(3), {}, ValueError, "x: shape"),
        (np.full((2, 5), np.nan), {}, ValueError, "x: element 0"),
        (np.zeros((2, 5), bool), {}, TypeError, "x: dtype bool"),
        (np.ma.masked_array(np.zeros((2, 5)), True), {}, TypeError, "x: a masked array"),
        (np.zeros((2, 5)), {"output": "bits"}, ValueError, "output: "),
        (np.zeros((2, 5)), {"out": np.zeros((2, 5), np.uint16)}, TypeError, "out: "),
        (np.zeros((2, 5)), {"out": np.zeros((2, 4), np.uint8)}, ValueError, "out: "),
        (np.zeros((2, 5)), {"threads": 0}, ValueError, "threads: "),
    ],
)
def test_bad_input(x, options, error, text):
    for mechanism in (duchi(1.0, 5), HypercubePrivUnit(5, epsilon=1.0)):
        with pytest.raises(error, match=text):
            mechanism.randomize(x, **options)
    with pytest.raises(ValueError, match="clip=False"):
        HypercubePrivUnit(5, epsilon=1.0, clip=False).randomize(np.full(5, 1.5))


def test_channel_refuses_what_are_no_bits():
    channel, key = Cube(3, 2, 1, ONE // 2), bytes(32)
    for x, error, text in [
        (np.full((2, 3), 2, np.uint8), ValueError, "x: element 0"),
        (np.zeros((2, 3)), TypeError, "x: dtype float64"),
        (np.zeros((2, 4), np.uint8), ValueError, "x: shape"),
    ]:
        with pytest.raises(error, match=text):
            channel.randomize(x, None, None, key, "codes", None, None, 0)


def test_audit_comes_near_the_exact_epsilon():
    for mechanism in (HypercubePrivUnit(40, epsilon=2.0), duchi(1.0, 6), duchi(1.0, 7)):
        found = audit(mechanism, n=20_000, rng=1)
        exact = mechanism.guarantee.record
        assert 0.85 * exact < found.lower <= exact


def test_audit_refutes_the_papers_claim_for_an_even_number():
    pair = (np.ones(2), np.array([1.0, -1.0]))
    found = audit(duchi(1.0, 2, "paper"), pair=pair, n=40_000, rng=1)
    assert 1.0 < found.lower <= math.log(math.e + 1)


def test_report_bits():
    mechanism = HypercubePrivUnit(24, epsilon=1.0)
    assert mechanism.report_bits == 24
    assert len(mechanism.randomize(np.zeros((5, 24)), output="packed")) * 8 == 5 * 24
