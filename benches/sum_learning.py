"""What one secure sum learns: runs `bitldp fl sum` with fresh keys, exits 1 below the goals.

    BITLDP_DATA=... python benches/sum_learning.py             # MNIST, 10 seeds of each budget
    BITLDP_DATA=... python benches/sum_learning.py --clients 6000 --record    # keep the figures
    BITLDP_DATA=... python benches/sum_learning.py --clients 6000 --mechanism means --record

A seed deals the records; every client's share has fresh random bits. The settings are those of the command,
which were chosen on Fashion-MNIST. A line is printed after each run, and kept at the end of each seed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict

from bitldp_papers import get
from keep import cpu_name, keep

GOALS = {
    60_000: {0.5: 0.93, 1.0: 0.94, 2.0: 0.945},
    6_000: {0.5: 0.88, 1.0: 0.90, 2.0: 0.92},
}


def accuracy(
    clients: int, epsilon: float, seed: int, data: str, threads: int, given: dict[str, str]
) -> tuple[float, float, float]:
    """Run once; return the accuracy, the central epsilon and the seconds."""
    system = get("sum")
    with tempfile.TemporaryDirectory() as folder:
        settings = system.configure(
            data=data, clients=clients, epsilon=epsilon, seed=seed, out=f"{folder}/run", **given
        )
        start = time.perf_counter()
        summary = system.run(settings, threads=threads)
        return summary.score, summary.privacy.record, time.perf_counter() - start


def main() -> int:
    """Run all budgets seed by seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="+", default=list(GOALS), choices=list(GOALS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--mechanism", choices=("means", "moments"), help="default: that of the command")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    more = {"mechanism": given.mechanism} if given.mechanism else {}
    scores: dict[tuple[int, float], list[float]] = defaultdict(list)
    for clients in given.clients:
        for seed in range(given.first, given.first + given.seeds):
            for epsilon in GOALS[clients]:
                score, spent, seconds = accuracy(clients, epsilon, seed, given.data, given.threads, more)
                assert spent <= epsilon
                scores[clients, epsilon].append(score)
                print(
                    f"{clients:6,} clients, epsilon {epsilon:g}, seed {seed}: {score:.4f}, {seconds:.0f} s",
                    flush=True,
                )
    below = False
    rows = []
    for (clients, epsilon), found in scores.items():
        mean, goal = statistics.fmean(found), GOALS[clients][epsilon]
        spread = statistics.stdev(found) if len(found) > 1 else float("nan")
        below |= given.data == "mnist" and not more and mean < goal
        print(
            f"{clients:6,} clients, epsilon {epsilon:g}: {mean:.4f} ± {spread:.4f} (goal {goal}), "
            f"{len(found)} seeds"
        )
        rows.append([clients, epsilon, round(mean, 4), round(spread, 4), len(found), goal])
    if given.record:
        keep("sum_learning.jsonl", {"cpu": cpu_name(), "data": given.data, **more, "rows": rows})
    return int(below)


if __name__ == "__main__":
    sys.exit(main())
