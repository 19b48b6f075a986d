"""Micro-batches: late and repeated records have the report that they had, or are refused."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import DataError, PlanError, ReleaseKey
from support.plans import people, plan

KEY = ReleaseKey(b"k" * 32)
TABLE = people(60)


def release(**changed: Any) -> Any:
    return plan().release(KEY, **{"record": "id", **changed})


def test_late_and_repeated_records_have_the_report_that_they_had(tmp_path: Path) -> None:
    whole, stream = release()(TABLE), release().stream(tmp_path / "seen")
    order = np.random.default_rng(0).permutation(60)
    for places in (order[:20], order[10:30], order[25:], order[:5], order[:0]):  # some again, some late
        assert stream(TABLE.take(places)).equals(whole.take(places))
    assert len(stream) == 60
    assert release().stream(tmp_path / "seen")(TABLE.to_pandas()).shape == (60, whole.num_columns)


@pytest.mark.parametrize("name", ["height", "city", "age", "drink"])
def test_another_value_is_refused_and_nothing_is_kept_in_mind(tmp_path: Path, name: str) -> None:
    path = tmp_path / "seen"
    release().stream(path)(TABLE.slice(0, 30))
    place = TABLE.column_names.index(name)
    values = TABLE.column(name).to_pylist()
    other = {"height": 150.5, "city": "Oslo" if values[29] != "Oslo" else "Rome", "age": 1, "drink": None}
    values[29] = ("tea" if values[29] is None else None) if name == "drink" else other[name]
    changed = TABLE.set_column(place, name, pa.array(values)).slice(20, 40)
    stream = release().stream(path)
    with pytest.raises(
        DataError, match="row 10, column 'id': an id that was released with other values"
    ) as caught:
        stream(changed)
    assert "Rome" not in str(caught.value)
    assert len(stream) == 30
    if name == "age":  # of which the report knows the nearest of 11 points
        values[29] = TABLE.column(name).to_pylist()[29]
    kept = TABLE.set_column(TABLE.column_names.index("survey"), "survey", pa.array(["b"] * 60))
    assert stream(kept.slice(20, 40)).num_rows == 40  # what is kept has no report


def test_a_batch_that_is_refused_leaves_no_trace(tmp_path: Path) -> None:
    stream = release().stream(tmp_path / "seen")
    wrong = TABLE.set_column(TABLE.column_names.index("city"), "city", pa.array(["Berne"] * 60))
    for bad in (wrong, pa.concat_tables([TABLE, TABLE.slice(3, 1)])):
        with pytest.raises(DataError):
            stream(bad)
    assert len(stream) == 0


def test_the_file_is_its_owners_and_shows_no_id_or_value(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    release(record="name").stream(path)(TABLE)
    assert path.stat().st_mode & 0o077 == 0
    data = path.read_bytes()
    assert b"secret" not in data
    assert b"Rome" not in data
    assert b"k" * 32 not in data


def test_another_file_or_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    release().stream(path)(TABLE.slice(0, 5))
    with pytest.raises(PlanError, match="holds the records of another release"):
        release(snapshot="2026-12").stream(path)(TABLE.slice(0, 5))
    path.write_text("something else " * 100)
    with pytest.raises(PlanError, match="is not a store of records"):
        release().stream(path)(TABLE.slice(0, 5))
    with pytest.raises(PlanError, match=r"give plan\.release a key"):
        plan().release().stream(path)


@pytest.mark.parametrize(("name", "kind"), [("id", pa.string()), ("height", pa.float32())])
def test_types_outlast_the_process(tmp_path: Path, name: str, kind: pa.DataType) -> None:
    """An id that is a text tomorrow would be another record, with a report that nobody charged."""
    release().stream(tmp_path / "seen")(TABLE.slice(0, 30))
    other = TABLE.set_column(TABLE.column_names.index(name), name, TABLE.column(name).cast(kind))
    again = release().stream(tmp_path / "seen")
    with pytest.raises(PlanError, match=f"column '{name}': holds .*, where the first batch held"):
        again(other)
    assert len(again) == 30
    assert release().stream(tmp_path / "seen")(TABLE).num_rows == 60


def test_a_streaming_query_is_refused_without_such_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark names the query in a property of its tasks and of the driver; tests/engines has the real one."""

    class Context:
        def __init__(self, query: str | None) -> None:
            self.query = query

        def getLocalProperty(self, name: str) -> str | None:  # noqa: N802  # Spark's own name
            return self.query if name == "sql.streaming.queryId" else None

    batch = TABLE.to_batches()[0]
    doors = (release(), release().pandas, lambda frame: list(release().batches([frame])))
    seen = release().stream(tmp_path / "seen")
    nowhere, plain, query = None, Context(None), Context("a query")
    for task, driver in (
        (nowhere, nowhere),
        (nowhere, plain),
        (plain, nowhere),
        (nowhere, query),
        (query, nowhere),
    ):
        spark = types.ModuleType("pyspark")
        spark.TaskContext = types.SimpleNamespace(get=lambda task=task: task)  # type: ignore[attr-defined]
        spark.SparkContext = types.SimpleNamespace(_active_spark_context=driver)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "pyspark", spark)
        for door in doors:
            if query not in (task, driver):
                door(batch)
                continue
            with pytest.raises(PlanError, match=r"use release\.stream\(FILE\) in foreachBatch"):
                door(batch)
        if task is query:  # where each task might have a file of its own
            with pytest.raises(PlanError, match=r"use release\.stream\(FILE\) in foreachBatch"):
                seen(batch)
        else:
            seen(batch)
