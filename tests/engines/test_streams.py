"""Streams: a record that comes late or again has the report that it had, and nobody releases without looking.

Spark's structured streaming as it is, and whatever gives a table of another engine in micro-batches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
import pyarrow.parquet as pq
from bitldp.ledger import Ledger
from bitldp.tables import DataError, PlanError, ReleaseKey, TableRelease
from support.engines import VARIABLE, ordered, plain, plan

pytestmark = pytest.mark.engine


def changed(table: pa.Table, row: int, height: float = 150.25) -> pa.Table:
    """Return the table with another height in a row."""
    heights = table.column("height").to_pylist()
    heights[row] = height
    return table.set_column(1, "height", pa.array(heights))


class Query:
    """Streaming queries over files that came one after another: a micro-batch each."""

    def __init__(self, spark: Any, folder: Path, *tables: pa.Table) -> None:
        self.spark, self.folder = spark, folder
        (folder / "in").mkdir()
        for number, table in enumerate(tables):
            path = folder / "in" / f"{number}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + number,) * 2)  # Spark takes the oldest first

    def frame(self) -> Any:
        schema = self.spark.read.parquet(str(self.folder / "in")).schema
        files = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return files.parquet(str(self.folder / "in"))

    def run(self, each: Callable[[Any, int], Any]) -> None:
        """Call a function with each micro-batch, from where the last run stopped."""
        writer = self.frame().writeStream.foreachBatch(each).trigger(availableNow=True)
        writer.option("checkpointLocation", str(self.folder / "checkpoint")).start().awaitTermination()


def test_spark_gives_late_and_repeated_records_the_report_that_they_had(
    spark: Any, table: pa.Table, release: TableRelease, tmp_path: Path
) -> None:
    """Over a crash after a batch was looked at, and under one charge; another value is refused."""
    some = table.slice(0, 60)
    query = Query(spark, tmp_path, some.slice(0, 40), some.slice(30, 30), changed(some, 5).slice(5, 5))
    seen, written = release.stream(tmp_path / "seen.sqlite"), []
    with Ledger.open(tmp_path / "people.ledger", budget=10.0, create=True):
        pass

    def each(rows: Any, number: int) -> None:
        with Ledger.open(tmp_path / "people.ledger") as ledger:
            release.charge(ledger)
        found = seen(rows.toArrow())
        if number == 1 and not (tmp_path / "crashed").exists():
            (tmp_path / "crashed").touch()
            raise RuntimeError("crashed before it was written")
        written.append((number, found))

    with pytest.raises(Exception, match="crashed before it was written"):
        query.run(each)
    assert len(seen) == 60
    with pytest.raises(Exception, match="an id that was released with other values") as caught:
        query.run(each)
    assert "150.25" not in str(caught.value)
    assert [number for number, _ in written] == [0, 1]
    whole = ordered(release(some))
    for start, (_, found) in zip((0, 30), written, strict=True):
        ids = some.slice(start, 40 if start == 0 else 30).column("id")
        mask = pa.compute.is_in(whole.column("id"), ids.combine_chunks())
        assert ordered(found).equals(whole.filter(mask).combine_chunks())
    assert len(seen) == 60
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        assert len(ledger.entries) == 1
        assert ledger.spent == pytest.approx(plan().guarantee.record)


REFUSED = r"use release\.stream\(FILE\) in foreachBatch"


def test_spark_releases_no_stream_without_a_file(
    spark: Any, table: pa.Table, release: TableRelease, tmp_path: Path
) -> None:
    """Neither in tasks, by whichever method, nor in the query's function; nor by a file of each task."""
    query, path = Query(spark, tmp_path, table.slice(0, 20)), tmp_path / "seen.sqlite"
    frame = query.frame()
    said: list[str] = []
    ddl = release.ddl(frame.schema)

    def tried(parts: Any) -> Any:
        """Yield what ways to release say in a task, which an error would start four times."""
        import pandas

        ways = (release, release.pandas, release.stream(path))
        for part in parts:
            for way in ways:
                try:
                    yield pandas.DataFrame({"said": [f"{len(way(part))} rows"]})
                except PlanError as error:
                    yield pandas.DataFrame({"said": [str(error)]})

    def each(rows: Any, number: int) -> None:
        with pytest.raises(PlanError, match=REFUSED):
            release(rows.toPandas())
        said.extend(row.said for row in rows.mapInPandas(tried, "said string").collect())

    query.run(each)
    assert len(said) == 3
    assert all(re.search(REFUSED, text) for text in said)
    asked = frame.mapInArrow(release.batches, ddl).writeStream.format("noop").trigger(availableNow=True)
    with pytest.raises(Exception, match=REFUSED):
        asked.start().awaitTermination()
    assert len(release.stream(path)) == 0


def test_spark_gives_each_value_of_a_record_its_report_up_to_a_cap(
    spark: Any, table: pa.Table, tmp_path: Path
) -> None:
    """Late, replayed and changed rows, over a crash after a batch was sent, at one charge for all."""
    key = ReleaseKey.from_env(VARIABLE)
    own: dict[str, Any] = {"record": "id", "memoize": True, "most": 2, "store": tmp_path / "store"}
    memoized = plan().release(key, **own)
    first = table.slice(0, 60)
    second, third = changed(first, 5), changed(first, 5, 160.5)
    late = pa.concat_tables([second.slice(5, 5), first.slice(5, 1)])  # both values of a record in a batch
    query = Query(spark, tmp_path, first, second.slice(0, 30), late, third.slice(5, 5))
    written: dict[int, pa.Table] = {}
    with Ledger.open(tmp_path / "people.ledger", budget=12.0, create=True):
        pass

    def each(rows: Any, number: int) -> None:
        with Ledger.open(tmp_path / "people.ledger") as ledger:
            memoized.charge(ledger)
        found = memoized.stream()(rows.toArrow())
        if number == 1 and not (tmp_path / "crashed").exists():
            (tmp_path / "crashed").touch()
            raise RuntimeError("crashed before it was written")
        written[number] = found

    with pytest.raises(Exception, match="crashed before it was written"):
        query.run(each)
    query.run(each)
    assert sorted(written) == [0, 1, 2, 3]
    identity = first.column("id")[5].as_py()
    reports = [
        [row["height"] for row in written[number].to_pylist() if row["id"] == identity] for number in range(4)
    ]
    (one,), (two,), both, (beyond,) = reports
    assert one != two
    assert set(both) == {one, two}
    assert beyond == two  # the third value: the last report that was new
    before = {row["id"]: row for row in written[0].to_pylist()}
    for number in range(1, 4):
        for row in written[number].to_pylist():
            if row["id"] != identity:
                assert row == before[row["id"]]
            else:  # of which one column changed
                assert {**row, "height": 0} == {**before[identity], "height": 0}
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        assert len(ledger.entries) == 1
        assert ledger.spent == pytest.approx(2 * plan().guarantee.record)


def polars_batches(table: pa.Table, size: int) -> Iterator[Any]:
    polars = pytest.importorskip("polars", reason='needs pip install "bitldp[polars]"')
    return iter(polars.from_arrow(table).lazy().collect_batches(chunk_size=size, maintain_order=True))


def dask_batches(table: pa.Table, size: int) -> Iterator[Any]:
    dataframe = pytest.importorskip("dask.dataframe", reason='needs pip install "bitldp[dask]"')
    frame = dataframe.from_pandas(table.to_pandas(), chunksize=size)
    return (part.compute(scheduler="synchronous") for part in frame.partitions)


def duckdb_batches(table: pa.Table, size: int) -> Iterator[Any]:
    duckdb = pytest.importorskip("duckdb", reason='needs pip install "bitldp[duckdb]"')
    connection = duckdb.connect()
    connection.register("people", table)
    return iter(connection.table("people").to_arrow_reader(size))


def ray_batches(table: pa.Table, size: int) -> Iterator[Any]:
    ray = pytest.importorskip("ray.data", reason='needs pip install "bitldp[ray]"')
    return iter(ray.from_arrow(table).iter_batches(batch_size=size, batch_format="pyarrow"))


def as_table(released: Any) -> pa.Table:
    if isinstance(released, pa.RecordBatch):
        return pa.Table.from_batches([released])
    if isinstance(released, pa.Table):
        return released
    arrow: pa.Table = released.to_arrow() if hasattr(released, "to_arrow") else plain(released)
    return arrow


@pytest.mark.parametrize("name", ["polars", "dask", "duckdb", "ray"])
def test_batches_of_another_engine(
    request: pytest.FixtureRequest, name: str, table: pa.Table, release: TableRelease, tmp_path: Path
) -> None:
    """A thousand records come again in a later batch; then one comes with another value."""
    if name == "ray":
        request.getfixturevalue("ray")
    batches = {"polars": polars_batches, "dask": dask_batches, "duckdb": duckdb_batches, "ray": ray_batches}
    seen = release.stream(tmp_path / "seen.sqlite")
    some = table.slice(0, 6_000)
    again = pa.concat_tables([some, some.slice(0, 1_000)])
    found = [as_table(seen(batch)) for batch in batches[name](again, 2_048)]
    assert len(found) > 2
    bare = [each.replace_schema_metadata(None) for each in found]
    whole = release(some)
    assert ordered(pa.concat_tables(bare, promote_options="permissive")).equals(
        ordered(pa.concat_tables([whole, whole.slice(0, 1_000)]))
    )
    assert len(seen) == 6_000
    *same, last = batches[name](changed(some, 5_999), 2_048)
    for batch in same:
        seen(batch)
    with pytest.raises(DataError, match="an id that was released with other values"):
        seen(last)
    assert len(seen) == 6_000
