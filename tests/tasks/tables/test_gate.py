"""The gate for foreign data: whatever a table holds, an error shows no value, and is none of a library."""

from __future__ import annotations

import datetime
import decimal
import itertools
import struct
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import Column, DataError, PlanError, ReleaseKey, TablePlan
from bitldp.tables.frames import worded

SECRET = "HIV positive, Anna B."
NUMBER = 8_675_309  # a secret, too
KEY = ReleaseKey(b"k" * 32)

COLUMNS = {
    "number": Column(bitldp.Piecewise(epsilon=1.0, interval=(0.0, 1.0)), "x"),
    "filled": Column(bitldp.Piecewise(epsilon=1.0, interval=(0.0, 300.0)), "x", nulls="fill", fill=255.5),
    "words": Column(bitldp.FRR(1, bits=8, integer_bits=2, epsilon=4.0), "x"),
    "points": Column(bitldp.GRR(4, epsilon=1.0), "x", interval=(0.0, 1.0)),
    "category": Column(bitldp.GRR(2, epsilon=1.0), "x", categories=["a", "b"]),
    "whole": Column(bitldp.GRR(3, epsilon=1.0), "x", categories=["1", "2"], nulls="category"),
}


class Hostile:
    """An object whose every word is a secret."""

    def __repr__(self) -> str:
        return SECRET

    def __len__(self) -> int:
        raise RuntimeError(SECRET)


def values() -> Iterator[Any]:
    """Yield columns of three rows in which something is wrong, or might be."""
    secrets: list[Any] = [
        *(SECRET, SECRET.encode(), NUMBER, float(NUMBER), -NUMBER, NUMBER**9, True, None, float("nan")),
        *(decimal.Decimal(NUMBER), datetime.date(1986, 7, 5), datetime.datetime(1986, 7, 5, 3)),
        *(datetime.time(3, 4), datetime.timedelta(NUMBER), [SECRET], {"a": SECRET}, (NUMBER,), Hostile()),
        *(
            "\ud800" + SECRET,
            complex(NUMBER, 1),
            np.datetime64("1986-07-05"),
            "",
            b"\xff\xfe" + SECRET.encode(),
        ),
    ]
    for secret in secrets:
        yield [secret] * 3
    for first, second in itertools.product(["a", 1, 0.5, None, True], secrets):
        yield [first, second, first]
    for type_ in (
        *(pa.int8(), pa.uint8(), pa.uint64(), pa.float16(), pa.float32(), pa.decimal128(20, 2), pa.bool_()),
        *(pa.decimal256(60, 3), pa.date32(), pa.date64(), pa.timestamp("ns"), pa.timestamp("s", "UTC")),
        *(pa.time32("s"), pa.duration("us"), pa.string(), pa.large_string(), pa.string_view(), pa.binary()),
        *(pa.binary(21), pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.null(), pa.binary_view()),
        *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())),
    ):
        yield pa.nulls(3, type_)
        for given in ([1, None, 2], [NUMBER] * 3, [SECRET, None, "a"], [b"\xff"] * 3):
            try:
                yield pa.array(given, type_)
            except (pa.ArrowException, OverflowError, TypeError, ValueError):
                continue


def frames(made: Any) -> Iterator[Callable[[], Any]]:
    """Yield ways to make a frame of a column "x"; the other column is in no plan, and holds a secret."""
    own = isinstance(made, pa.Array)
    yield lambda: {"x": made, "other": Hostile()}
    if own:
        yield lambda: pa.table({"x": made, "id": [1, 2, 3]})
        yield lambda: pa.RecordBatch.from_arrays([made], ["x"])

    def pandas() -> Any:
        import pandas

        mixed = pandas.Series([SECRET, NUMBER, None], dtype=object)
        column = pandas.Series(made.to_pandas()) if own else pandas.Series(made, dtype=object)
        return pandas.DataFrame({"x": column, "other": mixed})

    def polars() -> Any:
        import polars

        if own:
            return polars.DataFrame({"x": polars.from_arrow(made)})
        return polars.DataFrame({"x": polars.Series(made, dtype=polars.Object)})

    yield from (pandas, polars)


def said(call: Callable[[], Any]) -> str:
    """Return all that a call shows of its error; nothing where it has none. Only the gate's errors pass."""
    try:
        call()
    except (PlanError, DataError) as error:
        return "".join(traceback.format_exception(error))
    return ""


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.slow
def test_no_error_shows_a_value(name: str) -> None:
    """Some 3,000 frames a kind of column, as values and as ids, released and counted."""
    plan, refused = TablePlan([COLUMNS[name]]), 0
    identified = TablePlan([Column(bitldp.Duchi(epsilon=1.0), "y")]).release(KEY, record="x")
    for made in values():
        for make in frames(made):
            try:
                frame = make()
            except BaseException:  # the library itself has no such frame; polars panics
                continue
            for call in (
                lambda frame=frame: plan.release()(frame),
                lambda frame=frame: plan.aggregate().update(frame),
                lambda frame=frame: identified.check_ids([frame]),
            ):
                text = said(call)
                refused += bool(text)
                assert not any(word in text for word in ("HIV", "Anna", str(NUMBER), "1986")), text
    assert refused > 500


def test_what_arrow_says_of_a_value_is_not_shown() -> None:
    with pytest.raises(DataError, match="column 'x', 'y': holds values that") as caught, worded(["x", "y"]):
        pa.array([SECRET]).cast(pa.int64())
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_what_is_wrong_in_a_column_that_no_plan_names_is_not_looked_at() -> None:
    plan = TablePlan([COLUMNS["number"]])
    released = plan.release()({"x": [0.5, 0.25], "other": Hostile(), SECRET: [1, "a", None]})
    assert list(released) == ["x"]


def test_a_frame_whose_columns_are_numbered_is_read_by_their_names() -> None:
    pandas = pytest.importorskip("pandas")
    plan = TablePlan([Column(bitldp.Duchi(epsilon=1.0), "0")], keep=["1"])
    released = plan.release()(pandas.DataFrame({0: [0.5, 0.25], 1: ["a", "b"]}))
    assert list(released["1"]) == ["a", "b"]


def lying(offsets: list[int], text: bytes) -> pa.Array:
    """Return texts whose offsets need not be true."""
    packed = struct.pack(f"<{len(offsets)}i", *offsets)
    return pa.Array.from_buffers(
        pa.string(), len(offsets) - 1, [None, pa.py_buffer(packed), pa.py_buffer(text)]
    )


@pytest.mark.parametrize(
    "column",
    [
        lying([0, 1 << 30, 2], b"ab"),
        lying([0, -9, 2], b"ab"),
        lying([0, 1, 2], b"\xff\xfe"),
        pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), pa.array(["a", "b"]), safe=False),
    ],
    ids=["beyond", "backwards", "no UTF-8", "no such category"],
)
@pytest.mark.parametrize("role", ["released", "kept", "id", "counted"])
def test_bytes_that_do_not_fit_their_type_are_refused(column: Any, role: str) -> None:
    table = pa.Table.from_arrays([column, pa.array(["a", "b"]), pa.array([1, 2])], ["x", "y", "id"])
    name = "y" if role in ("kept", "id") else "x"
    plan = TablePlan(
        [Column(bitldp.GRR(2, epsilon=1.0), name, categories=["a", "b"])],
        keep=["x"] if role == "kept" else [],
    )
    calls = {
        "id": lambda: plan.release(KEY, record="x")(table),
        "counted": lambda: plan.aggregate().update(table),
    }
    with pytest.raises(DataError, match="column 'x': its data are damaged"):
        calls.get(role, lambda: plan.release()(table))()
