"""Runs of ``bitldp perturb --plan`` with a key: the same output again, and a ledger charged once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.parquet
from bitldp.ledger import Ledger
from bitldp.tables import ReleaseKey
from support.command import invoke
from support.plans import people, plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pa.parquet.write_table(people(3_000), tmp_path / "people.parquet")
    plan().write(tmp_path / "plan.toml")
    (tmp_path / "key").write_text(ReleaseKey.new_text())
    (tmp_path / "key").chmod(0o600)
    return tmp_path


def run(folder: Path, target: str, *more: object) -> Any:
    given = ("--plan", folder / "plan.toml", "--record", "id", "--key-file", folder / "key", *more)
    return invoke("perturb", folder / "people.parquet", "-o", folder / target, *given)


def test_a_run_again_gives_the_same_rows_and_costs_nothing_more(folder: Path) -> None:
    ledger = folder / "ledger.json"
    assert run(folder, "a.parquet", "--ledger", ledger, "--budget", 10).exit_code == 0
    assert run(folder, "b.parquet", "--ledger", ledger).exit_code == 0
    one, other = (pa.parquet.read_table(folder / name) for name in ("a.parquet", "b.parquet"))
    assert one.equals(other)
    with Ledger.open(ledger) as found:
        charge, *outputs = found.entries
        assert found.spent == charge.guarantee.record
    assert [each.name for each in outputs] == ["a.parquet", "b.parquet"]
    assert len({each.output for each in outputs} | {charge.output}) == 2  # the same bytes, and none yet
    assert {charge.release} == {each.release for each in outputs}
    assert invoke("verify", folder / "b.parquet.privacy.json", folder / "b.parquet").exit_code == 0


def test_a_charge_that_names_types_is_the_releases_own(folder: Path) -> None:
    """A library charges a release together with the types of its first table; a run of it adds nothing."""
    key = ReleaseKey.from_file(folder / "key")
    release = plan().release(key, record="id")
    table = pa.parquet.read_table(folder / "people.parquet")
    release(table)
    with Ledger.open(folder / "ledger.json", budget=10.0, create=True) as ledger:
        entry = release.charge(ledger)
        assert entry is not None
        assert " types " in entry.note
    assert run(folder, "a.parquet", "--ledger", folder / "ledger.json").exit_code == 0
    report = folder / "a.parquet.privacy.json"
    assert [each["note"] for each in json.loads(report.read_text())["ledger"]] == [entry.note]
    assert invoke("verify", report, folder / "a.parquet").exit_code == 0


def test_data_that_changed_need_another_snapshot(folder: Path) -> None:
    ledger = folder / "ledger.json"
    run(folder, "a.parquet", "--ledger", ledger, "--budget", 20)
    pa.parquet.write_table(people(3_000, seed=8), folder / "people.parquet")
    refused = run(folder, "b.parquet", "--ledger", ledger)
    assert refused.exit_code == 1
    assert "data that changed is another snapshot" in refused.output
    assert not (folder / "b.parquet").exists()
    assert run(folder, "b.parquet", "--ledger", ledger, "--snapshot", "later").exit_code == 0


def test_an_id_twice_leaves_no_output(folder: Path) -> None:
    table = people(3_000)
    pa.parquet.write_table(pa.concat_tables([table, table.slice(5, 1)]), folder / "people.parquet")
    refused = run(folder, "a.parquet")
    assert refused.exit_code == 1
    assert "column 'id': an id" in refused.output
    assert not (folder / "a.parquet").exists()
