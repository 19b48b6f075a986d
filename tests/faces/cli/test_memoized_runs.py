"""Runs of ``bitldp perturb --memoize``: days of one series, their reports, and what depends on the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import bitldp
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from bitldp.ledger import Ledger
from bitldp.tables import Column, ReleaseKey, TablePlan
from support.command import invoke

WORDS = ("tea", "coffee", "milk")


def write(folder: Path, *values: int) -> None:
    """Write 300 records, of which the first tenth holds the given values in turn."""
    drinks = [WORDS[values[row % len(values)] if row < 30 else row % 3] for row in range(300)]
    pa.csv.write_csv(pa.table({"id": range(300), "drink": drinks}), folder / "people.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("private", "other", "out"):
        (tmp_path / name).mkdir()
    column = Column(bitldp.GRR(3, epsilon=1.0), "drink", categories=WORDS)
    TablePlan([column]).write(tmp_path / "plan.toml")
    (tmp_path / "private" / "key").write_text(ReleaseKey.new_text())
    (tmp_path / "private" / "key").chmod(0o600)
    write(tmp_path, 0)
    return tmp_path


def run(folder: Path, target: str, *more: object, store: str = "private/store", most: int = 2) -> Any:
    capped = ("--most", most, "--store", folder / store) if most else ()
    given = ("--plan", folder / "plan.toml", "--record", "id", "--key-file", folder / "private" / "key")
    return invoke(
        *("perturb", folder / "people.csv", "-o", folder / "out" / target, *given),
        *("--memoize", *capped, *more),
    )


def report(folder: Path, target: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / f"{target}.privacy.json").read_text())
    return found


def rows(folder: Path, target: str) -> list[str]:
    found: list[str] = pa.parquet.read_table(folder / "out" / target).column("drink").to_pylist()
    return found


def test_days_of_a_series_cost_what_the_cap_allows(folder: Path) -> None:
    ledger = folder / "people.ledger"
    for day in range(3):
        write(folder, day)
        begun = ("--budget", 2) if day == 0 else ()
        done = run(folder, f"{day}.parquet", "--snapshot", day, "--ledger", ledger, *begun)
        assert done.exit_code == 0, done.output
        assert "exact epsilon 1 a row, 2 over all snapshots" in done.output
    first, second, third = (rows(folder, f"{day}.parquet") for day in range(3))
    assert first[30:] == second[30:] == third[30:]
    assert first != second == third  # the third value has the report of the second
    with Ledger.open(ledger) as found:
        assert found.spent == 2.0
    checked = invoke("verify", folder / "out" / "2.parquet.privacy.json", folder / "out" / "2.parquet")
    assert checked.exit_code == 0, checked.output
    assert "all snapshots of the series: epsilon 2" in checked.output
    asked = invoke("estimate", folder / "out" / "2.parquet")
    assert "records that had more than 2 values" in asked.output
    asked = invoke("estimate", folder / "out" / "2.parquet", "--share", "drink", "--format", "csv")
    assert "records that had more than 2 values" in asked.output
    renewed = run(folder, "3.parquet", "--ledger", ledger, store="other/store")
    assert renewed.exit_code == 1  # a store that begins anew is charged anew
    assert not (folder / "out" / "3.parquet").exists()


def test_saved_counts_are_of_one_snapshot(folder: Path) -> None:
    """Also of text, which says nothing of days: the report beside it does."""
    for day, name in enumerate(("monday.csv", "tuesday.csv")):
        write(folder, day)
        assert run(folder, name, "--snapshot", name).exit_code == 0
    asked = ("--share", "drink", "--counts", folder / "counts.json")
    assert invoke("estimate", folder / "out" / "monday.csv", *asked).exit_code == 0
    refused = invoke("estimate", folder / "out" / "tuesday.csv", *asked)
    assert refused.exit_code == 1
    assert "another snapshot of a memoized release" in refused.output


def test_nothing_that_is_published_depends_on_the_store(folder: Path) -> None:
    """But the rows of those beyond the cap: the report says the same, and other rows are the same."""
    for day in range(3):
        write(folder, day)
        run(folder, f"before-{day}.parquet", "--snapshot", day)
    said = []
    for name, store in (("full", "private/store"), ("new", "other/store")):
        write(folder, 0, 1, 2)
        done = run(folder, "now.parquet", "--snapshot", "now", "--force", store=store)
        found = report(folder, "now.parquet")
        found.pop("output_sha256")
        found.pop("report_sha256")
        schema = pa.parquet.read_schema(folder / "out" / "now.parquet").metadata
        said.append((done.output, found, rows(folder, "now.parquet")[30:], schema))
        assert name
    assert said[0] == said[1]
    assert "store" not in json.dumps(report(folder, "now.parquet"))


def test_a_run_that_fails_is_made_again_with_the_same_rows(folder: Path) -> None:
    run(folder, "0.parquet")
    write(folder, 1)
    blocked = run(folder, "0.parquet")  # the output is there
    assert blocked.exit_code == 2
    table = pa.csv.read_csv(folder / "people.csv")
    pa.csv.write_csv(pa.concat_tables([table, table.slice(5, 1)]), folder / "people.csv")
    refused = run(folder, "1.parquet")
    assert refused.exit_code == 1
    assert "column 'id': an id" in refused.output
    write(folder, 2)
    assert run(folder, "2.parquet").exit_code == 0
    write(folder, 1)
    run(folder, "3.parquet")
    assert rows(folder, "2.parquet") == rows(folder, "3.parquet")  # 2 came second: nothing of 1 was kept


def test_without_a_cap_each_snapshot_is_charged(folder: Path) -> None:
    plan = TablePlan.read(folder / "plan.toml")
    refused = run(folder, "0.parquet", most=0)
    assert refused.exit_code != 0
    assert "state the types" in refused.output
    TablePlan(plan.columns, types={"drink": "text", "id": "text"}).write(folder / "plan.toml")
    for day in range(2):
        done = run(
            folder,
            f"{day}.parquet",
            *("--snapshot", day, "--ledger", folder / "ledger", *(("--budget", 5) if day == 0 else ())),
            most=0,
        )
        assert done.exit_code == 0, done.output
        assert "again for each value that a column takes" in done.output
        checked = invoke("verify", folder / "out" / f"{day}.parquet.privacy.json")
        assert checked.exit_code == 0, checked.output
        assert "there is no cap" in checked.output
    with Ledger.open(folder / "ledger") as found:
        assert found.spent == 2.0
    assert rows(folder, "0.parquet") == rows(folder, "1.parquet")
    write(folder, 1)
    refused = run(folder, "2.parquet", "--snapshot", 1, "--ledger", folder / "ledger", most=0)
    assert "data that changed is another snapshot" in refused.output


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("epsilon_exact", 1.5, 1),
        ("most", 1, 1),
        ("given", "nothing", 1),
        ("series", "another", 1),
        ("more", 1, 1),
    ],
)
def test_a_report_that_says_less_of_the_series_is_false(
    folder: Path, name: str, value: Any, verdict: int
) -> None:
    from bitldp.tables.column import canonical_digest

    run(folder, "0.parquet", "--ledger", folder / "ledger", "--budget", 2)
    changed = report(folder, "0.parquet")
    changed["memoized"][name] = value
    changed.pop("report_sha256")
    path = folder / "out" / "0.parquet.privacy.json"
    path.write_text(json.dumps({**changed, "report_sha256": canonical_digest(changed)}))
    assert invoke("verify", path).exit_code == verdict


def test_a_moved_row_is_the_same_snapshot(folder: Path) -> None:
    """Also without memoizing; one that changed is not."""
    key = ("--record", "id", "--key-file", folder / "private" / "key", "--ledger", folder / "ledger")
    given = ("--plan", folder / "plan.toml", *key)
    first = invoke("perturb", folder / "people.csv", "-o", folder / "out" / "a.csv", *given, "--budget", 5)
    assert first.exit_code == 0, first.output
    table = pa.csv.read_csv(folder / "people.csv")
    moved = table.take(list(range(299, -1, -1))).append_column("more", pa.array(["x"] * 300))
    pa.csv.write_csv(moved, folder / "people.csv")
    again = invoke("perturb", folder / "people.csv", "-o", folder / "out" / "b.csv", *given)
    assert again.exit_code == 0, again.output
    a, b = (pa.csv.read_csv(folder / "out" / name).column("drink").to_pylist() for name in ("a.csv", "b.csv"))
    assert a == b[::-1]
    write(folder, 1)
    refused = invoke("perturb", folder / "people.csv", "-o", folder / "out" / "c.csv", *given)
    assert "data that changed is another snapshot" in refused.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--memoize"], "--record"),
        (["--record", "id", "--most", "2"], "go with --memoize"),
        (["--record", "id", "--memoize", "--most", "2"], "go together"),
        (["--record", "id", "--memoize", "--most", "2", "--store", "OUT"], "in the folder of the output"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder: Path, given: list[str], said: str) -> None:
    named = [str(folder / "out" / "store") if each == "OUT" else each for each in given]
    key = ["--key-file", folder / "private" / "key"] if "--record" in given else []
    refused = invoke(
        *("perturb", folder / "people.csv", "-o", folder / "out" / "a.parquet"),
        *("--plan", folder / "plan.toml", *key, *named),
    )
    assert refused.exit_code == 2
    assert said in refused.output
