"""Signed reports, and answers from a file that is the one of its report."""

from __future__ import annotations

import builtins
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')
pytest.importorskip("cryptography", reason='needs pip install "bitldp[sign]"')

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from bitldp.cli.sign import Signer
from bitldp.tables.column import canonical_digest
from support.command import invoke
from support.plans import people

GRR = ("--mechanism", "grr", "--epsilon", 1, "--columns", "city", "--categories", "Paris,Rome,Oslo")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with people, two pairs of keys, and a signed release that a ledger was charged for."""
    made = tmp_path_factory.mktemp("signed")
    pa.csv.write_csv(people(50), made / "people.csv")
    for name in ("own.key", "other.key"):
        assert invoke("keypair", made / name).exit_code == 0
    ledger = ("--ledger", made / "ledger.json", "--budget", 5)
    result = perturbed(made, made / "out.csv", "--sign-with", made / "own.key", *ledger)
    assert result.exit_code == 0, result.output
    return made


def perturbed(folder: Path, target: Path, *more: object) -> Any:
    return invoke("perturb", folder / "people.csv", "-o", target, *GRR, *more)


def verified(folder: Path, key: str, report: Path | None = None) -> Any:
    released = folder / "out.csv"
    return invoke("verify", report or f"{released}.privacy.json", released, "--signed-by", folder / key)


def test_a_report_is_signed_by_the_key_that_is_given_and_no_other(folder: Path) -> None:
    good = verified(folder, "own.key.pub")
    assert good.exit_code == 0, good.output
    assert "signed with the given key: plan, report and ledger charges" in good.output
    other = verified(folder, "other.key.pub")
    assert other.exit_code == 1
    assert "the signature: is NOT that of the key that was given" in other.output
    none = verified(folder, "own.key")  # the private one
    assert none.exit_code == 3
    assert "is not a public key in PEM" in none.output
    assert verified(folder, "nobody.pub").exit_code == 2


def test_the_signature_covers_plan_report_and_ledger(folder: Path, tmp_path: Path) -> None:
    report = json.loads((folder / "out.csv.privacy.json").read_text())
    assert report["ledger"][0]["guarantee"]["record"] == report["total_per_record"]["epsilon_exact"]
    changes: list[tuple[str, Any]] = [
        ("rows", 51),
        ("notes", []),
        ("output_sha256", "0" * 64),
        ("ledger", []),
        ("ledger_state", {**report["ledger_state"], "entries": 2}),
        ("ledger_state", {**report["ledger_state"], "sha256": "0" * 64}),
        ("ledger", [{**report["ledger"][0], "note": "release x"}]),
        ("plan", {**report["plan"], "keep": ["survey"]}),
        ("signature", "00" * 64),
        ("signature", "x"),
    ]
    for name, value in changes:
        made = {**report, name: value}
        made["plan_sha256"] = canonical_digest(made["plan"])
        rest = {key: each for key, each in made.items() if key not in ("report_sha256", "signature")}
        made["report_sha256"] = canonical_digest(rest)
        path = tmp_path / "changed.json"
        path.write_text(json.dumps(made))
        result = verified(folder, "own.key.pub", path)
        assert result.exit_code == 1, name
        assert "FALSE the signature" in result.output, name


def test_a_report_without_a_signature_cannot_be_proven_to_be_someones(folder: Path, tmp_path: Path) -> None:
    report = json.loads((folder / "out.csv.privacy.json").read_text())
    del report["signature"]
    path = tmp_path / "unsigned.json"
    path.write_text(json.dumps(report))
    result = verified(folder, "own.key.pub", path)
    assert result.exit_code == 3
    assert "the report has no signature" in result.output
    assert invoke("verify", path, folder / "out.csv").exit_code == 0


def test_a_key_that_the_report_names_is_not_asked(folder: Path, tmp_path: Path) -> None:
    """Whoever signs with a key that the report then names is not the one that was asked for."""
    report = json.loads((folder / "out.csv.privacy.json").read_text())
    rest = {name: each for name, each in report.items() if name not in ("report_sha256", "signature")}
    rest["public_key"] = (folder / "other.key.pub").read_text()
    path = tmp_path / "named.json"
    signed = Signer(folder / "other.key").signed({**rest, "report_sha256": canonical_digest(rest)})
    path.write_text(json.dumps(signed))
    assert verified(folder, "own.key.pub", path).exit_code == 1


def test_a_private_key_is_its_owners_and_is_shown_nowhere(folder: Path, tmp_path: Path) -> None:
    key = folder / "own.key"
    secret = "".join(key.read_text().splitlines()[1:-1])
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert repr(Signer(key)) == "Signer(...)"
    report = (folder / "out.csv.privacy.json").read_text()
    assert secret not in report
    assert "exists, and is not replaced" in invoke("keypair", key).output
    readable, broken = tmp_path / "readable.key", tmp_path / "broken.key"
    readable.write_text(key.read_text())
    readable.chmod(0o644)
    broken.write_text(key.read_text().replace("KEY-----\n", f"KEY-----\n{secret}", 1))
    broken.chmod(0o600)
    for path, words in [
        (readable, "other users can read it"),
        (broken, "is not an unencrypted Ed25519 private key"),
        (folder / "own.key.pub", "other users can read it"),
        (tmp_path / "none.key", "No such file"),
    ]:
        if os.name != "posix" and "others" in words:
            continue
        result = perturbed(folder, tmp_path / "out.csv", "--sign-with", path)
        assert result.exit_code == 2
        assert words in result.output
        assert secret not in result.output
        assert not (tmp_path / "out.csv").exists()


def test_without_the_extra_the_line_to_install_is_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def missing(name: str, *rest: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "cryptography":
            raise ImportError(name)
        return original(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    monkeypatch.setattr("bitldp.base.errors.missing", list)
    line = 'needs cryptography: pip install "bitldp[sign]"'
    assert line in verified(folder, "own.key.pub").output
    assert line in perturbed(folder, tmp_path / "x.csv", "--sign-with", folder / "own.key").output
    assert line in invoke("keypair", tmp_path / "key").output


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_another_file_is_not_estimated(folder: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out.{suffix}"
    assert perturbed(folder, target).exit_code == 0
    assert invoke("estimate", target).exit_code == 0
    table = pa.csv.read_csv(target) if suffix == "csv" else pa.parquet.read_table(target)
    changed = table.set_column(0, "city", pa.array(["Rome"] * 50))
    if suffix == "csv":
        pa.csv.write_csv(changed, target)
    else:
        pa.parquet.write_table(changed, target)
    refused = invoke("estimate", target, "--format", "json")
    assert refused.exit_code == 1
    assert f"{target}: does not match out.{suffix}.privacy.json" in refused.output
    assert "Rome" not in refused.output
    assert invoke("estimate", target, "--unchecked").exit_code == 0


def test_a_file_that_is_not_read_is_not_the_reports_either(folder: Path, tmp_path: Path) -> None:
    """What is wrong with its rows is not said: they are not those of the report."""
    target = tmp_path / "out.csv"
    assert perturbed(folder, target).exit_code == 0
    target.write_text(target.read_text().replace("Paris", "Lyon"))
    refused = invoke("estimate", target)
    assert refused.exit_code == 1
    assert "does not match" in refused.output
    assert "row" in invoke("estimate", target, "--unchecked").output
