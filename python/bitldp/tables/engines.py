"""Releases inside engines: Spark, Dask, polars and DuckDB, which may evaluate a batch twice."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import PlanError, require
from bitldp.tables.frames import alike, opened
from bitldp.tables.ids import SeenIds

__all__ = ["EngineRelease", "arrow_schema"]


class EngineRelease(ABC):
    """Release of the batches and partitions that an engine shows: it needs a key.

    Attributes
    ----------
    record : str or None
        Column of the records' ids.
    reads : tuple of str
        The columns that a table must have.
    """

    record: str | None

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The columns that a table must have."""

    @property
    @abstractmethod
    def repeatable(self) -> bool:
        """True if evaluating it again gives the same reports."""

    @property
    @abstractmethod
    def counting(self) -> bool:
        """True if a private store counts the values of each record."""

    @abstractmethod
    def __call__(self, frame: Any) -> Any:
        """Release a table."""

    @abstractmethod
    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of what is released of tables of a schema."""

    @abstractmethod
    def _ids(self, table: pa.Table, first_row: int) -> NDArray[Any] | None:
        """Return the ids of records, each of which comes once; None where there are none."""

    @abstractmethod
    def _check_types(self, schema: pa.Schema, *, ids_alone: bool = False) -> None:
        """Refuse a table of other types."""

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Release a stream of record batches: for Spark's ``mapInArrow`` and whatever works on streams."""
        self._repeatable("batches")
        for batch in batches:
            released = self(batch)
            if released.num_rows:
                yield released.replace_schema_metadata(None)

    def ddl(self, schema: Any) -> str:
        """Return the released columns as Spark declares them, of a Spark or Arrow schema."""
        return _spark_ddl(self, schema)

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

    def duckdb(self, connection: Any, table: Any) -> Any:
        """Return a relation of DuckDB that holds what is released of a table, view or query of a connection.

        Parameters
        ----------
        connection : duckdb.DuckDBPyConnection
        table : str or duckdb.DuckDBPyRelation
            A name, also with its schema (``main.people``), a query (``SELECT ...``), or a relation.
        """
        self._repeatable("duckdb")
        return _duckdb_relation(self, connection, table)

    def _repeatable(self, method: str) -> None:
        if not self.repeatable:
            raise PlanError(
                f"{method}: an engine may evaluate a batch twice, and without a key that is two releases; "
                "give plan.release a key and the column of the records' ids"
            )
        if self.counting:
            raise PlanError(
                f"{method}: a store works in one process, and an engine's workers do not share it; release "
                "whole tables where the store is, or micro-batches by release.stream()"
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
        self._check_types(table.schema, ids_alone=True)
        seen = SeenIds(self.record)
        if (ids := self._ids(table, 1)) is not None:
            seen.add(ids)
        return seen


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the Arrow schema of a Spark schema; one of Arrow as it is."""
    if isinstance(schema, pa.Schema):
        return schema
    require("Spark", ["pyspark"], "spark")
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema)


def _spark_ddl(release: EngineRelease, schema: Any) -> str:
    """Return the released columns as Spark declares them.

    Parameters
    ----------
    release : EngineRelease
    schema : pyspark.sql.types.StructType or pyarrow.Schema
        Of the table that is released.
    """
    require("Spark", ["pyspark"], "spark")
    from pyspark.sql.pandas.types import from_arrow_type

    return ", ".join(
        f"`{field.name.replace('`', '``')}` {from_arrow_type(field.type).simpleString()}"
        for field in release.schema(arrow_schema(schema))
    )


def _duckdb_relation(release: EngineRelease, connection: Any, table: Any) -> Any:
    """Return a relation of DuckDB that holds what is released of a table, view or query.

    The function behind it is declared to have side effects, so that DuckDB folds no constants and calls it
    for every row, and to take nulls as they are, so that none passes by.

    Parameters
    ----------
    release : EngineRelease
    connection : duckdb.DuckDBPyConnection
    table : str or duckdb.DuckDBPyRelation
        Name of the table or view, with its schema where it has one; a query; or a relation.
    """
    require("DuckDB", ["duckdb"], "duckdb")
    import duckdb

    if isinstance(table, str):
        query = table.lstrip().lower().startswith(("select ", "select\n", "from ", "with "))
        table = connection.sql(table) if query else _table(connection, table)
    source = table.project(", ".join(map(_quoted, release.reads)))
    schema = release.schema(source.limit(0).to_arrow_table().schema)
    made = connection.from_arrow(schema.empty_table().replace_schema_metadata(None))

    def released(records: Any) -> Any:
        whole = records.combine_chunks() if isinstance(records, pa.ChunkedArray) else records
        table = release(pa.Table.from_arrays(whole.flatten(), list(release.reads)))
        return table.replace_schema_metadata(None).to_struct_array()

    name = f"bitldp_{secrets.token_hex(8)}"
    connection.create_function(
        name,
        released,
        [duckdb.struct_type(dict(zip(source.columns, source.types, strict=True)))],
        duckdb.struct_type(dict(zip(made.columns, made.types, strict=True))),
        type="arrow",
        null_handling="special",
        side_effects=True,
    )
    fields = ", ".join(f"{_quoted(column)} := {_quoted(column)}" for column in source.columns)
    return source.project(f"UNNEST({name}(struct_pack({fields})))")


def _table(connection: Any, name: str) -> Any:
    """Return a table or view by its name, which may have points in it, or a schema before it."""
    try:
        return connection.sql(f"FROM {_quoted(name)}")
    except Exception:  # no table of that name: then of that name in a schema
        return connection.table(name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
