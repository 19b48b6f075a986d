"""Releases of tables: every kind of frame, missing values, and errors that tell nothing."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import Column, DataError, PlanError, TablePlan
from support.plans import people, plan

RELEASED = ["height", "weight", "city", "age", "drink=tea", "drink=coffee", "drink missing", "survey"]


def test_only_what_the_plan_names_leaves() -> None:
    table = people(50)
    released = plan().release()(table)
    assert released.column_names == RELEASED
    assert released.num_rows == 50
    assert "secret" not in str(released.to_pydict())
    assert released.column("survey").equals(table.column("survey"))
    assert released.schema.metadata[b"bitldp.plan"] == plan().digest.encode()
    assert float(released.schema.metadata[b"bitldp.epsilon"]) == plan().guarantee.record


@pytest.mark.parametrize("kind", ["table", "batch", "pandas", "polars", "arrays"])
def test_every_kind_of_frame_comes_back_as_its_kind(kind: str) -> None:
    table = people(40)
    frame: Any = table
    if kind == "batch":
        frame = table.combine_chunks().to_batches()[0]
    elif kind == "pandas":
        pandas = pytest.importorskip("pandas")
        frame = table.to_pandas().set_index(pandas.Index(range(100, 140)))
    elif kind == "polars":
        polars = pytest.importorskip("polars")
        frame = polars.from_arrow(table)
    elif kind == "arrays":
        frame = {name: table.column(name).combine_chunks() for name in table.column_names}
    released = plan().release()(frame)
    if kind == "arrays":
        assert isinstance(released, dict)
        assert list(released) == RELEASED
        return
    assert type(released) is type(frame)
    names = released.schema.names if kind in ("table", "batch") else list(released.columns)
    assert names == RELEASED
    assert len(released) == 40
    if kind == "pandas":
        assert list(released.index) == list(range(100, 140))
        assert released["survey"].dtype == frame["survey"].dtype
    answers = plan().aggregate().update(released).estimate()
    assert answers.num_rows == 9


def test_another_thing_is_refused() -> None:
    with pytest.raises(TypeError, match="frame: must be a table"):
        plan().release()([1, 2, 3])


def test_a_table_without_a_column_is_refused() -> None:
    with pytest.raises(PlanError, match="column 'height': the table has no such column"):
        plan().release()(people(5).drop_columns(["height"]))


def one(values: Any, column: Column, type_: Any = None) -> Any:
    return TablePlan([column]).release()(pa.table({"x": pa.array(values, type_)}))


CITY = Column(bitldp.GRR(2, epsilon=1.0), "x", categories=["Paris", "Rome"])


@pytest.mark.parametrize(
    ("values", "column", "words"),
    [
        (
            ["Paris", None],
            CITY,
            "row 2, column 'x': missing value",
        ),
        (
            ["Paris", "Berne"],
            CITY,
            "row 2, column 'x': not one of",
        ),
        ([1.0, 0.5, None], Column(bitldp.Duchi(epsilon=1.0), "x"), "row 3, column 'x': missing value"),
        (
            [1.0, float("nan")],
            Column(bitldp.Duchi(epsilon=1.0), "x"),
            r"row 2, column 'x': missing value \(NaN\)",
        ),
        ([1.0, float("inf")], Column(bitldp.Duchi(epsilon=1.0), "x"), "row 2, column 'x': infinite"),
        (["1.5", "seventy"], Column(bitldp.Duchi(epsilon=1.0), "x"), "row 2, column 'x': not a number"),
        (
            [0.0, 3.5],
            Column(bitldp.Duchi(epsilon=1.0, clip=False), "x"),
            "row 2, column 'x': outside the range",
        ),
    ],
)
def test_a_value_that_cannot_leave_is_named_by_its_place(values: Any, column: Column, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        one(values, column)
    for secret in ("Berne", "seventy", "3.5"):
        assert secret not in str(caught.value)


def test_missing_values_are_a_category_or_filled_and_never_pass() -> None:
    n = 4_000
    values = ["Paris", None] * (n // 2)
    own = one(values, Column(bitldp.GRR(3, epsilon=3.0), "x", nulls="category", categories=["Paris", "Rome"]))
    nulls = own.column("x").null_count
    assert 0.7 * n / 2 < nulls < n / 2 + 0.3 * n  # p = .91 of one half, q = .045 of the other
    assert own.column("x").is_null().to_pylist() != [value is None for value in values]
    filled = one(
        values,
        Column(bitldp.GRR(2, epsilon=3.0), "x", nulls="fill", fill="Rome", categories=["Paris", "Rome"]),
    )
    assert filled.column("x").null_count == 0
    numbers = one([0.5, None, float("nan")], Column(bitldp.Duchi(epsilon=1.0), "x", nulls="fill", fill=0.0))
    assert numbers.column("x").null_count == 0
    texts = one(["0.5", "NA", ""], Column(bitldp.Duchi(epsilon=1.0), "x", nulls="fill", fill=0.0))
    assert texts.num_rows == 3
    said = one(
        ["Paris", "n/a", ""],
        Column(bitldp.GRR(3, epsilon=40.0), "x", nulls="category", categories=["Paris", "Rome"]),
    )
    assert said.column("x").to_pylist() == ["Paris", None, None]  # at epsilon 40 the truth, but for e^-40


@pytest.mark.parametrize(
    ("values", "type_", "categories"),
    [
        ([1, 2, 2], pa.int8(), [1, 2]),
        ([True, False, True], pa.bool_(), [True, False]),
        ([date(2026, 1, 2), date(2026, 1, 3)], pa.date32(), ["2026-01-02", "2026-01-03"]),
        (["a", "b"], pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
        (["a", "b"], pa.large_string(), ["a", "b"]),
        (["a", "b"], pa.string_view(), ["a", "b"]),
    ],
)
def test_categories_of_every_type_keep_it(values: Any, type_: Any, categories: Any) -> None:
    column = Column(bitldp.GRR(2, epsilon=40.0), "x", categories=categories)
    assert one(values, column, type_).column("x").to_pylist() == values


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, 0], pa.int64()),
        ([True, False], pa.bool_()),
        ([1.0, 0.0], pa.float32()),
        (np.array([1.0, 0.0], np.float16), pa.float16()),
        ([Decimal("1.0"), Decimal("0.0")], pa.decimal128(5, 2)),
        ([date(1970, 1, 2), date(1970, 1, 1)], pa.date32()),
    ],
)
def test_numbers_of_every_type_are_released_as_doubles(values: Any, type_: Any) -> None:
    column = Column(bitldp.Piecewise(epsilon=4.0, interval=(0.0, 1.0)), "x")
    released = one(list(values) * 4_000, column, type_).column("x")
    assert released.type == pa.float64()
    assert abs(np.mean(released.to_numpy()) - 0.5) < 0.05


def test_bits_and_codes_are_integers_that_every_engine_has() -> None:
    column = Column(bitldp.OUE(2, epsilon=1.0), "x", categories=["a", "b"])
    assert one(["a", "b"], column).schema.types == [pa.int8(), pa.int8()]
    assert one([0.5], Column(bitldp.Duchi(epsilon=1.0), "x", output="codes")).schema.types == [pa.int32()]
    wide = Column(bitldp.FRR(1, bits=32, integer_bits=2, epsilon=5.0), "x")
    assert one([0.5], wide).schema.types == [pa.int64()]


def test_fresh_coins_are_another_release_each_time() -> None:
    table = people(500)
    release = plan().release()
    assert not release.repeatable
    assert not release(table).equals(release(table))
    for method in ("batches", "pandas", "polars"):
        with pytest.raises(PlanError, match="an engine may evaluate a batch twice"):
            list(getattr(release, method)(table))
