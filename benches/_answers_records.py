"""Questions about columns of one report, ranges and words, for answers.py: plans, answers and truths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from bitldp.tables import Column, TableAnswer, TablePlan

__all__ = ["asked_of", "plans_of"]

Truth = Callable[[int, dict[str, Any]], tuple[float, float]]
Asked = Iterator[tuple[str, Callable[[], TableAnswer], Truth]]

_POINTS = 76
_SPAN = (15.0, 90.0)
_SHARES = [0.1, 0.25, 0.5, 0.75, 0.9]


def listed(people: pa.Table, name: str) -> list[str]:
    """Return the categories of a column: those of a public data set."""
    return sorted(pc.unique(people[name]).to_pylist())


def plans_of(people: pa.Table, names: dict[str, str], interval: tuple[float, float]) -> dict[str, TablePlan]:
    """Return plans by what they are about."""
    point, number, many, few, two, rare = names.values()
    spans = [interval, (0.0, 1.0)]

    def lists(*columns: str) -> list[list[str]]:
        return [listed(people, name) for name in columns]

    def sizes(*columns: str) -> list[int]:
        return [len(each) for each in lists(*columns)]

    letters = "".join(sorted(set("".join(listed(people, many)))))
    longest = max(map(len, listed(people, many)))
    mixed = {"categories": lists(few, two), "interval": spans}
    ordered = [
        Column(bitldp.Hierarchy(_POINTS, epsilon=2.0), point, interval=_SPAN),
        Column(bitldp.GRR(sizes(two)[0], epsilon=2.0), two, categories=lists(two)[0]),
        Column(bitldp.HeavyHitters(epsilon=4.0, alphabet=letters, length=longest, step=2), many),
    ]
    return {
        "cap": TablePlan(
            [
                Column(
                    bitldp.RecordCap(sizes(few, two, rare), epsilon=4.0, aim="tables"),
                    [few, two, rare],
                    categories=lists(few, two, rare),
                )
            ]
        ),
        "window": TablePlan(
            [Column(bitldp.JointWindow(2, epsilon=5.0, levels=32), [number, "second"], interval=spans)]
        ),
        "mixed cap": TablePlan(
            [
                Column(
                    bitldp.MixedCap(sizes(few, two), features=2, epsilon=5.0),
                    [number, "second", few, two],
                    **mixed,
                )
            ],
            keep=["part"],
        ),
        "mixed record": TablePlan(
            [
                Column(
                    bitldp.MixedRecord(sizes(few, two), features=2, epsilon=6.0, k=3),
                    [number, "second", few, two],
                    **mixed,
                )
            ],
            keep=["part"],
        ),
        "ordered": TablePlan(ordered, keep=["part"]),
    }


def asked_of(which: str, released: Any, people: pa.Table, truths: Any) -> Asked:
    """Yield each kind of question of one plan, its answer, and a row's truth and share of records."""
    columns, inside = truths.columns, truths.inside
    point, number, many, few, two, rare = truths.names.values()

    def mean_by(name: str, *by: str) -> Truth:
        return lambda size, row: (columns[name][inside(row, by)].mean(), inside(row, by).mean())

    def cell(*by: str) -> Truth:
        return lambda size, row: (inside(row, by).mean(), inside(row, by).mean())

    if which == "cap":
        yield "cap: two-way table", lambda: released.table(few, two), cell(few, two)
        yield "cap: two-way table", lambda: released.table(two, rare), cell(two, rare)
        yield "cap: three-way table", lambda: released.table(few, two, rare), cell(few, two, rare)
        yield (
            "cap: share by a category",
            lambda: released.share(two, by=rare),
            lambda size, row: (inside(row, (two,))[inside(row, (rare,))].mean(), inside(row, (rare,)).mean()),
        )
    elif which == "window":
        a, b = columns[number], columns["second"]
        correlation, (slope, start) = float(np.corrcoef(a, b)[0, 1]), np.polyfit(b, a, 1)
        yield "window: mean", lambda: released.mean(number), mean_by(number)
        yield "window: mean of another", lambda: released.mean("second"), mean_by("second")
        yield (
            "window: ratio",
            lambda: released.ratio(number, "second"),
            lambda s, r: (a.mean() / b.mean(), 1.0),
        )
        yield (
            "window: correlation",
            lambda: released.correlation(number, "second"),
            lambda s, r: (correlation, 1.0),
        )
        yield (
            "window: coefficient",
            lambda: released.regress(number, "second"),
            lambda size, row: (start if row["term"] == "intercept" else slope, 1.0),
        )
    elif which == "ordered":
        points = (
            np.rint((columns[point].clip(*_SPAN) - 15.0) * (_POINTS - 1) / 75.0) * 75.0 / (_POINTS - 1) + 15.0
        )

        def quantile(*by: str) -> Truth:
            return lambda size, row: (
                float(np.quantile(points[inside(row, by)], row["q"], method="inverted_cdf")),
                inside(row, by).mean(),
            )

        def below(*by: str) -> Truth:
            return lambda size, row: ((points[inside(row, by)] <= row["at"]).mean(), inside(row, by).mean())

        yield "hierarchy: quantile", lambda: released.quantile(point, _SHARES), quantile()
        yield "hierarchy: quantile", lambda: released.quantile(point, _SHARES, by="part"), quantile("part")
        yield (
            "hierarchy: quantile by a category",
            lambda: released.quantile(point, _SHARES, by=two),
            quantile(two),
        )
        at = [25.0, 35.0, 45.0, 60.0]
        yield "hierarchy: share below", lambda: released.cdf(point, at, by="part"), below("part")
        yield "hierarchy: share below, by a category", lambda: released.cdf(point, at, by=two), below(two)
        yield (
            "hierarchy: histogram",
            lambda: released.histogram(point, [15.0, 30.0, 45.0, 60.0, 90.0]),
            lambda size, row: (
                ((points >= row["from"]) & ((points < row["to"]) | (row["to"] == 90.0))).mean(),
                1.0,
            ),
        )
        yield (
            "hierarchy: mean by a category",
            lambda: released.mean(point, by=two),
            lambda size, row: (points[inside(row, (two,))].mean(), inside(row, (two,)).mean()),
        )
        yield (
            "words: top",
            lambda: released.top(many, 5),
            lambda size, row: ((columns[many] == row[many]).mean(), 1.0),
        )
        yield (
            "words: top by a kept column",
            lambda: released.top(many, 5, by="part"),
            lambda size, row: (
                (columns[many] == row[many])[inside(row, ("part",))].mean(),
                inside(row, ("part",)).mean(),
            ),
        )
    else:
        yield f"{which}: mean by a category", lambda: released.mean(number, by=few), mean_by(number, few)
        yield f"{which}: mean by two", lambda: released.mean(number, by=(few, two)), mean_by(number, few, two)
        yield (
            f"{which}: mean by kept and released",
            lambda: released.mean("second", by=("part", two)),
            mean_by("second", "part", two),
        )
        yield f"{which}: two-way table", lambda: released.table(few, two), cell(few, two)
        yield (
            f"{which}: total by a category",
            lambda: released.total(number, by=two),
            lambda size, row: (
                size * (columns[number] * inside(row, (two,))).mean(),
                inside(row, (two,)).mean(),
            ),
        )
