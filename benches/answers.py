"""How often intervals of answers about several columns hold the truth: prints a table, exits 1 off the goals.

    BITLDP_DATA=... python benches/answers.py             # Adult and Bank, 100 releases or more of each size
    BITLDP_DATA=... python benches/answers.py --record    # keep the figures

The population is the data set. Each release is of records drawn from it, so that the truth is known; the
answers of a release are about the same reports, and all kinds of question are asked of each. A kind covers
at least .93 of its answers, and of large samples, in groups of a hundredth of them or more, .97 at most (but
quantiles, whose intervals end at points).
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from _table import table as drawn
from bitldp.tables import Column, ReleasedTable, TableAnswer, TablePlan
from keep import cpu_name, keep

LEAST, MOST = 0.93, 0.97
LARGE, SHARE = (
    20_000,
    0.01,
)  # records of a sample, and share of a group, from which on an interval is judged for width
SIZES = {0: 2, 2_000: 4, 200: 6, 20: 6}  # records (0: as many as the data set has), and how often releases
ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation", "relationship"),
    *("race", "sex", "gain", "loss", "hours", "country", "income"),
)

Asked = Iterator[tuple[str, TableAnswer, Callable[[int, dict[str, Any]], tuple[float, float]]]]


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
            keep=["part"],
        ),
        names,
    )


def asked(released: ReleasedTable, people: pa.Table, names: dict[str, str]) -> Asked:
    """Yield each kind of question, its answer, and a row's truth and the share of records that it is of."""
    n = people.num_rows
    columns = {name: np.asarray(people[name].to_pylist()) for name in people.column_names}
    point, hours, many, few, two, rare = names.values()

    def inside(row: dict[str, Any], by: tuple[str, ...]) -> Any:
        kept = np.ones(n, bool)
        for name in by:
            kept &= columns[name] == row[name]
        return kept

    def mean_by(*by: str) -> Callable[[int, dict[str, Any]], tuple[float, float]]:
        return lambda size, row: (columns[hours][inside(row, by)].mean(), inside(row, by).mean())

    def cell(*by: str) -> Callable[[int, dict[str, Any]], tuple[float, float]]:
        return lambda size, row: (inside(row, by).mean(), inside(row, by).mean())

    yield "two-way table", released.table(few, two), cell(few, two)
    yield "two-way table, rare cells", released.table(many, rare), cell(many, rare)
    yield "three-way table", released.table(few, two, rare), cell(few, two, rare)
    yield "table with a kept column", released.table("part", rare), cell("part", rare)
    yield "mean by a category", released.mean(hours, by=two), mean_by(two)
    yield "mean by a category", released.mean(hours, by=few), mean_by(few)
    yield "mean by a category", released.mean(hours, by=many), mean_by(many)
    yield "mean by a category", released.mean(hours, by=rare), mean_by(rare)
    yield "mean by two", released.mean(hours, by=(few, two)), mean_by(few, two)
    yield "mean by kept and released", released.mean(hours, by=("part", two)), mean_by("part", two)
    yield (
        "total by a category",
        released.total(hours, by=few),
        lambda size, row: (size * (columns[hours] * inside(row, (few,))).mean(), inside(row, (few,)).mean()),
    )
    yield (
        "share by a category",
        released.share(two, by=many),
        lambda size, row: (inside(row, (two,))[inside(row, (many,))].mean(), inside(row, (many,)).mean()),
    )
    yield (
        "ratio of two means",
        released.ratio(hours, "second", by=few),
        lambda size, row: (
            columns[hours][inside(row, (few,))].mean() / columns["second"][inside(row, (few,))].mean(),
            inside(row, (few,)).mean(),
        ),
    )
    yield (
        "share below, by a category",
        released.cdf(point, [30.0, 45.0, 60.0], by=two),
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
    yield "quantile", released.quantile(point, shares), quantile()
    yield "quantile by a category", released.quantile(point, shares, by=two), quantile(two)
    fit = np.stack([np.ones(n), columns["second"], columns[two] == listed(people, two)[1]], axis=1)
    slopes = dict(
        zip(("intercept", "second", two), np.linalg.lstsq(fit, columns[hours], rcond=None)[0], strict=True)
    )
    yield (
        "coefficient",
        released.regress(hours, ["second", two]),
        lambda size, row: (slopes[row["term"]], 1.0),
    )
    correlation = float(np.corrcoef(columns[hours], columns["second"])[0, 1])
    yield "correlation", released.correlation(hours, "second"), lambda size, row: (correlation, 1.0)
    means = released.mean(hours, by=few)
    labels = listed(people, few)[:2]
    yield (
        "difference of means",
        means.difference({few: labels[0]}, {few: labels[1]}),
        lambda size, row: (mean_by(few)(0, {few: labels[0]})[0] - mean_by(few)(0, {few: labels[1]})[0], 1.0),
    )


def covered(name: str, people: pa.Table, releases: int) -> dict[tuple[str, int, bool], list[int]]:
    """Return answers and covering intervals by kind, size of the sample, and whether the group is large."""
    plan, names = plans(people, name)
    people = people.append_column("second", pa.array(second_of(people, names)))
    people = people.append_column("part", pa.array(np.arange(people.num_rows) % 10 == 0).cast(pa.int64()))
    release = plan.release()
    found: dict[tuple[str, int, bool], list[int]] = defaultdict(lambda: [0, 0])
    truths: dict[tuple[str, int, tuple[Any, ...]], tuple[float, float]] = {}
    for size, times in SIZES.items():
        records = size or people.num_rows
        for seed in range(releases * times):
            rows = np.random.default_rng(seed).integers(0, people.num_rows, records)
            for kind, answer, truth_of in asked(
                ReleasedTable(plan, release(people.take(rows))), people, names
            ):
                keys = {each: column.to_pylist() for each, column in answer.keys.items()}
                low, high = answer.interval
                for i in range(len(answer)):
                    row = {each: values[i] for each, values in keys.items()}
                    at = (kind, records, (*answer.keys, answer.what, *row.values()))
                    if at not in truths:
                        truths[at] = truth_of(records, row)
                    truth, share = truths[at]
                    if np.isnan(truth) or np.isnan(low[i]):
                        continue
                    counts = found[kind, size, share >= SHARE]
                    counts[0] += 1
                    counts[1] += bool(low[i] <= truth <= high[i])
    return found


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
    total: dict[tuple[str, int, bool], list[int]] = defaultdict(lambda: [0, 0])
    for name, people in (("adult", adult(Path(root))), ("bank", bank(Path(root)))):
        for key, (answers, held) in covered(name, people, options.releases).items():
            total[key][0] += answers
            total[key][1] += held
    rows, off = [], []
    for (kind, size, large), (answers, held) in sorted(
        total.items(), key=lambda each: (each[0][0], -each[0][1])
    ):
        share = held / answers
        deviation = (share * (1.0 - share) / answers) ** 0.5
        most = MOST if not size and large and "quantile" not in kind else 1.0
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
    print(f"{time.time() - started:,.0f} seconds, {cpu_name()}")
    if options.record:
        keep("answers.jsonl", {"cpu": cpu_name(), "rows": rows, "releases": options.releases})
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
