"""JSON text of a ledger, with a checksum: writing and checked reading."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from bitldp.base import checks
from bitldp.base.saved import document
from bitldp.ledger.entry import Entry, from_json, of_fields, to_json

__all__ = ["Contents", "read", "write"]

_FORMAT = "bitldp.ledger"
_VERSION = 1


class Contents(NamedTuple):
    """Budget, delta and charges of a text. Each charge is checked by itself, their sum is not."""

    budget: float
    delta: float
    entries: list[Entry]


def write(budget: float, delta: float, entries: Iterable[Entry]) -> str:
    """Return the text of a ledger."""
    contents = {"budget": budget, "delta": delta, "entries": [to_json(entry) for entry in entries]}
    whole = {"format": _FORMAT, "version": _VERSION, "sha256": _digest(contents), "ledger": contents}
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def read(text: str) -> Contents:
    """Return the budget and the charges in a text.

    Raises
    ------
    TypeError
        If it is no str.
    ValueError
        If it is not a ledger, is of another version, was damaged or changed by hand, or holds what no ledger
        would: the message names it.
    """
    whole = document(text)
    if not isinstance(whole, dict) or whole.get("format") != _FORMAT:
        raise ValueError(f"is not a ledger (its format must be {_FORMAT!r})")
    version = whole.get("version")
    if type(version) is not int or version != _VERSION:
        shown = f", got {version}" if type(version) is int and 0 <= version < 1 << 32 else ""
        raise ValueError(f"version must be {_VERSION}{shown}")
    if whole.get("sha256") != _digest(whole.get("ledger")):
        raise ValueError("the contents do not match their checksum; damaged or changed by hand")
    try:
        contents = of_fields("ledger", whole["ledger"], Contents._fields)
        budget, delta = _amount("budget", contents["budget"]), _amount("delta", contents["delta"])
        if not isinstance(contents["entries"], list):
            raise ValueError("entries: must be a list")
        found = []
        for place, each in enumerate(contents["entries"]):
            try:
                found.append(from_json(each))
            except (TypeError, ValueError) as error:
                raise ValueError(f"entry {place}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the contents are damaged: {error}") from None
    return Contents(budget, delta, found)


def _amount(name: str, value: Any) -> float:
    """Return a budget or a delta, which JSON holds as a number and as nothing else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}: must be a number")
    return checks.budget(name, value)


def _digest(contents: Any) -> str:
    """Return the checksum of JSON values, whatever the white space of the file."""
    try:
        text = json.dumps(contents, sort_keys=True)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    return hashlib.sha256(text.encode()).hexdigest()
