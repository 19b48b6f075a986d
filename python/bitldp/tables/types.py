"""Declared types of a plan: keyed reports depend on ids and numbers, so that these must be one thing each.

An id that is an integer today and a text tomorrow has two independent reports, and so has a number in single
and in double precision. A plan that states types refuses others before anything leaves, and its release has
another name than one of other types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.frames import plain_column, plain_type
from bitldp.tables.values import element_type, whole_numbers

__all__ = ["TYPES", "checked_types", "refuse_other", "rounded", "types_of", "wholes"]

#: Types that a plan states; all integers are one, and numbers have single precision unless float64 is stated.
TYPES = (
    *("integer", "float32", "float64", "boolean", "date", "text", "bytes"),
    *("timestamp", "time", "duration"),
)

_FLOATS = ("float32", "float64")
_TIMES = ("timestamp", "time", "duration")


def types_of(
    schema: pa.Schema, codecs: Sequence[ColumnCodec], record: str | None, *, exact: bool = False
) -> dict[str, str]:
    """Return the type of each column that reports depend on, by name; empty where nothing is known of it.

    Parameters
    ----------
    schema : pyarrow.Schema
    codecs : sequence of ColumnCodec
    record : str or None
        Column of the ids.
    exact : bool
        Whether precisions are told apart, and integers of 64 bits without a sign from others: for plans that
        state no types, whose numbers and ids are taken as they are.

    Raises
    ------
    PlanError
        For a column of a type that none can be stated of.
    """
    found = {}
    for codec in codecs:
        for name in codec.inputs:
            kind = _type(name, element_type(schema.field(name).type), exact)
            number = name in codec.numeric and codec.settings.unit is None  # of a file without types
            number = number and kind == "text" and not exact
            found[name] = "float32" if number else kind
    if record is not None:
        kind = schema.field(record).type
        found[record] = _type(record, kind, exact)
        if found[record] in _TIMES and not exact:
            raise PlanError(f"column {record!r}: holds {kind}; a plan states integer, text or bytes of ids")
    return found


def _type(name: str, arrow_type: pa.DataType, exact: bool) -> str:
    kind = plain_type(arrow_type)
    name_of = next((each for test, each in _KINDS if test(kind)), None)
    if exact and name_of == "float32" and kind not in (pa.float16(), pa.float32()):
        return "float64"
    if exact and kind == pa.uint64():
        return "uint64"
    if name_of is not None:
        return name_of
    if exact:
        return str(kind)  # whether it can be read at all is not said here
    raise PlanError(f"column {name!r}: holds {kind}; a plan states {', '.join(TYPES)}")


def _is_bytes(kind: pa.DataType) -> bool:
    return str(kind).startswith(("binary", "large_binary", "fixed_size_binary"))


_KINDS = (
    (pa.types.is_null, ""),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "float32"),
    (pa.types.is_decimal, "float32"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_time, "time"),
    (pa.types.is_duration, "duration"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (_is_bytes, "bytes"),
)


def checked_types(types: Any, codecs: Sequence[ColumnCodec]) -> dict[str, str]:
    """Return stated types, or refuse them: of all columns that are released, and of one more, the ids'.

    Raises
    ------
    PlanError
    """
    if not isinstance(types, Mapping) or not all(isinstance(name, str) for name in types):
        raise PlanError("types: must be a type for each name of a column")
    for name, kind in types.items():
        if kind not in TYPES:
            raise PlanError(f"types: {name!r} must be one of {', '.join(TYPES)}")
    names = [name for codec in codecs for name in codec.inputs]
    if types and (absent := [name for name in names if name not in types]):
        raise PlanError(f"types: column {absent[0]!r} has no type; give types to all columns or to none")
    others = [name for name in types if name not in names]
    if len(others) > 1:
        raise PlanError(f"types: {others[1]!r} is not a column of the plan, nor the ids' column")
    return dict(types)


def refuse_other(stated: Mapping[str, str], found: Mapping[str, str], record: str | None, whose: str) -> None:
    """Refuse a table of other types than those that are stated.

    A file without types holds texts: numbers are read of them as they are, and categories compared. An id is
    an id of its type.

    Raises
    ------
    PlanError
    """
    for name, kind in found.items():
        wanted = stated.get(name, "")
        both = kind in _FLOATS and wanted in _FLOATS and whose == _PLAN
        text = kind == "text" and name != record and whose == _PLAN
        text = text or ((kind, wanted) == ("float32", "integer") and whose == _PLAN)  # see `wholes`
        if kind and wanted and kind != wanted and not both and not text:
            raise PlanError(
                f"column {name!r}: holds {kind}, where {whose} {wanted}; a record would get another report"
            )


_PLAN = "the plan states"


def wholes(table: pa.Table, columns: Sequence[str], types: Mapping[str, str], first_row: int) -> pa.Table:
    """Return a table whose floats are integers where integers are stated; refuse what is not whole by row."""
    for name in columns:
        column = table.column(name)
        if types.get(name) == "integer" and pa.types.is_floating(plain_type(column.type)):
            whole = whole_numbers(plain_column(column), name, first_row)
            table = table.set_column(table.column_names.index(name), name, whole)
    return table


def rounded(x: NDArray[Any], codec: ColumnCodec, types: Mapping[str, str]) -> NDArray[Any]:
    """Return an encoded batch with numbers in the stated precision; what is in a range stays there."""
    stated = [types[codec.settings.listed or name] for name in codec.columns]
    single = [j for j, name in enumerate(codec.columns) if name in codec.numeric and stated[j] == "float32"]
    if not single or x.dtype.kind != "f" or not len(x):
        return x
    table = x.reshape(len(x), -1).astype(np.float64)
    largest = float(np.finfo(np.float32).max)
    before = table[:, single]
    after = before.clip(-largest, largest).astype(np.float32).astype(np.float64)
    if codec.mechanism._span is not None:
        low, high = codec.mechanism._span
        after = np.where((before >= low) & (before <= high), after.clip(low, high), after)
    table[:, single] = after
    return table.reshape(x.shape)
