"""Questions about some of the records, about periods, and about groups less others."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import bitldp
import pyarrow as pa
from bitldp.tables import Column, DataError, PlanError, ReleasedTable, TablePlan
from support.workers import CITIES, FAR, ROWS, near, plan, released, where, workers

START = np.datetime64("2026-01-01")


def dated_plan(epsilon: float = 4.0) -> TablePlan:
    return TablePlan(plan(epsilon).columns, keep=["survey", "date"])


@pytest.fixture(scope="module")
def people() -> pa.Table:
    table = workers()
    days = np.random.default_rng(9).integers(0, 59, table.num_rows)
    return table.append_column("date", pa.array(START + days))


@pytest.fixture(scope="module")
def asked(people: pa.Table) -> ReleasedTable:
    return ReleasedTable(dated_plan(), released(dated_plan(), people, 5))


def test_a_filter_on_a_released_column_goes_through_the_table(asked: ReleasedTable, people: pa.Table) -> None:
    hours, ages = people["hours"].to_numpy(), people["age"].to_numpy()
    oslo, old = where(people, city="Oslo"), ages >= 50.0
    near(asked.mean("hours", where={"city": "Oslo"}), [hours[oslo].mean()])
    near(asked.mean("hours", where={"city": CITIES[1:]}), [hours[~where(people, city="Paris")].mean()])
    near(asked.mean("hours", where=[("age", ">=", 50)]), [hours[old].mean()])
    near(asked.total("hours", where={"city": "Oslo"}), [hours[oslo].sum()])
    near(asked.total("city", where=[("age", ">", 40)]), [(where(people, city=c) & old).sum() for c in CITIES])
    by = asked.mean("hours", by="color", where=[("city", "!=", "Paris")])
    rest = ~where(people, city="Paris")
    near(by, [hours[rest & where(people, color=c)].mean() for c in ("red", "green")])
    near(asked.share("city", where=[("age", ">=", 50)]), [where(people, city=c)[old].mean() for c in CITIES])
    cells = [where(people, city=c, color=d)[old].mean() for c in CITIES for d in ("red", "green")]
    near(asked.table("city", "color", where=[("age", ">=", 50)]), cells)
    (row,) = asked.quantile("age", 0.5, where={"city": "Oslo"}).table.to_pylist()
    assert row["low"] <= np.median(ages[oslo]) <= row["high"]


def test_what_all_meet_is_no_filter(asked: ReleasedTable) -> None:
    every = asked.mean("hours", where={"city": CITIES})
    assert every.value.tolist() == asked.mean("hours").value.tolist()
    assert every.interval[0].tolist() == asked.mean("hours").interval[0].tolist()


def test_a_filter_on_kept_columns_leaves_rows_out(people: pa.Table, asked: ReleasedTable) -> None:
    rows = released(dated_plan(), people, 5)
    some = rows.filter(pa.array(np.asarray(rows["survey"]) == "a"))
    alone = ReleasedTable(dated_plan(), some).mean("hours", by="city")
    for condition in (
        {"survey": "a"},
        {"survey": ["a", "x"]},
        [("survey", "!=", "b")],
        [("survey", "not in", ["b"])],
        [("survey", "<", "b")],
    ):
        answer = asked.mean("hours", by="city", where=condition)
        assert answer.value.tolist() == alone.value.tolist()
        assert answer.n.tolist() == alone.n.tolist()
    inside = (np.asarray(people["date"]) >= START + 31) & where(people, survey="b")
    conditions: list[Any] = ["2026-02-01", date(2026, 2, 1), datetime(2026, 2, 1), (START + 31).item()]
    for first in conditions:
        answer = asked.mean("hours", where=[("date", ">=", first), ("survey", "==", "b")])
        assert answer.n.tolist() == [inside.sum()]
    near(answer, [people["hours"].to_numpy()[inside].mean()])


def test_missing_and_textual_values_of_kept_columns() -> None:
    """As a CSV gives them: numbers and dates are texts."""
    own = TablePlan([Column(bitldp.GRR(2, epsilon=2.0), "x", categories=["a", "b"])], keep=["k", "d"])
    rows = own.release()({"x": ["a", "b", "a", "b"], "k": ["10", "9", "2", "1"], "d": ["2026-01-31"] * 4})
    table = pa.table(rows).set_column(1, "k", pa.array(["10", "9", "2", None]))
    asked = ReleasedTable(own, table)

    def counted(*conditions: Any) -> int:
        return int(asked.share("x", where=list(conditions)).n[0])

    assert counted(("k", ">", 5)) == 2
    assert counted(("k", ">=", "2")) == 2  # as texts: "9" and "2"
    assert counted(("k", "==", None)) == 1
    assert counted(("k", "!=", "10")) == 2  # what is missing meets no comparison
    assert counted(("d", "<", date(2026, 2, 1))) == 4
    (row,) = asked.share("x", by="d", every="month").table.to_pylist()[:1]
    assert row["d"] == date(2026, 1, 1)
    with pytest.raises(ValueError, match="no rows that the filter leaves"):
        counted(("k", "==", "77"))
    broken = table.set_column(2, "d", pa.array(["2026-01-31", "soon", "", None]))
    with pytest.raises(DataError, match=r"column 'd'.*not of type timestamp") as error:
        ReleasedTable(own, broken).share("x", by="d", every="day")
    assert "soon" not in str(error.value)


@pytest.mark.parametrize("kind", ["date32", "timestamp", "zoned", "text"])
@pytest.mark.parametrize(
    ("every", "first", "periods"), [("week", "2025-12-29", 9), ("month", "2026-01-01", 2)]
)
def test_a_series_is_of_periods(people: pa.Table, kind: str, every: str, first: str, periods: int) -> None:
    """N = 2,000; a week begins on Monday, and a time counts on the day of its own zone."""
    some = people.slice(0, 2_000)
    days = some["date"]
    made = {
        "date32": days,
        "timestamp": pa.array(np.asarray(days).astype("datetime64[ms]") + np.timedelta64(23, "h")),
        "text": days.cast(pa.string()),
    }
    if kind == "zoned":  # Tokyo is 9 hours ahead
        stamps = np.asarray(days).astype("datetime64[s]") - np.timedelta64(1, "h")
        made["zoned"] = pa.array(stamps, pa.timestamp("s", "Asia/Tokyo"))
    rows = released(dated_plan(), some.set_column(some.column_names.index("date"), "date", made[kind]), 5)
    answer = ReleasedTable(dated_plan(), rows).mean("hours", by=["date", "color"], every=every)
    keys = answer.keys["date"].to_pylist()
    assert answer.keys["date"].type == pa.date32()
    assert keys[0] == date.fromisoformat(first)
    assert len(answer) == 2 * periods
    assert keys == sorted(keys)
    assert answer.n[::2].sum() == 2_000
    hours, starts = some["hours"].to_numpy(), np.asarray(days)
    for row in answer.table.to_pylist()[:4]:
        end = row["date"].replace(month=row["date"].month % 12 + 1) if every == "month" else None
        last = np.datetime64(end) if end else np.datetime64(row["date"]) + 7
        own = where(some, color=row["color"]) & (starts >= np.datetime64(row["date"])) & (starts < last)
        assert abs(row["estimate"] - hours[own].mean()) <= FAR * row["stderr"]


def test_groups_less_others(asked: ReleasedTable, people: pa.Table) -> None:
    hours = people["hours"].to_numpy()
    means = {c: hours[where(people, city=c)].mean() for c in CITIES}
    answer = asked.difference("hours", by="city")
    near(answer, [means[c] - means["Paris"] for c in CITIES[1:]])
    assert answer.keys["city"].to_pylist() == ["Rome - Paris", "Oslo - Paris"]
    one = asked.mean("hours", by="city").difference({"city": "Rome"}, {"city": "Paris"})
    assert answer.value[0] == one.value[0]
    assert answer.stderr[0] == pytest.approx(one.stderr[0])
    by_survey = asked.difference("hours", ["survey", "city"], "Rome")
    assert by_survey.keys["city"].to_pylist() == ["Paris - Rome", "Oslo - Rome"] * 2
    truths = []
    for row in by_survey.table.to_pylist():
        own, other = ({"survey": row["survey"], "city": c} for c in row["city"].split(" - "))
        truths.append(hours[where(people, **own)].mean() - hours[where(people, **other)].mean())
    near(by_survey, truths)
    shares = asked.difference("color", by="city", base="Oslo")
    reds = {c: where(people, city=c, color="red")[where(people, city=c)].mean() for c in CITIES}
    near(shares, [d * (reds[c] - reds["Oslo"]) for c in CITIES[:2] for d in (1.0, -1.0)])
    with pytest.raises(PlanError, match="base: no group"):
        asked.difference("hours", by="city", base="Bern")


def test_histograms(asked: ReleasedTable, people: pa.Table) -> None:
    ages = people["age"].to_numpy()
    answer = asked.histogram("age", [20.0, 40.0, 60.0, 70.0], by="color")
    truths = []
    for row in answer.table.to_pylist():
        own = ages[where(people, color=row["color"])]
        last = row["to"] == 70.0
        truths.append(((own >= row["from"]) & ((own <= row["to"]) if last else (own < row["to"]))).mean())
    near(answer, truths)
    whole = asked.histogram("age", 3)
    assert whole.keys["from"].to_pylist() == pytest.approx([20.0, 110.0 / 3.0, 160.0 / 3.0])
    assert whole.value.sum() == pytest.approx(1.0)
    with pytest.raises(PlanError, match="was put on 6 points"):
        asked.histogram("age", 7)
    with pytest.raises(ValueError, match="ascending"):
        asked.histogram("age", [3.0, 2.0])


def test_log_odds_are_those_of_the_cells(asked: ReleasedTable, people: pa.Table) -> None:
    """One input is saturated: its coefficients are differences of log odds; two are fitted by Newton."""
    red = where(people, color="red")
    shares = np.array([red[where(people, city=c)].mean() for c in CITIES])
    odds = np.log(shares / (1.0 - shares))
    near(asked.logistic("color", "city", "red"), [odds[0], *(odds[1:] - odds[0])])
    other = asked.logistic("color", "city")  # the last category is green
    near(other, [-odds[0], *(odds[0] - odds[1:])])
    assert "color = green" in other.column
    ages = sorted(set(people["age"].to_pylist()))
    design = np.stack(
        [
            np.ones(ROWS),
            *(where(people, city=c) for c in CITIES[1:]),
            *(where(people, age=a) for a in ages[1:]),
        ],
        axis=1,
    )
    fitted = np.zeros(design.shape[1])
    for _ in range(20):
        chances = 1.0 / (1.0 + np.exp(-design @ fitted))
        information = (design.T * (chances * (1.0 - chances))) @ design
        fitted += np.linalg.solve(information, design.T @ (red - chances))
    near(asked.logistic("color", ["city", "age"], "red"), list(fitted))


def test_errors_of_a_logistic_fit_are_those_of_the_records_where_reports_are_nearly_exact() -> None:
    """At a budget of 40 a column the errors are those of a sandwich (White, Econometrica 50, 1982)."""
    table = workers(4_000)
    own = TablePlan(
        [
            Column(bitldp.GRR(3, epsilon=40.0), "city", categories=CITIES),
            Column(bitldp.GRR(2, epsilon=40.0), "color", categories=["red", "green"]),
        ]
    )
    answer = ReleasedTable(own, released(own, table, 1)).logistic("color", "city")
    x = np.stack([np.ones(4_000), *(where(table, city=c) for c in CITIES[1:])], axis=1)
    y = where(table, color="green").astype(float)
    chances = 1.0 / (1.0 + np.exp(-x @ answer.value))
    assert x.T @ (y - chances) == pytest.approx(np.zeros(3), abs=1e-6)
    inverse = np.linalg.inv((x.T * (chances * (1.0 - chances))) @ x)
    sandwich = inverse @ (x.T * np.square(y - chances)) @ x @ inverse
    assert answer.stderr == pytest.approx(np.sqrt(sandwich.diagonal()), rel=1e-3)


def test_too_few_records_for_a_logistic_fit() -> None:
    few = ReleasedTable(plan(0.2), released(plan(0.2), workers(40), 11)).logistic("color", "city")
    assert "projected" in few.notes[0]
    assert np.isnan(few.stderr).all()


def test_fits_of_some_records(asked: ReleasedTable, people: pa.Table) -> None:
    hours, wage = people["hours"].to_numpy(), people["wage"].to_numpy()
    near(asked.covariance("hours", "wage"), [np.cov(hours, wage)[0, 1]])
    rome = where(people, city="Rome")
    near(asked.covariance("hours", "wage", where={"city": "Rome"}), [np.cov(hours[rome], wage[rome])[0, 1]])
    near(asked.correlation("hours", "wage", where={"survey": "a"}), [_correlation(people, survey="a")])
    near(asked.correlation("hours", "wage", where={"color": "red"}), [_correlation(people, color="red")])
    own = np.stack([np.ones(rome.sum()), wage[rome]], axis=1)
    near(asked.regress("hours", "wage", where={"city": "Rome"}), list(np.linalg.lstsq(own, hours[rome])[0]))


def test_errors_of_fits_are_those_of_the_rows_that_meet_a_filter() -> None:
    """At a budget of 40, a filter on a released column leaves the rows that one on a kept copy does."""
    table = workers(3_000)
    table = table.append_column("copy", table["city"])
    own = TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=40.0, interval=(0.0, 80.0)), "hours"),
            Column(bitldp.Piecewise(epsilon=40.0, interval=(0.0, 50.0)), "wage"),
            Column(bitldp.GRR(3, epsilon=40.0), "city", categories=CITIES),
        ],
        keep=["copy"],
    )
    asked = ReleasedTable(own, released(own, table, 1))
    for kind, arguments in (
        ("correlation", "hours wage"),
        ("covariance", "hours wage"),
        ("regress", "hours wage"),
    ):
        one, other = (
            getattr(asked, kind)(*arguments.split(), where={name: ["Paris", "Oslo"]})
            for name in ("city", "copy")
        )
        assert one.value == pytest.approx(other.value, rel=1e-6)
        assert one.stderr == pytest.approx(other.stderr, rel=2e-3)


def _correlation(people: pa.Table, **values: Any) -> float:
    own = where(people, **values)
    return float(np.corrcoef(people["hours"].to_numpy()[own], people["wage"].to_numpy()[own])[0, 1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"where": {"city": "Bern"}}, "'Bern' is not in column 'city'; there are Paris, Rome, Oslo"),
        ({"where": {"name": 1}}, "was not released"),
        ({"where": {"wage": 1}}, "GRR and interval="),
        ({"where": [("city", ">", "Oslo")]}, "have no order"),
        ({"where": [("city", "like", "Oslo")]}, "one of ==, !=,"),
        ({"where": [("city", "in", "Oslo")]}, "needs a list"),
        ({"where": {"city": b"Oslo"}}, "a value is a text"),
        ({"where": "city"}, "where: must be"),
        ({"where": [("date", "<", None)]}, "'<' needs a value"),
        ({"where": {"date": "soon"}}, "and the value is not one"),
        ({"where": [("age", "==", "old")]}, "holds numbers"),
        ({"where": {"city": []}}, "no category of column 'city' is left"),
        ({"by": "survey", "every": "day"}, "none of 'survey' holds dates"),
        ({"by": "city", "where": {"city": "Oslo"}}, "names each column once"),
    ],
)
def test_what_no_filter_is_is_refused(asked: ReleasedTable, options: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        asked.mean("hours", **options)


def test_periods_are_named(asked: ReleasedTable) -> None:
    with pytest.raises(ValueError, match="every: must be one of 'day', 'week'"):
        asked.mean("hours", by="date", every="hour")
