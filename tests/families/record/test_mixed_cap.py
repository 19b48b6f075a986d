"""Numbers and categories by one channel: the law by enumeration, unbiased estimates, the search, refusals."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from functools import cache
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.privacy import ONE
from bitldp.recommend import recommend

SMALL = {
    "one": lambda: bitldp.MixedCap([2], features=1, epsilon=2.0, levels=3, reach=1),
    "enough": lambda: bitldp.MixedCap([2, 3], features=2, epsilon=3.0, levels=2, reach=1, subset=1, hits=1),
    "all": lambda: bitldp.MixedCap([3, 2], features=2, epsilon=4.0, levels=3, reach=0, subset=1, hits=2),
    "subsets": lambda: bitldp.MixedCap(
        [2, 4], features=1, epsilon=1.0, levels=2, reach=2, subset=(1, 2), hits=1, interval=(0.0, 3.0)
    ),
}


@cache
def enumerated(name: str) -> tuple[Any, list[Any], list[Any], np.ndarray]:
    """Return a mechanism, all its records and reports, and the law, by counting reports one by one."""
    mechanism = SMALL[name]()
    d, sizes = mechanism.features, mechanism._sizes
    cells = mechanism.levels + 2 * mechanism.reach
    records = list(itertools.product(*[range(mechanism.levels)] * d, *map(range, sizes)))
    lists = [list(itertools.combinations(range(k), w)) for k, w in zip(sizes, mechanism.subset, strict=True)]
    reports = list(itertools.product(*[range(cells)] * d, *lists))
    near = np.array([[is_near(mechanism, record, report) for report in reports] for record in records])
    high = mechanism.channel.high / ONE
    assert len(set(near.sum(axis=1).tolist())) == 1  # every neighbourhood has the same share of all
    assert Fraction(int(near[0].sum()), len(reports)) == Fraction(*mechanism.channel.share)
    law = high * near / near.sum(axis=1, keepdims=True) + (1.0 - high) / len(reports)
    return mechanism, records, reports, law


def is_near(mechanism: Any, record: Any, report: Any) -> bool:
    d, b = mechanism.features, mechanism.reach
    close = all(0 <= cell - x <= 2 * b for x, cell in zip(record[:d], report[:d], strict=True))
    return close and sum(x in own for x, own in zip(record[d:], report[d:], strict=True)) >= mechanism.hits


def arrays(mechanism: Any, reports: Any) -> tuple[np.ndarray, ...]:
    """Return reports as the mechanism gives them."""
    d, columns = mechanism.features, []
    for run in mechanism._runs:
        parts = []
        for index in range(run.start, run.stop):
            if index < d:
                parts.append([[each[index]] for each in reports])
            elif mechanism.subset[index - d] == 1:
                parts.append([[each[index][0]] for each in reports])
            else:
                k = mechanism._sizes[index - d]
                parts.append([[int(c in each[index]) for c in range(k)] for each in reports])
        columns.append(np.concatenate([np.array(part, np.uint8) for part in parts], axis=1))
    return tuple(columns)


@pytest.mark.parametrize("name", SMALL)
def test_epsilon_is_that_of_the_reports(name: str) -> None:
    mechanism, _, _, law = enumerated(name)
    worst = np.log(law.max(axis=0) / law.min(axis=0)).max()
    assert worst == pytest.approx(mechanism.guarantee.record, abs=1e-12)
    assert mechanism.epsilon - 1e-9 <= mechanism.guarantee.record <= mechanism.epsilon


@pytest.mark.parametrize("name", SMALL)
def test_estimates_are_unbiased_and_of_the_variance(name: str) -> None:
    mechanism, records, reports, law = enumerated(name)
    d, sizes = mechanism.features, mechanism._sizes
    numbers, shares = [], []
    for each in reports:
        own = arrays(mechanism, [each])
        numbers.append(mechanism.estimate_mean(own).value)
        shares.append(np.concatenate([one.value for one in mechanism.estimate_frequencies(own)]))
    points = np.linspace(*mechanism.interval, mechanism.levels)
    x = points[np.array([each[:d] for each in records])]
    y = np.array([each[d:] for each in records])
    true = np.concatenate([y[:, [j]] == np.arange(k) for j, k in enumerate(sizes)], axis=1)
    said = mechanism.variance(x, y)
    for letters, mean, variance in (
        (np.array(numbers), x, said[0]),
        (np.array(shares), true, np.concatenate(said[1:], axis=1)),
    ):
        np.testing.assert_allclose(law @ letters, mean, atol=1e-11)
        np.testing.assert_allclose(law @ letters**2 - mean.astype(float) ** 2, variance, rtol=1e-9, atol=1e-9)
    assert mechanism.worst_variance() >= max(each.max() for each in said) * (1.0 - 1e-12)


@pytest.mark.parametrize("name", ["enough", "subsets"])
def test_reports_have_the_law(name: str) -> None:
    """200,000 reports of a record; chi-square over all reports, at most 1 failure in 10^6."""
    mechanism, records, reports, law = enumerated(name)
    n, place = 200_000, len(records) // 2
    points = np.linspace(*mechanism.interval, mechanism.levels)
    x = np.tile(points[list(records[place][: mechanism.features])], (n, 1))
    drawn = mechanism.randomize(x, np.tile(records[place][mechanism.features :], (n, 1)), rng=5)
    counted = np.concatenate(drawn, axis=1).astype(np.int64) @ (16 ** np.arange(sum(map(columns, drawn))))
    expected = np.concatenate(arrays(mechanism, reports), axis=1).astype(np.int64)
    keys = expected @ (16 ** np.arange(expected.shape[1]))
    seen = np.array([np.count_nonzero(counted == key) for key in keys])
    assert seen.sum() == n
    chi = float((np.square(seen - n * law[place]) / (n * law[place])).sum())
    freedom = len(reports) - 1
    assert chi < freedom + 5.0 * math.sqrt(2.0 * freedom) + 30.0


def columns(array: np.ndarray) -> int:
    return array.shape[1]


def test_numbers_between_points_and_categories() -> None:
    """60,000 records: means and frequencies within 5 standard errors, which are those of the variance."""
    mechanism = bitldp.MixedCap([3, ["a", "b", "c", "d", "e"]], features=2, epsilon=5.0, interval=(0.0, 4.0))
    coded = bitldp.MixedCap([3, 5], features=2, epsilon=5.0, interval=(0.0, 4.0))
    n, rng = 60_000, np.random.default_rng(7)
    x, y = rng.beta(2.0, 5.0, (n, 2)) * 4.0, np.stack([rng.integers(0, k - 1, n) for k in (3, 5)], axis=1)
    named = np.array(list("abcde"))[y[:, 1]]
    rows = np.stack([y[:, 0].astype(object), named.astype(object)], axis=1)
    reports = mechanism.randomize(x, rows, rng=3)
    for mine, theirs in zip(reports, coded.randomize(x, y, rng=3), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    mean, shares = mechanism.estimate_mean(reports), mechanism.estimate_frequencies(reports)
    assert mean.n == n
    assert list(shares[1].labels) == list("abcde")
    assert (np.abs(mean.value - x.mean(axis=0)) < 5.0 * mean.stderr).all()
    said = mechanism.variance(x, rows)
    np.testing.assert_allclose(mean.stderr, np.sqrt((said[0].mean(axis=0) + x.var(axis=0)) / n), rtol=0.05)
    for place, estimate in enumerate(shares):
        truth = np.bincount(y[:, place], minlength=len(estimate.value)) / n
        assert (np.abs(estimate.value - truth) < 5.0 * estimate.stderr).all()
        low, high = estimate.confidence_interval(0.9999)
        assert ((low <= truth) & (truth <= high)).all()
    accumulator = mechanism.accumulator()
    for start in range(0, n, 20_000):
        accumulator.update(tuple(each[start : start + 20_000] for each in reports))
    again, _ = type(accumulator).from_json(accumulator.to_json(), mechanism).estimate()
    np.testing.assert_allclose(again.value, mean.value, rtol=1e-12)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_extremes_are_of_the_law() -> None:
    """The law of which record a report is near adds up to that of the reports."""
    for name in SMALL:
        mechanism, records, reports, law = enumerated(name)
        experiment = mechanism.extremes()
        (block,) = experiment.blocks
        d, sizes, top = mechanism.features, mechanism._sizes, mechanism.levels - 1
        ends = [(0,) * (d + len(sizes)), (top,) * d + tuple(k - 1 for k in sizes)]
        (symbols,) = experiment.split(arrays(mechanism, reports))
        for side, end in enumerate(ends):
            own = np.bincount(symbols[:, 0], law[records.index(end)], minlength=4)
            np.testing.assert_allclose(block.table[side, 0], own, atol=1e-12)
        inside = ([np.zeros(d)], [0] * len(sizes)), ([np.zeros(d)], [1] * len(sizes))
        assert not mechanism.extremes(inside).blocks  # a number at no end


def test_the_search_takes_the_fewest_bits_within_two_percent() -> None:
    """Of all parameters on grids of up to 24 cells."""
    sizes, d = (3, 5), 2
    for epsilon in (4.0, 8.0):
        chosen = bitldp.MixedCap(sizes, features=d, epsilon=epsilon)
        least = min(
            bitldp.MixedCap(
                sizes, features=d, epsilon=epsilon, levels=levels, reach=reach, subset=subset, hits=hits
            ).mean_variance()
            for levels in range(chosen.levels - 2, chosen.levels + 3, 2)
            for reach in range(max(0, chosen.reach - 2), chosen.reach + 3, 2)
            for subset in ((1, 1), (1, 2))
            for hits in (1, 2)
        )
        assert chosen.mean_variance() <= 1.02 * least


def test_the_interval_is_no_matter_of_the_search() -> None:
    plain, wide = (
        bitldp.MixedCap([3, 4], features=2, epsilon=6.0, interval=each) for each in ((-1, 1), (0, 1e5))
    )
    assert (plain.levels, plain.reach, plain.subset) == (wide.levels, wide.reach, wide.subset)


def test_recommend_names_it_where_it_is_better() -> None:
    best = recommend("record", epsilon=6.0, features=2, categories=[3, 5]).mechanism
    assert isinstance(best, bitldp.MixedCap)
    sampled = bitldp.MixedRecord([3, 5], features=2, epsilon=6.0)
    assert best.mean_variance() < 0.5 * sampled.mean_variance()
    small = recommend("record", epsilon=1.0, features=2, categories=[3, 5]).mechanism
    assert isinstance(small, bitldp.MixedRecord)


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ([3], {"features": 257}, r"^features: must be at most 256"),
        ([2] * 257, {}, r"^attributes: must be at most 256"),
        ([70_000], {}, r"^attributes: must be of at most 65,536"),
        ([3, 4], {"hits": 3}, r"^hits: must be between 1 and 2"),
        ([3, 4], {"subset": (1, 4)}, r"^subset: that of attribute 1"),
        ([3, 4], {"subset": (1,)}, r"^subset: one number, or one for each of 2"),
        ([3, 4], {"levels": 1}, r"^levels: "),
        ([3, 4], {"levels": 65_000, "reach": 300}, r"^reach: "),
    ],
)
def test_refusals(sizes: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bitldp.MixedCap(sizes, **{"features": 1, "epsilon": 2.0, **options})


def test_what_is_refused_of_data() -> None:
    mechanism = bitldp.MixedCap([3, 4], features=2, epsilon=1.0)
    with pytest.raises(ValueError, match=r"^y: must be of 5 records"):
        mechanism.randomize(np.zeros((5, 2)), np.zeros((4, 2), int))
    with pytest.raises(ValueError, match=r"^x: .*NaN"):
        mechanism.randomize([[np.nan, 0.0]], [[0, 0]])
    with pytest.raises(ValueError, match=r"^out: not supported"):
        mechanism.randomize(np.zeros((5, 2)), np.zeros((5, 2), int), out=np.zeros(3))
    assert mechanism.outside([[2.0, 0.5], [-2.0, 1.0]]) == 2
    strict = bitldp.MixedCap([2], features=1, epsilon=1.0, clip=False)
    with pytest.raises(ValueError, match="clip=False refuses"):
        strict.randomize([[3.0]], [[0]])
    mute = bitldp.MixedCap([2, 3], features=1, epsilon=0.0)
    assert mute.guarantee.record == 0.0
    with pytest.raises(ValueError, match="epsilon 0"):
        mute.estimate_mean(mute.randomize(np.zeros((5, 1)), np.zeros((5, 2), int)))
