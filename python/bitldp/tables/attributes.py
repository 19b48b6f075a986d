"""Several columns of a table as one record: numbers and categories under one budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.mechanism.base import Part
from bitldp.tables.cells import Batch, Labels, Reals

__all__ = ["Attributes"]


@dataclass(frozen=True)
class Attributes:
    """Columns of numbers, then columns of categories, to one record; its reports to columns of their own.

    A report is about some of the columns, so that no released column is one of them: there are the numbers of
    the attributes that were drawn, where any are, and the codes of the answers, named after the first column.

    Attributes
    ----------
    numbers : Reals or None
    labels : tuple of Labels
    sampled : bool
        Whether a coin draws the attributes that are released.
    parts : tuple of (int, int)
        (columns, bits) of each array of a report.
    """

    numbers: Reals | None
    labels: tuple[Labels, ...]
    sampled: bool
    parts: tuple[Part, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        numbers = () if self.numbers is None else self.numbers.columns
        return (*numbers, *(each.columns[0] for each in self.labels))

    @property
    def categories(self) -> tuple[tuple[str, ...], ...]:
        """The values of each column of categories."""
        return tuple(each.categories for each in self.labels)

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n, columns): category numbers, or float64 where there are numbers."""
        if isinstance(batch, np.ndarray):
            raise TypeError("batch: must be a table")
        codes = [each.encode(batch, first_row) for each in self.labels]
        if self.numbers is None:
            return np.stack(codes, axis=1)
        numbers = self.numbers.encode(batch, first_row).astype(np.float64)
        return np.concatenate([numbers, *(each[:, None].astype(np.float64) for each in codes)], axis=1)

    def arguments(self, x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return an encoded batch as the mechanism takes it: categories, or numbers and categories."""
        if self.numbers is None:
            return (x,)
        count = len(self.numbers.columns)
        return x[:, :count], x[:, count:].astype(np.uint32)

    def decode(self, reports: Any, output: str, arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return a column for each number of a report."""
        arrays = [
            np.asarray(each).reshape(-1, count) for each, (count, _) in zip(reports, self.parts, strict=True)
        ]
        columns = [np.ascontiguousarray(each[:, j]) for each in arrays for j in range(each.shape[1])]
        return list(zip(self.names(len(columns)), columns, strict=True))

    def names(self, width: int) -> list[str]:
        """Return the names of the columns that reports become."""
        first = self.columns[0]
        counts = [columns for columns, _ in self.parts]
        drawn = [f"{first}_attribute{i}" for i in range(counts[0])] if self.sampled else []
        codes = sum(counts[1:] if self.sampled else counts)
        return [*drawn, *(f"{first}_code{i}" for i in range(codes))]

    def answers(self, counts: Sequence[Any] | None) -> Iterator[tuple[str, list[str | None], Any]]:
        """Yield each column, its categories and that of missing values (none of a number), and its counts."""
        first = 0 if self.numbers is None else len(self.numbers.columns)
        for place, name in enumerate(self.columns):
            labels = [*self.labels[place - first].categories, None] if place >= first else []
            yield name, labels, None if counts is None else counts[place]

    def arrays(self, columns: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return released columns as the arrays of a report, shape (n, columns) each."""
        found, begin = [], 0
        for count, _ in self.parts:
            found.append(np.stack(columns[begin : begin + count], axis=1))
            begin += count
        return found
