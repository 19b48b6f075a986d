"""``bitldp ledger``: the budget that is left, the history of charges, reservations, and charged reports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

from support.command import invoke

TABLE = "colour\n" + "red\ngreen\nblue\n" * 100
PLAN = """
[[column]]
mechanism = "GRR"
parameters = { categories = 3, epsilon = 1.0 }
columns = "colour"
categories = ["red", "green", "blue"]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "people.csv").write_text(TABLE)
    (folder / "colours.toml").write_text(PLAN)
    done = release(folder, "first.csv", "--budget", 5)
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def spent(made: Path, tmp_path: Path) -> Path:
    """Return a folder with a table, its release by a plan, and the ledger of it."""
    return shutil.copytree(made, tmp_path / "spent")


def release(folder: Path, name: str, *options: Any) -> Any:
    plan, ledger = folder / "colours.toml", folder / "people.ledger"
    source, target = folder / "people.csv", folder / name
    return invoke("perturb", source, "-o", target, "--plan", plan, "--ledger", ledger, *options)


def ledger(folder: Path, action: str, *more: Any) -> Any:
    return invoke("ledger", action, folder / "people.ledger", *more)


def test_what_is_spent_and_left(spent):
    assert ledger(spent, "remaining").output == "4.0\n"
    shown = ledger(spent, "show").output
    assert "epsilon 1 of 5 spent, 4 remains" in shown
    assert "colours.toml" in shown
    document = json.loads(ledger(spent, "show", "--json").output)
    assert document["by_plan"] == {"colours.toml": {"epsilon": 1.0, "releases": 1}}
    assert (document["spent"], document["remaining"], document["charges"]) == (1.0, 4.0, 2)


def test_a_charge_names_who_what_and_which_output(spent):
    report = json.loads((spent / "first.csv.privacy.json").read_text())
    charge, output = json.loads(ledger(spent, "history", "--json").output)
    assert charge["release"] == output["release"] == report["release"]
    assert (charge["plan"], charge["name"], charge["columns"]) == (
        report["plan_sha256"],
        "colours.toml",
        ["colour"],
    )
    assert (output["name"], output["output"]) == ("first.csv", report["output_sha256"])
    assert output["guarantee"]["record"] == 0.0
    assert charge["time"] == report["ledger"][0]["time"]
    assert report["ledger"][0]["number"] == charge["number"] == 1
    assert "user" not in report["ledger"][0]  # a report is handed out
    shown = ledger(spent, "history").output
    assert report["output_sha256"][:12] in shown
    assert "2 entries" in shown


def test_reports_that_were_charged_are_known(spent):
    assert release(spent, "second.csv").exit_code == 0
    reports = [spent / f"{name}.csv.privacy.json" for name in ("first", "second")]
    checked = ledger(spent, "check", *reports)
    assert checked.exit_code == 0
    assert f"{reports[1]}: charged by entry 3\n" in checked.output
    shutil.copy(spent / "people.ledger", spent / "kept")
    assert release(spent, "third.csv").exit_code == 0
    shutil.copy(spent / "kept", spent / "people.ledger")  # an older copy is put back
    refused = ledger(spent, "check", spent / "third.csv.privacy.json")
    assert refused.exit_code == 1
    assert "does not start with the charges that it had then" in refused.output
    text = (spent / "people.ledger").read_text()
    (spent / "people.ledger").write_text(text.replace('"count": 1', '"count": 2', 1))
    damaged = ledger(spent, "check")
    assert damaged.exit_code == 1
    assert "changed by hand" in damaged.output


def test_a_reservation_is_drawn_on_by_name(spent):
    assert ledger(spent, "reserve", "May", 3).output == "May: epsilon 3 is reserved, 1 remains beside\n"
    assert release(spent, "may.csv", "--reserve", "May").exit_code == 0
    assert ledger(spent, "remaining").output == "1.0\n"
    assert "reservation May" in ledger(spent, "show").output
    assert "2 left" in ledger(spent, "show").output
    assert ledger(spent, "reserve", "May", 0).exit_code == 0  # what is not used is given back
    assert ledger(spent, "remaining").output == "3.0\n"
    other = release(spent, "june.csv", "--reserve", "June")
    assert other.exit_code == 2
    assert "reservation: the ledger has no reservation of that name" in other.output
    assert not (spent / "june.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("spend", "people.ledger"), "spend: must be one of show, history, remaining, check, reserve"),
        (("show", "people.ledger", "more"), "show: takes one file"),
        (("show", "nothing"), "no such ledger"),
        (("reserve", "people.ledger", "May"), "reserve: needs a name and an epsilon"),
        (("reserve", "people.ledger", "May", "much"), "reserve: the epsilon must be a number, got much"),
        (("reserve", "people.ledger", "May", "9"), "exceed the budget"),
        (("check", "people.ledger", "people.csv"), "people.csv: is not a privacy report"),
        (("show", "people.ledger", "--delta", ".1"), "--delta: only for reserve"),
    ],
)
def test_what_is_asked_wrongly_is_named(spent, monkeypatch, arguments, said):
    monkeypatch.chdir(spent)
    refused = invoke("ledger", *arguments)
    assert refused.exit_code in (1, 2)
    assert said in refused.output


def test_a_run_without_a_ledger_says_so(spent):
    done = invoke("perturb", spent / "people.csv", "-o", spent / "x.csv", "--plan", spent / "colours.toml")
    assert done.output.count("no ledger was named") == 1
