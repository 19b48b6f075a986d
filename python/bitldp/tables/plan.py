"""Plans of tables, and their releases: tables in, released tables out; with a key, the same ones again."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.privacy import Guarantee, added
from bitldp.tables.aggregate import Aggregate
from bitldp.tables.charges import ChargedRelease
from bitldp.tables.clients import ClientForm
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.column import Column, canonical_digest, columns_of_toml, toml_of
from bitldp.tables.engines import arrow_schema
from bitldp.tables.frames import opened
from bitldp.tables.ids import SeenIds, ids_of
from bitldp.tables.key import ReleaseKey
from bitldp.tables.memoized import Days, MemoizedStream
from bitldp.tables.pseudonyms import checked_keep_as, linked_name, pseudonyms
from bitldp.tables.stream import StreamRelease, refuse_stream
from bitldp.tables.streamed import released_stream, stream_of
from bitldp.tables.types import checked_types, refuse_other, rounded, types_of, wholes

__all__ = ["TablePlan", "TableRelease"]

_ROWS = 1 << 17  # released at a time: more take memory that is fresh, which costs as much as the work


class TablePlan(ClientForm):
    """Plan of a table: columns that are released through mechanisms, and columns that are kept unchanged.

    Parameters
    ----------
    columns : sequence of Column
        Columns that are released through mechanisms. A column that the plan does not name is not released.
    keep : sequence of str
        Columns that are released unchanged, without any privacy.
    types : mapping of str, optional
        Type of each column that is released, and of the records' ids: "integer", "float32", "float64",
        "boolean", "date", "timestamp", "time", "duration", "text" or "bytes". A table of other types is
        refused; numbers are taken in single precision where the type is "float32". `typed` states the types
        of a first table.
    keep_as : mapping of str, optional
        ``{"id": "pseudonym"}`` releases the column of the records' ids as "id_pseudonym", the HMAC-SHA256 of
        each id under the release's key. Anyone can then link the reports of a person in all releases under
        one key: their epsilons add up, together with what is known about the person from elsewhere. Whoever
        holds the key can identify the people.

    Raises
    ------
    PlanError
        For a column that is named twice, two released columns of one name, or types of some columns alone.

    Examples
    --------
    >>> import bitldp, pyarrow as pa
    >>> from bitldp.tables import Column, TablePlan
    >>> plan = TablePlan(
    ...     [
    ...         Column(bitldp.Piecewise(epsilon=1.0, interval=(120, 220)), "height"),
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

    def __init__(
        self,
        columns: Sequence[Column],
        keep: Sequence[str] = (),
        types: Mapping[str, str] | None = None,
        keep_as: Mapping[str, str] | None = None,
    ) -> None:
        self.columns: tuple[Column, ...] = tuple(columns)
        self.keep: tuple[str, ...] = (keep,) if isinstance(keep, str) else tuple(keep)
        if not self.columns or not all(isinstance(column, Column) for column in self.columns):
            raise PlanError("columns: must be one or more of bitldp.tables.Column")
        if not all(isinstance(name, str) for name in self.keep):
            raise PlanError("keep: must be names of columns")
        _once([*(name for column in self.columns for name in column.inputs), *self.keep], "is named twice")
        #: How each independent mechanism reads, releases and answers.
        self.codecs: tuple[ColumnCodec, ...] = tuple(
            codec for column in self.columns for codec in column.codecs
        )
        self.keep_as = checked_keep_as(keep_as) if keep_as else {}
        linked = [*map(linked_name, self.keep_as)]
        _once([*(name for column in self.columns for name in column.inputs), *self.keep_as], "is named twice")
        released = [name for codec in self.codecs for name in codec.names]
        _once([*released, *self.keep, *linked], "is released twice")
        self.types: dict[str, str] = checked_types(types, self.codecs) if types else {}

    def typed(self, frame: Any, record: str | None = None) -> TablePlan:
        """Return the plan with the types of a table added; do so before a first release.

        Parameters
        ----------
        frame : pyarrow.Schema, pyspark.sql.types.StructType, or a frame as a release takes it
            Its types alone count.
        record : str, optional
            Column of the records' ids.

        Raises
        ------
        PlanError
            For a table without the columns, with a column of no type yet, or of one that no plan states.
        """
        wanted = (*self.inputs, *(() if record is None else (record,)))
        if isinstance(frame, pa.Schema) or hasattr(frame, "jsonValue"):
            frame = arrow_schema(frame).empty_table()
        table, _ = opened(frame, list(dict.fromkeys(wanted)))
        types = types_of(table.schema, self.codecs, record)
        for name, kind in types.items():
            if not kind:
                raise PlanError(f"column {name!r}: has no values that would show its type")
        return TablePlan(self.columns, self.keep, types, self.keep_as)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        return (*self.inputs, *self.keep)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that mechanisms read."""
        return tuple(dict.fromkeys(name for codec in self.codecs for name in codec.inputs))

    @property
    def charged(self) -> tuple[str, ...]:
        """The columns that a ledger names: those that mechanisms read, and the pseudonym."""
        return (*self.inputs, *map(linked_name, self.keep_as))

    @cached_property
    def guarantee(self) -> Guarantee:
        """The privacy of a record: what its columns cost together, exact and claimed.

        Neighbouring tables differ in one record, in any of its columns but the kept ones.
        """
        parts = [codec.mechanism.guarantee for codec in self.codecs]
        claimed = added(*(each.claimed if each.unit == "record" else each.record for each in parts))
        return Guarantee(
            claimed=claimed,
            bit=max(each.bit for each in parts),
            feature=max(each.feature for each in parts),
            record=added(*(each.record for each in parts)),
            delta=min(1.0, added(*(each.delta for each in parts))),
            holds=all(each.holds for each in parts),
            given="; ".join(dict.fromkeys(each.given for each in parts if each.given)),
        )

    def release(
        self,
        key: ReleaseKey | None = None,
        *,
        record: str | None = None,
        snapshot: str = "",
        threads: int | None = None,
        memoize: bool = False,
        most: int | None = None,
        store: str | os.PathLike[str] | None = None,
    ) -> TableRelease:
        """Return the release of tables by this plan.

        Parameters
        ----------
        key : ReleaseKey, optional
            Key that makes every report a function of the record: evaluating the release again gives the same
            reports, whatever the batches and the engine. None: fresh random bits, so that each evaluation is
            a new release and costs epsilon again.
        record : str, optional
            Column of the records' ids, integers or text, each once; needed with a key, and only then.
        snapshot : str
            Name of the state of the data. Use one key and snapshot for one frozen table; otherwise, a report
            that changes reveals that its record changed.
        threads : int, optional
            Threads of a call; one inside an engine.
        memoize : bool
            Whether to repeat reports over all snapshots: a record whose columns stay the same keeps its
            reports, at no cost. Each further value of a column gets a new report, which costs the epsilon of
            its mechanism again and reveals that the column changed. No epsilon covers that fact.
        most : int, optional
            With `memoize`: number of values of a record, in the columns of each mechanism, that get their own
            report. For further values the last report is repeated. No record then costs more than ``most *
            epsilon``, but answers about records that keep changing are out of date.
        store : path-like, optional
            With `most`: the private file with the counts, created if it does not exist. Keep it with the key,
            never beside the output.

        Raises
        ------
        PlanError
            For a key without a column of ids, or the other way round; for `memoize` without a key, or without
            a store if the plan states no types (`typed`).
        """
        if not memoize and (most is not None or store is not None):
            raise PlanError("most, store: go with memoize=True")
        days = Days(most, store) if memoize else None
        return TableRelease(self, key, record, snapshot, threads, days)

    def aggregate(self, group_by: Sequence[str] = ()) -> Aggregate:
        """Return an empty aggregate of released tables, by the groups of kept columns where any are named."""
        return Aggregate(self, group_by)

    def fingerprint(self) -> dict[str, Any]:
        """Return the plan as JSON values, parameters under their lasting names."""
        more = {"types": dict(self.types)} if self.types else {}
        more |= {"keep_as": dict(self.keep_as)} if self.keep_as else {}
        return {"column": [column.to_document() for column in self.columns], "keep": list(self.keep), **more}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan, in hexadecimal, which a released table carries."""
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
            raise PlanError("text: is not JSON") from None
        return cls.from_document(document)

    @classmethod
    def from_document(cls, document: Any) -> TablePlan:
        """Return the plan of JSON values, as `fingerprint` gives them."""
        if not isinstance(document, dict) or set(document) - {"column", "keep", "types", "keep_as"}:
            raise PlanError("plan: must have column, keep, types and keep_as, and nothing else")
        columns, keep = document.get("column"), document.get("keep", [])
        if not isinstance(columns, list) or not isinstance(keep, list):
            raise PlanError("plan: column and keep must be lists")
        made = [Column.from_document(each) for each in columns]
        return cls(made, keep, document.get("types"), document.get("keep_as"))

    def to_toml(self) -> str:
        """Return the plan as a TOML text, for a file that people read."""
        columns = [column.to_document(named=True) for column in self.columns]
        return toml_of(columns, self.keep, self.types, self.keep_as)

    @classmethod
    def from_toml(cls, text: str) -> TablePlan:
        """Return the plan of a TOML text.

        Raises
        ------
        PlanError
            For a text that is none; the message begins with the line that is wrong.
        """
        return cls(*columns_of_toml(text))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> TablePlan:
        """Read a plan from a file: TOML, or JSON where the name ends so."""
        file = Path(path)
        text = file.read_text(encoding="utf-8")
        return cls.from_json(text) if file.suffix == ".json" else cls.from_toml(text)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file: TOML, or JSON where the name ends so."""
        file = Path(path)
        file.write_text(self.to_json() if file.suffix == ".json" else self.to_toml(), encoding="utf-8")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TablePlan) and (self.columns, self.keep, self.types, self.keep_as) == (
            *(other.columns, other.keep, other.types, other.keep_as),
        )

    def __hash__(self) -> int:
        return hash((tuple(column.columns for column in self.columns), self.keep))

    def __repr__(self) -> str:
        """Return the columns, a line each."""
        lines = "".join(f"\n    {column!r}," for column in self.columns)
        types = f", types={self.types!r}" if self.types else ""
        types += f", keep_as={self.keep_as!r}" if self.keep_as else ""
        return f"TablePlan([{lines}\n], keep={list(self.keep)!r}{types})"


class TableRelease(ChargedRelease):
    """Release of tables by a plan; `TablePlan.release` makes it.

    With a key, the report of a record and column is a function of the key, the plan, the snapshot, the
    record's id and the value: batches, order, partitions, retries and a second evaluation give the same
    bytes. Without a key, each call is a new release and costs epsilon again. In a memoized release, the
    report does not depend on the snapshot: see `TablePlan.release`.

    It pickles, for an engine's workers, with a reference to the key and never the key itself. Inside an
    engine a call uses one thread by default, since the engine has as many workers as there are processors.

    Attributes
    ----------
    plan : TablePlan
    record : str or None
        Column of the records' ids.
    snapshot : str
        Name of the data's state.
    threads : int or None
    days : Days or None
        Memoization over snapshots.
    """

    plan: TablePlan

    def __init__(
        self,
        plan: TablePlan,
        key: ReleaseKey | None,
        record: str | None,
        snapshot: str,
        threads: int | None,
        days: Days | None = None,
    ) -> None:
        if (key is None) != (record is None):
            raise PlanError(
                "key and record need each other: reports are a function of the key and the record's id"
            )
        if key is not None and not isinstance(key, ReleaseKey):
            raise TypeError(f"key: must be a ReleaseKey, not {type(key).__name__}")
        if plan.keep_as and record not in plan.keep_as:
            (name,) = plan.keep_as
            raise PlanError(f"keep_as: a pseudonym of {name!r} needs a key, and record={name!r}")
        if not isinstance(snapshot, str):
            raise TypeError(f"snapshot: must be a str, not {type(snapshot).__name__}")
        if key is None and snapshot:
            raise PlanError("snapshot: is for a release with a key; without one every evaluation is its own")
        if plan.types and record is not None and record not in plan.types:
            raise PlanError(f"record: the plan states types, but not that of {record!r}; plan.typed adds it")
        if days is not None and key is None:
            raise PlanError("memoize: needs a key and the column of the records' ids")
        if days is not None and days.path is None and not plan.types:
            raise PlanError(
                "memoize: an id or a number of another type tomorrow would have another report; state the "
                "types (plan.typed), or give most= and store=, which keeps them"
            )
        self.plan, self.record, self.snapshot, self.threads = plan, record, snapshot, threads
        self.days = days
        self._key = key
        self._shown: dict[str, str] = {}  # types of the first table, where the plan states none

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take one thread where nothing else was asked for: this is a worker's."""
        self.__dict__.update(state, threads=1 if state["threads"] is None else state["threads"])

    @property
    def guarantee(self) -> Guarantee:
        """The privacy of a record, of one release; memoized, of all snapshots.

        It holds between two histories of a record that change at the same times: for all their reports with
        `most`, and for those of one value of each column without it (`given` says so).
        """
        return self.plan.guarantee if self.days is None else self.days.guarantee(self.plan.guarantee)

    @property
    def repeatable(self) -> bool:
        """True if evaluating it again gives the same reports."""
        return self._key is not None

    @property
    def counting(self) -> bool:
        """True if a private store counts the values of each record."""
        return self.days is not None and self.days.path is not None

    @cached_property
    def id(self) -> str:
        """Name of the release, of plan, snapshot, records and key; random without a key."""
        if self._key is None:
            return secrets.token_hex(16)
        return self._derived("id" if self.days is None else f"id {self.days.most}").hex()[:32]

    @cached_property
    def series(self) -> str:
        """Name of all snapshots of a memoized release together."""
        return self._derived("series", series=True).hex()[:32]

    def _derived(self, purpose: str, *, series: bool = False) -> bytes:
        """Return a key for a purpose, of the snapshot or of all of them."""
        if self._key is None:
            raise PlanError("key: this release has no key")
        purpose = purpose if self.days is None else f"memoized {purpose}"
        names = (purpose, self.plan.digest, self.record or "", "" if series else self.snapshot)
        return self._key.derive(b"bitldp.tables", *(name.encode() for name in names))

    def client_secret(self) -> bytes:
        """Return the secret under which keyed clients make the reports of this release.

        It has 32 bytes, derived from the key, the plan, the column of ids and the snapshot. A client of the
        plan's `client_document` with `keyed` holds it in place of the key. Whoever has it can test values.

        Raises
        ------
        PlanError
            For a release without a key, and for one that is memoized.
        """
        if self.days is not None:
            raise PlanError("memoize: no other client keeps the store of a memoized release")
        return self._derived("coins")

    def _of_series(self, purpose: str) -> bytes:
        return self._derived(purpose, series=True)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        record = () if self.record is None or self.record in self.plan.reads else (self.record,)
        return (*self.plan.reads, *record)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """Metadata of the schema of a released table: digest of the plan, the release, and epsilon."""
        return {
            b"bitldp.plan": self.plan.digest.encode(),
            b"bitldp.release": self.id.encode(),
            b"bitldp.epsilon": repr(self.guarantee.record).encode(),
            **({} if self.days is None else {b"bitldp.series": self.series.encode()}),
        }

    def __call__(self, frame: Any) -> Any:
        """Release a table.

        Parameters
        ----------
        frame : pyarrow.Table, pyarrow.RecordBatch, pandas.DataFrame, polars.DataFrame or dict of arrays
            Or a stream of batches, which may be larger than memory: a `pyarrow.dataset.Dataset` or Scanner, a
            `pyarrow.RecordBatchReader`, a relation of DuckDB, or another object with an Arrow C stream.

        Returns
        -------
        the same kind
            The plan's columns in its order, then the kept ones. What the plan does not name is not there. Of
            a stream a `pyarrow.RecordBatchReader`, whose batches are released while it is read: an error ends
            it after the rows before have left, an id that comes up again before its second report has.

        Raises
        ------
        PlanError
            For a table without a column of the plan, or of another type; inside a streaming query of Spark,
            where `stream` releases.
        DataError
            For a value that cannot be released, a missing one that the plan does not cover, or an id that
            comes up twice: by row and column, never by the value. Nothing is released then.
        """
        refuse_stream()
        reader = stream_of(frame, self.reads)
        return self.released(frame) if reader is None else released_stream(self, reader)

    def released(self, frame: Any, *, again: bool = False) -> Any:
        """Release a table, also inside a streaming query, for callers that track the records they have seen.

        With `again`, a record may occur twice.
        """
        table, back = opened(frame, self.reads)
        with self.remembering():
            self._check_types(table.schema)
            ids = self._ids(table, 1, again=again)
            pieces = [
                self._released(
                    table.slice(start, _ROWS), start + 1, None if ids is None else ids[start : start + _ROWS]
                )
                for start in range(0, max(1, table.num_rows), _ROWS)
            ]
        return back(pa.concat_tables(pieces), self.plan.keep)

    def remembering(self, run: str = "") -> AbstractContextManager[str]:
        """Hold the store for a block that releases pieces of one snapshot: all is kept in mind, or nothing.

        Without a store it does nothing. A `run` of some digest may go on; see `Days.held`.
        """
        return nullcontext("") if self.days is None else self.days.held(self.series, run)

    def piece(
        self,
        table: pa.Table,
        first_row: int = 1,
        *,
        moved: list[int] | None = None,
        seen: SeenIds | None = None,
    ) -> pa.Table:
        """Release rows of a longer table, the first of which has the number `first_row`.

        In `moved`, one for each part, the numbers are counted that lie outside its interval; `seen` is given
        the ids, to look for those of other pieces.
        """
        self._check_types(table.schema)
        ids = self._ids(table, first_row)
        if seen is not None and ids is not None:
            seen.add(ids)
        return self._released(table, first_row, ids, moved)

    def _ids(self, table: pa.Table, first_row: int, *, again: bool = False) -> NDArray[Any] | None:
        if self.record is None:
            return None
        typed = bool(self.plan.types)
        if typed:
            table = wholes(table, [self.record], self.plan.types, first_row)
        return ids_of(
            table.column(self.record), self.record, first_row, self.threads, typed=typed, again=again
        )

    def _check_types(self, schema: pa.Schema, *, ids_alone: bool = False) -> None:
        """Refuse a table of other types than the plan states, or than the first one that this release saw.

        Fresh reports of a plan without types are of any.
        """
        codecs = () if ids_alone else self.plan.codecs
        if self.plan.types:
            found = types_of(schema, codecs, self.record)
            refuse_other(self.plan.types, found, self.record, "the plan states")
        elif self._key is not None:
            found = types_of(schema, codecs, self.record, exact=True)
            refuse_other(self._shown, found, self.record, "the first table held")
            self._shown |= {name: kind for name, kind in found.items() if kind}
        if self.days is not None and not ids_alone:
            self.days.check_types(schema, self.plan, self.record)

    def _released(
        self, table: pa.Table, first_row: int, ids: NDArray[Any] | None, moved: list[int] | None = None
    ) -> pa.Table:
        """Release rows whose ids are known to come up once."""
        key = None if ids is None else self._derived("coins", series=self.days is not None)
        made: list[tuple[str, Any]] = []
        column = 0
        for number, codec in enumerate(self.plan.codecs):
            x = self._input(codec, table, first_row)
            if moved is not None:
                moved[number] += codec.outside(x)
            if key is None or ids is None:
                reports = codec.randomize(x, threads=self.threads)
            else:
                reports = codec.randomize_keyed(x, key=key, ids=ids, column=column, threads=self.threads)
                if self.days is not None:
                    reports = self.days.sent(number, ids, x, reports, self._of_series)
            arrow_type = table.schema.field(codec.inputs[0]).type
            made += [(name, codec.signed(values)) for name, values in codec.written(reports, arrow_type)]
            column += len(codec.columns)
        made += [(name, table.column(name)) for name in self.plan.keep]
        made += [(linked_name(name), self._pseudonyms(table.column(name))) for name in self.plan.keep_as]
        released = pa.table([values for _, values in made], names=[name for name, _ in made])
        return released.replace_schema_metadata(self.metadata)

    def _pseudonyms(self, column: Any) -> pa.Array:
        """Return the pseudonyms of ids, which are the same in all releases under the key."""
        if self._key is None or self.record is None:
            raise PlanError("key: this release has no key")
        return pseudonyms(column, self.record, self._key.derive(b"bitldp.tables", b"pseudonym"))

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of what is released of tables of a schema."""
        return self.piece(schema.empty_table().select(list(self.reads))).schema

    # -- streams

    def stream(self, path: str | os.PathLike[str] | None = None) -> StreamRelease | MemoizedStream:
        """Return the release of micro-batches, which keeps in a private file which records it has seen.

        A record that arrives late or again gets the same report. With other values it is refused, since a
        second report costs epsilon again. Keep the file with the key. A memoized release uses its store in
        place of the file, and other values get the reports that the cap allows.
        """
        if self.days is None:
            self._repeatable("stream")
            if path is None:
                raise PlanError("path: must be a private file, which records the ids that were seen")
            return StreamRelease(self, path)
        if path is not None or self.days.path is None:
            raise PlanError("stream: of a memoized release it takes no file, and needs most= and store=")
        return MemoizedStream(self)

    def hash_key(self) -> bytes:
        """Return the key of the hashes in a private file of this release."""
        return self._derived("seen")

    def encoded(self, table: pa.Table, first_row: int = 1) -> tuple[NDArray[Any], list[NDArray[Any]]]:
        """Return the ids of records, and the inputs of the mechanisms."""
        ids, inputs = self.looked_at(table, first_row)
        if ids is None:
            raise PlanError("record: this release has no ids of records")
        return ids, inputs

    def looked_at(
        self, table: pa.Table, first_row: int = 1
    ) -> tuple[NDArray[Any] | None, list[NDArray[Any]]]:
        """Return ids, if there are, and inputs; refuse rows that `piece` refuses, and draw nothing."""
        self._check_types(table.schema)
        ids = self._ids(table, first_row)
        return ids, [self._input(codec, table, first_row) for codec in self.plan.codecs]

    def _input(self, codec: ColumnCodec, table: pa.Table, first_row: int) -> NDArray[Any]:
        """Return what a mechanism takes of a table, of one type whatever the table's."""
        if self.plan.types:
            table = wholes(table, codec.inputs, self.plan.types, first_row)
        x = codec.read(table, first_row)
        x = x.astype(np.float64) if x.dtype == np.float32 else x
        return rounded(x, codec, self.plan.types) if self.plan.types else x

    def __repr__(self) -> str:
        """Return plan, snapshot and where the key comes from."""
        return (
            f"TableRelease(plan={self.plan.digest[:12]}, key={self._key!r}, record={self.record!r}, "
            f"snapshot={self.snapshot!r}{'' if self.days is None else f', {self.days!r}'})"
        )


def _once(names: Iterable[str], problem: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise PlanError(f"column {name!r}: {problem} in the plan")
        seen.add(name)
