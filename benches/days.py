"""Thirty daily snapshots, memoized: what they cost, and whether answers cover; exits 1 off the goals.

    python benches/days.py                     # 20,000 people, 40 seeds
    python benches/days.py --seeds 4           # in a minute
    python benches/days.py --record            # keep the figures

Each day one person in a hundred moves to another city, and one has a score higher by a tenth: the cities'
shares stay, and the mean rises. With `most=3` and a store. It counts the different reports that each
person ever had, who went beyond the cap, and how often intervals of .95 hold the population's truth, day
by day. Days of a seed share most of their reports, so that the error of a coverage is the one between
seeds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import bitldp
import numpy as np
import pyarrow as pa
from _table import table as drawn
from bitldp.ledger import Ledger
from bitldp.tables import Column, ReleaseKey, TablePlan
from keep import cpu_name, keep
from numpy.typing import NDArray

PEOPLE, DAYS, CHANGING, MOST, EPSILON = 20_000, 30, 0.01, 3, 1.0
CITIES, SHARES = ("Paris", "Rome", "Oslo", "Bonn"), np.array([0.4, 0.3, 0.2, 0.1])
START, STEP = 0.5, 0.1  # the score begins below, and rises with each change
LEAST = 0.93


def plan(epsilon: float = EPSILON) -> TablePlan:
    """Return a plan of a category and a number, each at an epsilon."""
    return TablePlan(
        [
            Column(bitldp.GRR(len(CITIES), epsilon=epsilon), "city", categories=CITIES),
            Column(bitldp.Piecewise(epsilon=epsilon, interval=(0.0, 1.0)), "score"),
        ]
    )


class Seed(NamedTuple):
    """One series of snapshots: misses a day of the shares and of the mean, errors of the last day, counts."""

    held: dict[str, NDArray[np.bool_]]
    last: NDArray[np.float64]  # of the mean: estimate less truth, standard error, bias of the cap
    reports: int  # different ones of the person who had the most, city
    steady: int  # of those who never changed
    beyond: int  # people
    spent: float
    seconds: float


def series(seed: int, folder: Path, days: int = DAYS, people: int = PEOPLE) -> Seed:
    """Release the snapshots of a seed."""
    rng, own = np.random.default_rng(seed), plan()
    key = ReleaseKey(rng.bytes(32))
    city = rng.choice(len(CITIES), people, p=SHARES)
    score = rng.uniform(0.0, START, people)
    changes = np.zeros(people, int)
    moving = CHANGING / (1.0 - float((SHARES**2).sum()))  # some stay where they are
    held: dict[str, list[bool]] = {"share": [], "mean": []}
    seen = np.zeros((people, len(CITIES)), bool)
    first, steady = None, 0
    scores = [score]
    started, last = time.process_time(), np.zeros(3)
    with Ledger.open(folder / f"{seed}.ledger", budget=2 * MOST * EPSILON, create=True) as ledger:
        for day in range(days):
            if day:
                moved = rng.random(people) < moving
                city = np.where(moved, rng.choice(len(CITIES), people, p=SHARES), city)
                changed = rng.random(people) < CHANGING
                changes += changed
                score = np.where(changed, score + STEP, score)
                scores.append(score)
            release = own.release(
                key, record="id", snapshot=f"{day}", memoize=True, most=MOST, store=folder / f"{seed}.store"
            )
            release.charge(ledger)
            table = pa.table({"id": np.arange(people), "city": np.take(CITIES, city), "score": score})
            released = release(table)
            found = released["city"].to_numpy(zero_copy_only=False)
            for number, name in enumerate(CITIES):
                seen[:, number] |= found == name
            numbers = released["score"].to_numpy()
            first = numbers if first is None else first
            steady = max(steady, 1 + int((numbers != first)[changes == 0].any()))
            truth = dict(zip(CITIES, SHARES, strict=True)) | {None: START / 2 + STEP * CHANGING * day}
            for row in own.aggregate().update(released).estimate().to_pylist():
                held[row["what"]].append(row["low"] <= truth[row["category"]] <= row["high"])
                if row["what"] == "mean":
                    last = np.array([row["estimate"] - truth[None], row["stderr"], 0.0])
        spent = ledger.spent
    kept = np.where(changes >= MOST, np.take_along_axis(np.array(scores), _third(scores)[None], 0)[0], score)
    last[2] = float((kept - score).mean())
    return Seed(
        {name: np.array(each).reshape(days, -1) for name, each in held.items()},
        last,
        int(seen.sum(axis=1).max()),
        steady,
        int((changes >= MOST).sum()),
        spent,
        time.process_time() - started,
    )


def _third(scores: list[NDArray[np.float64]]) -> NDArray[np.int64]:
    """Return the day on which each person's last score within the cap was there."""
    steps = np.rint((np.array(scores) - scores[0]) / STEP).astype(int)
    day: NDArray[np.int64] = (steps < MOST).sum(axis=0) - 1
    return day


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [series(seed, Path(folder)) for seed in range(options.seeds)]
    rows, off = [["", "reached", "goal"]], []

    def judge(name: str, reached: str, goal: str, good: bool) -> None:
        rows.append([name, reached, goal])
        off.extend([name] * (not good))

    steady, most = max(each.steady for each in found), max(each.reports for each in found)
    spent, limit = max(each.spent for each in found), 2 * MOST * EPSILON
    judge("reports of one who never changed", f"{steady}", "1", steady == 1)
    judge("different reports of a person, at most", f"{most}", f"{MOST}", most <= MOST)
    judge("epsilon of a series, two columns", f"{spent:.6g}", f"{limit:g} for ever", spent <= limit)
    beyond = [each.beyond for each in found]
    judge(
        "people beyond the cap",
        f"{min(beyond)} to {max(beyond)}",
        "about 60",
        30 < sum(beyond) / len(beyond) < 90,
    )
    for name in ("share", "mean"):
        rates = np.array([each.held[name].mean() for each in found])
        error = float(rates.std(ddof=1) / len(rates) ** 0.5) if len(rates) > 1 else 1.0
        judge(
            f"coverage, each {name} and day ({len(rates)} series)",
            f"{rates.mean():.3f} ± {error:.3f}",
            f"{LEAST} or more",
            rates.mean() + 2 * error >= LEAST,
        )
    last = np.array([each.last for each in found])
    worst = float(np.abs(last[:, 2] / last[:, 1]).max())
    judge(
        "bias of the cap in a mean, last day, of its standard error", f"{worst:.3f}", "below 0.5", worst < 0.5
    )
    middle = (
        float(last[:, 0].mean() / (last[:, 0].std(ddof=1) / len(found) ** 0.5)) if len(found) > 1 else 0.0
    )
    judge(
        "error of the last mean, of its own error over series", f"{middle:+.2f}", "below 4", abs(middle) < 4
    )
    fresh = plan(MOST * EPSILON / DAYS)
    table = pa.table({"city": ["Rome"] * PEOPLE, "score": [0.25] * PEOPLE})
    wide = fresh.aggregate().update(fresh.release()(table)).estimate()["stderr"].to_pylist()[-1]
    rows.append(["standard error of a mean", f"{last[:, 1].mean():.4f}", f"fresh each day: {wide:.4f}"])
    rows.append(["seconds of a series", f"{np.mean([each.seconds for each in found]):.1f}", ""])
    print(drawn(rows))
    print(cpu_name())
    if options.record and not off:
        keep("days.jsonl", {"cpu": cpu_name(), "seeds": options.seeds, "rows": rows[1:]})
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
