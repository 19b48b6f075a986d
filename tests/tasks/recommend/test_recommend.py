"""Recommendations: every row keeps the budget, the best one is first, and reasons are given."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import bitldp
import numpy as np
import pytest
from bitldp import recommend
from bitldp.recommend import REGISTRY

# MVU looks for shipped designs and says so in the log where there are none
CASES = {
    "mean": (("mean", 2.0), {}),
    "records": (("mean", 5.0), {"features": 6, "criterion": "worst", "interval": (0.0, 10.0)}),
    "frequency": (("frequency", 1.0), {"categories": 50}),
    "line": (("point", 1.0), {"candidates": 20}),
    "plane": (("point", 2.0), {"candidates": np.random.default_rng(1).random((20, 2)), "criterion": "worst"}),
    "label": (("label", 1.0), {"categories": 5}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows(case):
    (task, epsilon), options = case
    advice = recommend(task, epsilon, **options)
    built = [row for row in advice.rows if row.mechanism is not None]
    assert advice.mechanism is built[0].mechanism is advice.rows[0].mechanism
    costs = [getattr(row, advice.criterion) for row in built]
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(costs))
    for row in built:
        assert row.epsilon == row.mechanism.guarantee.record <= epsilon
        assert row.epsilon == pytest.approx(epsilon, rel=1e-5)
        assert row.bits == row.mechanism.report_bits
        assert 0.0 < row.mean <= row.worst * (1 + 1e-9)
        assert row.why
    text = str(advice)
    assert len(text.splitlines()) == len(advice.rows) + 2
    assert all(row.name in text for row in advice.rows)
    assert pickle.loads(pickle.dumps(advice.mechanism)) == advice.mechanism


def test_what_is_best():
    assert type(recommend("mean", 1.0, criterion="worst").mechanism) is bitldp.MinimaxVariance
    assert type(recommend("frequency", 1.0, categories=64).mechanism) is bitldp.OUE
    assert type(recommend("frequency", 1.0, categories=3).mechanism) is bitldp.GRR
    assert type(recommend("point", 1.0, candidates=20).mechanism) is bitldp.OptimalUtility
    assert type(recommend("point", 1.0, candidates=400).mechanism) is bitldp.BRR


def test_whole_records_win_where_there_is_much_to_spend():
    assert type(recommend("mean", 8.0, features=256).mechanism) is bitldp.HypercubePrivUnit
    names = [row.name for row in recommend("mean", 1.0).rows]
    assert not any(name.endswith(("sample", "record")) for name in names)


def test_what_takes_long_is_asked_for():
    why = {row.name: row.why for row in recommend("mean", 4.0).rows}["MVU 6 -> 5 bits, split"]
    assert "thorough=True" in why
    best = recommend("mean", 4.0, thorough=True).mechanism
    assert isinstance(best, bitldp.MVU)
    assert best.output_bits == 5


def test_numbers_are_those_of_the_mechanisms():
    for row in recommend("frequency", 2.0, categories=9).rows[:3]:
        variances = row.mechanism.variance(np.arange(9))
        assert row.mean == pytest.approx(variances.mean())
        assert row.worst == pytest.approx(variances.max())
    row = recommend("label", 1.0, categories=5).rows[0]
    assert row.mean == pytest.approx(4.0 / (np.e + 4.0), rel=1e-9)
    losses = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    for row in recommend("point", 1.0, candidates=20).rows:
        rows = np.sum(row.mechanism.probabilities() * losses, axis=1)
        assert row.mean == pytest.approx(rows.mean(), rel=1e-9)
        assert row.worst == pytest.approx(rows.max(), rel=1e-9)


def test_what_does_not_fit_is_last_with_its_reason():
    rows = recommend("frequency", 1.0, categories=5).rows
    assert rows[-1].name == "WarnerRR"
    assert rows[-1].why == "is for two categories"
    assert math.isnan(rows[-1].mean)
    assert rows[-1].mechanism is None
    rows = recommend("point", 1.0, candidates=400).rows
    assert "at most 300" in rows[-1].why


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr("bitldp.base.extras.missing", list)
    rows = recommend("point", 1.2345, candidates=7).rows
    assert rows[0].mechanism is not None
    assert 'pip install "bitldp[design]"' in rows[-1].why


def test_every_task_has_candidates():
    assert set(REGISTRY) == {"mean", "frequency", "point", "label"}
    for rows in REGISTRY.values():
        assert len({name for name, _ in rows}) == len(rows) > 1


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("median", 1.0), {}, "task: must be one of"),
        (("mean", 0.0), {}, "epsilon: must be above zero"),
        (("mean", math.nan), {}, "epsilon: must be finite"),
        (("mean", 1.0), {"criterion": "best"}, "criterion: must be one of"),
        (("mean", 1.0), {"features": 0}, "features: must be at least 1"),
        (("mean", 1.0), {"interval": (1.0, 0.0)}, "interval"),
        (("frequency", 1.0), {}, "categories: are needed"),
        (("label", 1.0), {"categories": 1}, "categories: must be at least 2"),
        (("point", 1.0), {}, "candidates: are needed"),
        (("point", 1.0), {"candidates": 1}, "candidates: must be at least 2"),
        (("point", 1.0), {"candidates": 5, "metric": "taxi"}, "metric: must be one of"),
    ],
)
def test_bad_parameters(arguments, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        recommend(*arguments, **options)


@pytest.mark.parametrize(("epsilon", "kind"), [(4.0, bitldp.SampledSigns), (8.0, bitldp.HypercubePrivUnit)])
def test_records_of_many_numbers_are_released_as_a_whole(epsilon, kind):
    """Releases of whole records are far ahead of those of single numbers at larger budgets."""
    advice = recommend("mean", epsilon, features=768)
    assert type(advice.mechanism) is kind
    names = [row.name for row in advice.rows]
    assert {"HypercubePrivUnit, record", "SampledSigns, record"} <= set(names)
    single = [row.name for row in recommend("mean", epsilon).rows]
    assert not {"HypercubePrivUnit, record", "SampledSigns, record"} & set(single)
    variances = {row.name: row.mean for row in advice.rows}
    assert variances["HypercubePrivUnit, record"] == pytest.approx(
        {4.0: 334.0, 8.0: 102.0}[epsilon], rel=0.01
    )
    assert variances["Piecewise, sample"] > variances["HypercubePrivUnit, record"]
