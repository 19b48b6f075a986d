"""Throughput against plain NumPy in one process, and the machine's limits; README.md explains the columns.

    python benches/throughput.py [--peers] [--record] [--rounds 7] [--only WORD]

Exits with 1 if a result is wrong, or if a figure is below 75 % of its goal.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import _memory
from _cases import Case, cases
from _cases_numeric import cases as numeric_cases
from _cases_records import cases as record_cases
from _cases_server import cases as server_cases
from _cases_vectors import cases as vector_cases
from _measure import Machine, Others, Probe, Timed, WrongResultError, interleaved, machine, probes
from _report import Result, show, show_memory, too_much

GATE = 0.75
# The goals are for AVX-512, half of them for AVX2. The scalar kernels are there to be read: they have none.
SHARE = {"avx512": 1.0, "avx2": 0.5}
_REFERENCE_CALLS = 20  # timed together where `Case.inner` asks for more than one


def run(case: Case, on: Machine, limits: dict[str, Probe], rounds: int) -> Result:
    """Check a case, then time it in turn with its reference and with the limits of the machine."""
    case.check()
    cpu, wall = time.thread_time, time.perf_counter
    timed = {
        "reference": Timed(case.reference, cpu, inner=1 if case.inner == 1 else _REFERENCE_CALLS),
        "ours": Timed(lambda: case.ours(1), cpu, inner=case.inner, repeats=3),
        "wall": Timed(lambda: case.ours(1), wall, inner=case.inner, repeats=3),
    }
    if case.batch and on.cores > 1:
        timed["two"] = Timed(lambda: case.ours(2), wall, inner=case.inner, repeats=3)
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
    share = SHARE.get(on.isa)
    return Result(
        name=case.name,
        reference=best["reference"],
        tuned=best.get("tuned"),
        ours=best["ours"],
        ratio=best["reference"] / best["ours"],
        ratio_of_medians=times["reference"].median / times["ours"].median,
        goal=None if case.goal is None or share is None else case.goal * share,
        most=None if case.most is None or share is None else case.most / share,
        floor=max(keystream, memory),
        binding="keystream" if keystream >= memory else "memory",
        wall=best["wall"],
        wall_two=best.get("two"),
        others=others.cores(),
    )


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
    parser.add_argument("--record", action="store_true", help="append the figures to benches/records")
    return parser.parse_args()


def _measure(options: argparse.Namespace) -> tuple[Machine, list[Result], list[dict[str, Any]]]:
    """Run and print the tables."""
    limits = probes()
    on = machine(limits)
    print("\n".join(on.lines()), flush=True)
    wanted = [
        case
        for case in (*cases(), *numeric_cases(), *record_cases(), *vector_cases(), *server_cases())
        if options.only in case.name
    ]
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
    if on.isa not in SHARE:
        return 0
    failed = [
        each.name
        for each in results
        if each.reached() < GATE or (each.quiet and each.reached_by_two() < GATE)
    ]
    failed += [f"memory on {threads}" for threads in too_much(memory)]
    if failed:
        print(f"\nbelow {GATE:.0%} of a goal: {'; '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
