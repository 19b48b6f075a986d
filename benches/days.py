"""Thirty daily snapshots, memoized: what they cost, and whether answers cover; exits 1 off the goals.

    python benches/days.py                             # 20,000 people: 40 series, and 2,000 last days
    python benches/days.py --seeds 4 --alone 100       # in a minute
    python benches/days.py --record                    # keep the figures

Each day one person in a hundred moves to another city, and one has a score higher by a tenth: the cities'
shares stay, and the mean rises. With `most=3` and a store. It counts the different reports that each
person ever had, who went beyond the cap, and what it costs.

How often intervals of .95 hold the population's truth is judged on last days of independent series: days of
one series share most of their reports, and so their errors, so that forty series of thirty days are hardly
more than forty answers. There the values that the cap leaves are released without a store, which would give
the same rows: this is looked at first.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import bitldp
import numpy as np
import pyarrow as pa
from _measure import require
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


class Day(NamedTuple):
    """State of all people on a day: what they hold, what a cap leaves of it, and how often the score rose."""

    city: NDArray[Any]
    score: NDArray[np.float64]
    capped_city: NDArray[Any]
    capped_score: NDArray[np.float64]
    changes: NDArray[np.int64]


def lives(rng: np.random.Generator, people: int) -> Iterator[Day]:
    """Yield the days of some people, without an end."""
    city = rng.choice(len(CITIES), people, p=SHARES)
    score = rng.uniform(0.0, START, people)
    moving = CHANGING / (1.0 - float((SHARES**2).sum()))  # some stay where they are
    changes, capped_score = np.zeros(people, int), score
    first = np.full((MOST, people), -1)  # cities that have a report, in their order
    first[0], had = city, np.ones(people, int)
    while True:
        capped_city = np.where((first == city).any(axis=0), city, first[-1])
        yield Day(city, score, capped_city, capped_score, changes)
        moved = rng.random(people) < moving
        city = np.where(moved, rng.choice(len(CITIES), people, p=SHARES), city)
        new = np.flatnonzero(~(first == city).any(axis=0) & (had < MOST))
        first[had[new], new] = city[new]
        had[new] += 1
        changed = rng.random(people) < CHANGING
        changes = changes + changed
        score = np.where(changed, score + STEP, score)
        capped_score = np.where(changes < MOST, score, capped_score)


def table_of(city: NDArray[Any], score: NDArray[np.float64]) -> pa.Table:
    """Return a snapshot."""
    return pa.table({"id": np.arange(len(city)), "city": np.take(CITIES, city), "score": score})


def truth_of(day: int) -> dict[str | None, float]:
    """Return the shares of the cities in the population on a day, and the mean of the score."""
    return dict(zip(CITIES, SHARES, strict=True)) | {None: START / 2 + STEP * CHANGING * day}


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
    held: dict[str, list[bool]] = {"share": [], "mean": []}
    seen = np.zeros((people, len(CITIES)), bool)
    first, steady = None, 0
    started, last = time.process_time(), np.zeros(3)
    with Ledger.open(folder / f"{seed}.ledger", budget=2 * MOST * EPSILON, create=True) as ledger:
        for day, now in enumerate(itertools.islice(lives(rng, people), days)):
            release = own.release(
                key, record="id", snapshot=f"{day}", memoize=True, most=MOST, store=folder / f"{seed}.store"
            )
            release.charge(ledger)
            released = release(table_of(now.city, now.score))
            found = released["city"].to_numpy(zero_copy_only=False)
            for number, name in enumerate(CITIES):
                seen[:, number] |= found == name
            numbers = released["score"].to_numpy()
            first = numbers if first is None else first
            steady = max(steady, 1 + int((numbers != first)[now.changes == 0].any()))
            truth = truth_of(day)
            for row in own.aggregate().update(released).estimate().to_pylist():
                held[row["what"]].append(row["low"] <= truth[row["category"]] <= row["high"])
                if row["what"] == "mean":
                    last = np.array([row["estimate"] - truth[None], row["stderr"], 0.0])
        spent = ledger.spent
    last[2] = float((now.capped_score - now.score).mean())
    return Seed(
        {name: np.array(each).reshape(days, -1) for name, each in held.items()},
        last,
        int(seen.sum(axis=1).max()),
        steady,
        int((now.changes >= MOST).sum()),
        spent,
        time.process_time() - started,
    )


def last_day(seed: int, own: TablePlan, people: int = PEOPLE) -> tuple[NDArray[np.bool_], bool]:
    """Return whether intervals of the last day of a series hold: those of the shares, and of the mean."""
    rng = np.random.default_rng([seed, 1])
    release = own.release(ReleaseKey(rng.bytes(32)), record="id", memoize=True)
    now = next(itertools.islice(lives(rng, people), DAYS - 1, None))
    counted = own.aggregate().update(release(table_of(now.capped_city, now.capped_score)))
    truth = truth_of(DAYS - 1)
    rows = counted.estimate().to_pylist()
    held = {row["category"]: bool(row["low"] <= truth[row["category"]] <= row["high"]) for row in rows}
    return np.array([held[name] for name in CITIES]), held[None]


def same_as_stored(own: TablePlan, folder: Path, people: int = 4_000) -> None:
    """Look whether a store sends, day by day, the reports of the values that the cap leaves."""
    key, beyond = ReleaseKey(bytes(range(32))), 0
    for day, now in enumerate(itertools.islice(lives(np.random.default_rng(0), people), DAYS)):
        given: dict[str, Any] = {"record": "id", "snapshot": f"{day}", "memoize": True}
        stored = own.release(key, most=MOST, store=folder / "same", **given)(table_of(now.city, now.score))
        alone = own.release(key, **given)(table_of(now.capped_city, now.capped_score))
        require(
            stored.replace_schema_metadata(None).equals(alone.replace_schema_metadata(None)),
            "a store sends other reports than those of the values that the cap leaves",
        )
        beyond = int((now.capped_score != now.score).sum())
    require(beyond > 0, "nobody went beyond the cap")


def _rate(shares: list[float]) -> tuple[float, float]:
    """Return the mean of what held in each series, and its standard error."""
    rates = np.array(shares)
    return float(rates.mean()), float(rates.std(ddof=1) / len(rates) ** 0.5) if len(rates) > 1 else 1.0


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--alone", type=int, default=2_000, help="series of which the last day alone counts")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    typed = plan().typed(table_of(np.zeros(1, int), np.zeros(1)), record="id")
    with tempfile.TemporaryDirectory() as folder:
        same_as_stored(typed, Path(folder))
        found = [series(seed, Path(folder)) for seed in range(options.seeds)]
    alone = [last_day(seed, typed) for seed in range(options.alone)]
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
    for place, name in enumerate(("share", "mean")):
        rate, error = _rate([float(np.mean(each[place])) for each in alone])
        judge(
            f"coverage, each {name} of the last day ({len(alone):,} series)",
            f"{rate:.3f} ± {error:.3f}",
            f"{LEAST} or more",
            rate + 2 * error >= LEAST,
        )
        rate, error = _rate([float(each.held[name].mean()) for each in found])
        rows.append(
            [
                f"coverage, each {name} and day ({len(found)} series)",
                f"{rate:.3f} ± {error:.3f}",
                "days share reports",
            ]
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
