"""Several columns of a table as one record: numbers and categories under one budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.estimate.estimates import Estimate
from bitldp.tables.codec import Batch, ColumnCodec
from bitldp.tables.frames import Missing
from bitldp.tables.intervals import Intervals
from bitldp.tables.labels import Dictionary
from bitldp.tables.numbers import numbers_of, refuse_outside, scales_of
from bitldp.tables.reading import Of, Reading, by_code, indicators, refused, squared, squares
from bitldp.tables.scales import Scales

__all__ = ["Record"]


class Record(ColumnCodec, takes="record"):
    """Columns of numbers, then columns of categories, to one record; its reports to columns of their own.

    A report is about some of the columns, so that no released column is one of them: there are the numbers of
    the attributes that were drawn, where any are, and the codes of the answers, named after the first column.
    """

    def _check(self) -> None:
        settings, mechanism = self.settings, self.mechanism
        settings.refuse_count(mechanism)
        _ = self.scales
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

    @cached_property
    def scales(self) -> Scales | None:
        """The maps of the intervals of the columns of numbers, where they have such."""
        return scales_of(self.settings, self.numbers, self.mechanism.interval if self.numbers else None)

    def unit(self, column: str) -> float:
        """Return how many of a column's units one of the mechanism is."""
        if self.scales is None or column not in self.numbers:
            return 1.0
        return self.scales.unit(self.numbers.index(column))

    def rescaled(self, estimate: Estimate, columns: Sequence[str]) -> Estimate:
        """Return means of numbers in the intervals of their columns."""
        if self.scales is None or columns[0] not in self.numbers:
            return estimate
        return self.scales.estimate(estimate, [self.numbers.index(each) for each in columns])

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
        """The public list of each column of categories, and the intervals that columns of numbers have."""
        own = {} if self.scales is None else {"intervals": [list(each) for each in self.scales.intervals]}
        return {"categories": [list(each) for each in self.categories], **own}

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
            refuse_outside(numbers, self.scales or self.mechanism.interval, self.numbers, first_row)
        return np.concatenate([numbers, *(each[:, None].astype(np.float64) for each in codes)], axis=1)

    def outside(self, x: NDArray[Any]) -> int:
        """Return how many numbers are outside the range, so that they move to its ends."""
        if self.scales is not None:
            return self.scales.outside(x[:, : len(self.numbers)])
        return int(self.mechanism.outside(self._inputs(x)[0])) if self.numbers else 0

    @property
    def _several(self) -> bool:
        return True

    def _inputs(self, x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return an encoded batch as the mechanism takes it: categories, or numbers and categories."""
        if not self.numbers:
            return (x,)
        count = len(self.numbers)
        numbers = x[:, :count] if self.scales is None else self.scales.mapped(x[:, :count])
        return numbers, x[:, count:].astype(np.uint32)

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
        """Return the reading of one attribute, in the units of its column; see `ColumnCodec.reading`."""
        made = self._in_span(column, of)
        if self.scales is None or column not in self.numbers:
            return made
        number = self._in_span(column, "number") if of == "square" else None
        return self.scales.reading(made, self.numbers.index(column), number)

    def _in_span(self, column: str, of: Of) -> Reading:
        """Return the reading of one attribute, the middle of records whose reports are about others."""
        mechanism, slot = self.mechanism, self.columns.index(column)
        number, title = slot < len(self.numbers), f"column {column!r}"
        if (of == "category") == number:
            raise refused(title, self.settings.mechanism, of)
        part, rate = mechanism._parts[slot], mechanism._chances[slot]
        try:
            if number:
                made = self._number(column, part, rate, of)
            else:
                missing = (None,) if self.settings.missing.policy == "category" else ()
                labels = (*self.categories[slot - len(self.numbers)], *missing)
                made = indicators(column, labels, part, rate)
        except ValueError as error:
            raise refused(title, self.settings.mechanism, of, str(error)) from None

        # A record whose report is about others counts as the middle, or as evenly in all categories.
        middle = self.middle(made)

        def read(reports: Any) -> NDArray[np.float64]:
            own = [*mechanism.answers(reports)][slot]
            values = np.full((len(reports[0]), len(made.labels)), middle)
            values[own.records] += (made.read(own.reports) - middle) / rate
            return values

        ends = middle + (made.ends - middle) / rate
        ends = np.stack([np.minimum(ends[0], middle), np.maximum(ends[1], middle)])
        moments = None if made.moments is None else self._moved(made.moments * rate, middle, rate)
        return replace(made, read=read, ends=ends, moments=moments, table=None, codes=None)

    @staticmethod
    def _moved(second: NDArray[np.float64], middle: float, rate: float) -> NDArray[np.float64]:
        """Return the moments of indicators that are the middle where a report is about others.

        `second` are those of a report about the column: of a record in the category, and the least and the
        largest of others.
        """
        truth = np.array([[1.0], [0.0], [0.0]])
        centred = second - 2.0 * middle * truth + middle**2
        return middle**2 + 2.0 * middle * (truth - middle) + centred / rate

    def _number(self, column: str, part: Any, rate: float, of: Of) -> Reading:
        """Return the reading of a number, or of its square, by those whose reports are about it."""
        letters, law = part.letters, part._letter_law
        span = (float(law.mixed.points[0]), float(law.mixed.points[-1]))
        floor, note = float(law.mixed.bounds(law.mixed.points)[0].min()) / rate, ""
        if of == "square":
            known = squares(part._spread, letters)
            if known is None:
                raise ValueError(f"numbers are on {len(part.points)} points, too few to estimate squares")
            letters, bias = known
            span, floor, note = (
                squared(span),
                0.0,
                f"squares are at most {bias * self.unit(column) ** 2:.3g} too large",
            )
        made = by_code(column, letters, lambda x: np.asarray(x, np.int64).reshape(-1), span, floor, note)
        return replace(made, rate=rate)

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
