"""Engines that need more than a call: Spark's declaration of columns, DuckDB's function with safe flags."""

from __future__ import annotations

import secrets
from typing import Any

import pyarrow as pa

from bitldp.base.errors import require

__all__ = ["arrow_schema", "duckdb_relation", "spark_ddl"]


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the Arrow schema of a Spark schema; one of Arrow as it is."""
    if isinstance(schema, pa.Schema):
        return schema
    require("Spark", ["pyspark"], "spark")
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema)


def spark_ddl(release: Any, schema: Any) -> str:
    """Return the released columns as Spark declares them.

    Parameters
    ----------
    release : TableRelease
    schema : pyspark.sql.types.StructType or pyarrow.Schema
        Of the table that is released.
    """
    require("Spark", ["pyspark"], "spark")
    from pyspark.sql.pandas.types import from_arrow_type

    return ", ".join(
        f"`{field.name.replace('`', '``')}` {from_arrow_type(field.type).simpleString()}"
        for field in release.schema(arrow_schema(schema))
    )


def duckdb_relation(release: Any, connection: Any, table: Any) -> Any:
    """Return a relation of DuckDB that holds what is released of a table, view or query.

    The function behind it is declared to have side effects, so that DuckDB folds no constants and calls it
    for every row, and to take nulls as they are, so that none passes by.

    Parameters
    ----------
    release : TableRelease
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
