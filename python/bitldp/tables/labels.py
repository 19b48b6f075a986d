"""Columns of categories: the values of a public list, and reports back to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.errors import DataError, PlanError
from bitldp.tables.codec import Batch, ColumnCodec
from bitldp.tables.frames import (
    COUNTED,
    MISSING_TEXTS,
    Missing,
    first_row_of,
    is_text,
    plain_column,
    plain_type,
    refuse_null,
)
from bitldp.tables.intervals import Intervals
from bitldp.tables.reading import Of, Reading, indicators, refused
from bitldp.tables.values import dates, whole_numbers
from bitldp.tables.written import codes_of_values

__all__ = ["Dictionary", "Labels", "text_of"]


def text_of(value: Any) -> str:
    """Return a category as it is written in a table."""
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else str(value)


@dataclass(frozen=True)
class Dictionary:
    """Public list of the categories of a column.

    The labels are text; a column of integers, booleans, dates or decimals is compared with the labels read as
    that type, and is written back as that type. Whole floats are integers, and midnights are dates: libraries
    without missing integers, or without dates, have these.

    Attributes
    ----------
    column : str
    categories : tuple of str
    missing : Missing
    """

    column: str
    categories: tuple[str, ...]
    missing: Missing

    def check(self, size: int, mechanism: str, title: str, where: str = "") -> None:
        """Refuse a list of another length than the mechanism has categories, or with one of them twice."""
        if len(self.categories) + (self.missing.policy == "category") != size:
            extra = " and one of missing values" if self.missing.policy == "category" else ""
            raise PlanError(
                f"{title}: {mechanism} has {size} categories{where}, the list {len(self.categories)}{extra}"
            )
        if len(set(self.categories)) != len(self.categories):
            raise PlanError(f"{title}: categories: two are the same")

    def encode(self, batch: Batch, first_row: int) -> NDArray[np.uint32]:
        """Return (n,) category numbers; a value outside the list is refused."""
        column = self.column
        values = plain_column(pa.array(batch) if isinstance(batch, np.ndarray) else batch.column(column))
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        listed = self.typed(values.type)
        values = _comparable(values, column, first_row)
        codes = pc.index_in(values, value_set=listed)
        if self.missing.policy == "refuse":
            refuse_null(values, column, first_row, COUNTED)
        else:
            codes = pc.if_else(_blank(values, codes), pa.scalar(self._absent, codes.type), codes)
        if codes.null_count:
            row = first_row_of(codes.is_null())
            missing = is_text(values.type) and str(values[row]).strip().lower() in MISSING_TEXTS
            raise DataError(
                f"row {first_row + row}, column {column!r}: "
                + (f"missing value; {COUNTED}" if missing else "not one of the categories given")
            )
        return np.asarray(codes.to_numpy(zero_copy_only=False), np.uint32)

    @property
    def _absent(self) -> int:
        """Number of the category that a missing value counts as."""
        if self.missing.policy == "category":
            return len(self.categories)
        return self.categories.index(str(self.missing.fill))

    def typed(self, arrow_type: pa.DataType) -> pa.Array:
        """Return the categories as an Arrow array of the type of a column; without that of missing values."""
        column = self.column
        held, arrow_type = plain_type(arrow_type), _comparable_type(arrow_type)
        wrong = PlanError(
            f"column {column!r} holds {held}: categories are text, integers, booleans, dates or decimals"
        )
        if pa.types.is_integer(arrow_type):
            parse: Callable[[str], Any] = int
        elif pa.types.is_boolean(arrow_type):
            parse = {"true": True, "false": False, "1": True, "0": False}.__getitem__
        elif is_text(arrow_type):
            parse = str
        elif pa.types.is_date(arrow_type):
            parse = date.fromisoformat
        elif pa.types.is_decimal(arrow_type):
            parse = Decimal
        else:
            raise wrong
        try:
            # Booleans are written in any case; text and integers as they are.
            texts = [text.lower() if pa.types.is_boolean(arrow_type) else text for text in self.categories]
            dictionary = pa.array([parse(text) for text in texts], arrow_type)
            if pa.types.is_decimal(arrow_type) and dictionary.cast(pa.string()).to_pylist() != texts:
                raise ValueError
        except (ValueError, KeyError, OverflowError, InvalidOperation, pa.ArrowException):
            if pa.types.is_floating(held):
                raise wrong from None
            raise PlanError(
                f"--categories: column {column!r} holds {held}, some category given is not"
            ) from None
        if len(pc.unique(dictionary)) != len(dictionary):
            raise PlanError(f"--categories: two categories of column {column!r} are the same {arrow_type}")
        return dictionary

    def decode(self, codes: NDArray[Any], arrow_type: pa.DataType) -> pa.Array:
        """Return labels of category numbers, in the type of a column."""
        absent = codes == len(self.categories)  # which is no report where missing values are no category
        return self.typed(arrow_type).take(pa.array(codes, mask=absent))

    def collect(self, column: Any, first_row: int) -> NDArray[np.uint32]:
        """Return the category numbers of labels that were released."""
        column = _comparable(plain_column(column), self.column, first_row)
        codes = pc.index_in(column, value_set=self.typed(column.type))
        if self.missing.policy == "category":
            absent = column.is_null()
            if is_text(column.type):
                absent = pc.or_(absent, pc.fill_null(pc.equal(column, ""), True))
            codes = pc.if_else(absent, pa.scalar(len(self.categories), codes.type), codes)
        if codes.null_count:
            row = first_row + first_row_of(codes.is_null())
            raise DataError(f"row {row}, column {self.column!r}: is not one of the plan's categories")
        return np.asarray(codes.to_numpy(), np.uint32)


def _comparable_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type in which a column is compared with categories, and released."""
    kind = plain_type(arrow_type)
    if pa.types.is_floating(kind):
        return pa.int64()
    return pa.date32() if pa.types.is_timestamp(kind) else kind


def _comparable(values: Any, name: str, first_row: int) -> Any:
    """Return values as they are compared: whole floats as integers, midnights as dates."""
    if pa.types.is_floating(values.type):
        return whole_numbers(values, name, first_row)
    return dates(values, name, first_row) if pa.types.is_timestamp(values.type) else values


def _blank(values: Any, codes: Any) -> Any:
    """Return where a value is missing: a null, or a text that says so and is no category."""
    absent = values.is_null()
    if not is_text(values.type) or codes.null_count == values.null_count:
        return absent
    # Few texts are no category: only these are read.
    unknown = pc.and_(codes.is_null(), values.is_valid())
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(values.filter(unknown)))
    said = pc.is_in(texts, value_set=pa.array(MISSING_TEXTS, texts.type))
    return pc.replace_with_mask(absent, unknown, said)


class Labels(ColumnCodec, takes="categories"):
    """A column of categories, and reports back to categories, to their numbers, or to a column for each."""

    def _check(self) -> None:
        settings, mechanism = self.settings, self.mechanism
        settings.refuse_count(mechanism)
        settings.refuse_several()
        if settings.categories is None:
            raise PlanError(
                f"{settings.title}: needs categories=, the public list of its values; a list learned from "
                "private data would reveal which values occur in it"
            )
        self.dictionary.check(self._size, settings.mechanism, settings.title)
        if settings.missing.policy == "fill" and self.dictionary.missing.fill not in self.categories:
            raise PlanError(f"{settings.title}: fill: must be one of the categories")

    @property
    def _size(self) -> int:
        """Number of categories of the mechanism."""
        mechanism = self.mechanism
        if mechanism._sized_by is None:
            return int(mechanism._usual_size)
        size = mechanism.parameters[mechanism._sized_by]
        return int(size) if isinstance(size, (int, np.integer)) else len(size)

    @cached_property
    def dictionary(self) -> Dictionary:
        """The public list of the column."""
        missing = self.settings.missing
        if missing.fill is not None:
            missing = Missing(missing.policy, text_of(missing.fill))
        return Dictionary(self.columns[0], tuple(self.settings.categories or ()), missing)

    @property
    def categories(self) -> tuple[str, ...]:
        """Public values of the column, as text."""
        return self.dictionary.categories

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n,) category numbers; a value outside the list is refused."""
        return self.dictionary.encode(batch, first_row)

    @property
    def _split(self) -> bool:
        """True if a report is several numbers."""
        return bool(self.mechanism._report_parts[0][0] > 1)

    @property
    def _several(self) -> bool:
        return self.output == "bits" or self._split

    @property
    def per_row(self) -> int:
        """Values of a chunk of the keystream that one row takes.

        The bits of a category are drawn a record at a time, and so is what stands for no category.
        """
        if self._split and self.output != "bits" and self.mechanism._alike:
            return int(self.mechanism._report_parts[0][0])
        return 1

    def _options(self) -> dict[str, Any]:
        return {"output": self.output} if self._several else {}

    @property
    def names(self) -> list[str]:
        """The column, a column for each category (``column=label``), or for each number of a report.

        The numbers of a report that stand for no category have names of their own, ``column_part``.
        """
        column = self.columns[0]
        if self.mechanism._report_names:
            return [f"{column}_{part}" for part in self.mechanism._report_names]
        width = int(self.mechanism._report_parts[0][0])
        if self.output == "bits" and width == 1:
            width = int(self.mechanism.report_bits)
        every = [f"{column}={label}" for label in self.categories]
        return [column] if width == 1 else [*every, f"{column} missing"][:width]

    def written(self, reports: NDArray[Any], arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return labels, category numbers, or a column for each number of a report."""
        if reports.ndim == 2:
            return super().written(reports, arrow_type)
        column = self.columns[0]
        if self.output != "values":
            return [(column, reports)]
        return [(column, self.dictionary.decode(reports, arrow_type))]

    def written_array(self, reports: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return category numbers as the numbers that are their labels."""
        if self.output != "values" or reports.ndim != 1:
            return reports
        values: NDArray[Any] = self.dictionary.decode(reports, pa.from_numpy_dtype(dtype)).to_numpy(
            zero_copy_only=False
        )
        return values

    def _from_codes(self, codes: NDArray[Any]) -> tuple[Any, str]:
        return (codes[:, 0] if codes.shape[1] == 1 else codes), "codes"

    def _from_values(self, columns: list[Any], first_row: int) -> NDArray[Any]:
        if len(columns) == 1:
            return self.dictionary.collect(columns[0], first_row)
        # An entry for each category, all with the same decoded values.
        table, dtype = self._floats(columns)
        return codes_of_values(table, self.mechanism.letters.astype(dtype), self.names, first_row)

    def answers(self, counts: Any, intervals: Intervals) -> Iterator[dict[str, Any]]:
        """Yield a share for each category, and for that of missing values."""
        yield from self._answers(counts, self.columns, "share", [*self.categories, None], intervals)

    def reading(self, column: str, of: Of) -> Reading:
        """Return the indicators of the categories; see `ColumnCodec.reading`."""
        if of != "category":
            raise refused(f"column {column!r}", self.settings.mechanism, of, "its values are categories")
        missing = (None,) if self.settings.missing.policy == "category" else ()
        try:
            return indicators(column, (*self.categories, *missing), self.mechanism)
        except ValueError as error:
            raise refused(f"column {column!r}", self.settings.mechanism, of, str(error)) from None
