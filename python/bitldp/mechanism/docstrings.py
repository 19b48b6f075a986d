"""Docstrings of mechanisms, completed: a parameter of several classes is described once.

In the source, parameters that a class has in common with another are a line: "As of `FRR`." Whoever asks for
the docstring (`help`, notebooks, the command line, the site) gets the paragraphs of that class in its stead.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any, NamedTuple

__all__ = ["completed", "own_docstring"]

_HEADING = "Parameters\n----------\n"
_END = re.compile(r"\n\n(?=\w[\w ]*\n-+\n)")  # the next section
_ENTRY = re.compile(r"^(\S.*)\n?((?:(?: +.*)?\n?)*)", re.MULTILINE)
_ELSEWHERE = re.compile(r" +As of `(\w+)`\.\s*")


class _Entry(NamedTuple):
    """A parameter: its type, empty where the head of the paragraph has none, and the paragraph below."""

    kind: str
    text: str


def own_docstring(kind: type) -> str | None:
    """Return the docstring of a class as its source has it."""
    return type.__dict__["__doc__"].__get__(kind)


def completed(kind: type) -> str:
    """Return the docstring of a class with the paragraphs of the parameters that stand elsewhere."""
    doc = inspect.cleandoc(own_docstring(kind) or "")
    before, heading, after = doc.partition(_HEADING)
    parameters, *rest = _END.split(after, maxsplit=1)
    entries = (_written(name, each) for name, each in _entries(kind, parameters).items())
    return "\n\n".join([before + heading + "\n".join(entries), *rest])


def _written(name: str, entry: _Entry) -> str:
    return f"{name} : {entry.kind}\n{entry.text}" if entry.kind else f"{name}\n{entry.text}"


def _entries(kind: type, parameters: str) -> dict[str, _Entry]:
    """Return the parameters of a class by name, in the order of their section of its docstring."""
    result = {}
    for head, text in _ENTRY.findall(parameters):
        names, _, stated = head.partition(" : ")
        each = names.split(", ")
        kinds = stated.split(", ") if stated.count(",") == len(each) - 1 else [stated] * len(each)
        for name, own in zip(each, kinds, strict=True):
            result[name] = _resolved(kind, name, _Entry(own, text.rstrip()))
    return result


def _resolved(kind: type, name: str, entry: _Entry) -> _Entry:
    """Return an entry, that of another class where it begins with one; what it says beside it stays."""
    elsewhere = _ELSEWHERE.match(entry.text)
    other = elsewhere and _class_of(kind, elsewhere[1])
    if not elsewhere or other is None:
        return entry
    _, _, after = inspect.cleandoc(own_docstring(other) or "").partition(_HEADING)
    text = _END.split(after, maxsplit=1)[0]
    common = _entries(other, text).get(name)
    if common is None:
        return entry
    more = entry.text[elsewhere.end() :]
    return _Entry(entry.kind or common.kind, f"{common.text}\n    {more}") if more else common


def _class_of(kind: type, name: str) -> Any:
    """Return a class by its name: a base, or a public one of the package."""
    bases = {each.__name__: each for each in kind.__mro__}
    return bases.get(name) or getattr(sys.modules["bitldp"], name, None)
