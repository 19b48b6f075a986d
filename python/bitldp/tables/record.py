"""Several columns of a table as one record: numbers and categories under one budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.tables.codec import Batch, ColumnCodec, Missing
from bitldp.tables.intervals import Intervals
from bitldp.tables.labels import Dictionary
from bitldp.tables.numbers import numbers_of, refuse_outside
from bitldp.tables.reading import Of, Reading, indicators, refused

__all__ = ["Record"]


class Record(ColumnCodec, takes="record"):
    """Columns of numbers, then columns of categories, to one record; its reports to columns of their own.

    A report is about some of the columns, so that no released column is one of them: there are the numbers of
    the attributes that were drawn, where any are, and the codes of the answers, named after the first column.
    """

    def _check(self) -> None:
        settings, mechanism = self.settings, self.mechanism
        if settings.interval is not None:
            raise PlanError(f"{settings.title}: interval: {settings.mechanism} has its own, if any")
        settings.refuse_count(mechanism)
        if settings.missing.policy == "fill":
            raise PlanError(f"{settings.title}: nulls='fill' is for one column, and a record has several")
        if settings.categories is None or len(settings.categories) != len(self._sizes):
            raise PlanError(
                f"{settings.title}: needs categories=, the public lists of the values of {len(self._sizes)} "
                "columns"
            )
        for dictionary, size in zip(self.dictionaries, self._sizes, strict=True):
            dictionary.check(size, settings.mechanism, f"column {dictionary.column!r}", " there")
        if self.numbers:
            settings.refuse_unless_numeric()

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Number of categories of each column of them."""
        sizes: tuple[int, ...] = self.mechanism._sizes
        return sizes

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return self.columns[: len(self.columns) - len(self._sizes)]

    @property
    def numeric(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return self.numbers

    @property
    def span(self) -> tuple[float, float] | None:
        """The range of the numbers, where there are any."""
        return self.mechanism.interval if self.numbers else None

    @cached_property
    def dictionaries(self) -> tuple[Dictionary, ...]:
        """The public list of each column of categories."""
        missing = Missing(self.settings.missing.policy)
        names = self.columns[len(self.numbers) :]
        lists = self.settings.categories or ()
        return tuple(Dictionary(name, tuple(each), missing) for name, each in zip(names, lists, strict=True))

    def _form(self) -> str:
        output = self.settings.output
        if output not in (None, "codes"):
            asked = self.settings.spelled("output", output)
            raise PlanError(
                f"{asked}: a report of {self.settings.mechanism} is about some of its columns; use codes"
            )
        return "codes"

    @property
    def categories(self) -> tuple[tuple[str, ...], ...]:
        """Public values of each column of categories."""
        return tuple(each.categories for each in self.dictionaries)

    @property
    def public(self) -> dict[str, Any]:
        """The public list of each column of categories."""
        return {"categories": [list(each) for each in self.categories]}

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n, columns): category numbers, or float64 where there are numbers."""
        if isinstance(batch, np.ndarray):
            raise TypeError("batch: must be a table")
        codes = [each.encode(batch, first_row) for each in self.dictionaries]
        if not self.numbers:
            return np.stack(codes, axis=1)
        unit = self.settings.unit
        numbers = numbers_of(batch, self.numbers, first_row, Missing(), unit).astype(np.float64)
        if not self.mechanism.clip:
            refuse_outside(numbers, self.mechanism.interval, self.numbers, first_row)
        return np.concatenate([numbers, *(each[:, None].astype(np.float64) for each in codes)], axis=1)

    def outside(self, x: NDArray[Any]) -> int:
        """Return how many numbers are outside the range, so that they move to its ends."""
        return int(self.mechanism.outside(self._inputs(x)[0])) if self.numbers else 0

    @property
    def _several(self) -> bool:
        return True

    def _inputs(self, x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return an encoded batch as the mechanism takes it: categories, or numbers and categories."""
        if not self.numbers:
            return (x,)
        count = len(self.numbers)
        return x[:, :count], x[:, count:].astype(np.uint32)

    @property
    def names(self) -> list[str]:
        """Names of the numbers of a report, after the first column."""
        first, sampled = self.columns[0], self.mechanism.k is not None
        counts = [columns for columns, _ in self.mechanism._report_parts]
        drawn = [f"{first}_attribute{i}" for i in range(counts[0])] if sampled else []
        return [*drawn, *(f"{first}_code{i}" for i in range(sum(counts[1:] if sampled else counts)))]

    def written(self, reports: Any, arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return a column for each number of a report."""
        parts = zip(reports, self.mechanism._report_parts, strict=True)
        arrays = [np.asarray(each).reshape(-1, count) for each, (count, _) in parts]
        columns = [np.ascontiguousarray(each[:, j]) for each in arrays for j in range(each.shape[1])]
        return list(zip(self.names, columns, strict=True))

    def by_column(self, written: list[tuple[str, Any]]) -> dict[str, list[tuple[str, Any]]]:
        """Return all released columns beside the first one: a report is about all of them together."""
        return {self.columns[0]: written}

    def _from_codes(self, codes: NDArray[Any]) -> tuple[Any, str]:
        counts = [columns for columns, _ in self.mechanism._report_parts]
        return self.mechanism._join(np.split(codes, np.cumsum(counts)[:-1], axis=1)), "codes"

    @property
    def apart(self) -> bool:
        """True if every attribute is answered, by itself."""
        return self.mechanism.k is None and self.mechanism.spend != "joint"

    def reading(self, column: str, of: Of) -> Reading:
        """Return the reading of one attribute, 0 of records whose reports are about others."""
        mechanism, slot = self.mechanism, self.columns.index(column)
        number, title = slot < len(self.numbers), f"column {column!r}"
        if of != ("number" if number else "category"):
            raise refused(title, self.settings.mechanism, of)
        part, rate = mechanism._parts[slot], mechanism._chances[slot]
        try:
            if number:
                made = self._number(column, part, rate)
            else:
                missing = (None,) if self.settings.missing.policy == "category" else ()
                labels = (*self.categories[slot - len(self.numbers)], *missing)
                made = indicators(column, labels, part, rate)
        except ValueError as error:
            raise refused(title, self.settings.mechanism, of, str(error)) from None

        # A record whose report is about others counts as the middle, or as in no category.
        middle = sum(made.span) / 2.0 if number else 0.0

        def read(reports: Any) -> NDArray[np.float64]:
            own = [*mechanism.answers(reports)][slot]
            values = np.full((len(reports[0]), len(made.labels)), middle)
            values[own.records] += (made.read(own.reports) - middle) / rate
            return values

        ends = middle + (made.ends - middle) / rate
        ends = np.stack([np.minimum(ends[0], middle), np.maximum(ends[1], middle)])
        return replace(made, read=read, ends=ends, table=None, codes=None)

    def _number(self, column: str, part: Any, rate: float) -> Reading:
        """Return the reading of a number by those whose reports are about it."""
        letters = part.letters[:, None]
        law, ends = part._letter_law, np.stack([letters.min(axis=0), letters.max(axis=0)])
        floor = float(law.mixed.bounds(law.mixed.points)[0].min()) / rate
        span = (float(law.mixed.points[0]), float(law.mixed.points[-1]))
        return Reading(
            column,
            (None,),
            lambda x: letters[np.asarray(x, np.int64).reshape(-1)],
            ends,
            span,
            floor,
            rate=rate,
        )

    def answers(self, counts: Any, intervals: Intervals) -> Iterator[dict[str, Any]]:
        """Yield the answers of each column by itself: a mean, or a share for each category."""
        every = getattr(counts, "attributes", None)
        for slot, name in enumerate(self.columns):
            own = counts if every is None else every[slot]
            if slot < len(self.numbers):
                yield from self._answers(own, (name,), "mean", None, intervals)
            else:
                labels = [*self.categories[slot - len(self.numbers)], None]
                yield from self._answers(own, (name,), "share", labels, intervals)
