"""Options of a mechanism, read from its constructor: their names, what is allowed, and what they are for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

import bitldp
from bitldp.cli.docstrings import documented
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.parameters import Option, Unit, allowed, annotated

__all__ = ["NEEDED", "SIZES", "Given", "options_of", "shown"]

#: The option of each parameter that says how large an input is.
SIZES = MappingProxyType(
    {
        "features": "features",
        "dimensions": "features",
        "categories": "classes",
        "classes": "classes",
        "candidates": "points",
    }
)
NEEDED = "needed"  # in place of a default
_ENDS = {
    "low": "Low end of the public range of a number.",
    "high": "High end of it; numbers outside move to the ends.",
}
_REFERENCE = re.compile(r"As (?:of|for) `(?:bitldp\.)?(\w+)`[.;]?\s*")


@dataclass(frozen=True)
class Given:
    """An option of a mechanism.

    Attributes
    ----------
    name : str
        Its name, with underscores.
    field : str
        The parameter of the constructor; empty where it concerns the columns of a file alone.
    kind : type
        Of its value: int, float, str or bool.
    words : tuple of str
        The values of a word.
    allowed : str
        What is allowed, where its check says it.
    default : object
        Of the constructor; NEEDED where it has none.
    about : str
        What the docstring says of the parameter.
    read : callable or None
        Reads its text.
    short : str
        What it is for, in one sentence, where the docstring does not begin with one.
    """

    name: str
    field: str
    kind: type
    words: tuple[str, ...] = ()
    allowed: str = ""
    default: Any = NEEDED
    about: str = ""
    read: Callable[[str], Any] | None = None
    short: str = ""

    @property
    def form(self) -> str:
        """What stands for the value in a help."""
        return "|".join(self.words) or {int: "N", float: "X"}.get(self.kind, self.allowed or "TEXT")

    @property
    def help(self) -> str:
        """All that is known of it, in one paragraph."""
        extent = self.allowed if self.kind in (int, float) else ""
        default = "" if self.default in (None, NEEDED) else f"default: {_plain(self.default)}"
        more = "; ".join(part for part in (extent, default) if part)
        return " ".join(filter(None, (self.short, self.about, more and f"[{more}]")))

    @property
    def sentence(self) -> str:
        """What it is for, in one sentence."""
        return (self.short or re.split(r"(?<=[.:])\s", self.about, maxsplit=1)[0]).rstrip(":.") + "."


def shown(name: str) -> str:
    """Return the option of a name."""
    return f"--{name.replace('_', '-')}"


def _plain(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value}"


@cache
def options_of(kind: type[Mechanism]) -> Mapping[str, Given]:
    """Return the options of a mechanism by name, but for its budget.

    Those are the parameters of the constructor that a command line can give: numbers, words, flags, and an
    interval by its two ends. A size has the name of `SIZES`.
    """
    about: Mapping[str, str] = _about(kind)
    found: dict[str, Given] = {}
    defaults = {
        field.name: NEEDED if field.default is MISSING else field.default
        for field in fields(kind)
        if field.init
    }
    for field, (stated, notes) in annotated(kind).items():
        special = next((note for note in notes if isinstance(note, Option)), Option())
        name = special.name or SIZES.get(field, field)
        if special.hidden or name == "epsilon" or (field == "features" and kind.sized_by != "features"):
            continue  # columns that a mechanism takes one by one are not features of it
        # A size may be more than a number in Python: labels, or points of their own.
        value, words = (int, ()) if field in SIZES else _value(stated)
        if field == "interval":
            ends = (None, None) if defaults[field] is None else defaults[field]
            for (end, text), default in zip(_ENDS.items(), ends, strict=True):
                found[end] = Given(end, field, float, default=default, about=text)
        elif value is not None or special.read is not None:
            found[name] = Given(
                name=name,
                field=field,
                kind=value or str,
                words=words or tuple(filter(None, special.form.split("|"))),
                allowed=next((extent for note in notes if (extent := allowed(note))), ""),
                default=defaults[field],
                about=about.get(field, ""),
                read=special.read,
                short=special.short,
            )
    if kind.takes == "reals" and "low" not in found:
        found |= {end: Given(end, "interval", float, default=None, about=text) for end, text in _ENDS.items()}
    if kind.takes == "categories" and "unit" not in found:  # of a file, each column is a record's feature
        _, words = _value(get_args(Unit)[0])
        found["unit"] = Given("unit", "", str, words, about="What --epsilon covers: a row, or each column.")
    return MappingProxyType(found)


def _value(stated: Any) -> tuple[type | None, tuple[str, ...]]:
    """Return the type of a value that a command line can give, and its words."""
    if get_origin(stated) is Literal:
        return str, get_args(stated)
    plain = [each for each in get_args(stated) or (stated,) if each is not type(None)]
    return (plain[0], ()) if len(plain) == 1 and plain[0] in (int, float, bool) else (None, ())


@cache
def _about(kind: type) -> Mapping[str, str]:
    """Return what the docstring of a class says of each parameter; "As of" another class is looked up."""
    found = {}
    for name, own in documented(kind, "Parameters").items():
        words = own
        reference = _REFERENCE.match(words)
        if reference:
            other = _about(getattr(bitldp, reference[1])).get(name, "")
            words = f"{other} {words[reference.end() :]}".strip()
        found[name] = words.replace("`", "")
    return found
