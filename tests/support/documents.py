"""What the blocks of code in a document do when they run."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def imports(source: str, module: str) -> bool:
    """Whether a block imports a module."""
    return re.search(rf"^(import|from) {module}\b", source, re.MULTILINE) is not None


def check_python(text: str, name: str, *, without: str = "") -> None:
    """Run every Python block, in one namespace; the lines ``# -> text`` are what it prints.

    A block that imports the module `without` is left out.
    """
    namespace: dict[str, object] = {}
    for source in blocks(text, "python"):
        if not (without and imports(source, without)):
            _run(source, name, namespace)


def _run(source: str, name: str, namespace: dict[str, object]) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("default")  # as in an interpreter, not as in this suite
        exec(compile(source, name, "exec", dont_inherit=True), namespace)  # the document is ours
    assert printed.getvalue().splitlines() == re.findall(r"# -> (.*)", source)


def check_steps(text: str, name: str) -> None:
    """Do what a page says from top to bottom in this folder: Python, titled files, ``bitldp`` commands.

    A command must say the words that the page shows below it; numbers and frames may differ.
    """
    namespace: dict[str, object] = {}
    for language, title, source in re.findall(
        r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```', text, flags=re.MULTILINE | re.DOTALL
    ):
        if title:
            Path(title).write_text(source, encoding="utf-8")
        elif language == "python":
            _run(source, name, namespace)
        elif language == "console":
            for step in re.split(r"^\$ ", source, flags=re.MULTILINE)[1:]:
                command, _, shown = step.partition("\n")
                missing = _words(shown) - _words(_said(command))
                assert not missing, f"{command}: does not say {missing}"


def _said(command: str) -> str:
    """Return what a command says, in a process of its own."""
    environment = {**os.environ, "COLUMNS": "110", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout + done.stderr


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", text))


def shows_output(text: str) -> bool:
    """Whether a document shows what its commands say."""
    return any(not line.startswith("$ ") for block in blocks(text, "console") for line in block.splitlines())


def commands(text: str) -> list[str]:
    """Return the lines of the console blocks that are typed."""
    lines = "\n".join(blocks(text, "console")).splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")]


def check_command(command: str) -> None:
    """Run a ``bitldp`` command here; it exits with 0."""
    from bitldp.cli import main

    with pytest.raises(SystemExit) as exit_of:
        main(shlex.split(command)[1:])
    assert not exit_of.value.code, command
