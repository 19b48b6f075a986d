"""Releases and counts of streams: datasets, readers, relations of DuckDB, and tables of many files."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from bitldp.tables import Column, DataError, PlanError, ReleasedTable, ReleaseKey, TablePlan
from bitldp.tables.dataset import dataset_of, files_of, key_types
from bitldp.tables.ids import FirstIds
from bitldp.tables.streamed import rows_of
from support.plans import people, plan

KEY = ReleaseKey(b"k" * 32)
PEOPLE = people(1_000)
WHOLE = plan().release(KEY, record="id")(PEOPLE)


def release() -> Any:
    return plan().release(KEY, record="id")


def ordered(table: Any) -> list[dict[str, Any]]:
    """Return released rows in an order of their own."""
    if not isinstance(table, pa.Table):
        table = table.read_all() if isinstance(table, pa.RecordBatchReader) else table.to_arrow_table()
    names = WHOLE.column_names
    rows: list[dict[str, Any]] = (
        table.select(names).sort_by([(name, "ascending") for name in names]).to_pylist()
    )
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("data") / "people"
    pa.dataset.write_dataset(
        PEOPLE, path, format="parquet", partitioning=["survey"], partitioning_flavor="hive"
    )
    return str(path)


class Streams:
    """An object of another library, which Arrow can stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.to_reader(100).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "source",
    [
        lambda folder: dataset_of([folder]),
        lambda folder: dataset_of([folder]).scanner(),
        lambda folder: PEOPLE.to_reader(128),
        lambda folder: Streams(PEOPLE),
    ],
    ids=["dataset", "scanner", "reader", "Arrow C stream"],
)
def test_a_stream_is_released_as_a_stream_of_the_same_rows(source: Callable[[str], Any], folder: str) -> None:
    made = release()(source(folder))
    assert isinstance(made, pa.RecordBatchReader)
    assert made.schema.metadata == WHOLE.schema.metadata
    assert ordered(made) == ordered(WHOLE)


def test_a_stream_is_counted_as_a_table(folder: str, tmp_path: Path) -> None:
    pa.dataset.write_dataset(
        release()(dataset_of([folder])), tmp_path / "out", format="parquet", basename_template="p{i}.parquet"
    )
    dataset = pa.dataset.dataset(tmp_path / "out")
    whole = plan().aggregate(["survey"]).update(WHOLE)
    for source in (dataset, WHOLE.to_reader(77), Streams(WHOLE), release()(dataset_of([folder]))):
        assert plan().aggregate(["survey"]).update(source) == whole
    twice = plan().aggregate().update(dataset, source="a").update(WHOLE)
    assert len(twice) == 2_000
    with pytest.raises(PlanError, match="'a' was counted before"):
        twice.update(dataset, source="a")
    assert len(twice.update(dataset)) == 3_000


def test_a_stream_that_is_refused_is_not_counted_at_all() -> None:
    wrong = WHOLE.set_column(0, "height", pa.array([*WHOLE.column("height").to_pylist()[:-1], 1.5]))
    counted = plan().aggregate().update(WHOLE)
    with pytest.raises(DataError, match="row 1000, column 'height'"):
        counted.update(wrong.to_reader(100))
    assert len(counted) == 1_000
    other = WHOLE.replace_schema_metadata({"bitldp.plan": "another"})
    with pytest.raises(PlanError, match="another plan"):
        counted.update(other.to_reader(100))
    with pytest.raises(PlanError, match="column 'city': the table has no such column"):
        counted.update(WHOLE.drop_columns(["city"]).to_reader())


def test_questions_are_asked_of_paths_and_datasets(folder: str, tmp_path: Path) -> None:
    for number in range(3):
        pa.parquet.write_table(WHOLE.slice(number * 400, 400), tmp_path / f"{number}.parquet")
    expected = ReleasedTable(plan(), WHOLE).mean("height", by="survey").table
    paths = sorted(tmp_path.glob("*.parquet"))
    for source in (str(tmp_path), f"{tmp_path}/[0-2].parquet", paths, dataset_of([str(tmp_path)])):
        released = ReleasedTable(plan(), source)
        assert released.mean("height", by="survey").table.equals(expected)
        assert released.mean("height", by="survey").table.equals(expected)  # read once a question
    with pytest.raises(PlanError, match="a reader can be read once"):
        ReleasedTable(plan(), WHOLE.to_reader()).mean("height")


def test_what_is_wrong_in_a_stream_ends_it_without_a_value(tmp_path: Path) -> None:
    cities = PEOPLE.column("city").to_pylist()
    place = PEOPLE.column_names.index("city")
    wrong = PEOPLE.set_column(place, "city", pa.array([*cities[:-1], "Berne"]))
    reader = release()(wrong.to_reader(100))
    assert sum(reader.read_next_batch().num_rows for _ in range(9)) == 900
    with pytest.raises(DataError, match="row 1000, column 'city': not one of the categories") as caught:
        reader.read_next_batch()
    assert "Berne" not in str(caught.value)
    text = tmp_path / "people.csv"
    text.write_text("id,height\n" + "".join(f"{i},170\n" for i in range(300_000)) + "7,secret\n")
    heights = TablePlan([Column(bitldp.Duchi(epsilon=1.0, interval=(0.0, 300.0)), "height")])
    with pytest.raises(DataError, match="data are damaged, or could not be read") as caught:
        heights.release()(pa.dataset.dataset(text, format="csv")).read_all()
    assert caught.value.__cause__ is None
    assert "secret" not in str(caught.value)
    with pytest.raises(PlanError, match="column 'city': the table has no such column"):
        release()(PEOPLE.drop_columns(["city"]).to_reader())


def test_an_id_that_comes_again_is_refused_before_its_second_report() -> None:
    again = pa.concat_tables([PEOPLE, PEOPLE.slice(5, 1)])
    reader = release()(again.to_reader(100))
    assert sum(reader.read_next_batch().num_rows for _ in range(10)) == 1_000
    with pytest.raises(DataError, match="column 'id': an id that came up before"):
        reader.read_next_batch()


@pytest.mark.parametrize("seed", range(20))
def test_ids_that_came_up_before_are_found_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = rng.permutation(3_000)[:400] if seed % 2 else np.arange(400) * (seed % 3 + 1)
    if seed % 5 == 0:
        ids[300:400] = ids[:100][::-1]
    parts = np.array_split(ids.astype(np.uint64), 9)  # each id once in a part
    found, seen = FirstIds("id"), set[int]()
    for part in parts[:: -1 if seed % 4 == 0 else 1]:
        if seen & set(part.tolist()):
            with pytest.raises(DataError):
                found.add(part)
            return
        found.add(part)
        seen |= set(part.tolist())
        assert len(found) == len(seen)
    assert seed % 5


def test_a_stream_is_released_in_flat_memory() -> None:
    """What is held does not grow with the rows: 24 batches of a reader as eight of them."""
    plan = TablePlan([Column(bitldp.Duchi(epsilon=1.0, interval=(0.0, 1.0)), "x")])
    batch = pa.record_batch({"x": np.random.default_rng(1).random(20_000)})
    peaks = []
    for batches in (8, 24):
        before = pa.total_allocated_bytes()
        reader = plan.release()(
            pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(batches)))
        )
        tracemalloc.start()
        held = max(pa.total_allocated_bytes() - before for _ in reader)
        peaks.append(held + tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 1e5, peaks


# -- files


def test_folders_say_columns(folder: str) -> None:
    files = files_of([folder])
    assert [file.keys for file in files] == [{"survey": "a"}, {"survey": "b"}]
    assert key_types(files) == {"survey": pa.string()}
    assert [file.path for file in files_of([f"{folder}/*/*.parquet"])] == [file.path for file in files]
    assert len(files_of([f"{folder}/survey=[!a]/**"])) == 1
    assert files_of([files[0].path])[0].keys == {}
    assert [file.keys for file in files_of([file.path for file in reversed(files)])] == [
        f.keys for f in files
    ]


def test_keys_are_read_as_engines_write_them(tmp_path: Path) -> None:
    days = {"1": "x%2Fy", "2": "__HIVE_DEFAULT_PARTITION__"}
    for day, city in days.items():
        path = tmp_path / f"day={day}" / f"city={city}"
        path.mkdir(parents=True)
        pa.parquet.write_table(pa.table({"n": [int(day)]}), path / "part.parquet")
        (path / "_SUCCESS").touch()
        (path / ".hidden.parquet").write_text("no file")
    files = files_of([str(tmp_path)])
    assert key_types(files) == {"day": pa.int64(), "city": pa.string()}
    expected = {"n": [1, 2], "day": [1, 2], "city": ["x/y", None]}
    assert dataset_of([str(tmp_path)]).to_table().to_pydict() == expected


# -- DuckDB


@pytest.fixture(scope="module")
def connection() -> Any:
    duckdb = pytest.importorskip("duckdb", reason='needs pip install "bitldp[duckdb]"')
    made = duckdb.connect()
    made.register("people", PEOPLE)
    made.execute('CREATE SCHEMA s; CREATE TABLE s.people AS FROM people; CREATE TABLE "a.b" AS FROM people')
    return made


@pytest.mark.engine
@pytest.mark.parametrize(
    "table",
    ["people", "s.people", "a.b", "SELECT *, 1 AS more FROM s.people", "WITH p AS (FROM people) FROM p"],
)
def test_tables_and_queries_of_duckdb_are_released(connection: Any, table: str) -> None:
    assert ordered(release().duckdb(connection, table)) == ordered(WHOLE)


@pytest.mark.engine
def test_relations_of_duckdb_are_streams(connection: Any) -> None:
    relation = connection.sql("SELECT *, 1 AS more FROM s.people")
    assert ordered(release()(relation)) == ordered(release().duckdb(connection, relation)) == ordered(WHOLE)
    made = connection.from_arrow(WHOLE)
    assert plan().aggregate().update(made) == plan().aggregate().update(WHOLE)
    shares = ReleasedTable(plan(), made).share("city").table
    assert shares.equals(ReleasedTable(plan(), WHOLE).share("city").table)
    with pytest.raises(PlanError, match="column 'city': the table has no such column"):
        release()(connection.sql("SELECT * EXCLUDE (city) FROM people"))


def test_a_file_that_is_asked_by_its_path_is_held_a_row_group_at_a_time(tmp_path: Path) -> None:
    """16 row groups of 5,000 rows, by whoever is slower than Arrow reads: no more than 4 of them are held."""
    own = TablePlan(plan().columns)
    released = own.release()(people(5_000))
    with pa.parquet.ParquetWriter(tmp_path / "released.parquet", released.schema) as writer:
        for _ in range(16):
            writer.write_table(released)
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for table in rows_of(tmp_path / "released.parquet", released.column_names, own.digest):
        time.sleep(0.003)
        most, rows = max(most, pa.total_allocated_bytes() - before), rows + table.num_rows
    assert rows == 16 * 5_000
    assert most <= 4 * released.nbytes
