"""Groups of released rows: keys of kept columns that mean the same in every process and saved document."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from datetime import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.estimate.grouping import Grouping
from bitldp.tables.frames import plain_column, plain_type, worded

__all__ = [
    "Group",
    "array_of_keys",
    "from_json",
    "grouped",
    "grouping_of",
    "inferred",
    "key_type",
    "parts",
    "read_type",
    "retyped",
    "to_json",
]

#: A key for each column: a number, a text, bytes, a truth value, or None for what is missing.
Group = tuple[Any, ...]

_DENSE = 4  # numbers below so many times as many as there are rows are looked up, others are sorted

_TYPE = re.compile(r"(\w+)(?:\[(\w+)(?:, tz=(.+))?\]|\((\d+), (-?\d+)\))?")
_PLAIN = {
    str(each): each
    for each in (pa.null(), pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.binary(), pa.date32())
}


def key_type(name: str, arrow_type: pa.DataType) -> pa.DataType:
    """Return the type of the keys of a column: one for all integers, one for all floats, and so on.

    Raises
    ------
    PlanError
        For a type whose values tell no groups apart.
    """
    kind, types = plain_type(arrow_type), pa.types
    if types.is_integer(kind):
        return pa.int64()
    if types.is_floating(kind):
        return pa.float64()
    if types.is_date(kind):
        return pa.date32()
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.string()
    if str(kind).startswith(("binary", "large_binary", "fixed_size_binary")):
        return pa.binary()
    kept = (types.is_null, types.is_boolean, types.is_timestamp, types.is_time, types.is_duration)
    if any(each(kind) for each in (*kept, types.is_decimal)):
        return kind
    raise PlanError(
        f"group_by: column {name!r} holds {kind}; groups may be text, bytes, numbers, booleans, "
        "dates and times"
    )


def grouped(table: pa.Table, names: Sequence[str]) -> list[tuple[Group, pa.Table]]:
    """Return the groups of a table with their rows; see `grouping_of` and `parts`."""
    keys, grouping = grouping_of(table, names)
    return list(zip(keys, parts(table, names, grouping), strict=True))


def grouping_of(table: pa.Table, names: Sequence[str]) -> tuple[list[Group], Grouping]:
    """Return the groups of a table's rows, and which of them each row is in.

    Groups are in the order in which the table shows the values of the first column, then of the next.
    """
    which, keys = np.zeros(table.num_rows, np.int64), [()] if table.num_rows else []
    for name in names:
        encoded = _keys(table.column(name), name).dictionary_encode()
        slots = pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy().astype(np.int64)
        values = [*encoded.dictionary.to_pylist(), None]
        # Numbered anew after each column, so that no product of many columns overflows.
        cells, which = _numbered(which * len(values) + slots, len(keys) * len(values))
        before, own = np.divmod(cells, len(values))
        keys = [(*keys[i], values[j]) for i, j in zip(before.tolist(), own.tolist(), strict=True)]
    return keys, Grouping(which, len(keys))


def _numbered(cells: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct numbers, ascending, of those below a size, and which of them each number is."""
    if size > _DENSE * len(cells) + 1:
        distinct, which = np.unique(cells, return_inverse=True)
        return distinct, which.reshape(-1)
    there = np.zeros(size, np.bool_)
    there[cells] = True
    distinct = np.flatnonzero(there)
    return distinct, (distinct if len(distinct) == size else np.cumsum(there) - 1)[cells]


def parts(table: pa.Table, names: Sequence[str], grouping: Grouping) -> list[pa.Table]:
    """Return the rows of each group, in the order of the table, without the columns of the keys."""
    order = np.argsort(grouping.which, kind="stable")
    others = [name for name in table.column_names if name not in names]
    rows = pa.table({name: plain_column(table.column(name)) for name in others}).take(pa.array(order))
    ends = np.cumsum(grouping.sizes).tolist()
    return [rows.slice(end - size, size) for end, size in zip(ends, grouping.sizes.tolist(), strict=True)]


def _keys(column: Any, name: str) -> pa.Array:
    """Return the keys of a column as numbers, texts, bytes or truth values; NaN is missing."""
    wanted = key_type(name, column.type)
    with worded([name]):
        found = plain_column(column)
        if isinstance(found, pa.ChunkedArray):
            found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
        if pa.types.is_integer(wanted):
            return found  # as they are: those of 64 bits without a sign fit no other
        if pa.types.is_decimal(wanted):
            return found.cast(pa.string())
        found = found.cast(wanted)
        if wanted == pa.float64():
            return pc.if_else(pc.is_nan(found), pa.scalar(None, wanted), pc.add(found, 0.0))  # no minus zero
        stored = _stored(wanted)
        return found if stored is None else found.cast(stored)


def _stored(kind: pa.DataType) -> pa.DataType | None:
    """Return the integers that dates and times are; None for all else."""
    types = pa.types
    if types.is_date32(kind) or types.is_time32(kind):
        return pa.int32()
    return (
        pa.int64() if types.is_timestamp(kind) or types.is_time64(kind) or types.is_duration(kind) else None
    )


def array_of_keys(keys: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return keys as an array of the type that they had."""
    if kind == pa.int64():
        large = any(key is not None and key >= 1 << 63 for key in keys)
        small = any(key is not None and key < 0 for key in keys)
        return pa.array(keys, (pa.decimal128(20) if small else pa.uint64()) if large else kind)
    if pa.types.is_decimal(kind):
        return pa.array(keys, pa.string()).cast(kind)
    stored = _stored(kind)
    return pa.array(keys, kind) if stored is None else pa.array(keys, stored).cast(kind)


# -- as JSON values


def to_json(key: Any) -> Any:
    """Return a key as a JSON value; its type is written beside."""
    if isinstance(key, bytes):
        return key.hex()
    return str(key) if isinstance(key, float) and math.isinf(key) else key


def from_json(value: Any, kind: pa.DataType) -> Any:
    """Return the key that a JSON value is.

    Raises
    ------
    ValueError, TypeError
        For one that is no key of the type.
    """
    if value is None:
        return None
    if kind == pa.binary():
        return bytes.fromhex(value)
    if kind == pa.float64():
        return float(value)
    wanted = bool if kind == pa.bool_() else str if kind == pa.string() or pa.types.is_decimal(kind) else int
    if type(value) is not wanted:
        raise TypeError
    return value


def read_type(text: Any) -> pa.DataType:
    """Return the type of keys that a document names.

    Raises
    ------
    ValueError
        For one that no keys have.
    """
    if text in _PLAIN:
        return _PLAIN[text]
    found = _TYPE.fullmatch(text) if isinstance(text, str) else None
    if found is not None:
        name, unit, zone, precision, scale = found.groups()
        if name == "timestamp" and unit:
            return pa.timestamp(unit, zone)
        if name in ("time32", "time64", "duration") and unit:
            return getattr(pa, name)(unit)
        if name.startswith("decimal") and precision and hasattr(pa, name):
            return getattr(pa, name)(int(precision), int(scale))
    raise ValueError("text: names a type that no keys have")


# -- documents of before, which hold no types


def inferred(keys: Sequence[Any]) -> pa.DataType:
    """Return the type of keys of which only the JSON values are known."""
    return key_type("", pa.array(keys).type)


def retyped(keys: Sequence[Any], kind: pa.DataType) -> list[Any] | None:
    """Return texts that stand for keys of a type as such keys; None where some does not."""
    try:
        if kind == pa.binary():
            return [None if key is None else bytes(ast.literal_eval(key)) for key in keys]
        if pa.types.is_time(kind):
            times = [None if key is None else time.fromisoformat(key) for key in keys]
            return _keys(pa.array(times, kind), "").to_pylist()
        return _keys(pa.array(keys, pa.string()).cast(kind), "").to_pylist()
    except (ValueError, SyntaxError, TypeError, pa.ArrowException):
        return None
