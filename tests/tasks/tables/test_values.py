"""Values as mechanisms take them: times in a unit, whole floats, decimals, and texts of other libraries."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import Column, DataError, PlanError, ReleaseKey, TablePlan
from bitldp.tables.frames import opened
from bitldp.tables.values import UNITS

KEY = ReleaseKey(b"k" * 32)
NOON = datetime(2026, 11, 23, 12, 30, 15, 250_000)
EPOCH = (NOON - datetime(1970, 1, 1)) / timedelta(seconds=1)


def encoded(values: Any, unit: str | None, first_row: int = 1) -> list[float]:
    """Return what a mechanism takes of a column."""
    column = Column(bitldp.Duchi(epsilon=1.0, interval=(-1e18, 1e18)), "x", unit=unit)
    table = values if isinstance(values, pa.Table) else pa.table({"x": values})
    found: list[float] = column.codecs[0].read(table, first_row)[:, 0].tolist()
    return found


@pytest.mark.parametrize("resolution", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Rome"])
def test_instants_count_from_1970_in_the_stated_unit(resolution: str, zone: str | None) -> None:
    own = NOON.replace(microsecond=0) if resolution == "s" else NOON
    seconds = EPOCH - 0.25 * (resolution == "s")
    values = pa.array([own, own], pa.timestamp(resolution)).cast(pa.timestamp(resolution, zone))
    for unit, nanoseconds in UNITS.items():
        expected = seconds * 1e9 / nanoseconds
        assert encoded(values, unit) == pytest.approx([expected] * 2, rel=1e-15)


@pytest.mark.parametrize(
    ("values", "unit", "expected"),
    [
        (pa.array([date(1970, 1, 3)], pa.date32()), "hours", 48.0),
        (pa.array([date(1970, 1, 3)], pa.date64()), "hours", 48.0),
        (pa.array([date(1970, 1, 3)], pa.date32()), None, 2.0),
        (pa.array([date(1970, 1, 3)], pa.date64()), None, 2.0),
        (pa.array([time(1, 30)], pa.time32("s")), "hours", 1.5),
        (pa.array([time(1, 30)], pa.time32("ms")), "minutes", 90.0),
        (pa.array([time(1, 30)], pa.time64("us")), "seconds", 5_400.0),
        (pa.array([time(1, 30)], pa.time64("ns")), "milliseconds", 5.4e6),
        (pa.array([timedelta(days=-2, hours=12)], pa.duration("ms")), "days", -1.5),
        (pa.array([90], pa.duration("s")), "microseconds", 9e7),
        (pa.array(["1970-01-02 06:00"]), "days", 1.25),
        (pa.array([" 1970-01-02T06:00:00.5 "], pa.large_string()), "seconds", 108_000.5),
        (pa.array(["1970-01-02T06:00:00+02:00"]), "hours", 28.0),
        (pa.array(["7.5"]), "hours", 7.5),
        (pa.array([7]), "hours", 7.0),
    ],
)
def test_times_are_numbers_of_a_unit(values: Any, unit: str | None, expected: float) -> None:
    assert encoded(values, unit) == [expected]


def test_times_without_a_unit_are_refused_with_the_cure() -> None:
    for kind in (pa.timestamp("us"), pa.time32("s"), pa.duration("s")):
        with pytest.raises(
            PlanError, match=r"column 'x' holds .*: state what its numbers count, one of days"
        ):
            encoded(pa.array([0], kind), None)
    with pytest.raises(PlanError, match="column 'x': unit: is for numbers"):
        Column(bitldp.GRR(2, epsilon=1.0), "x", categories=["a", "b"], unit="days")
    with pytest.raises(ValueError, match="unit: must be one of"):
        Column(bitldp.Duchi(epsilon=1.0), "x", unit="weeks")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1970-01-01", "secret"], "row 11, column 'x': neither a number nor a date or time"),
        (["1970-01-01", "1970-01-01T00:00:00Z"], "one kind is needed"),
        ([datetime(2026, 1, 1), None], "row 11, column 'x': missing value"),
        (["1970-01-01", ""], "row 11, column 'x': "),
    ],
)
def test_what_is_no_time_is_refused_by_its_row(values: Any, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        encoded(pa.array(values), "days", 10)
    assert "secret" not in str(caught.value)


def test_missing_times_follow_the_plan() -> None:
    when = Column(bitldp.Duchi(epsilon=1.0, interval=(0.0, 9.0)), "x", unit="days", nulls="fill", fill=4.0)
    table = pa.table({"x": pa.array([timedelta(days=1), None])})
    assert when.codecs[0].read(table, 1).ravel().tolist() == [1.0, 4.0]
    told = Column(bitldp.Duchi(epsilon=1.0, interval=(0.0, 9.0)), "x", unit="days", nulls="report")
    assert TablePlan([told]).release()(table).column_names == ["x", "x_present"]


def test_a_unit_is_part_of_the_plan_and_types_are_stated() -> None:
    plan = TablePlan([Column(bitldp.Piecewise(epsilon=1.0, interval=(0.0, 1e10)), "at", unit="seconds")])
    assert TablePlan.from_toml(plan.to_toml()) == TablePlan.from_json(plan.to_json()) == plan
    assert 'unit = "seconds"' in plan.to_toml()
    at = pa.array([NOON, NOON + timedelta(hours=1)], pa.timestamp("us"))
    table = pa.table({"id": [1, 2], "at": at})
    typed = plan.typed(table, "id")
    assert typed.types == {"at": "timestamp", "id": "integer"}
    released = typed.release(KEY, record="id")
    one = released(table)
    for other in (at.cast(pa.timestamp("ns")), at.cast(pa.timestamp("us", "UTC"))):
        assert released(table.set_column(1, "at", other)).equals(one)
    texts = pa.array([str(NOON), str(NOON + timedelta(hours=1))])
    assert released(table.set_column(1, "at", texts)).column("at").equals(one.column("at"))
    with pytest.raises(PlanError, match="column 'at': holds duration, where the plan states timestamp"):
        released(table.set_column(1, "at", pa.array([1, 2], pa.duration("s"))))


# -- categories


def round_trip(values: Any, categories: list[Any], kind: pa.DataType) -> None:
    """Release categories, count them, and compare with the same ones as text."""
    column = Column(bitldp.GRR(len(categories), epsilon=2.0), "x", categories=categories)
    plan = TablePlan([column])
    table = pa.table({"id": range(len(values)), "x": values})
    released = plan.release(KEY, record="id")(table)
    assert released.schema.field("x").type == kind
    texts = [str(value) for value in categories]
    codes = column.codecs[0].read(table, 1).tolist()
    same = TablePlan([Column(bitldp.GRR(len(categories), epsilon=2.0), "x", categories=texts)])
    as_text = pa.table({"id": range(len(values)), "x": [texts[code] for code in codes]})
    assert [str(each) for each in released.column("x").to_pylist()] == same.release(KEY, record="id")(
        as_text
    ).column("x").to_pylist()
    assert plan.aggregate().update(released) == plan.aggregate().update(
        released.set_column(0, "x", pa.array([str(each) for each in released.column("x").to_pylist()]))
    )


@pytest.mark.parametrize(
    ("values", "categories", "kind"),
    [
        (pa.array([1.0, 2.0, 3.0, 1.0]), [1, 2, 3], pa.int64()),
        (pa.array([1.0, 2.0], pa.float32()), [1, 2], pa.int64()),
        (pa.array([Decimal("1.50"), Decimal("2.00")]), ["1.50", "2.00"], pa.decimal128(3, 2)),
        (
            pa.array([date(2026, 1, 1), date(2026, 1, 2)], pa.date64()),
            ["2026-01-01", "2026-01-02"],
            pa.date64(),
        ),
        (
            pa.array([datetime(2026, 1, 1), datetime(2026, 1, 2)], pa.timestamp("us")),
            ["2026-01-01", "2026-01-02"],
            pa.date32(),
        ),
        (pa.array(["a", "b"], pa.large_string()), ["a", "b"], pa.large_string()),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"], pa.string()),
    ],
    ids=["float64", "float32", "decimal", "date64", "timestamp", "large_string", "dictionary"],
)
def test_categories_of_every_type(values: Any, categories: list[Any], kind: pa.DataType) -> None:
    round_trip(values, categories, kind)


@pytest.mark.parametrize(
    ("values", "categories", "words"),
    [
        (pa.array([1.0, 2.5]), [1, 2], "row 2, column 'x': is not a whole number"),
        (pa.array([1.0, float("nan")]), [1, 2], "row 2, column 'x': missing value"),
        (pa.array([1.0, 1e300]), [1, 2], "row 2, column 'x': a float that is too large"),
        (pa.array([1.0, float("inf")]), [1, 2], "row 2, column 'x': a float that is too large"),
        (pa.array([1.0, 7.0]), [1, 2], "row 2, column 'x': not one of the categories given"),
        (
            pa.array([datetime(2026, 1, 1), NOON]),
            ["2026-01-01", "2026-01-02"],
            "row 2, column 'x': is not midnight",
        ),
        (pa.array([Decimal("1.50"), Decimal("9.99")]), ["1.50", "2.00"], "row 2, column 'x': not one of"),
        (pa.array(["a", " NA"], pa.large_string()), ["a", "b"], "row 2, column 'x': missing value"),
    ],
)
def test_what_is_no_category_is_refused_by_its_row(values: Any, categories: list[Any], words: str) -> None:
    plan = TablePlan([Column(bitldp.GRR(2, epsilon=1.0), "x", categories=categories)])
    with pytest.raises(DataError, match=words):
        plan.release()(pa.table({"x": values}))


def test_decimals_are_written_as_the_column_writes_them() -> None:
    plan = TablePlan([Column(bitldp.GRR(2, epsilon=1.0), "x", categories=["1.5", "2"])])
    with pytest.raises(PlanError, match="some category given is not"):
        plan.release()(pa.table({"x": [Decimal("1.50")]}))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_blanks_of_pandas_and_polars_are_missing_values(library: str) -> None:
    found = pytest.importorskip(library)
    column = Column(bitldp.OUE(3, epsilon=1.0), "x", categories=["a", "b"], nulls="category")
    for blank in ("", "NA", " n/a ", None):
        frame = found.DataFrame({"x": ["a", blank, "b"]})
        table, _ = opened(frame, ["x"])
        assert column.codecs[0].read(table, 1).tolist() == [0, 2, 1]


# -- plans that state integers


def test_integers_with_gaps_are_integers_where_the_plan_says_so() -> None:
    """Libraries without missing integers hold them as floats, in the partitions that have gaps alone."""
    columns = [
        Column(bitldp.GRR(4, epsilon=1.0), "city", categories=[1, 2, 3], nulls="category"),
        Column(bitldp.Duchi(epsilon=1.0, interval=(0.0, 9.0)), "n"),
    ]
    whole = pa.table({"id": [7, 8, 9], "city": [1, 2, 3], "n": [4, 5, 6]})
    plan = TablePlan(columns).typed(whole, "id")
    assert plan.types == {"city": "integer", "n": "integer", "id": "integer"}
    release = plan.release(KEY, record="id")
    floats = pa.table({name: pa.array(np.array(whole.column(name), float)) for name in whole.column_names})
    assert release(floats).equals(release(whole))
    gap = floats.set_column(1, "city", pa.array([1.0, np.nan, 3.0]))
    assert release(gap).num_rows == 3
    for name, words in (("id", "whole number"), ("n", "row 2, column 'n': is not a whole number")):
        wrong = pa.array([7.0, 8.5, 9.0])
        with pytest.raises(DataError, match=words):
            release(floats.set_column(floats.column_names.index(name), name, wrong))
    with pytest.raises(DataError, match="row 3, column 'id': a float that is too large"):
        release(floats.set_column(0, "id", pa.array([7.0, 8.0, 2.0**54])))


def test_a_zone_says_which_day_it_is() -> None:
    plan = TablePlan([Column(bitldp.GRR(2, epsilon=1.0), "x", categories=["2026-01-01", "2026-01-02"])])
    midnight = datetime(2026, 1, 1, 23, tzinfo=timezone.utc)
    rome = pa.array([midnight], pa.timestamp("us", "Europe/Rome"))
    assert plan.columns[0].codecs[0].read(pa.table({"x": rome}), 1).tolist() == [1]


# -- lists


LISTS = TablePlan([Column(bitldp.Piecewise(epsilon=3.0, features=3, interval=(0.0, 9.0)), "e")])
NUMBERS = np.arange(18.0).reshape(6, 3) / 2.0


@pytest.mark.parametrize(
    "lists",
    [
        pa.FixedSizeListArray.from_arrays(pa.array(NUMBERS.ravel()), 3),
        pa.array(NUMBERS.tolist()),
        pa.array(NUMBERS.tolist(), pa.large_list(pa.float64())),
    ],
    ids=["fixed", "list", "large list"],
)
def test_lists_are_features(lists: Any) -> None:
    names = ["e[0]", "e[1]", "e[2]"]
    apart = TablePlan([Column(bitldp.Piecewise(epsilon=3.0, features=3, interval=(0.0, 9.0)), names)])
    table = pa.table({"id": range(6), "e": lists})
    columns = pa.table({"id": range(6), **{name: NUMBERS[:, j] for j, name in enumerate(names)}})
    read = LISTS.codecs[0].read(table, 1)
    assert read.tolist() == NUMBERS.tolist()
    assert LISTS.codecs[0].read(table.slice(2, 3), 1).tolist() == NUMBERS[2:5].tolist()
    assert LISTS.columns[0].to_document()["columns"] == ["e"]
    assert TablePlan.from_toml(LISTS.to_toml()) == LISTS
    assert LISTS.inputs == ("e",)
    released = LISTS.release()(table)
    assert released.column_names == names == apart.release()(columns).column_names
    estimates = LISTS.aggregate().update(released).estimate()
    assert estimates.column("column").to_pylist() == names
    typed = LISTS.typed(table, "id")
    assert typed.types == {"e": "float32", "id": "integer"}
    assert typed.release(KEY, record="id")(table).num_rows == 6


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        (pa.array([[1.0, 2.0]]), "row 1, column 'e': is not a list of 3"),
        (pa.array([[1.0, 2.0, 3.0], None]), "row 2, column 'e': missing value"),
        (pa.array([[1.0, 2.0, 3.0], [1.0, None, 3.0]]), r"row 2, column 'e\[1\]': missing value"),
        (pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0]), 2), "column 'e' holds lists of 2"),
        (pa.array([1.0]), "column 'e' holds double: 3 features are so many columns, or lists of 3"),
        (pa.array([["a", "b", "c"]]), r"column 'e\[0\]': not a number"),
    ],
)
def test_what_is_no_list_of_features_is_refused(lists: Any, words: str) -> None:
    with pytest.raises((DataError, PlanError), match=words):
        LISTS.release()(pa.table({"e": lists}))
