"""Columns of one report asked together: products by the pair law, checked by every report and by many."""

from __future__ import annotations

from itertools import product
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import Column, PlanError, ReleasedTable, TablePlan
from bitldp.tables.joint import Read
from bitldp.tables.together import joint, known, resolved

ROWS = 40_000
FAR = 5.0  # standard errors: two-sided, once in 1.7 million
LISTS = {"a": ["x", "y"], "b": ["p", "q", "r"]}
SPANS = {"h": (0.0, 100.0), "w": (20.0, 60.0)}


def people(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 2, rows), rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    b = np.where(rng.random(rows) < 0.4, a, b)
    h = (30.0 + 20.0 * a + rng.normal(0.0, 15.0, rows)).clip(0.0, 100.0)
    w = (30.0 + 0.2 * h + rng.normal(0.0, 4.0, rows)).clip(20.0, 60.0)
    return pa.table(
        {
            "h": h,
            "w": w,
            "a": np.array(LISTS["a"])[a],
            "b": np.array(LISTS["b"])[b],
            "part": rng.integers(0, 2, rows),
        }
    )


def plan(mechanism: Any, names: str) -> TablePlan:
    lists = [LISTS[name] for name in names if name in LISTS]
    spans = [SPANS[name] for name in names if name in SPANS]
    return TablePlan(
        [
            Column(mechanism, list(names), categories=lists or None, interval=spans or None),
            Column(bitldp.GRR(2, epsilon=3.0), "part", categories=["0", "1"]),
        ]
    )


MECHANISMS: dict[str, tuple[Any, str]] = {
    "cap": (bitldp.RecordCap([2, 3], epsilon=3.0), "ab"),
    "cap of subsets": (bitldp.RecordCap([2, 3], epsilon=3.0, subset=[1, 2], hits=1, m=2), "ab"),
    "cap of some": (bitldp.RecordCap([2, 3, 2], epsilon=4.0, m=2), "aba"),
    "mixed cap": (bitldp.MixedCap([2, 3], features=2, epsilon=5.0), "hwab"),
    "mixed": (bitldp.MixedRecord([2, 3], features=2, epsilon=5.0, k=2), "hwab"),
    "sampled": (bitldp.CategoricalRecord([2, 3], epsilon=3.0, k=2), "ab"),
    "split": (bitldp.MixedRecord([2, 3], features=2, epsilon=8.0, spend="split"), "hwab"),
    "window": (bitldp.JointWindow(2, epsilon=6.0, levels=32), "hw"),
    "window of some": (bitldp.JointWindow(3, epsilon=6.0, levels=32, k=2), "hwh"),
    "pieces of some": (bitldp.Piecewise(features=3, epsilon=6.0, spend="sample", k=2), "hwh"),
}


def released(name: str, table: pa.Table, seed: int = 2) -> tuple[TablePlan, pa.Table]:
    mechanism, names = MECHANISMS[name]
    if len(set(names)) < len(names):  # a third column, which no question names
        table = table.append_column("z", table[names[-1]])
        lists = [LISTS[each] for each in names if each in LISTS]
        spans = [SPANS[each] for each in names if each in SPANS]
        own = TablePlan(
            [Column(mechanism, [*names[:-1], "z"], categories=lists or None, interval=spans or None)]
        )
    else:
        own = plan(mechanism, names)
    made: dict[str, Any] = {}
    for codec, rng in zip(own.codecs, np.random.SeedSequence(seed).spawn(len(own.codecs)), strict=True):
        reports = codec.randomize(codec.read(table, 1), rng=rng)
        made |= dict(codec.written(reports, table.schema.field(codec.columns[0]).type))
    return own, pa.table(made)


def moments(table: pa.Table, *names: str) -> np.ndarray:
    """Return the means of products of numbers and indicators, one for each cell."""
    parts = [
        [np.array(table[name]) == each for each in LISTS[name]] if name in LISTS else [np.array(table[name])]
        for name in names
    ]
    return np.array([np.prod(cell, axis=0).mean() for cell in product(*parts)])


@pytest.mark.statistical
@pytest.mark.parametrize("name", MECHANISMS)
def test_products_are_those_of_the_truths(name: str) -> None:
    """40,000 records: the mean of every product of two columns within 5 standard errors."""
    table = people()
    own, reports = released(name, table)
    codec = own.codecs[0]
    given, _ = codec.collect(reports, 1)
    pairs = [("a", "b"), ("h", "w"), ("h", "a"), ("w", "b")]
    for pair in (each for each in pairs if set(each) <= set(codec.columns)):
        reads = [Read(0, codec.reading(each, "category" if each in LISTS else "number")) for each in pair]
        entries = range(len(reads[1].reading.labels))
        every, terms = resolved(own.codecs, reads, [((0, 0), (1, j)) for j in entries])
        assert len(every) == (2 if codec.apart else 3)
        reading = joint(codec, [each.reading for each in reads])
        values = reading.read(given)
        error = values.std(axis=0) / np.sqrt(ROWS)
        assert np.all(np.abs(values.mean(axis=0) - moments(table, *pair)) < FAR * error), pair
        assert np.all((values >= reading.ends[0] - 1e-9) & (values <= reading.ends[1] + 1e-9))
        law = known(own.codecs, reads)
        least, most = law.ends
        assert np.all((least <= values.min(axis=0) + 1e-9) & (values.max(axis=0) <= most + 1e-9))
        if codec.apart:
            continue
        assert terms[0] == ((2, 0),)
        apart = np.einsum("ni,nj->nij", *(each.reading.read(given) for each in reads)).reshape(
            len(values), -1
        )
        if name in ("cap", "mixed cap") and pair == (
            "a",
            "b",
        ):
            assert np.any(np.abs(apart.mean(axis=0) - moments(table, *pair)) > FAR * error)


def test_a_table_is_the_one_of_the_mechanism() -> None:
    """Where all attributes are in a report, cells are those that `estimate_table` gives, to rounding."""
    table = people(3_000)
    for name in ("cap", "cap of subsets"):
        own, reports = released(name, table)
        answer = ReleasedTable(own, reports).table("a", "b")
        mechanism = MECHANISMS[name][0]
        given, _ = own.codecs[0].collect(reports, 1)
        expected = mechanism.estimate_table(given, (0, 1))
        assert np.allclose(answer.value, expected.value.ravel(), atol=1e-12)
        assert np.allclose(answer.stderr, expected.stderr.ravel(), rtol=0.02)
        low, high = answer.interval
        theirs = expected.confidence_interval(0.95)
        assert np.allclose(high - low, (theirs[1] - theirs[0]).ravel(), rtol=0.1)


def test_products_of_a_window_are_those_of_the_mechanism() -> None:
    table = people(3_000)
    own, reports = released("window", table)
    codec: Any = own.codecs[0]
    given, _ = codec.collect(reports, 1)
    reads = [codec.reading(each, "number") for each in "hw"]
    middles = [sum(SPANS[each]) / 2.0 for each in "hw"]
    centred = joint(codec, [one.less(middle) for one, middle in zip(reads, middles, strict=True)])
    units = [(SPANS[each][1] - SPANS[each][0]) / 2.0 for each in "hw"]
    expected = codec.mechanism.estimate_products(given).value[0, 1] * units[0] * units[1]
    assert centred.read(given).mean() == pytest.approx(expected, rel=1e-9)


def test_questions_mix_one_report_with_others() -> None:
    """Means by columns of the same report and of another, 40,000 records within 5 standard errors."""
    table = people()
    own, reports = released("mixed cap", table)
    asked = ReleasedTable(own, reports)
    a, b, part, h = (np.array(table[name]) for name in ("a", "b", "part", "h"))
    for row in asked.mean("h", by="a").table.to_pylist():
        assert abs(row["estimate"] - h[a == row["a"]].mean()) < FAR * row["stderr"]
        assert row["low"] < row["estimate"] < row["high"]
    for row in asked.mean("h", by=("a", "part")).table.to_pylist():
        chosen = (a == row["a"]) & (part == int(row["part"]))
        assert abs(row["estimate"] - h[chosen].mean()) < FAR * row["stderr"]
    for row in asked.share("b", by="a").table.to_pylist():
        assert abs(row["estimate"] - np.mean(b[a == row["a"]] == row["b"])) < FAR * row["stderr"]
    every = asked.table("a", "part", "b")
    for row in every.table.to_pylist():
        truth = np.mean((a == row["a"]) & (part == int(row["part"])) & (b == row["b"]))
        assert abs(row["estimate"] - truth) < FAR * row["stderr"]
    assert every.value.sum() == pytest.approx(1.0, abs=0.05)
    total = asked.total("h", by="a")
    for row in total.table.to_pylist():
        assert abs(row["estimate"] - h[a == row["a"]].sum()) < FAR * row["stderr"]


def test_fits_of_numbers_of_one_report() -> None:
    """Correlation and slope of 40,000 records within 5 standard errors, and what dither adds."""
    table = people()
    h, w = np.array(table["h"]), np.array(table["w"])
    for name in ("window", "window of some", "pieces of some"):
        asked = ReleasedTable(*released(name, table))
        (row,) = asked.correlation("h", "w").table.to_pylist()
        assert abs(row["estimate"] - np.corrcoef(h, w)[0, 1]) < FAR * row["stderr"] + 0.01
        slope = asked.regress("w", "h").table.to_pylist()[1]
        assert abs(slope["estimate"] - np.polyfit(h, w, 1)[0]) < FAR * slope["stderr"] + 0.01


@pytest.mark.parametrize(
    ("mechanism", "names", "words"),
    [
        (bitldp.MixedRecord([2, 3], features=2, epsilon=1.0, k=1), "hwab", "a report covers 1 of them"),
        (bitldp.CategoricalRecord([2, 3], epsilon=1.0, k=1), "ab", "a report covers 1 of them"),
    ],
)
def test_what_is_never_told_together_names_the_plan(mechanism: Any, names: str, words: str) -> None:
    own = plan(mechanism, names)
    asked = ReleasedTable(own, own.release()(people(200)))
    with pytest.raises(PlanError, match=rf"{words}.*RecordCap, JointWindow or MixedCap"):
        asked.table("a", "b")
    with pytest.raises(PlanError, match=r"is named twice"):
        asked.table("a", "a")
    signs: Any = plan(bitldp.HypercubePrivUnit(2, epsilon=4.0), "hw").codecs[0]
    with pytest.raises(PlanError, match="one symbol of all numbers"):
        signs.together(["h", "w"])
