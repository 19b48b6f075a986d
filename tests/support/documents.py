"""What the blocks of code in a document do when they run."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import warnings

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
        if without and imports(source, without):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("default")  # as in an interpreter, not as in this suite
            exec(compile(source, name, "exec"), namespace)  # the document is ours
        assert printed.getvalue().splitlines() == re.findall(r"# -> (.*)", source)


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
