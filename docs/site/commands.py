"""Reference page of the command line: every command and every option, from the command line itself."""

from __future__ import annotations

import inspect
import re
from typing import Any, get_type_hints

import typer.main
from bitldp.cli.program import app


def page() -> str:
    """Return the page."""
    lines = ["# Commands", "", "`bitldp COMMAND --help` says the same. Needs `bitldp[cli]`."]
    root = typer.main.get_command(app)
    _command("bitldp", root, lines)
    return "\n".join(lines) + "\n"


def _command(path: str, command: Any, lines: list[str]) -> None:
    lines += ["", f"## `{path}`", "", *_paragraphs(command.help or "")]
    stated = _stated(command.callback)
    rows = [row for row in (_row(each, stated) for each in command.params) if row]
    if rows:
        lines += ["", "| option | default | what it does |", "|---|---|---|", *rows]
    for name, child in sorted(getattr(command, "commands", {}).items()):
        if not child.hidden:
            _command(f"{path} {name}", child, lines)


def _paragraphs(text: str) -> list[str]:
    """Return the help of a command: a paragraph each, and its example as a block."""
    lines = []
    for part in re.split(r"\n\s*\n", text.replace("\f", "").strip()):
        if part.startswith("Example: "):
            lines += ["```text", " ".join(part.removeprefix("Example: ").split()), "```", ""]
        else:
            lines += [_text(part), ""]
    return lines[:-1]


def _stated(function: Any) -> dict[str, str]:
    """Return the help of each argument as the command states it: click 8.5 drops what typer 0.20 says."""
    if function is None:
        return {}
    hints = get_type_hints(inspect.unwrap(function), include_extras=True)
    return {
        name: each.help
        for name, hint in hints.items()
        for each in getattr(hint, "__metadata__", ())
        if getattr(each, "help", None)
    }


def _row(parameter: Any, stated: dict[str, str]) -> str:
    if getattr(parameter, "hidden", False):
        return ""
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    given = parameter.default
    default = f"`{given}`" if isinstance(given, (int, float, str)) and given not in ("", False) else ""
    said = getattr(parameter, "help", None) or stated.get(parameter.name) or ""
    return f"| {names} | {default} | {_text(said)} |"


def _text(text: str) -> str:
    return " ".join(text.replace("\f", " ").replace("|", "\\|").replace("[", "\\[").split())
