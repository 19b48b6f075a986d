"""Counts of questions: a file, its parts in any order, and saved counts give the same answer to the digit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import bitldp
import pyarrow as pa
from bitldp.tables import Column, DataError, PlanError, QuestionCounts, ReleasedTable, TableAnswer, TablePlan
from bitldp.tables.joint import Joint, _Wide
from bitldp.tables.reading import Reading
from support.workers import plan, released, workers

ROWS = 600

#: A question of each kind: about reports of few patterns, of many, of kept columns, of some records.
ASKED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("mean", ("hours",), {}),
    ("mean", ("hours",), {"by": ["survey", "city"]}),
    ("mean", ("hours",), {"by": "color", "where": {"city": ["Oslo", "Rome"]}}),
    ("mean", ("wave",), {"by": "city"}),
    ("share", ("city",), {"by": "date", "every": "week"}),
    ("share", ("many",), {"by": "color"}),
    ("table", ("city", "survey", "color"), {}),
    ("table", ("many", "city"), {}),
    ("total", ("hours",), {"by": "city", "where": [("date", ">=", "2026-01-20")]}),
    ("ratio", ("hours", "wage"), {"by": "city"}),
    ("difference", ("hours",), {"by": ["survey", "city"], "base": "Rome"}),
    ("histogram", ("age",), {"bins": 3, "by": "city"}),
    ("cdf", ("age",), {"at": [20.0, 50.0]}),
    ("share", ("color",), {"where": {"many": ["20", "40", "60"]}}),
    ("quantile", ("age",), {"q": [0.1, 0.5], "by": "survey"}),
    ("quantile", ("wave",), {"q": 0.5, "by": "survey"}),
    ("regress", ("hours",), {"on": ["wage", "city"]}),
    ("correlation", ("hours", "wage"), {"where": {"color": "red"}}),
    ("covariance", ("hours", "wage"), {}),
    ("logistic", ("color",), {"on": ["city", "age"], "category": "red"}),
]


def own_plan() -> TablePlan:
    grids = [
        Column(bitldp.OUE(24, epsilon=3.0), "many", categories=[f"{age}" for age in range(20, 68, 2)]),
        Column(bitldp.SquareWave(epsilon=3.0, interval=(0.0, 80.0), cells=32), "wave"),
    ]
    return TablePlan([*plan().columns, *grids], keep=["survey", "date"])


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    table = workers(ROWS)
    days = np.datetime64("2026-01-01") + np.random.default_rng(9).integers(0, 60, ROWS)
    ages = np.minimum(table["age"].to_numpy(), 66.0).astype(int).astype(str)
    for name, own in (("date", days), ("many", ages), ("wave", table["hours"].to_numpy())):
        table = table.append_column(name, pa.array(own))
    return released(own_plan(), table, 5)


def figures(answer: TableAnswer) -> str:
    """Return all that an answer says, to the last digit."""
    covariance = None if answer.covariance is None else answer.covariance.tolist()
    return json.dumps([answer.table.to_pylist(), covariance], default=str)


def counted(plan: TablePlan, asked: Any, table: Any) -> QuestionCounts:
    kind, arguments, named = asked
    return QuestionCounts(plan, kind, *arguments, **named).update(table)


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked[0]}-{'-'.join(map(str, asked[1]))}")
def test_parts_in_any_order_and_saved_counts_answer_as_the_whole(rows: pa.Table, asked: Any) -> None:
    """One table; five parts, merged in another order; and counts that are saved after each day."""
    own, (kind, arguments, named) = own_plan(), asked
    whole = figures(getattr(ReleasedTable(own, rows), kind)(*arguments, **named))
    parts = [
        rows.slice(start, length) for start, length in ((0, 211), (211, 1), (212, 88), (300, 0), (300, 300))
    ]
    merged = counted(own, asked, parts[4])
    for place in (2, 0, 3, 1):
        merged.merge(counted(own, asked, parts[place]))
    assert len(merged) <= ROWS
    assert figures(merged.answer()) == whole
    saved = QuestionCounts(own, kind, *arguments, **named).to_json()
    for number, each in enumerate(parts):
        saved = QuestionCounts.from_json(saved, own).update(each, source=f"day {number}").to_json()
    assert figures(QuestionCounts.from_json(saved, own).answer()) == whole


def test_nothing_is_counted_twice(rows: pa.Table) -> None:
    own, asked = own_plan(), ("mean", ("hours",), {"by": "city"})
    monday = QuestionCounts(own, "mean", "hours", by="city").update(rows.slice(0, 300), source="monday")
    with pytest.raises(PlanError, match="'monday' was counted before"):
        monday.update(rows.slice(0, 300), source="monday")
    again = QuestionCounts.from_json(monday.to_json(), own)
    with pytest.raises(PlanError, match="merge each part once"):
        again.merge(monday)
    with pytest.raises(PlanError, match="merge each part once"):
        again.merge(again)
    tuesday = counted(own, asked, rows.slice(300))
    assert len(again.merge(tuesday)) == ROWS
    with pytest.raises(PlanError, match="merge each part once"):
        again.merge(tuesday)
    with pytest.raises(PlanError, match="of another question"):
        again.merge(counted(own, ("mean", ("hours",), {"by": "color"}), rows))
    with pytest.raises(TypeError, match="QuestionCounts"):
        again.merge(own.aggregate())  # type: ignore[arg-type]


def test_a_part_that_is_refused_counts_nothing(rows: pa.Table) -> None:
    own = own_plan()
    counts = QuestionCounts(own, "mean", "hours", by="city")
    wrong = pa.table({**{name: rows[name] for name in rows.column_names}, "city": ["Bern"] * ROWS})
    halves: list[pa.Table] = [rows.slice(0, 10), wrong]
    with pytest.raises(DataError, match="row 11"):
        counts.update(halves, source="monday")
    assert len(counts) == 0
    assert len(counts.update(rows, source="monday")) == ROWS
    with pytest.raises(ValueError, match="no rows"):
        QuestionCounts(own, "mean", "hours").answer()


def broken(text: str) -> Iterator[str]:
    """Yield texts that are no counts."""
    document = json.loads(text)
    yield "{"
    yield json.dumps({**document, "format": "bitldp.aggregate"})
    yield json.dumps({**document, "version": 2})
    yield json.dumps({**document, "plan": "0"})
    yield json.dumps({**document, "question": {"kind": "mode", "arguments": [], "named": {}}})
    yield json.dumps({**document, "types": ["int64"]})
    first = document["groups"][0]
    for terms in (
        {"n": -1},
        {"n": 1.5},
        {"patterns": [1, 0]},
        {"patterns": [10**9]},
        {"counts": ["x"]},
        {"n": 7},
    ):
        yield json.dumps({**document, "groups": [{**first, "terms": {**first["terms"], **terms}}]})


def test_a_text_that_is_no_counts_is_refused(rows: pa.Table) -> None:
    own = own_plan()
    saved = counted(own, ("table", ("city", "color"), {}), rows).to_json()
    assert len(QuestionCounts.from_json(saved, own)) == ROWS
    for text in broken(saved):
        with pytest.raises(PlanError, match="text"):
            QuestionCounts.from_json(text, own)


def test_a_question_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="kind: must be one of 'mean'"):
        QuestionCounts(plan(), "mode", "hours")
    with pytest.raises(TypeError, match="a object is not an argument of a question"):
        QuestionCounts(plan(), "mean", "hours", by=object())
    with pytest.raises(PlanError, match="was not released"):
        QuestionCounts(plan(), "mean", "name")


def test_sums_are_whole_numbers_of_any_size() -> None:
    """2^103 in steps of 2^53, and below 0."""
    wide, alone = _Wide((2,)), _Wide((2,))
    for _ in range(3):
        wide.add(np.array([2.0**53, -(2.0**53) - 2.0]))
    assert wide.to_json() == [3 << 53, -3 * ((1 << 53) + 2)]
    alone.restore([(1 << 100) + 1, -(1 << 100)])
    wide.merge(alone)
    assert wide.to_json() == [(1 << 100) + 1 + (3 << 53), -(1 << 100) - 3 * ((1 << 53) + 2)]
    assert wide.values == pytest.approx([2.0**100, -(2.0**100)])


def test_sums_of_letters_lose_nothing_that_is_seen() -> None:
    """Terms of three readings with letters of very different sizes agree with sums in extended precision."""
    rng = np.random.default_rng(1)
    letters = rng.normal(size=(3, 4_096, 2)) * np.array([1e-3, 1.0, 1e4])[:, None, None]
    readings = [
        (j, Reading("", ("a", "b"), lambda x: x, np.stack([each.min(axis=0), each.max(axis=0)]), (0, 1), 0.0))
        for j, each in enumerate(letters)
    ]
    terms = [((0, i), (1, j), (2, i)) for i in range(2) for j in range(2)] + [()]
    joint = Joint(readings, terms)
    joint.update(dict(enumerate(letters)), 4_096)
    moments = joint.moments()
    exact = np.stack(
        [letters[0, :, i] * letters[1, :, j] * letters[2, :, i] for i in range(2) for j in range(2)]
    )
    assert moments.mean[:4] == pytest.approx(exact.mean(axis=1), rel=1e-9, abs=1e-9 * np.abs(exact).max())
    assert moments.covariance[:4, :4] == pytest.approx(np.cov(exact), rel=1e-9, abs=1e-9 * exact.var())
    assert moments.mean[4] == 1.0
