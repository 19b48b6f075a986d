"""``bitldp plan``: a plan from types and questions, its errors, and what must be given since it is public."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from bitldp.tables import TablePlan
from support.command import invoke

PUBLIC = ("--interval", "height=120,220", "--categories", "sex=f,m")
ROWS = pa.table({"height": [170.0, 180.0] * 50, "sex": ["f", "m"] * 50})


def write(folder: Path, name: str) -> Path:
    path = folder / name
    if name.endswith(".parquet"):
        pa.parquet.write_table(ROWS, path)
    elif name.endswith(".csv"):
        path.write_text("height,sex\n" + "170,f\n180,m\n" * 50)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, ROWS.schema) as writer:
            writer.write_table(ROWS)
    return path


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "people.arrow"])
def test_a_draft_is_released_and_asked(tmp_path, name):
    source, plan, target = write(tmp_path, name), tmp_path / "plan.toml", tmp_path / "out.csv"
    asked = ("--epsilon", 2, "--columns", "height,sex", *PUBLIC, "--users", 100, "-o", plan)
    made = invoke("plan", source, *asked)
    assert made.exit_code == 0, made.output
    assert "mean(height)" in made.output
    assert TablePlan.read(plan).guarantee.record <= 2.0
    assert invoke("perturb", source, "-o", target, "--plan", plan).exit_code == 0
    assert invoke("estimate", target).exit_code == 0
    again = invoke("plan", source, *asked)
    assert again.exit_code == 2
    assert "plan.toml: exists already" in again.output


def test_json_holds_plan_and_errors(tmp_path):
    source = write(tmp_path, "people.parquet")
    asked = ("--columns", "height,sex", *PUBLIC, "--questions", "mean(height) by sex", "--json")
    document = json.loads(invoke("plan", source, "--epsilon", 2, *asked).output)
    assert [each["question"] for each in document["errors"]] == ["mean(height) by sex"]
    (column,) = document["plan"]["column"]  # told together, by one report
    assert column["columns"] == ["height", "sex"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--columns", "height,sex"), "--interval height=LOW,HIGH; --categories sex=A,B,..."),
        (("--columns", "height", "--interval", "height=3"), "--interval height=3: must be COLUMN=LOW,HIGH"),
        (("--columns", "height", "--interval", "height=3,1"), "LOW must be below HIGH"),
        (("--columns", "height", "--interval", "sex=3,4"), "no column 'sex' among --columns"),
        (("--columns", "sex", "--categories", "f,m"), "--categories: name the column"),
        (
            ("--columns", "sex", "--categories", "sex=f,m", "--questions", "why"),
            "questions: 'why' is not a question",
        ),
        (("--columns", "age"), "'age': the table has no such column; it has height, sex"),
    ],
)
def test_what_is_asked_wrongly_is_named(tmp_path, arguments, said):
    refused = invoke("plan", write(tmp_path, "people.parquet"), "--epsilon", 1, *arguments)
    assert refused.exit_code == 2
    assert said in refused.output
