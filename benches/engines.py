"""A release inside Spark, Ray and Dask beside the identity map there: prints a table, exits 1 off the goal.

    target/engines/bin/python benches/engines.py                  # four million rows, after make test-engines
    target/engines/bin/python benches/engines.py --rows 500000 --record

The two run in turn, and the figure is the median of the ratios of the pairs: what other processes take falls
on both. Each reads the same Parquet, maps it, and writes Parquet. On Ray a worker is killed once, too, when
its batch was released: the rows that leave are counted, and some compared with those of no engine.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from _measure import Others, require
from _table import table
from bitldp.tables import ReleaseKey, TableRelease
from keep import cpu_name, keep
from tables import people, plan

GOAL = 1.3
VARIABLE = "BITLDP_BENCH_RELEASE_KEY"
Run = Callable[[], object]


def identity(batch: Any) -> Any:
    """Return a batch."""
    return batch


def all_of(batches: Any) -> Any:
    """Return batches."""
    yield from batches


def rows_of(folder: Path) -> int:
    """Return how many rows there are in the Parquet files of a folder."""
    return sum(pa.parquet.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))


def on_spark(source: Path, out: Path, release: TableRelease) -> dict[str, Run]:
    """Return a release and an identity map on Spark."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    frame = session.read.parquet(str(source))

    def run(function: Any, ddl: Any) -> Run:
        return lambda: frame.mapInArrow(function, ddl).write.mode("overwrite").parquet(str(out))

    return {"ours": run(release.batches, release.ddl(frame.schema)), "own": run(all_of, frame.schema)}


def on_ray(source: Path, out: Path, release: TableRelease) -> dict[str, Run]:
    """Return a release and an identity map on Ray Data."""
    import ray
    import ray.data

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def run(function: Any) -> Run:
        def call() -> None:
            shutil.rmtree(out, ignore_errors=True)
            data = ray.data.read_parquet(str(source))
            data.map_batches(function, batch_format="pyarrow").write_parquet(str(out))

        return call

    return {"ours": run(release), "own": run(identity)}


def on_dask(source: Path, out: Path, release: TableRelease) -> dict[str, Run]:
    """Return a release and an identity map on Dask, of two processes."""
    import dask.dataframe
    import distributed

    distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
    frame = dask.dataframe.read_parquet(str(source))

    def run(function: Any, meta: Any) -> Run:
        def call() -> None:
            shutil.rmtree(out, ignore_errors=True)
            frame.map_partitions(function, meta=meta).to_parquet(str(out), write_index=False)

        return call

    return {"ours": run(release.pandas, release.meta(frame._meta)), "own": run(identity, frame._meta)}


def killed(source: Path, out: Path, release: TableRelease, rows: int) -> float:
    """Release on Ray, kill a worker when its batch was released, check the rows, and return the seconds."""
    import ray.data

    marker = out.with_name("killed")

    def once(batch: Any) -> Any:
        found = release(batch).append_column("id", batch.column("id"))
        if batch.num_rows and not marker.exists():
            marker.write_text("")
            os._exit(1)
        return found

    shutil.rmtree(out, ignore_errors=True)
    start = time.perf_counter()
    ray.data.read_parquet(str(source)).map_batches(once, batch_format="pyarrow").write_parquet(str(out))
    seconds = time.perf_counter() - start
    require(marker.exists(), "no worker was killed")
    require(rows_of(out) == rows, "rows were lost")
    for path in sorted(source.rglob("*.parquet"))[:2]:
        people = pa.parquet.read_table(path)
        ids = people.column("id").combine_chunks()
        left = pa.parquet.read_table(
            out, filters=[("id", ">=", ids[0].as_py()), ("id", "<=", ids[-1].as_py())]
        )
        left = left.sort_by("id")
        require(left.column("id").combine_chunks().equals(ids), "ids are missing, or came twice")
        expected = release(people).replace_schema_metadata(None)
        require(left.drop_columns("id").replace_schema_metadata(None).equals(expected), "other rows left")
    return seconds


def measure(runs: dict[str, Run], out: Path, rows: int, rounds: int) -> dict[str, float]:
    """Return the median ratio of pairs, and the median seconds of both."""
    for run in runs.values():  # once to warm up, and to see that every row comes through
        run()
        require(rows_of(out) == rows, "rows were lost")
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds):
        for name in list(runs) if turn % 2 else list(reversed(list(runs))):
            start = time.perf_counter()
            runs[name]()
            seconds[name].append(time.perf_counter() - start)
    pairs = zip(seconds["ours"], seconds["own"], strict=True)
    return {
        "ratio": statistics.median(ours / own for ours, own in pairs),
        **{name: statistics.median(each) for name, each in seconds.items()},
    }


def main() -> int:
    """Print the table; return 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description="A release inside engines beside their identity map.")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["spark", "ray", "dask"])
    parser.add_argument("--record", action="store_true", help="keep the figures in benches/records")
    options = parser.parse_args()
    os.environ.setdefault(VARIABLE, ReleaseKey.new_text())
    release = plan().release(ReleaseKey.from_env(VARIABLE), record="id")
    engines = {"spark": ("pyspark", on_spark), "ray": ("ray", on_ray), "dask": ("dask", on_dask)}
    lines, found = [["engine", "release / identity", "release, s", "identity, s", "goal"]], {}
    others = Others()
    with tempfile.TemporaryDirectory() as name:
        source, out = Path(name) / "people", Path(name) / "out"
        source.mkdir()
        piece = min(options.rows, 500_000)
        for start in range(0, options.rows, piece):
            rows = people(min(piece, options.rows - start))
            ids = pa.array(range(start, start + len(rows)))
            pa.parquet.write_table(rows.set_column(0, "id", ids), source / f"{start}.parquet")
        for engine, (module, begin) in engines.items():
            if options.only not in (None, engine):
                continue
            if importlib.util.find_spec(module) is None or (engine == "spark" and not shutil.which("java")):
                print(f"{engine}: is not installed")
                continue
            each = found[engine] = measure(begin(source, out, release), out, options.rows, options.rounds)
            if engine == "ray":
                each["killed"] = killed(source, out, release, options.rows)
                print(f"ray: a worker was killed, and all {options.rows} rows left in {each['killed']:.1f} s")
            figures = [f"{each[key]:.2f}" for key in ("ratio", "ours", "own")]
            lines.append([engine, *figures, f"<= {GOAL}"])
    print(table(lines))
    print(f"other processes took {others.cores():.1f} cores meanwhile, the engines' own among them")
    missed = [engine for engine, each in found.items() if each["ratio"] > GOAL]
    if options.record:
        run = {"machine": {"cpu": cpu_name()}, "rows": options.rows, "rounds": options.rounds}
        keep("tables.jsonl", {**run, "engines": found, "missed": missed})
    return 1 if missed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
