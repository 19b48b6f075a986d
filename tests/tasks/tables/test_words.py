"""Columns of words without a public list: the most frequent ones, with intervals that hold for them."""

from __future__ import annotations

from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import Aggregate, Column, DataError, PlanError, ReleasedTable, ReleaseKey, TablePlan

WORDS, SHARES = ["apple", "fig", "kiwi", "melon"], [0.5, 0.25, 0.15, 0.1]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
FAR = 5.0  # standard errors: two-sided, once in 1.7 million


def column(**options: Any) -> Column:
    return Column(bitldp.HeavyHitters(epsilon=5.0, alphabet=LETTERS, length=5), "word", **options)


def people(rows: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(5)
    words = rng.choice(WORDS, rows, p=SHARES)
    return pa.table({"word": words, "part": rng.integers(0, 2, rows), "id": np.arange(rows)})


def released(plan: TablePlan, table: pa.Table, seed: int = 3) -> pa.Table:
    (codec,) = plan.codecs
    reports = codec.randomize(codec.read(table, 1), rng=np.random.SeedSequence(seed))
    made = dict(codec.written(reports, table.schema.field(codec.columns[0]).type))
    return pa.table({**made, **{name: table[name] for name in plan.keep}})


PLAN = TablePlan([column()], keep=["part"])


@pytest.fixture(scope="module")
def reports() -> pa.Table:
    return released(PLAN, people())


def test_a_plan_keeps_it() -> None:
    assert TablePlan.from_toml(PLAN.to_toml()) == PLAN
    assert TablePlan.from_json(PLAN.to_json()).digest == PLAN.digest
    names = ["word_group", "word_function", "word_code", "part"]
    assert PLAN.release()(people(10)).column_names == names


def test_the_most_frequent_words_are_found(reports: pa.Table) -> None:
    answer = ReleasedTable(PLAN, reports).top("word", 4)
    assert answer.keys["word"].to_pylist() == WORDS
    for row, share in zip(answer.table.to_pylist(), SHARES, strict=True):
        assert abs(row["estimate"] - share) < FAR * row["stderr"]
        assert row["low"] < row["estimate"] < row["high"]
        assert row["note"] is None
        assert row["n"] == 20_000
    by = ReleasedTable(PLAN, reports).top("word", 2, by="part").table.to_pylist()
    assert [row["part"] for row in by] == [0, 0, 1, 1]
    assert [row["word"] for row in by] == ["apple", "fig"] * 2
    assert all(row["n"] < 20_000 for row in by)


def test_chosen_words_are_not_too_frequent_by_chance() -> None:
    """Of 30 words as frequent, the first five of 25 releases of 4,000: mean error within 5 of its deviations.

    With the reports that chose them, their shares come out twice as large.
    """
    rng = np.random.default_rng(1)
    listed = ["".join(rng.choice(list("abcd"), 3)) for _ in range(40)]
    listed = sorted(set(listed))[:30]
    mechanism = bitldp.HeavyHitters(epsilon=4.0, alphabet="abcd", length=3, step=3)
    found: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(25):
        own = mechanism.accumulator()
        own.update(mechanism.randomize(rng.choice(listed, 4_000), rng=seed))
        for apart in found:
            top = own.estimate(5, apart=apart)
            truth = [float(word in listed) / 30.0 for word in top.labels]
            found[apart] += ((top.value - truth) / top.stderr).tolist()
    assert abs(np.mean(found[True])) < FAR / np.sqrt(len(found[True]))
    assert np.mean(found[False]) > 1.0


def test_counts_are_merged_and_saved_in_any_order(reports: pa.Table) -> None:
    whole = PLAN.aggregate().update(reports.slice(0, 6_000))
    parts = [PLAN.aggregate().update(reports.slice(start, 2_000)) for start in (4_000, 0, 2_000)]
    merged = parts[0].merge(parts[1]).merge(Aggregate.from_json(parts[2].to_json(), PLAN))
    assert merged == whole
    assert merged.estimate().equals(whole.estimate())
    rows = whole.estimate().to_pylist()
    assert len(rows) == 10
    assert rows[0]["category"] == "apple"
    assert "nobody's word" in rows[-1]["note"]


def test_a_key_makes_the_same_reports() -> None:
    release = PLAN.release(ReleaseKey(bytes(range(32))), record="id", snapshot="s")
    table = people(200)
    assert release(table).slice(50, 100).equals(release(table.slice(50, 100)))


def test_missing_words() -> None:
    table = pa.table({"word": ["apple", None, "", "fig"] * 4_000})
    with pytest.raises(DataError, match="row 2, column 'word': missing value"):
        TablePlan([column()]).release()(table)
    own = TablePlan([column(nulls="category")])
    words = ReleasedTable(own, released(own, table)).top("word", 3).keys["word"].to_pylist()
    assert words[0] is None
    assert set(words[1:]) == {"apple", "fig"}
    filled = TablePlan([column(nulls="fill", fill="none")])
    answer = ReleasedTable(filled, released(filled, table)).top("word", 1)
    assert answer.keys["word"].to_pylist() == ["none"]
    assert "missing values count as none" in answer.notes[0]


def test_integers_are_words() -> None:
    numbers = np.random.default_rng(1).choice([7, 1_000_000, 5], 20_000, p=[0.6, 0.3, 0.1])
    own = TablePlan([Column(bitldp.HeavyHitters(epsilon=5.0, bits=20), "code")])
    answer = ReleasedTable(own, released(own, pa.table({"code": numbers}))).top("code", 2)
    assert answer.keys["code"].to_pylist() == [7, 1_000_000]
    for wrong in (-1, 1 << 20):
        with pytest.raises(DataError, match="row 2, column 'code': is not an integer of 20 bits") as refused:
            own.release()(pa.table({"code": [1, wrong]}))
        assert str(wrong) not in str(refused.value)
    with pytest.raises(PlanError, match="with bits takes integers"):
        own.release()(pa.table({"code": ["x"]}))


def test_other_words_are_refused_by_row_alone() -> None:
    for wrong in ("apples", "Apple", "a b"):
        with pytest.raises(DataError, match="row 2, column 'word': has other letters") as refused:
            PLAN.release()(pa.table({"word": ["fig", wrong], "part": [0, 0]}))
        assert wrong not in str(refused.value)
    with pytest.raises(PlanError, match="with an alphabet takes text"):
        PLAN.release()(pa.table({"word": [1], "part": [0]}))


def test_what_words_do_not_tell_names_the_plan(reports: pa.Table) -> None:
    asked = ReleasedTable(PLAN, reports)
    with pytest.raises(PlanError, match=r"by top\('word'\); a plan with GRR or OUE"):
        asked.share("word")
    with pytest.raises(PlanError, match="a plan that keeps it"):
        asked.top("word", 3, by="word")
    other = TablePlan([Column(bitldp.GRR(2, epsilon=1.0), "c", categories=["x", "y"])])
    with pytest.raises(PlanError, match=r"share\('c'\) gives the shares of all"):
        ReleasedTable(other, other.release()(pa.table({"c": ["x"]}))).top("c")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"categories": ["a"]}, "categories: HeavyHitters takes words"),
        ({"interval": (0.0, 1.0)}, "interval: HeavyHitters takes words"),
        ({"output": "values"}, "is not a word; use codes"),
        ({"nulls": "report"}, "missing words are refused or filled"),
        ({"nulls": "fill", "fill": "APPLE"}, "fill: must be a word"),
        ({"decode": "reported"}, "is for values"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        column(**options)
