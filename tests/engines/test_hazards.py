"""What engines do to a release, on each of them.

The letters: (a) two evaluations are equal, (b) so they are after a repartition, and (c) where a worker dies
after its batch left; (d) a filter on a released column returns only rows that satisfy it; (e) constants are
not folded; (f) nulls and what is no category are refused without the value; (g) all engines give the same
rows, (h) by the law; (i) ids that come up twice, in whichever partitions, are refused; (j) the key is in no
pickle, log or plan; (k) a release is charged once; (m) the answers are true. (a) to (d), (g) and (m) are in
`test_engines`, engine by engine. That the value is in the coins (l) is tested with the keyed releases,
where what leaves it out is found.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
import pyarrow.compute as pc
from bitldp.ledger import Ledger
from bitldp.tables import DataError, PlanError, TableRelease
from scipy import stats
from support.engines import CITIES, ROWS, TEXT, VARIABLE, Engine, constant, plan

pytestmark = pytest.mark.engine


def test_constants_are_not_folded(engine: Engine, release: TableRelease) -> None:
    """(e) Each of equal records has coins of its own."""
    released = engine.released(release, constant(10_000))
    assert released.num_rows == 10_000
    assert len(pc.unique(released.column("height"))) > 3
    assert set(released.column("city").to_pylist()) == set(CITIES)


@pytest.mark.parametrize(
    ("city", "words"),
    [(None, "missing value"), ("Berne", "not one of the categories")],
    ids=["null", "unknown"],
)
def test_what_cannot_leave_is_refused_without_the_value(
    engine: Engine, release: TableRelease, city: str | None, words: str
) -> None:
    """(f) By row and column."""
    table = constant(3).set_column(2, "city", pa.array(["Rome", city, "Oslo"], pa.string()))
    with pytest.raises(Exception, match=f"row [12], column 'city': {words}") as caught:
        engine.released(release, table)
    assert "Berne" not in str(caught.value)


def test_what_left_follows_the_law(table: pa.Table, expected: pa.Table) -> None:
    """(h) Chi-square over true and released categories and points, n = 250,000 each.

    The rows are those of every engine (g). The statistics of 6 and 90 degrees of freedom exceed their limits
    with a chance of 1e-6 each; the key is fixed, so this cannot flake.
    """
    truth = table.sort_by("id")
    age = np.rint(truth.column("age").to_numpy() / 11.0).astype(int)
    city = pc.index_in(truth.column("city"), pa.array(CITIES)).to_numpy()
    released = pc.index_in(expected.column("city"), pa.array(CITIES)).to_numpy()
    for cells, before, after in ((3, city, released), (10, age, expected.column("age").to_numpy())):
        chances = np.asarray(bitldp.GRR(cells, epsilon=2.0).probabilities())
        counts = np.zeros((cells, cells))
        np.add.at(counts, (before, after), 1)
        assert counts.sum() == ROWS
        there = counts.sum(axis=1) > 0
        wanted = counts.sum(axis=1, keepdims=True)[there] * chances[there]
        statistic = ((counts[there] - wanted) ** 2 / wanted).sum()
        assert statistic < stats.chi2.isf(1e-6, there.sum() * (cells - 1))


def test_ids_of_all_partitions_are_checked(engine: Engine, release: TableRelease, table: pa.Table) -> None:
    """(i) They are counted, and one that comes up twice, far apart, is refused without being shown."""
    assert engine.checked(release, table) == ROWS
    ids = table.column("id").to_numpy() + 7_700_177_001_000_000  # no port or address has so many digits
    ids[-1] = ids[0]
    with pytest.raises(DataError, match=r"column 'id': an id (comes up twice|that came up before)") as caught:
        engine.checked(release, table.set_column(0, "id", pa.array(ids)))
    assert str(ids[0]) not in str(caught.value)


def test_an_id_twice_in_a_partition_stops_the_engine(engine: Engine, release: TableRelease) -> None:
    """(i) Where an engine shows both at once, the release itself refuses them."""
    table = constant(40).set_column(0, "id", pa.array([7_700_177_001_770_017] * 40))
    with pytest.raises(Exception, match="column 'id': an id that came up before") as caught:
        engine.released(release, table)
    assert "7700177001" not in str(caught.value)


def test_the_key_is_in_nothing_that_a_worker_gets(release: TableRelease) -> None:
    """(j) It goes as the name of a variable."""
    sent = pickle.dumps(release)
    assert TEXT[:8].encode() not in sent
    assert bytes.fromhex(TEXT) not in sent
    assert VARIABLE.encode() in sent


def test_the_key_is_in_no_plan_or_log(
    spark: Any, dask: Any, ray: Any, release: TableRelease, capfd: pytest.CaptureFixture[str]
) -> None:
    """(j) Neither in what engines say of their plans, nor in what was written on the way."""
    import ray.data

    frame = spark.createDataFrame(constant(10).to_pandas())
    found = frame.mapInArrow(release.batches, release.ddl(frame.schema))
    found.collect()
    source = dask.from_pandas(constant(10).to_pandas(), npartitions=2)
    lazy = source.map_partitions(release.pandas, meta=release.meta(source._meta))
    data = ray.data.from_arrow(constant(10)).map_batches(release, batch_format="pyarrow")
    data.take_all()
    said = [
        found._jdf.queryExecution().toString(),
        str(dict(lazy.dask)),
        repr(lazy),
        data.stats(),
        repr(data),
    ]
    folder = Path(ray._private.worker._global_node.get_session_dir_path()) / "logs"
    said += [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]
    said += list(capfd.readouterr())
    assert len(said) > 8
    assert not any(TEXT[:8] in text for text in said)


def test_a_release_is_charged_once(dask: Any, release: TableRelease, table: pa.Table, tmp_path: Path) -> None:
    """(k) By every partition, in two processes, and by each of two evaluations."""
    path = tmp_path / "people.ledger"
    with Ledger.open(path, budget=10.0, create=True):
        pass

    def charged(part: Any) -> Any:
        with Ledger.open(path) as ledger:
            release.charge(ledger)
        return release.pandas(part)

    source = dask.from_pandas(table.to_pandas(), npartitions=4)
    lazy = source.map_partitions(charged, meta=release.meta(source._meta))
    assert len(lazy.compute()) == len(lazy.compute()) == ROWS
    with Ledger.open(path) as ledger:
        assert len(ledger.entries) == 1
        assert ledger.spent == pytest.approx(plan().guarantee.record)


def test_an_engine_gets_no_release_without_a_key(table: pa.Table) -> None:
    fresh = plan().release()
    for method in ("batches", "pandas", "polars"):
        with pytest.raises(PlanError, match=r"give plan\.release a key"):
            list(getattr(fresh, method)([table]))
