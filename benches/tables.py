"""How fast tables go from a file to an answer, and in how much memory: prints a table, exits 1 off the goals.

    python benches/tables.py                       # speed, at two million rows
    python benches/tables.py --memory              # peaks at 10^5 and 10^7 rows, and of 2,000 columns
    python benches/tables.py --keyed               # keyed releases of each family alone
    python benches/tables.py --record              # keep the figures

Runs are paired: each round goes through all of them in turn, and a figure is a median over rounds. A rate "a
core" counts the processor's seconds of this process, all threads together; the others are the wall's. What
other processes take meanwhile is said, and slows the wall alone.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _keyed
import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from _measure import Others, require
from _table import table
from bitldp.cli.commands import form_of
from bitldp.cli.estimate import _answers
from bitldp.cli.perturb.perturb import perturb
from bitldp.cli.perturb.request import Request
from bitldp.cli.perturb.table_files import opened
from bitldp.tables import Column, ReleaseKey, TablePlan
from keep import cpu_name, keep

CITIES = ["Paris", "Rome", "Oslo"]
COLUMNS = 4
GOALS = {  # at least, but for those of nanoseconds and memory
    "CSV to CSV, MB/s read and written": 300.0,
    "Parquet to Parquet, million values/s a core": 10.0,
    "estimate against perturb, CSV": 1.0,
    "estimate against perturb, Parquet": 1.0,
}
MOST = {
    "keyed, integer ids, ns a record and column": 50.0,
    "keyed, text ids, ns a record and column": 50.0,
    "2,000 groups against none, times": 3.0,
    "2,000 columns of 200 rows, plan to estimate, s": 5.0,
    "2,000 columns of 200 rows by FRR, plan to estimate, s": 5.0,
    **_keyed.goals(),
    "wide perturb, MB": 1000.0,
    "wide estimate, MB": 1000.0,
    "CSV, MB more at 10^7 rows than at 10^5": 100.0,
    "Parquet, MB more at 10^7 rows than at 10^5": 100.0,
}
WIDE = (20_000, 2_000)
MANY = 2_000  # groups, and columns


def plan() -> TablePlan:
    """Return four columns: two of numbers, one of categories, one of numbers on points."""
    return TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=2.0, interval=(120.0, 220.0)), "height"),
            Column(bitldp.Piecewise(epsilon=2.0, interval=(30.0, 150.0)), "weight"),
            Column(bitldp.GRR(3, epsilon=2.0), "city", categories=CITIES),
            Column(bitldp.GRR(10, epsilon=2.0), "age", interval=(0.0, 99.0), output="codes"),
        ]
    )


def people(rows: int) -> pa.Table:
    """Return a table for the plan, with ids."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "id": np.arange(rows),
            "height": np.round(np.clip(rng.normal(170.0, 8.0, rows), 120.0, 220.0), 1),
            "weight": np.round(np.clip(rng.normal(70.0, 9.0, rows), 30.0, 150.0), 1),
            "city": rng.choice(CITIES, rows),
            "age": rng.integers(18, 90, rows),
        }
    )


def write(rows: int, path: Path, piece: int = 1 << 20) -> Path:
    """Write people to a file, a piece at a time."""
    made = people(min(rows, piece))
    kind = pa.csv.CSVWriter if path.suffix == ".csv" else pa.parquet.ParquetWriter
    with kind(path, made.schema) as writer:
        for start in range(0, rows, piece):
            writer.write_table(made.slice(0, rows - start))
    return path


class _Silent:
    def warn(self, sentence: str) -> None:
        pass

    note = warn

    def progress(self, position: int, total: int) -> None:
        pass


def release(source: Path, target: Path, plan_file: Path) -> None:
    """Run ``bitldp perturb --plan``."""
    perturb(Request(source=source, target=target, plan=plan_file, force=True), _Silent())


def answers(released: Path) -> list[dict[str, object]]:
    """Run ``bitldp estimate``."""
    with opened(released, form_of(released, None, "--from")) as source:
        return _answers(source, Path(f"{released}.privacy.json"), (), 0.95)


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the wall, and of the processor in this process."""
    wall, own = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - own


def speed(folder: Path, rows: int, rounds: int) -> dict[str, float]:
    """Measure files: rates of releases and of estimates, alone."""
    plan_file = folder / "plan.toml"
    plan().write(plan_file)
    calls: dict[str, Callable[[], object]] = {}
    sizes = {}
    for suffix in ("csv", "parquet"):
        source, target = write(rows, folder / f"p.{suffix}"), folder / f"r.{suffix}"
        release(source, target, plan_file)
        truth = people(min(rows, 1 << 20)).column("height").to_numpy().mean()
        found = answers(target)[0]
        require(abs(found["estimate"] - truth) < 6.0 * found["stderr"], f"{suffix}: the answer is wrong")  # type: ignore[operator]
        sizes[suffix] = (source.stat().st_size + target.stat().st_size) / 1e6
        calls[f"perturb {suffix}"] = lambda s=source, t=target: release(s, t, plan_file)
        calls[f"estimate {suffix}"] = lambda t=target: answers(t)
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            seen[name].append(timed(call))

    def median(name: str, clock: int) -> float:
        return statistics.median(each[clock] for each in seen[name])

    def ratio(suffix: str) -> float:
        pairs = zip(seen[f"perturb {suffix}"], seen[f"estimate {suffix}"], strict=True)
        return statistics.median(first[1] / second[1] for first, second in pairs)

    return {
        "CSV to CSV, MB/s read and written": sizes["csv"] / median("perturb csv", 0),
        "CSV to CSV, MB/s read and written, a core": sizes["csv"] / median("perturb csv", 1),
        "CSV to CSV, million values/s a core": rows * COLUMNS / median("perturb csv", 1) / 1e6,
        "Parquet to Parquet, million values/s a core": rows * COLUMNS / median("perturb parquet", 1) / 1e6,
        "estimate against perturb, CSV": ratio("csv"),
        "estimate against perturb, Parquet": ratio("parquet"),
    }


def keyed(rounds: int, rows: int = 1 << 17) -> dict[str, float]:
    """Measure a whole release with a key, on one thread, in nanoseconds a record and column."""
    table = people(rows)
    texts = table.set_column(0, "id", table.column("id").cast(pa.string()))
    key = ReleaseKey(bytes(range(32)))
    made = plan().release(key, record="id", threads=1)
    require(made(table).equals(made(table)), "a release differs from itself")
    found = {}
    for name, given in (("integer", table), ("text", texts)):
        seconds = []
        for _ in range(rounds):
            start = time.process_time()  # a thread that should not be there would count, too
            made(given)
            seconds.append(time.process_time() - start)
        found[f"keyed, {name} ids, ns a record and column"] = (
            statistics.median(seconds) / rows / COLUMNS * 1e9
        )
    return found


def families(rounds: int) -> dict[str, float]:
    """Measure keyed releases of each family of mechanisms, and of the plan of the guide."""
    return {**_keyed.families(rounds), **_keyed.numbers(rounds), **_keyed.guide(rounds)}


def grouped(rounds: int, rows: int = 1_000_000) -> dict[str, float]:
    """Measure counts by group: how many times longer they take than those of the same rows without groups."""
    rng = np.random.default_rng(2)
    columns = [
        Column(bitldp.Piecewise(epsilon=2.0, interval=(120.0, 220.0)), "height"),
        Column(bitldp.BRR(64, epsilon=2.0, interval=(30.0, 150.0)), "weight"),
        Column(bitldp.GRR(3, epsilon=2.0), "city", categories=CITIES),
        Column(bitldp.OUE(4, epsilon=2.0), "drink", categories=["tea", "coffee", "milk", "water"]),
    ]
    made = TablePlan(columns, keep=["group"])
    drinks = rng.choice(columns[3].codecs[0].categories, rows)
    group = rng.integers(0, MANY, rows)
    released = made.release()(people(rows).append_column("drink", [drinks]).append_column("group", [group]))
    ratios = []
    for _ in range(rounds):
        none, _ = timed(lambda: made.aggregate().update(released))
        some, _ = timed(lambda: made.aggregate(["group"]).update(released))
        ratios.append(some / none)
    require(len(made.aggregate(["group"]).update(released)) == rows, "records are missing")
    return {"2,000 groups against none, times": statistics.median(ratios)}


def columns(rounds: int, rows: int = 200) -> dict[str, float]:
    """Measure many columns of one law, from their plan to their answers."""
    rng = np.random.default_rng(3)
    names = [f"x{j}" for j in range(MANY)]
    given = pa.table({name: rng.uniform(0.0, 1.0, rows) for name in names})

    def whole(mechanism: Callable[[], Any]) -> None:
        made = TablePlan([Column(mechanism(), name) for name in names])
        answers = made.aggregate().update(made.release()(given)).estimate()
        require(answers.num_rows == MANY, "answers are missing")

    def seconds(mechanism: Callable[[], Any]) -> float:
        return statistics.median(timed(lambda: whole(mechanism))[0] for _ in range(rounds))

    return {
        "2,000 columns of 200 rows, plan to estimate, s": seconds(
            lambda: bitldp.Piecewise(epsilon=2.0, interval=(0.0, 1.0))
        ),
        "2,000 columns of 200 rows by FRR, plan to estimate, s": seconds(
            lambda: bitldp.FRR(features=1, integer_bits=3, epsilon=2.0)
        ),
    }


def peak(*arguments: object) -> float:
    """Return the peak of a command in MB, of a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("_peak.py")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    require(done.returncode == 0, done.stderr)
    return int(done.stderr.split()[-1]) / 1024 * 1.048576


def memory(folder: Path) -> dict[str, float]:
    """Measure peaks: of few and many rows, and of many columns."""
    plan_file = folder / "plan.toml"
    plan().write(plan_file)
    found = {}
    for suffix, name in (("csv", "CSV"), ("parquet", "Parquet")):
        peaks = []
        for rows in (10**5, 10**7):
            source = write(rows, folder / f"m.{suffix}")
            peaks.append(
                peak("perturb", source, "-o", folder / f"o.{suffix}", "--plan", plan_file, "--force")
            )
            peaks.append(peak("estimate", folder / f"o.{suffix}", "--format", "csv"))
            source.unlink()
        found[f"{name}, MB at 10^7 rows"] = max(peaks)
        found[f"{name}, MB more at 10^7 rows than at 10^5"] = max(peaks[2] - peaks[0], peaks[3] - peaks[1])
    rows, columns = WIDE
    rng = np.random.default_rng(1)
    names = [f"x{j}" for j in range(columns)]
    wide = pa.table({name: rng.normal(0.0, 1.0, rows).astype(np.float32) for name in names})
    pa.parquet.write_table(wide, folder / "wide.parquet")
    del wide
    options = ("--mechanism", "frr", "--integer-bits", 3, "--epsilon", 4000, "--columns", ",".join(names))
    target = folder / "w.parquet"
    found["wide perturb, MB"] = peak("perturb", folder / "wide.parquet", "-o", target, *options)
    found["wide estimate, MB"] = peak("estimate", target, "--format", "csv")
    return found


def main() -> int:
    """Print the table; return 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description="How fast tables go from a file to an answer.")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help="measure memory in place of speed")
    parser.add_argument("--keyed", action="store_true", help="measure keyed releases of each family alone")
    parser.add_argument("--record", action="store_true", help="keep the figures in benches/records")
    options = parser.parse_args()
    others = Others()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.memory:
            found = memory(folder)
        elif options.keyed:
            found = families(options.rounds)
        else:
            found = {**speed(folder, options.rows, options.rounds), **keyed(options.rounds * 5)}
            found |= {**grouped(options.rounds), **columns(options.rounds)}
            found |= families(options.rounds)
    busy = others.cores()
    lines = [["figure", "measured", "goal"]]
    missed = []
    for figure, value in found.items():
        least, most = GOALS.get(figure), MOST.get(figure)
        if (least is not None and value < least) or (most is not None and value > most):
            missed.append(figure)
        goal = f">= {least:g}" if least is not None else f"<= {most:g}" if most is not None else ""
        lines.append([figure, f"{value:.3g}", goal])
    print(table(lines))
    print(f"other processes took {busy:.1f} cores meanwhile")
    if options.record:
        machine = {"cpu": cpu_name(), "isa": bitldp._core.isa(), "bitldp": bitldp.__version__}
        figures = {figure: round(value, 3) for figure, value in found.items()}
        run = {"rows": options.rows, "rounds": options.rounds, "others": round(busy, 2)}
        keep("tables.jsonl", {"machine": machine, **run, "figures": figures, "missed": missed})
    for figure in missed:
        print(f"MISSED: {figure}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
