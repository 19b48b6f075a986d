"""What one report of each client teaches: runs `bitldp fl honest` with fresh keys, exits 1 below the goals.

    BITLDP_DATA=... python benches/honest_learning.py --record                   # all sets, both learners
    BITLDP_DATA=... python benches/honest_learning.py --data mnist --learner pool
    python benches/honest_learning.py --data letters.csv --label letter          # anybody's file

A seed deals the records and draws the pool from the test records, which are then not scored; every client's
report has fresh random bits, so that a run cannot be repeated to the digit. The settings are the defaults of
the command. A line is printed after each run; a set's scores are kept when it is done.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from bitldp_papers import get
from bitldp_papers.data import SUFFIXES, load, read, using
from keep import cpu_name, keep

POOL = "test:2000"
LEARNERS = {"pool": {"pool": POOL}, "rounds": {}, "noiseless": {"mechanism": "noiseless"}}
FEATURES = {"mnist": "edges", "fashion_mnist": "edges"}  # of any other set: as they are given
SETS = ("mnist", "fashion_mnist", "ag_news")
#: Means over ten seeds.
GOALS = {
    ("mnist", "pool"): {1.0: 0.92, 2.0: 0.935, 4.0: 0.927, 8.0: 0.941},
    ("fashion_mnist", "pool"): {1.0: 0.69, 2.0: 0.735, 4.0: 0.76, 8.0: 0.797},
    ("ag_news", "pool"): {1.0: 0.80},
}
EPSILONS = {"pool": (1.0, 2.0, 4.0, 8.0), "rounds": (1.0, 2.0, 4.0, 8.0), "noiseless": (1.0,)}


def run(data: str, learner: str, epsilon: float, seed: int, threads: int) -> dict[str, Any]:
    """Run once; return the accuracy, the epsilons of a client and of one shuffle, and the seconds."""
    system = get("honest")
    with tempfile.TemporaryDirectory() as folder:
        settings = system.configure(
            data=data,
            clients=min(60_000, len(load(data).train)),
            features=FEATURES.get(data, "given"),
            epsilon=epsilon,
            seed=seed,
            out=f"{folder}/run",
            **LEARNERS[learner],
        )
        start = time.perf_counter()
        summary = system.run(settings, threads=threads)
    return {
        "score": summary.score,
        "exact": summary.privacy.record,
        "shuffled": summary.privacy.shuffled,
        "bytes": summary.bytes_up / settings.clients,
        "clients": settings.clients,
        "seconds": time.perf_counter() - start,
    }


def learned(data: str, learner: str, given: argparse.Namespace) -> bool:
    """Run all budgets of a set seed by seed, print and keep them; return whether all reach the goals."""
    seeds = range(given.first, given.first + given.seeds)
    found: dict[float, list[dict[str, Any]]] = {epsilon: [] for epsilon in EPSILONS[learner]}
    for seed in seeds:
        for epsilon, runs in found.items():
            one = run(data, learner, epsilon, seed, given.threads)
            assert learner == "noiseless" or one["exact"] <= epsilon
            runs.append(one)
            what = f"{data}, {learner}, epsilon {epsilon:g}, seed {seed}"
            print(f"{what}: {one['score']:.4f}, {one['seconds']:.0f} s", flush=True)
    rows, goals, fine = [], GOALS.get((data, learner), {}), True
    for epsilon, runs in found.items():
        scores = [each["score"] for each in runs]
        low, middle, high = np.quantile(scores, (0.1, 0.5, 0.9))
        mean, goal = statistics.fmean(scores), goals.get(epsilon)
        fine = fine and (goal is None or mean >= goal)
        spread = f"median {middle:.4f}, from {low:.4f} to {high:.4f} (10 % and 90 %)"
        print(f"{data}, {learner}, epsilon {epsilon:g}: mean {mean:.4f}, {spread}, goal {goal}", flush=True)
        rows.append(
            {
                "epsilon": epsilon,
                "exact": runs[0]["exact"],
                "shuffled": runs[0]["shuffled"],
                "bytes": round(runs[0]["bytes"]),
                "scores": [round(each, 4) for each in scores],
                "goal": goal,
            }
        )
    if given.record:
        entry = {
            "cpu": cpu_name(),
            "command": f"python benches/honest_learning.py --data {data} --learner {learner} --record",
            "data": data,
            "learner": learner,
            "clients": next(iter(found.values()))[0]["clients"],
            "pool": POOL if learner == "pool" else None,
            "seeds": list(seeds),
            "rows": rows,
        }
        keep("honest_learning.jsonl", entry)
    return fine


def _all(data: str, given: argparse.Namespace) -> bool:
    """Run a set by all learners, whichever of them reach their goals."""
    reached = [learned(data, learner, given) for learner in given.learner]
    return all(reached)


def main() -> int:
    """Run all sets by all learners."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(SETS))
    parser.add_argument("--label", help="of a file")
    parser.add_argument("--ranges", help="of a file")
    parser.add_argument("--learner", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    fine = True
    for data in given.data:
        if data.endswith(SUFFIXES):
            with using(read(Path(data), label=given.label, ranges=given.ranges)) as name:
                fine &= _all(name, given)
        else:
            fine &= _all(data, given)
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
