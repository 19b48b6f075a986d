"""Command whose help shows the settings and the presets of the system that is named beside ``--help``."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from bitldp.base.errors import MissingExtraError
from bitldp.cli.docstrings import documented
from bitldp.cli.commands import Once

if TYPE_CHECKING:
    from bitldp_papers import Runnable

__all__ = ["SystemCommand"]

_ASKED = "bitldp.asked"
#: The command has options for these.
_OPTIONS = ("out", "resume")


class SystemCommand(Once):
    """A command whose help is that of a system where one is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember the words beside ``--help``, and read the arguments."""
        ctx.meta[_ASKED] = tuple(args) if "--help" in args else ()
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the settings of the system that is named, and its presets."""
        super().format_epilog(ctx, formatter)
        asked = ctx.meta.get(_ASKED, ())
        if not asked:
            return
        try:
            from bitldp_papers import DEPLOYMENTS, NAMES, get

            system = next((get(word) for word in asked if word in (*NAMES, *DEPLOYMENTS)), None)
        except MissingExtraError as error:
            formatter.write_paragraph()
            formatter.write_text(str(error))
            return
        if system is not None:
            _write(system, formatter)


def _write(system: Runnable, formatter: Any) -> None:
    formatter.write_paragraph()
    formatter.write_text(f"{system.name}: {system.summary}.")
    about: dict[str, str] = {}
    for kind in reversed(system.settings.__mro__[:-1]):
        about.update({name: words for name, words in documented(kind, "Attributes").items() if words})
    rows = []
    for field in fields(system.settings):
        if field.name in _OPTIONS:
            continue
        words = system.choices.get(field.name, ())
        head = f"{field.name}={'|'.join(words) if words else type(field.default).__name__}"
        default = str(field.default)
        default = default.lower() if isinstance(field.default, bool) else default
        said = about.get(field.name, "").replace("`", "")
        rows.append((head if len(head) <= 30 else field.name, _sentence(said, words, head, default)))
    with formatter.section(f"Settings of {system.name} (--set NAME=VALUE)"):
        formatter.write_dl(rows)
    presets = [
        (name, ", ".join(f"{key} {value}" for key, value in preset.items()))
        for name, preset in system.settings.presets.items()
    ]
    if presets:
        with formatter.section(f"Presets of {system.name} (--preset NAME); what is not named is the default"):
            formatter.write_dl(presets)


def _sentence(said: str, words: tuple[str, ...], head: str, default: str) -> str:
    """Return what is said of a setting, what it can be where that did not fit beside it, and its default."""
    choices = f"One of {', '.join(words)}." if words and len(head) > 30 else ""
    return " ".join(filter(None, (said, choices, default and f"[default: {default}]")))
