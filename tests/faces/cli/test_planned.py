"""From a file to an answer: ``perturb --plan``, ``estimate`` and ``verify``, with keys and ledgers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import bitldp
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from bitldp.ledger import Ledger
from bitldp.tables import Column, ReleaseKey, TablePlan
from bitldp.tables.column import canonical_digest
from support.command import invoke
from support.plans import people, plan

ROWS = 20_000
TRUTH = {("height", None): 170.0, ("weight", None): 70.0, ("city", "Paris"): 0.5, ("city", "Rome"): 0.3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("planned")
    table = people(ROWS)
    pa.parquet.write_table(table, found / "people.parquet")
    pa.csv.write_csv(table, found / "people.csv")
    pa.feather.write_feather(table, str(found / "people.feather"), compression="uncompressed")
    plan().write(found / "plan.toml")
    (found / "key").write_text(ReleaseKey.new_text())
    (found / "key").chmod(0o600)
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("small")
    pa.csv.write_csv(people(50), made / "people.csv")
    plan().write(made / "plan.toml")
    return made


def perturb(folder: Path, source: str, target: Path, *more: object) -> Any:
    return invoke("perturb", folder / source, "-o", target, "--plan", folder / "plan.toml", *more)


@pytest.mark.parametrize("source", ["people.csv", "people.parquet", "people.feather"])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_a_file_becomes_an_answer(folder: Path, tmp_path: Path, source: str, suffix: str) -> None:
    """N = 20,000 fresh coins: each of four answers within 7 standard errors (alpha 3e-12 each)."""
    target = tmp_path / f"released.{suffix}"
    result = perturb(folder, source, target)
    assert result.exit_code == 0, result.output
    assert "exact epsilon 9 a row" in result.output
    answers = invoke("estimate", target, "--format", "json")
    assert answers.exit_code == 0, answers.output
    rows = json.loads(answers.output)
    found = {(row["column"], row["category"]): row for row in rows}
    for key, truth in TRUTH.items():
        assert abs(found[key]["estimate"] - truth) < 7.0 * found[key]["stderr"] + 0.2 * (key[1] is None)
    assert found["height", None]["records"] == ROWS
    assert invoke("verify", f"{target}.privacy.json", target).exit_code == 0


@pytest.mark.slow
def test_answers_come_as_a_table_as_csv_and_by_group(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "released.parquet"
    perturb(folder, "people.parquet", target)
    shown = invoke("estimate", target)
    assert "share of Paris" in shown.output
    assert "share of missing values" in shown.output
    lines = invoke("estimate", target, "--format", "csv", "--group-by", "survey").output.splitlines()
    assert lines[0].startswith("survey,column,what,category,estimate,stderr,low,high,records")
    assert len(lines) == 1 + 2 * 9
    for arguments, words in [
        (("--group-by", "height"), "--group-by: 'height' is not a column that the plan keeps"),
        (("--level", "1"), "--level: must be"),
        (("--format", "xml"), "--format xml: must be"),
        (("--report", tmp_path / "none"), "no such report"),
    ]:
        refused = invoke("estimate", target, *arguments)
        assert refused.exit_code == 2
        assert words in refused.output


@pytest.mark.slow
def test_a_run_of_one_mechanism_is_estimated_too(folder: Path, tmp_path: Path) -> None:
    for number, arguments in enumerate(
        [
            ("piecewise", "--columns", "height,weight", "--low", 40, "--high", 220),
            ("frr", "--columns", "height", "--integer-bits", 8),
            ("frr", "--columns", "height", "--integer-bits", 8, "--output", "values"),
            ("frr", "--columns", "height", "--integer-bits", 8, "--output", "bits"),
            ("grr", "--columns", "height", "--low", 100, "--high", 240, "--points", 15),
            ("oue", "--columns", "city", "--categories", "Paris,Rome,Oslo"),
        ]
    ):
        target = tmp_path / f"o{number}.csv"
        result = invoke(
            "perturb", folder / "people.csv", "-o", target, "--epsilon", 20, "--mechanism", *arguments
        )
        assert result.exit_code == 0, result.output
        answers = invoke("estimate", target, "--format", "json")
        assert answers.exit_code == 0, answers.output
        row = json.loads(answers.output)[0]
        truth = 0.5 if row["what"] == "share" else 170.0
        assert abs(row["estimate"] - truth) < 6.0 * row["stderr"] + 0.5
        assert invoke("verify", f"{target}.privacy.json", target).exit_code == 0


@pytest.mark.parametrize("output", ["codes", "values", "bits"])
def test_words_of_bits_are_estimated_from_the_file_alone(folder: Path, tmp_path: Path, output: str) -> None:
    """F-RR on heights, n = 20,000: within 5 standard errors, and the step that numbers are cut to.

    Nothing but the released file and its report is there: no plan, no mechanism, no data.
    """
    made, elsewhere = tmp_path / "made.csv", tmp_path / "elsewhere"
    frr = ("--mechanism", "frr", "--epsilon", 20, "--integer-bits", 8, "--bits", 12, "--output", output)
    result = invoke("perturb", folder / "people.csv", "-o", made, *frr, "--columns", "height")
    assert result.exit_code == 0, result.output
    elsewhere.mkdir()
    made.rename(elsewhere / "made.csv")
    made.with_name("made.csv.privacy.json").rename(elsewhere / "made.csv.privacy.json")
    (row,) = json.loads(invoke("estimate", elsewhere / "made.csv", "--format", "json").output)
    step = 2.0**-3  # of 12 bits one is the sign and eight are whole
    truth = float(people(ROWS).column("height").to_numpy().mean())
    assert abs(row["estimate"] - truth) < 5.0 * row["stderr"] + step
    assert row["stderr"] < 10.0


def test_a_ledger_is_charged_before_anything_leaves(folder: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    refused = perturb(folder, "people.csv", tmp_path / "a.csv", "--ledger", ledger)
    assert refused.exit_code == 2
    assert "--budget E creates one" in refused.output
    assert (
        perturb(folder, "people.csv", tmp_path / "a.csv", "--ledger", ledger, "--budget", 10).exit_code == 0
    )
    again = perturb(folder, "people.csv", tmp_path / "b.csv", "--ledger", ledger)
    assert again.exit_code == 1
    assert f"{ledger}: 1 release of epsilon" in again.output
    assert "exceed the budget" in again.output
    assert not (tmp_path / "b.csv").exists()
    assert perturb(folder, "people.csv", tmp_path / "b.csv", "--ledger", ledger, "--budget", 9).exit_code == 2


def _report(target: Path) -> Path:
    return target.with_name(f"{target.name}.privacy.json")


def test_a_ledger_that_was_put_back_is_refused_after_a_report(small: Path, tmp_path: Path) -> None:
    ledger, older = tmp_path / "ledger.json", tmp_path / "older.json"
    first, second, third = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
    assert perturb(small, "people.csv", first, "--ledger", ledger, "--budget", 100).exit_code == 0
    shutil.copy(ledger, older)
    done = perturb(small, "people.csv", second, "--ledger", ledger, "--after", _report(first))
    assert done.exit_code == 0, done.output
    states = [json.loads(_report(target).read_text())["ledger_state"] for target in (first, second)]
    assert [state["entries"] for state in states] == [1, 3]  # between them, the output of the first
    with Ledger.open(ledger) as found:
        assert found._state(3)._asdict() == states[1]
    assert invoke("verify", _report(second), second).exit_code == 0
    shutil.copy(older, ledger)
    refused = perturb(small, "people.csv", third, "--ledger", ledger, "--after", _report(second))
    assert refused.exit_code == 1
    assert f"does not start with the 3 charges of --after {_report(second)}" in refused.output
    assert "an older copy may have been restored" in refused.output
    assert not third.exists()
    assert ledger.read_bytes() == older.read_bytes()
    ledger.unlink()
    gone = perturb(small, "people.csv", third, "--ledger", ledger, "--after", _report(second))
    assert gone.exit_code == 2
    assert gone.output.rstrip().endswith("no such ledger")


def test_after_needs_a_ledger_and_the_report_of_one(small: Path, tmp_path: Path) -> None:
    ledger, target = tmp_path / "ledger.json", tmp_path / "a.csv"
    assert perturb(small, "people.csv", target).exit_code == 0
    Ledger(100.0).save(ledger)
    none, broken = tmp_path / "none.json", tmp_path / "broken.json"
    broken.write_text(json.dumps({"ledger_state": {"entries": -1, "sha256": "x"}}))
    for given, words in (
        (("--after", _report(target)), "--after: needs --ledger"),
        (("--after", none, "--ledger", ledger), "none.json: No such file"),
        (("--after", broken, "--ledger", ledger), "is not a privacy report of a run that charged a ledger"),
        (("--after", _report(target), "--ledger", ledger), "is not a privacy report of a run that charged"),
        (("--after", broken, "--ledger", none, "--budget", 9), "--after, --budget: a new ledger"),
    ):
        refused = perturb(small, "people.csv", tmp_path / "b.csv", *given)
        assert refused.exit_code == 2, refused.output
        assert words in refused.output
        assert not (tmp_path / "b.csv").exists()


def test_a_state_of_a_ledger_that_cannot_be_is_false(small: Path, tmp_path: Path) -> None:
    target, ledger = tmp_path / "a.csv", tmp_path / "ledger.json"
    assert perturb(small, "people.csv", target, "--ledger", ledger, "--budget", 100).exit_code == 0
    report = json.loads(_report(target).read_text())
    state = report["ledger_state"]
    for other in (None, {}, {**state, "entries": 0}, {**state, "sha256": "x"}, {**state, "more": 1}):
        made = {**report, "ledger_state": other}
        del made["report_sha256"]
        _report(target).write_text(json.dumps({**made, "report_sha256": canonical_digest(made)}))
        assert invoke("verify", _report(target), target).exit_code == 1, other
    before = {name: each for name, each in report.items() if name not in ("ledger_state", "report_sha256")}
    _report(target).write_text(json.dumps({**before, "report_sha256": canonical_digest(before)}))
    assert invoke("verify", _report(target), target).exit_code == 0  # of before states were written


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--mechanism", "grr"), "--plan: names mechanisms and columns"),
        (("--columns", "height"), "--plan: names mechanisms and columns; leave out --columns"),
        (("--keep", "id", "--integer-bits", "8"), "leave out --keep, --integer-bits"),
        (("--seed", "1"), "--seed does not work with --plan"),
        (("--record", "id"), "--record needs the release key"),
        (("--key-env", "NO_SUCH"), "--record: a key needs"),
        (("--record", "id", "--key-env", "NO_SUCH_KEY"), "the variable NO_SUCH_KEY is not set"),
        (("--record", "id", "--key-file", "no.key"), "--key-file: no.key: no such file"),
        (("--budget", "3"), "--budget: creates a ledger"),
    ],
)
def test_what_does_not_go_together_is_said(
    folder: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    result = perturb(folder, "people.csv", tmp_path / "x.csv", *arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert not (tmp_path / "x.csv").exists()


def test_a_bad_plan_names_its_line(folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "plan.toml"
    lines = (folder / "plan.toml").read_text().splitlines()
    line = lines.index('mechanism = "GRR"')
    bad.write_text("\n".join([*lines[:line], 'mechanism = "GRRR"', *lines[line + 1 :]]))
    result = invoke("perturb", folder / "people.csv", "-o", tmp_path / "x.csv", "--plan", bad)
    assert result.exit_code == 2
    assert (
        f"{bad}: line {line + 1}: mechanism: 'GRRR' is not a mechanism of bitldp; is GRR meant?"
        in result.output
    )
    missing = invoke(
        "perturb", folder / "people.csv", "-o", tmp_path / "x.csv", "--plan", tmp_path / "no.toml"
    )
    assert missing.exit_code == 2
    assert "no.toml: no such file" in missing.output


def test_what_is_said_is_in_the_words_of_a_plan(folder: Path, tmp_path: Path) -> None:
    said = perturb(folder, "people.csv", tmp_path / "x.csv").output
    assert 'decode = "reported" in the plan writes' in said
    assert "--" not in said
    (words,) = TablePlan([Column(bitldp.FRR(features=1, epsilon=4.0), "height", output="codes")]).codecs
    assert 'output = "values" in the plan writes numbers' in words.decoding.sentence
    assert "--" not in words.decoding.sentence
