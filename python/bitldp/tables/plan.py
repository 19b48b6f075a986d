"""What may leave a table: mechanisms on columns, columns that are kept, and the epsilon of a record."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from bitldp.base.errors import PlanError
from bitldp.privacy import Guarantee, added
from bitldp.tables.aggregate import Aggregate
from bitldp.tables.collect import released_names
from bitldp.tables.column import Column
from bitldp.tables.document import column_of, document_of, parsed, toml_of
from bitldp.tables.key import ReleaseKey
from bitldp.tables.law import canonical_digest
from bitldp.tables.part import Part
from bitldp.tables.release import TableRelease

__all__ = ["TablePlan"]


class TablePlan:
    """What may leave a table: its columns, each through a mechanism, and columns that are kept as they are.

    Parameters
    ----------
    columns : sequence of Column
        What is released through mechanisms. A column that is named nowhere does not leave.
    keep : sequence of str
        Columns that leave as they are, without any privacy.

    Raises
    ------
    PlanError
        For a column that is named twice, or two released columns of one name.

    Examples
    --------
    >>> import bitldp, pyarrow as pa
    >>> from bitldp.tables import Column, TablePlan
    >>> plan = TablePlan(
    ...     [
    ...         Column(bitldp.Piecewise(1.0, interval=(120, 220)), "height"),
    ...         Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["Paris", "Rome", "Oslo"]),
    ...     ],
    ...     keep=["survey"],
    ... )
    >>> round(plan.guarantee.record, 9)
    2.0
    >>> people = {"height": [170.0, 182.0], "city": ["Rome", "Oslo"], "survey": [1, 1], "name": ["A", "B"]}
    >>> table = pa.table(people)
    >>> plan.release()(table).column_names
    ['height', 'city', 'survey']
    """

    def __init__(self, columns: Sequence[Column], keep: Sequence[str] = ()) -> None:
        self.columns: tuple[Column, ...] = tuple(columns)
        self.keep: tuple[str, ...] = (keep,) if isinstance(keep, str) else tuple(keep)
        if not self.columns or not all(isinstance(column, Column) for column in self.columns):
            raise PlanError("columns: must be one or more of bitldp.tables.Column")
        if not all(isinstance(name, str) for name in self.keep):
            raise PlanError("keep: must be names of columns")
        _once([*(name for column in self.columns for name in column.inputs), *self.keep], "is named twice")
        _once(
            [*(name for part in self.parts for name in released_names(part)), *self.keep], "is released twice"
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        """The independent mechanisms, each with its columns."""
        return tuple(part for column in self.columns for part in column.parts)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        return (*(name for column in self.columns for name in column.inputs), *self.keep)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The privacy of a record: what its columns cost together, exact and claimed.

        Neighbouring tables differ in one record, in any of its columns but the kept ones.
        """
        found = [part.mechanism.guarantee for part in self.parts]
        claimed = added(*(each.claimed if each.unit == "record" else each.record for each in found))
        return Guarantee(
            claimed=claimed,
            bit=max(each.bit for each in found),
            feature=max(each.feature for each in found),
            record=added(*(each.record for each in found)),
            delta=min(1.0, added(*(each.delta for each in found))),
            holds=all(each.holds for each in found),
            given="; ".join(dict.fromkeys(each.given for each in found if each.given)),
        )

    def release(
        self,
        key: ReleaseKey | None = None,
        *,
        record: str | None = None,
        snapshot: str = "",
        threads: int | None = None,
    ) -> TableRelease:
        """Return what releases tables by this plan.

        Parameters
        ----------
        key : ReleaseKey, optional
            Makes every report a function of the record: whoever evaluates the release again, whatever the
            batches and the engine, gets the same reports. None: fresh coins, so that each evaluation is a
            release of its own and costs epsilon again.
        record : str, optional
            Column of the records' ids, integers or text, each once; needed with a key, and only then.
        snapshot : str
            Name of the data's state: one key and snapshot serve one frozen table. A report that changes says
            that its record did.
        threads : int, optional
            Threads of a call; one inside an engine.

        Raises
        ------
        PlanError
            For a key without a record's column, or the other way round.
        """
        return TableRelease(self, key, record, snapshot, threads)

    def aggregate(self, group_by: Sequence[str] = ()) -> Aggregate:
        """Return an empty aggregate of released tables, by the groups of kept columns where any are named."""
        return Aggregate(self, group_by)

    def fingerprint(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {"column": [document_of(column) for column in self.columns], "keep": list(self.keep)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan, in hexadecimal: what a released table carries."""
        return canonical_digest(self.fingerprint())

    def to_json(self) -> str:
        """Return the plan as a JSON text."""
        return json.dumps(self.fingerprint(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> TablePlan:
        """Return the plan of a JSON text, as `to_json` gives it.

        Raises
        ------
        PlanError
            For a text that is none.
        """
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise PlanError("text: is no JSON") from None
        return cls.from_document(document)

    @classmethod
    def from_document(cls, document: Any) -> TablePlan:
        """Return the plan of JSON values, as `fingerprint` gives them."""
        if not isinstance(document, dict) or set(document) - {"column", "keep"}:
            raise PlanError("plan: must have column and keep, and nothing else")
        columns, keep = document.get("column"), document.get("keep", [])
        if not isinstance(columns, list) or not isinstance(keep, list):
            raise PlanError("plan: column and keep must be lists")
        return cls([column_of(each) for each in columns], keep)

    def to_toml(self) -> str:
        """Return the plan as a TOML text, for a file that people read."""
        document = self.fingerprint()
        return toml_of(document["column"], document["keep"])

    @classmethod
    def from_toml(cls, text: str) -> TablePlan:
        """Return the plan of a TOML text.

        Raises
        ------
        PlanError
            For a text that is none; the message begins with the line that is wrong.
        """
        columns, keep = parsed(text)
        return cls(columns, keep)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> TablePlan:
        """Read a plan from a file: TOML, or JSON where the name ends so."""
        place = Path(path)
        text = place.read_text(encoding="utf-8")
        return cls.from_json(text) if place.suffix == ".json" else cls.from_toml(text)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file: TOML, or JSON where the name ends so."""
        place = Path(path)
        place.write_text(self.to_json() if place.suffix == ".json" else self.to_toml(), encoding="utf-8")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TablePlan) and (self.columns, self.keep) == (other.columns, other.keep)

    def __hash__(self) -> int:
        return hash((tuple(column.columns for column in self.columns), self.keep))

    def __repr__(self) -> str:
        """Return the columns, a line each."""
        lines = "".join(f"\n    {column!r}," for column in self.columns)
        return f"TablePlan([{lines}\n], keep={list(self.keep)!r})"


def _once(names: Iterable[str], problem: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise PlanError(f"column {name!r}: {problem} in the plan")
        seen.add(name)
