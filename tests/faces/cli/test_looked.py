"""A look through the input before the ledger is charged: what is refused costs nothing."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bitldp.ledger import Ledger
from support.command import invoke
from support.refusals import FRR

PLAN = """
[[column]]
mechanism = "Piecewise"
parameters = { epsilon = 1.0, interval = [0, 100] }
columns = "age"

[[column]]
mechanism = "GRR"
parameters = { categories = 2, epsilon = 1.0 }
columns = "city"
categories = ["Rome", "Oslo"]
"""
ROWS = ["1,41,Rome", "2,29,Oslo", "3,77,Rome"]
FAULTS = {
    "a missing value": (
        "3,,Rome",
        'row 3, column \'age\': missing value; nulls = "report" or "fill" in a plan',
    ),
    "no label": ("3,77,", "row 3, column 'city': missing value; nulls = \"category\" in a plan"),
    "another label": ("3,77,Berne", "row 3, column 'city': not one of the categories given"),
    "no number": ("3,x,Rome", "row 3, column 'age': not a number"),
}


def written(folder: Path, *rows: str) -> Path:
    (folder / "plan.toml").write_text(PLAN)
    (folder / "release.key").write_text(secrets.token_hex(32))
    (folder / "release.key").chmod(0o600)
    (folder / "people.csv").write_text("\n".join(["id,age,city", *rows]) + "\n")
    return folder / "people.csv"


def charged(
    folder: Path, *more: object, source: object = "people.csv", target: str = "out.csv"
) -> tuple[int, str]:
    """Release a file under a ledger of its own; return the exit code and what is said."""
    result = invoke(
        *("perturb", folder / str(source), "-o", folder / target, "--ledger", folder / "people.ledger", *more)
    )
    return result.exit_code, result.output


@pytest.mark.parametrize("keyed", [False, True], ids=["fresh", "keyed"])
@pytest.mark.parametrize(("row", "said"), FAULTS.values(), ids=FAULTS)
def test_a_table_that_is_refused_costs_nothing(tmp_path: Path, row: str, said: str, keyed: bool) -> None:
    written(tmp_path, *ROWS[:2], row)
    key = ("--record", "id", "--key-file", tmp_path / "release.key") if keyed else ()
    plan = ("--plan", tmp_path / "plan.toml", *key)
    code, output = charged(tmp_path, *plan, "--budget", 3)
    assert code == 1
    assert said in output
    assert not (tmp_path / "people.ledger").exists()
    written(tmp_path, *ROWS)
    assert charged(tmp_path, *plan[: 2 if not keyed else None], "--budget", 3)[0] == 0
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        assert ledger.spent == pytest.approx(2.0)


def test_a_later_table_that_is_refused_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    written(tmp_path, *ROWS)
    plan = ("--plan", tmp_path / "plan.toml")
    assert charged(tmp_path, *plan, "--budget", 9)[0] == 0
    before = (tmp_path / "people.ledger").read_bytes()
    written(tmp_path, *ROWS, "4,1,Berne")
    assert charged(tmp_path, *plan, target="again.csv")[0] == 1
    assert (tmp_path / "people.ledger").read_bytes() == before


def test_an_id_that_comes_twice_costs_nothing(tmp_path: Path) -> None:
    written(tmp_path, *ROWS, ROWS[0])
    key = ("--record", "id", "--key-file", tmp_path / "release.key")
    code, output = charged(tmp_path, "--plan", tmp_path / "plan.toml", *key, "--budget", 3)
    assert code == 1
    assert "id" in output
    assert not (tmp_path / "people.ledger").exists()


@pytest.mark.parametrize("target", ["out.csv", "out"])
def test_many_files_cost_nothing_if_one_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "parts").mkdir()
    written(tmp_path, *ROWS).rename(tmp_path / "parts" / "a.csv")
    written(tmp_path, "4,5,Rome", "5,x,Rome").rename(tmp_path / "parts" / "b.csv")
    plan = ("--plan", tmp_path / "plan.toml", "--budget", 3)
    code, output = charged(tmp_path, *plan, source="parts", target=target)
    assert code == 1
    assert "b.csv: row 2, column 'age': not a number" in output
    assert not (tmp_path / "people.ledger").exists()


def test_an_array_that_is_refused_costs_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[0.5, 0.5], [0.5, np.nan]]))
    code, output = charged(tmp_path, *FRR, "--budget", 3, source="x.npy", target="y.npy")
    assert code == 1
    assert "row 2, column '1': missing value" in output
    assert not (tmp_path / "people.ledger").exists()


def test_decimal_commas_are_read_under_a_key_and_a_ledger(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "people.csv").write_text("id;age;city\n1;41,5;Rome\n2;29;Oslo\n")
    key = ("--record", "id", "--key-file", tmp_path / "release.key")
    forms = ("--delimiter", ";", "--decimal", ",", "--plan", tmp_path / "plan.toml")
    code, output = charged(tmp_path, *forms, *key, "--budget", 3, target="out.parquet")
    assert code == 0, output


def test_the_released_file_leads_to_its_report(tmp_path: Path) -> None:
    written(tmp_path, *ROWS)
    assert charged(tmp_path, "--plan", tmp_path / "plan.toml", "--budget", 3)[0] == 0
    result = invoke("verify", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert "the file matches the digest in the report" in result.output
    assert result.output.splitlines()[-1] == "proven"


def test_what_is_no_report_says_which_file_to_give(tmp_path: Path) -> None:
    (tmp_path / "other.parquet").write_bytes(b"PAR1\xff\xfe")
    program = [sys.executable, "-m", "bitldp", "verify"]
    other, absent = (
        subprocess.run([*program, str(tmp_path / name)], capture_output=True, text=True, check=False)
        for name in ("other.parquet", "absent.json")
    )
    assert (other.returncode, absent.returncode) == (1, 1)
    assert "is not a privacy report; give OUTPUT.privacy.json" in other.stderr
    assert "absent.json: No such file or directory" in absent.stderr
