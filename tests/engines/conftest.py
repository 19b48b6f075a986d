"""Engines that run once for all tests, where they are installed; the table, its plan and its release."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import pyarrow as pa
    from bitldp.tables import TableRelease
    from support.engines import Engine


@pytest.fixture(scope="session", autouse=True)
def _key() -> Iterator[None]:
    engines = pytest.importorskip("support.engines", reason='needs pip install "bitldp[tables]"')
    os.environ[engines.VARIABLE] = engines.TEXT
    yield
    del os.environ[engines.VARIABLE]


@pytest.fixture(scope="session")
def table() -> pa.Table:
    from support.engines import people

    return people()


@pytest.fixture(scope="session")
def release(_key: None) -> TableRelease:
    from bitldp.tables import ReleaseKey
    from support.engines import VARIABLE, plan

    return plan().release(ReleaseKey.from_env(VARIABLE), record="id", snapshot="2026-11")


@pytest.fixture(scope="session")
def expected(table: pa.Table, release: TableRelease) -> pa.Table:
    from support.engines import ordered

    return ordered(release(table))


@pytest.fixture(scope="session")
def ray(_key: None) -> Iterator[Any]:
    found = pytest.importorskip("ray", reason='needs pip install "bitldp[ray]"')
    found.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield found
    found.shutdown()


@pytest.fixture(scope="session")
def spark(_key: None) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason='needs pip install "bitldp[spark]"')
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers run where this does
    session = (
        sql.SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def dask(_key: None) -> Iterator[Any]:
    dataframe = pytest.importorskip("dask.dataframe", reason='needs pip install "bitldp[dask]"')
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:  # noqa: SIM117
        with distributed.Client(cluster):
            yield dataframe


@pytest.fixture(params=["pandas", "polars", "polars, streaming", "dask", "duckdb", "ray", "spark"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    from support import engines

    name, _, streaming = request.param.partition(", ")
    if name in ("dask", "ray", "spark"):
        session = request.getfixturevalue(name)
        return engines.on_spark(session) if name == "spark" else getattr(engines, f"on_{name}")()
    pytest.importorskip(name, reason=f'needs pip install "bitldp[{name}]"')
    if name == "polars":
        return engines.on_polars("streaming" if streaming else "in-memory")
    made: Engine = getattr(engines, f"on_{name}")()
    return made
