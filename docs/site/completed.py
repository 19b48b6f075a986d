"""Docstrings of the reference as `help` shows them: parameters that another class describes are filled in."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import griffe


class Completed(griffe.Extension):
    """Takes the docstring of a class whose source leads to another from the class itself."""

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        """Complete a docstring, which the source has in part."""
        if cls.docstring is not None and "As of `" in cls.docstring.value:
            kind = getattr(import_module(cls.module.path), cls.name)
            cls.docstring.value = inspect.getdoc(kind) or ""
