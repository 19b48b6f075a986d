"""Counts of one codec for many groups: one array of integers where they are such, else one object a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import DataError
from bitldp.estimate.grouping import Grouping
from bitldp.tables import groups
from bitldp.tables.codec import ColumnCodec

__all__ = ["Integers", "Tally", "counted", "grouped_counts"]


@dataclass(frozen=True, eq=False)
class Integers:
    """Contents of the accumulators of some groups.

    Attributes
    ----------
    n : ndarray of int64, shape (groups,)
        Reports.
    counts : ndarray, shape (groups, ...)
        As `Accumulator.take` takes those of one group.
    """

    n: NDArray[np.int64]
    counts: NDArray[Any]

    def at(self, slots: NDArray[np.intp]) -> Integers:
        """Return those of some groups."""
        return Integers(self.n[slots], self.counts[slots])


class Tally:
    """Counts of the reports of one codec, by the number of a group.

    Parameters
    ----------
    codec : ColumnCodec
    """

    def __init__(self, codec: ColumnCodec) -> None:
        self._codec = codec
        self._integers: Integers | None = None  # of the groups below its length, and room for more
        self._objects: dict[int, Any] = {}  # accumulators, beside those integers

    def __len__(self) -> int:
        """Return how many records were counted."""
        whole = 0 if self._integers is None else sum(self._integers.n.tolist())
        return whole + sum(int(each.n) for each in self._objects.values())

    def of(self, slot: int) -> Any:
        """Return the counts of a group, which are not to be changed."""
        integers, known = self._integers, self._objects.get(slot)
        if integers is None or slot >= len(integers.n) or not integers.n[slot]:
            return self._codec.counts() if known is None else known
        made = self._codec.counts()
        made.take(int(integers.n[slot]), integers.counts[slot])
        if known is not None:
            made.merge(known)
        return made

    def add(self, slots: Sequence[int], more: Integers | Sequence[Any]) -> None:
        """Add counts of some groups, each of which comes once; accumulators are kept, and change later."""
        if isinstance(more, Integers):
            self._add_integers(np.asarray(slots, np.intp), more)
            return
        for slot, each in zip(slots, more, strict=True):
            known = self._objects.setdefault(slot, each)
            if known is not each:
                known.merge(each)

    def merge(self, slots: Sequence[int], other: Tally, theirs: Sequence[int]) -> None:
        """Add the counts of another tally, whose numbers of the groups are `theirs`."""
        if other._integers is not None:
            size = len(other._integers.n)
            pairs = [(mine, their) for mine, their in zip(slots, theirs, strict=True) if their < size]
            mine, their = np.array(pairs, np.intp).reshape(-1, 2).T
            self._add_integers(mine, other._integers.at(their))
        for slot, number in zip(slots, theirs, strict=True):
            if number in other._objects:
                copy = self._codec.counts()
                copy.merge(other._objects[number])
                self.add([slot], [copy])

    def _add_integers(self, slots: NDArray[np.intp], more: Integers) -> None:
        if not len(slots):
            return
        need, own = int(slots.max()) + 1, self._integers
        if own is None and need == len(slots) and (slots == np.arange(need)).all():
            self._integers = Integers(more.n.copy(), more.counts)
            return
        if own is None or need > len(own.n):
            room = need if own is None else max(need, 2 * len(own.n))
            wide = Integers(
                np.zeros(room, np.int64), np.zeros((room, *more.counts.shape[1:]), more.counts.dtype)
            )
            if own is not None:
                wide.n[: len(own.n)], wide.counts[: len(own.n)] = own.n, own.counts
            own = self._integers = wide
        own.n[slots] += more.n
        own.counts[slots] += more.counts


def counted(codec: ColumnCodec, table: pa.Table, first_row: int) -> Any:
    """Return counts of the reports of a table."""
    reports, form = codec.collect(table, first_row)
    counts = codec.counts()
    if table.num_rows:
        with _worded(codec):
            counts.update(reports, **({} if form == "codes" else {"output": form}))
    return counts


def grouped_counts(
    codecs: Sequence[ColumnCodec],
    table: pa.Table,
    names: Sequence[str],
    grouping: Grouping,
    first_row: int,
) -> list[Integers | list[Any]]:
    """Return counts of the reports of each group of a table, for each codec, for `Tally.add`.

    Parameters
    ----------
    codecs : sequence of ColumnCodec
    table : pyarrow.Table
    names : sequence of str
        Columns of the keys.
    grouping : Grouping
        Of its rows.
    first_row : int
        Number of its first row, for errors.

    Raises
    ------
    DataError
        For a value that is no report: by its row in the table.
    """
    made: list[Integers | list[Any]] = []
    rows: list[pa.Table] | None = None
    for codec in codecs if grouping.count else ():
        reports, form = codec.collect(table, first_row)
        counts = codec.counts()
        with _worded(codec):
            integers = counts.by_group(reports, form, grouping)
        if integers is not None:
            made.append(Integers(grouping.sizes, integers))
            continue
        rows = groups.parts(table, names, grouping) if rows is None else rows
        try:
            made.append([counted(codec, each, 1) for each in rows])
        except DataError:
            counted(codec, table, first_row)  # by the row of the table, and not of a group
            raise
    return made or [[] for _ in codecs]


@contextmanager
def _worded(codec: ColumnCodec) -> Iterator[None]:
    """Say an error of counts, whose own words say where it is, with the columns that it is about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise DataError(f"column {', '.join(map(repr, codec.names[:3]))}: {error}") from None
