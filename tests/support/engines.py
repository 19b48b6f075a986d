"""What the tests of engines share: a table, its plan, and what each engine makes of them in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import bitldp
import numpy as np
import pyarrow as pa
from bitldp.tables import Column, TablePlan, TableRelease

ROWS = 250_000
CITIES = ["Paris", "Rome", "Oslo"]
SHARES = [0.5, 0.3, 0.2]
VARIABLE = "BITLDP_TEST_RELEASE_KEY"
TEXT = "5eed" * 16


def people() -> pa.Table:
    """Return records whose ids are in no order."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "id": rng.permutation(ROWS),
            "height": np.clip(rng.normal(170.0, 8.0, ROWS), 120.0, 220.0),
            "city": rng.choice(CITIES, ROWS, p=SHARES),
            "age": rng.integers(18, 90, ROWS),
            "survey": rng.choice(["a", "b"], ROWS),
        }
    )


def constant(rows: int) -> pa.Table:
    """Return records that are all the same but for their ids."""
    same = {"height": [170.0], "city": ["Rome"], "age": [40], "survey": ["a"]}
    return pa.table({"id": np.arange(rows), **{name: value * rows for name, value in same.items()}})


def plan() -> TablePlan:
    """Return a plan of numbers, of categories and of numbers on points, with two columns kept."""
    return TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=2.0, interval=(120.0, 220.0)), "height"),
            Column(bitldp.GRR(3, epsilon=2.0), "city", categories=CITIES),
            Column(bitldp.GRR(10, epsilon=2.0), "age", interval=(0.0, 99.0), output="codes"),
        ],
        keep=["id", "survey"],
    )


def ordered(table: pa.Table) -> pa.Table:
    """Return the released rows by id, of plain types."""
    found = table.replace_schema_metadata(None).select(["height", "city", "age", "id", "survey"])
    types = [pa.float64(), pa.string(), pa.int64(), pa.int64(), pa.string()]
    return (
        found.cast(pa.schema(list(zip(found.column_names, types, strict=True))))
        .sort_by("id")
        .combine_chunks()
    )


class Engine(NamedTuple):
    """An engine as a user calls it: `released` of a table, and `checked`, which counts its ids."""

    released: Callable[[TableRelease, pa.Table], pa.Table]
    checked: Callable[[TableRelease, pa.Table], int]


PARTITION = 50_000


def cut(table: pa.Table) -> list[pa.Table]:
    """Return partitions of a table."""
    return [table.slice(start, PARTITION) for start in range(0, table.num_rows, PARTITION)]


def plain(frame: Any) -> pa.Table:
    """Return a pandas frame as a table."""
    return pa.Table.from_pandas(frame, preserve_index=False)


def on_pandas() -> Engine:
    """Return frames of pandas, in partitions."""
    import pandas

    def released(release: TableRelease, table: pa.Table) -> pa.Table:
        return plain(pandas.concat([release(part.to_pandas()) for part in cut(table)]))

    return Engine(released, lambda release, table: release.check_ids(part.to_pandas() for part in cut(table)))


def on_polars(kind: Any) -> Engine:
    """Return lazy frames of polars, collected in memory or streamed."""
    import polars

    def released(release: TableRelease, table: pa.Table) -> pa.Table:
        frame = polars.from_arrow(table).lazy()
        schema = release.polars_schema(frame.collect_schema())
        return (
            frame.map_batches(release.polars, schema=schema, streamable=True).collect(engine=kind).to_arrow()
        )

    def checked(release: TableRelease, table: pa.Table) -> int:
        ids = polars.from_arrow(table).lazy().select("id")
        seen = ids.map_batches(release.ids, schema={"ids": polars.Binary}, streamable=True)
        return release.check_ids(seen.collect(engine=kind)["ids"])

    return Engine(released, checked)


def on_dask() -> Engine:
    """Return frames of Dask, on the cluster of its client."""
    import dask.dataframe

    def frame(table: pa.Table) -> Any:
        return dask.dataframe.from_pandas(table.to_pandas(), npartitions=4)

    def released(release: TableRelease, table: pa.Table) -> pa.Table:
        source = frame(table)
        return plain(source.map_partitions(release.pandas, meta=release.meta(source._meta)).compute())

    def checked(release: TableRelease, table: pa.Table) -> int:
        seen = frame(table)[["id"]].map_partitions(release.ids, meta={"ids": object})
        return release.check_ids(seen["ids"].compute())

    return Engine(released, checked)


def on_duckdb() -> Engine:
    """Return tables of DuckDB."""
    import duckdb

    def registered(table: pa.Table) -> Any:
        connection = duckdb.connect()
        connection.register("people", table)
        return connection

    def checked(release: TableRelease, table: pa.Table) -> int:
        return release.check_ids(registered(table).table("people").project("id").to_arrow_reader())

    return Engine(
        lambda release, table: release.duckdb(registered(table), "people").to_arrow_table(), checked
    )


def on_ray() -> Engine:
    """Return data sets of Ray, which runs."""
    import ray
    import ray.data

    def released(release: TableRelease, table: pa.Table) -> pa.Table:
        data = ray.data.from_arrow(cut(table)).map_batches(release, batch_format="pyarrow")
        blocks = ray.get(data.to_arrow_refs())
        return pa.concat_tables([block.replace_schema_metadata(None) for block in blocks if block.num_rows])

    def checked(release: TableRelease, table: pa.Table) -> int:
        seen = ray.data.from_arrow(cut(table)).map_batches(release.ids, batch_format="pyarrow")
        return release.check_ids(row["ids"] for row in seen.take_all())

    return Engine(released, checked)


def on_spark(session: Any) -> Engine:
    """Return frames of a session of Spark."""

    def released(release: TableRelease, table: pa.Table) -> pa.Table:
        frame = session.createDataFrame(table.to_pandas())
        return plain(frame.mapInArrow(release.batches, release.ddl(frame.schema)).toPandas())

    def checked(release: TableRelease, table: pa.Table) -> int:
        ids = session.createDataFrame(table.select(["id"]).to_pandas())
        return release.check_ids(
            row.ids for row in ids.mapInArrow(release.id_batches, "ids binary").collect()
        )

    return Engine(released, checked)
