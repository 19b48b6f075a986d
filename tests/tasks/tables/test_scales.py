"""Numbers of one record with an interval each: mapped before randomizing, and back in every answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import Column, DataError, PlanError, ReleasedTable, TablePlan
from bitldp.tables.scales import Scales

SPANS = [(140.0, 210.0), (0.0, 1e6)]
FAR = 5.0  # standard errors: two-sided, once in 1.7 million


def people(rows: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(1)
    height = rng.normal(172.0, 10.0, rows).clip(140.0, 210.0)
    wage = rng.gamma(2.0, 1e5, rows).clip(0.0, 1e6)
    return pa.table({"height": height, "wage": wage, "sex": np.where(rng.random(rows) < 0.4, "f", "m")})


def window(**options: Any) -> Column:
    mechanism = bitldp.JointWindow(2, epsilon=6.0, **options.pop("law", {}))
    return Column(mechanism, ["height", "wage"], **{"interval": SPANS, **options})


def test_both_ends_are_mapped_exactly() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        low, high = np.sort(rng.normal(0.0, 10.0 ** rng.integers(-3, 9), 2)).tolist()
        scales = Scales(((low, high),), (-0.3, 0.7))
        x = np.array([low, np.nextafter(high, -np.inf), high, low - 1.0, high + 1.0])[:, None]
        mapped = scales.mapped(x)[:, 0]
        assert mapped[[0, 2, 3, 4]].tolist() == [-0.3, 0.7, -0.3, 0.7]
        assert -0.3 <= mapped[1] <= 0.7
        assert scales.outside(x) == 2
    mapped = Scales(((0.0, 10.0),), (-1.0, 1.0)).mapped(np.linspace(0.0, 10.0, 1_001)[:, None])
    assert np.all(np.diff(mapped[:, 0]) > 0.0)
    assert np.allclose(mapped[:, 0], np.linspace(-1.0, 1.0, 1_001))


@pytest.mark.parametrize("k", [1, 2])
def test_reports_are_those_of_mapped_numbers(k: int) -> None:
    codec: Any = window(law={"k": k, "levels": 16}).codecs[0]
    x = codec.read(people(500), 1)
    unit = np.stack([(x[:, 0] - 140.0) / 35.0 - 1.0, x[:, 1] / 5e5 - 1.0], axis=1)
    reports = codec.randomize(x, rng=np.random.SeedSequence(3))
    seed = np.random.SeedSequence(3, spawn_key=(0,)) if codec.whole else np.random.SeedSequence(3)
    expected = codec.mechanism.randomize(unit, rng=seed)
    pairs = zip(reports, expected, strict=True) if k == 1 else [(reports, expected)]
    for one, other in pairs:
        assert np.mean(one != other) < 0.01  # a dither may turn on the last digit


@pytest.mark.parametrize("law", [{"k": 1}, {"k": 2}, {"k": 2, "levels": 24}])
def test_answers_are_in_the_units_of_their_columns(law: dict[str, int]) -> None:
    """20,000 records: means by questions and by counts within 5 standard errors, intervals around them."""
    plan, table = TablePlan([window(law=law)]), people()
    assert TablePlan.from_toml(plan.to_toml()) == plan
    assert TablePlan.from_json(plan.to_json()).digest == plan.digest
    codec = plan.codecs[0]
    reports = codec.randomize(codec.read(table, 1), rng=np.random.SeedSequence(3))
    released = pa.table(dict(codec.written(reports, pa.float64())))
    rows = plan.aggregate().update(released).estimate().to_pylist()
    for name, row in zip(("height", "wage"), rows, strict=True):
        (asked,) = ReleasedTable(plan, released).mean(name).table.to_pylist()
        for each in (row, asked):
            assert abs(each["estimate"] - np.mean(table[name])) < FAR * each["stderr"]
            assert each["low"] < each["estimate"] < each["high"]
        low, high = SPANS[0] if name == "height" else SPANS[1]
        assert 0.0 < row["influence"] < high - low
    ratio = ReleasedTable(plan, released).ratio("wage", "height").table.to_pylist()[0]
    assert abs(ratio["estimate"] - np.mean(table["wage"]) / np.mean(table["height"])) < FAR * ratio["stderr"]
    if "levels" in law:
        reading = codec.reading("height", "square")
        values = reading.read(codec.collect(released, 1)[0])
        step = (210.0 - 140.0) / 23.0
        truth = np.mean(np.square(table["height"]))
        assert abs(values.mean() - truth) < FAR * values.std() / np.sqrt(len(values)) + step**2 / 4.0 + 1e-12


def test_a_record_of_numbers_and_categories() -> None:
    for mechanism in (
        bitldp.MixedCap([2], features=2, epsilon=6.0),
        bitldp.MixedRecord([2], features=2, epsilon=6.0, k=1),
    ):
        column = Column(mechanism, ["height", "wage", "sex"], categories=[["f", "m"]], interval=SPANS)
        plan, table = TablePlan([column]), people()
        released = plan.release()(table)
        for name in ("height", "wage"):
            (row,) = ReleasedTable(plan, released).mean(name).table.to_pylist()
            assert abs(row["estimate"] - np.mean(table[name])) < 1.2 * FAR * row["stderr"]


def test_numbers_outside_their_own_interval() -> None:
    table = pa.table({"height": [100.0, 170.0], "wage": [0.0, 2e6]})
    codec = window().codecs[0]
    assert codec.outside(codec.read(table, 1)) == 2
    column = window(law={"clip": False})
    with pytest.raises(DataError, match="row 1, column 'height'"):
        TablePlan([column]).release()(table)
    TablePlan([column]).release()(table.slice(1).set_column(1, "wage", pa.array([1e6])))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: window(interval=[(0, 1)] * 3), "one for each of 2 columns of numbers, got 3"),
        (lambda: window(interval=[(0, 1), (3, 2)]), r"interval\[1\]"),
        (lambda: window(output="values"), "released as codes"),
        (lambda: Column(bitldp.Piecewise(epsilon=1.0), "x", interval=(0, 5)), "has its own, a parameter"),
        (
            lambda: Column(bitldp.FRR(1, bits=8, integer_bits=2, epsilon=1.0), "x", interval=(0, 5)),
            "a range of their own",
        ),
        (
            lambda: Column(bitldp.GRR(3, epsilon=1.0), "x", interval=[(0, 5), (0, 6)]),
            "interval: GRR takes one",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, words: str) -> None:
    with pytest.raises((PlanError, ValueError), match=words):
        make()


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
def test_a_file_and_its_proof(tmp_path: Path, k: int) -> None:
    pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')
    import pyarrow.csv
    from support.command import invoke

    source, out, plan = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "plan.toml"
    pyarrow.csv.write_csv(people(300), source)
    sex = Column(bitldp.GRR(2, epsilon=1.0), "sex", categories=["f", "m"])
    age = Column(bitldp.Hierarchy(71, epsilon=2.0), "height", interval=(140.0, 210.0))
    word = Column(bitldp.HeavyHitters(epsilon=2.0, alphabet="fm", length=3), "sex")
    for columns in ([window(law={"k": k}), sex], [age, word]):
        TablePlan(columns).write(plan)
        for each in (out, tmp_path / "out.csv.privacy.json"):
            each.unlink(missing_ok=True)
        made = invoke("perturb", source, "-o", out, "--plan", plan)
        assert made.exit_code == 0, made.output
        proof = invoke("verify", tmp_path / "out.csv.privacy.json", out)
        assert proof.exit_code == 0, proof.output
        assert "its law is that of its parameters" in proof.output
