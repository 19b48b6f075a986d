"""Columns of a file to the arrays that a mechanism takes, and its reports back to columns.

Each codec refuses what it cannot encode, naming the row (counted from 1, a header not counted) and the column
and never the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.arrays import first
from bitldp.base.errors import DataError, PlanError

__all__ = ["Batch", "Codec", "Labels", "Missing", "Numbers", "Points", "Reals"]

#: Rows of a table, or of an array: (n, columns) or (n,).
Batch: TypeAlias = "pa.Table | NDArray[Any]"

#: Texts of a CSV field that mean "no value".
_MISSING = ("", "na", "n/a", "nan", "null", "none", "?")


@dataclass(frozen=True)
class Missing:
    """What becomes of a missing value (a null, or NaN); never does it pass through.

    Attributes
    ----------
    policy : {"refuse", "category", "fill"}
        Refused by its row; a category of its own, the last one; or a public value in its place.
    fill : float, str or None
        That public value.
    """

    policy: Literal["refuse", "category", "fill"] = "refuse"
    fill: Any = None


_REFUSED = Missing()


class Codec(Protocol):
    """Between the columns of a file and the arrays of one mechanism."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the mechanism takes together."""
        ...

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return the mechanism's input for a batch whose first row has the number `first_row`."""
        ...

    def decode(self, reports: NDArray[Any], output: str, arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return named columns for the mechanism's reports on columns of an Arrow type."""
        ...

    def names(self, width: int) -> list[str]:
        """Return the names of the columns that reports of some width become."""
        ...


@dataclass(frozen=True)
class Numbers:
    """Real numbers: r columns to an (n, r) array of float32 or float64."""

    columns: tuple[str, ...]
    missing: Missing = field(default=_REFUSED, kw_only=True)

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n, r) floats, float32 where the file holds no wider type."""
        if not isinstance(batch, np.ndarray):
            return _matrix(batch, self.columns, first_row, self.missing)
        numbers = batch if batch.dtype in (np.float32, np.float64) else batch.astype(np.float32)
        _refuse_not_finite(numbers, self.columns, first_row)
        return numbers

    def decode(self, reports: NDArray[Any], output: str, arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return r columns of values or codes, or r times l of bits, named ``column_bit0`` (the sign) on."""
        names = self.names(reports.shape[1])
        return [(name, np.ascontiguousarray(reports[:, j])) for j, name in enumerate(names)]

    def names(self, width: int) -> list[str]:
        """Return the names of the columns that reports of some width become."""
        each = width // len(self.columns)
        if each == 1:
            return list(self.columns)
        return [f"{name}_bit{i}" for name in self.columns for i in range(each)]


@dataclass(frozen=True)
class Reals(Numbers):
    """Real numbers of a public interval: r columns to an (n, r) array, of which a mechanism releases some.

    Attributes
    ----------
    low, high : float
        The ends of the interval; what lies outside moves to them.
    released : int
        How many of the r numbers of a row are released: all, or those that are sampled.
    clip : bool
        Whether what is outside moves to the ends; it is refused otherwise.
    """

    low: float
    high: float
    released: int
    clip: bool

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n, r) floats, float32 where the file holds no wider type."""
        numbers = super().encode(batch, first_row)
        if not self.clip:
            inside = (numbers >= self.low) & (numbers <= self.high)
            if not inside.all():
                row, column = first(~inside)
                name = self.columns[column]
                raise DataError(f"row {first_row + row}, column {name!r}: outside the range (--no-clip)")
        return numbers


@dataclass(frozen=True)
class Points:
    """A real number as the nearest of N equidistant points of a public interval; an end, if it is outside.

    Attributes
    ----------
    indices : bool
        Whether the mechanism takes the numbers of the points; otherwise it takes real numbers.
    """

    columns: tuple[str, ...]
    low: float
    high: float
    points: int
    indices: bool
    missing: Missing = _REFUSED

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n,) float64."""
        if not isinstance(batch, np.ndarray):
            return _matrix(batch, self.columns, first_row, self.missing)[:, 0].astype(np.float64)
        numbers = batch.astype(np.float64)
        _refuse_not_finite(numbers, self.columns, first_row)
        return numbers

    def place(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the numbers of the nearest points, in [0, N)."""
        share = (numbers.clip(self.low, self.high) - self.low) / (self.high - self.low)
        return np.rint(share * (self.points - 1)).astype(np.uint32)

    def decode(self, reports: NDArray[Any], output: str, arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return one column."""
        return [(self.columns[0], reports)]

    def names(self, width: int) -> list[str]:
        """Return the name of its column."""
        return list(self.columns)


@dataclass(frozen=True)
class Labels:
    """A category of a public dictionary to its number, and reports back to labels.

    The labels are text; a column of integers or booleans is compared with the labels read as that type, and
    is written back as that type.
    """

    columns: tuple[str, ...]
    categories: tuple[str, ...]
    missing: Missing = _REFUSED
    parts: tuple[str, ...] = ()  # names of the numbers of a report, where they are not one a category

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n,) category numbers; a value outside the dictionary is refused."""
        column = self.columns[0]
        values = pa.array(batch) if isinstance(batch, np.ndarray) else batch.column(column)
        values = _plain(values)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        dictionary = self.dictionary(values.type)
        codes = pc.index_in(values, value_set=dictionary)
        if self.missing.policy == "refuse":
            _refuse_null(values, column, first_row)
        else:
            codes = pc.if_else(self._blank(values, codes), pa.scalar(self._absent(), codes.type), codes)
        if codes.null_count:
            row = _first(codes.is_null())
            missing = pa.types.is_string(values.type) and str(values[row]).strip().lower() in _MISSING
            raise DataError(
                f"row {first_row + row}, column {column!r}: "
                + ("missing value" if missing else "not one of the categories given")
            )
        return np.asarray(codes.to_numpy(zero_copy_only=False), np.uint32)

    @staticmethod
    def _blank(values: Any, codes: Any) -> Any:
        """Return where a value is missing: a null, or a text that says so and is no category."""
        if not pa.types.is_string(values.type):
            return values.is_null()
        texts = pc.utf8_lower(pc.utf8_trim_whitespace(values))
        said = pc.and_(pc.is_in(texts, value_set=pa.array(_MISSING, texts.type)), codes.is_null())
        return pc.or_(values.is_null(), pc.fill_null(said, True))

    def _absent(self) -> int:
        """Return the number of the category that a missing value counts as."""
        if self.missing.policy == "category":
            return len(self.categories)
        return self.categories.index(str(self.missing.fill))

    def dictionary(self, arrow_type: pa.DataType) -> pa.Array:
        """Return the categories as an Arrow array of the type of a column; without that of missing values."""
        column = self.columns[0]
        arrow_type = _plain_type(arrow_type)
        if pa.types.is_integer(arrow_type):
            parse: Callable[[str], Any] = int
        elif pa.types.is_boolean(arrow_type):
            parse = {"true": True, "false": False, "1": True, "0": False}.__getitem__
        elif pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
            parse = str
        elif pa.types.is_date32(arrow_type):
            parse = date.fromisoformat
        else:
            raise PlanError(
                f"column {column!r} holds {arrow_type}: categories are text, integers, booleans or dates"
            )
        try:
            # Booleans are written in any case; text and integers as they are.
            texts = [text.lower() if pa.types.is_boolean(arrow_type) else text for text in self.categories]
            dictionary = pa.array([parse(text) for text in texts], arrow_type)
        except (ValueError, KeyError, OverflowError, pa.ArrowException):
            raise PlanError(
                f"--categories: column {column!r} holds {arrow_type}, some category given is not"
            ) from None
        if len(pc.unique(dictionary)) != len(dictionary):
            raise PlanError(f"--categories: two categories of column {column!r} are the same {arrow_type}")
        return dictionary

    def decode(self, reports: NDArray[Any], output: str, arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return labels, category numbers, or a column for each category, named ``column=label``.

        Of the numbers of a report that stand for no category, a column for each, named ``column_part``.
        """
        column = self.columns[0]
        if reports.ndim == 2:
            return [
                (name, np.ascontiguousarray(reports[:, j]))
                for j, name in enumerate(self.names(len(reports.T)))
            ]
        if output != "values":
            return [(column, reports)]
        absent = reports == len(self.categories)  # which is no report where missing values are no category
        return [(column, self.dictionary(arrow_type).take(pa.array(reports, mask=absent)))]

    def names(self, width: int) -> list[str]:
        """Return the names of the columns that reports of some width become."""
        if self.parts:
            return [f"{self.columns[0]}_{part}" for part in self.parts]
        every = [f"{self.columns[0]}={label}" for label in self.categories]
        return [self.columns[0]] if width == 1 else [*every, f"{self.columns[0]} missing"][:width]


def _matrix(table: pa.Table, columns: Sequence[str], first_row: int, missing: Missing) -> NDArray[Any]:
    """Return the numeric columns of a table as one (n, r) array without missing values."""
    narrow = all(table.schema.field(name).type in (pa.float16(), pa.float32()) for name in columns)
    matrix = np.empty((table.num_rows, len(columns)), np.float32 if narrow else np.float64)
    for j, name in enumerate(columns):
        column = _plain(table.column(name))
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = _parse(column, name, first_row, missing)
        elif pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
            column = column.cast(pa.float64())
        elif pa.types.is_date32(column.type):  # days since 1970-01-01
            column = column.cast(pa.int32())
        elif not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise PlanError(f"column {name!r} holds {column.type}: this mechanism takes numbers")
        if missing.policy == "fill":
            column = pc.fill_null(column, pa.scalar(missing.fill, column.type))
        _refuse_null(column, name, first_row)
        matrix[:, j] = column.to_numpy()
    if missing.policy == "fill":
        matrix[np.isnan(matrix)] = missing.fill
    _refuse_not_finite(matrix, columns, first_row)
    return matrix


def _plain_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type that a dictionary-encoded or viewed column stands for."""
    if pa.types.is_dictionary(arrow_type):
        return arrow_type.value_type
    return pa.string() if str(arrow_type) == "string_view" else arrow_type


def _plain(column: Any) -> Any:
    """Return a column without dictionary encoding or views."""
    wanted = _plain_type(column.type)
    return column if column.type == wanted else column.cast(wanted)


def _parse(column: pa.ChunkedArray, name: str, first_row: int, policy: Missing) -> pa.ChunkedArray:
    """Read text as numbers; the first text that is none is refused by its row."""
    if policy.policy == "fill":  # in a text file "no value" is a text, too
        empty = pc.is_in(
            pc.utf8_lower(pc.utf8_trim_whitespace(column)), value_set=pa.array(_MISSING, column.type)
        )
        column = pc.if_else(pc.fill_null(empty, True), pa.scalar(None, column.type), column)
    else:
        _refuse_null(column, name, first_row)
    try:
        return column.cast(pa.float64())
    except pa.ArrowException:
        trimmed = pc.utf8_trim_whitespace(column)
    try:
        return trimmed.cast(pa.float64())
    except pa.ArrowException:
        for row, text in enumerate(trimmed):
            try:
                text.cast(pa.float64())
            except pa.ArrowException:
                problem = "missing value" if str(text).lower() in _MISSING else "not a number"
                raise DataError(f"row {first_row + row}, column {name!r}: {problem}") from None
        raise DataError(f"column {name!r}: not a number") from None


def _first(mask: Any) -> int:
    """Return the place of the first true value of an Arrow mask."""
    return int(pc.index(mask, True).as_py())


def _refuse_null(column: Any, name: str, first_row: int) -> None:
    if column.null_count:
        raise DataError(f"row {first_row + _first(column.is_null())}, column {name!r}: missing value")


def _refuse_not_finite(numbers: NDArray[Any], columns: Sequence[str], first_row: int) -> None:
    """Refuse NaN (which files use for a missing value) and infinities."""
    finite = np.isfinite(numbers)
    if finite.all():
        return
    place = np.unravel_index(int(np.argmin(finite)), numbers.shape)
    problem = "missing value (NaN)" if np.isnan(numbers[place]) else "infinite value"
    column = columns[int(place[1])] if len(place) > 1 else columns[0]
    raise DataError(f"row {first_row + int(place[0])}, column {column!r}: {problem}")
