"""Errors that callers catch, and the check for optional dependencies."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

__all__ = ["DataError", "MissingExtraError", "PlanError", "missing", "require"]


class PlanError(ValueError):
    """Error for a plan that cannot be, or does not fit a table; it names the column and what is allowed."""


class DataError(ValueError):
    """Error for a value of a table that cannot be released; it names row and column, and never the value."""


class MissingExtraError(ImportError):
    """Error for libraries that a part of the package needs and that are not installed.

    The message ends with the ``pip install`` line that brings them.
    """


def missing(modules: Iterable[str]) -> list[str]:
    """Return the modules that cannot be imported, without importing any."""
    return [name for name in modules if importlib.util.find_spec(name) is None]


def require(part: str, modules: Iterable[str], extra: str) -> None:
    """Raise `MissingExtraError` unless every module of an extra is installed.

    Parameters
    ----------
    part : str
        What needs them, as the subject of the sentence: ``"the command line"``.
    modules : iterable of str
        Top-level module names.
    extra : str
        The extra, or extras separated by commas, that bring them.
    """
    absent = missing(modules)
    if absent:
        raise MissingExtraError(f'{part} needs {", ".join(absent)}: pip install "bitldp[{extra}]"')
