"""Records of several categories, and of numbers and categories: law, estimates, variance, refusals."""

from __future__ import annotations

import itertools
import math
import pickle

import bitldp
import numpy as np
import pytest
from bitldp import CategoricalRecord, MixedRecord
from bitldp._core import CHUNK
from bitldp.mechanism.attributes.release import common, payload, reports_of
from bitldp.record.choice import ORACLES, thriftiest

pytest.importorskip("scipy")
N = 60_000
SETTINGS = [
    {},
    {"k": 2},
    {"spend": "split"},
    {"oracle": "GRR"},
    {"oracle": ("OUE", "GRR", "SUE"), "k": 3},
    {"oracle": ("SubsetSelection", "OUE", "BlockDesign"), "k": 2},
    {"k": None, "epsilon": 8.0},
]


def record(**options):
    k = {} if options.get("spend") == "split" else {"k": 1}
    return CategoricalRecord((2, 5, 30), **{"epsilon": 2.0, **k, **options})


def drawn(rng, n, sizes=(2, 5, 30)):
    """Return records whose categories are not alike: the first third of each is thrice as frequent."""
    table = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    common = np.stack([rng.integers(0, -(-size // 3), n) for size in sizes], axis=1)
    return np.where(rng.random((n, len(sizes))) < 0.5, table, common)


@pytest.mark.parametrize(("sizes", "epsilon", "goal"), [([16] * 5, 1.0, 19.0), ([16] * 10, 4.0, 0.96)])
def test_variance_of_a_category_and_attribute(sizes, epsilon, goal):
    """Where GRR with a split budget has 315 and 65.8."""
    mechanism = CategoricalRecord(sizes, epsilon=epsilon)
    assert mechanism.mean_variance() <= goal
    table = np.concatenate(mechanism.variance(np.arange(16)[:, None].repeat(len(sizes), axis=1)), axis=1)
    assert mechanism.mean_variance() == pytest.approx(table.mean(), rel=1e-9)
    assert mechanism.worst_variance() == pytest.approx(table.max(), rel=1e-9)
    split = bitldp.GRR(16, epsilon=epsilon, features=len(sizes))
    assert split.mean_variance() > 9.0 * mechanism.mean_variance()


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("oracle", ["GRR", ("GRR", "GRR", "SUE"), "OUE"])
def test_epsilon_by_enumeration(epsilon, oracle):
    """All reports of all pairs of records, the coin's choice among them."""
    sizes = (2, 3, 3)

    def rows(part, size):
        """Return P(report | category), the bits of an encoding multiplied out."""
        if isinstance(part, bitldp.GRR):
            return part.probabilities()
        p, q = part._law()
        bits = np.array(list(itertools.product((0, 1), repeat=size)))
        chances = np.where(np.eye(size)[:, None, :] == 1.0, p, q)
        return np.where(bits[None] == 1, chances, 1.0 - chances).prod(axis=2)

    for spend in ("sample", "split"):
        k = 1 if spend == "sample" else None
        mechanism = CategoricalRecord(sizes, epsilon=epsilon, oracle=oracle, spend=spend, k=k)
        tables = [rows(part, size) for part, size in zip(mechanism.mechanisms, sizes, strict=True)]
        worst = [np.log(table.max(axis=0) / table.min(axis=0)).max() for table in tables]
        whole = max(worst) if spend == "sample" else sum(worst)
        assert mechanism.guarantee.record == pytest.approx(whole, rel=1e-9)
        assert mechanism.guarantee.record <= epsilon
        assert mechanism.guarantee.feature == pytest.approx(max(worst), rel=1e-9)


def test_two_of_several_cost_the_two_worst():
    mechanism = record(k=2, epsilon=3.0)
    each = sorted(part.guarantee.record for part in mechanism.mechanisms)
    assert mechanism.guarantee.record == pytest.approx(each[-1] + each[-2], rel=1e-12)
    assert 2.9999 < mechanism.guarantee.record <= 3.0


@pytest.mark.parametrize("options", SETTINGS)
def test_estimates(options):
    """60,000 records: all within 5 standard errors, which are about what the variance says."""
    mechanism, rng = record(**options), np.random.default_rng(4)
    x = drawn(rng, N)
    estimates = mechanism.estimate_frequencies(mechanism.randomize(x, rng=rng))
    variances = mechanism.variance(x)
    share = 1.0 if mechanism.k is None else mechanism.k / 3
    for place, (estimate, size) in enumerate(zip(estimates, mechanism.attributes, strict=True)):
        truth = np.bincount(x[:, place], minlength=size) / N
        assert estimate.value.shape == (size,)
        assert (np.abs(estimate.value - truth) < 5.0 * estimate.stderr).all()
        assert abs(estimate.n - N * share) < 5.0 * math.sqrt(N * share)
        # the standard error takes the records for a sample, too; the variance is at equal frequencies
        most = np.sqrt((variances[place].mean(axis=0) + truth * (1 - truth)) / N)
        assert (estimate.stderr < 1.05 * most).all()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"k": 2}, {"oracle": "OUE"}])
def test_variance_by_simulation(options):
    """What is sampled as the oracle's letter, and 1/size otherwise: 100,000 reports of one record.

    Means within 5.5 standard errors, variances within 6: 1e-6 over all.
    """
    mechanism, x, n = record(**options), np.array([1, 3, 29]), 100_000
    reports = mechanism.randomize(np.tile(x, (n, 1)), rng=6)
    said = mechanism.variance(x)
    for place, (answers, size) in enumerate(
        zip(mechanism.answers(reports), mechanism.attributes, strict=True)
    ):
        part = mechanism.mechanisms[place]
        p, q = part._check_informative()
        bits = answers.reports
        if bits.ndim == 1:
            bits = part.decode(bits)
            bits = bits[:, None] == np.arange(size) if bits.ndim == 1 else bits * (p - q) + q
        worth = np.full((n, size), 1.0 / size)
        worth[answers.records] += 3 / mechanism.k * ((bits - q) / (p - q) - 1.0 / size)
        deviations = worth - worth.mean(axis=0)
        variance, fourth = np.square(deviations).mean(axis=0), (deviations**4).mean(axis=0)
        indicator = np.arange(size) == x[place]
        assert (np.abs(worth.mean(axis=0) - indicator) < 5.5 * np.sqrt(variance / n)).all()
        assert (np.abs(variance - said[place][0]) < 6.0 * np.sqrt((fourth - variance**2) / n)).all()


@pytest.mark.parametrize("kind", ["categories", "mixed"])
def test_the_coin_does_not_look(kind):
    """The same key draws the same attributes, whatever the records are; each as often as another."""
    if kind == "categories":
        mechanism, x = record(k=2), (np.tile([1, 4, 29], (N, 1)),)
    else:
        mechanism = MixedRecord([9], features=2, epsilon=1.0, k=2)
        x = (np.tile([0.3, 1.0], (N, 1)), np.full((N, 1), 8))
    zeros = tuple(np.zeros_like(each) for each in x)
    one, other = (mechanism.randomize(*each, rng=3) for each in (x, zeros))
    np.testing.assert_array_equal(one.indices, other.indices)
    counts = np.bincount(one.indices.ravel(), minlength=3)
    # n = 60,000: each is drawn with chance 2/3; 5 standard deviations
    assert (np.abs(counts - N * 2 / 3) < 5.0 * math.sqrt(N * 2 / 9)).all()


@pytest.mark.parametrize("options", SETTINGS)
def test_chunks_concatenate(options):
    mechanism, rng = record(**options), np.random.default_rng(0)
    x = drawn(rng, 2 * CHUNK + 100)
    whole = mechanism.randomize(x, rng=8)
    for start, stop in ((0, CHUNK), (CHUNK, None), (2 * CHUNK, None)):
        part = mechanism.randomize(x[start:stop], rng=8, first_chunk=start // CHUNK)
        for one, other in zip(part, whole, strict=True):
            np.testing.assert_array_equal(one, other[start:stop])


@pytest.mark.parametrize("options", SETTINGS)
def test_accumulators(options):
    """Batches, merges, packed bytes and JSON give what one call gives; bad ones add nothing."""
    mechanism, rng = record(**options), np.random.default_rng(5)
    x = drawn(rng, 3000)
    reports = mechanism.randomize(x, rng=2)
    expected = mechanism.estimate_frequencies(reports)
    one, two = mechanism.accumulator(), mechanism.accumulator()
    one.update(tuple(each[:1000] for each in reports))
    packed = mechanism.randomize(x, rng=2, output="packed")
    assert 8 * sum(each.size for each in packed) == 3000 * mechanism.report_bits
    two.update(tuple(each[1000:] for each in reports))
    one.merge(type(two).from_json(two.to_json(), mechanism))
    third = mechanism.accumulator()
    third.update(packed, output="packed", records=3000)
    before = third.to_json()
    worst = tuple(np.full_like(each, 255) for each in reports)
    with pytest.raises((ValueError, TypeError), match=r"^reports"):
        third.update(worst)
    assert third.to_json() == before
    for accumulator in (one, third):
        assert accumulator.n == 3000
        for found, right in zip(accumulator.estimate(), expected, strict=True):
            np.testing.assert_array_equal(found.value, right.value)
            np.testing.assert_array_equal(found.stderr, right.stderr)
            assert found.n == right.n
    for found in third.estimate(project=True):
        assert found.projected
        assert found.value.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="another mechanism"):
        one.merge(record(epsilon=1.0).accumulator())
    with pytest.raises(ValueError, match="number of reports is damaged"):
        type(two).from_json(two.to_json().replace('"n": 2000, "att', '"n": 1999, "att'), mechanism)


def test_no_report_of_an_attribute_is_no_estimate():
    mechanism = record()
    reports = bitldp.SampledReports(np.array([[0], [2]], np.uint8), np.zeros((2, 1), np.uint8))
    with pytest.raises(ValueError, match="reports: at least one of attribute 1 is needed"):
        mechanism.estimate_frequencies(reports)


def test_the_best_oracle_is_held():
    mechanism = record()
    assert mechanism.oracle == ("GRR", "GRR", "BlockDesign")
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism == record(oracle=mechanism.oracle)
    assert mechanism != record(oracle="GRR")
    assert mechanism.fingerprint()["parameters"]["oracle"] == ["GRR", "GRR", "BlockDesign"]
    for size, epsilon in itertools.product((2, 3, 8, 40, 200), (0.5, 1.0, 3.0, 6.0)):
        (best,) = CategoricalRecord([size], epsilon=epsilon).mechanisms
        others = [kind(size, epsilon=epsilon) for kind in ORACLES.values()]
        assert type(best).__name__ in ("GRR", "OUE", "SubsetSelection", "BlockDesign")
        least = min(each.mean_variance() for each in others)
        near = [each for each in others if each.mean_variance() <= 1.02 * least]
        assert best in near
        assert best.report_bits == min(each.report_bits for each in near)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 6.0, 20.0])
def test_the_best_number_of_attributes_is_sampled(epsilon):
    for make in (
        lambda **more: CategoricalRecord([2, 2, 3, 9, 2], epsilon=epsilon, **more),
        lambda **more: MixedRecord([2, 5], features=3, epsilon=epsilon, **more),
    ):
        every = {k: make(k=k).mean_variance() for k in range(1, 6)}
        assert make().k == min(every, key=every.get)
        assert make(spend="split").mean_variance() == pytest.approx(every[5], rel=1e-12)
    assert CategoricalRecord([16] * 5, epsilon=1.0).k == 1


def test_the_thriftiest_of_the_good_ones():
    assert thriftiest([1.0, 1.019, 1.03], [9, 5, 1]) == 1
    assert thriftiest([1.019, 1.0, 1.01], [5, 5, 5]) == 1
    assert thriftiest([3.0], [7]) == 0


def test_one_form_for_reports_of_any_kind():
    """A mechanism whose report has two parts: bits, and back."""
    signs = bitldp.SampledSigns(6, epsilon=3.0, k=2)
    reports = signs.randomize(np.ones((50, 6)), rng=1)
    form = common([signs, bitldp.GRR(40, epsilon=1.0)])
    assert form == (signs.report_bits, 1) == (8, 1)
    for mechanism, given in ((signs, reports), (bitldp.GRR(40, epsilon=1.0), np.arange(40, dtype=np.uint8))):
        n = len(given[0]) if isinstance(given, tuple) else len(given)
        bits = payload(mechanism, given, n, form)
        assert set(np.unique(bits)) <= {0, 1}
        back = reports_of(mechanism, bits, form)
        pairs = zip(back, given, strict=True) if isinstance(given, tuple) else [(back, given)]
        for one, other in pairs:
            np.testing.assert_array_equal(np.ravel(one), np.ravel(other))
    bits[0, 7] = 1
    with pytest.raises(ValueError, match="bits beyond those"):
        reports_of(bitldp.GRR(40, epsilon=1.0), bits, form)


def test_what_is_not_sampled_is_checked_as_well():
    """Whether a record is refused must not depend on the coin."""
    x = np.zeros((200, 3), int)
    x[150, 1] = 5
    for seed in range(20):
        with pytest.raises(ValueError, match=r"^x: the integer at index \(150, 1\) is outside \[0, 5\)"):
            record().randomize(x, rng=seed)
    numbers = np.zeros((50, 2))
    numbers[7, 1] = np.nan
    mechanism = MixedRecord([4], features=2, epsilon=1.0)
    for seed in range(20):
        with pytest.raises(ValueError, match=r"^x: the value at index \(7, 1\) is NaN"):
            mechanism.randomize(numbers, np.zeros((50, 1), int), rng=seed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attributes": []}, "attributes: must be of 1"),
        ({"attributes": 5}, "attributes: must be a sequence"),
        ({"attributes": "2,3"}, "attributes: must be a sequence"),
        ({"attributes": [2, 1]}, r"attributes\[1\]: must be at least 2"),
        ({"attributes": [2, 2.5]}, r"attributes\[1\]"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"k": 4}, "k: must be between 1 and 3"),
        ({"k": 2, "spend": "split"}, "k: is for spend='sample'"),
        ({"spend": "both"}, "spend: must be one of"),
        ({"oracle": "FRR"}, "oracle: must be one of"),
        ({"oracle": ("GRR",)}, "oracle: one name, or one for each of 3"),
        ({"oracle": 3}, "oracle: must be a str"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises((ValueError, TypeError), match=rf"^{message}"):
        CategoricalRecord(**{"attributes": (2, 3, 4), "epsilon": 1.0, **arguments})


def test_at_epsilon_zero_nothing_is_said():
    for mechanism in (record(epsilon=0.0), MixedRecord([3], features=1, epsilon=0.0)):
        assert mechanism.guarantee.record == 0.0
        with pytest.raises(ValueError, match="epsilon 0"):
            mechanism.accumulator()
        with pytest.raises(ValueError, match="epsilon 0"):
            mechanism.mean_variance()
    assert record(epsilon=0.0).randomize(np.zeros((4, 3), int)).indices.shape == (4, 1)


def test_bad_reports_are_refused():
    mechanism = record()
    good = mechanism.randomize(np.zeros((6, 3), int), rng=1)
    for bad in (
        good.indices,
        (good.indices, good.codes[:3]),
        (good.indices + 3, good.codes),
        (good.indices, good.codes.astype(np.uint16) + 5000),
        (good.indices, good.codes[:, 0]),
        (good.indices.astype(float), good.codes),
    ):
        with pytest.raises((ValueError, TypeError), match=r"^reports"):
            mechanism.decode(bad)
    twice = record(k=2, oracle="GRR")
    with pytest.raises(ValueError, match="record 1 has an attribute twice"):
        twice.decode((np.array([[0, 1], [2, 2]]), np.zeros((2, 2), np.uint8)))
    split = record(spend="split", oracle="GRR")
    with pytest.raises(ValueError, match="as many records"):
        split.decode((np.zeros((2, 1), np.uint8), np.zeros((3, 1), np.uint8), np.zeros((2, 1), np.uint8)))


def test_decoded_reports_are_those_of_the_attributes():
    mechanism = record(oracle="GRR", epsilon=40.0)
    x = drawn(np.random.default_rng(1), 500)
    for place, (records, values) in enumerate(mechanism.decode(mechanism.randomize(x, rng=1))):
        np.testing.assert_array_equal(values, x[records, place])


@pytest.mark.parametrize("options", [{"oracle": "GRR"}, {}, {"spend": "split"}])
def test_audits_pass(options):
    """Samples of 20,000; a right mechanism fails with a chance of 1e-3 were the seed drawn."""
    from bitldp.audit import audit

    for mechanism in (record(**options), MixedRecord([2, 8], features=1, epsilon=2.0, **options)):
        result = audit(mechanism, n=20_000, rng=1)
        assert result.passed
        assert result.lower > 0.9
    same = np.array([0, 1, 2]), np.array([0, 2, 2])  # in attributes that are alike, too
    assert audit(record(**options), n=20_000, rng=1, pair=same).passed


def test_a_public_choice_is_no_product():
    """Accounted as the worst attribute, not as all of them together."""
    sampled, split = record(), record(spend="split")
    assert [each.times for each in sampled._symbols()] == [1]
    assert sum(each.times for each in split._symbols()) == 3
    for mechanism in (sampled, split):
        assert bitldp.account([(mechanism, 1)], delta=1e-9).epsilon == pytest.approx(2.0, rel=1e-3)
