"""Sums of the terms of a question over a released table, by groups: they merge, and are saved."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from bitldp.base.errors import DataError, PlanError
from bitldp.tables import groups
from bitldp.tables.answer import TableAnswer
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.filters import Condition, in_periods, kept_rows
from bitldp.tables.groups import Group
from bitldp.tables.joint import Moments, Read, Sums, Term
from bitldp.tables.parts import refuse_two_snapshots, snapshots_of

__all__ = ["Counting", "Question"]


class _Plan(Protocol):
    """The part of `bitldp.tables.TablePlan` that is needed."""

    codecs: tuple[ColumnCodec, ...]


class Counting:
    """Sums that a question is answered from, of the rows that it is about, by groups of kept columns.

    They are the same for all of a table and for its parts, in any order.

    Parameters
    ----------
    plan : TablePlan
    reads : sequence of Read
        What is read of reports.
    terms : sequence of Term
        Products of those, whose moments are wanted.
    kept : sequence of str
        Kept columns whose values tell groups apart.
    own : int, optional
        Number of a codec whose own counts are kept, too.
    where : sequence of Condition
        Conditions on kept columns.
    every : str, optional
        Period that dates among `kept` are put together by.

    Attributes
    ----------
    types : list of pyarrow.DataType
        Of the keys.
    snapshots : set of tuple of str
        Series and release of the memoized tables that rows were counted of, without kept columns, which may
        tell days apart.
    """

    def __init__(
        self,
        plan: _Plan,
        reads: Sequence[Read],
        terms: Sequence[Term],
        kept: Sequence[str] = (),
        *,
        own: int | None = None,
        where: Sequence[Condition] = (),
        every: str | None = None,
    ) -> None:
        self.kept, self._where, self._every = tuple(kept), tuple(where), every
        self._reads, self._terms = reads, terms
        self._own = None if own is None else (own, plan.codecs[own])
        numbers = [each.codec for each in reads] + ([] if own is None else [own])
        self._codecs = {number: plan.codecs[number] for number in numbers}
        self.types: list[pa.DataType] = [pa.null()] * len(self.kept)
        self.snapshots: set[tuple[str, str]] = set()
        self._groups: dict[Group, Sums] = {}

    @property
    def names(self) -> list[str]:
        """Columns of a released table that are needed."""
        released = [name for codec in self._codecs.values() for name in codec.names]
        return list(dict.fromkeys([*released, *self.kept, *(each.column for each in self._where)]))

    @property
    def n(self) -> int:
        """Records that were counted."""
        return sum(each.joint.n for each in self._groups.values())

    def _begun(self) -> Sums:
        return Sums(self._reads, self._terms, *(() if self._own is None else self._own))

    def update(self, table: pa.Table, first_row: int) -> None:
        """Count rows of a released table, the first of which has the number `first_row`.

        Raises
        ------
        DataError
            For a value that is no report.
        PlanError
            For keys of another type than before, and for another snapshot of a memoized release.
        """
        rows = table
        if self._where:
            rows = rows.filter(kept_rows(rows, self._where, first_row))
        if rows.num_rows and not self.kept:
            self.snapshots |= snapshots_of(table.schema.metadata)
            refuse_two_snapshots(self.snapshots)
        if self._every is not None:
            rows = in_periods(rows, self.kept, self._every, first_row)
        self._unify([groups.key_type(name, rows.schema.field(name).type) for name in self.kept])
        try:
            for group, own in groups.grouped(rows, self.kept) if self.kept else [((), rows)]:
                reports = {number: codec.collect(own, first_row) for number, codec in self._codecs.items()}
                self._groups.setdefault(group, self._begun()).update(reports, own.num_rows)
        except DataError:
            if rows is not table or self.kept:  # by the row of the table, and not of a group
                for codec in self._codecs.values():
                    codec.collect(table, first_row)
            raise

    def _unify(self, types: Sequence[pa.DataType]) -> None:
        for j, (name, own, other) in enumerate(zip(self.kept, self.types, types, strict=True)):
            if pa.null() not in (own, other) and own != other:
                raise PlanError(f"column {name!r}: holds {other}, where it held {own} before")
            self.types[j] = other if own == pa.null() else own

    def merge(self, other: Counting) -> None:
        """Add the sums of another, of the same question."""
        self._unify(other.types)
        for group, each in other._groups.items():
            self._groups.setdefault(group, self._begun()).merge(each)

    def to_json(self) -> dict[str, Any]:
        """Return the sums as JSON values, in an order of their own."""
        saved = [
            {"group": [groups.to_json(key) for key in group], **each.to_json()}
            for group, each in self._groups.items()
        ]
        return {
            "types": [str(each) for each in self.types],
            "groups": sorted(saved, key=lambda each: json.dumps(each["group"])),
        }

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take the sums of JSON values, as `to_json` gives them.

        Raises
        ------
        KeyError, ValueError, TypeError, AttributeError
            For what is none.
        """
        self.types = [groups.read_type(each) for each in document["types"]]
        if len(self.types) != len(self.kept):
            raise ValueError
        for each in document["groups"]:
            keys = zip(each["group"], self.types, strict=True)
            sums = self._groups[tuple(groups.from_json(key, kind) for key, kind in keys)] = self._begun()
            sums.restore(each)

    # -- what was counted

    def sums(self) -> list[Sums]:
        """Return the sums of the groups, in the order of their keys.

        Raises
        ------
        ValueError
            If there are none.
        """
        made = [self._groups[group] for group in self._order()]
        if not made:
            where = " that the filter leaves" if self._where else ""
            raise ValueError(f"question: the released table has no rows{where}")
        return made

    def moments(self) -> list[Moments]:
        """Return the moments of the terms in each group, in the order of their keys."""
        return [each.joint.moments() for each in self.sums()]

    def _order(self) -> Iterator[Group]:
        """Yield the groups that have records, by their keys, of which what is missing is last."""
        some = [group for group, each in self._groups.items() if each.joint.n]
        return iter(
            sorted(some, key=lambda group: [(key is None, 0 if key is None else key) for key in group])
        )

    def keys(self, cells: Sequence[tuple[str, Sequence[Any]]]) -> dict[str, pa.Array]:
        """Return what the rows of an answer are about: each cell of each group."""
        every, order = [*product(*(labels for _, labels in cells))], list(self._order())
        keys = {
            name: groups.array_of_keys([group[j] for group in order for _ in every], self.types[j])
            for j, name in enumerate(self.kept)
        }
        for j, (name, _) in enumerate(cells):
            values = [cell[j] for _ in order for cell in every]
            if name:
                keys[name] = pa.array(values, pa.float64() if isinstance(values[0], float) else pa.string())
        return keys


#: A question says what it counts, is sent the counts, and returns its answer.
Question: TypeAlias = Generator[Counting, Counting, TableAnswer]
