"""A plan at work: tables in, released tables out; with a key, the same ones however often it is asked."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.ledger.budget import Ledger
from bitldp.ledger.entry import Entry
from bitldp.privacy import Guarantee
from bitldp.tables.frames import alike, opened
from bitldp.tables.key import ReleaseKey
from bitldp.tables.part import Part
from bitldp.tables.planned import Planned
from bitldp.tables.records import SeenIds, ids_of

__all__ = ["TableRelease"]

_INT32 = 31  # bits of a code that int32 holds
_ROWS = 1 << 17  # released at a time: more take memory that is fresh, which costs as much as the work


class TableRelease:
    """What releases tables by a plan; `TablePlan.release` makes it.

    With a key, the report of a record and column is a function of the key, the plan, the snapshot, the
    record's id and the value: batches, order, partitions, retries and a second evaluation give the same
    bytes. Without one, each call is a release of its own, and costs epsilon again.

    It pickles, for an engine's workers, with a reference to the key and never the key itself. There a call
    takes one thread, where `threads` says nothing: the engine has as many workers as there are processors.

    Attributes
    ----------
    plan : TablePlan
    record : str or None
        Column of the records' ids.
    snapshot : str
        Name of the data's state.
    threads : int or None
    """

    def __init__(
        self, plan: Planned, key: ReleaseKey | None, record: str | None, snapshot: str, threads: int | None
    ) -> None:
        if (key is None) != (record is None):
            raise PlanError(
                "key and record go together: the reports are a function of the key and the record's id"
            )
        if key is not None and not isinstance(key, ReleaseKey):
            raise TypeError(f"key: must be a ReleaseKey, not {type(key).__name__}")
        if not isinstance(snapshot, str):
            raise TypeError(f"snapshot: must be a str, not {type(snapshot).__name__}")
        if key is None and snapshot:
            raise PlanError("snapshot: is for a release with a key; without one every evaluation is its own")
        self.plan, self.record, self.snapshot, self.threads = plan, record, snapshot, threads
        self._key = key

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take one thread where nothing else was asked for: this is a worker's."""
        self.__dict__.update(state, threads=1 if state["threads"] is None else state["threads"])

    @property
    def guarantee(self) -> Guarantee:
        """The privacy of a record, of one release."""
        return self.plan.guarantee

    @property
    def repeatable(self) -> bool:
        """Whether evaluating it again gives the same reports."""
        return self._key is not None

    @cached_property
    def id(self) -> str:
        """What tells the release from others: of plan, snapshot, records and key; random without a key."""
        if self._key is None:
            return ReleaseKey.new_text()[:32]
        return self._derived("id").hex()[:32]

    def _derived(self, purpose: str) -> bytes:
        if self._key is None:
            raise PlanError("key: this release has none")
        names = (purpose, self.plan.digest, self.record or "", self.snapshot)
        return self._key.derive(b"bitldp.tables", *(name.encode() for name in names))

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        record = () if self.record is None or self.record in self.plan.reads else (self.record,)
        return (*self.plan.reads, *record)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """What the schema of a released table carries: digest of the plan, the release, and epsilon."""
        return {
            b"bitldp.plan": self.plan.digest.encode(),
            b"bitldp.release": self.id.encode(),
            b"bitldp.epsilon": repr(self.guarantee.record).encode(),
        }

    def __call__(self, frame: Any) -> Any:
        """Release a table.

        Parameters
        ----------
        frame : pyarrow.Table, pyarrow.RecordBatch, pandas.DataFrame, polars.DataFrame or dict of arrays

        Returns
        -------
        the same kind
            The plan's columns in its order, then the kept ones. What the plan does not name is not there.

        Raises
        ------
        PlanError
            For a table without a column of the plan, or of another type.
        DataError
            For a value that cannot be released, a missing one that the plan does not cover, or an id that
            comes up twice: by row and column, never by the value. Nothing is released then.
        """
        table, back = opened(frame, self.reads)
        ids = self._ids(table, 1)
        pieces = [
            self._released(
                table.slice(start, _ROWS), start + 1, None if ids is None else ids[start : start + _ROWS]
            )
            for start in range(0, max(1, table.num_rows), _ROWS)
        ]
        return back(pa.concat_tables(pieces), self.plan.keep)

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
        ids = self._ids(table, first_row)
        if seen is not None and ids is not None:
            seen.add(ids)
        return self._released(table, first_row, ids, moved)

    def _ids(self, table: pa.Table, first_row: int) -> NDArray[Any] | None:
        if self.record is None:
            return None
        return ids_of(table.column(self.record), self.record, first_row, self.threads)

    def _released(
        self, table: pa.Table, first_row: int, ids: NDArray[Any] | None, moved: list[int] | None = None
    ) -> pa.Table:
        """Release rows whose ids are known to come up once."""
        coins = None if ids is None else self._derived("coins")
        made: list[tuple[str, Any]] = []
        place = 0
        for number, planned in enumerate(self.plan.parts):
            part = replace(planned, threads=self.threads)
            x = part.codec.encode(table, first_row)
            x = x.astype(np.float64) if x.dtype == np.float32 else x  # one type, whatever the table's
            if moved is not None:
                moved[number] += part.outside(x)
            if coins is None or ids is None:
                reports = part.randomize(x, 0)
            else:
                reports = part.randomize_keyed(x, coins, ids, place)
            arrow_type = table.schema.field(part.codec.columns[0]).type
            made += [
                (name, _column(part, values))
                for name, values in part.codec.decode(reports, part.output, arrow_type)
            ]
            place += len(part.codec.columns)
        made += [(name, table.column(name)) for name in self.plan.keep]
        found = pa.table([values for _, values in made], names=[name for name, _ in made])
        return found.replace_schema_metadata(self.metadata)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of what is released of tables of a schema."""
        return self.piece(schema.empty_table().select(list(self.reads))).schema

    # -- inside an engine, which may evaluate a batch again: a key is needed

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Release a stream of record batches: for Spark's ``mapInArrow`` and whatever works on streams."""
        self._repeatable("batches")
        for batch in batches:
            released = self(batch)
            if released.num_rows:
                yield released.replace_schema_metadata(None)

    def ddl(self, schema: Any) -> str:
        """Return the released columns as Spark declares them, of a Spark or Arrow schema."""
        from bitldp.tables.engines import spark_ddl

        return spark_ddl(self, schema)

    def pandas(self, frame: Any) -> Any:
        """Release a pandas frame: for Dask's ``map_partitions``."""
        self._repeatable("pandas")
        return self(frame)

    def meta(self, frame: Any) -> Any:
        """Return an empty released frame of an empty or example pandas frame: for Dask's ``meta=``."""
        return self(frame.iloc[:0])

    def polars(self, frame: Any) -> Any:
        """Release a polars frame: for the ``map_batches`` of lazy frames."""
        self._repeatable("polars")
        return self(frame)

    def polars_schema(self, schema: Any) -> dict[str, Any]:
        """Return the released columns and their types, of a polars schema: for ``map_batches(schema=)``."""
        import polars

        empty = polars.DataFrame(schema=schema)
        return dict(self(empty).schema)

    def duckdb(self, connection: Any, table: str) -> Any:
        """Return a relation of DuckDB that holds what is released of a table or view of a connection."""
        from bitldp.tables.engines import duckdb_relation

        self._repeatable("duckdb")
        return duckdb_relation(self, connection, table)

    def _repeatable(self, method: str) -> None:
        if self._key is None:
            raise PlanError(
                f"{method}: an engine may evaluate a batch twice, and without a key that is two releases; "
                "give plan.release a key and the column of the records' ids"
            )

    # -- ids of all partitions, which an engine shows one by one

    def ids(self, frame: Any) -> Any:
        """Return the ids of a frame's records as one row, for `check_ids`, in a frame of its kind.

        Its column "ids" holds bytes: eight for each id, and few for integers that follow each other by one.
        """
        return alike(pa.table({"ids": pa.array([self._seen(frame).to_bytes()], pa.binary())}), frame)

    def id_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return `ids` of each of some record batches: for Spark's ``mapInArrow``, with "ids binary"."""
        yield from map(self.ids, batches)

    def check_ids(self, parts: Iterable[Any]) -> int:
        """Refuse ids that come up twice in all of a table, and return how many there are.

        An engine shows its partitions one by one; do this once, before the release is charged. `parts` are
        what `ids` gave on the workers, as bytes, or all partitions themselves.

        Raises
        ------
        DataError
            For a missing id, or one that comes up twice: without the id.
        """
        seen = SeenIds(self.record or "")
        for part in parts:
            given = isinstance(part, (bytes, bytearray, memoryview))
            seen.merge(SeenIds.from_bytes(seen.name, bytes(part)) if given else self._seen(part))
        seen.check()
        return len(seen)

    def _seen(self, frame: Any) -> SeenIds:
        if self.record is None:
            raise PlanError("record: this release has no ids of records")
        table, _ = opened(frame, [self.record])
        seen = SeenIds(self.record)
        seen.add(ids_of(table.column(self.record), self.record, 1, self.threads))
        return seen

    def charge(self, ledger: Ledger, *, data: str = "") -> Entry | None:
        """Charge the release to a ledger, once, however often it is asked.

        Parameters
        ----------
        ledger : Ledger
            Open, where several processes share it.
        data : str, optional
            Digest of the records; the ledger then refuses another digest for the same release. It must not
            tell of the records: `digest` makes such a one.

        Returns
        -------
        Entry or None
            What was charged; None if this release was charged before.

        Raises
        ------
        PlanError
            If the release was charged for other data: one key and snapshot serve one frozen table.
        BudgetExceededError
            If it costs more than remains.
        """
        note = f"release {self.id}"
        for entry in ledger.entries:
            if entry.note.partition(" data ")[0] == note:
                before = entry.note.partition(" data ")[2]
                if data and before and data != before:
                    raise PlanError(
                        "snapshot: this release was made of other data; data that changed is another snapshot"
                    )
                return None
        return ledger.charge(self.guarantee, note=f"{note} data {data}" if data else note)

    def digest(self, blocks: Iterable[bytes]) -> str:
        """Return a digest of some bytes that tells nothing about them without the key: HMAC-SHA256."""
        found = hmac.new(self._derived("data"), digestmod=hashlib.sha256)
        for block in blocks:
            found.update(block)
        return found.hexdigest()

    def __repr__(self) -> str:
        """Return plan, snapshot and where the key comes from."""
        return (
            f"TableRelease(plan={self.plan.digest[:12]}, key={self._key!r}, record={self.record!r}, "
            f"snapshot={self.snapshot!r})"
        )


def _column(part: Part, values: Any) -> Any:
    """Return a released column with signed integers, which every engine has."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "u":
        if part.output == "bits":
            return pa.array(values.astype(np.int8))
        wide = max(bits for _, bits in part.mechanism.report_parts) > _INT32
        return pa.array(values.astype(np.int64 if wide else np.int32))
    return pa.array(values) if isinstance(values, np.ndarray) else values
