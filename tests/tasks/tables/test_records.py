"""Several columns as one record of a plan: one budget, reports that an estimate and a key go through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from bitldp.tables import Aggregate, Column, PlanError, ReleaseKey, TablePlan

CITIES, COLORS = ["Paris", "Rome", "Oslo"], ["red", "green"]
SHARES = {"city": [0.5, 0.3, 0.2], "color": [0.9, 0.1]}
ROWS = 30_000


def people(rows: int = ROWS) -> Any:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "city": rng.choice(CITIES, rows, p=SHARES["city"]),
            "height": 160.0 + 20.0 * rng.random(rows),
            "color": rng.choice(COLORS, rows, p=SHARES["color"]),
            "id": np.arange(rows),
        }
    )


def categorical(**options: Any) -> Column:
    mechanism = bitldp.CategoricalRecord((3, 2), epsilon=3.0, **options)
    return Column(mechanism, ["city", "color"], categories=[CITIES, COLORS])


def mixed(**options: Any) -> Column:
    mechanism = bitldp.MixedRecord((3, 2), features=1, epsilon=3.0, interval=(150.0, 190.0), **options)
    return Column(mechanism, ["height", "city", "color"], categories=[CITIES, COLORS])


COLUMNS = {
    "sampled": categorical(k=1),
    "two sampled": categorical(k=2),
    "split": categorical(spend="split"),
    "bits": categorical(k=1, oracle=("OUE", "GRR")),
    "mixed": mixed(k=1),
    "mixed split": mixed(spend="split"),
}


def check(rows: list[dict[str, Any]], numbers: bool) -> None:
    """Every answer within 7 standard errors, alpha 3e-12 each; n = 30,000."""
    found = {(row["column"], row["category"]): row for row in rows}
    for name, labels in (("city", CITIES), ("color", COLORS)):
        for label, share in zip(labels, SHARES[name], strict=True):
            row = found[name, label]
            assert row["what"] == "share"
            # the sample differs from the shares, too
            assert abs(row["estimate"] - share) < 7.0 * (row["stderr"] + (share / ROWS) ** 0.5)
            assert row["low"] < row["estimate"] < row["high"]
    assert (("height", None) in found) == numbers
    if numbers:
        row = found["height", None]
        assert (row["what"], abs(row["estimate"] - 170.0) < 7.0 * row["stderr"] + 0.3) == ("mean", True)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_record_is_released_and_estimated(name: str) -> None:
    column, table = COLUMNS[name], people()
    plan = TablePlan([column], keep=["id"])
    assert plan.guarantee.record == column.mechanism.guarantee.record <= 3.0
    released = plan.release()(table)
    assert not {"city", "color", "height"} & set(released.column_names)
    one, other = (plan.aggregate().update(part) for part in (released.slice(0, 9_999), released.slice(9_999)))
    counted = one.merge(Aggregate.from_json(other.to_json(), plan))
    check(counted.estimate().to_pylist(), "mixed" in name)


@pytest.mark.parametrize("name", COLUMNS)
def test_with_a_key_a_record_has_one_report(name: str) -> None:
    plan, table = TablePlan([COLUMNS[name]], keep=["id"]), people(500)
    release = plan.release(ReleaseKey(bytes(range(32))), record="id", snapshot="one")
    whole = release(table)
    order = np.random.default_rng(1).permutation(500)
    again = pa.concat_tables([release(table.take(order[:77])), release(table.take(order[77:]))])
    assert again.sort_by("id").equals(whole.sort_by("id"))
    other = plan.release(ReleaseKey(b"z" * 32), record="id", snapshot="one")(table)
    assert not other.equals(whole)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_plan_comes_back_from_its_files(name: str) -> None:
    plan = TablePlan([COLUMNS[name]])
    for again in (TablePlan.from_toml(plan.to_toml()), TablePlan.from_json(plan.to_json())):
        assert again == plan
        assert again.digest == plan.digest


def test_missing_values_are_a_category_or_refused() -> None:
    table = pa.table({"city": ["Rome", None, "Oslo"] * 4_000, "color": ["red", "green", None] * 4_000})
    plan = TablePlan([categorical(k=1)])
    with pytest.raises(Exception, match=r"row \d+, column 'c.*': missing value"):
        plan.release()(table)
    mechanism = bitldp.CategoricalRecord((4, 3), epsilon=4.0)
    column = Column(mechanism, ["city", "color"], categories=[CITIES, COLORS], nulls="category")
    plan = TablePlan([column])
    rows = plan.aggregate().update(plan.release()(table)).estimate().to_pylist()
    found = {(row["column"], row["category"]): row for row in rows}
    for name in ("city", "color"):
        assert abs(found[name, None]["estimate"] - 1.0 / 3.0) < 7.0 * found[name, None]["stderr"] + 0.01


def test_what_does_not_fit_is_refused() -> None:
    record = bitldp.CategoricalRecord((3, 2), epsilon=1.0)
    for options, message in (
        ({"columns": ["city"], "categories": [CITIES, COLORS]}, "takes 2 columns"),
        ({"categories": None}, "needs categories="),
        ({"categories": [CITIES]}, "needs categories="),
        ({"categories": [COLORS, CITIES]}, "column 'city': CategoricalRecord has 3 categories there"),
        ({"categories": ["abc", "de"]}, "a list of values for each"),
        ({"categories": [["a", "a", "b"], COLORS]}, "two are the same"),
        ({"output": "values"}, "use codes"),
        ({"label": "y"}, "label: CategoricalRecord has no label"),
        ({"nulls": "fill", "fill": "red"}, "is for one column"),
        ({"decode": "reported"}, "not numbers"),
    ):
        given: dict[str, Any] = {"columns": ["city", "color"], "categories": [CITIES, COLORS]} | options
        with pytest.raises(PlanError, match=message):
            Column(record, **given)
    with pytest.raises(PlanError, match="nulls='category' is for categories"):
        Column(
            bitldp.MixedRecord((4, 3), features=1, epsilon=1.0),
            ["height", "city", "color"],
            categories=[CITIES, COLORS],
            nulls="category",
        )
    with pytest.raises(PlanError, match="public=False"):
        Column(bitldp.BlockDesign(11, epsilon=1.0, public=True), "city", categories=list("abcdefghijk"))


PLAN = """
keep = ["id"]

[[column]]
mechanism = "MixedRecord"
parameters = { features = 1, sizes = [3, 2], epsilon = 3.0, interval = [150, 190], k = 1 }
columns = ["height", "city", "color"]
categories = [["Paris", "Rome", "Oslo"], ["red", "green"]]
"""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_line_takes_a_record(tmp_path: Path, suffix: str) -> None:
    """From a file and a plan to answers, whose report is verified; other columns stay where they are."""
    pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')
    from support.command import invoke

    source, target = tmp_path / f"people.{suffix}", tmp_path / f"released.{suffix}"
    (pa.csv.write_csv if suffix == "csv" else pa.parquet.write_table)(people(), source)
    (tmp_path / "plan.toml").write_text(PLAN)
    result = invoke("perturb", source, "-o", target, "--plan", tmp_path / "plan.toml")
    assert result.exit_code == 0, result.output
    answers = invoke("estimate", target, "--format", "json")
    assert answers.exit_code == 0, answers.output
    check(json.loads(answers.output), True)
    assert invoke("verify", f"{target}.privacy.json", target).exit_code == 0
    report = json.loads(Path(f"{target}.privacy.json").read_text())
    assert report["mechanisms"][0]["categories"] == [CITIES, COLORS]
    assert report["total_per_record"]["epsilon_exact"] <= 3.0
    wrong = PLAN.replace('"red", "green"', '"red", "blue", "green"')
    (tmp_path / "wrong.toml").write_text(wrong)
    refused = invoke("perturb", source, "-o", tmp_path / "x.csv", "--plan", tmp_path / "wrong.toml")
    assert refused.exit_code == 2
    assert "column 'color': MixedRecord has 2 categories" in " ".join(refused.output.split())


def test_the_labels_of_a_mechanism_are_the_lists_of_its_columns() -> None:
    named = Column(bitldp.CategoricalRecord([CITIES, COLORS], epsilon=3.0, k=1), ["city", "color"])
    plan = TablePlan([named], keep=["id"])
    assert TablePlan.from_toml(plan.to_toml()) == plan
    rows = plan.aggregate().update(plan.release()(people(100))).estimate().to_pylist()
    assert [row["category"] for row in rows] == [*CITIES, *COLORS]
