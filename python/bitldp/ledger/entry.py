"""Charges of a ledger: checks, and their form in a file."""

from __future__ import annotations

import getpass
import math
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np

from bitldp.base import checks
from bitldp.base.documents import jsonable
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee

__all__ = [
    "CENTRAL",
    "MOST_RELEASES",
    "RESERVATION",
    "SUMS",
    "Entry",
    "checked",
    "from_json",
    "named",
    "stamped",
    "summed",
    "to_json",
]

MOST_RELEASES = (1 << 63) - 1
"""The most releases of one charge."""

RESERVATION = "reservation"
"""Stands for a mechanism in a charge that keeps a part of the budget for later releases."""

SUMS = "budget for sums"
"""Stands for a mechanism in an entry that says what sums may cost together."""

CENTRAL = "central"
"""Model of a charge that holds against who sees nothing but a total; it is added to no other."""

_UNITS = ("record", "feature")
_EPSILONS = ("claimed", "bit", "feature", "record")
_WORDS = ("mechanism", "note", "release", "plan", "name", "output", "reservation", "model", "time", "user")
_LATER = ("release", "plan", "name", "columns", "output", "reservation", "model", "time", "user")
"""Fields that a file holds only where they say something: files of before have none of them."""


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
    release : str
        Id of the release, as its privacy report states it.
    plan : str
        Digest of the plan.
    name : str
        Name of the plan's file.
    columns : tuple of str
        Columns that were released through mechanisms.
    output : str
        SHA-256 of the output, in an entry that costs nothing: it follows the charge, which is made before
        anything is written.
    reservation : str
        Name of the reservation that the charge draws on; in a reservation itself, its name.
    model : str
        "central" of a sum, whose guarantee holds against who sees nothing but the total; else empty.
    time : str
        When it was charged, in UTC (ISO 8601). Entries are compared without it.
    user : str
        Who charged it, by the operating system; empty where that knows none. Entries are compared without it.
    """

    mechanism: str
    guarantee: Guarantee
    count: int
    note: str = ""
    _: KW_ONLY
    release: str = ""
    plan: str = ""
    name: str = ""
    columns: tuple[str, ...] = ()
    output: str = ""
    reservation: str = ""
    model: str = ""
    time: str = field(default="", compare=False)
    user: str = field(default="", compare=False)


def stamped(entry: Entry) -> Entry:
    """Return an entry with the time, and the user of the process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without names, for one
        user = ""
    return replace(entry, time=datetime.now(timezone.utc).isoformat(timespec="seconds"), user=user)


def named(release: Mechanism | Guarantee) -> tuple[str, Guarantee]:
    """Return the name and the guarantee of a release to charge."""
    if isinstance(release, Guarantee):
        return "Guarantee", release
    guarantee = getattr(release, "guarantee", None)
    if not isinstance(guarantee, Guarantee):
        raise TypeError(f"release: must be a mechanism or a Guarantee, not {type(release).__name__}")
    return type(release).__name__, guarantee


def summed(secure: Any, note: str) -> Entry:
    """Return the charge of a secure sum, of the fewest survivors whose total is not refused."""
    central = getattr(getattr(secure, "guarantee", None), "central", None)
    if not callable(central):
        raise TypeError(f"secure: must be a secure sum, not {type(secure).__name__}")
    epsilon, delta, *_ = central()
    given = f"only the total of {secure.least_survivors} survivors or more is seen"
    holds = epsilon <= secure.epsilon
    cost = Guarantee(secure.epsilon, epsilon, epsilon, epsilon, delta, holds, given=given)
    return Entry(type(secure).__name__, cost, 1, note, release=secure.digest, model=CENTRAL)


def checked(entry: Entry) -> Entry:
    """Return an entry of plain values that a file can hold, or raise.

    Raises
    ------
    ValueError, TypeError
        For a count out of its range, a note that is no text, and a guarantee whose numbers are none.
    """
    for name in _WORDS:
        if not isinstance(getattr(entry, name), str):
            raise TypeError(f"{name}: must be a string, not {type(getattr(entry, name)).__name__}")
    if not isinstance(entry.columns, tuple) or not all(isinstance(each, str) for each in entry.columns):
        raise TypeError("columns: must be a tuple of names")
    if entry.mechanism == RESERVATION and not entry.reservation:
        raise ValueError("reservation: must have a name")
    if entry.model not in ("", CENTRAL) or (entry.mechanism == SUMS) > (entry.model == CENTRAL):
        raise ValueError(f"model: must be {CENTRAL!r} for sums, else empty")
    if entry.model and entry.reservation:
        raise ValueError("reservation: is for local releases, and not for sums")
    count = checks.integer("count", entry.count, 1)
    if count > MOST_RELEASES:
        raise ValueError(f"count: must be at most {MOST_RELEASES}")
    return replace(entry, guarantee=_guarantee(entry.guarantee), count=count)


def _guarantee(guarantee: Guarantee) -> Guarantee:
    """Return a guarantee of plain floats and words, or refuse one with numbers that no release can have."""
    numbers: dict[str, Any] = {
        name: _number(name, getattr(guarantee, name)) for name in (*_EPSILONS, "delta")
    }
    if not numbers["delta"] <= 1.0:
        raise ValueError("release: delta of its guarantee must be at most 1")
    if guarantee.unit not in _UNITS:
        raise ValueError(f"release: unit of its guarantee must be one of {', '.join(map(repr, _UNITS))}")
    if not isinstance(guarantee.holds, (bool, np.bool_)):
        raise ValueError("release: holds of its guarantee must be True or False")
    if not isinstance(guarantee.given, str):
        raise ValueError("release: given of its guarantee must be a string")
    return replace(guarantee, **numbers, holds=bool(guarantee.holds))


def _number(name: str, value: Any) -> float:
    """Return an epsilon or a delta: a double, zero or more, perhaps infinite."""
    problem = f"release: {name} of its guarantee must be zero or more"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0.0:  # NaN fails
        raise ValueError(problem)
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{problem}, in double precision") from None


def to_json(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON values; infinity, which JSON lacks, is a word."""
    guarantee = {each.name: getattr(entry.guarantee, each.name) for each in fields(Guarantee)}
    later = {name: jsonable(getattr(entry, name)) for name in _LATER if getattr(entry, name)}
    return {
        "mechanism": entry.mechanism,
        "guarantee": jsonable(guarantee),
        "count": entry.count,
        "note": entry.note,
        **later,
    }


def from_json(record: Any) -> Entry:
    """Return the entry in JSON values.

    Raises
    ------
    ValueError, TypeError
        If they are not an entry's; the message says which one is not.
    """
    first = tuple(each.name for each in fields(Entry) if each.name not in _LATER)
    entry = of_fields("entry", record, first, _LATER)
    rest = tuple(each.name for each in fields(Guarantee) if each.name not in _EPSILONS)
    numbers = dict(of_fields("guarantee", entry["guarantee"], _EPSILONS, rest))
    for name in _EPSILONS:
        if numbers[name] == "infinity":
            numbers[name] = math.inf
    later: dict[str, Any] = {name: entry[name] for name in _LATER if name in entry}
    if isinstance(later.get("columns"), list):
        later["columns"] = tuple(later["columns"])
    return checked(Entry(entry["mechanism"], Guarantee(**numbers), entry["count"], entry["note"], **later))


def of_fields(name: str, record: Any, names: tuple[str, ...], more: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a JSON object that has some fields, perhaps some more, and no others; or raise."""
    if not isinstance(record, dict) or not set(names) <= set(record) <= {*names, *more}:
        raise ValueError(f"{name}: must be an object of {', '.join((*names, *more))}, and nothing else")
    return record
