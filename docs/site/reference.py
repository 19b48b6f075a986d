"""Reference pages: every public name of the package, by the room that it stands in."""

from __future__ import annotations

from importlib import import_module

import bitldp

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

#: Names that a room's own list leaves to be found where they are defined.
BESIDE = {"mechanism": ["bitldp.mechanism.base.Mechanism"]}

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
    return sorted({*found, *BESIDE.get(room, ())}, key=lambda name: name.rpartition(".")[2].lower())


def pages() -> dict[str, str]:
    """Return the text of each page by its address."""
    made = {}
    for room, title in ROOMS.items():
        listed = names(room)
        if listed:
            blocks = "\n\n".join(f"::: {name}" for name in listed)
            made[f"reference/{room}.md"] = f"# {title}\n\n`bitldp.{room}`\n\n{blocks}\n"
    return made
