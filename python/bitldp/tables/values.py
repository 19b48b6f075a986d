"""Values of columns as mechanisms take them: times in a unit, whole floats as integers, lists as features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.errors import DataError, PlanError
from bitldp.tables.frames import is_text, refuse_null

__all__ = [
    "UNITS",
    "dates",
    "element_type",
    "features_of",
    "in_unit",
    "is_time",
    "whole_numbers",
]

#: Nanoseconds of each unit that a plan states for columns of dates and times.
UNITS = {
    "days": 86_400 * 10**9,
    "hours": 3_600 * 10**9,
    "minutes": 60 * 10**9,
    "seconds": 10**9,
    "milliseconds": 10**6,
    "microseconds": 10**3,
}
_TICKS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def is_time(kind: pa.DataType) -> bool:
    """Return whether a type is of instants, times of day or durations: numbers in a unit alone."""
    types = pa.types
    return bool(types.is_timestamp(kind) or types.is_time(kind) or types.is_duration(kind))


def _refused(wrong: Any, name: str, first_row: int, problem: str) -> DataError:
    """Return the refusal of the first value that a mask marks."""
    row = int(pc.index(pc.fill_null(wrong, False), True).as_py())
    return DataError(f"row {first_row + max(row, 0)}, column {name!r}: {problem}")


def whole_numbers(column: Any, name: str, first_row: int) -> Any:
    """Return a column of floats that are whole as integers of 64 bits; NaN is missing.

    A library that has no missing integers holds integers with gaps as floats.

    Raises
    ------
    DataError
        For a number that is not whole, or too large to tell, by its row.
    """
    there = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    digits = {pa.float16(): 11, pa.float32(): 24}.get(column.type, 53)
    large = pc.greater(pc.abs(there), pa.scalar(float(1 << digits), column.type))
    if pc.any(large).as_py():
        raise _refused(large, name, first_row, "a float that is too large to be one integer")
    try:
        return there.cast(pa.int64())
    except pa.ArrowException:
        wrong = pc.not_equal(pc.round(there.cast(pa.float64())), there.cast(pa.float64()))
        raise _refused(wrong, name, first_row, "is not a whole number, where integers are") from None


def dates(column: Any, name: str, first_row: int) -> Any:
    """Return a column of timestamps that are midnights as dates, for libraries without a type of dates.

    Raises
    ------
    DataError
        For another time of day, by its row.
    """
    naive = pc.local_timestamp(column) if column.type.tz else column
    days = pc.floor_temporal(naive, unit="day")
    wrong = pc.not_equal(days, naive)
    if pc.any(wrong).as_py():
        raise _refused(wrong, name, first_row, "is not midnight, and the column holds dates")
    return days.cast(pa.date32())


def in_unit(column: Any, unit: str | None, name: str, first_row: int) -> Any:
    """Return a column of dates and times as numbers of a unit, and one of numbers as it is.

    Instants and dates count from 1970-01-01 00:00 UTC (those without a zone as if they were of UTC), times of
    day from midnight. A text is a number of the unit, or an ISO date or time with or without a zone.

    Raises
    ------
    PlanError
        For times without a unit.
    DataError
        For a text that is neither, by its row.
    """
    kind, types = column.type, pa.types
    if unit is None:
        if types.is_date(kind):
            return column.cast(pa.date32()).cast(pa.int32())  # days since 1970-01-01
        if is_time(kind):
            raise PlanError(
                f"column {name!r} holds {kind}: state what its numbers count, one of "
                f"{', '.join(UNITS)}, as unit in the plan"
            )
        return column
    if is_text(kind):
        column = _parsed(column, name, first_row)
        kind = column.type
    if types.is_date32(kind):
        return _counted(column.cast(pa.int32()), UNITS["days"], unit)
    if types.is_date64(kind):
        return _counted(column.cast(pa.int64()), _TICKS["ms"], unit)
    if is_time(kind):
        wide = pa.int32() if types.is_time32(kind) else pa.int64()
        return _counted(column.cast(wide), _TICKS[kind.unit], unit)
    return column


def _counted(ticks: Any, tick: int, unit: str) -> Any:
    """Return whole ticks of so many nanoseconds as numbers of a unit, exact to the last digit of a double."""
    counts: NDArray[np.int64] = pc.fill_null(ticks, 0).to_numpy().astype(np.int64)
    size = UNITS[unit]
    if size >= tick:
        whole, rest = np.divmod(counts, size // tick)
        numbers = whole + rest / (size // tick)
    else:
        numbers = counts.astype(np.float64) * (tick // size)
    return pa.array(numbers, pa.float64(), mask=ticks.is_null().to_numpy(zero_copy_only=False))


def _parsed(texts: Any, name: str, first_row: int) -> Any:
    """Return texts as numbers or as instants, whichever all of them are."""
    trimmed = pc.utf8_trim_whitespace(texts)
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return trimmed.cast(kind)
        except pa.ArrowException:
            continue
    for row, text in enumerate(trimmed):
        if not any(
            _is_one(text, kind) for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
        ):
            raise DataError(
                f"row {first_row + row}, column {name!r}: neither a number nor a date or time of ISO 8601"
            )
    raise DataError(
        f"column {name!r}: holds numbers, dates and times with and without a zone; one kind is needed"
    )


def _is_one(text: Any, kind: pa.DataType) -> bool:
    try:
        text.cast(kind)
    except pa.ArrowException:
        return False
    return True


# -- lists


def element_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the elements of lists; another type as it is."""
    return kind.value_type if _is_list(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))


def features_of(table: pa.Table, name: str, features: Sequence[str], first_row: int) -> pa.Table:
    """Return a table of the elements of a column of lists, a column for each feature.

    Raises
    ------
    PlanError
        For a column of something else, or of lists of another length.
    DataError
        For a missing list, or one of another length where lengths differ, by its row.
    """
    column, width = table.column(name), len(features)
    if not _is_list(column.type):
        raise PlanError(
            f"column {name!r} holds {column.type}: {width} features are so many columns, or lists of {width}"
        )
    refuse_null(column, name, first_row)
    if pa.types.is_fixed_size_list(column.type):
        if column.type.list_size != width:
            raise PlanError(
                f"column {name!r} holds lists of {column.type.list_size}; the mechanism takes {width}"
            )
    else:
        other = pc.not_equal(pc.list_value_length(column), width)
        if pc.any(other).as_py():
            raise _refused(other, name, first_row, f"is not a list of {width}, which the mechanism needs")
    flat = pc.list_flatten(column)
    starts = np.arange(table.num_rows, dtype=np.int64) * width
    return pa.table({each: flat.take(pa.array(starts + j)) for j, each in enumerate(features)})
