"""The program: its commands are imported when they are called, and those of other distributions join it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Annotated

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import typer
from bitldp.cli import program
from support.command import invoke
from typer.main import get_command


def joined(monkeypatch: pytest.MonkeyPatch, **commands: str) -> None:
    """Let these commands, and no others, be what installed distributions add."""
    added = [EntryPoint(name, value, program.GROUP) for name, value in commands.items()]
    monkeypatch.setattr(program, "entry_points", lambda group: added if group == program.GROUP else [])


def first_sentence(function: object) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())


@pytest.mark.parametrize("name", program.COMMANDS)
def test_the_help_says_what_the_command_says(name: str) -> None:
    home, line = program.COMMANDS[name]
    module, _, attribute = home.partition(":")
    assert line == first_sentence(getattr(import_module(module), attribute))


def test_the_help_imports_no_command(tmp_path: object) -> None:
    code = (
        "import sys\nfrom bitldp.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f"\n  {name} " in done.stdout for name in [*program.COMMANDS, *program.BESIDE])
    modules = set(done.stderr.split())
    assert not {"rich", "pyarrow", "bitldp_papers", "flwr", "bitldp.cli.catalogue"} & modules
    assert {each for each in modules if each.startswith("bitldp.cli.")} == {"bitldp.cli.program"}


@pytest.mark.parametrize("words", [[], ["--help"], ["bitrand", "--quick", "--set", "a=b"]])
@pytest.mark.parametrize("name", program.BESIDE)
def test_a_command_of_the_papers_names_the_line_that_brings_it(
    name: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    joined(monkeypatch)
    done = invoke(name, *words)
    assert done.exit_code == 1
    assert done.stderr == f'error: bitldp {name} needs bitldp-papers: pip install "bitldp[papers]"\n'
    assert f"{name} " in invoke("--help").stdout
    assert 'pip install "bitldp[papers]"' in " ".join(invoke("--help").stdout.split())


def greet(name: Annotated[str, typer.Argument()], times: Annotated[int, typer.Option()] = 1) -> None:
    """Say hello."""
    print(" ".join(["hello", name] * times))


def test_another_distribution_adds_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    joined(monkeypatch, greet=f"{__name__}:greet")
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or _this())
    done = invoke("greet", "you", "--times", "2")
    assert (done.exit_code, done.stdout) == (0, "hello you hello you\n")
    assert "Say hello." in invoke("--help").stdout
    assert "given 2 times" in invoke("greet", "you", "--times", "1", "--times", "2").stderr


def _this() -> object:
    module = type(sys)(__name__)
    module.__dict__.update(globals())
    return module


def test_no_distribution_takes_the_name_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    joined(monkeypatch, verify="nothing:here")
    assert invoke("verify", "--help").exit_code == 0
    assert "verify" not in get_command(program.app).commands.added  # type: ignore[attr-defined]


def test_an_unknown_command_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    joined(monkeypatch)
    done = invoke("perturbe")
    assert done.exit_code == 2
    assert "perturb" in done.stderr
