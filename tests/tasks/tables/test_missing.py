"""Numbers with gaps: filled, which is biased and said, or reported, with the mean of those who answered."""

from __future__ import annotations

from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import Aggregate, Column, PlanError, ReleaseKey, TablePlan

KEY = ReleaseKey(b"k" * 32)
PIECEWISE = bitldp.Piecewise(epsilon=2.0, interval=(0.0, 100.0))


def released(column: Column, values: Any, snapshot: str = "") -> tuple[TablePlan, pa.Table]:
    plan = TablePlan([column])
    table = pa.table({"id": np.arange(len(values)), "x": values})
    return plan, plan.release(KEY, record="id", snapshot=snapshot)(table)


def answers(column: Column, values: Any, snapshot: str = "") -> list[dict[str, Any]]:
    plan, table = released(column, values, snapshot)
    return plan.aggregate().update(table).estimate().to_pylist()


# -- filled


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (Column(PIECEWISE, "x", nulls="fill", fill=0.0), pa.array([1.0, None])),
        (
            Column(bitldp.GRR(11, epsilon=1.0), "x", interval=(0, 100), nulls="fill", fill=0),
            pa.array([1, None]),
        ),
        (
            Column(bitldp.OUE(2, epsilon=1.0), "x", categories=["a", "b"], nulls="fill", fill="a"),
            pa.array(["b", ""]),
        ),
    ],
    ids=["numbers", "points", "categories"],
)
def test_each_answer_of_a_filled_column_says_that_it_is_biased(column: Column, values: pa.Array) -> None:
    notes = [row["note"] for row in answers(column, values)]
    assert notes
    assert all(f"missing values count as {column.fill}: biased" in note for note in notes)
    whole = Column(column.mechanism, "x", categories=column.categories, interval=column.interval)
    assert not any("biased" in (row["note"] or "") for row in answers(whole, values.drop_null().slice(0, 1)))


@pytest.mark.parametrize(
    "type_", [pa.int8(), pa.uint8(), pa.int64(), pa.bool_(), pa.float16(), pa.decimal128(4, 1), pa.date32()]
)
@pytest.mark.parametrize("fill", [90.7, 300.0])
def test_a_missing_value_counts_as_just_what_the_plan_says(type_: pa.DataType, fill: float) -> None:
    """Not as what the column's own type makes of it; `encode` shows what is randomized."""
    column = Column(bitldp.Duchi(epsilon=1.0, interval=(0.0, 1000.0)), "x", nulls="fill", fill=fill)
    found = column.codecs[0].encode(pa.table({"x": pa.nulls(2, type_)}), 1)
    np.testing.assert_array_equal(found.ravel(), [np.asarray(fill, found.dtype)] * 2)


# -- reported


REPORTED = Column(PIECEWISE, "x", nulls="report")


def test_the_bit_and_the_number_share_the_budget() -> None:
    plan = TablePlan([REPORTED])
    assert plan.guarantee.record == pytest.approx(2.0)
    assert [codec.mechanism.guarantee.record for codec in plan.codecs] == pytest.approx([4 / 3, 2 / 3])
    for again in (TablePlan.from_toml(plan.to_toml()), TablePlan.from_json(plan.to_json())):
        assert again == plan
        assert again.guarantee == plan.guarantee
    _, table = released(REPORTED, pa.array([1.0, None, float("nan")]))
    assert table.column_names == ["x", "x_present"]
    assert table.schema.field("x_present").type == pa.int32()
    typed = plan.typed(pa.schema([("x", pa.string())]))
    assert typed.types == {"x": "float32"}
    assert typed.release()(pa.table({"x": ["1.5", "n/a", ""]})).num_rows == 3


def test_what_is_missing_is_so_in_every_type() -> None:
    """At an epsilon of 60 a bit is the truth, but for e^-20."""
    column = Column(bitldp.Duchi(epsilon=60.0), "x", nulls="report")
    for values in (
        pa.array([1, None]),
        pa.array(["1", " NA "]),
        pa.array([0.5, float("nan")]),
        pa.array([True, None]),
    ):
        assert released(column, values)[1].column("x_present").to_pylist() == [1, 0]


@pytest.mark.parametrize(
    ("mechanism", "interval"),
    [
        (PIECEWISE, None),
        (bitldp.Duchi(epsilon=2.0, interval=(0.0, 100.0)), None),
        (bitldp.GRR(11, epsilon=2.0), (0.0, 100.0)),
        (bitldp.FRR(1, bits=8, integer_bits=7, epsilon=6.0), None),
    ],
    ids=["Piecewise", "Duchi", "points", "words"],
)
@pytest.mark.statistical
def test_intervals_hold_the_share_of_missing_values_and_the_mean_of_the_others(
    mechanism: Any, interval: Any
) -> None:
    """120 releases of n = 1,000, 30 % missing, keyed: 95 % intervals hold the truth 105 times or more.

    Of 120 at .95 fewer than 105 do so with a chance of .0007; the key is fixed, so this cannot flake.
    """
    column = Column(mechanism, "x", nulls="report", interval=interval)
    rng, n = np.random.default_rng(2), 1_000
    held = {"share": 0, "mean": 0}
    for number in range(120):
        values = np.rint(rng.normal(40.0, 12.0, n).clip(0.0, 100.0) / 10.0) * 10.0
        missing = rng.random(n) < 0.3
        rows = answers(column, pa.array(values, mask=missing), str(number))
        assert [row["what"] for row in rows] == ["share", "mean"]
        for row, truth in zip(rows, (0.3, 40.0), strict=True):
            held[row["what"]] += row["low"] <= truth <= row["high"]
            assert row["records"] == n
        assert rows[1]["note"].startswith("of those who answered")
    assert min(held.values()) >= 105, held


def test_the_share_of_answers_and_their_sum_go_together() -> None:
    """At an epsilon of 60 the number is known whoever answers; as if independent, it would be +- 3.2."""
    column = Column(bitldp.Piecewise(epsilon=60.0, interval=(0.0, 100.0)), "x", nulls="report")
    _, mean = answers(column, pa.array([95.0, None] * 200))
    assert mean["estimate"] == pytest.approx(95.0, abs=0.1)
    assert mean["stderr"] < 0.2
    assert mean["high"] - mean["low"] < 0.8


def test_where_hardly_anybody_answered_there_is_no_mean() -> None:
    share, mean = answers(REPORTED, pa.nulls(200, pa.float64()))
    assert share["low"] < 1.0 < share["high"]
    assert mean["estimate"] is None
    assert "too few of them" in mean["note"]


def test_counts_of_reported_gaps_merge_and_come_back() -> None:
    values = pa.array([1.0, None, 50.0] * 100)
    plan, table = released(REPORTED, values)
    whole = plan.aggregate().update(table)
    parts = [plan.aggregate().update(table.slice(start, 100)) for start in (0, 100, 200)]
    merged = plan.aggregate()
    for part in parts:
        merged.merge(Aggregate.from_json(part.to_json(), plan))
    assert merged == whole
    assert merged.estimate().equals(whole.estimate())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Column(bitldp.GRR(2, epsilon=1.0), "x", categories=["a", "b"], nulls="report"),
            "is for numbers",
        ),
        (
            lambda: Column(bitldp.Duchi(epsilon=1.0, features=2), ["x", "y"], nulls="report"),
            "a mechanism of its own",
        ),
        (lambda: Column(PIECEWISE, "x", nulls="report", fill=1.0), "need each other"),
    ],
)
def test_what_cannot_be_reported_is_refused(make: Any, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        make()
