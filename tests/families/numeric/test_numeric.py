"""Numeric mechanisms at work: sampled laws, estimates, sampled coordinates, streams, pickles."""

from __future__ import annotations

import importlib
import json
import pickle
import tracemalloc

import bitldp
import numpy as np
import pytest
from bitldp._core import CHUNK
from bitldp.numeric import Duchi, Hybrid, LDPFLDuchi, Piecewise, PiecewiseSub, SampledReports, ThreeOutputs
from bitldp.release.draws import coordinates, permutations
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
N = 1 << 18

KINDS = [Duchi, Piecewise, PiecewiseSub, Hybrid, ThreeOutputs]
CASES = [
    *(kind(epsilon=1.5, interval=(0.0, 10.0)) for kind in KINDS),
    LDPFLDuchi(epsilon=2.0, center=5.0, radius=2.0),
    Piecewise(epsilon=8.0, interval=(0.0, 10.0)),
    Hybrid(epsilon=9.0, interval=(0.0, 10.0)),
    Hybrid(epsilon=0.5, interval=(0.0, 10.0)),
]
IDS = [f"{type(case).__name__}-{case.epsilon}" for case in CASES]
WIDE = [
    *(kind(epsilon=6.0, features=4, interval=(0.0, 10.0)) for kind in KINDS),
    *(kind(epsilon=6.0, features=4, interval=(0.0, 10.0), spend="sample") for kind in KINDS),
    LDPFLDuchi(epsilon=6.0, features=4, center=5.0, radius=5.0, spend="sample", k=3),
]
WIDE_IDS = [f"{type(case).__name__}-{case.spend}" for case in WIDE]
RECORDS = np.random.default_rng(11).uniform([0, 2, 4, 6], [4, 6, 8, 10], (40_000, 4))


def row_at(mechanism, x):
    """Return the law of an input between two points: the dither's mixture of their rows."""
    points, law = mechanism.points, mechanism.probabilities()
    place = min(np.searchsorted(points, x, side="right") - 1, len(points) - 2)
    share = (x - points[place]) / (points[place + 1] - points[place])
    return (1.0 - share) * law[place] + share * law[place + 1]


@pytest.mark.parametrize("mechanism", CASES, ids=IDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("x", [3.0, 4.71, 7.0])
def test_goodness_of_fit(mechanism, dtype, x):
    """Chi-squared over all codes, n = 2^18, alpha = 1e-6; ends and a value between points."""
    codes = mechanism.randomize(np.full(N, x, dtype), rng=int(100 * x))
    counts = np.bincount(codes, minlength=mechanism.alphabet)
    assert oracle.p_value(counts, row_at(mechanism, x)) > ALPHA


@pytest.mark.parametrize("mechanism", CASES, ids=IDS)
@pytest.mark.parametrize("x", [3.0, 4.71, 6.998])
def test_mean_and_variance_of_the_letters(mechanism, x):
    """Both within 5 standard errors, the variance's by the fourth moment of the law; n = 2^18."""
    letters = mechanism.decode(mechanism.randomize(np.full(N, x), rng=5))
    variance = float(mechanism.variance(x))
    assert abs(letters.mean() - x) < 5 * np.sqrt(variance / N)
    fourth = row_at(mechanism, x) @ (mechanism.letters - x) ** 4
    assert abs(np.square(letters - x).mean() - variance) < 5 * np.sqrt((fourth - variance**2) / N)


@pytest.mark.parametrize("mechanism", WIDE, ids=WIDE_IDS)
def test_mean_of_records(mechanism):
    """All features within 5 standard errors, and these within 5 % of the closed form's; n = 40,000."""
    reports = mechanism.randomize(RECORDS, rng=21)
    estimate = mechanism.estimate_mean(reports)
    assert estimate.n == len(RECORDS)
    assert np.all(np.abs(estimate.value - RECORDS.mean(axis=0)) < 5 * estimate.stderr)
    total = mechanism.variance(RECORDS).mean(axis=0) + RECORDS.var(axis=0)
    np.testing.assert_allclose(estimate.stderr, np.sqrt(total / len(RECORDS)), rtol=0.05)
    letters = mechanism.decode(reports)
    assert letters.shape == RECORDS.shape
    np.testing.assert_allclose(estimate.value, letters.mean(axis=0), rtol=1e-12)
    stderr = letters.std(axis=0, ddof=1) / np.sqrt(len(RECORDS))
    least = np.sqrt(mechanism._letter_law.mixed.bounds(estimate.value)[0] / len(RECORDS))
    np.testing.assert_allclose(estimate.stderr, np.maximum(stderr, least), rtol=1e-9)


@pytest.mark.parametrize("mechanism", WIDE, ids=WIDE_IDS)
def test_accumulators_merge_and_serialise(mechanism):
    parts = [mechanism.randomize(RECORDS[start : start + 500], rng=start) for start in (0, 500, 1000)]
    whole, left, right = (mechanism.accumulator() for _ in range(3))
    for part in parts:
        whole.update(part)
    left.update(parts[0])
    for part in parts[1:]:
        right.update(part)
    again = type(right).from_json(right.to_json(), mechanism)
    left.merge(again)
    assert left.n == 1500
    np.testing.assert_allclose(left.estimate().value, whole.estimate().value, rtol=1e-12)
    np.testing.assert_allclose(left.estimate().stderr, whole.estimate().stderr, rtol=1e-9)
    other = type(mechanism)(epsilon=mechanism.epsilon / 2, features=4)
    with pytest.raises(ValueError, match="text: accumulates the reports of another mechanism"):
        bitldp.MeanAccumulator.from_json(right.to_json(), other)
    damaged = json.loads(right.to_json())
    damaged["state"]["m2"][0] = -1.0
    with pytest.raises(ValueError, match="text: "):
        bitldp.MeanAccumulator.from_json(json.dumps(damaged), mechanism)
    with pytest.raises(ValueError, match="reports: at least one"):
        mechanism.accumulator().estimate()


def test_one_record_has_no_standard_error():
    for mechanism in (Piecewise(epsilon=2.0, features=4), Piecewise(epsilon=2.0, features=4, spend="sample")):
        reports = mechanism.randomize(np.zeros(4), rng=1)
        estimate = mechanism.estimate_mean(reports)
        assert estimate.n == 1
        assert estimate.value.shape == (4,)
        assert np.isnan(estimate.stderr).all()


@pytest.mark.parametrize("mechanism", WIDE, ids=WIDE_IDS)
def test_forms_of_the_reports_agree(mechanism):
    x = RECORDS[:333].astype(np.float32)
    codes = mechanism.randomize(x, rng=9)
    values = mechanism.randomize(x, rng=9, output="values")
    packed = mechanism.randomize(x, rng=9, output="packed")
    bits = (mechanism.alphabet - 1).bit_length()
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, mechanism.decode(codes), rtol=1e-6, atol=1e-6)
    if mechanism.k is None:
        assert codes.shape == x.shape
        np.testing.assert_array_equal(bitldp.unpack(packed, bits, codes.size), codes.ravel())
        out = np.empty_like(codes)
        assert mechanism.randomize(x, rng=9, out=out) is out
        np.testing.assert_array_equal(out, codes)
        return
    assert isinstance(codes, SampledReports)
    assert codes.indices.shape == codes.codes.shape == (333, mechanism.k)
    indices = bitldp.unpack(packed.indices, 2, codes.indices.size)
    np.testing.assert_array_equal(indices, codes.indices.ravel())
    np.testing.assert_array_equal(bitldp.unpack(packed.codes, bits, codes.codes.size), codes.codes.ravel())
    assert np.count_nonzero(mechanism.decode(codes) == 5.0) >= 333 * (4 - mechanism.k)


def test_shapes():
    one, four = Duchi(epsilon=1.0), Hybrid(epsilon=9.0, features=4)
    sampled = Duchi(epsilon=5.0, features=4, spend="sample")
    for shape in ((0,), (7,), (7, 1), (0, 1), (1, 1)):
        assert one.randomize(np.zeros(shape)).shape == shape
        assert one.decode(one.randomize(np.zeros(shape))).shape == shape
    for shape in ((4,), (7, 4), (0, 4)):
        assert four.randomize(np.zeros(shape)).shape == shape
        reports = sampled.randomize(np.zeros(shape))
        assert reports.codes.shape == reports.indices.shape == (*shape[:-1], 2)
        assert sampled.randomize(np.zeros(shape), output="values").shape == shape
        assert sampled.decode(reports).shape == (len(np.zeros(shape).reshape(-1, 4)), 4)
    alone = Duchi(epsilon=1.0, spend="sample")
    assert alone.randomize(np.zeros(5)).codes.shape == (5, 1)
    assert alone.randomize(np.zeros(5), output="values").shape == (5,)
    assert one.randomize([0.5, -0.5]).shape == (2,)
    strided = np.asfortranarray(RECORDS[:50])
    np.testing.assert_array_equal(four.randomize(strided, rng=1), four.randomize(RECORDS[:50], rng=1))


def test_sampled_coordinates_are_uniform():
    """Chi-squared over all subsets of 2 of 5 and 3 of 5, n = 2^17, alpha = 1e-6."""
    for k, seed in ((1, b"a"), (2, b"b"), (3, b"c"), (5, b"d")):
        chosen = np.sort(coordinates(seed * 32, 1 << 17, 5, k, 0).astype(np.int64), axis=1)
        assert (chosen[:, 1:] > chosen[:, :-1]).all()
        subsets, counts = np.unique(chosen @ 5 ** np.arange(k), return_counts=True)
        expected = {1: 5, 2: 10, 3: 10, 5: 1}[k]
        assert len(subsets) == expected
        if expected > 1:
            assert oracle.p_value(counts, np.full(expected, 1 / expected)) > ALPHA


def test_sampled_coordinates_do_not_depend_on_the_data():
    mechanism = Piecewise(epsilon=5.0, features=300, spend="sample")
    first, second = (mechanism.randomize(np.full((50, 300), x), rng=4).indices for x in (-1.0, 1.0))
    np.testing.assert_array_equal(first, second)
    assert first.dtype == np.uint16
    fresh = [mechanism.randomize(np.zeros((50, 300))).indices for _ in range(2)]
    assert (fresh[0] != fresh[1]).any()


@pytest.mark.parametrize("mechanism", WIDE, ids=WIDE_IDS)
def test_chunks_concatenate_and_threads_do_not_matter(mechanism):
    x = RECORDS[: CHUNK + 100]  # as many records as a chunk has values: a chunk for every released value
    whole = mechanism.randomize(x, rng=3, threads=2)
    head = mechanism.randomize(x[:CHUNK], rng=3, threads=1)
    tail = mechanism.randomize(x[CHUNK:], rng=3, first_chunk=mechanism.k or 4)
    pairs = [(whole, head, tail)] if mechanism.k is None else zip(whole, head, tail, strict=True)
    for all_of, first, second in pairs:
        np.testing.assert_array_equal(all_of, np.concatenate([first, second]))


@pytest.mark.parametrize("mechanism", [*CASES, *WIDE], ids=IDS + WIDE_IDS)
def test_equal_and_pickled_by_parameters(mechanism):
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert again.guarantee == mechanism.guarantee
    parameters = dict(mechanism.parameters)
    assert type(mechanism)(**parameters) == mechanism
    assert type(mechanism)(**{**parameters, "epsilon": 0.77}) != mechanism
    assert eval(repr(mechanism), vars(importlib.import_module("bitldp.numeric"))) == mechanism
    for name in (*parameters, "guarantee", "anything"):
        with pytest.raises(AttributeError):
            setattr(mechanism, name, 1)
    for array in (mechanism.letters, mechanism.points):
        assert not array.flags.writeable
    x = RECORDS[:64, : mechanism.features]
    for first, second in zip(mechanism.randomize(x, rng=2), again.randomize(x, rng=2), strict=True):
        np.testing.assert_array_equal(first, second)


def test_what_is_outside_is_clipped_and_counted():
    x = np.array([-9.0, -1.0, 0.3, 1.0, 1.5, np.inf, -np.inf])
    clipped = np.clip(x, -1.0, 1.0)
    for kind in KINDS:
        for dtype in (np.float32, np.float64):
            mechanism = kind(epsilon=2.0)
            assert mechanism.outside(x.astype(dtype)) == 4
            # One by one: a draw that needs more bits takes them from a stream that a batch shares, and which
            # one does so depends on where beyond the end a number is.
            for seed in range(40):
                for value, inside in zip(x.astype(dtype), clipped.astype(dtype), strict=True):
                    report = mechanism.randomize(value[None], rng=seed)
                    np.testing.assert_array_equal(report, mechanism.randomize(inside[None], rng=seed))
        np.testing.assert_array_equal(mechanism.variance(x), mechanism.variance(clipped))


def test_shuffled_weights_keep_every_estimate():
    mechanism = LDPFLDuchi(epsilon=4.0, features=3, center=1.0, radius=0.5)
    reports = mechanism.randomize(RECORDS[:2000, :3], rng=1)
    shuffled = mechanism.shuffle(reports, rng=2)
    assert shuffled.dtype == reports.dtype
    assert (shuffled != reports).any()
    np.testing.assert_array_equal(np.sort(shuffled, axis=0), np.sort(reports, axis=0))
    alike = LDPFLDuchi(epsilon=4.0, features=3).shuffle(
        np.repeat(np.arange(2), 1000)[:, None] * np.ones(3, int), rng=1
    )
    assert (alike != alike[:, :1]).any()  # each weight goes its own way
    before, after = mechanism.estimate_mean(reports), mechanism.estimate_mean(shuffled)
    np.testing.assert_allclose(after.value, before.value, rtol=1e-12)
    np.testing.assert_allclose(after.stderr, before.stderr, rtol=1e-12)
    single = LDPFLDuchi(epsilon=1.0)
    flat = single.randomize(np.linspace(-1.0, 1.0, 100), rng=1)
    assert np.sort(single.shuffle(flat)).tolist() == np.sort(flat).tolist()
    with pytest.raises(ValueError, match="reports: with spend='sample'"):
        LDPFLDuchi(epsilon=1.0, features=3, spend="sample").shuffle(reports)


def test_permutations_are_uniform_and_independent():
    """Chi-squared over the 36 pairs of permutations of 3 rows in 2 columns, n = 2^14, alpha = 1e-6."""
    draws = [permutations(place.to_bytes(32, "big"), 3, 2) for place in range(1 << 14)]
    codes = [int((order.T @ [9, 3, 1]) @ [27, 1]) for order in draws]
    _, counts = np.unique(codes, return_counts=True)
    assert len(counts) == 36
    assert oracle.p_value(counts, np.full(36, 1 / 36)) > ALPHA


def test_no_frequencies():
    with pytest.raises(ValueError, match="Duchi has no frequencies to estimate"):
        Duchi(epsilon=1.0).estimate_frequencies(np.zeros(3, np.uint8))


def test_reports_of_few_coordinates_cost_what_they_name():
    """Kept apart or counted, in any batches and merged: the same digits, and the same JSON."""
    mechanism = Duchi(epsilon=4.0, features=50, spend="sample", k=3)
    x = np.linspace(-1.0, 1.0, 50)[None].repeat(40, axis=0)
    indices, codes = mechanism.randomize(x, rng=1)
    for n in (1, 2, 16, 17, 40):  # 50 coordinates are named by the 17th record
        dense = mechanism.decode((indices[:n], codes[:n]))
        whole, apart, merged = (mechanism.accumulator() for _ in range(3))
        whole.update((indices[:n], codes[:n]))
        for i in range(n):
            apart.update((indices[i : i + 1], codes[i : i + 1]))
            single = mechanism.accumulator()
            single.update((indices[i : i + 1], codes[i : i + 1]))
            merged.merge(single)
        assert apart._apart.size == 3 * ((n - 1) % 16 + 1)  # what came before is counted
        counted = type(whole).from_json(whole.to_json(), mechanism)
        assert not counted._apart.size
        for other in (apart, merged, counted):
            assert np.array_equal(whole.mean, other.mean)
            assert np.array_equal(whole.m2, other.m2)
        assert whole.mean == pytest.approx(dense.mean(axis=0), abs=1e-12)
        before = apart.kept()
        apart.update((indices[:1], codes[:1]))
        apart.restore(before)
        assert apart.to_json() == merged.to_json() == whole.to_json()


def test_a_report_of_ten_million_numbers_takes_no_memory_for_all_of_them():
    mechanism = Duchi(epsilon=4.0, features=10_000_000, spend="sample")
    accumulator = mechanism.accumulator()
    rng = np.random.default_rng(1)
    tracemalloc.start()
    for index in rng.integers(0, mechanism.features, 20).tolist():
        accumulator.update((np.full((1, mechanism.k), index), np.zeros((1, mechanism.k), np.uint8)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert accumulator.n == 20
    assert peak < 1 << 20
