"""Counts of released tables, which merge across machines, and the answers that they give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from bitldp.base.errors import PlanError
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.frames import metadata_of, opened

__all__ = ["Aggregate"]

_FORMAT = "bitldp.aggregate"
_VERSION = 1
Group = tuple[Any, ...]


class _Plan(Protocol):
    """The part of `bitldp.tables.TablePlan` that counts depend on."""

    codecs: tuple[ColumnCodec, ...]
    keep: tuple[str, ...]

    @property
    def digest(self) -> str: ...


class Aggregate:
    """Integer counts of released tables; `TablePlan.aggregate` makes an empty one.

    In any order of updates and merges the counts are the same, to the last digit.

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
                raise PlanError(f"group_by: {name!r} is no column that the plan keeps")
        self._groups: dict[Group, list[Any]] = {}

    def __len__(self) -> int:
        """Return how many records were counted."""
        return sum(int(counts[0].n) for counts in self._groups.values())

    def update(self, frame: Any, *, first_row: int = 1) -> Aggregate:
        """Count a released table.

        Parameters
        ----------
        frame : pyarrow.Table, pyarrow.RecordBatch, pandas.DataFrame, polars.DataFrame or dict of arrays
            As a release of the plan gave it, or read back from a file.
        first_row : int
            Number of its first row, for errors.

        Returns
        -------
        Aggregate
            This one.

        Raises
        ------
        PlanError
            For a table of another plan, or without its columns.
        DataError
            For a value that is no report of the plan. Nothing is counted then.
        """
        codecs = self.plan.codecs
        plan = metadata_of(frame).get(b"bitldp.plan")
        if plan is not None and plan != self.plan.digest.encode():
            raise PlanError("frame: was released by another plan")
        names = [*(name for codec in codecs for name in codec.names), *self.group_by]
        table, _ = opened(frame, names)
        for group, rows in self._grouped(table):
            collected = [codec.collect(rows, first_row) for codec in codecs]
            fresh = [codec.counts() for codec in codecs]
            for counts, (reports, form) in zip(fresh, collected, strict=True):
                if rows.num_rows:
                    counts.update(reports, **({} if form == "codes" else {"output": form}))
            self._add(group, fresh)
        return self

    def _grouped(self, table: pa.Table) -> list[tuple[Group, pa.Table]]:
        if not self.group_by:
            return [((), table)]
        keys = [table.column(name).to_pylist() for name in self.group_by]
        rows_of: dict[Group, list[int]] = {}
        for row, key in enumerate(zip(*keys, strict=True)):
            rows_of.setdefault(key, []).append(row)
        return [(key, table.take(rows)) for key, rows in rows_of.items()]

    def _add(self, group: Group, counts: list[Any]) -> None:
        own = self._groups.setdefault(group, [codec.counts() for codec in self.plan.codecs])
        for mine, more in zip(own, counts, strict=True):
            mine.merge(more)

    def merge(self, other: Aggregate) -> Aggregate:
        """Add what another aggregate of the same plan and groups counted; return this one.

        Raises
        ------
        PlanError, TypeError
            For an aggregate of another plan or of other groups.
        """
        if not isinstance(other, Aggregate):
            raise TypeError(f"other: must be an Aggregate, not {type(other).__name__}")
        if other.plan.digest != self.plan.digest or other.group_by != self.group_by:
            raise PlanError("other: is of another plan, or of other groups")
        for group, counts in other._groups.items():
            self._add(group, counts)
        return self

    def to_json(self) -> str:
        """Return the counts as a JSON text."""
        return json.dumps(
            {
                "format": _FORMAT,
                "version": _VERSION,
                "plan": self.plan.digest,
                "group_by": list(self.group_by),
                "groups": [
                    {"group": list(group), "counts": [each.to_json() for each in counts]}
                    for group, counts in self._groups.items()
                ],
            },
            allow_nan=False,
            default=str,
        )

    @classmethod
    def from_json(cls, text: str, plan: _Plan) -> Aggregate:
        """Return the aggregate of a JSON text.

        Raises
        ------
        PlanError, ValueError
            For a text that is none, or of another plan.
        """
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise PlanError("text: is no JSON") from None
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise PlanError(f"text: is no {_FORMAT} document")
        if document.get("version") != _VERSION or document.get("plan") != plan.digest:
            raise PlanError("text: is of another version, or of another plan")
        made = cls(plan, document.get("group_by", ()))
        for group in document.get("groups", ()):
            counts = [
                type(codec.counts()).from_json(each, codec.counted)
                for codec, each in zip(plan.codecs, group["counts"], strict=True)
            ]
            made._add(tuple(group["group"]), counts)
        return made

    def estimate(self, level: float = 0.95) -> pa.Table:
        """Return the answers, without bias: a mean for each column of numbers, a share for each category.

        Parameters
        ----------
        level : float
            How often an interval holds the truth, each by itself. The truth is the mean or the share in the
            population from which the records (of the group) are drawn independently.

        Returns
        -------
        pyarrow.Table
            Columns of the groups, if any; ``column``, ``what`` ("mean" or "share"), ``category`` (null for a
            mean, and for the share of missing values), ``estimate``, ``stderr``, ``low``, ``high``,
            ``records``; ``note`` says of what the mean is, where numbers are put on points or cut to words
            first, and why there is no estimate, where there is none.

        Raises
        ------
        ValueError
            If nothing has been counted.
        """
        if not len(self):
            raise ValueError("estimate: nothing has been counted")
        rows = [
            dict(zip(self.group_by, group, strict=True)) | row
            for group, counts in self._groups.items()
            for codec, each in zip(self.plan.codecs, counts, strict=True)
            for row in codec.answers(each, level)
        ]
        names = (*self.group_by, *_FIELDS)
        return pa.table({name: pa.array([row[name] for row in rows], _FIELDS.get(name)) for name in names})


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
}
