"""Columns of a hierarchy of ranges: quantiles and shares of numbers, from reports about levels of a tree."""

from __future__ import annotations

from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import Aggregate, Column, DataError, PlanError, ReleasedTable, ReleaseKey, TablePlan

ROWS = 20_000
FAR = 5.0  # standard errors: two-sided, once in 1.7 million


def column(points: int = 74, epsilon: float = 4.0, **options: Any) -> Column:
    return Column(bitldp.Hierarchy(points, epsilon=epsilon), "age", **{"interval": (17.0, 90.0), **options})


def people(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(5)
    part = rng.integers(0, 2, rows)
    age = rng.normal(40.0 + 10.0 * part, 12.0).clip(17, 90).round()
    color = np.where(rng.random(rows) < age / 100.0, "red", "green")
    return pa.table({"age": age, "part": part, "color": color, "id": np.arange(rows)})


def released(plan: TablePlan, table: pa.Table, seed: int = 3) -> pa.Table:
    made: dict[str, Any] = {}
    for codec, own in zip(plan.codecs, np.random.SeedSequence(seed).spawn(len(plan.codecs)), strict=True):
        reports = codec.randomize(codec.read(table, 1), rng=own)
        made |= dict(codec.written(reports, table.schema.field(codec.columns[0]).type))
    return pa.table({**made, **{name: table[name] for name in plan.keep}})


PLAN = TablePlan(
    [column(), Column(bitldp.GRR(2, epsilon=4.0), "color", categories=["red", "green"])], keep=["part"]
)


@pytest.fixture(scope="module")
def asked() -> ReleasedTable:
    return ReleasedTable(PLAN, released(PLAN, people()))


def test_a_plan_keeps_it() -> None:
    assert TablePlan.from_toml(PLAN.to_toml()) == PLAN
    assert TablePlan.from_json(PLAN.to_json()).digest == PLAN.digest
    assert PLAN.release()(people(10)).column_names == ["age_level", "age_code", "color", "part"]
    assert Column(bitldp.Hierarchy(5, epsilon=1.0), "x").codecs[0].interval == (0.0, 4.0)  # type: ignore[attr-defined]


def test_quantiles_hold_the_truth(asked: ReleasedTable) -> None:
    """Three quantiles, of all, of groups and of a released category: each interval at 1 - 6e-7 holds it."""
    table = people()
    age = np.array(table["age"])
    sure = ReleasedTable(asked.plan, asked._source, level=1.0 - 6e-7)
    for by in ((), "part", "color"):
        answer = sure.quantile("age", [0.25, 0.5, 0.75], by=by).table.to_pylist()
        assert len(answer) == (3 if by == () else 6)
        for row in answer:
            own = age if by == () else age[np.array(table[by]) == row[by]]
            assert row["low"] <= np.quantile(own, row["q"]) <= row["high"]
            assert row["high"] - row["low"] < 30.0


def test_shares_means_and_squares_are_unbiased(asked: ReleasedTable) -> None:
    table = people()
    age = np.array(table["age"])
    for row in asked.cdf("age", [30.0, 50.0], by="part").table.to_pylist():
        truth = np.mean(age[np.array(table["part"]) == row["part"]] <= row["at"])
        assert abs(row["estimate"] - truth) < FAR * row["stderr"]
    (mean,) = asked.mean("age").table.to_pylist()
    assert abs(mean["estimate"] - age.mean()) < FAR * mean["stderr"]
    for row in asked.share("age").table.to_pylist():
        assert abs(row["estimate"] - np.mean(age == row["age"])) < FAR * row["stderr"]
    codec = PLAN.codecs[0]
    reading = codec.reading("age", "square")
    values = reading.read(codec.collect(released(PLAN, table), 1)[0])
    assert abs(values.mean() - np.mean(np.square(age))) < FAR * values.std() / np.sqrt(ROWS) + 1e-12


def test_a_reading_is_right_for_every_number() -> None:
    """E[reading | number] by the law of each level, exactly: 30 points, three levels."""
    codec: Any = Column(bitldp.Hierarchy(30, epsilon=2.0), "x").codecs[0]
    tree, levels = codec.mechanism._tree, codec.mechanism.mechanisms
    places, reading = tree.ancestors(np.arange(30)), codec.reading("x", "category")
    mean, second = np.zeros((30, 30)), np.zeros((30, 30))
    for level, each in enumerate(levels):
        codes = np.arange(each.channel.outputs)
        law = np.stack([each._support(codes, np.array([node])).ravel() for node in range(tree.sizes[level])])
        p, _ = each.probabilities()
        width = law.sum(axis=1)
        chances = np.where(law, (p / width)[:, None], ((1.0 - p) / (len(codes) - width))[:, None])
        values = reading.read([np.full((len(codes), 1), level), codes[:, None]])
        mean += (chances @ values)[places[:, level]] / len(levels)
        second += (chances @ np.square(values))[places[:, level]] / len(levels)
    assert np.allclose(mean, np.eye(30), atol=1e-9)
    own, least, most = reading.moments
    assert np.allclose(second.diagonal(), own)
    assert np.allclose((second + np.diag(np.full(30, np.inf))).min(axis=0), least)
    assert np.allclose((second - np.diag(second.diagonal())).max(axis=0), most)
    near = codec._sums(np.eye(30)).second(places)  # as of more points
    assert np.all(np.abs(near / second - 1.0) < 0.15)
    assert np.all(reading.ends[0] <= 0.0)
    summed = reading.summed(np.triu(np.ones((30, 29))))
    both = [np.zeros((5, 1), int), np.arange(5)[:, None] % levels[0].channel.outputs]
    assert np.allclose(summed.read(both), reading.read(both) @ np.triu(np.ones((30, 29))))


def test_many_points_are_read_without_a_table() -> None:
    """600 points, whose reports are too many to list: the mean within 5 standard errors, and the ends."""
    codec: Any = Column(bitldp.Hierarchy(600, epsilon=4.0), "x").codecs[0]
    reading = codec.reading("x", "category").summed(np.triu(np.ones((600, 599)))[:, [150, 450]])
    assert reading.table is None
    numbers = np.random.default_rng(2).normal(300.0, 100.0, 5_000).clip(0, 599)
    values = reading.read(codec.randomize(numbers, rng=np.random.SeedSequence(1)))
    truth = np.array([np.mean(np.rint(numbers) <= 150), np.mean(np.rint(numbers) <= 450)])
    assert np.all(np.abs(values.mean(axis=0) - truth) < FAR * values.std(axis=0) / np.sqrt(5_000) + 1e-12)
    assert np.all((values >= reading.ends[0] - 1e-9) & (values <= reading.ends[1] + 1e-9))


def test_counts_are_merged_and_saved() -> None:
    reports = released(PLAN, people(3_000))
    whole = PLAN.aggregate(["part"]).update(reports)
    parts = [PLAN.aggregate(["part"]).update(reports.slice(start, 1_000)) for start in (2_000, 0, 1_000)]
    merged = parts[0].merge(parts[1]).merge(Aggregate.from_json(parts[2].to_json(), PLAN))
    assert merged.estimate().sort_by("part").equals(whole.estimate().sort_by("part"))
    rows = whole.estimate().to_pylist()
    assert [row["what"] for row in rows[:4]] == ["mean", "quantile", "quantile", "quantile"]
    assert [row["category"] for row in rows[1:4]] == ["0.25", "0.5", "0.75"]


def test_a_key_makes_the_same_reports() -> None:
    release = PLAN.release(ReleaseKey(bytes(range(32))), record="id", snapshot="s")
    table = people(200)
    once, again = release(table), release(table.slice(50, 100))
    assert once.slice(50, 100).equals(again)


def test_missing_numbers_are_reported() -> None:
    plan = TablePlan([column(nulls="report")])
    table = pa.table({"age": pa.array([20.0, None, 50.0, 40.0] * 5_000)})
    (row,) = ReleasedTable(plan, released(plan, table)).mean("age").table.to_pylist()
    assert abs(row["estimate"] - 110.0 / 3.0) < FAR * row["stderr"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"categories": ["a"]}, "categories: Hierarchy takes numbers"),
        ({"output": "values"}, "is about a range; use codes"),
        ({"nulls": "category"}, "is for categories"),
        ({"decode": "unbiased"}, "is for values"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        column(**options)
    with pytest.raises(PlanError, match="give each of them a mechanism"):
        Column(bitldp.Hierarchy(5, epsilon=1.0), ["a", "b"])


def test_what_is_no_report_is_refused() -> None:
    reports = released(PLAN, people(50))
    for name, wrong in (("age_level", 9), ("age_code", 100_000)):
        place = reports.column_names.index(name)
        other = reports.set_column(place, name, pa.array(np.full(50, wrong)))
        with pytest.raises(DataError, match=name):
            PLAN.aggregate().update(other)
    mute = TablePlan([column(epsilon=0.0)])
    with pytest.raises(PlanError, match="a plan with"):
        ReleasedTable(mute, mute.release()(people(50))).quantile("age", 0.5)
    far = TablePlan([Column(bitldp.Hierarchy(5_000, epsilon=1.0), "age")])
    with pytest.raises(PlanError, match="4,096 can be distinguished"):
        ReleasedTable(far, far.release()(people(50))).quantile("age", 0.5)
