"""What an accumulator refuses to take over: contents that no reports could have made."""

from __future__ import annotations

import json

import bitldp
import numpy as np
import pytest
from bitldp import Accumulator

MOST = 2**63 - 1


def changed(accumulator, **state):
    document = json.loads(accumulator.to_json())
    document["state"].update(state)
    return json.dumps(document)


@pytest.mark.parametrize("text", [None, b"{}", 1, {}])
def test_text_must_be_a_str(text):
    with pytest.raises(TypeError, match="text: must be a str"):
        Accumulator.from_json(text, bitldp.GRR(3, epsilon=1.0))


def test_mechanism_must_be_one():
    with pytest.raises(TypeError, match="mechanism: must be a Mechanism, not NoneType"):
        Accumulator.from_json("{}", None)


def test_counts_of_several_features_add_up_in_each():
    mechanism = bitldp.GRR(3, epsilon=1.0, features=2)
    accumulator = mechanism.accumulator()
    accumulator.update([[0, 1], [2, 2]])
    with pytest.raises(ValueError, match="do not add up"):
        Accumulator.from_json(changed(accumulator, counts=[[1, 1, 0], [2, 1, 0]]), mechanism)


def test_unary_counts_need_not_add_up_but_stay_within():
    mechanism = bitldp.OUE(3, epsilon=1.0)
    accumulator = mechanism.accumulator()
    accumulator.update([[1, 1, 0], [1, 0, 0]])
    assert Accumulator.from_json(changed(accumulator, counts=[2, 2, 2]), mechanism).n == 2
    with pytest.raises(ValueError, match="the counts are damaged"):
        Accumulator.from_json(changed(accumulator, counts=[3, 0, 0]), mechanism)


@pytest.mark.parametrize(
    "state",
    [
        {"n": 0},
        {"n": 0, "m2": [0.0, 0.0]},
        {"n": 0, "mean": [0.0, 0.0]},
        {"n": 1},
        {"n": 2**63},
        {"m2": [-1e-300, 0.0]},
        {"m2": [1e999, 0.0]},
        {"mean": [float("nan"), 0.0]},
        {"mean": [10**400, 0.0]},
    ],
)
def test_moments_that_no_reports_have(state):
    mechanism = bitldp.FRR(2, epsilon=9.0)
    accumulator = mechanism.accumulator()
    accumulator.update(mechanism.randomize(np.ones((5, 2)), rng=1))
    with pytest.raises(ValueError, match="text: "):
        Accumulator.from_json(changed(accumulator, **state), mechanism)


def test_more_reports_than_a_counter_holds():
    counting = bitldp.GRR(3, epsilon=1.0)
    full = Accumulator.from_json(changed(counting.accumulator(), n=MOST, counts=[MOST, 0, 0]), counting)
    averaging = bitldp.FRR(2, epsilon=9.0)
    heavy = Accumulator.from_json(changed(averaging.accumulator(), n=MOST, mean=[1.0, 1.0]), averaging)
    for accumulator, reports in ((full, [1]), (heavy, [[1, 2]])):
        before = accumulator.to_json()
        with pytest.raises(ValueError, match="reports: with these there would be more than"):
            accumulator.update(reports)
        with pytest.raises(ValueError, match="other: with these there would be more than"):
            accumulator.merge(accumulator)
        assert accumulator.to_json() == before


def test_a_merge_past_the_range_of_doubles_changes_nothing():
    mechanism = bitldp.FRR(1, epsilon=9.0)
    low, high = (
        Accumulator.from_json(changed(mechanism.accumulator(), n=1, mean=[mean]), mechanism)
        for mean in (-1e308, 1e308)
    )
    before = low.to_json()
    with pytest.raises(ValueError, match="other: the sum of squares"):
        low.merge(high)
    assert low.to_json() == before
