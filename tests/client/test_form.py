"""Plans as forms: what clients send becomes a released table, which the command line answers from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pyarrow.parquet as pq
import pytest
from bitldp.base.errors import PlanError
from bitldp.client import open_document
from bitldp.tables import Column, TablePlan
from support.command import invoke

PLAN = TablePlan(
    [
        Column(bitldp.Piecewise(epsilon=2.0, interval=(120.0, 220.0)), "height"),
        Column(bitldp.GRR(3, epsilon=3.0), "city", categories=["Paris", "Rome", "Oslo"]),
        Column(bitldp.OUE(4, epsilon=3.0), "food", categories=["a", "b", "c"], nulls="category"),
        Column(bitldp.BlockDesign(40, epsilon=2.0), "age", categories=[str(each) for each in range(40)]),
        Column(bitldp.FRR(2, epsilon=6.0, integer_bits=3), ["u", "v"]),
        Column(bitldp.FRR(1, epsilon=6.0, integer_bits=3, bits=6), "w", output="bits"),
        Column(bitldp.Duchi(epsilon=2.0, features=3, spend="sample", k=1), ["p", "q", "r"]),
        Column(bitldp.LabelLaplace(3, epsilon=2.0), "shade", categories=["x", "y", "z"]),
    ]
)


def answers(rng: np.random.Generator) -> tuple[Any, ...]:
    """Return what one person answers."""
    city = str(rng.choice(["Paris", "Rome", "Oslo"], p=[0.5, 0.3, 0.2]))
    return (rng.normal(170.0, 8.0), city, "", 7, [0.5, -0.5], 1.0, [0.5, 0.2, -0.3], "y")


@pytest.fixture(scope="module")
def reports() -> list[bytes]:
    """Return the reports of 400 people, seeded."""
    form, rng = open_document(PLAN.client_document()), np.random.default_rng(4)
    return [form.randomize(*answers(rng), rng=index) for index in range(400)]


def test_a_form_says_what_it_asks() -> None:
    form = open_document(PLAN.client_document(spends=("survey", 1)))
    assert form.epsilon == pytest.approx(PLAN.guarantee.record, rel=1e-12)
    assert form.fingerprint == PLAN.digest[:32]
    assert [record.names for record in form.program.records] == [codec.columns for codec in PLAN.codecs]
    assert form.program.records[1].labels == ("Paris", "Rome", "Oslo")
    assert form.program.records[2].labels == ("a", "b", "c", "")
    assert form.program.records[0].interval == (120.0, 220.0)


def test_what_clients_send_is_a_released_table(reports: list[bytes]) -> None:
    table = PLAN.from_clients(reports)
    people = PLAN.release()(
        {
            "height": [170.0],
            "city": ["Rome"],
            "food": ["a"],
            "age": ["7"],
            **{name: [0.5] for name in "uvwpqr"},
            "shade": ["y"],
        }
    )
    assert table.column_names == list(people)
    assert table.schema.metadata[b"bitldp.plan"].decode() == PLAN.digest
    estimates = (
        PLAN.aggregate().update(PLAN.from_clients(reports[:150])).update(PLAN.from_clients(reports[150:]))
    )
    rows = estimates.estimate().to_pylist()
    assert rows == PLAN.aggregate().update(table).estimate().to_pylist()
    wanted = {
        ("height", None): 170.0,
        ("city", "Paris"): 0.5,
        ("food", None): 1.0,
        ("age", "7"): 1.0,
        ("u", None): 0.5,
        ("w", None): 1.0,
        ("q", None): 0.2,
        ("shade", "y"): 1.0,
    }
    found = {(row["column"], row["category"]): row for row in rows}
    for key, truth in wanted.items():
        assert abs(found[key]["estimate"] - truth) < 5.0 * found[key]["stderr"], key


def test_the_command_line_answers_from_the_collectors_file(reports: list[bytes], tmp_path: Path) -> None:
    PLAN.write(tmp_path / "plan.toml")
    with pq.ParquetWriter(tmp_path / "reports.parquet", PLAN.from_clients(reports[:1]).schema) as file:
        for start in range(0, 400, 100):
            file.write_table(PLAN.from_clients(reports[start : start + 100]))
    result = invoke(
        "estimate", tmp_path / "reports.parquet", "--plan", tmp_path / "plan.toml", "--format", "json"
    )
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    (height,) = [row for row in rows if row["column"] == "height"]
    assert height["records"] == 400
    assert abs(height["estimate"] - 170.0) < 5.0 * height["stderr"]
    other = TablePlan([Column(bitldp.Piecewise(epsilon=1.0, interval=(120.0, 220.0)), "height")])
    other.write(tmp_path / "other.toml")
    for plan, message in (("other.toml", "plan"), ("reports.parquet", "--plan: is for a TOML file")):
        refused = invoke("estimate", tmp_path / "reports.parquet", "--plan", tmp_path / plan)
        assert refused.exit_code != 0
        assert message in refused.stderr


def test_reports_of_another_length_are_refused() -> None:
    whole = bytes(open_document(PLAN.client_document()).report_bytes())
    with pytest.raises(ValueError, match=r"at index 1$"):
        PLAN.from_clients([whole, b"\x00"])


def test_a_code_that_is_none_is_refused() -> None:
    plan = TablePlan([Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["a", "b", "c"])])
    with pytest.raises(ValueError, match=r"reports: the integer at index \(1,\) is outside"):
        plan.from_clients([b"\x80", b"\xc0"])


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (Column(bitldp.Duchi(epsilon=1.0), "x", nulls="fill", fill=0.0), '"fill" in the plan has no client'),
        (Column(bitldp.Duchi(epsilon=3.0), "x", nulls="report"), '"report" in the plan has no client'),
        (
            Column(bitldp.GRR(5, epsilon=1.0), "x", interval=(0.0, 1.0)),
            "a client takes categories, and numbers",
        ),
        (
            Column(bitldp.Duchi(epsilon=1.0, interval=(0.0, 9.0)), "x", unit="days"),
            "in the units of the mechanism",
        ),
        (Column(bitldp.Gaussian(epsilon=1.0, delta=1e-6, features=2), ["x", "y"]), "adds up the deltas"),
    ],
)
def test_a_column_that_no_client_can_release_is_refused(column: Column, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        TablePlan([column]).client_document()


def test_a_form_keeps_nothing() -> None:
    plan = TablePlan([Column(bitldp.WarnerRR(epsilon=1.0), "x", categories=["a", "b"])], keep=["id"])
    with pytest.raises(PlanError, match="leave as they are"):
        plan.client_document()
