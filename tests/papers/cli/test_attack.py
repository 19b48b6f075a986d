"""``bitldp attack``: a table and three files, and one sentence for whatever is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')
pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.cli import main


def attack(*arguments: object) -> int:
    """Run the command; return its exit code."""
    with pytest.raises(SystemExit) as exit_of:
        main(["attack", *map(str, arguments)])
    return int(exit_of.value.code or 0)


@pytest.mark.parametrize("name", ["linkage", "membership", "inversion"])
def test_an_attack_leaves_its_files(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [name, "--trials", "10", "--repeats", "2", "--epsilon", "2", "--rounds", "2", "--out", tmp_path]
    assert attack(*given) == 0
    shown = capsys.readouterr().out
    for words in ("CrossPolytope", "exact epsilon", "at most", "proves", "2 rounds", "claimed", "±"):
        assert words in shown
    assert {path.name for path in tmp_path.iterdir()} == {"attack.json", "attack.svg", "attack.png"}
    assert attack(*given, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "attack.json").read_text())
    assert document["seeds"] == [1, 2]
    (honest,) = (row for row in document["rows"] if row["mechanism"] == "CrossPolytope")
    assert honest["exact"] == pytest.approx(2.0)
    assert honest["ceiling"] < 0.9
    assert honest["rounds"] == 2
    assert honest["proven"] <= 2.0


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (["spoofing"], 2, "no attack 'spoofing'; there are linkage, membership, inversion"),
        (
            ["linkage", "--epsilon", "1,x"],
            2,
            "--epsilon 1,x: must be numbers above zero, separated by commas",
        ),
        (["linkage", "--epsilon", "0"], 2, "--epsilon 0: must be numbers above zero, separated by commas"),
        (["linkage", "--data", "nosuch"], 1, "no data set 'nosuch'; there are digits, "),
    ],
)
def test_what_cannot_be_attacked_is_one_sentence(
    arguments: list[str], code: int, fragment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert attack(*arguments, "--out", tmp_path / "out") == code
    out, errors = capsys.readouterr()
    assert out == ""
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert fragment in line
    assert not (tmp_path / "out").exists()
