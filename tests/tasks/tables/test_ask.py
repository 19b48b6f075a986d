"""Questions asked of released tables: unbiased, with intervals, or refused with the plan that would do."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
import pyarrow.parquet
from bitldp.estimate.ratio import Ratio, fieller
from bitldp.tables import Column, PlanError, ReleasedTable, TablePlan
from bitldp.tables.joint import Joint
from bitldp.tables.reading import Of, Reading
from bitldp.tables.words import WordColumn
from support.plans import columns_of_every_mechanism, table_for
from support.workers import CITIES, FAR, ROWS, near, plan, released, where, workers

EVERY = columns_of_every_mechanism()


@pytest.fixture(scope="module")
def people() -> pa.Table:
    return workers()


@pytest.fixture(scope="module")
def asked(people: pa.Table) -> ReleasedTable:
    return ReleasedTable(plan(), released(plan(), people, 5))


@pytest.mark.parametrize("name", EVERY)
def test_readings_are_the_estimates_of_their_mechanism(name: str) -> None:
    """The mean of a reading is what the mechanism's own counts say, for each mechanism of columns."""
    column = EVERY[name]
    own = TablePlan([column])
    table = table_for(column, 2_000, seed=3)
    reports = released(own, table, 5)
    looked = 0
    for row in own.aggregate().update(reports).estimate().to_pylist()[:4]:
        kind: Of = "number" if row["what"] == "mean" else "category"
        codec = next(each for each in own.codecs if row["column"] in each.columns)
        if not codec.alone or isinstance(codec, WordColumn):
            continue  # other estimates of the same: `test_ranges.py`, `test_words.py`
        if row["estimate"] is None:
            with pytest.raises(PlanError, match="a plan"):
                codec.reading(row["column"], kind)
            continue
        reading = codec.reading(row["column"], kind)
        values = reading.read(codec.collect(reports, 1)[0])
        slot = reading.labels.index(row["category"] if kind == "category" else None)
        assert values[:, slot].mean() == pytest.approx(row["estimate"], rel=1e-9, abs=1e-9)
        assert (values >= reading.ends[0] - 1e-9).all()
        assert (values <= reading.ends[1] + 1e-9).all()
        looked += 1
    others = ("HeavyHitters", "Hierarchy")
    assert looked or name in ("BRR", "Exponential", "LSRR", "OptimalUtility", *others)


@pytest.mark.parametrize("output", ["codes", "bits", "values"])
def test_words_of_bits_are_read_in_every_form(output: Any) -> None:
    column = Column(bitldp.FRR(2, bits=8, integer_bits=2, epsilon=20.0), ["x", "y"], output=output)
    own = TablePlan([column])
    rng = np.random.default_rng(1)
    reports = released(own, pa.table({"x": rng.normal(0.5, 1.0, 500), "y": rng.normal(-1.0, 1.0, 500)}), 2)
    counted = own.aggregate().update(reports).estimate()["estimate"].to_pylist()
    for name, mean in zip("xy", counted, strict=True):
        codec = own.codecs[0]
        values = codec.reading(name, "number").read(codec.collect(reports, 1)[0])
        assert values.mean() == pytest.approx(mean)


def test_cells_of_a_table(asked: ReleasedTable, people: pa.Table) -> None:
    answer = asked.table("city", "color")
    truths = [where(people, city=c, color=d).mean() for c in CITIES for d in ("red", "green")]
    near(answer, truths)
    assert answer.table.column_names == [
        *("city", "color", "column", "what", "estimate", "stderr", "low", "high", "n", "note"),
    ]
    assert answer.table["city"].to_pylist()[:2] == ["Paris", "Paris"]
    spread = np.sqrt(ROWS) * answer.stderr
    assert (spread < 1.5).all()  # .4 to .5 without randomness, at these shares


def test_cells_with_a_kept_column_sum_to_its_shares(asked: ReleasedTable, people: pa.Table) -> None:
    answer = asked.table("city", "survey", "color")
    rows = answer.table.to_pylist()
    truths = [where(people, city=r["city"], survey=r["survey"], color=r["color"]).mean() for r in rows]
    near(answer, truths)
    share = where(people, survey="a").mean()
    by_city = asked.table("survey", "city").table.to_pylist()
    assert sum(r["estimate"] for r in by_city if r["survey"] == "a") == pytest.approx(share)


def test_a_mean_by_a_released_category_where_a_filter_lies(asked: ReleasedTable, people: pa.Table) -> None:
    answer = asked.mean("hours", by="city")
    hours = people["hours"].to_numpy()
    truths = [hours[where(people, city=c)].mean() for c in CITIES]
    near(answer, truths)
    rows = released(plan(1.0), people, 5)
    lie = rows["hours"].to_numpy()[rows["city"].to_numpy(zero_copy_only=False) == "Oslo"].mean()
    noisy = ReleasedTable(plan(1.0), rows).mean("hours", by="city")
    near(noisy, truths)
    assert abs(lie - truths[2]) > 4.0  # hours: most whose report says Oslo are not there
    both = asked.mean("hours", by=["survey", "city"]).table.to_pylist()
    for row in both:
        truth = hours[where(people, survey=row["survey"], city=row["city"])].mean()
        assert abs(row["estimate"] - truth) <= FAR * row["stderr"]
        assert row["n"] == where(people, survey=row["survey"]).sum()


def test_shares_and_totals_by_a_category(asked: ReleasedTable, people: pa.Table) -> None:
    shares = asked.share("color", by="city")
    near(
        shares,
        [
            where(people, city=c, color=d)[where(people, city=c)].mean()
            for c in CITIES
            for d in ("red", "green")
        ],
    )
    totals = asked.total("hours", by="city")
    hours = people["hours"].to_numpy()
    near(totals, [hours[where(people, city=c)].sum() for c in CITIES])
    counts = asked.total("city")
    near(counts, [where(people, city=c).sum() for c in CITIES])
    assert counts.what == totals.what == "total"
    ratio = asked.ratio("hours", "wage", by="city")
    wage = people["wage"].to_numpy()
    near(ratio, [hours[where(people, city=c)].mean() / wage[where(people, city=c)].mean() for c in CITIES])


def test_one_column_has_the_intervals_of_its_mechanism(asked: ReleasedTable, people: pa.Table) -> None:
    rows = released(plan(), people, 5)
    counted = plan().aggregate(["survey"]).update(rows).estimate().to_pylist()
    for column in ("city", "color", "hours", "wage"):
        mine = (asked.share if column in ("city", "color") else asked.mean)(column, by="survey")
        theirs = [
            row for survey in "ab" for row in counted if (row["column"], row["survey"]) == (column, survey)
        ]
        for own, other in zip(mine.table.to_pylist(), theirs, strict=True):
            for name in ("estimate", "stderr", "low", "high"):
                assert own[name] == pytest.approx(other[name])


def test_quantiles_and_shares_below(asked: ReleasedTable, people: pa.Table) -> None:
    ages, q = people["age"].to_numpy(), [0.1, 0.5, 0.9]
    for by in ((), ("city",)):
        for row in asked.quantile("age", q, by=by).table.to_pylist():
            kept = where(people, **{name: row[name] for name in by})
            assert row["low"] <= np.quantile(ages[kept], row["q"]) <= row["high"]
            assert row["low"] <= row["estimate"] <= row["high"]
    below = asked.cdf("age", [30.0, 45.0], by="city")
    near(below, [(ages[where(people, city=c)] <= x).mean() for c in CITIES for x in (30.0, 45.0)])


def test_quantiles_of_a_square_wave() -> None:
    own = TablePlan(
        [Column(bitldp.SquareWave(epsilon=3.0, interval=(0.0, 80.0), cells=64), "hours")], ["survey"]
    )
    table = workers(5_000)
    answer = ReleasedTable(own, released(own, table, 7)).quantile("hours", 0.5, by="survey")
    truths = [
        np.median(table["hours"].to_numpy()[where(table, survey=s)])
        for s in answer.keys["survey"].to_pylist()
    ]
    assert (np.abs(answer.value - truths) < 2.0).all()
    assert "smoothed" in answer.notes[0]
    low, high = answer.interval
    assert ((low < truths) & (truths < high)).all()
    below = ReleasedTable(own, released(own, table, 7)).cdf("hours", [40.0])
    near(below, [(table["hours"].to_numpy() <= 40.0).mean()])


def test_the_steps_of_a_window_are_the_indicators_of_its_points() -> None:
    wave = bitldp.SquareWave(epsilon=2.0, interval=(0.0, 80.0), cells=24)
    reading = Column(wave, "hours").codecs[0].reading("hours", "category")
    assert reading.table is not None
    assert wave.probabilities() @ reading.table == pytest.approx(np.eye(24), abs=1e-12)


def test_least_squares_and_correlation(asked: ReleasedTable, people: pa.Table) -> None:
    hours, wage = people["hours"].to_numpy(), people["wage"].to_numpy()
    near(asked.correlation("hours", "wage"), [np.corrcoef(hours, wage)[0, 1]])
    inputs = np.stack([np.ones(ROWS), wage, *(where(people, city=c) for c in CITIES[1:])], axis=1)
    near(asked.regress("hours", ["wage", "city"]), list(np.linalg.lstsq(inputs, hours, rcond=None)[0]))
    few = ReleasedTable(plan(0.2), released(plan(0.2), workers(40), 11)).regress("hours", ["wage", "city"])
    assert "projected" in few.notes[0]
    assert np.isnan(few.stderr).all()


def test_errors_of_a_fit_are_those_of_the_records_where_reports_are_nearly_exact() -> None:
    """At a budget of 40 a column the errors are those of a sandwich (White, Econometrica 48, 1980)."""
    table = workers(4_000)
    own = TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=40.0, interval=(0.0, 80.0)), "hours"),
            Column(bitldp.GRR(3, epsilon=40.0), "city", categories=CITIES),
        ]
    )
    answer = ReleasedTable(own, released(own, table, 1)).regress("hours", "city")
    x = np.stack([np.ones(4_000), *(where(table, city=c) for c in CITIES[1:])], axis=1)
    y = table["hours"].to_numpy()
    inverse = np.linalg.inv(x.T @ x)
    rest = y - x @ (inverse @ x.T @ y)
    sandwich = inverse @ (x.T * rest**2) @ x @ inverse
    assert answer.stderr == pytest.approx(np.sqrt(sandwich.diagonal()), rel=0.01)


def test_limits_of_a_ratio_are_those_of_fieller() -> None:
    """Of 10^9 records nothing is added for what a sample may lack."""
    n, top, bottom, variances = 10**9, 3.0, 2.0, (5.0, 1.5, 2.0)
    column = np.ones(1)
    law = Ratio(
        *(top * column, bottom * column, np.array(variances)[:, None], np.array([n]), (-9.0, 9.0)),
        *(np.array([[-4.0], [4.0], [-4.0], [4.0], [1.0], [1.0]]), np.zeros((3, 1))),
    )
    made = fieller(top, bottom, (variances[0] / n, variances[1] / n, variances[2] / n), 0.025)
    assert made is not None
    value, stderr, low, high = made
    assert law.stderr[0] == pytest.approx(stderr)
    ends = law.limits(np.array([value]), law.stderr, 0.025)
    assert ends[0][0] - value == pytest.approx(low - value, rel=1e-3)
    assert ends[1][0] - value == pytest.approx(high - value, rel=1e-3)


def test_errors_of_ratios_are_in_their_covariance(asked: ReleasedTable) -> None:
    answer = asked.mean("hours", by="city")
    assert answer.covariance is not None
    assert np.sqrt(answer.covariance.diagonal()) == pytest.approx(answer.stderr)


def test_numbers_with_gaps(people: pa.Table) -> None:
    """N = 10,000: the mean of those who answered, by a released category."""
    missing = np.random.default_rng(2).random(ROWS) < 0.3
    table = people.set_column(2, "hours", pa.array(people["hours"].to_numpy(), mask=missing))
    gaps = TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=6.0, interval=(0.0, 80.0)), "hours", nulls="report"),
            Column(bitldp.GRR(3, epsilon=4.0), "city", categories=CITIES),
        ]
    )
    answer = ReleasedTable(gaps, released(gaps, table, 5)).mean("hours", by="city")
    hours = people["hours"].to_numpy()
    near(answer, [hours[where(people, city=c) & ~missing].mean() for c in CITIES])


def test_a_record_answers_with_other_columns_and_not_within() -> None:
    """N = 10,000, a record of two categories of which one is drawn, and a number released by itself."""
    table = workers()
    record = bitldp.CategoricalRecord([3, 2], epsilon=4.0, spend="sample", k=1)
    own = TablePlan(
        [
            Column(record, ["city", "color"], categories=[CITIES, ["red", "green"]]),
            Column(bitldp.Piecewise(epsilon=4.0, interval=(0.0, 80.0)), "hours"),
        ]
    )
    asked = ReleasedTable(own, released(own, table, 5))
    hours = table["hours"].to_numpy()
    near(asked.mean("hours", by="city"), [hours[where(table, city=c)].mean() for c in CITIES])
    near(asked.total("hours", by="city"), [hours[where(table, city=c)].sum() for c in CITIES])
    with pytest.raises(PlanError, match="a mechanism for each column"):
        asked.table("city", "color")
    split = TablePlan([Column(bitldp.CategoricalRecord([3, 2], epsilon=8.0, spend="split"), *_both())])
    answer = ReleasedTable(split, released(split, table, 5)).table("city", "color")
    near(answer, [where(table, city=c, color=d).mean() for c in CITIES for d in ("red", "green")])


def _both() -> tuple[Any, ...]:
    return ["city", "color"], [CITIES, ["red", "green"]]


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda r: r.mean("city"), "Piecewise"),
        (lambda r: r.share("hours"), "GRR and interval="),
        (lambda r: r.mean("hours", by="wage"), "GRR and interval="),
        (lambda r: r.quantile("city", 0.5), "have no order"),
        (lambda r: r.mean("name"), "was not released"),
        (lambda r: r.correlation("hours", "name"), "was not released"),
        (lambda r: r.regress("name", "hours"), "was not released"),
        (lambda r: r.share("survey"), "is kept as it is"),
        (lambda r: r.table("survey"), "count them as they are"),
        (lambda r: r.table("city", "city"), "named twice"),
        (lambda r: r.mean("hours", by=["city", "color", "age"]), "a question may read 3"),
        (lambda r: r.share("city", by="city"), "names each column once"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_what_could(
    asked: ReleasedTable, ask: Any, said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        ask(asked)


def test_one_bit_tells_no_square() -> None:
    own = TablePlan([Column(bitldp.Duchi(epsilon=2.0, features=2), ["x", "y"])])
    reports = released(own, pa.table({"x": [0.1, 0.2], "y": [0.3, 0.4]}), 1)
    with pytest.raises(PlanError, match=r"do not give squares.*Piecewise"):
        ReleasedTable(own, reports).correlation("x", "y")


def test_covariance_says_what_answers_share(asked: ReleasedTable) -> None:
    """Indicators of GRR sum to 1 in each report, so that all cells together have no error."""
    answer = asked.table("city", "age")
    assert answer.covariance is not None
    assert answer.value.sum() == pytest.approx(1.0)
    assert answer.covariance.sum() == pytest.approx(0.0, abs=1e-12)
    both = asked.share("city")
    assert both.covariance is not None
    apart = both.difference(0, {"city": "Rome"})
    square = both.covariance
    assert apart.stderr[0] ** 2 == pytest.approx(square[0, 0] + square[1, 1] - 2.0 * square[0, 1])
    ratio = both.ratio(0, 1)
    assert ratio.interval[0][0] < ratio.value[0] < ratio.interval[1][0]
    assert ratio.value[0] == pytest.approx(both.value[0] / both.value[1])
    with pytest.raises(PlanError, match="exactly one must"):
        both.difference({}, 1)


def test_intervals_for_all_at_once(people: pa.Table) -> None:
    rows = released(plan(), people, 5)
    each, most, close, apart = (
        ReleasedTable(plan(), rows, simultaneous=how, level=level).table("city", "color").interval
        for how, level in ((None, 0.95), ("bonferroni", 0.95), ("sidak", 0.95), (None, 1.0 - 0.05 / 6.0))
    )
    assert (most[0] < close[0]).all()
    assert (close[0] < each[0]).all()
    assert most[1] == pytest.approx(apart[1])
    with pytest.raises(ValueError, match="simultaneous"):
        ReleasedTable(plan(), rows, simultaneous="scheffe").share("city")


def test_projected_shares_stand_beside_the_others() -> None:
    table = pa.table(
        {
            **{name: workers(100)[name] for name in ("color", "hours", "wage", "age", "survey")},
            "city": ["Rome"] * 100,
        }
    )
    rows = released(plan(1.0), table, 4)
    raw, moved = (
        ReleasedTable(plan(1.0), rows, project=each).table("city", "color") for each in (False, True)
    )
    assert (raw.value < 0.0).any()
    assert moved.estimate.sum() == pytest.approx(1.0)
    assert (moved.estimate >= 0.0).all()
    assert moved.table["unprojected"].to_pylist() == raw.table["estimate"].to_pylist()
    low, high = moved.interval
    assert (low >= 0.0).all()
    assert (high <= 1.0).all()


def test_counted_and_summed_terms_agree() -> None:
    """Reports that are counted by pattern have the moments of those that are summed one by one."""
    rng = np.random.default_rng(1)
    table, codes = rng.normal(size=(4, 3)), rng.integers(0, 4, (2, 500))

    def reading(listed: bool) -> Reading:
        given: dict[str, Any] = {"table": table, "codes": lambda x: x} if listed else {}
        return Reading("x", ("a", "b", "c"), lambda x: table[x], np.zeros((2, 3)), (0.0, 1.0), 0.0, **given)

    terms = [((0, i), (1, j)) for i in range(3) for j in range(3)] + [(), ((1, 2),)]
    made = []
    for listed in (True, False):
        joint = Joint([("one", reading(listed)), ("two", reading(listed))], terms)
        for part in (slice(0, 200), slice(200, 500)):
            joint.update({"one": codes[0, part], "two": codes[1, part]}, part.stop - part.start)
        made.append(joint.moments())
    one, other = made
    assert one.mean == pytest.approx(other.mean)
    assert one.covariance == pytest.approx(other.covariance, abs=1e-12)
    products = table[codes[0]][:, :, None] * table[codes[1]][:, None, :]
    assert one.mean[:9] == pytest.approx(products.mean(axis=0).ravel())
    assert one.covariance.diagonal()[:9] == pytest.approx(products.var(axis=0, ddof=1).ravel())


def test_every_source_gives_the_same_answer(people: pa.Table, tmp_path: Path) -> None:
    rows = released(plan(), people.slice(0, 2_000), 5)
    pa.parquet.write_table(rows, tmp_path / "rows.parquet")
    text = {"plan": plan().fingerprint()}
    (tmp_path / "rows.parquet.privacy.json").write_text(json.dumps(text))
    sources = [
        rows,
        [rows.slice(0, 700), rows.slice(700)],
        tmp_path / "rows.parquet",
        lambda names: rows.select(names).to_batches(max_chunksize=300),
    ]
    found = [ReleasedTable(plan(), each).mean("hours", by="city") for each in sources]
    found.append(ReleasedTable.read(tmp_path / "rows.parquet").mean("hours", by="city"))
    for each in found:
        assert each.value.tolist() == found[0].value.tolist()
    other = TablePlan([Column(bitldp.GRR(3, epsilon=1.0), "city", categories=CITIES)])
    with pytest.raises(PlanError, match="another plan"):
        ReleasedTable(plan(), rows.replace_schema_metadata({"bitldp.plan": other.digest})).share("city")
    with pytest.raises(ValueError, match="no rows"):
        ReleasedTable(plan(), rows.slice(0, 0)).share("city")
    (tmp_path / "rows.parquet.privacy.json").write_text("{}")
    with pytest.raises(PlanError, match="not a privacy report"):
        ReleasedTable.read(tmp_path / "rows.parquet")


def test_an_empty_category_has_the_whole_interval(people: pa.Table) -> None:
    """Nobody is in Oslo: nothing refutes any mean of the interval, and the note says so."""
    kept = where(people, city="Oslo")
    table = people.filter(pa.array(~kept))
    answer = ReleasedTable(plan(1.0), released(plan(1.0), table, 5)).mean("hours", by="city")
    low, high = answer.interval
    assert answer.notes[2] == "too few records to distinguish the group from an empty one"
    assert low[2] <= 0.0
    assert high[2] >= 80.0
    assert math.isnan(answer.value[2]) or low[2] <= answer.value[2] <= high[2]


def test_answers_are_text_and_arrow(asked: ReleasedTable) -> None:
    answer = asked.mean("hours", by="city")
    lines = str(answer).splitlines()
    assert lines[0].split() == ["city", "column", "what", "estimate", "stderr", "low", "high", "n"]
    assert len(lines) == len(answer) + 1 == 4
    assert pa.table(answer).equals(answer.table)


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [20, 400])
def test_intervals_hold_the_truth_at_every_size(rows: int) -> None:
    """Of 60 releases of n records, .93 of the answers of each kind at least (alpha = 1e-4 if .95 hold)."""
    population = workers(20_000, seed=8)
    hours = population["hours"].to_numpy()
    means = {c: hours[where(population, city=c)].mean() for c in CITIES}
    held: dict[str, list[bool]] = {"mean": [], "share": []}
    for seed in range(60):
        drawn = population.take(np.random.default_rng(seed).integers(0, 20_000, rows))
        asked = ReleasedTable(plan(2.0), released(plan(2.0), drawn, seed))
        for row in asked.mean("hours", by="city").table.to_pylist():
            held["mean"].append(row["low"] <= means[row["city"]] <= row["high"])
        for row in asked.table("city", "color").table.to_pylist():
            truth = where(population, city=row["city"], color=row["color"]).mean()
            held["share"].append(row["low"] <= truth <= row["high"])
    for kind, each in held.items():
        assert np.mean(each) >= 0.93 - 3.7 * math.sqrt(0.05 * 0.95 / len(each)), (kind, np.mean(each))


@pytest.mark.parametrize("epsilon", [2.0, 6.0])  # two of three attributes are drawn, and all
def test_a_joint_report_tells_its_columns_one_by_one(epsilon):
    """Shares of 20,000 records, each within 5 standard errors."""
    rng, n = np.random.default_rng(3), 20_000
    lists = [["x", "y"], ["p", "q", "r"], ["u", "v"]]
    columns = {}
    for name, own in zip("abc", lists, strict=True):
        columns[name] = np.array(own)[rng.integers(0, len(own), n)]
    table = pa.table(columns)
    mechanism = bitldp.RecordCap([2, 3, 2], epsilon=epsilon)
    assert (mechanism.k is None) == (epsilon == 6.0)
    plan = TablePlan([Column(mechanism, ["a", "b", "c"], categories=lists)])
    asked = ReleasedTable(plan, released(plan, table, 5))
    for name, values in zip("abc", lists, strict=True):
        answer = asked.share(name).table.to_pydict()
        truth = [np.mean(np.array(table[name]) == value) for value in values]
        assert np.all(np.abs(np.array(answer["estimate"]) - truth) < 5.0 * np.array(answer["stderr"]))


def test_a_joint_report_of_numbers_and_categories():
    """Shares and means of 20,000 records, each within 5 standard errors."""
    rng, n = np.random.default_rng(4), 20_000
    lists = [["x", "y"], ["p", "q", "r"]]
    columns = {"h": rng.beta(2.0, 5.0, n), "w": rng.uniform(0.0, 1.0, n)}
    for name, own in zip("ab", lists, strict=True):
        columns[name] = np.array(own)[rng.integers(0, len(own), n)]
    table = pa.table(columns)
    mechanism = bitldp.MixedCap([2, 3], features=2, epsilon=6.0, interval=(0.0, 1.0))
    plan = TablePlan([Column(mechanism, ["h", "w", "a", "b"], categories=lists)])
    asked = ReleasedTable(plan, released(plan, table, 5))
    for name, values in zip("ab", lists, strict=True):
        answer = asked.share(name).table.to_pydict()
        truth = [np.mean(np.array(table[name]) == value) for value in values]
        assert np.all(np.abs(np.array(answer["estimate"]) - truth) < 5.0 * np.array(answer["stderr"]))
    for name in ("h", "w"):
        (answer,) = asked.mean(name).table.to_pylist()
        assert abs(answer["estimate"] - columns[name].mean()) < 5.0 * answer["stderr"]
