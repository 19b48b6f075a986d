"""Options of the command line that need reading: lists of names, and public lists of categories."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bitldp._cli.files import UsageError

__all__ = ["categories", "names", "needed"]

_T = TypeVar("_T")


def needed(option: str, value: _T | None) -> _T:
    """Return the value of an option that this mechanism cannot do without."""
    if value is None:
        raise UsageError(f"{option} is needed")
    return value


def names(text: str | None) -> tuple[str, ...]:
    """Split a list separated by commas; quotes are not needed, spaces around names do not count."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def categories(
    lists: list[str], files: list[str], columns: tuple[str, ...]
) -> dict[str | None, tuple[str, ...]]:
    """Read public dictionaries: ``A,B,C`` for every column, ``COLUMN=A,B,C`` for one, ``0..9`` a range."""
    found: dict[str | None, tuple[str, ...]] = {}

    def add(option: str, text: str, read: Callable[[str], list[str]]) -> None:
        column, equals, rest = text.partition("=")
        if equals and column not in columns:
            raise UsageError(f"{option} {column}=...: no column {column!r} among --columns and --label")
        key, items = (column, rest) if equals else (None, text)
        labels = read(items)
        span = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", labels[0]) if len(labels) == 1 else None
        if span:
            labels = [str(number) for number in range(int(span[1]), int(span[2]) + 1)]
        if len(labels) < 2 or len(set(labels)) != len(labels):
            raise UsageError(f"{option}: at least 2 distinct categories are needed")
        if key in found:
            raise UsageError(
                f"{option}: two lists for {'every column' if key is None else f'column {key!r}'}"
            )
        found[key] = tuple(labels)

    for text in lists:
        add("--categories", text, lambda items: list(names(items)))
    for text in files:
        add("--categories-file", text, _lines)
    return found


def _lines(path: str) -> list[str]:
    """Return the lines of a file of categories, without the empty ones."""
    try:
        return [line for line in Path(path).read_text(encoding="utf-8-sig").splitlines() if line]
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"--categories-file {path}: not a readable text file in UTF-8") from None
