"""Throughput against plain NumPy in one process, and the machine's limits; docs/guides/speed.md has a table.

    python benches/throughput.py [--every-isa] [--peers] [--record] [--rounds 7] [--only WORD]

Exits with 1 if a result is wrong, or if a figure is below 75 % of its goal (`_goals.py`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import _memory
from _cases import Case, cases
from _cases_caps import cases as cap_cases
from _cases_frequencies import cases as frequency_cases
from _cases_numeric import cases as numeric_cases
from _cases_records import cases as record_cases
from _cases_server import cases as server_cases
from _cases_vectors import cases as vector_cases
from _goals import GATE, GOALS, goal_of
from _measure import (
    Machine,
    Others,
    Pair,
    Probe,
    Timed,
    WrongResultError,
    interleaved,
    machine,
    probes,
    require,
)
from _report import Result, failed, show, show_memory, too_much
from bitldp import _core

_REFERENCE_CALLS = 20  # timed together where `Case.inner` asks for more than one


def run(case: Case, on: Machine, limits: dict[str, Probe], rounds: int) -> Result:
    """Check a case, then time it in turn with its reference and with the limits of the machine."""
    case.check()
    cpu, wall = time.thread_time, time.perf_counter
    inner = case.inner
    timed = {"ours": Timed(lambda: case.ours(1), cpu, inner=inner, repeats=3)}
    if case.reference is not None:
        timed["reference"] = Timed(case.reference, cpu, inner=1 if inner == 1 else _REFERENCE_CALLS)
    if case.beside is not None:
        timed["beside"] = Timed(case.beside.call, cpu, inner=inner, repeats=3)
    threads = _threads(on.cores) if case.batch else [1]
    for n in threads:
        timed[f"on {n}"] = Timed(lambda n=n: case.ours(n), wall, inner=inner, repeats=3)
    pair = _pair()
    timed["alone"], timed["together"] = (
        Timed(pair.alone, wall, repeats=2),
        Timed(pair.together, wall, repeats=2),
    )
    if case.tuned is not None:
        timed["tuned"] = Timed(case.tuned, cpu)
    timed.update({name: probe.timed for name, probe in limits.items()})
    others = Others()
    times = dict(zip(timed, interleaved(list(timed.values()), rounds), strict=True))
    best = {name: each.best for name, each in times.items()}
    rate = {name: probe.rate(times[name]) for name, probe in limits.items()}
    # Where most of the traffic is output, writing binds rather than copying. One record stays in the cache.
    memory = (
        max((case.read + case.written) / rate["copy"], case.written / rate["fill"]) if case.batch else 0.0
    )
    keystream = case.keystream / rate["keystream"]
    reference = times.get("reference")
    return Result(
        name=case.name,
        reference=best.get("reference"),
        tuned=best.get("tuned"),
        ours=best["ours"],
        ratio=None if reference is None else reference.best / best["ours"],
        ratio_of_medians=None if reference is None else reference.median / times["ours"].median,
        goal=goal_of(case.name, on.isa, reference is not None),
        beside=None if case.beside is None else (case.beside.name, best["beside"], case.beside.times),
        floor=max(keystream, memory),
        binding="keystream" if keystream >= memory else "memory",
        walls={n: best[f"on {n}"] for n in threads},
        others=others.cores(),
        second=2.0 * best["alone"] / best["together"],
    )


@cache
def _pair() -> Pair:
    """Return the one pair of threads of the process: every case asks the same two."""
    return Pair()


def _threads(cores: int) -> list[int]:
    """Return 1, 2, 4, ... up to the number of cores, which is the last one."""
    return sorted({1 << i for i in range(cores.bit_length()) if 1 << i <= cores} | {cores})


def record(line: dict[str, Any]) -> Path:
    """Append one run to the records, as a line of JSON, and return their file."""
    path = Path(__file__).parent / "records" / "throughput.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return path


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Throughput of bitldp against plain NumPy in the same process."
    )
    parser.add_argument("--rounds", type=int, default=7, help="how often every call is timed in turn (7)")
    parser.add_argument("--only", default="", metavar="WORD", help="only the cases whose name contains it")
    parser.add_argument(
        "--peers", action="store_true", help="also time the other libraries that are installed"
    )
    parser.add_argument(
        "--every-isa",
        action="store_true",
        help="on every instruction set of the processor and without one, each in a process",
    )
    parser.add_argument("--record", action="store_true", help="append the figures to benches/records")
    return parser.parse_args()


def _measure(options: argparse.Namespace) -> tuple[Machine, list[Result], list[dict[str, Any]]]:
    """Run and print the tables."""
    limits = probes()
    on = machine(limits)
    print("\n".join(on.lines()), flush=True)
    of_clients = (cases, numeric_cases, record_cases, cap_cases, vector_cases, frequency_cases)
    every = [case for make in (*of_clients, server_cases) for case in make()]
    unknown = GOALS.keys() - {case.name for case in every}
    require(not unknown, f"goals of no case: {sorted(unknown)}")
    wanted = [case for case in every if options.only in case.name]
    results = [run(case, on, limits, options.rounds) for case in wanted]
    print("\n" + show(results), flush=True)
    if not options.peers:
        return on, results, []
    import peers

    rows = peers.measure()
    print("\n" + peers.show(rows), flush=True)
    return on, results, rows


def main() -> int:
    """Measure, print, record; return the exit status."""
    options = _arguments()
    if options.every_isa:
        return on_every_isa()
    try:
        on, results, rows = _measure(options)
    except WrongResultError as error:
        print(f"wrong result: {error}", file=sys.stderr)
        return 1
    memory = _memory.extra_memory()
    print("\n" + show_memory(memory))
    if options.record:
        figures = {"results": [asdict(each) for each in results], "memory": memory, "peers": rows}
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        print(f"\nrecorded in {record({'date': now, 'machine': asdict(on), **figures})}")
    below = [each.name for each in results if failed(each)]
    below += [f"memory on {threads}" for threads in too_much(memory)]
    if below:
        print(f"\n{on.isa}: below {GATE:.0%} of a goal: {'; '.join(below)}", file=sys.stderr)
    return 1 if below else 0


def on_every_isa() -> int:
    """Run this program once for each instruction set; return the worst exit status."""
    rest = [argument for argument in sys.argv[1:] if argument != "--every-isa"]
    worst = 0
    for isa in _core.available_isas():
        done = subprocess.run(
            [sys.executable, __file__, *rest], check=False, env={**os.environ, "BITLDP_ISA": isa}
        )
        worst = max(worst, abs(done.returncode))
        print(flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
