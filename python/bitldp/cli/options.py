"""Options of the command line that need reading: lists of names, and public lists of categories."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bitldp.cli.perturb.files import UsageError

__all__ = [
    "MOST_CATEGORIES",
    "MOST_FEATURES",
    "MOST_THREADS",
    "bounded",
    "categories",
    "names",
    "needed",
    "separator",
]

_T = TypeVar("_T")

#: Largest number of categories, of classes or of points of a range that the command line takes.
MOST_CATEGORIES = 1 << 16
#: Largest number of features that ``explain`` and ``audit`` take.
MOST_FEATURES = 1 << 20
#: Largest number of threads.
MOST_THREADS = 1 << 10

_DIGITS = 19  # characters of an end of a range; more than any 64-bit integer of a column needs is refused
# An item of a list: in double quotes (doubled within) as it stands, else without the spaces around it.
_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"|((?!")[^,]*?))\s*(,|\Z)')


def needed(option: str, value: _T | None) -> _T:
    """Return the value of an option that this mechanism cannot do without."""
    if value is None:
        raise UsageError(f"{option} is needed")
    return value


def bounded(option: str, value: int | None, most: int) -> int | None:
    """Return a number of things; refuse one that no machine could hold, before anything is built."""
    if value is not None and value > most:
        raise UsageError(f"{option}: must be at most {most:,}, got {value}")
    return value


def separator(delimiter: str | None) -> None:
    """Refuse what separates no fields of a text."""
    if delimiter is None:
        return
    if len(delimiter) != 1:
        raise UsageError("--delimiter: must be one character")
    if delimiter in '"\r\n' or not delimiter.isascii():
        raise UsageError("--delimiter: must be a character of ASCII, and no quote or end of a line")


def names(text: str | None, option: str = "--columns") -> tuple[str, ...]:
    """Split a list as a row of CSV: a name with a comma, or with spaces at its ends, stands in quotes."""
    text = text or ""
    found: list[str] = []
    place = 0
    while True:
        item = _ITEM.match(text, place)
        if item is None:
            raise UsageError(f"{option}: not a list with commas; a quoted name ends with its quote")
        if item[1] is not None:
            found.append(item[1].replace('""', '"'))
        elif item[2]:
            found.append(item[2])
        if not item[3]:
            return tuple(found)
        place = item.end()


def categories(
    lists: list[str], files: list[str], columns: tuple[str, ...]
) -> dict[str | None, tuple[str, ...]]:
    """Read public dictionaries: ``A,B,C`` for every column, ``COLUMN=A,B,C`` for one, ``0..9`` a range."""
    found: dict[str | None, tuple[str, ...]] = {}

    def add(option: str, text: str, read: Callable[[str], list[str]]) -> None:
        # A name may hold "=" itself: the longest column that fits is meant.
        known = max((name for name in columns if text.startswith(f"{name}=")), key=len, default=None)
        if known is None and "=" in text:
            column = text.partition("=")[0]
            raise UsageError(f"{option} {column}=...: no column {column!r} among --columns and --label")
        key, items = (None, text) if known is None else (known, text[len(known) + 1 :])
        labels = read(items)
        span = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", labels[0]) if len(labels) == 1 else None
        if span:
            bounds = range(int(span[1][:_DIGITS]), int(span[2][:_DIGITS]) + 1)
            if max(map(len, span.groups())) > _DIGITS or bounds.stop - bounds.start > MOST_CATEGORIES:
                raise UsageError(f"{option}: a range has at most {MOST_CATEGORIES:,} categories")
            labels = [str(number) for number in bounds]
        if len(labels) > MOST_CATEGORIES:
            raise UsageError(f"{option}: at most {MOST_CATEGORIES:,} categories, got {len(labels):,}")
        if len(labels) < 2 or len(set(labels)) != len(labels):
            raise UsageError(f"{option}: at least 2 distinct categories are needed")
        if key in found:
            raise UsageError(
                f"{option}: two lists for {'every column' if key is None else f'column {key!r}'}"
            )
        found[key] = tuple(labels)

    for text in lists:
        add("--categories", text, lambda items: list(names(items, "--categories")))
    for text in files:
        add("--categories-file", text, _lines)
    return found


def _lines(path: str) -> list[str]:
    """Return the lines of a file of categories, without the empty ones."""
    try:
        return [line for line in Path(path).read_text(encoding="utf-8-sig").splitlines() if line]
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"--categories-file {path}: not a readable text file in UTF-8") from None
