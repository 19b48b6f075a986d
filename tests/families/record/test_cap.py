"""Lists of subsets of which enough hit: the law by enumeration, unbiased estimates, the search, refusals."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from fractions import Fraction
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.privacy import ONE
from bitldp.record.cap_search import Lists, _evaluated, best_cap
from bitldp.record.cap_table import TableAccumulator
from bitldp.release.sampled import SampledReports

SMALL = {
    "sampled": lambda: bitldp.RecordCap([2, 3, 3], epsilon=2.0, m=2, hits=2, weights=(2, 1, 3)),
    "one": lambda: bitldp.RecordCap([2, 3, 3], epsilon=2.0, m=1),
    "all": lambda: bitldp.RecordCap([2, 3, 2], epsilon=3.0, m=3, hits=1, subset=1),
    "subsets": lambda: bitldp.RecordCap([3, 4, 3], epsilon=2.0, m=3, hits=3, subset=(2, 2, 1)),
    "yes-or-no": lambda: bitldp.RecordCap([2, 2, 2], epsilon=4.0, m=3, hits=3),
    "sampled-subsets": lambda: bitldp.RecordCap([4, 3, 3], epsilon=2.0, m=2, hits=1, subset=(2, 1, 1)),
}


def subsets(mechanism: Any, attribute: int) -> list[tuple[int, ...]]:
    """Return all subsets of the categories of an attribute that a report may have."""
    return list(itertools.combinations(range(mechanism._sizes[attribute]), mechanism.subset[attribute]))


def sets_of_attributes(mechanism: Any) -> list[tuple[tuple[int, ...], float]]:
    """Return all sets of attributes and how likely each is: as the product of its weights."""
    drawn = list(itertools.combinations(range(len(mechanism._sizes)), mechanism.m))
    weights = np.array([math.prod(mechanism.weights[j] for j in each) for each in drawn], float)
    return list(zip(drawn, (weights / weights.sum()).tolist(), strict=True))


def law(mechanism: Any, record: Any) -> list[tuple[tuple[int, ...], tuple[tuple[int, ...], ...], float]]:
    """Return all (attributes, subsets, probability) of a record by counting lists of subsets, one by one."""
    result = []
    for drawn, chance in sets_of_attributes(mechanism):
        lists = list(itertools.product(*(subsets(mechanism, j) for j in drawn)))
        likely = [
            sum(record[j] in own for j, own in zip(drawn, each, strict=True)) >= mechanism.hits
            for each in lists
        ]
        high = channel_of(mechanism, drawn).high / ONE
        for each, near in zip(lists, likely, strict=True):
            result.append((drawn, each, chance * (high * near / sum(likely) + (1.0 - high) / len(lists))))
    return result


def channel_of(mechanism: Any, drawn: tuple[int, ...]) -> Any:
    """Return the channel of a set of attributes."""
    kinds = len(mechanism._law.kinds)
    counts = tuple(np.bincount([mechanism._kind_of[j] for j in drawn], minlength=kinds).tolist())
    return next(each.channel for each in mechanism._law.drawn if each.counts == counts)


def report(mechanism: Any, drawn: tuple[int, ...], lists: tuple[tuple[int, ...], ...]) -> Any:
    """Return one report as the mechanism gives it."""
    bits = {j: np.isin(np.arange(mechanism._sizes[j]), own) for j, own in zip(drawn, lists, strict=True)}
    if mechanism.k is None:
        return tuple(
            np.concatenate(
                [
                    _spelled(mechanism, j, bits[j], run.mechanism._report_parts[0])
                    for j in range(run.start, run.stop)
                ],
                axis=1,
            )
            for run in mechanism._runs
        )
    codes = np.stack([_spelled(mechanism, j, bits[j], mechanism._form)[0] for j in drawn])
    return SampledReports(np.array([drawn]), codes[None].reshape(mechanism._shape(1)))


def _spelled(mechanism: Any, j: int, bits: np.ndarray, form: tuple[int, int]) -> np.ndarray:
    if mechanism.subset[j] > 1:
        return np.pad(bits.astype(np.uint8), (0, form[0] - len(bits)))[None]
    code = int(np.argmax(bits))
    if form[0] == 1:
        return np.array([[code]], np.uint8)
    width = (len(bits) - 1).bit_length()
    spelled = [code >> place & 1 for place in range(width - 1, -1, -1)]
    return np.pad(np.array(spelled, np.uint8), (0, form[0] - width))[None]


@pytest.mark.parametrize("name", SMALL)
def test_epsilon_is_that_of_the_lists(name: str) -> None:
    mechanism = SMALL[name]()
    sizes = mechanism._sizes
    records = list(itertools.product(*map(range, sizes)))
    table = np.array([[chance for _, _, chance in law(mechanism, each)] for each in records])
    assert table.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    worst = np.log(table.max(axis=0) / table.min(axis=0)).max()
    assert worst == pytest.approx(mechanism.guarantee.record, abs=1e-12)
    assert mechanism.epsilon - 1e-9 <= mechanism.guarantee.record <= mechanism.epsilon


@pytest.mark.parametrize("name", SMALL)
def test_frequencies_are_unbiased_and_of_the_variance(name: str) -> None:
    mechanism = SMALL[name]()
    record = [each - 1 for each in mechanism._sizes]
    variances = mechanism.variance(record)
    for attribute, part in enumerate(mechanism.mechanisms):
        k, chance = part._cells, mechanism.chances[attribute]
        mean, second = np.zeros(k), np.zeros(k)
        for drawn, lists, probability in law(mechanism, record):
            letter = np.full(k, 1.0 / k)
            if attribute in drawn:
                accumulator = mechanism.accumulator().attributes[attribute]
                accumulator.n = 1
                accumulator.counts += np.isin(np.arange(k), lists[drawn.index(attribute)])
                letter += (accumulator.estimate().value - 1.0 / k) / chance
            mean += probability * letter
            second += probability * np.square(letter)
        assert mean == pytest.approx((np.arange(k) == record[attribute]) * 1.0, abs=1e-12)
        assert second - np.square(mean) == pytest.approx(variances[attribute][0], rel=1e-10)


@pytest.mark.parametrize("name", ["sampled", "all", "subsets", "yes-or-no", "sampled-subsets"])
def test_tables_are_unbiased_and_of_the_variance(name: str) -> None:
    mechanism = SMALL[name]()
    record = [0, 2, 1] if name != "yes-or-no" else [0, 1, 1]
    tables = [(0, 1), (2, 1)] + ([(1, 0, 2)] if mechanism.m == 3 else [])
    for attributes in tables:
        accumulator = mechanism.table_accumulator(attributes)
        shape = tuple(mechanism._sizes[j] for j in attributes)
        truth = np.zeros(shape)
        truth[tuple(record[j] for j in attributes)] = 1.0
        mean, second, chances = np.zeros(shape), np.zeros(shape), 0.0
        middle = 1.0 / truth.size
        for drawn, lists, probability in law(mechanism, record):
            letter = np.full(shape, middle)
            if set(attributes) <= set(drawn):
                chances += probability
                one = mechanism.estimate_table(report(mechanism, drawn, lists), attributes)
                assert one.n == 1
                letter += (one.value - middle) / accumulator._law.chance
            mean += probability * letter
            second += probability * np.square(letter)
        assert chances == pytest.approx(accumulator._law.chance, abs=1e-12)
        assert mean == pytest.approx(truth, abs=1e-10)
        expected = mechanism.table_variance(record, attributes)[0]
        assert second - np.square(mean) == pytest.approx(expected, rel=1e-9)


# Mean variance of what was best before over that of the best cap: k, d, and epsilon 2, 4, 6, 8, 12.
GAINS = {
    (2, 2): (1.49, 4.68, 11, 28, 203),
    (2, 5): (1.36, 2.99, 11.3, 54, 1116),
    (2, 10): (1.33, 2.37, 3.9, 7.0, 148),
    (2, 16): (1.32, 2.23, 3.3, 4.7, 10),
    (3, 5): (1, 1.83, 2.92, 8.82, 225),
    (3, 10): (1, 1.68, 2.18, 2.98, 6.65),
    (6, 5): (1, 1, 1.69, 2.28, 10.8),
    (16, 2): (1.02, 1, 1, 3.83, 25.8),
    (16, 5): (1.02, 1, 1, 1.65, 2.27),
    (16, 10): (1.02, 1, 1, 1.52, 1.76),
}


def least(k: int, d: int, epsilon: float) -> float:
    """Return the least mean variance of any (m, w, kappa), by sums over the number of hits."""
    best = math.inf
    for m, w in itertools.product(range(1, d + 1), range(1, k // 2 + 1)):
        r = w / k
        weights = np.array([math.comb(m, a) * r**a * (1.0 - r) ** (m - a) for a in range(m + 1)])
        hits = np.arange(m + 1)
        for kappa in range(1, m + 1):
            likely = weights * np.where(hits >= kappa, math.exp(epsilon), 1.0)
            p = (likely * hits).sum() / likely.sum() / m
            gap = p - (w - p) / (k - 1)
            if gap > 1e-9:
                best = min(best, d / m * r * (1.0 - r) / gap**2 - (k - 1) / k**2)
    return best


@pytest.mark.parametrize(("k", "d"), GAINS)
def test_the_choice_is_the_best_cap(k: int, d: int) -> None:
    """Within 2 %, for which a report may be shorter; as far below one sampled attribute as is known."""
    for epsilon, gain in zip((2.0, 4.0, 6.0, 8.0, 12.0), GAINS[k, d], strict=True):
        mechanism = bitldp.RecordCap([k] * d, epsilon=epsilon)
        best = least(k, d, epsilon)
        assert best * (1.0 - 1e-9) <= mechanism.mean_variance() <= best * 1.02
        sampled = bitldp.CategoricalRecord([k] * d, epsilon=epsilon).mean_variance()
        assert sampled / mechanism.mean_variance() >= 0.96 * gain


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_one_attribute_is_subset_selection(epsilon: float) -> None:
    own, other = bitldp.RecordCap([20], epsilon=epsilon), bitldp.SubsetSelection(20, epsilon=epsilon)
    assert own.mean_variance() == pytest.approx(other.mean_variance(), rel=0.02)
    assert bitldp.RecordCap([20], epsilon=epsilon, subset=other.size).mean_variance() == pytest.approx(
        other.mean_variance(), rel=1e-8
    )


def test_yes_or_no_is_privunit_on_the_hypercube() -> None:
    cube = bitldp.HypercubePrivUnit(16, epsilon=8.0)
    own = bitldp.RecordCap([2] * 16, epsilon=8.0, m=16)
    assert own.hits == cube.threshold
    # an indicator is half of a sign, which is dithered where the variance is the worst
    assert own.worst_variance() == pytest.approx((cube.worst_variance() - 1.0) / 4.0, rel=1e-8)


def test_chances_are_in_proportion_to_deviations() -> None:
    """The least variance for one drawn attribute; even chances cost 29 %."""
    sizes = [9, 16, 7, 15, 6, 5, 2, 42]
    mechanism = bitldp.RecordCap(sizes, epsilon=1.0)
    even = bitldp.RecordCap(sizes, epsilon=1.0, m=1, subset=mechanism.subset, weights=1)
    assert mechanism.m == 1
    assert even.mean_variance() / mechanism.mean_variance() == pytest.approx(1.29, abs=0.01)
    spent = [k * one.mean_variance() for k, one in zip(sizes, mechanism.mechanisms, strict=True)]
    spent = [each + 1.0 - 1.0 / k for k, each in zip(sizes, spent, strict=True)]  # second moments about 1/k
    ratios = np.array(mechanism.chances) / np.sqrt(spent)
    assert ratios.max() / ratios.min() < 1.02
    assert sum(mechanism.chances) == pytest.approx(1.0)


def test_weights_never_cost() -> None:
    for sizes in ([2, 3, 40], [2] * 5 + [16] * 5):
        for epsilon in (1.0, 8.0):
            mechanism = bitldp.RecordCap(sizes, epsilon=epsilon)
            even = bitldp.RecordCap(
                sizes, epsilon=epsilon, m=mechanism.m, subset=mechanism.subset, hits=mechanism.hits, weights=1
            )
            assert mechanism.mean_variance() <= even.mean_variance() * (1.0 + 1e-3)


def test_tables_are_what_is_chosen_for_them() -> None:
    """Closed form over all cells and records; five questions at epsilon 2: 2.65 for 4.77."""
    records = np.array(list(itertools.product(range(2), repeat=2)))
    means = []
    for aim in ("frequencies", "tables"):
        mechanism = bitldp.RecordCap([2] * 5, epsilon=2.0, aim=aim)
        x = np.pad(records, ((0, 0), (0, 3)))
        means.append(float(mechanism.table_variance(x, (0, 1)).mean()))
    assert means == pytest.approx([4.77, 2.653], abs=5e-3)
    every = [
        bitldp.RecordCap([2] * 5, epsilon=2.0, m=m, hits=h) for m in range(2, 6) for h in range(1, m + 1)
    ]
    known = [each for each in every if each._law.gain((0, 0))]  # of the others, a table is refused
    found = [float(each.table_variance(x, (0, 1)).mean()) for each in known]
    assert means[1] <= 1.02 * min(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: bitldp.RecordCap([3, 3, 3, 3], epsilon=4.0, m=3, hits=2),
        lambda: bitldp.RecordCap([2, 5, 3], epsilon=3.0, m=2, hits=2, subset=(1, 2, 1)),
        lambda: bitldp.RecordCap([2, 4, 3], epsilon=5.0, m=3, hits=3),
    ],
)
def test_the_law_holds_in_samples(make: Any) -> None:
    """At n = 1,000,000, one record: chances, means and variances within 5.2 standard errors (alpha 2e-7)."""
    n, mechanism = 1_000_000, make()
    d = len(mechanism._sizes)
    record = np.array([1, 0, 2, 1][:d])
    reports = mechanism.randomize(np.tile(record, (n, 1)), rng=20_261_123)
    tables = mechanism.estimate_table(reports, (0, 1))
    assert abs(tables.n / n - mechanism.table_accumulator((0, 1))._law.chance) < 5.2 * 0.5 / n**0.5
    truth = np.zeros(tables.value.shape)
    truth[record[0], record[1]] = 1.0
    law = mechanism.table_accumulator((0, 1))._law
    cells = np.array(list(np.ndindex(truth.shape))).reshape(*truth.shape, 2)
    own = law.second[tuple(np.moveaxis((cells == record[:2]).astype(int), -1, 0))] - np.square(truth)
    assert np.abs((tables.value - truth) / np.sqrt(own / tables.n)).max() < 5.2
    seen = np.square(tables.stderr) * tables.n
    top = np.square(law.letters).max()  # of a square's deviation
    assert np.abs(seen - own).max() < 5.2 * np.sqrt(top * own.max() / tables.n) + 1e-3
    for attribute, (rows, one) in enumerate(mechanism.answers(reports)):
        part = mechanism.mechanisms[attribute]
        assert abs(len(rows) / n - mechanism.chances[attribute]) < 5.2 * 0.5 / n**0.5
        p, q = part.probabilities()
        shares = part._support(one, np.arange(part._cells)).mean(axis=0)
        expected = np.where(np.arange(part._cells) == record[attribute], p, q)
        assert np.abs(shares - expected).max() < 5.2 * 0.5 / len(rows) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 60, 4_000])
def test_intervals_hold_the_truth(n: int) -> None:
    """250 estimates of each n: 95 % intervals hold at least 91 % (2.9 standard deviations below)."""
    mechanism = bitldp.RecordCap([2, 3, 3], epsilon=4.0, m=2, hits=2)
    rng = np.random.default_rng(7)
    held, held_table, times = np.zeros(3), 0.0, 250
    share = np.array([0.6, 0.3, 0.1])
    for _ in range(times):
        x = np.stack([rng.integers(0, 2, n), *(rng.choice(3, n, p=share) for _ in range(2))], axis=1)
        reports = mechanism.randomize(x, rng=rng)
        for attribute, (found, truth) in enumerate(
            zip(
                mechanism.accumulator()._filled(reports).attributes,
                (np.full(2, 0.5), share, share),
                strict=True,
            )
        ):
            if found.n:
                low, high = found.estimate().confidence_interval()
                held[attribute] += ((low <= truth) & (truth <= high)).mean()
            else:
                held[attribute] += 1.0
        try:
            low, high = mechanism.estimate_table(reports, (1, 2)).confidence_interval()
        except ValueError:  # no report of both
            held_table += 1.0
            continue
        truth = np.multiply.outer(share, share)
        held_table += float((~((low > truth) | (high < truth))).mean())
    assert (held / times).min() >= 0.91
    assert held_table / times >= 0.91


def test_tables_stream_merge_and_travel() -> None:
    mechanism = bitldp.RecordCap([2, ["a", "b", "c"], 4], epsilon=4.0, m=2, subset=(1, 1, 2))
    rng = np.random.default_rng(3)
    labels = np.array(["a", "b", "c"], object)
    x = np.array(
        [[a, labels[b], c] for a, b, c in zip(*(rng.integers(0, k, 900) for k in (2, 3, 4)), strict=True)],
        object,
    )
    reports = mechanism.randomize(x, rng=1)
    whole, one, other = (mechanism.table_accumulator((2, 1)) for _ in range(3))
    whole.update(reports)
    one.update(SampledReports(*(each[:400] for each in reports)))
    packed = mechanism.randomize(x, rng=1, output="packed")
    again = mechanism.table_accumulator((2, 1))
    again.update(packed, output="packed", records=900)
    other.update(SampledReports(*(each[400:] for each in reports)))
    one.merge(TableAccumulator.from_json(other.to_json(), mechanism))
    for each in (one, again):
        assert each.n == whole.n > 100
        np.testing.assert_array_equal(each.estimate().value, whole.estimate().value)
    estimate = whole.estimate()
    assert estimate.value.shape == (4, 3)
    assert estimate.labels.tolist() == ["a", "b", "c"]
    assert estimate.value.sum() == pytest.approx(1.0)
    assert estimate.influence > 0.0
    assert whole.estimate(project=True).value.min() >= 0.0
    with pytest.raises(ValueError, match="other attributes"):
        whole.merge(mechanism.table_accumulator((1, 2)))
    for broken in ({"attributes": [0, 1]}, {"n": -1}, {"counts": [[1]]}):
        document = json.loads(whole.to_json())
        document["state"] |= broken
        with pytest.raises(ValueError, match="text: "):
            TableAccumulator.from_json(json.dumps(document), mechanism)


def test_records_of_labels_are_those_of_codes() -> None:
    given = [3, ["x", "y"], [10, 20, 30]]
    named, coded = (bitldp.RecordCap(each, epsilon=5.0) for each in (given, [3, 2, 3]))
    codes = np.random.default_rng(0).integers(0, [3, 2, 3], (300, 3))
    rows = [[int(a), ["x", "y"][b], [10, 20, 30][c]] for a, b, c in codes]
    for one, other in zip(named.randomize(rows, rng=2), coded.randomize(codes, rng=2), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [None if each.labels is None else len(each.labels) for each in named.estimate_frequencies(
        named.randomize(rows, rng=2))] == [None, 2, 3]  # fmt: skip
    assert pickle.loads(pickle.dumps(named)) == named


def test_chunks_concatenate() -> None:
    """For one law, and for one of many a chunk."""
    for mechanism in (
        bitldp.RecordCap([3] * 4, epsilon=5.0, m=2),
        bitldp.RecordCap([2, 3, 4], epsilon=2.0, m=2),
        bitldp.RecordCap([2, 3, 4], epsilon=8.0),
    ):
        n = mechanism.chunk + 100
        x = np.random.default_rng(0).integers(0, 2, (n, len(mechanism._sizes)))
        whole = mechanism.randomize(x, rng=4)
        parts = [
            mechanism.randomize(x[: mechanism.chunk], rng=4),
            mechanism.randomize(x[mechanism.chunk :], rng=4, first_chunk=1),
        ]
        for both, *each in zip(whole, *parts, strict=True):
            np.testing.assert_array_equal(both, np.concatenate(each))


def test_the_draw_does_not_depend_on_the_record() -> None:
    mechanism = bitldp.RecordCap([2, 5, 3], epsilon=3.0, m=2)
    x = np.zeros((500, 3), int)
    one, other = mechanism.randomize(x, rng=9), mechanism.randomize(x + 1, rng=9)
    np.testing.assert_array_equal(one.indices, other.indices)
    assert (one.codes != other.codes).any()


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ([2, 3], {"m": 3}, "m: must be between 1 and 2"),
        ([2, 3], {"m": 1, "hits": 2}, "hits: must be between 1 and m"),
        ([2, 3], {"subset": (1, 3)}, "subset: that of attribute 1 is of 1 to 2"),
        ([2, 3], {"subset": (1,)}, "subset: one number, or one for each of 2"),
        ([2, 3], {"weights": (1, 0)}, r"weights\[1\]: must be between 1"),
        (list(range(2, 40)), {"m": 8}, "more than 256 ways"),
        ([2, 1 << 17], {}, "attributes: must be of at most 65,536 categories"),
    ],
)
def test_refusals(sizes: list[int], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bitldp.RecordCap(sizes, epsilon=2.0, **options)


def test_tables_that_cannot_be_are_refused() -> None:
    one = bitldp.RecordCap([2, 3], epsilon=1.0, m=1)
    with pytest.raises(ValueError, match="never these together"):
        one.table_accumulator((0, 1))
    half = bitldp.RecordCap([3, 4, 3], epsilon=2.0, m=3, hits=2, subset=(2, 2, 1))
    with pytest.raises(ValueError, match="carry no joint information about them"):
        half.table_accumulator((0, 2))
    for bad in ((0,), (0, 0), (0, 5), (0, 1, 2, 0), "01", 3):
        with pytest.raises((ValueError, TypeError), match="attributes"):
            half.table_accumulator(bad)
    with pytest.raises(ValueError, match="no unbiased decode"):
        bitldp.RecordCap([2, 3], epsilon=0.0).estimate_frequencies((np.zeros((4, 2)),))


def test_many_attributes_are_quick() -> None:
    """A hundred of as many sizes: their laws are 100; of sixteen, one."""
    mechanism = bitldp.RecordCap([16] * 16, epsilon=8.0)
    assert (mechanism.m, len(mechanism.channels)) == (2, 1)
    assert best_cap((16,), (16,), 8.0).hits == mechanism.hits
    assert Fraction(*mechanism.channels[0].share) == Fraction(1, 256)


@pytest.mark.parametrize("sizes", [[2, 3], [16] * 5, [2, 3, 40]])
@pytest.mark.parametrize("epsilon", [1e-9, 20.0, 44.0, 800.0])
def test_extreme_budgets(sizes: list[int], epsilon: float) -> None:
    """They are kept, and used as far as integers over 2**64 allow."""
    for aim in ("frequencies", "tables"):
        mechanism = bitldp.RecordCap(sizes, epsilon=epsilon, aim=aim)
        assert 0.0 < mechanism.guarantee.record <= epsilon
        assert mechanism.guarantee.record >= 0.99 * min(epsilon, 44.0)
        assert mechanism.mean_variance() >= 0.0


def test_sets_are_drawn_as_their_weights() -> None:
    """At n = 60,000: every set of attributes within 5.2 standard errors (alpha 2e-7 each)."""
    n = 60_000
    mechanism = bitldp.RecordCap([2, 2, 2, 3, 3], epsilon=2.0, m=2, weights=(1, 1, 1, 2, 2))
    indices, _ = mechanism.randomize(np.zeros((n, 5), int), rng=20_261_123)
    drawn = np.sort(indices, axis=1).astype(int)
    counts = np.bincount(drawn[:, 0] * 5 + drawn[:, 1], minlength=25).reshape(5, 5)
    for chosen, chance in sets_of_attributes(mechanism):
        assert abs(counts[chosen] / n - chance) < 5.2 * (chance * (1.0 - chance) / n) ** 0.5


@pytest.mark.parametrize(("sizes", "subset"), [([3, 3, 3], (1, 1, 1)), ([2, 3, 4], (1, 1, 2))])
def test_the_search_knows_the_variance_of_tables(sizes: list[int], subset: tuple[int, ...]) -> None:
    """That of every candidate is the mean of the closed form over all tables, cells and records."""
    kinds = tuple(sorted(set(zip(sizes, subset, strict=True))))
    members = tuple(list(zip(sizes, subset, strict=True)).count(each) for each in kinds)
    categories, own = zip(*kinds, strict=True)
    records = np.array(list(itertools.product(*map(range, sizes))))
    for m in (2, 3):
        costs = _evaluated(Lists(categories, own, members, m, 2.0), (1,) * len(kinds), True).costs
        for hits in range(1, m + 1):
            mechanism = bitldp.RecordCap(sizes, epsilon=2.0, m=m, hits=hits, subset=subset, weights=1)
            pairs = list(itertools.combinations(range(3), 2))
            if not all(mechanism._law.gain(tuple(mechanism._kind_of[j] for j in each)) for each in pairs):
                continue
            tables = [mechanism.table_variance(records, each).mean(axis=0) for each in pairs]
            cells = sum(each.size for each in tables)
            mean = sum(float(each.sum()) for each in tables) / cells
            assert costs[hits - 1] == pytest.approx(mean, rel=1e-6)
