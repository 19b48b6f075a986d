"""An output and its report take their names together, whatever comes between."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import invoke
from support.refusals import FRR, refused
from support.tables import perturb

if os.name != "posix":
    pytest.skip("signals and locks of POSIX", allow_module_level=True)

PAIR = ("out.csv", "out.csv.privacy.json")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "x.csv"
    path.write_text("x\n1\n2\n3\n")
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def is_pair(folder: Path) -> bool:
    """Whether the output is the one that the report is of."""
    said = json.loads((folder / PAIR[1]).read_text())["output_sha256"]
    return bool(said == hashlib.sha256((folder / PAIR[0]).read_bytes()).hexdigest())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
@pytest.mark.parametrize("step", ["unlink", "replace"])
def test_a_signal_between_the_names_waits(
    source: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, step: str
) -> None:
    target = source.with_name("out.csv")
    options = ("--mechanism", "frr", "--epsilon", 1, "--columns", "x")
    perturb(source, target, *options)
    old = target.read_bytes(), target.with_name(PAIR[1]).read_bytes()
    before = getattr(Path, step)

    def aimed(path: Path, *rest: object, **more: object) -> object:
        done = before(path, *rest, **more)
        if path.name.startswith(("out.csv.privacy", ".out.csv.")):
            os.kill(os.getpid(), number)
        return done

    monkeypatch.setattr(Path, step, aimed)
    perturb(source, target, *options, "--force")
    monkeypatch.undo()
    assert (target.read_bytes(), target.with_name(PAIR[1]).read_bytes()) != old
    assert is_pair(source.parent)
    assert names(source.parent) == sorted([source.name, *PAIR])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_a_signal_before_the_names_leaves_the_old_pair(
    source: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    target = source.with_name("out.csv")
    options = ("--mechanism", "frr", "--epsilon", 1, "--columns", "x")
    perturb(source, target, *options)
    old, sync = target.read_bytes(), os.fsync

    def aimed(descriptor: int) -> None:
        sync(descriptor)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(os, "fsync", aimed)
    result = invoke("perturb", source, "-o", target, *options, "--force")
    monkeypatch.undo()
    refused(result, 128 + number, "interrupted; no output was written")
    assert target.read_bytes() == old
    assert is_pair(source.parent)
    assert names(source.parent) == sorted([source.name, *PAIR])


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("name", PAIR)
def test_the_second_of_two_runs_is_refused(
    source: Path, monkeypatch: pytest.MonkeyPatch, force: tuple[str, ...], name: str
) -> None:
    from bitldp.cli.perturb import perturb as _perturb

    target, made = source.with_name("out.csv"), _perturb.privacy_report

    def other(*arguments: object, **options: object) -> object:
        source.with_name(name).write_text("of another run")
        return made(*arguments, **options)

    monkeypatch.setattr(_perturb, "privacy_report", other)
    result = invoke("perturb", source, "-o", target, *FRR, "--columns", "x", *force)
    refused(result, 1, "another run has written it meanwhile; nothing was replaced")
    assert source.with_name(name).read_text() == "of another run"
    assert names(source.parent) == sorted([source.name, name])


def test_what_a_killed_run_left_is_removed_and_what_a_run_holds_is_not(source: Path) -> None:
    left = [source.with_name(f".{name}.{each:012x}.tmp") for name in PAIR for each in (1, 2)]
    unlike = (".out.csv.tmp", ".other.csv.000000000001.tmp", ".out.csv.0.tmp")
    others = [source.with_name(each) for each in unlike]
    for path in (*left, *others):
        path.write_text("a half file")
    with left[0].open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        perturb(source, source.with_name("out.csv"), "--mechanism", "frr", "--epsilon", 1, "--columns", "x")
    found = names(source.parent)
    assert [path.name for path in left if path.name in found] == [left[0].name]
    assert all(path.name in found for path in others)
    assert is_pair(source.parent)


KILLED = """
import os, signal, sys
from pathlib import Path
from bitldp.cli import main
before = Path.replace
def aimed(path, *rest):
    done = before(path, *rest)
    os.kill(os.getpid(), signal.SIGKILL)
    return done
Path.replace = aimed
main()
"""


@pytest.mark.slow
def test_a_report_that_a_kill_left_without_its_name_is_found_by_the_next_run(source: Path) -> None:
    target = source.with_name("out.csv")
    options = ["perturb", str(source), "-o", str(target), *map(str, FRR), "--columns", "x"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *options], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (left,) = source.parent.glob(f".{PAIR[1]}.*.tmp")  # the output has its name, its report has not
    assert names(source.parent) == sorted([left.name, source.name, PAIR[0]])
    old = target.read_bytes()
    again = invoke(*options)
    refused(again, 2, "out.csv: exists; give another name")
    assert "note: " in again.stderr
    assert "a run was killed before its privacy report had its name; it has it now" in again.stderr
    assert target.read_bytes() == old
    assert is_pair(source.parent)
    assert names(source.parent) == sorted([source.name, *PAIR])


def test_an_output_without_its_report_is_said_to_be_so(source: Path) -> None:
    target, beside = source.with_name(PAIR[0]), source.with_name(PAIR[1])
    options = ("perturb", source, "-o", target, *FRR, "--columns", "x")
    assert invoke(*options).exit_code == 0
    report = beside.read_text()
    beside.unlink()
    stray = source.with_name(f".{PAIR[1]}.{7:012x}.tmp")
    stray.write_text(report.replace('"output_sha256": "', '"output_sha256": "0'))  # of another output
    refused(invoke(*options), 2, "out.csv: exists, without a privacy report beside it")
    assert not beside.exists()
    for other in (report.replace('"output_sha256": "', '"output_sha256": "0'), "[]", "{", "[" * 100_000):
        beside.write_text(other)
        refused(invoke(*options), 2, "out.csv: exists, and the privacy report is not of this output")
    beside.write_text(report)
    refused(invoke(*options), 2, "out.csv: exists; give another name")
    target.unlink()
    refused(invoke(*options), 2, "out.csv.privacy.json: exists, a privacy report without its output")
