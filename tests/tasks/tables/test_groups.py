"""Counts by group: keys of every type, saved and merged in any order, and nothing counted twice."""

from __future__ import annotations

import itertools
import json
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
import pyarrow.compute
from bitldp.tables import Aggregate, Column, DataError, PlanError, TablePlan
from support.plans import columns_of_every_mechanism, table_for

EVERY = columns_of_every_mechanism()
PLAN = TablePlan([Column(bitldp.GRR(2, epsilon=1.0), "x", categories=["a", "b"])], keep=["key", "other"])

NOON = datetime(2026, 11, 5, 12, 30, 0, 250_000)
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-1, 0, 1]),
    "int64": (pa.int64(), [-(1 << 63), 0, (1 << 63) - 1]),
    "uint64": (pa.uint64(), [0, 5, (1 << 64) - 1]),
    "bool": (pa.bool_(), [True, False]),
    "float16": (pa.float16(), [0.5, 1.5]),
    "float32": (pa.float32(), [0.5, float("inf"), float("nan")]),
    "float64": (pa.float64(), [0.1, float("-inf"), float("nan"), 0.0, -0.0]),
    "text": (pa.string(), ["", "a", "Zoë", "NaN", "1"]),
    "large text": (pa.large_string(), ["", "a"]),
    "viewed text": (pa.string_view(), ["", "a"]),
    "bytes": (pa.binary(), [b"", b"\x00\xff", b"a"]),
    "three bytes": (pa.binary(3), [b"abc", b"\x00\xff\x01"]),
    "date": (pa.date32(), [date(1066, 10, 14), date(2026, 11, 5)]),
    "date64": (pa.date64(), [date(2026, 11, 5), date(2026, 11, 6)]),
    "seconds": (pa.timestamp("s"), [NOON.replace(microsecond=0), datetime(1969, 1, 1)]),
    "microseconds": (pa.timestamp("us", "Europe/Oslo"), [NOON.astimezone(timezone.utc)]),
    "nanoseconds": (pa.timestamp("ns"), [1_000_000_001, 1_000_000_002]),
    "time32": (pa.time32("ms"), [time(3, 4, 5), time(23)]),
    "time64": (pa.time64("ns"), [time(3, 4, 5, 6), time(23)]),
    "duration": (pa.duration("us"), [timedelta(3, 4, 5), timedelta(-1)]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.00"), Decimal("-0.01"), Decimal("1234567.89")]),
    "wide decimal": (pa.decimal256(60, 3), [Decimal("1.000"), Decimal(10) ** 50]),
    "small decimal": (pa.decimal128(5, -2), [Decimal("1200")]),
    "category": (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
    "category of numbers": (pa.dictionary(pa.int32(), pa.int16()), [3, 7]),
    "nothing": (pa.null(), []),
}


def made(name: str, rows: int = 60, seed: int = 0) -> pa.Table:
    """Return released rows with keys of a type, some of them missing."""
    kind, values = KEYS[name]
    rng = np.random.default_rng(seed)
    every = [*values, None]
    keys = [every[i] for i in rng.integers(0, len(every), rows)]
    stored = keys if kind != pa.float16() else [None if key is None else np.float16(key) for key in keys]
    return pa.table(
        {
            "x": rng.choice(["a", "b"], rows),
            "key": pa.array(stored, kind),
            "other": rng.integers(0, 2, rows),
        }
    )


def counted(table: pa.Table, names: tuple[str, ...] = ("key", "other")) -> Aggregate:
    return PLAN.aggregate(names).update(table)


def again(aggregate: Aggregate) -> Aggregate:
    return Aggregate.from_json(aggregate.to_json(), PLAN)


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_every_type_come_back_and_merge(name: str) -> None:
    table = made(name)
    whole = counted(table)
    assert again(whole) == whole
    assert again(again(whole)).to_json() == whole.to_json()
    for cuts in ([0, 60], [0, 1, 2, 30, 30, 60], [0, 25, 60]):
        parts = [counted(table.slice(a, b - a)) for a, b in itertools.pairwise(cuts)]
        for order in (parts, [again(part) for part in reversed(parts)]):
            merged = PLAN.aggregate(["key", "other"])
            for part in order:
                merged.merge(part)
            assert merged == whole
            assert len(merged) == 60
            assert by_key(merged) == by_key(whole)
    more = made(name, seed=1)
    assert again(whole).update(more) == counted(pa.concat_tables([table, more]))


def by_key(aggregate: Aggregate) -> list[str]:
    return sorted(map(str, aggregate.estimate().to_pylist()))


@pytest.mark.parametrize("name", KEYS)
def test_answers_have_the_keys_of_the_table(name: str) -> None:
    """One row of answers for each category and group; what is missing, or no number, is one group."""
    table = made(name)
    column = counted(table, ("key",)).estimate().column("key")
    distinct = {
        None if isinstance(key, float) and np.isnan(key) else key for key in listed(table.column("key"))
    }
    assert set(listed(column)) == distinct
    assert len(column) == 2 * len(distinct)


def listed(column: Any) -> list[Any]:
    if (pa.types.is_timestamp(column.type) and column.type.unit == "ns") or pa.types.is_time64(column.type):
        column = column.cast(pa.int64())
    if str(column.type).startswith("fixed"):
        column = column.cast(pa.binary())
    return column.to_pylist()


def test_groups_are_those_that_a_loop_would_make() -> None:
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "x": rng.choice(["a", "b"], 90),
            "key": rng.integers(0, 5, 90),
            "other": rng.choice(["p", "q", None], 90),
        }
    )
    whole = counted(table)
    for key, other in {(row["key"], row["other"]) for row in table.to_pylist()}:
        rows = [row for row in table.to_pylist() if (row["key"], row["other"]) == (key, other)]
        alone = PLAN.aggregate().update(pa.Table.from_pylist(rows, table.schema)).estimate().to_pylist()
        found = [
            {name: row[name] for name in alone[0]}
            for row in whole.estimate().to_pylist()
            if (row["key"], row["other"]) == (key, other)
        ]
        assert found == alone


@pytest.mark.parametrize("name", EVERY)
def test_groups_of_every_mechanism_are_those_that_a_loop_would_make(name: str) -> None:
    """Saved counts of every group are those of a table of its rows, whatever was merged."""
    plan = TablePlan([EVERY[name]], keep=["group", "id"])
    table = plan.release()(table_for(EVERY[name], 50, seed=2))
    parts = [plan.aggregate(["group"]).update(table.slice(start, 25)) for start in (0, 25)]
    whole = plan.aggregate(["group"]).update(table)
    saved = {tuple(each["group"]): each["counts"] for each in json.loads(whole.to_json())["groups"]}
    assert len(saved) == 2
    for key, counts in saved.items():
        rows = table.filter(pa.compute.equal(table.column("group"), key[0]))
        alone = plan.aggregate().update(rows)
        assert counts == json.loads(alone.to_json())["groups"][0]["counts"]
    merged = parts[1].merge(parts[0])
    if not any(np.any(json.loads(text)["state"].get("mean", 0)) for text in next(iter(saved.values()))):
        assert merged == whole  # sums of numbers depend on their order in the last digit
    assert len(merged) == len(whole) == 50


def test_what_is_no_report_is_named_by_its_row_where_groups_share_a_pass() -> None:
    """Codes beyond the alphabet, in each form of reports that are counted in one pass."""
    for mechanism, settings in (
        (bitldp.Piecewise(epsilon=1.0, interval=(0.0, 1.0)), {"output": "codes"}),
        (bitldp.GRR(11, epsilon=1.0), {"interval": (0.0, 1.0), "output": "codes"}),
        (bitldp.OUE(3, epsilon=1.0), {"categories": ["a", "b", "c"]}),
    ):
        plan = TablePlan([Column(mechanism, "x", **settings)], keep=["key"])  # type: ignore[arg-type]
        x = ["a", "b"] * 20 if "categories" in settings else [0.2, 0.7] * 20
        table = plan.release()(pa.table({"x": x, "key": np.arange(40) % 7}))
        name = table.column_names[0]
        codes = table.column(0).to_numpy().astype(np.int64)
        codes[33] = 1_000
        aggregate = plan.aggregate(["key"]).update(table)
        before = aggregate.to_json()
        with pytest.raises(DataError, match=rf"column '{name}'.*\b33\b"):  # of the whole table, from 0
            aggregate.update(table.set_column(0, name, pa.array(codes)))
        assert aggregate.to_json() == before


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8())]
)
def test_keys_of_several_values_are_refused(kind: pa.DataType) -> None:
    table = made("text", 3).set_column(1, "key", pa.nulls(3, kind))
    with pytest.raises(PlanError, match=r"column 'key' holds .*; groups may be text"):
        counted(table)


def test_keys_of_another_type_are_refused_and_nothing_is_counted() -> None:
    aggregate = counted(made("date"))
    before = aggregate.to_json()
    for other in ("text", "int64", "seconds"):
        with pytest.raises(PlanError, match=r"column 'key' holds .* where it held date32"):
            aggregate.update(made(other))
        with pytest.raises(PlanError, match=r"column 'key' holds .* where it held date32"):
            aggregate.merge(counted(made(other)))
    assert aggregate.to_json() == before
    assert len(aggregate.update(made("date64"))) == 120  # the same days
    assert len(aggregate.merge(counted(made("nothing")))) == 180


def test_what_is_no_report_in_one_group_is_named_by_its_row_and_counts_in_none() -> None:
    table = made("date").set_column(0, "x", pa.array(["a"] * 41 + ["c"] + ["a"] * 18))
    aggregate = PLAN.aggregate(["key"])
    with pytest.raises(DataError, match="row 142, column 'x'"):
        aggregate.update(table, first_row=101)
    assert len(aggregate) == 0


# -- what was counted before


def test_a_part_is_merged_once() -> None:
    parts = [counted(made("date", seed=seed)) for seed in range(3)]
    whole = PLAN.aggregate(["key", "other"]).merge(parts[0]).merge(parts[1])
    before = whole.to_json()
    for twice in (parts[0], again(parts[1]), again(counted(made("date", seed=5)).merge(parts[0])), whole):
        with pytest.raises(PlanError, match="merge each part once"):
            whole.merge(twice)
    assert whole.to_json() == before
    assert len(again(whole).merge(parts[2])) == 180
    grown = parts[2].update(made("date", seed=4))  # holds what was merged, and more
    with pytest.raises(PlanError, match="merge each part once"):
        again(whole).merge(parts[2]).merge(grown)


def test_days_that_are_saved_and_resumed_are_parts_of_their_own() -> None:
    saved = PLAN.aggregate(["key"]).to_json()
    for day in range(4):
        saved = Aggregate.from_json(saved, PLAN).update(made("date", seed=day)).to_json()
    assert len(Aggregate.from_json(saved, PLAN)) == 240
    assert len(json.loads(saved)["counted"]) == 4


def test_a_named_table_is_counted_once() -> None:
    aggregate = PLAN.aggregate().update(made("date"), source="day-1.parquet")
    with pytest.raises(PlanError, match=r"'day-1\.parquet' was counted before"):
        again(aggregate).update(made("date"), source="day-1.parquet")
    other = PLAN.aggregate().update(made("date", seed=1), source="day-2.parquet")
    assert len(again(aggregate).merge(other)) == 120
    with pytest.raises(PlanError, match="merge each part once"):
        other.merge(PLAN.aggregate().update(made("date"), source="day-2.parquet"))


def test_parts_without_rows_are_nothing() -> None:
    empty = counted(made("date").slice(0, 0))
    assert len(PLAN.aggregate(["key", "other"]).merge(empty).merge(empty)) == 0


# -- documents


def before(aggregate: Aggregate, keys: list[Any]) -> str:
    """Return a document as version 1 wrote it: no types, no names, and keys as `str` has them."""
    document = json.loads(aggregate.to_json())
    del document["types"], document["counted"]
    groups = [{**each, "group": [key]} for each, key in zip(document["groups"], keys, strict=True)]
    return json.dumps({**document, "version": 1, "groups": groups}, default=str)


@pytest.mark.parametrize(
    "name", ["text", "int8", "bool", "date", "seconds", "microseconds", "bytes", "decimal", "time32"]
)
def test_documents_of_before_are_read_and_go_on(name: str) -> None:
    """Keys that were no JSON values had been written as texts, and are known by the next table's type."""
    table = made(name)
    whole = counted(table, ("key",))
    rows = again(whole).estimate().column("key").to_pylist()
    text = before(whole, rows[::2])  # of two categories
    assert len(Aggregate.from_json(text, PLAN)) == 60
    more = made(name, seed=1)
    expected = counted(pa.concat_tables([table, more]), ("key",))
    assert Aggregate.from_json(text, PLAN).update(more) == expected
    assert counted(more, ("key",)).merge(Aggregate.from_json(text, PLAN)) == expected
    assert PLAN.aggregate(["key"]).merge(Aggregate.from_json(text, PLAN)).update(more) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"types": ["decimal"]},
        {"types": []},
        {"types": ["list<item: int8>"]},
        {"types": ["timestamp[parsec]"]},
        {"types": ["binary"]},
        {"types": None},
        {"groups": [{"group": ["2026"], "counts": []}]},
        {"groups": [{"group": [True], "counts": []}]},
        {"groups": [{}]},
        {"groups": [3]},
        {"counted": 3},
        {"version": 3},
    ],
)
def test_documents_that_are_none_are_refused(changed: dict[str, Any]) -> None:
    document = json.loads(counted(made("date"), ("key",)).to_json())
    with pytest.raises(ValueError, match="text"):
        Aggregate.from_json(json.dumps({**document, **changed}), PLAN)
