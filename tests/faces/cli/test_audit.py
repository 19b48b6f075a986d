"""``bitldp audit``: what it prints, its exit codes, and what it refuses."""

from __future__ import annotations

import json

import pytest
from bitldp.cli.program import app
from support import faults
from typer.testing import CliRunner


def invoke(*arguments):
    return CliRunner().invoke(app, ["audit", *(str(each) for each in arguments)])


@pytest.mark.parametrize(
    "arguments",
    [
        ("grr", "--categories", 5),
        ("warner-rr",),
        ("oue", "--categories", 5),
        ("brr", "--points", 20, "--m", "best", "--low", 0, "--high", 9),
        ("frr", "--features", 3, "--bits", 6, "--integer-bits", 2),
        ("uer", "--features", 2, "--calibration", "paper"),
        ("bitrand", "--features", 2, "--categories", 3, "--label-epsilon", 1),
    ],
)
def test_command(arguments):
    result = invoke(*arguments, "--epsilon", 1, "--n", 3000, "--seed", 1)
    assert result.exit_code == 0, result.stderr
    for part in ("lower bound on epsilon", "exact epsilon per record", "claimed epsilon", "passes"):
        assert part in result.stdout
    plain = json.loads(invoke(*arguments, "--epsilon", 1, "--n", 3000, "--seed", 1, "--json").stdout)
    assert plain["passed"] is True
    assert plain["n"] == 3000


def test_command_fails_with_the_audit(monkeypatch):
    faulty = faults.StaleOUE(5, epsilon=1.0)
    monkeypatch.setattr("bitldp.cli.audit._built", lambda *_: faulty)
    result = invoke("oue", "--categories", 5, "--epsilon", 1)
    assert result.exit_code == 1
    assert "FAILS" in result.stdout
    assert "infinite" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("grr", "--epsilon", 1), "--categories is needed"),
        (("none", "--epsilon", 1), "no mechanism 'none'"),
        (("grr", "--epsilon", 1, "--categories", 1), "grr: categories: must be at least 2"),
        (("grr", "--epsilon", 1, "--categories", 4, "--bits", 3), "--bits does not apply to grr"),
        (("grr", "--epsilon", 1, "--categories", 4, "--confidence", 1), "--confidence: must be 0.5 or more"),
        (("bitrand", "--epsilon", 1, "--features", 4), "give --categories and --label-epsilon"),
    ],
)
def test_command_refuses(arguments, sentence):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
