"""``bitldp client``: writes documents, and explains those that hold."""

from __future__ import annotations

import json
from pathlib import Path

import bitldp
import pytest
from bitldp.client import open_document
from bitldp.tables import Column, TablePlan
from support.command import invoke


def test_a_document_is_written_and_explained(tmp_path: Path) -> None:
    path = tmp_path / "grr.json"
    made = invoke(
        *("client", "--mechanism", "grr", "--categories", 16, "--epsilon", 1),
        *("--ledger", "survey", "--most", 3, "--document", path),
    )
    assert (made.exit_code, made.stdout.strip()) == (0, str(path))
    text = path.read_text(encoding="utf-8")
    assert text == bitldp.GRR(16, epsilon=1.0).client_document(spends=("survey", 3)) + "\n"
    shown = invoke("client", path, "--show")
    assert shown.exit_code == 0
    for part in ("GRR(categories=16", "epsilon, from the integers", "3 by survey", "1 byte", "2.718 times"):
        assert part in shown.stdout
    facts = json.loads(invoke("client", path, "--json").stdout)
    assert facts["epsilon"] == {"stated": 1.0, "exact": 1.0, "covers": "record"}
    assert facts["report_bytes"] == 1
    assert facts["most_reports"] == {"ledger": "survey", "most": 3}


def test_a_document_that_does_not_hold_is_refused_by_field(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(bitldp.GRR(16, epsilon=1.0).client_document().replace('"width":1', '"width":2'))
    result = invoke("client", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "sha256: does not match the other fields" in result.stderr


def test_a_plan_becomes_a_form(tmp_path: Path) -> None:
    plan = TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=2.0, interval=(120.0, 220.0)), "height"),
            Column(bitldp.GRR(2, epsilon=1.0), "city", categories=["Rome", "Oslo"]),
        ]
    )
    plan.write(tmp_path / "plan.toml")
    path = tmp_path / "form.json"
    made = invoke("client", "--plan", tmp_path / "plan.toml", "--document", path, "--float32", "--show")
    assert made.exit_code == 0
    assert "height" in made.stdout
    assert "f32 from 120 to 220" in made.stdout
    assert "2 labels" in made.stdout
    document = open_document(path.read_text(encoding="utf-8"))
    assert document.epsilon == plan.guarantee.record
    assert document.fingerprint == plan.digest[:32]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "one of FILE, --mechanism and --plan is needed"),
        (("--mechanism", "grr", "--plan", "plan.toml"), "one of FILE, --mechanism and --plan is needed"),
        (("--mechanism", "grr", "--categories", 4), "--epsilon is needed"),
        (("--mechanism", "grr", "--epsilon", 1), "--categories is needed"),
        (("--plan", "plan.toml", "--epsilon", 1), "--epsilon has no effect without --mechanism"),
        (("--plan", "plan.toml", "--categories", 4), "--categories has no effect without --mechanism"),
        (("nothing.json", "--float32"), "are for a document that is written"),
        (("nothing.json", "--header"), "are for a document that is written"),
        (("nothing.json", "--keyed", "u64"), "--keyed has no effect without --plan"),
        (("--plan", "plan.toml", "--keyed", "name"), "--keyed name: must be one of u64, digest, text"),
        (("nothing.json",), "cannot be read as text"),
        (("--mechanism", "duchi", "--epsilon", 1, "--most", 3), "--ledger and --most need each other"),
        (("--mechanism", "cldp", "--features", 3, "--epsilon", 1), "CLDP: has no client document"),
    ],
)
def test_what_does_not_fit_is_refused(options: tuple[object, ...], message: str) -> None:
    result = invoke("client", *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_page_needs_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this installation has: the files of a page are copied, or named as missing."""
    from bitldp.cli import client

    arguments = ("client", "--mechanism", "duchi", "--epsilon", 1, "--out", tmp_path / "web")
    built = tmp_path / "web of the package"
    monkeypatch.setattr(client, "files", lambda _: built)
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "--out: this installation has no bitldp.js, bitldp.d.ts, bitldp.wasm for pages" in result.stderr
    assert not (tmp_path / "web").exists()
    (built / "web").mkdir(parents=True)
    for name in ("bitldp.js", "bitldp.d.ts", "bitldp.wasm"):
        (built / "web" / name).write_text(name)
    assert invoke(*arguments).exit_code == 0
    assert (tmp_path / "web" / "bitldp.wasm").read_text() == "bitldp.wasm"
    assert open_document((tmp_path / "web" / "client.json").read_text(encoding="utf-8")).epsilon == 1.0


def test_missing_categories_units_and_sets_are_shown(tmp_path: Path) -> None:
    plan = TablePlan(
        [
            Column(
                bitldp.GRR(2, epsilon=1.0), "city", categories=["Rome", "Oslo"], nulls="fill", fill="Oslo"
            ),
            Column(bitldp.Duchi(epsilon=1.0, interval=(0.0, 20_000.0)), "born", unit="days"),
            Column(
                bitldp.Piecewise(epsilon=2.0, features=2, clip=False), ["a", "b"], interval=[(1, 2), (3, 4)]
            ),
        ]
    )
    plan.write(tmp_path / "plan.toml")
    made = invoke("client", "--plan", tmp_path / "plan.toml")
    assert made.exit_code == 0, made.stderr
    said = " ".join(made.stdout.split())
    assert "3 labels, Oslo where it is missing; refused: other categories" in said
    assert "from 0 to 20000, in days; refused: NaN" in said
    assert "from 3 to 4; refused: NaN and numbers outside their intervals" in said
    path = tmp_path / "ratings.json"
    path.write_text(
        bitldp.KeyValue(["film", "book"], epsilon=2.0, padding=1).client_document(), encoding="utf-8"
    )
    shown = " ".join(invoke("client", path).stdout.split())
    assert "film, book f64 from -1 to 1, from -1 to 1, NaN where there is none; refused: nothing" in shown


def test_a_form_with_gaps_is_shown(tmp_path: Path) -> None:
    plan = TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=1.0, interval=(0.0, 120.0)), "minutes", nulls="report"),
            Column(bitldp.Piecewise(epsilon=2.0, features=2), ["height", "age"], interval=[(1, 2), (18, 90)]),
        ]
    )
    plan.write(tmp_path / "plan.toml")
    made = invoke("client", "--plan", tmp_path / "plan.toml", "--header", "--keyed", "u64", "--show")
    assert made.exit_code == 0, made.stderr
    said = " ".join(made.stdout.split())
    assert "60 where it is missing; refused: nothing" in said
    assert "from 1 to 2, from 18 to 90; refused: NaN" in said
    assert "of the wire format" in said
    assert "the same for the same value" in said
