"""Charges of a ledger, and their form in a file."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from bitldp.base import checks
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee

__all__ = ["Entry", "check_numbers", "digest", "from_json", "named", "to_json"]


@dataclass(frozen=True)
class Entry:
    """One charge of a ledger.

    Attributes
    ----------
    mechanism : str
        Name of the mechanism.
    guarantee : Guarantee
        Of one release.
    count : int
        Number of releases.
    note : str
        What the caller wrote about them.
    """

    mechanism: str
    guarantee: Guarantee
    count: int
    note: str = ""


def named(release: Mechanism | Guarantee) -> tuple[str, Guarantee]:
    """Return the name and the guarantee of a release to charge."""
    if isinstance(release, Guarantee):
        return "Guarantee", release
    guarantee = getattr(release, "guarantee", None)
    if not isinstance(guarantee, Guarantee):
        raise TypeError(f"release: must be a mechanism or a Guarantee, not {type(release).__name__}")
    return type(release).__name__, guarantee


def to_json(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON values; infinity, which JSON lacks, is a word."""
    guarantee = asdict(entry.guarantee)
    return {
        "mechanism": entry.mechanism,
        "guarantee": {name: "infinity" if value == math.inf else value for name, value in guarantee.items()},
        "count": entry.count,
        "note": entry.note,
    }


def from_json(record: Any) -> Entry:
    """Return the entry in JSON values, or raise."""
    numbers: dict[str, Any] = {
        name: math.inf if value == "infinity" else value for name, value in record["guarantee"].items()
    }
    entry = Entry(
        mechanism=record["mechanism"],
        guarantee=Guarantee(**numbers),
        count=checks.integer("count", record["count"], 1),
        note=record["note"],
    )
    if not isinstance(entry.mechanism, str) or not isinstance(entry.note, str):
        raise TypeError("mechanism and note: must be strings")
    check_numbers(entry.guarantee)
    return entry


def check_numbers(guarantee: Guarantee) -> None:
    """Refuse a guarantee with numbers that no release can have."""
    for name in ("claimed", "bit", "feature", "record", "delta"):
        value = getattr(guarantee, name)
        if not isinstance(value, (int, float)) or not value >= 0.0:
            raise ValueError(f"release: {name} of its guarantee must be zero or more")
    if not guarantee.delta <= 1.0:
        raise ValueError("release: delta of its guarantee must be at most 1")


def digest(contents: Any) -> str:
    """Return the checksum of JSON values, whatever the white space of the file."""
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()
