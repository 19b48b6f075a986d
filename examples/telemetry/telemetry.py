"""Five questions to a million users of an app, each answered under local differential privacy.

Run ``python telemetry.py --users 1000000``. Every user's answers are randomized before they leave; the server
sees reports alone. The table shows what it makes of them, beside the truth that it never sees.
"""

from __future__ import annotations

import argparse
import string
import time
from collections.abc import Iterator
from typing import NamedTuple

import bitldp
import numpy as np

PLANS = ["free", "family", "student", "company"]
SEARCHED = ["weather", "timetable", "recipes", "football", "lottery"]
LONGEST = 12


class Users(NamedTuple):
    """What each user knows, one entry a user."""

    minutes: np.ndarray  # in the app today
    plan: np.ndarray
    seconds: np.ndarray  # that the app took to start
    opened: np.ndarray  # minute of the day
    word: np.ndarray  # that was searched for most


class Answer(NamedTuple):
    """One line of the table."""

    question: str
    truth: float
    estimate: float
    stderr: float


def simulate(users: int, seed: int) -> Users:
    """Make users up."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(0, 26, (users, LONGEST), dtype=np.uint32) + ord("a")
    words = letters.view(f"U{LONGEST}")[:, 0].copy()  # most people search for something of their own
    popular = rng.choice(len(SEARCHED) + 1, users, p=[0.12, 0.1, 0.08, 0.06, 0.05, 0.59])
    for place, word in enumerate(SEARCHED):
        words[popular == place] = word
    evening = rng.random(users) < 0.7
    opened = np.where(evening, rng.normal(1200.0, 90.0, users), rng.normal(480.0, 60.0, users))
    return Users(
        minutes=rng.gamma(2.0, 20.0, users).clip(0.0, 240.0),
        plan=rng.choice(PLANS, users, p=[0.6, 0.25, 0.1, 0.05]),
        seconds=rng.lognormal(0.3, 0.6, users).clip(0.0, 10.0),
        opened=(opened % 1440).astype(np.int64),
        word=words,
    )


# What is public: the questions, their mechanisms, the ends of what is asked for. Each user answers all.
MECHANISMS = {
    "minutes": bitldp.Piecewise(epsilon=1.0, interval=(0.0, 240.0)),
    "plan": bitldp.BlockDesign(PLANS, epsilon=1.0),
    "seconds": bitldp.SquareWave(epsilon=1.0, interval=(0.0, 10.0)),
    "opened": bitldp.Hierarchy(1440, epsilon=1.0),
    "word": bitldp.HeavyHitters(epsilon=4.0, alphabet=string.ascii_lowercase, length=LONGEST),
}


def ask(users: Users, rng: int | None = None) -> dict[str, object]:
    """Return what leaves the users: one report a question. `rng` is for tests; leave it out."""
    return {name: each.randomize(getattr(users, name), rng=rng) for name, each in MECHANISMS.items()}


def answers(reports: dict[str, object], users: Users) -> Iterator[Answer]:
    """Yield what the reports say, beside the truth."""

    def mechanism(name: str):
        return MECHANISMS[name]

    mean = mechanism("minutes").estimate_mean(reports["minutes"])
    yield Answer("minutes in the app, mean", users.minutes.mean(), mean.value[0], mean.stderr[0])

    shares = mechanism("plan").estimate_frequencies(reports["plan"])
    for plan, value, stderr in zip(PLANS, shares.value, shares.stderr, strict=True):
        yield Answer(f"share of the plan {plan}", np.mean(users.plan == plan), value, stderr)

    quantiles = mechanism("seconds").estimate_quantile(reports["seconds"], [0.5, 0.95])
    truth = np.quantile(users.seconds, [0.5, 0.95])
    yield Answer("seconds to start, median", truth[0], quantiles.value[0], quantiles.stderr[0])
    yield Answer("seconds to start, 95 %", truth[1], quantiles.value[1], quantiles.stderr[1])

    evening = mechanism("opened").estimate_range(reports["opened"], 18 * 60, 22 * 60)
    inside = np.mean((users.opened >= 18 * 60) & (users.opened < 22 * 60))
    yield Answer("opened from 18 to 22 o'clock", inside, float(evening.value), float(evening.stderr))

    top = mechanism("word").estimate_top(reports["word"], len(SEARCHED))
    for word, value, stderr in zip(top.labels, top.value, top.stderr, strict=True):
        yield Answer(f"searched for: {word}", np.mean(users.word == word), value, stderr)


def main(arguments: list[str] | None = None) -> list[Answer]:
    """Simulate, ask, estimate, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1, help="of the simulated users")
    parser.add_argument("--reports-seed", type=int, help="of the reports: for tests only")
    options = parser.parse_args(arguments)

    users = simulate(options.users, options.seed)
    begin = time.perf_counter()
    reports = ask(users, options.reports_seed)
    asked = time.perf_counter()
    found = list(answers(reports, users))
    done = time.perf_counter()

    print(f"{'':34}{'truth':>9}  {'estimate':>9}")
    for each in found:
        print(f"{each.question:34}{each.truth:9.4f}  {each.estimate:9.4f} ± {each.stderr:.4f}")
    epsilon = sum(each.guarantee.record for each in MECHANISMS.values())
    bits = sum(each.report_bits for each in MECHANISMS.values())
    print(f"{options.users:,} users, {bits} bits each; epsilon {epsilon:.4g} for all answers of a user")
    print(f"{asked - begin:.1f} s to randomize, {done - asked:.1f} s to estimate")
    return found


if __name__ == "__main__":
    main()
