"""The mechanisms that the command line knows, one entry each."""

from __future__ import annotations

from bitldp._cli.catalogue import Entry, Settings
from bitldp._cli.entries_basic import BASIC
from bitldp._cli.entries_numeric import NUMERIC
from bitldp._cli.files import UsageError

__all__ = ["ENTRIES", "check", "entry"]

ENTRIES: dict[str, Entry] = {each.name: each for each in (*BASIC, *NUMERIC)}


def entry(name: str) -> Entry:
    """Return the entry of a mechanism by the name used on the command line."""
    try:
        return ENTRIES[name.lower().replace("_", "-")]
    except KeyError:
        raise UsageError(f"no mechanism {name!r}; there are {', '.join(ENTRIES)}") from None


def check(chosen: Entry, settings: Settings) -> None:
    """Refuse options that say nothing to the chosen mechanism."""
    chosen.check(settings, ENTRIES)
