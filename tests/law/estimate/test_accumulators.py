"""Estimates and accumulators: batches, merges, JSON."""

from __future__ import annotations

import json

import bitldp
import numpy as np
import pytest
from bitldp import Accumulator, CountAccumulator, MeanAccumulator, estimate
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cases import CASES


def test_frequencies_of_small_samples_have_an_error():
    found = estimate.frequencies([0, 3], 3, 0.8, 0.2)
    np.testing.assert_allclose(found.value, [-1 / 3, 4 / 3])
    assert np.all(found.stderr > 0.3)  # although all three reports agree
    with pytest.raises(ValueError, match="at least one"):
        estimate.frequencies([0, 0], 0, 0.8, 0.2)
    with pytest.raises(ValueError, match="p == q"):
        estimate.frequencies([1, 0], 1, 0.5, 0.5)


def test_mean_within_its_standard_error():
    """Means of 4 features within 5 standard errors; n = 50,000."""
    x = np.random.default_rng(1).normal(2.0, 3.0, (50_000, 4))
    for mechanism in (bitldp.FRR(4, epsilon=60.0), bitldp.MOUE(4, epsilon=60.0, alpha=2.0)):
        found = mechanism.estimate_mean(mechanism.randomize(x, rng=2))
        encoded = mechanism.codec.decode(mechanism.codec.encode(x), np.float64)
        assert found.n == 50_000
        assert np.all(np.abs(found.value - encoded.mean(axis=0)) < 5 * found.stderr)
        coins = mechanism.variance(x).mean(axis=0)
        np.testing.assert_allclose(found.stderr**2 * found.n, coins + encoded.var(axis=0), rtol=0.1)


def test_mean_of_odd_words_uses_the_law_of_each_feature():
    mechanism = bitldp.UER(3, bits=5, integer_bits=2, epsilon=30.0, alpha=1.0)
    paper = build_uer()
    x = np.tile([1.5, -2.25, 0.5], (200_000, 1))
    for each in (mechanism, paper):
        found = each.estimate_mean(each.randomize(x, rng=3))
        assert np.all(np.abs(found.value - x[0]) < 5 * found.stderr)


def build_uer():
    with pytest.warns(bitldp.PrivacyClaimWarning):
        return bitldp.UER(3, bits=5, integer_bits=2, epsilon=1.0, alpha=1.5, calibration="paper")


def accumulating():
    """Mechanisms that have an estimate, and reports of theirs as the accumulator takes them."""
    found = []
    for case in CASES:
        mechanism = case.make()
        try:
            mechanism.accumulator()
        except ValueError:
            continue
        inputs = case.inputs(np.random.default_rng(0), 500)
        reports = mechanism.randomize(*inputs, rng=1)
        found.append(
            pytest.param(mechanism, reports if isinstance(reports, tuple) else (reports,), id=case.name)
        )
    return found


def parts_of(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(("mechanism", "reports"), accumulating())
def test_one_batch_is_many_merged(mechanism, reports):
    whole = mechanism.accumulator()
    whole.update(*reports)
    left, right = mechanism.accumulator(), mechanism.accumulator()
    for place, accumulator in ((0, left), (200, left), (250, right), (350, right)):
        stop = {0: 200, 200: 250, 250: 350, 350: 500}[place]
        accumulator.update(*(part[place:stop] for part in reports))
    right.update(*(part[:0] for part in reports))  # nothing changes nothing
    right.merge(left)
    right.merge(mechanism.accumulator())
    assert right.n == whole.n == 500
    for mine, theirs in zip(parts_of(right.estimate()), parts_of(whole.estimate()), strict=True):
        exact = isinstance(whole, CountAccumulator)
        np.testing.assert_allclose(
            mine.value, theirs.value, rtol=0 if exact else 1e-9, atol=0 if exact else 1e-9
        )
        np.testing.assert_allclose(mine.stderr, theirs.stderr, rtol=0 if exact else 1e-9)


@pytest.mark.parametrize(("mechanism", "reports"), accumulating())
def test_json_round_trip(mechanism, reports):
    accumulator = mechanism.accumulator()
    accumulator.update(*reports)
    text = accumulator.to_json()
    again = Accumulator.from_json(text, mechanism)
    assert type(again) is type(accumulator)
    assert again.to_json() == text
    for mine, theirs in zip(parts_of(again.estimate()), parts_of(accumulator.estimate()), strict=True):
        np.testing.assert_array_equal(mine.value, theirs.value)
    again.update(*reports)
    again.merge(accumulator)
    assert again.n == 1500
    document = json.loads(text)
    assert document["format"] == "bitldp.accumulator"
    assert document["version"] == 1
    assert document["mechanism"]["name"] == type(mechanism).__name__
    assert document["mechanism"]["parameters"].keys() == mechanism.fingerprint()["parameters"].keys()


def damaged(change):
    accumulator = bitldp.GRR(3, epsilon=1.0).accumulator()
    accumulator.update([0, 1, 2, 2])
    document = json.loads(accumulator.to_json())
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "is not JSON"),
        ("[]", "is not a bitldp.accumulator"),
        (damaged(lambda d: d.pop("format")), "is not a bitldp.accumulator"),
        (damaged(lambda d: d.update(version=2)), "version must be 1, got 2"),
        (damaged(lambda d: d.update(kind="mean")), "kind must be 'counts'"),
        (damaged(lambda d: d["mechanism"].update(name="OUE")), "another mechanism"),
        (damaged(lambda d: d["mechanism"]["parameters"].update(epsilon=2.0)), "other parameters"),
        (damaged(lambda d: d.pop("state")), "damaged"),
        (damaged(lambda d: d["state"].update(n=-1)), "damaged"),
        (damaged(lambda d: d["state"].update(n=3.0)), "damaged"),
        (damaged(lambda d: d["state"].update(counts=[1, 2])), "shape"),
        (damaged(lambda d: d["state"].update(counts=[[1], [2, 3]])), "shape"),
        (damaged(lambda d: d["state"].update(counts=[1, -2, 5])), "damaged"),
        (damaged(lambda d: d["state"].update(counts=[1, 2, 5])), "damaged"),
        (damaged(lambda d: d["state"].update(counts=[1.5, 1, 1])), "damaged"),
        (damaged(lambda d: d["state"].update(counts=[1, 1, 1])), "do not add up"),
        (damaged(lambda d: d["state"].update(counts=[2**62, 2**62, 4], n=4)), "damaged"),
        (damaged(lambda d: d["state"].update(counts=[2**63 - 1, 2**63 - 1, 2], n=2**63 - 1)), "add up"),
        (damaged(lambda d: d["state"].update(n=2**63)), "damaged"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_damaged_json_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        CountAccumulator.from_json(text, bitldp.GRR(3, epsilon=1.0))


def test_damaged_means_are_refused():
    mechanism = bitldp.FRR(2, epsilon=9.0)
    accumulator = mechanism.accumulator()
    accumulator.update(mechanism.randomize(np.zeros((5, 2)), rng=1))
    good = json.loads(accumulator.to_json())
    for state in (
        {"m2": [-1.0, 0.0]},
        {"mean": [0.0]},
        {"mean": [0.0, None]},
        {"m2": ["a", "b"]},
        {"n": True},
    ):
        with pytest.raises(ValueError, match="text"):
            MeanAccumulator.from_json(json.dumps({**good, "state": {**good["state"], **state}}), mechanism)
    with pytest.raises(TypeError, match="mechanism: accumulates with MeanAccumulator"):
        CountAccumulator.from_json(json.dumps(good), mechanism)


def test_only_reports_of_one_mechanism_are_merged():
    first, second = bitldp.GRR(3, epsilon=1.0).accumulator(), bitldp.GRR(3, epsilon=1.5).accumulator()
    with pytest.raises(ValueError, match="other: accumulates the reports of another"):
        first.merge(second)
    with pytest.raises(TypeError, match="other: must be a CountAccumulator"):
        first.merge(bitldp.FRR(2, epsilon=1.0).accumulator())
    with pytest.raises(ValueError, match="other: accumulates the reports of another"):
        bitldp.SUE(3, epsilon=1.0).accumulator().merge(bitldp.OUE(3, epsilon=1.0).accumulator())


def test_bad_reports_leave_an_accumulator_unchanged():
    mechanism = bitldp.FRR(2, bits=4, integer_bits=1, epsilon=9.0)
    accumulator = mechanism.accumulator()
    accumulator.update(mechanism.randomize(np.zeros((5, 2)), rng=1))
    before = accumulator.to_json()
    codes = np.zeros((700_000, 2), np.uint8)  # more than one pass
    codes[-1, 1] = 16
    for bad, kind in (
        (codes, ValueError),
        (np.zeros((3, 3), np.uint8), ValueError),
        (np.zeros((3, 2)), TypeError),
    ):
        with pytest.raises(kind, match="reports"):
            accumulator.update(bad)
    assert accumulator.to_json() == before
    both = bitldp.BitRand(2, categories=3, epsilon_x=9.0, epsilon_y=1.0).accumulator()
    for x, y in (([[1, 2]], [3]), ([[1, 2]], [0, 1])):
        with pytest.raises(ValueError, match=r"reports|labels"):
            both.update(x, y)
    assert both.n == both.features.n == both.labels.n == 0


def test_empty_and_single():
    mechanism = bitldp.FRR(2, epsilon=9.0)
    for attempt in (
        mechanism.accumulator().estimate,
        lambda: mechanism.estimate_mean(np.zeros((0, 2), np.uint16)),
    ):
        with pytest.raises(ValueError, match="at least one"):
            attempt()
    alone = mechanism.estimate_mean(np.zeros((1, 2), np.uint16))
    assert np.isfinite(alone.value).all()
    assert np.isnan(alone.stderr).all()
    with pytest.raises(ValueError, match="at least one"):
        bitldp.GRR(3, epsilon=1.0).estimate_frequencies(np.zeros(0, np.uint8))
    with pytest.raises(ValueError, match="at least one"):
        bitldp.BRR(3, epsilon=1.0, m=1).estimate_mean(np.zeros(0, np.uint8))


@given(st.lists(st.integers(0, 60), min_size=0, max_size=5), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_merging_in_any_order_counts_the_same(sizes, seed):
    mechanism = bitldp.OUE(4, epsilon=1.0)
    rng = np.random.default_rng(seed)
    batches = [mechanism.randomize(rng.integers(0, 4, size), rng=rng) for size in sizes]
    totals = []
    for order in (batches, batches[::-1]):
        total = mechanism.accumulator()
        for batch in order:
            part = mechanism.accumulator()
            part.update(batch)
            total.merge(part)
        totals.append((total.n, total.counts.tolist()))
    assert totals[0] == totals[1]
    assert totals[0][0] == sum(sizes)


def test_a_single_record_is_a_batch():
    mechanism = bitldp.FRR(3, epsilon=9.0)
    reports = mechanism.randomize(np.zeros((2, 3)), rng=1)
    accumulator, whole = mechanism.accumulator(), mechanism.accumulator()
    for report in reports:
        accumulator.update(report)
    whole.update(reports)
    np.testing.assert_allclose(accumulator.estimate().value, whole.estimate().value)
    single = bitldp.FRR(1, epsilon=9.0)
    values = single.randomize(np.zeros(50), rng=1)  # of one feature, a row is many records
    assert single.estimate_mean(values).n == single.estimate_mean(values[:, None]).n == 50


def test_json_tells_candidates_and_functions_apart():
    points = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 1.0]])
    mechanism = bitldp.BRR(points, epsilon=1.0, m=1, metric=euclid)
    accumulator = mechanism.accumulator()
    accumulator.update([0, 1, 1])
    text = accumulator.to_json()
    assert f"{__name__}.euclid" in text
    assert Accumulator.from_json(text, mechanism).counts.tolist() == [1, 2, 0]
    moved = bitldp.BRR(points + 1.0, epsilon=1.0, m=1, metric=euclid)
    with pytest.raises(ValueError, match="other parameters"):
        Accumulator.from_json(text, moved)


def euclid(a, b):
    """Distances, as a caller would write them."""
    return np.linalg.norm(a[:, None] - b, axis=-1)


def test_damaged_pairs_are_refused():
    mechanism = bitldp.BitRand(2, categories=3, epsilon_x=9.0, epsilon_y=1.0)
    accumulator = mechanism.accumulator()
    accumulator.update(*mechanism.randomize(np.zeros((4, 2)), [0, 1, 2, 0], rng=1))
    good = json.loads(accumulator.to_json())
    for change in ({"labels": None}, {"features": []}, {"labels": {**good["state"]["labels"], "n": 3}}):
        with pytest.raises(ValueError, match="text: the contents are damaged"):
            Accumulator.from_json(json.dumps({**good, "state": {**good["state"], **change}}), mechanism)
