"""Streams: keyed releases of micro-batches, in which a record may come late, again, or with other values."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import DataError, PlanError
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.frames import opened
from bitldp.tables.store import keep_types, opened_store

__all__ = ["StreamRelease", "refuse_stream"]

_BYTES = 16  # of a keyed hash: two of 10^9 are alike once in 10^20 streams
_STREAMING = "sql.streaming.queryId"  # property of Spark's tasks, and of the thread that starts them
_TABLES = ("CREATE TABLE IF NOT EXISTS seen (id BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",)


class _Plan(Protocol):
    """The part of `bitldp.tables.TablePlan` that a stream depends on."""

    @property
    def types(self) -> Mapping[str, str]: ...

    @property
    def codecs(self) -> Sequence[ColumnCodec]: ...


class _Release(Protocol):
    """The part of `bitldp.tables.TableRelease` that a stream depends on."""

    record: str | None

    @property
    def plan(self) -> _Plan: ...

    @property
    def id(self) -> str: ...

    @property
    def reads(self) -> tuple[str, ...]: ...

    def hash_key(self) -> bytes: ...

    def encoded(self, table: pa.Table) -> tuple[NDArray[Any], list[NDArray[Any]]]: ...

    def released(self, frame: Any) -> Any: ...


class StreamRelease:
    """Release of micro-batches, with a private file of the records that were seen.

    `TableRelease.stream` makes it. A record that comes again with the values that it had gets the report that
    it had, which costs nothing. One with other values would be a second report that nobody charged: its
    micro-batch is refused. What was seen is on disk before anything is returned, and a batch that is tried
    again gives the same rows.

    Parameters
    ----------
    release : TableRelease
        With a key.
    path : str or os.PathLike
        The file, which is made where there is none: keyed hashes of ids and values. Keep it with the key, and
        never beside the output.
    """

    def __init__(self, release: _Release, path: str | os.PathLike[str]) -> None:
        self.release, self.path = release, Path(path)

    def __call__(self, frame: Any) -> Any:
        """Release a micro-batch, as `TableRelease` does.

        Raises
        ------
        DataError
            For a record that was seen with other values, and what a release refuses. Nothing is released or
            kept in mind then.
        PlanError
            For a file that belongs to another release, for a batch of other types than the first one of this
            file, and in a task of a streaming query of Spark.
        """
        refuse_stream(looked=True)
        table, _ = opened(frame, self.release.reads)
        ids, values = self.release.encoded(table)
        records = list(zip(self._hashed(b"id", [ids]), self._hashed(b"value", values), strict=True))
        with opened_store(self.path, self.release.id, _TABLES) as seen:
            plan = self.release.plan
            keep_types(seen, table.schema, plan.types, plan.codecs, self.release.record)
            before: dict[bytes, bytes] = {}
            for start in range(0, len(records), 500):
                some = [each for each, _ in records[start : start + 500]]
                marks = ", ".join("?" * len(some))
                before.update(seen.execute(f"SELECT id, value FROM seen WHERE id IN ({marks})", some))
            for row, (each, value) in enumerate(records, 1):
                if before.get(each, value) != value:
                    raise DataError(
                        f"row {row}, column {self.release.record!r}: an id that was released with other "
                        "values; a second report costs epsilon again"
                    )
            seen.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?)", records)
            return self.release.released(frame)

    def __len__(self) -> int:
        """Return how many records were seen."""
        with opened_store(self.path, self.release.id, _TABLES) as seen:
            return int(seen.execute("SELECT count(*) FROM seen").fetchone()[0])

    def _hashed(self, purpose: bytes, arrays: Sequence[NDArray[Any]]) -> Iterator[bytes]:
        """Yield a keyed hash of each row of some arrays together."""
        key = self.release.hash_key()
        if not len(arrays[0]):
            return
        rows = [np.ascontiguousarray(each.reshape(len(each), -1)).view(np.uint8) for each in arrays]
        for row in np.concatenate(rows, axis=1):
            yield hashlib.blake2b(row.tobytes(), key=key, digest_size=_BYTES, person=purpose).digest()


def refuse_stream(*, looked: bool = False) -> None:
    """Refuse to release inside a streaming query of Spark, where records come again.

    A query is seen in its tasks and, but for Spark Connect, in the function that it calls with each
    micro-batch.

    Parameters
    ----------
    looked : bool
        Whether a file tells which records were seen. It is one for the whole query in that function alone:
        each task might have one of its own.

    Raises
    ------
    PlanError
    """
    spark = sys.modules.get("pyspark")
    if spark is None:
        return
    context = spark.TaskContext.get()
    if context is None and not looked:
        context = getattr(getattr(spark, "SparkContext", None), "_active_spark_context", None)
    if context is not None and context.getLocalProperty(_STREAMING) is not None:
        raise PlanError(
            "release: a stream shows records late and again, and one whose values changed would have a "
            "second report that nobody charged; use release.stream(FILE) in foreachBatch, or a memoized "
            "release with a store and release.stream()"
        )
