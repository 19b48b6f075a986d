"""Docstrings of the reference as `help` shows them: parameters in full, types as words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import griffe

#: Head of a parameter: its names, and its type in words.
_HEAD = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.+)$", re.MULTILINE)


class Completed(griffe.Extension):
    """Takes the docstring of a class whose source leads to another from the class itself."""

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        """Complete a docstring, which the source has in part."""
        if cls.docstring is not None and "As of `" in cls.docstring.value:
            kind = getattr(import_module(cls.module.path), cls.name)
            cls.docstring.value = inspect.getdoc(kind) or ""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Keep types from being read as code: "int, sequence or Categories" is no tuple."""
        for each in _inside(pkg):
            if each.docstring is not None:
                _in_words(each.docstring)


def _inside(owner: griffe.Object) -> Iterator[griffe.Object]:
    yield owner
    for member in owner.members.values():
        if not isinstance(member, griffe.Alias):
            yield from _inside(member)


def _in_words(docstring: griffe.Docstring) -> None:
    heads = {}
    for names, kind in _HEAD.findall(docstring.value):
        each = names.split(", ")
        kinds = kind.split(", ") if kind.count(",") == len(each) - 1 else [kind] * len(each)
        heads |= dict(zip(each, kinds, strict=True))
    for section in docstring.parsed:
        for element in section.value if isinstance(section.value, list) else ():
            if not hasattr(element, "annotation") or element.annotation is None:
                continue
            written = heads.get(getattr(element, "name", "")) or str(element.annotation)
            element.annotation = _words(written)


def _words(written: str) -> str:
    """Return a type as it is read aloud: "exact" or "paper"."""
    kind = re.sub(r"^\((.*)\)$", r"\1", written.removesuffix(", optional"))
    return re.sub(r"[{]([^}]*)[}]", _either, kind)


def _either(found: re.Match[str]) -> str:
    *first, last = (each.strip() for each in found[1].split(","))
    return f"{', '.join(first)} or {last}" if first else last
