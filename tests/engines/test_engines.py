"""One plan on every engine: the same released rows, however often and wherever they are evaluated.

They run where the engine is installed (``make test-engines`` installs all of them), and skip elsewhere. What
must hold has letters: see `test_hazards`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import Aggregate, TableRelease
from support.engines import ROWS, cut, ordered, plan

pytestmark = pytest.mark.engine


def near_the_truth(table: pa.Table, released: pa.Table) -> None:
    """Each answer within 5 standard errors: the key is fixed, so this cannot flake."""
    for row in plan().aggregate().update(released).estimate().to_pylist():
        values = np.asarray(table.column(row["column"]).to_pylist())
        if row["what"] == "share":
            truth = np.mean(values == row["category"])
        else:
            truth = np.mean(np.rint(values / 11.0) * 11.0) if row["column"] == "age" else np.mean(values)
        assert abs(row["estimate"] - truth) < 5.0 * row["stderr"], row


def everything(
    table: pa.Table, expected: pa.Table, evaluate: Callable[[], pa.Table], again: Callable[[], pa.Table]
) -> None:
    """Two evaluations and a repartition give one release, the same as elsewhere, near the truth."""
    first = evaluate()
    assert ordered(first).equals(expected)
    assert ordered(evaluate()).equals(expected)
    assert ordered(again()).equals(expected)
    near_the_truth(table, first)


# -- pandas and polars


def test_pandas(table: pa.Table, release: TableRelease, expected: pa.Table) -> None:
    pandas = pytest.importorskip("pandas")
    frame = table.to_pandas()
    pieces = [frame.iloc[start : start + 70_000] for start in range(0, ROWS, 70_000)]
    everything(
        table,
        expected,
        lambda: pa.Table.from_pandas(release(frame), preserve_index=False),
        lambda: pa.Table.from_pandas(pandas.concat(map(release, reversed(pieces))), preserve_index=False),
    )


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_polars(table: pa.Table, release: TableRelease, expected: pa.Table, engine: Any) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(table).lazy()
    schema = release.polars_schema(frame.collect_schema())
    lazy = frame.map_batches(release.polars, schema=schema, streamable=True)

    def half(bit: int) -> Any:
        return lazy.filter(polars.col("id") % 2 == bit).collect(engine=engine)

    everything(
        table,
        expected,
        lambda: lazy.collect(engine=engine).to_arrow(),
        lambda: polars.concat([half(0), half(1)]).to_arrow(),
    )
    filtered = lazy.filter(polars.col("city") == "Rome").collect(engine=engine)
    assert set(filtered["city"]) == {"Rome"}
    assert len(filtered) == sum(city == "Rome" for city in expected.column("city").to_pylist())


# -- Dask


def test_dask(dask: Any, table: pa.Table, release: TableRelease, expected: pa.Table) -> None:
    frame = dask.from_pandas(table.to_pandas(), npartitions=4)

    def released(source: Any) -> Any:
        return source.map_partitions(release.pandas, meta=release.meta(source._meta))

    everything(
        table,
        expected,
        lambda: pa.Table.from_pandas(released(frame).compute(), preserve_index=False),
        lambda: pa.Table.from_pandas(
            released(frame.repartition(npartitions=7)).compute(), preserve_index=False
        ),
    )
    found = released(frame)
    rome = found[found.city == "Rome"].compute().city
    assert set(rome) == {"Rome"}
    assert len(rome) == sum(city == "Rome" for city in expected.column("city").to_pylist())


def test_dask_tries_a_lost_task_again(
    table: pa.Table, release: TableRelease, expected: pa.Table, tmp_path: Any
) -> None:
    """A worker that dies when its partition is released: another one gives the same rows."""
    dataframe = pytest.importorskip("dask.dataframe", reason='needs pip install "bitldp[dask]"')
    distributed = pytest.importorskip("distributed")
    marker = tmp_path / "tried"
    frame = dataframe.from_pandas(table.to_pandas(), npartitions=3)

    def once(part: Any) -> Any:
        found = release.pandas(part)
        if len(part) and not marker.exists():
            marker.write_text("")
            os._exit(1)
        return found

    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:  # noqa: SIM117
        with distributed.Client(cluster):
            found = frame.map_partitions(once, meta=release.meta(frame._meta)).compute()
    assert marker.exists()
    assert ordered(pa.Table.from_pandas(found, preserve_index=False)).equals(expected)


# -- DuckDB


def test_duckdb(table: pa.Table, release: TableRelease, expected: pa.Table) -> None:
    duckdb = pytest.importorskip("duckdb", reason='needs pip install "bitldp[duckdb]"')
    connection = duckdb.connect()
    connection.register("people", table)

    def rows(relation: Any) -> pa.Table:
        return relation.to_arrow_table()

    released = release.duckdb(connection, "people")
    everything(
        table,
        expected,
        lambda: rows(released),
        lambda: rows(release.duckdb(connection, "people").order("id")),
    )
    assert {row[0] for row in released.filter("city = 'Rome'").project("city").fetchall()} == {"Rome"}


# -- Ray


def test_ray(ray: Any, table: pa.Table, release: TableRelease, expected: pa.Table) -> None:
    import ray.data

    data = ray.data.from_arrow(cut(table))

    def rows(source: Any) -> pa.Table:
        blocks = ray.get(source.map_batches(release, batch_format="pyarrow").to_arrow_refs())
        return pa.concat_tables([block.replace_schema_metadata(None) for block in blocks if block.num_rows])

    everything(table, expected, lambda: rows(data), lambda: rows(data.repartition(3)))


def test_ray_tries_a_lost_task_again(
    ray: Any, table: pa.Table, release: TableRelease, expected: pa.Table, tmp_path: Any
) -> None:
    """A worker that dies when its batch is released: another gives the same rows, also behind a filter."""
    import ray.data

    marker = tmp_path / "tried"
    data = ray.data.from_arrow(cut(table))

    def once(batch: pa.Table) -> pa.Table:
        found = release(batch)
        if batch.num_rows and not marker.exists():
            marker.write_text("")
            os._exit(1)
        return found

    released = data.map_batches(once, batch_format="pyarrow")
    rows = pa.concat_tables(
        [block.replace_schema_metadata(None) for block in ray.get(released.to_arrow_refs()) if block.num_rows]
    )
    assert marker.exists()
    assert ordered(rows).equals(expected)
    rome = data.map_batches(release, batch_format="pyarrow").filter(lambda row: row["city"] == "Rome")
    assert rome.count() == sum(city == "Rome" for city in expected.column("city").to_pylist())
    assert {row["city"] for row in rome.take(100)} == {"Rome"}


def test_ray_counts_on_its_workers(ray: Any, table: pa.Table, release: TableRelease) -> None:
    import ray.data

    data = ray.data.from_arrow(cut(table))

    chosen = plan()  # a worker finds no test's modules

    def counted(batch: pa.Table) -> pa.Table:
        return pa.table({"counts": [chosen.aggregate().update(release(batch)).to_json()]})

    texts = [row["counts"] for row in data.map_batches(counted, batch_format="pyarrow").take_all()]
    whole = plan().aggregate()
    for text in texts:
        whole.merge(Aggregate.from_json(text, plan()))
    assert len(texts) > 1
    assert whole.estimate().equals(plan().aggregate().update(release(table)).estimate())


# -- Spark


def test_spark(spark: Any, table: pa.Table, release: TableRelease, expected: pa.Table) -> None:
    frame = spark.createDataFrame(table.to_pandas())

    def released(source: Any) -> Any:
        return source.mapInArrow(release.batches, release.ddl(source.schema))

    def rows(source: Any) -> pa.Table:
        return pa.Table.from_pandas(source.toPandas(), preserve_index=False)

    everything(
        table, expected, lambda: rows(released(frame)), lambda: rows(released(frame.repartition(5, "city")))
    )
    found = released(frame)
    rome = found.filter(found.city == "Rome").toPandas()
    assert set(rome.city) == {"Rome"}
    assert len(rome) == sum(city == "Rome" for city in expected.column("city").to_pylist())


def test_spark_tries_a_failed_task_again(
    spark: Any, table: pa.Table, release: TableRelease, expected: pa.Table, tmp_path: Any
) -> None:
    """A worker that dies after its batch left: the second attempt gives the same rows."""
    marker = tmp_path / "tried"
    source = spark.createDataFrame(table.to_pandas()).coalesce(1)

    def once(batches: Any) -> Any:
        for batch in release.batches(batches):
            yield batch
            if not marker.exists():
                marker.write_text("")
                os._exit(1)

    retried = source.mapInArrow(once, release.ddl(source.schema)).toPandas()
    assert marker.exists()
    assert ordered(pa.Table.from_pandas(retried, preserve_index=False)).equals(expected)
