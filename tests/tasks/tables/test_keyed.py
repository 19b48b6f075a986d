"""Releases with a key: the same bytes whatever evaluates them, charged once, and a key that goes nowhere."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.ledger import Ledger
from bitldp.tables import Column, DataError, PlanError, ReleaseKey, TablePlan
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.ids import SeenIds, ids_of
from support.plans import columns_of_every_mechanism, people, plan, table_for

EVERY = columns_of_every_mechanism()
TEXT = "0123456789abcdef" * 4
KEY = ReleaseKey(bytes.fromhex(TEXT))


def release(**changed: Any) -> Any:
    return plan().release(KEY, **{"record": "id", "snapshot": "2026-11", **changed})


@pytest.mark.parametrize("name", EVERY)
def test_every_mechanism_gives_the_same_bytes_whatever_the_batch(name: str) -> None:
    made = TablePlan([EVERY[name]], keep=["group"]).release(KEY, record="id")
    table = table_for(EVERY[name], 300, seed=1)
    whole = made(table)
    assert made(table).equals(whole)
    order = np.random.default_rng(0).permutation(300)
    assert made(table.take(order)).equals(whole.take(order))
    pieces = pa.Table.from_batches(list(made.batches(table.to_batches(max_chunksize=37))))
    assert pieces.equals(whole.replace_schema_metadata(None))


def test_another_key_snapshot_plan_or_id_is_another_release() -> None:
    table = people(400)
    whole = release()(table)
    others = [
        plan().release(ReleaseKey(b"k" * 32), record="id", snapshot="2026-11"),
        release(snapshot="2026-12"),
        TablePlan(plan().columns).release(KEY, record="id", snapshot="2026-11"),
        release(record="name"),
    ]
    assert len({each.id for each in (release(), *others)}) == 5
    for other in others:
        found = other(table)
        same = np.mean(
            [a == b for a, b in zip(found["city"].to_pylist(), whole["city"].to_pylist(), strict=True)]
        )
        assert (
            same < 0.55
        )  # independent reports of one record agree with .36 to .42; n = 400, 5 sigma are .12
    moved = table.set_column(table.column_names.index("id"), "id", pa.array(np.arange(400) + 400))
    assert not release()(moved).column("height").equals(whole.column("height"))


def test_columns_have_randomness_of_their_own() -> None:
    """Two columns of one mechanism and value: reports agree as independent ones do (n = 4,000, 5 sigma)."""
    grr = bitldp.GRR(2, epsilon=1.0)
    both = TablePlan([Column(grr, name, categories=["a", "b"]) for name in ("x", "y")])
    table = pa.table({"id": np.arange(4_000), "x": ["a"] * 4_000, "y": ["a"] * 4_000})
    found = both.release(KEY, record="id")(table)
    same = np.mean([a == b for a, b in zip(found["x"].to_pylist(), found["y"].to_pylist(), strict=True)])
    p = np.e / (np.e + 1)
    assert abs(same - (p * p + (1 - p) ** 2)) < 5 * 0.5 / np.sqrt(4_000)


def test_the_value_is_in_the_randomness() -> None:
    """Random bits of key and id alone would give away the difference of two values: that of their reports."""
    column = Column(bitldp.GRR(50, epsilon=2.0), "x", categories=range(50), output="codes")
    made = TablePlan([column]).release(KEY, record="id")
    n = 20_000
    ids = np.arange(n)
    one = made(pa.table({"id": ids, "x": np.full(n, 3)})).column("x").to_numpy()
    other = made(pa.table({"id": ids, "x": np.full(n, 7)})).column("x").to_numpy()
    shared = np.mean((other - one) % 50 == 4)
    p = np.exp(2.0) / (np.exp(2.0) + 49.0)
    q = (1.0 - p) / 49.0
    independent = p * p + 49 * q * q
    assert abs(shared - independent) < 5 * np.sqrt(independent / n)


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint64(), pa.string(), pa.large_string(), pa.binary()])
def test_ids_of_every_type(type_: Any) -> None:
    ids = (
        pa.array(range(100)).cast(pa.string()).cast(type_)
        if type_ != pa.int8()
        else pa.array(range(100), type_)
    )
    column = Column(bitldp.Duchi(epsilon=1.0), "x")
    table = pa.table({"id": ids, "x": np.zeros(100)})
    made = TablePlan([column]).release(KEY, record="id")
    assert made(table).equals(made(table))
    assert len(set(made(table).column("x").to_pylist())) == 2


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([1, 2, 2], "row 3, column 'id': an id that came up before"),
        (["a", "b", "a"], "row 3, column 'id': an id that came up before"),
        ([1, None, 2], "row 2, column 'id': missing value"),
    ],
)
def test_ids_that_are_missing_or_come_up_twice_are_refused(ids: Any, words: str) -> None:
    made = TablePlan([Column(bitldp.Duchi(epsilon=1.0), "x")]).release(KEY, record="id")
    with pytest.raises(DataError, match=words):
        made(pa.table({"id": ids, "x": [0.0, 0.0, 0.0]}))


def test_ids_of_other_types_are_refused() -> None:
    made = TablePlan([Column(bitldp.Duchi(epsilon=1.0), "x")]).release(KEY, record="id")
    with pytest.raises(PlanError, match="ids of records are integers, text or bytes"):
        made(pa.table({"id": [0.5, 1.5], "x": [0.0, 0.0]}))


@pytest.mark.parametrize(
    ("batches", "twice"),
    [
        ([[1, 2, 3], [4, 5]], False),
        ([[4, 5], [1, 2, 3]], False),
        ([[1, 2, 3], [3, 4]], True),
        ([[1, 5, 9], [2, 6]], False),
        ([[1, 5, 9], [2, 5]], True),
        ([[1, 2, 3], [7, 2]], True),
        ([[7, 20], [1, 2, 3], [9, 8]], False),
        ([["a", "b"], ["c"]], False),
        ([["a", "b"], ["c", "a"]], True),
    ],
)
def test_ids_are_looked_for_across_batches(batches: list[list[Any]], twice: bool) -> None:
    seen = SeenIds("id")
    for batch in batches:
        seen.add(ids_of(pa.chunked_array([batch]), "id", 1))
    if twice:
        with pytest.raises(DataError, match="an id comes up twice"):
            seen.check()
    else:
        seen.check()


def test_a_large_table_is_released_in_pieces_that_nobody_sees() -> None:
    """Rows of all pieces are there and the same as alone; a place is counted from the first row of all."""
    rows = (1 << 17) + 7
    cities = np.resize(["a", "b"], rows).astype(object)
    column = Column(bitldp.WarnerRR(epsilon=1.0), "city", categories=["a", "b"])
    made = TablePlan([column], keep=["id"]).release(KEY, record="id")
    table = pa.table({"id": np.arange(rows), "city": pa.array(cities)})
    whole = made(table)
    assert whole.column("id").to_pylist() == list(range(rows))
    assert whole.combine_chunks() == pa.concat_tables([made(table[:9]), made(table[9:])]).combine_chunks()
    assert made(table.to_batches()[0]).equals(whole.combine_chunks().to_batches()[0])
    cities[rows - 2] = "c"
    with pytest.raises(DataError, match=f"row {rows - 1}, column 'city': not one of"):
        made(table.set_column(1, "city", pa.array(cities)))
    ids = np.arange(rows)
    ids[-1] = 3
    with pytest.raises(DataError, match=f"row {rows}, column 'id': an id that came up before"):
        made(table.set_column(0, "id", pa.array(ids)))


@pytest.mark.parametrize("type_", [pa.int64(), pa.string(), pa.binary()])
@pytest.mark.parametrize("kind", ["table", "batch", "pandas", "polars"])
def test_ids_of_partitions_are_checked_together(type_: Any, kind: str) -> None:
    made = release()

    def partition(ids: Any) -> Any:
        table = pa.table({"id": pa.array(ids).cast(pa.string()).cast(type_)})
        if kind == "polars":
            return pytest.importorskip("polars", reason='needs pip install "bitldp[polars]"').from_arrow(
                table
            )
        return {"table": table, "batch": table.to_batches()[0], "pandas": table.to_pandas()}[kind]

    parts = [partition(range(5000)), partition([9000, 7000, 8001]), partition(range(5000, 6000))]
    left = [ids_in(made.ids(part)) for part in parts]
    assert [len(each) for each in left] == ([24, 32, 24] if type_ == pa.int64() else [40_008, 32, 8008])
    assert made.check_ids(left) == made.check_ids(parts) == made.check_ids([*left[:2], parts[2]]) == 6003
    for again in ([4999], [7000], [5000, 8001, 1]):
        other = partition(again)
        for these in ([*left, ids_in(made.ids(other))], [*parts, other]):
            with pytest.raises(DataError, match=r"column 'id': an id comes up twice") as caught:
                made.check_ids(these)
            assert not any(str(each) in str(caught.value) for each in again)


def ids_in(frame: Any) -> bytes:
    """Return the only value of a frame of ids, as an engine hands it back."""
    column = frame["ids"]
    assert len(column) == 1
    value = column[0]
    return value.as_py() if isinstance(value, pa.Scalar) else value


@pytest.mark.parametrize("data", [b"", b"1234567", (5).to_bytes(8, "little")])
def test_bytes_that_are_no_ids_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="are not the ids of a store"):
        release().check_ids([data])


def test_a_release_without_a_key_has_no_ids() -> None:
    with pytest.raises(PlanError, match="has no ids of records"):
        TablePlan([Column(bitldp.WarnerRR(epsilon=1.0), "x", categories=["a", "b"])]).release().check_ids(
            [pa.table({})]
        )


@pytest.mark.parametrize(("given", "worker"), [(None, 1), (3, 3)])
def test_a_worker_takes_one_thread_unless_it_is_told(
    monkeypatch: pytest.MonkeyPatch, given: int | None, worker: int
) -> None:
    monkeypatch.setenv("OWN_KEY", TEXT)
    sent = pickle.loads(
        pickle.dumps(plan().release(ReleaseKey.from_env("OWN_KEY"), record="id", threads=given))
    )
    taken: set[int | None] = set()
    real = ColumnCodec.randomize_keyed

    def spied(codec: ColumnCodec, *arguments: Any, **options: Any) -> Any:
        taken.add(options["threads"])
        return real(codec, *arguments, **options)

    monkeypatch.setattr(ColumnCodec, "randomize_keyed", spied)
    sent(people(50))
    assert taken == {worker}


def test_the_key_is_in_nothing_that_leaves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OWN_KEY", TEXT)
    path = tmp_path / "key"
    path.write_text(TEXT)
    path.chmod(0o600)
    for key in (ReleaseKey.from_env("OWN_KEY"), ReleaseKey.from_file(path)):
        made = plan().release(key, record="id")
        assert pickle.loads(pickle.dumps(made))(people(50)).equals(made(people(50)))
        for text in (repr(made), repr(key), str(pickle.dumps(made)), str(made(people(5)).schema.metadata)):
            assert TEXT[:12] not in text
            assert bytes.fromhex(TEXT)[:6].hex() not in text
        assert bytes.fromhex(TEXT) not in pickle.dumps(made)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ReleaseKey.generate())


@pytest.mark.skipif(os.name != "posix", reason="modes of files are of POSIX")
def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(ReleaseKey.new_text())
    path.chmod(0o644)
    with pytest.raises(ValueError, match="others may read it"):
        ReleaseKey.from_file(path)


@pytest.mark.parametrize("text", ["", "f00d", "zz" * 32, "ab" * 33])
def test_what_is_no_key_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("OWN_KEY", text)
    with pytest.raises(ValueError, match="64 hexadecimal digits") as caught:
        ReleaseKey.from_env("OWN_KEY")
    assert not text or text not in str(caught.value)


@pytest.mark.slow
def test_a_release_is_charged_once_whoever_asks(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    with Ledger.open(path, budget=20.0, create=True):
        pass
    processes = [
        multiprocessing.get_context("spawn").Process(target=_charge, args=(str(path),)) for _ in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    with Ledger.open(path) as ledger:
        assert len(ledger.entries) == 1
        assert ledger.spent == pytest.approx(9.0)
        assert release(snapshot="2026-12").charge(ledger) is not None
        with pytest.raises(bitldp.BudgetExceededError):
            release(snapshot="2027-01").charge(ledger)


def _charge(path: str) -> None:
    with Ledger.open(path) as ledger:
        release().charge(ledger)


def test_data_that_changed_is_another_snapshot() -> None:
    ledger = Ledger(100.0)
    release().charge(ledger, data=release().digest([b"the data"]))
    assert release().charge(ledger, data=release().digest([b"the ", b"data"])) is None
    with pytest.raises(PlanError, match="data that changed is another snapshot"):
        release().charge(ledger, data=release().digest([b"other data"]))
    assert release().digest([b"x"]) != release(snapshot="2026-12").digest([b"x"])
    assert "the data" not in ledger.entries[0].note


def test_a_fresh_release_has_an_id_of_its_own() -> None:
    ledger = Ledger(100.0)
    first, second = plan().release(), plan().release()
    assert first.id != second.id
    first.charge(ledger)
    second.charge(ledger)
    assert len(ledger.entries) == 2


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.binary()])
def test_text_is_known_by_its_published_digest(type_: Any) -> None:
    """By SHA-256 of its bytes, wherever in a longer column it stands."""
    texts = ["", "a", "Zoë", "x" * 200, "0"]
    column = pa.array(["before", *texts], pa.string()).cast(type_).slice(1)
    found = ids_of(column, "id", 1)
    assert [bytes(row) for row in found] == [hashlib.sha256(text.encode()).digest() for text in texts]
    assert ids_of(column.slice(0, 0), "id", 1).shape == (0, 32)
