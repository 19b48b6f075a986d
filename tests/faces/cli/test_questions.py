"""Questions on the command line: ``bitldp estimate --mean hours --by income`` and the others."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')
pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.parquet
from support.command import invoke

ROWS = 5_000
PLAN = """
keep = ["survey", "date"]
[[column]]
mechanism = "Piecewise"
parameters = { epsilon = 6.0, interval = [0, 80] }
columns = "hours"
[[column]]
mechanism = "Piecewise"
parameters = { epsilon = 6.0, interval = [0, 50] }
columns = "wage"
[[column]]
mechanism = "GRR"
parameters = { categories = 2, epsilon = 4.0 }
columns = "income"
categories = ["low", "high"]
[[column]]
mechanism = "GRR"
parameters = { categories = 6, epsilon = 4.0 }
columns = "age"
interval = [20, 70]
"""


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asked")
    rng = np.random.default_rng(1)
    high = rng.random(ROWS) < 0.3
    people = pa.table(
        {
            "hours": np.clip(rng.normal(30.0 + 20.0 * high, 5.0), 0.0, 80.0),
            "wage": np.clip(rng.normal(20.0 + 10.0 * high, 5.0), 0.0, 50.0),
            "income": np.where(high, "high", "low"),
            "age": rng.choice(np.arange(20, 71, 10), ROWS),
            "survey": rng.choice(["a", "b"], ROWS),
            "date": np.datetime64("2026-01-01") + rng.integers(0, 59, ROWS),
        }
    )
    pa.parquet.write_table(people, folder / "people.parquet")
    (folder / "plan.toml").write_text(PLAN)
    target = folder / "released.parquet"
    made = invoke("perturb", folder / "people.parquet", "-o", target, "--plan", folder / "plan.toml")
    assert made.exit_code == 0, made.output
    return target


@pytest.mark.parametrize(
    ("question", "keys", "rows", "truth"),
    [
        (("--mean", "hours", "--by", "income"), ["income"], 2, 30.0),
        (("--mean", "hours", "--by", "survey,income"), ["survey", "income"], 4, 30.0),
        (("--total", "income"), ["income"], 2, 0.7 * ROWS),
        (("--share", "income", "--by", "survey"), ["survey", "income"], 4, 0.7),
        (("--table", "income,age"), ["income", "age"], 12, 0.7 / 6),
        (("--quantile", "age", "--q", "0.5,0.9", "--by", "income"), ["income", "q"], 4, 45.0),
        (("--cdf", "age", "--at", "40,60"), ["at"], 2, 0.5),
        (("--ratio", "hours,wage", "--by", "income"), ["income"], 2, 1.5),
        (("--correlation", "hours,wage"), [], 1, 0.73),
        (("--regress", "hours", "--on", "income,wage"), ["term", "category"], 3, 30.0),
        (("--covariance", "hours,wage"), [], 1, 42.0),
        (("--difference", "hours", "--by", "income", "--base", "high"), ["income"], 1, -20.0),
        (("--histogram", "age", "--bins", "20,40,70"), ["from", "to"], 2, 1 / 3),
        (("--histogram", "age", "--bins", "3", "--by", "survey"), ["survey", "from", "to"], 6, 1 / 3),
        (("--logistic", "income", "--on", "age", "--category", "low"), ["term", "category"], 6, 0.85),
        (("--mean", "hours", "--where", "income=high"), [], 1, 50.0),
        (("--mean", "hours", "--where", "income=high", "--where", "age>=40"), [], 1, 50.0),
        (("--mean", "hours", "--where", "survey = a,b", "--where", "date<2026-02-01"), [], 1, 36.0),
        (("--mean", "hours", "--by", "date,income", "--every", "month"), ["date", "income"], 4, 30.0),
    ],
)
def test_each_question(
    released: Path, question: tuple[str, ...], keys: list[str], rows: int, truth: float
) -> None:
    """N = 5,000 at large budgets; the random bits are fresh, so that bounds are wide."""
    said = invoke("estimate", released, *question, "--format", "json")
    assert said.exit_code == 0, said.output
    found = json.loads(said.output)
    assert len(found) == rows
    assert [name for name in found[0] if name in keys] == keys
    assert found[0]["low"] <= found[0]["estimate"] <= found[0]["high"]
    assert abs(found[0]["estimate"] - truth) < 8.0 * found[0]["stderr"] + 0.05 * abs(truth)


def test_answers_are_shown_as_a_table_and_as_csv(released: Path) -> None:
    shown = invoke("estimate", released, "--table", "income,age", "--simultaneous", "bonferroni", "--project")
    assert shown.exit_code == 0, shown.output
    for word in (
        "share of income, age",
        "for all at once (bonferroni)",
        "unprojected",
        "nearest of 6 points",
    ):
        assert word in shown.output
    text = invoke("estimate", released, "--mean", "hours", "--by", "income", "--format", "csv").output
    assert [row["income"] for row in csv.DictReader(io.StringIO(text))] == ["low", "high"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--by", "income"), "--by: needs a question"),
        (("--project",), "needs a question"),
        (("--mean", "hours", "--share", "income"), "one question at a time"),
        (("--mean", "hours,wage"), "--mean: takes one column"),
        (("--ratio", "hours"), "--ratio: takes two columns"),
        (("--cdf", "age"), "--at: goes with --cdf"),
        (("--regress", "hours"), "--on: goes with --regress"),
        (("--table", "income", "--by", "survey"), "--by: cannot be combined with --table"),
        (("--quantile", "age", "--q", "half"), "--q: must be numbers"),
        (("--quantile", "age", "--q", "2"), "q: must be above 0"),
        (("--mean", "hours", "--group-by", "survey"), "--group-by: cannot be combined with a question"),
        (("--mean", "hours", "--simultaneous", "all"), "--simultaneous all: must be one of"),
        (("--quantile", "hours"), "a plan with GRR and interval="),
        (("--mean", "name"), "was not released"),
        (("--where", "survey=a"), "--where: needs a question"),
        (("--every", "day"), "--every: needs a question"),
        (("--mean", "hours", "--where", "survey"), "--where survey: must be a column, one of = !="),
        (("--mean", "hours", "--where", "age<30,40"), "< takes one value"),
        (("--mean", "hours", "--where", "income=none"), "is not in column 'income'"),
        (("--mean", "hours", "--bins", "3"), "--bins: goes with --histogram"),
        (("--difference", "hours"), "--difference: needs --by"),
        (("--logistic", "income"), "--on: goes with --regress or --logistic"),
        (("--mean", "hours", "--every", "hour", "--by", "date"), "every: must be one of 'day'"),
    ],
)
def test_what_does_not_fit_is_refused(released: Path, arguments: tuple[str, ...], said: str) -> None:
    refused = invoke("estimate", released, *arguments)
    assert refused.exit_code in (1, 2)
    assert said in " ".join(refused.output.split())


def test_counts_are_kept_and_added_to(released: Path, tmp_path: Path) -> None:
    """Two halves of a file, a day each: the answer is that of the whole."""
    kept, rows = tmp_path / "hours.json", pyarrow.parquet.read_table(released)
    report = json.loads(Path(f"{released}.privacy.json").read_text())
    question = ("--mean", "hours", "--by", "income", "--format", "json")
    for number, part in enumerate((rows.slice(0, 2_000), rows.slice(2_000))):
        day = tmp_path / f"{number}.parquet"
        pyarrow.parquet.write_table(part, day)
        own = {**report, "output_sha256": hashlib.sha256(day.read_bytes()).hexdigest()}
        Path(f"{day}.privacy.json").write_text(json.dumps(own))
        said = invoke("estimate", day, *question, "--counts", kept)
        assert said.exit_code == 0, said.output
    assert json.loads(said.output) == json.loads(invoke("estimate", released, *question).output)
    again = invoke("estimate", day, *question, "--counts", kept)
    assert again.exit_code == 1
    assert "was counted already" in again.output
    other = invoke("estimate", released, "--mean", "wage", "--counts", kept)
    assert "of another question" in other.output
    kept.write_text("{}")
    told = invoke("estimate", released, *question, "--counts", kept).output
    assert "is not a bitldp.question document" in told
    assert [each.name for each in tmp_path.glob("*.part")] == []
    assert "needs a question" in invoke("estimate", released, "--counts", kept).output


def test_two_releases_are_joined_by_pseudonyms(tmp_path: Path) -> None:
    """N = 4,000 people whose hours and income are released by two plans under one key."""
    rng = np.random.default_rng(2)
    high = rng.random(4_000) < 0.3
    people = pa.table(
        {
            "id": np.arange(4_000),
            "income": np.where(high, "high", "low"),
            "hours": np.clip(rng.normal(30.0 + 20.0 * high, 5.0), 0.0, 80.0),
        }
    )
    pyarrow.parquet.write_table(people, tmp_path / "people.parquet")
    (tmp_path / "key").write_text("1f" * 31 + "2e")
    (tmp_path / "key").chmod(0o600)
    _, hours, _, income, _ = PLAN.replace('keep = ["survey", "date"]\n', "").split("[[column]]")
    for name, column in (("hours", hours), ("income", income)):
        plan = tmp_path / f"{name}.toml"
        plan.write_text(f'keep_as = {{ id = "pseudonym" }}\n[[column]]{column}')
        run = ("perturb", tmp_path / "people.parquet", "-o", tmp_path / f"{name}.parquet", "--plan", plan)
        made = invoke(*run, "--record", "id", "--key-file", tmp_path / "key")
        assert made.exit_code == 0, made.output
        assert "id leaves as a pseudonym" in " ".join(made.output.split())
        report = json.loads((tmp_path / f"{name}.parquet.privacy.json").read_text())
        assert report["linked_by"] == ["id_pseudonym"]
        assert "linked, for everybody" in " ".join(report["notes"])
        proven = invoke("verify", tmp_path / f"{name}.parquet.privacy.json", tmp_path / f"{name}.parquet")
        assert proven.exit_code == 0, proven.output
        assert "linked by id_pseudonym" in " ".join(proven.output.split())
    question = ("--mean", "hours", "--by", "income", "--format", "json")
    said = invoke("estimate", tmp_path / "hours.parquet", *question, "--join", tmp_path / "income.parquet")
    assert said.exit_code == 0, said.output
    for row, truth in zip(json.loads(said.output), (30.0, 50.0), strict=True):
        assert abs(row["estimate"] - truth) < 8.0 * row["stderr"]
    refused = invoke("perturb", tmp_path / "people.parquet", "-o", tmp_path / "x.csv", "--plan", plan)
    assert "needs a key, and record='id'" in " ".join(refused.output.split())
    join = ("--join", tmp_path / "income.parquet")
    both = invoke("estimate", tmp_path / "hours.parquet", *question, *join, "--counts", tmp_path / "c")
    assert "--counts: works with one table" in both.output
