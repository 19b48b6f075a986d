"""How long a round of many simulated clients takes, from their updates to the server's mean.

    python benches/cohorts.py [--quick] [--wide] [--record]

100 coordinates a client, through codec, mechanism and estimator of a run with messages. Goals: 10^5
clients in 2 seconds of one core, 10^6 in 20, memory flat. ``--wide``: 10^4 clients of 10^5 coordinates in 60
seconds of one core, in the memory of a tenth as many. Exits with 1 if one is missed; ``--quick`` leaves
10^6 out.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc

import bitldp
import numpy as np
from _table import table
from bitldp.federated import Simulated, UpdateCodec, simulate
from keep import cpu_name, keep

COORDINATES = 100
GOALS = {100_000: 2.0, 1_000_000: 20.0}
MECHANISMS = {
    "CrossPolytope": lambda size: bitldp.CrossPolytope(size, epsilon=4.0),
    "HypercubePrivUnit": lambda size: bitldp.HypercubePrivUnit(size, epsilon=4.0),
    "Duchi": lambda size: bitldp.Duchi(epsilon=4.0, features=size),
    "Piecewise, sampled": lambda size: bitldp.Piecewise(epsilon=4.0, features=size, spend="sample"),
}
WIDE, WIDE_CLIENTS, WIDE_GOAL = 100_000, 10_000, 60.0
_WIDE_ROWS = np.random.default_rng(1).normal(scale=0.002, size=(16, WIDE))
_ROWS = np.random.default_rng(1).normal(scale=0.05, size=(8192, COORDINATES))
_MEMORY = 64  # megabytes of a round, whatever the number of clients


def updates(start: int, stop: int) -> np.ndarray:
    """Return updates of clients, the same rows again and again."""
    return _ROWS.take(range(start, stop), axis=0, mode="wrap")


def round_of(codec: UpdateCodec, clients: int) -> Simulated:
    """Run one round on one thread, with fresh keys."""
    return simulate(codec, updates, clients=clients, threads=1)


def wide(start: int, stop: int) -> np.ndarray:
    """Return updates of as many coordinates as a small network has."""
    return _WIDE_ROWS.take(range(start, stop), axis=0, mode="wrap")


def wide_rounds() -> tuple[list[list[str]], list[str], dict[str, dict[str, float]]]:
    """Measure rounds of long updates: a table, what missed its goal, and the figures."""
    rows, missed, figures = [["mechanism", "clients", "seconds", "of the core", "goal", "peak MB"]], [], {}
    for name, mechanism in MECHANISMS.items():
        codec = UpdateCodec(mechanism, clip=1.0, norm="l2")
        peaks = []
        for clients in (WIDE_CLIENTS // 100, WIDE_CLIENTS // 10):
            tracemalloc.start()
            simulate(codec, wide, clients=clients, threads=1)
            peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
            tracemalloc.stop()
        start, busy = time.perf_counter(), time.process_time()
        simulate(codec, wide, clients=WIDE_CLIENTS, threads=1)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        rows.append(
            [name, f"{WIDE_CLIENTS:,}", f"{seconds:.1f}", f"{busy:.1f}", f"{WIDE_GOAL:g}", f"{peaks[1]:.0f}"]
        )
        figures[name] = {"seconds": round(seconds, 1), "busy": round(busy, 1), "peak_mb": round(peaks[1], 1)}
        if busy > WIDE_GOAL or peaks[1] > 1.1 * peaks[0]:
            missed.append(f"{name}, {WIDE:,} coordinates")
    return rows, missed, figures


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description="Rounds of many simulated clients.")
    parser.add_argument("--quick", action="store_true", help="10^5 clients alone")
    parser.add_argument("--wide", action="store_true", help="10^4 clients of 10^5 coordinates, and no others")
    parser.add_argument("--record", action="store_true", help="keep the figures of --wide")
    given = parser.parse_args()
    if given.wide:
        wide_table, missed, figures = wide_rounds()
        print(table(wide_table))
        if given.record:
            keep("cohorts.jsonl", {"cpu": cpu_name(), "coordinates": WIDE, "results": figures})
        return _ended(missed)
    quick = given.quick
    rows = [["mechanism", "clients", "seconds", "of the core", "goal", "bytes a client", "peak MB"]]
    missed = []
    for name, mechanism in MECHANISMS.items():
        codec = UpdateCodec(mechanism, clip=1.0, norm="l2")
        found = round_of(codec, 20_000)
        error = np.abs(found.value - updates(0, 20_000).mean(axis=0)) / found.stderr
        assert error.max() < 6.0, f"{name}: a mean is {error.max():.1f} standard errors off"
        tracemalloc.start()
        round_of(codec, 50_000)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        for clients, goal in GOALS.items():
            if quick and clients > min(GOALS):
                continue
            start, busy = time.perf_counter(), time.process_time()
            found = round_of(codec, clients)
            seconds, busy = time.perf_counter() - start, time.process_time() - busy
            each = found.bytes_up // clients
            times = (f"{seconds:.2f}", f"{busy:.2f}", f"{goal:g}")
            rows.append([name, f"{clients:,}", *times, f"{each}", f"{peak:.0f}"])
            if busy > goal or peak > _MEMORY:
                missed.append(f"{name}, {clients:,} clients")
    print(table(rows))
    return _ended(missed)


def _ended(missed: list[str]) -> int:
    """Return the exit status; say what missed its goal."""
    if missed:
        print(f"\nmissed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
