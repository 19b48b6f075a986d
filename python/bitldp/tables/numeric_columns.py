"""Columns of a table as an array of numbers, with missing values filled in or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.arrays import first
from bitldp.base.errors import DataError, PlanError
from bitldp.tables.codec import Batch
from bitldp.tables.frames import is_text, plain_column, refuse_null
from bitldp.tables.scales import Scales
from bitldp.tables.settings import MISSING_TEXTS, Missing
from bitldp.tables.values import in_unit

__all__ = ["is_missing", "numbers_of", "refuse_outside"]


def numbers_of(
    batch: Batch, columns: Sequence[str], first_row: int, missing: Missing, unit: str | None = None
) -> NDArray[Any]:
    """Return the numeric columns of a batch as one (n, r) array without missing values; times in a unit."""
    if isinstance(batch, np.ndarray):
        numbers = batch if batch.dtype in (np.float32, np.float64) else batch.astype(np.float32)
        numbers = numbers.reshape(len(numbers), len(columns))
    else:
        numbers = _matrix(batch, columns, first_row, missing, unit)
    finite = np.isfinite(numbers)
    if not finite.all():
        row, column = np.unravel_index(int(np.argmin(finite)), numbers.shape)
        problem = "missing value (NaN)" if np.isnan(numbers[row, column]) else "infinite value"
        raise DataError(f"row {first_row + int(row)}, column {columns[int(column)]!r}: {problem}")
    return numbers


def refuse_outside(
    numbers: NDArray[Any], interval: tuple[float, float] | Scales, columns: Sequence[str], first_row: int
) -> None:
    """Refuse a number outside an interval, or outside that of its column, by its row."""
    low, high = np.array(interval.intervals).T if isinstance(interval, Scales) else interval
    inside = (numbers >= low) & (numbers <= high)
    if not inside.all():
        row, column = first(~inside)
        raise DataError(f"row {first_row + row}, column {columns[column]!r}: outside the range (--no-clip)")


def _matrix(
    table: pa.Table, columns: Sequence[str], first_row: int, missing: Missing, unit: str | None
) -> NDArray[Any]:
    """Return the numeric columns of a table as one array; NaN stays."""
    narrow = all(table.schema.field(name).type in (pa.float16(), pa.float32()) for name in columns)
    matrix = np.empty((table.num_rows, len(columns)), np.float32 if narrow else np.float64)
    for j, name in enumerate(columns):
        column = plain_column(table.column(name))
        if is_text(column.type):
            column = _parse(column, name, first_row, missing, unit)
        else:
            column = in_unit(column, unit, name, first_row)
        if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
            column = column.cast(pa.float64())
        elif not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise PlanError(f"column {name!r} holds {column.type}: this mechanism takes numbers")
        if missing.filled:
            if column.type not in (pa.float32(), pa.float64()):  # which hold every number to fill in
                column = column.cast(pa.float64(), safe=False)
            column = pc.fill_null(column, pa.scalar(missing.fill, column.type))
        refuse_null(column, name, first_row)
        matrix[:, j] = column.to_numpy()
    if missing.filled:
        matrix[np.isnan(matrix)] = missing.fill
    return matrix


def is_missing(column: Any) -> Any:
    """Return where a column of numbers has none: a null, NaN, or a text of a text file that says so."""
    if not is_text(column.type):
        return pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    return pc.fill_null(pc.is_in(texts, value_set=pa.array(MISSING_TEXTS, column.type)), True)


def _parse(
    column: pa.ChunkedArray, name: str, first_row: int, missing: Missing, unit: str | None
) -> pa.ChunkedArray:
    """Read text as numbers; the first text that is none is refused by its row."""
    if missing.filled:
        column = pc.if_else(is_missing(column), pa.scalar(None, column.type), column)
    else:
        refuse_null(column, name, first_row)
    try:
        return column.cast(pa.float64())
    except pa.ArrowException:
        trimmed = pc.utf8_trim_whitespace(column)
    if unit is not None:
        return in_unit(column, unit, name, first_row)
    try:
        return trimmed.cast(pa.float64())
    except pa.ArrowException:
        for row, text in enumerate(trimmed):
            try:
                text.cast(pa.float64())
            except pa.ArrowException:
                problem = "missing value" if str(text).lower() in MISSING_TEXTS else "not a number"
                raise DataError(f"row {first_row + row}, column {name!r}: {problem}") from None
        raise DataError(f"column {name!r}: not a number") from None
