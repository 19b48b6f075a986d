"""What an update of a million to ten million numbers costs a client and the server, by mechanism.

    python benches/updates.py              # exits with 1 past a goal
    python benches/updates.py --record     # and keep the figures

CPU time and memory of one client's release, and of adding its report to the server's mean, beside those of a
copy of the update as float64; the record has the time by the clock as well. Goals are ratios, so that they
hold on any machine: a report that names few coordinates may cost the server no vector, and a fiftieth of the
time of one that is decoded into a vector.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import bitldp
import numpy as np
from _table import table
from bitldp.client.message import read
from bitldp.federated import Layout, ReportMean, UpdateCodec
from keep import cpu_name, keep

EPSILON, REPORTS = 8.0, 6
SIZES = (1_000_000, 1_200_000, 10_000_000)
MECHANISMS: dict[str, Callable[[int], Any]] = {
    "CrossPolytope": lambda size: bitldp.CrossPolytope(size, epsilon=EPSILON),
    "Duchi": lambda size: bitldp.Duchi(epsilon=EPSILON, features=size),
    "VectorMVU": lambda size: bitldp.VectorMVU(size, epsilon=EPSILON),
    "HypercubePrivUnit": lambda size: bitldp.HypercubePrivUnit(size, epsilon=EPSILON),
    "Piecewise, sampled": lambda size: bitldp.Piecewise(epsilon=EPSILON, features=size, spend="sample"),
    "SampledSigns": lambda size: bitldp.SampledSigns(size, epsilon=EPSILON),
    "JointWindow": lambda size: bitldp.JointWindow(size, epsilon=EPSILON),
}
NAMED = ("Piecewise, sampled", "SampledSigns", "JointWindow")
_NAMED_TIME, _NAMED_MEMORY = 0.02, 0.01
"""Of the first mechanism's time, and of an update's bytes, at most, for a report of few coordinates."""
_WHOLE_TIME, _CLIENT_TIME, _CLIENT_MEMORY = 100.0, 100.0, 6.0
"""Of a copy's time, and of an update's bytes, at most."""


def timed(name: str, work: Callable[[], Any], parts: int = 1) -> dict[str, float]:
    """Return the CPU seconds of one part of a run, and the seconds by the clock, each the least of three."""
    runs = []
    for _ in range(3):
        busy, start = time.process_time(), time.perf_counter()
        work()
        runs.append((time.process_time() - busy, time.perf_counter() - start))
    busy, clock = (min(each) / parts for each in zip(*runs, strict=True))
    return {name: busy, f"{name}_clock": clock}


def peak(work: Callable[[], Any]) -> int:
    """Return the bytes that a run takes above what there was."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def measured(name: str, size: int) -> dict[str, float] | None:
    """Return the figures of a mechanism; None where it takes no update of that many numbers."""
    update = np.random.default_rng(1).normal(size=size)
    update *= 0.9 / np.linalg.norm(update)
    start = time.process_time()
    try:
        plan = UpdateCodec(MECHANISMS[name], clip=1.0).plan(Layout(("w",), ((size,),), ("<f8",)))
    except ValueError:
        return None
    build = time.process_time() - start
    reports = [plan.perturb(update) for _ in range(REPORTS)]
    mean = ReportMean(size)

    def added() -> None:
        for report in reports:
            mean.add_all(plan.decoded(read(report, plan.header)))

    added()
    return {
        "build": build,
        **timed("copy", update.copy),
        **timed("client", lambda: plan.perturb(update)),
        "client_bytes": peak(lambda: plan.perturb(update)),
        **timed("server", added, REPORTS),
        "server_bytes": peak(added),
        "bytes": len(reports[0]),
    }


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a million numbers alone")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    heads = (
        "mechanism",
        "numbers",
        "bytes",
        "built s",
        "client s",
        "client MB",
        "server ms",
        "server MB",
        "of a copy",
    )
    rows, kept, missed = [list(heads)], {}, []
    for size in SIZES[:1] if given.quick else SIZES:
        for name in MECHANISMS:
            found = measured(name, size)
            if found is None:
                rows.append([name, f"{size:,}", "refused", *[""] * 6])
                continue
            ratio, vector = found["server"] / found["copy"], 8 * size
            values = (
                f"{found['bytes']:,}",
                f"{found['build']:.2f}",
                f"{found['client']:.3f}",
                f"{found['client_bytes'] / 2**20:.0f}",
                f"{1e3 * found['server']:.3f}",
                f"{found['server_bytes'] / 2**20:.2f}",
                f"{ratio:.4f}",
            )
            rows.append([name, f"{size:,}", *values])
            kept[f"{name} {size}"] = {key: float(f"{value:.4g}") for key, value in found.items()}
            few = name in NAMED
            whole = kept[f"{next(iter(MECHANISMS))} {size}"]["server"]
            goals = {
                "server's time": found["server"] <= _NAMED_TIME * whole if few else ratio <= _WHOLE_TIME,
                "server's memory": not few or found["server_bytes"] <= _NAMED_MEMORY * vector,
                "client's time": found["client"] <= _CLIENT_TIME * found["copy"],
                "client's memory": found["client_bytes"] <= _CLIENT_MEMORY * vector,
            }
            missed += [f"{name}, {size:,} numbers: {goal}" for goal, met in goals.items() if not met]
    print(table(rows))
    if given.record:
        keep("updates.jsonl", {"cpu": cpu_name(), "epsilon": EPSILON, "results": kept})
    if missed:
        print(f"\nmissed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
