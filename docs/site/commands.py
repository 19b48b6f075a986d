"""Reference page of the command line: every command and every option, from the command line itself."""

from __future__ import annotations

from typing import Any

import typer.main
from bitldp.cli.program import app


def page() -> str:
    """Return the page."""
    lines = ["# Commands", "", "`bitldp COMMAND --help` says the same. Needs `bitldp[cli]`."]
    root = typer.main.get_command(app)
    _command("bitldp", root, lines)
    return "\n".join(lines) + "\n"


def _command(path: str, command: Any, lines: list[str]) -> None:
    lines += ["", f"## `{path}`", "", _text(command.help or "")]
    rows = [row for row in map(_row, command.params) if row]
    if rows:
        lines += ["", "| option | default | what it does |", "|---|---|---|", *rows]
    for name, child in sorted(getattr(command, "commands", {}).items()):
        if not child.hidden:
            _command(f"{path} {name}", child, lines)


def _row(parameter: Any) -> str:
    if getattr(parameter, "hidden", False):
        return ""
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    given = parameter.default
    default = f"`{given}`" if isinstance(given, (int, float, str)) and given not in ("", False) else ""
    return f"| {names} | {default} | {_text(getattr(parameter, 'help', None) or '')} |"


def _text(text: str) -> str:
    return " ".join(text.replace("\f", " ").replace("|", "\\|").replace("[", "\\[").split())
