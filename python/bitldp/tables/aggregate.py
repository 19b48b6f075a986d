"""Counts of released tables, which merge across machines, and the answers that they give."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from bitldp.base.errors import PlanError
from bitldp.tables import groups
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.column import Column
from bitldp.tables.frames import metadata_of, opened, refuse_other_plan
from bitldp.tables.groups import Group
from bitldp.tables.intervals import Intervals
from bitldp.tables.parts import Parts, saved_counts, snapshots_of
from bitldp.tables.streamed import streamed
from bitldp.tables.tally import Tally, counted, grouped_counts

__all__ = ["Aggregate"]

_FORMAT = "bitldp.aggregate"
_VERSION = 2
_WITHOUT_TYPES = 1  # of keys, and without names of what was counted


class _Plan(Protocol):
    """The part of `bitldp.tables.TablePlan` that counts depend on."""

    columns: tuple[Column, ...]
    codecs: tuple[ColumnCodec, ...]
    keep: tuple[str, ...]

    @property
    def digest(self) -> str: ...


class Aggregate:
    """Integer counts of released tables; `TablePlan.aggregate` makes an empty one.

    The counts are exactly the same for any order of updates and merges. Each counted table has a name, which
    is saved with the counts, so that nothing is counted twice.

    Attributes
    ----------
    plan : TablePlan
    group_by : tuple of str
        Kept columns whose values tell groups apart.
    """

    def __init__(self, plan: _Plan, group_by: Sequence[str] = ()) -> None:
        self.plan = plan
        self.group_by: tuple[str, ...] = (group_by,) if isinstance(group_by, str) else tuple(group_by)
        for name in self.group_by:
            if name not in plan.keep:
                raise PlanError(f"group_by: {name!r} is not a column that the plan keeps")
        self._slots: dict[Group, int] = {}  # number of each group in the tallies
        self._tallies = [Tally(codec) for codec in plan.codecs]
        self._types: list[pa.DataType] = [pa.null()] * len(self.group_by)
        self._texts = [False] * len(self.group_by)  # whether keys may be texts of another type
        self._parts = Parts()

    def __len__(self) -> int:
        """Return how many records were counted."""
        return len(self._tallies[0])

    def update(self, frame: Any, *, first_row: int = 1, source: str | None = None) -> Aggregate:
        """Count a released table.

        Parameters
        ----------
        frame : pyarrow.Table, pyarrow.RecordBatch, pandas.DataFrame, polars.DataFrame or dict of arrays
            A released table of the plan, or one that was read back from a file. Also a stream of batches,
            which may be larger than memory: a `pyarrow.dataset.Dataset`, a `pyarrow.RecordBatchReader`, a
            relation of DuckDB, or another object with an Arrow C stream.
        first_row : int
            Number of its first row, for errors.
        source : str, optional
            Public name of the table, such as its file name. A table of that name is not counted again,
            neither here nor in an aggregate that this one is merged with.

        Returns
        -------
        Aggregate
            This one.

        Raises
        ------
        PlanError
            For a table of another plan, without its columns, or with a name that was counted before. Without
            groups, also for another snapshot of a memoized release, whose reports are not new.
        DataError
            For a value that is not a report of the plan. Nothing is counted in that case.
        """
        codecs = self.plan.codecs
        refuse_other_plan(metadata_of(frame), self.plan.digest, "frame")
        # Groups may tell days apart.
        snapshots = set() if self.group_by else snapshots_of(metadata_of(frame))
        self._parts.refuse(source, snapshots)
        names = [*(name for codec in codecs for name in codec.names), *self.group_by]
        if (tables := streamed(frame, names, self.plan.digest)) is not None:
            return self._update_streamed(tables, first_row, source)
        table, _ = opened(frame, names)
        types = [groups.key_type(name, table.schema.field(name).type) for name in self.group_by]
        if self.group_by:
            keys, grouping = groups.grouping_of(table, self.group_by)
            added = grouped_counts(codecs, table, self.group_by, grouping, first_row)
        else:
            keys, added = [()], [[counted(codec, table, first_row)] for codec in codecs]
        self._unify(types)
        slots = self._numbers(keys)
        for tally, more in zip(self._tallies, added, strict=True):
            tally.add(slots, more)
        if table.num_rows:
            self._parts.add(source, snapshots)
        return self

    def _update_streamed(self, tables: Iterable[pa.Table], first_row: int, source: str | None) -> Aggregate:
        """Count tables one after the other: all of them, or none if one is refused."""
        part = Aggregate(self.plan, self.group_by)
        for table in tables:
            part.update(table, first_row=first_row)
            first_row += table.num_rows
        snapshots = part._parts.snapshots
        self._parts.refuse(None, snapshots)
        part._parts = Parts()  # a name of its own would be no name of what was counted
        self.merge(part)
        if len(part):
            self._parts.add(source, snapshots)
        return self

    def _answers(self, counts: Sequence[Any], intervals: Intervals) -> Iterator[dict[str, Any]]:
        """Yield the answers of the counts of one group."""
        remaining = iter(counts)
        for column in self.plan.columns:
            yield from column.answers([next(remaining) for _ in column.codecs], intervals)

    def _numbers(self, keys: Iterable[Group]) -> list[int]:
        """Return the numbers of groups in the tallies, of which some may be new."""
        return [self._slots.setdefault(key, len(self._slots)) for key in keys]

    def _counted_groups(self) -> Iterator[tuple[Group, list[Any]]]:
        """Yield each group and its counts, one accumulator for each codec."""
        for group, slot in self._slots.items():
            yield group, [tally.of(slot) for tally in self._tallies]

    def _unify(self, types: Sequence[pa.DataType]) -> None:
        """Take the types of further keys, or refuse what is no key of the same columns."""
        changed: dict[int, list[Any]] = {}  # keys of a column
        for j, (name, own, other) in enumerate(zip(self.group_by, self._types, types, strict=True)):
            if other in (own, pa.null()) or own == pa.null():
                continue
            keys = groups.retyped([group[j] for group in self._slots], other) if self._texts[j] else None
            if keys is None:
                raise PlanError(f"group_by: column {name!r} holds {other}, where it held {own} before")
            changed[j] = keys
        for j, keys in changed.items():
            self._slots = {
                (*group[:j], key, *group[j + 1 :]): slot
                for key, (group, slot) in zip(keys, self._slots.items(), strict=True)
            }
            self._texts[j] = False
        self._types = [
            own if other == pa.null() else other for own, other in zip(self._types, types, strict=True)
        ]

    def merge(self, other: Aggregate) -> Aggregate:
        """Add what another aggregate of the same plan and groups counted; return this one.

        Raises
        ------
        PlanError, TypeError
            For an aggregate of another plan or of other groups, and for one with tables that were counted
            here before. Nothing is added in that case.
        """
        if not isinstance(other, Aggregate):
            raise TypeError(f"other: must be an Aggregate, not {type(other).__name__}")
        if other.plan.digest != self.plan.digest or other.group_by != self.group_by:
            raise PlanError("other: is of another plan, or of other groups")
        self._parts.refuse_merged(other._parts)
        texts = [
            text and mine != kind
            for text, mine, kind in zip(other._texts, self._types, other._types, strict=True)
        ]
        if any(texts):  # the other's keys are the texts
            other = Aggregate.from_json(other.to_json(), other.plan)
            other._texts = texts
            other._unify(self._types)
        unknown = [text or mine == pa.null() for text, mine in zip(self._texts, self._types, strict=True)]
        self._unify(other._types)
        self._texts = [a and b for a, b in zip(unknown, other._texts, strict=True)]
        slots = self._numbers(other._slots)
        for mine, more in zip(self._tallies, other._tallies, strict=True):
            mine.merge(slots, more, list(other._slots.values()))
        self._parts.merge(other._parts)
        return self

    def __eq__(self, other: object) -> bool:
        """Return whether another has the same plan, groups and counts, whatever they were counted from."""
        return isinstance(other, Aggregate) and self._document() == other._document()

    __hash__ = None  # type: ignore[assignment]  # counts grow

    def _document(self) -> dict[str, Any]:
        """Return what was counted as JSON values, in an order of its own."""
        counted = [
            {"group": [groups.to_json(key) for key in group], "counts": [each.to_json() for each in counts]}
            for group, counts in self._counted_groups()
        ]
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "plan": self.plan.digest,
            "group_by": list(self.group_by),
            "types": [str(each) for each in self._types],
            "groups": sorted(counted, key=lambda each: json.dumps(each["group"])),
        }

    def to_json(self) -> str:
        """Return the counts as a JSON text, with the types of keys and the names of what was counted."""
        return json.dumps({**self._document(), **self._parts.to_json()}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str, plan: _Plan) -> Aggregate:
        """Return the aggregate of a JSON text.

        Raises
        ------
        PlanError, TypeError
            For a text that is none, or of another plan.
        """
        saved = saved_counts(text, _FORMAT, (_VERSION, _WITHOUT_TYPES), plan.digest)
        made = cls(plan, saved.get("group_by", ()))
        try:
            made._restore(saved, typed=saved["version"] == _VERSION)
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
            raise PlanError(f"text: is not a {_FORMAT} document") from None
        return made

    def _restore(self, document: dict[str, Any], *, typed: bool) -> None:
        saved = document.get("groups", [])
        columns = list(zip(*(each["group"] for each in saved), strict=True)) or [()] * len(self.group_by)
        if typed:
            self._types = [groups.read_type(each) for each in document["types"]]
            self._parts.restore(document)
        else:
            self._types = [groups.inferred(keys) for keys in columns]
            self._texts = [kind == pa.string() for kind in self._types]
        if len(self._types) != len(self.group_by):
            raise TypeError
        for each in saved:
            counts = [
                type(codec.counts()).from_json(text, codec.counted)
                for codec, text in zip(self.plan.codecs, each["counts"], strict=True)
            ]
            keys = zip(each["group"], self._types, strict=True)
            slots = self._numbers([tuple(groups.from_json(key, kind) for key, kind in keys)])
            for tally, more in zip(self._tallies, counts, strict=True):
                tally.add(slots, [more])

    def estimate(self, level: float = 0.95) -> pa.Table:
        """Return the answers, without bias: a mean for each column of numbers, a share for each category.

        Parameters
        ----------
        level : float
            Coverage of each interval by itself. It refers to the mean or share in the population from which
            the records (of the group) are drawn independently.

        Returns
        -------
        pyarrow.Table
            Columns of the groups, if any; ``column``, ``what`` ("mean" or "share"), ``category`` (null for a
            mean, and for the share of missing values), ``estimate``, ``stderr``, ``low``, ``high``,
            ``records``; ``note`` says what the mean refers to, if numbers are first rounded to points or
            truncated to code words, or why there is no estimate; ``influence`` is how far 1 % of lying
            clients could have moved the estimate, at most.

        Raises
        ------
        ValueError, TypeError
            If nothing has been counted, and for a level out of its range.
        """
        if not len(self):
            raise ValueError("estimate: nothing has been counted")
        intervals = Intervals(level)
        rows = [
            (group, row)
            for group, counts in self._counted_groups()
            for row in self._answers(counts, intervals)
        ]
        low, high = intervals.ends()
        for _, row in rows:
            if (number := row.pop("interval")) is not None:
                row["low"], row["high"] = low[number], high[number]
        keys = {
            name: groups.array_of_keys([group[j] for group, _ in rows], self._types[j])
            for j, name in enumerate(self.group_by)
        }
        answers = {name: pa.array([row.get(name) for _, row in rows], kind) for name, kind in _FIELDS.items()}
        return pa.table({**keys, **answers})


_FIELDS = {
    "column": pa.string(),
    "what": pa.string(),
    "category": pa.string(),
    "estimate": pa.float64(),
    "stderr": pa.float64(),
    "low": pa.float64(),
    "high": pa.float64(),
    "records": pa.int64(),
    "note": pa.string(),
    "influence": pa.float64(),
}
