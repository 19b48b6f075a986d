"""``bitldp fl``: a system run from the command line, and one sentence for whatever is wrong with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')
pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.cli import main

TINY = ["bitrand", "--quick", "--clients", "3", "--rounds", "2", "--set", "hidden=4", "--set", "epochs=1"]


def fl(*arguments: object) -> int:
    """Run the command; return its exit code."""
    with pytest.raises(SystemExit) as exit_of:
        main(["fl", *map(str, arguments)])
    return int(exit_of.value.code or 0)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that has ended."""
    folder = tmp_path_factory.mktemp("fl") / "run"
    assert fl(*TINY, "--out", folder) == 0
    return folder


def test_a_run_leaves_its_files(done: Path) -> None:
    names = {path.name for path in done.iterdir()}
    assert names == {
        "settings.json",
        "metrics.jsonl",
        "checkpoint.npz",
        "summary.json",
        "plot.png",
        "clients",
    }
    assert (done / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert len((done / "metrics.jsonl").read_text().splitlines()) == 3


def test_the_summary_says_what_was_promised(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fl(*TINY, "--out", done, "--resume") == 0
    shown = capsys.readouterr().out
    for words in (
        "accuracy",
        "rounds",
        "bytes up",
        "claimed epsilon",
        "exact epsilon, record",
        "what it covers",
    ):
        assert words in shown
    assert "what it does NOT cover" in shown
    assert fl(*TINY, "--out", done, "--resume", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["rounds"] == 2
    assert summary["privacy"]["record"] == pytest.approx(302.0)


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (["--preset", "slow"], 2, "preset: bitrand has no 'slow'; there are quick"),
        (["--preset", "paper", "--quick"], 2, "--quick is --preset quick; give one preset"),
        (["--mechanism", "bitrand,foo"], 2, "mechanism: must be one of 'bitrand', "),
        (["--mechanism", "pm,bitrand,pm"], 2, "--mechanism: names pm twice"),
        (["--quick"], 1, "holds a run already; resume it (--resume), or give another folder"),
        (
            ["--quick", "--resume"],
            1,
            "holds a run with another clients, epochs, hidden, rounds; give another",
        ),
        (["--set", "epochs=abc"], 2, "--set epochs=abc: epochs must be int"),
        (["--set", "epochs"], 2, "--set epochs: must be NAME=VALUE; names are data, "),
        (["--set", "flavour=3"], 2, "--set flavour=3: bitrand has no flavour; there are data, "),
        (["--set", "quick=3"], 2, "--set quick=3: bitrand has no quick; there are data, "),
        (["--set", "epochs=1", "--set", "epochs=2"], 2, "--set epochs=2: epochs is given twice"),
        (["--set", "anonymiser=perhaps"], 2, "--set anonymiser=perhaps: anonymiser must be bool"),
        (["--mechanism", "foo"], 2, "mechanism: must be one of 'bitrand', "),
        (["--epsilon", "nan"], 2, "epsilon: must be finite, got nan"),
        (["--epsilon=-1"], 2, "epsilon: must be zero or more, got -1.0"),
        (["--rounds", "0"], 2, "rounds: must be between 1 and "),
    ],
)
def test_what_cannot_be_run_is_one_sentence(
    arguments: list[str], code: int, fragment: str, done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fl("bitrand", *arguments, "--out", done) == code
    out, errors = capsys.readouterr()
    assert out == ""
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert fragment in line


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["bitrand", "--data", "nosuch"], "no data set 'nosuch'; there are digits, "),
        (["bitrand", "--data", "../digits"], "no data set '../digits'; there are digits, "),
        (["bitrand", "--data", "mnist"], "mnist is not bundled: set the environment variable BITLDP_DATA"),
        (["bitrand", "--clients", "100000"], "clients: 100000 are more than the 1438 records of digits"),
        (["ldpfl", "--data", "breast_cancer"], "data: its records are not square images"),
        (["sixth"], "no system 'sixth'; there are bitrand, ldpfl, "),
    ],
)
def test_what_is_found_later_is_one_sentence_and_leaves_no_folder(
    arguments: list[str],
    fragment: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("BITLDP_DATA", raising=False)
    assert fl(*arguments, "--quick", "--out", tmp_path / "run") in (1, 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert fragment in line
    assert "internal" not in line
    assert not (tmp_path / "run").exists()


def test_several_mechanisms_and_seeds_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    several = [*TINY, "--mechanism", "noiseless,bitrand", "--repeats", "2", "--out", tmp_path / "run"]
    assert fl(*several) == 0
    shown = capsys.readouterr().out
    assert "mean ± standard deviation over 2 seeds" in shown
    assert "paired two-sided t-test" in shown
    assert "what it covers (noiseless): nothing" in shown
    assert (tmp_path / "run" / "plot.png").exists()
    assert fl(*several, "--resume", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["mechanism"] for each in found["mechanisms"]] == ["noiseless", "bitrand"]
    assert 0.0 <= found["mechanisms"][1]["p"] <= 1.0
    assert [each["seed"] for each in found["runs"]] == [1, 2, 1, 2]


def test_a_system_names_its_settings_and_its_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bitldp_papers import get

    assert fl("bitrand", "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in (
        "label_epsilon=float Its budget; inf: labels leave as they are, which the run says. [default: 2.0]",
        "place=features|updates",
        "--preset NAME",
    ):
        assert words in shown
    settings = get("bitrand").settings
    preset = {**settings.presets["quick"], "clients": 3, "rounds": 1, "hidden": 4, "epochs": 1}
    monkeypatch.setattr(settings, "presets", {**settings.presets, "paper": preset})
    monkeypatch.setattr(settings, "differences", "digits in place of news")
    assert fl("bitrand", "--preset", "paper", "--out", tmp_path / "run") == 0
    assert "differs from the paper: digits in place of news" in capsys.readouterr().out
    assert fl(*TINY, "--out", tmp_path / "other") == 0
    assert "differs from the paper" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words", "fails"),
    [
        (["brr", "--set", "batch=8"], "4, for one number of one release", False),
        (["brr", "--set", "batch=8", "--set", "unit=record"], "claimed epsilon        │ 4  ", False),
        (["bitrand", "--mechanism", "bitrand-paper", "--epsilon", "1"], "claimed epsilon        │ 3  ", True),
    ],
)
def test_a_claim_is_held_against_what_it_is_of(
    arguments: list[str], words: str, fails: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = ["--quick", "--clients", "3", "--rounds", "1", "--set", "hidden=4", "--out", tmp_path / "run"]
    assert fl(*arguments, *tiny) == 0
    shown = capsys.readouterr().out
    assert words in shown
    assert ("(the claim does NOT hold)" in shown) is fails


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert fl(*TINY, "--out", tmp_path / "file") == 1
    assert capsys.readouterr().err == f"error: {tmp_path / 'file'}: File exists\n"


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    # Raised anywhere, the interrupt is now and then lost in jax, or a fault.
    given = ["bitrand", "--quick", "--clients", "3", "--rounds", "100000", "--set", "hidden=4"]
    command = [sys.executable, "-m", "bitldp", "fl", *given, "--out", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not (folder / "checkpoint.npz").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert out == ""
    sentence = f"error: interrupted; --resume continues after the last complete round in {folder}"
    said = "interrupted: the run ends after this client; press Ctrl-C again to end at once"
    assert errors.splitlines() == [said, sentence]


@pytest.mark.parametrize("option", ["--features", "--categories", "--points"])
def test_sizes_of_the_overview_are_checked(option: str) -> None:
    from bitldp.cli.errors import UsageError
    from bitldp.cli.explain import overview

    with pytest.raises(UsageError, match=f"{option}: must be at least 1, got 0"):
        overview(1.0, {option[2:]: 0})


def test_few_dimensions_leave_something_to_select() -> None:
    from bitldp.cli.explain import overview

    rows = {row["name"]: row for row in overview(1.0, {"features": 5})}
    assert [rows[name]["parameters"]["k"] for name in ("pe", "ps")] == [4, 4]
