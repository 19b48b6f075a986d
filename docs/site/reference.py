"""Reference pages: every public name of the package, by the room that it stands in."""

from __future__ import annotations

import dataclasses
import inspect
from functools import cache
from importlib import import_module
from typing import Any

import bitldp
from bitldp.mechanism.base import Mechanism

#: Rooms with a page, and what it is called; a room's page has the names that the package or the room exports.
ROOMS = {
    "categorical": "Categories",
    "numeric": "Numbers",
    "bits": "Bits",
    "points": "Points",
    "record": "Records",
    "ordered": "Ordered values and words",
    "compression": "Vectors in few bits",
    "selection": "Selection of a dimension",
    "mechanism": "What every mechanism can do",
    "estimate": "Estimates",
    "privacy": "Guarantees",
    "recommend": "Recommendations",
    "tables": "Tables",
    "sklearn": "scikit-learn",
    "federated": "Flower",
    "ledger": "Ledgers",
    "accounting": "Accounting",
    "amplification": "Amplification",
    "audit": "Audits",
    "report": "Tables and plots",
    "papers": "Systems of the papers",
    "data": "Data sets",
    "design": "Designs",
    "codecs": "Codecs",
    "channels": "Channels",
    "letters": "Letters",
    "release": "Releases",
    "verify": "Verification",
}

#: Functions of the Rust core, which no room exports.
BESIDE = {"codecs": ["bitldp.pack", "bitldp.unpack"]}

#: Page of what mechanisms inherit; each page of a family only says what, and leads there.
COMMON = "mechanism"

RUST = """# The Rust crate

`bitldp-core` is the crate below the package: no Python in it. Its documentation is made by `cargo doc` and
stands <a href="../rust/bitldp_core/index.html">beside these pages</a>.

| module | what it has |
|---|---|
| `probability` | probabilities as integers over 2^64, exact logarithms of ratios, rounded up |
| `random` | the ChaCha12 keystream by key and chunk, fresh keys, keyed coins |
| `codec` | fixed-point words, grids, categories; packing |
| `channel` | laws and their exact ε |
| `kernel` | portable loops and their vector twins |
| `aggregate` | counts and sums of reports |
"""


def names(room: str) -> list[str]:
    """Return the dotted names of a room's page, in order."""
    module = import_module(f"bitldp.{room}")
    found = [f"bitldp.{room}.{name}" for name in getattr(module, "__all__", ())]
    listed = {name.rpartition(".")[2] for name in found}
    for name in bitldp.__all__:
        home = getattr(getattr(bitldp, name), "__module__", "") or ""
        if home.split(".")[1:2] == [room] and name not in listed:
            found.append(f"{home}.{name}")
    found += BESIDE.get(room, [])
    if room == COMMON:
        found += [_dotted(base) for base in bases()]
    return sorted(set(found), key=lambda name: name.rpartition(".")[2].lower())


def inherited(kind: type) -> dict[type, list[str]]:
    """Return the documented names that a mechanism has of others, by the class that defines them."""
    fields = (
        {each.name for each in dataclasses.fields(kind) if each.init}
        if dataclasses.is_dataclass(kind)
        else set()
    )
    found: dict[type, list[str]] = {}
    for name in dir(kind):
        home = next(base for base in kind.__mro__ if name in vars(base))
        documented = getattr(vars(home)[name], "__doc__", None) and not isinstance(
            vars(home)[name], (str, tuple)
        )
        if not name.startswith("_") and name not in fields and home is not kind and documented:
            found.setdefault(home, []).append(name)
    return {home: found[home] for home in kind.__mro__ if home in found}


@cache
def bases() -> tuple[type, ...]:
    """Return every class that a public mechanism inherits something from, and that is none itself."""
    public = [each for each in map(bitldp.__dict__.get, bitldp.__all__) if _is_mechanism(each)]
    found = {base: None for kind in public for base in inherited(kind) if base not in public}
    return tuple(found)


def pages() -> dict[str, str]:
    """Return the text of each page by its address."""
    made = {}
    for room, title in ROOMS.items():
        listed = names(room)
        if listed:
            blocks = "\n\n".join(map(_block, listed))
            made[f"reference/{room}.md"] = f"# {title}\n\n`bitldp.{room}`\n\n{blocks}\n"
    return made


def _block(name: str) -> str:
    """Return a name's entry; of a mechanism without what it inherits, which is named and linked."""
    room, _, last = name.rpartition(".")
    found = getattr(import_module(room), last)
    if not _is_mechanism(found) and found not in bases():
        return f"::: {name}"
    entry = f"::: {name}\n    options:\n      inherited_members: false"
    if found in bases():
        return entry
    more = [
        f"[`{each}`]({_page(base)}#{_anchor(base)}.{each})"
        for base, own in inherited(found).items()
        for each in own
    ]
    return f"{entry}\n\n**`{last}` also has** {', '.join(more)}."


def _page(base: type) -> str:
    return f"{COMMON}.md" if base in bases() else f"{base.__module__.split('.')[1]}.md"


def _anchor(base: type) -> str:
    """Return the name under which a class stands on its page."""
    if base in bases():
        return _dotted(base)
    room = base.__module__.split(".")[1]
    exported = base.__name__ in getattr(import_module(f"bitldp.{room}"), "__all__", ())
    return f"bitldp.{room}.{base.__name__}" if exported else _dotted(base)


def _dotted(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_mechanism(found: Any) -> bool:
    return inspect.isclass(found) and issubclass(found, Mechanism) and found is not Mechanism
