"""Every mechanism that a family exports, by its name on the command line."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType

from bitldp.cli.catalogue.entry import Entry
from bitldp.cli.perturb.files import UsageError
from bitldp.mechanism.base import Mechanism

__all__ = ["FAMILIES", "entries", "entry"]

#: The packages of the families, in the order of the documentation, and what their mechanisms release.
FAMILIES = {
    "bits": "fixed-point numbers, bit by bit",
    "categorical": "categories",
    "points": "points of an interval",
    "numeric": "numbers of an interval, and labels as vectors",
    "ordered": "ordered values and words, for distributions, ranges and top words",
    "compression": "numbers of an interval and vectors, in few bits",
    "record": "whole records of numbers, of categories, of both",
    "selection": "the index of an important dimension",
}


@cache
def entries() -> Mapping[str, Entry]:
    """Return what every family exports and a command line can build, by name; family by family."""
    found: dict[str, Entry] = {}
    for family in FAMILIES:
        of_family = {each.name: each for each in _exported(family)}
        found |= {name: of_family[name] for name in sorted(of_family) if name not in found}
    return MappingProxyType(found)


def entry(name: str) -> Entry:
    """Return the entry of a mechanism by the name used on the command line."""
    try:
        return entries()[name.lower().replace("_", "-")]
    except KeyError:
        raise UsageError(f"no mechanism {name!r}; there are {', '.join(entries())}") from None


def _exported(family: str) -> Iterator[Entry]:
    package = importlib.import_module(f"bitldp.{family}")
    for name in package.__all__:
        kind = getattr(package, name)
        if not (inspect.isclass(kind) and issubclass(kind, Mechanism) and kind.takes):
            continue
        summary = (kind.__doc__ or "").split("\n", 1)[0].rstrip(".")
        command = vars(kind).get("command") or _kebab(kind.__name__)
        yield Entry(command, family, kind, summary, kind.usual_size)
        for variant in vars(kind).get("variants", ()):
            yield Entry(variant.name, family, kind, variant.summary, variant.usual_size, variant.parameters)


def _kebab(name: str) -> str:
    """Return the name of a class in small letters and with hyphens; capitals in a row are one word."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()
