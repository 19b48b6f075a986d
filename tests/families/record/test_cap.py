"""Lists of subsets of which enough hit: the law by enumeration, unbiased estimates, the search, refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.privacy import ONE
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
