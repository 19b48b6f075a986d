"""How often intervals of answers about several columns hold the truth: prints a table, exits 1 off the goals.

    BITLDP_DATA=... python benches/answers.py             # Adult and Bank, 100 releases or more of each size
    BITLDP_DATA=... python benches/answers.py --only cov  # questions with this in their names
    BITLDP_DATA=... python benches/answers.py --record    # keep the figures

The population is the data set. Each release is of records drawn from it, so that the truth is known; the
answers of a release are about the same reports, and all kinds of question are asked of each. A kind covers
at least .93 of its answers, and of large samples, in groups of a hundredth of them or more, .97 at most (but
quantiles, whose intervals end at points). The mean error of each answer of large groups, over the releases of
all records, is within 4 of its standard errors. Where all intervals of a question hold at once, a question
counts as one answer.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from _answers_records import asked_of, plans_of
from _table import table as drawn
from bitldp.tables import Column, ReleasedTable, TableAnswer, TablePlan
from keep import cpu_name, keep

LEAST, MOST = 0.93, 0.97
LARGE, SHARE = (
    20_000,
    0.01,
)  # records of a sample, and share of a group, from which on an interval is judged for width
FAR = 4.0  # standard errors
WIDE = ("quantile", "at once", "two inputs")  # whose intervals end at points, or often are none
AT_ONCE = ("two-way table", "mean by a category", "histogram by a category", "differences of groups")
SIZES = {0: 2, 2_000: 4, 200: 6, 20: 6}  # records (0: as many as the data set has), and how often releases
ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation", "relationship"),
    *("race", "sex", "gain", "loss", "hours", "country", "income"),
)

Asked = Iterator[tuple[str, Callable[[], TableAnswer], Callable[[int, dict[str, Any]], tuple[float, float]]]]


def adult(root: Path) -> pa.Table:
    """Return the training part of Adult."""
    text = gzip.decompress((root / "adult" / "adult.data.gz").read_bytes())
    read = pyarrow.csv.ReadOptions(column_names=ADULT)
    table = pyarrow.csv.read_csv(pa.BufferReader(text), read_options=read)
    return pa.table(
        {
            name: pc.utf8_trim_whitespace(table[name])
            if pa.types.is_string(table[name].type)
            else table[name]
            for name in ("age", "hours", "education", "race", "sex", "income")
        }
    )


def bank(root: Path) -> pa.Table:
    """Return Bank Marketing."""
    text = gzip.decompress((root / "bank_marketing" / "bank-full.csv.gz").read_bytes())
    table = pyarrow.csv.read_csv(pa.BufferReader(text))
    duration = np.clip(table["duration"].to_numpy(), 0, 1_000)  # as the interval clips them
    place = table.column_names.index("duration")
    table = table.set_column(place, "duration", pa.array(duration))
    return table.select(["age", "duration", "job", "education", "marital", "y"])


def listed(table: pa.Table, name: str) -> list[str]:
    """Return the categories of a column: those of a public data set."""
    return sorted(pc.unique(table[name]).to_pylist())


def plans(table: pa.Table, which: str) -> tuple[TablePlan, dict[str, str]]:
    """Return a plan, and which column plays which part."""
    names = (
        {
            "points": "age",
            "number": "hours",
            "many": "education",
            "few": "sex",
            "two": "income",
            "rare": "race",
        }
        if which == "adult"
        else {
            "points": "age",
            "number": "duration",
            "many": "job",
            "few": "marital",
            "two": "y",
            "rare": "education",
        }
    )
    interval = (0.0, 100.0) if which == "adult" else (0.0, 1_000.0)
    grr = [
        Column(bitldp.GRR(len(listed(table, each)), epsilon=2.0), each, categories=listed(table, each))
        for each in (names["few"], names["two"], names["rare"])
    ]
    many = listed(table, names["many"])
    return (
        TablePlan(
            [
                Column(bitldp.Piecewise(epsilon=2.0, interval=interval), names["number"]),
                Column(bitldp.Piecewise(epsilon=4.0, interval=(0.0, 1.0)), "second"),
                Column(bitldp.GRR(16, epsilon=3.0), names["points"], interval=(15.0, 90.0)),
                Column(bitldp.OUE(len(many), epsilon=2.0), names["many"], categories=many),
                *grr,
            ],
            keep=["part", "date"],
        ),
        names,
    )


class Truths:
    """Truths of a data set.

    Parameters
    ----------
    people : pyarrow.Table
    names : dict of str
        Which column plays which part.
    """

    def __init__(self, people: pa.Table, names: dict[str, str]) -> None:
        self.columns = {name: np.asarray(people[name].to_pylist()) for name in people.column_names}
        self.columns["date"] = np.asarray(people["date"])
        self.names, self.n = names, people.num_rows
        self.fits = facts(self.columns, names)

    def inside(self, row: dict[str, Any], by: tuple[str, ...]) -> Any:
        """Return which records are in the categories of a row."""
        kept = np.ones(self.n, bool)
        for name in by:
            kept &= self.columns[name] == row[name]
        return kept


def asked(released: Any, people: pa.Table, truths: Truths) -> Asked:
    """Yield each kind of question, its answer, and a row's truth and the share of records that it is of."""
    columns, inside = truths.columns, truths.inside
    point, hours, many, few, two, rare = truths.names.values()

    def mean_by(*by: str) -> Callable[[int, dict[str, Any]], tuple[float, float]]:
        return lambda size, row: (columns[hours][inside(row, by)].mean(), inside(row, by).mean())

    def cell(*by: str) -> Callable[[int, dict[str, Any]], tuple[float, float]]:
        return lambda size, row: (inside(row, by).mean(), inside(row, by).mean())

    yield "two-way table", lambda: released.table(few, two), cell(few, two)
    yield "two-way table, rare cells", lambda: released.table(many, rare), cell(many, rare)
    yield "three-way table", lambda: released.table(few, two, rare), cell(few, two, rare)
    yield "table with a kept column", lambda: released.table("part", rare), cell("part", rare)
    yield "mean by a category", lambda: released.mean(hours, by=two), mean_by(two)
    yield "mean by a category", lambda: released.mean(hours, by=few), mean_by(few)
    yield "mean by a category", lambda: released.mean(hours, by=many), mean_by(many)
    yield "mean by a category", lambda: released.mean(hours, by=rare), mean_by(rare)
    yield "mean by two", lambda: released.mean(hours, by=(few, two)), mean_by(few, two)
    yield "mean by kept and released", lambda: released.mean(hours, by=("part", two)), mean_by("part", two)
    yield (
        "total by a category",
        lambda: released.total(hours, by=few),
        lambda size, row: (size * (columns[hours] * inside(row, (few,))).mean(), inside(row, (few,)).mean()),
    )
    yield (
        "share by a category",
        lambda: released.share(two, by=many),
        lambda size, row: (inside(row, (two,))[inside(row, (many,))].mean(), inside(row, (many,)).mean()),
    )
    yield (
        "ratio of two means",
        lambda: released.ratio(hours, "second", by=few),
        lambda size, row: (
            columns[hours][inside(row, (few,))].mean() / columns["second"][inside(row, (few,))].mean(),
            inside(row, (few,)).mean(),
        ),
    )
    yield (
        "share below, by a category",
        lambda: released.cdf(point, [30.0, 45.0, 60.0], by=two),
        lambda size, row: (
            (np.rint((columns[point][inside(row, (two,))] - 15.0) / 5.0) * 5.0 + 15.0 <= row["at"]).mean(),
            inside(row, (two,)).mean(),
        ),
    )

    def quantile(*by: str) -> Callable[[int, dict[str, Any]], tuple[float, float]]:
        def truth(size: int, row: dict[str, Any]) -> tuple[float, float]:
            own = inside(row, by)
            return float(np.quantile(columns[point][own], row["q"], method="inverted_cdf")), own.mean()

        return truth

    shares = [0.1, 0.25, 0.5, 0.75, 0.9]
    yield "quantile", lambda: released.quantile(point, shares), quantile()
    yield "quantile by a category", lambda: released.quantile(point, shares, by=two), quantile(two)
    slopes, correlation = truths.fits["slopes"], truths.fits["correlation"]
    yield (
        "coefficient",
        lambda: released.regress(hours, ["second", two]),
        lambda size, row: (slopes[row["term"]], 1.0),
    )
    yield "correlation", lambda: released.correlation(hours, "second"), lambda size, row: (correlation, 1.0)
    labels = listed(people, few)[:2]
    yield (
        "difference of means",
        lambda: released.mean(hours, by=few).difference({few: labels[0]}, {few: labels[1]}),
        lambda size, row: (mean_by(few)(0, {few: labels[0]})[0] - mean_by(few)(0, {few: labels[1]})[0], 1.0),
    )


def narrowed(released: Any, people: pa.Table, truths: Truths) -> Asked:
    """Yield questions about some of the records, and what else is made of cells, as `asked` does."""
    columns, inside = truths.columns, truths.inside
    point, hours, _, few, two, rare = truths.names.values()
    odds, upper = truths.fits["odds"], listed(people, two)[1]
    held = columns[two] == upper
    yield (
        "mean where a category holds",
        lambda: released.mean(hours, where={two: upper}),
        lambda size, row: (columns[hours][held].mean(), held.mean()),
    )
    some = listed(people, rare)[1:]
    yield (
        "mean where one of several holds, by a category",
        lambda: released.mean(hours, by=few, where={rare: some}),
        lambda size, row: (
            columns[hours][inside(row, (few,)) & np.isin(columns[rare], some)].mean(),
            (inside(row, (few,)) & np.isin(columns[rare], some)).mean(),
        ),
    )
    young = columns[point] < 47.5  # the points below 50 are those nearest to it
    yield (
        "table where a number is small",
        lambda: released.table(few, two, where=[(point, "<", 50.0)]),
        lambda size, row: (inside(row, (few, two))[young].mean(), (inside(row, (few, two)) & young).mean()),
    )
    late = columns["date"] >= np.datetime64("2026-02-01")
    yield (
        "mean by a category, of some days",
        lambda: released.mean(hours, by=two, where=[("date", ">=", "2026-02-01")]),
        lambda size, row: (
            columns[hours][inside(row, (two,)) & late].mean(),
            (inside(row, (two,)) & late).mean(),
        ),
    )
    months = columns["date"].astype("datetime64[M]")

    def in_month(size: int, row: dict[str, Any]) -> tuple[float, float]:
        own = inside(row, (two,)) & (months == np.datetime64(row["date"], "M"))
        return columns[hours][own].mean(), own.mean()

    yield (
        "mean by months and a category",
        lambda: released.mean(hours, by=("date", two), every="month"),
        in_month,
    )

    def apart(size: int, row: dict[str, Any]) -> tuple[float, float]:
        own, base = columns[rare] == row[rare].removesuffix(f" - {most}"), columns[rare] == most
        return columns[hours][own].mean() - columns[hours][base].mean(), min(own.mean(), base.mean())

    most = max(listed(people, rare), key=lambda each: (columns[rare] == each).sum())
    yield "differences of groups", lambda: released.difference(hours, rare, most), apart
    nearest = np.rint((columns[point] - 15.0) / 5.0) * 5.0 + 15.0

    def between(size: int, row: dict[str, Any]) -> tuple[float, float]:
        own = inside(row, (two,))
        met = (nearest >= row["from"]) & ((nearest < row["to"]) | (row["to"] == 90.0))
        return met[own].mean(), own.mean()

    yield "histogram by a category", lambda: released.histogram(point, 5, by=two), between
    alone = truths.fits["alone"]
    yield (
        "log odds",
        lambda: released.logistic(two, few),
        lambda size, row: (alone[row["term"], row["category"]], share_of(columns, row)),
    )
    yield (
        "log odds, two inputs",
        lambda: released.logistic(two, (few, rare)),
        lambda size, row: (odds[row["term"], row["category"]], share_of(columns, row)),
    )
    spread = float(np.cov(columns[hours], columns["second"], bias=True)[0, 1])
    yield "covariance", lambda: released.covariance(hours, "second"), lambda size, row: (spread, 1.0)


def share_of(columns: dict[str, Any], row: dict[str, Any]) -> float:
    """Return the share of records in the category of a coefficient."""
    return 1.0 if row["category"] is None else float((columns[row["term"]] == row["category"]).mean())


def facts(columns: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Return the coefficients and the correlation of all records."""
    _, hours, _, few, two, rare = names.values()
    upper = columns[two] == np.unique(columns[two])[1]
    fit = np.stack([np.ones(len(upper)), columns["second"], upper], axis=1)
    slopes = np.linalg.lstsq(fit, columns[hours], rcond=None)[0]
    return {
        "slopes": dict(zip(("intercept", "second", two), slopes, strict=True)),
        "correlation": float(np.corrcoef(columns[hours], columns["second"])[0, 1]),
        "odds": log_odds(upper, columns, (few, rare)),
        "alone": log_odds(upper, columns, (few,)),
    }


def log_odds(upper: Any, columns: dict[str, Any], inputs: tuple[str, ...]) -> dict[Any, float]:
    """Return the coefficients of a logistic fit of all records, by Newton's steps."""
    terms = [("intercept", None), *((n, label) for n in inputs for label in np.unique(columns[n])[1:])]
    design = np.stack([np.ones(len(upper)), *(columns[n] == label for n, label in terms[1:])], axis=1)
    odds = np.zeros(len(terms))
    for _ in range(30):
        chances = 1.0 / (1.0 + np.exp(-design @ odds))
        information = (design.T * (chances * (1.0 - chances))) @ design
        odds += np.linalg.solve(information, design.T @ (upper - chances))
    return dict(zip(terms, odds, strict=True))


Key = tuple[str, int, bool]


@dataclass
class Found:
    """Answers and covering intervals by kind, size of the sample and whether the group is large; and errors.

    Attributes
    ----------
    counts : dict of Key to list of int
    errors : dict of (str, ...) to list of float
        Of each answer about a large group, from all records.
    """

    counts: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    errors: dict[tuple[Any, ...], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, key: Key, held: bool) -> None:
        """Count an answer."""
        self.counts[key][0] += 1
        self.counts[key][1] += held

    def farthest(self, times: int) -> dict[str, tuple[int, float]]:
        """Return how many answers of each kind there are, and the largest mean error in standard errors.

        Answers count that every one of so many releases gave: the others depend on what they are.
        """
        result: dict[str, tuple[int, float]] = {}
        for (kind, *_), each in self.errors.items():
            if len(each) < times:
                continue
            far = abs(np.mean(each)) / (np.std(each, ddof=1) / len(each) ** 0.5)
            before = result.get(kind, (0, 0.0))
            result[kind] = before[0] + 1, max(before[1], float(far))
        return result


class Later:
    """A released table that is made when it is asked."""

    def __init__(self, plan: TablePlan, sample: pa.Table) -> None:
        self.plan, self.sample = plan, sample
        self.made: ReleasedTable | None = None

    def __getattr__(self, name: str) -> Any:
        if self.made is None:
            self.made = ReleasedTable(self.plan, self.plan.release()(self.sample))
        return getattr(self.made, name)


def covered(name: str, people: pa.Table, releases: int, only: str, found: Found) -> None:
    """Ask all questions of releases of a data set, and count."""
    plan, names = plans(people, name)
    people = people.append_column("second", pa.array(second_of(people, names)))
    people = people.append_column("part", pa.array(np.arange(people.num_rows) % 10 == 0).cast(pa.int64()))
    days = np.random.default_rng(6).integers(0, 90, people.num_rows)
    people = people.append_column("date", pa.array(np.datetime64("2026-01-01") + days))
    truths, known = Truths(people, names), dict[Any, tuple[float, float]]()
    interval = (0.0, 100.0) if name == "adult" else (0.0, 1_000.0)
    records_of = plans_of(people, names, interval)
    for size, times in SIZES.items():
        records = size or people.num_rows
        for seed in range(releases * times):
            rows = np.random.default_rng(seed).integers(0, people.num_rows, records)
            sample = people.take(rows)
            released = Later(plan, sample)
            for kind, ask, truth_of in chain(
                asked(released, people, truths),
                narrowed(released, people, truths),
                *(asked_of(each, Later(own, sample), people, truths) for each, own in records_of.items()),
            ):
                if only not in kind:
                    continue
                try:
                    answer = ask()
                except ValueError:  # there are too few records to choose words and to tell their shares
                    if "words" not in kind:
                        raise
                    continue
                keys = {each: column.to_pylist() for each, column in answer.keys.items()}
                low, high = answer.interval
                widest = replace(answer, together="sidak").interval
                at_once = True
                for i in range(len(answer)):
                    row = {each: values[i] for each, values in keys.items()}
                    at = (kind, records, (*answer.keys, answer.what, *row.values()))
                    if at not in known:
                        known[at] = truth_of(records, row)
                    truth, share = known[at]
                    if "log odds" in kind and np.isnan(low[i]):  # says that there is no interval
                        found.add((kind, size, share >= SHARE), held=True)
                        continue
                    if np.isnan(truth) or np.isnan(low[i]):
                        continue
                    found.add((kind, size, share >= SHARE), bool(low[i] <= truth <= high[i]))
                    at_once &= bool(widest[0][i] <= truth <= widest[1][i])
                    if not size and share >= SHARE and np.isfinite(answer.value[i]):
                        found.errors[(kind, name, *at)].append(float(answer.value[i] - truth))
                if kind in AT_ONCE:
                    found.add((f"{kind}, all at once", size, True), at_once)


def second_of(people: pa.Table, names: dict[str, str]) -> Any:
    """Return another number of [0, 1], which depends on the first one and on a category."""
    rng = np.random.default_rng(5)
    hours = people[names["number"]].to_numpy() / 100.0
    return np.clip(rng.normal(0.4, 0.2, people.num_rows) + 0.1 * np.clip(hours, 0.0, 2.0), 0.0, 1.0)


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--releases", type=int, default=50)
    parser.add_argument("--only", default="", help="part of the names of the questions to ask")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    root = os.environ.get("BITLDP_DATA")
    if not root:
        print(
            "answers: BITLDP_DATA must name the folder of the data sets; nothing was measured",
            file=sys.stderr,
        )
        return 2
    started = time.time()
    found = Found()
    for name, people in (("adult", adult(Path(root))), ("bank", bank(Path(root)))):
        covered(name, people, options.releases, options.only, found)
    rows, off = [], []
    for (kind, size, large), (answers, held) in sorted(
        found.counts.items(), key=lambda each: (each[0][0], -each[0][1])
    ):
        share = held / answers
        deviation = (share * (1.0 - share) / answers) ** 0.5
        most = MOST if not size and large and not any(each in kind for each in WIDE) else 1.0
        bad = share + 2.0 * deviation < LEAST or share - 2.0 * deviation > most
        where = "all" if size == 0 else f"{size:,}"
        rows.append(
            [
                kind,
                where,
                "1 % or more" if large else "less",
                f"{answers:,}",
                f"{share:.3f}",
                "off" if bad else "",
            ]
        )
        off += [f"{kind}, {where}"] * bad
    print(drawn([["question", "records", "group", "answers", "covered", ""], *rows]))
    errors = [
        [kind, f"{answers:,}", f"{far:.2f}", "off" if far > FAR and "quantile" not in kind else ""]
        for kind, (answers, far) in sorted(found.farthest(SIZES[0] * options.releases).items())
    ]
    off += [f"{kind}, bias" for kind, _, _, bad in errors if bad]
    print(drawn([["question", "answers", "largest mean error, in standard errors", ""], *errors]))
    print(f"{time.time() - started:,.0f} seconds, {cpu_name()}")
    if options.record:
        figures = {"rows": rows, "errors": errors, "releases": options.releases, "only": options.only}
        keep("answers.jsonl", {"cpu": cpu_name(), **figures})
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
