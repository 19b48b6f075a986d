"""Reference pages: an index for each room, with a line for every public name, and a page for each name.

What has no page here is private: `bitldp_papers` uses nothing of it (tests/house/test_imports.py).
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from functools import cache, cached_property
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
    "client": "Clients that are not Python",
    "ledger": "Ledgers",
    "accounting": "Accounting",
    "amplification": "Amplification",
    "sums": "Secure sums",
    "audit": "Audits",
    "report": "Tables and plots",
    "design": "Designs",
    "codecs": "Codecs",
    "channels": "Channels",
    "letters": "Letters",
    "release": "Releases",
    "verify": "Verification",
    "cli": "Commands of your own",
    "base": "For packages that build on this one",
}

#: Lines of a class's docstrings with those of its members, beyond which these have pages of their own.
_LONG = 200

#: Modules that are public beside what their room lists, or where it lists nothing.
MODULES = {
    "base": ("checks", "documents", "errors", "files", "keys", "palette"),
    "cli": ("plugin",),
    "federated": ("flower",),
    "mechanism": ("base",),
    "sums": ("protocol",),
}

#: Public packages of bitldp-papers: the address of the page, and what it is called.
PAPERS = {
    "bitldp_papers": ("papers", "Systems of the papers"),
    "bitldp_papers.data": ("papers-data", "Data sets of the papers"),
    "bitldp_papers.figures": ("papers-figures", "Figures of the papers"),
}

#: Functions of the Rust core, which no room exports.
BESIDE = {"codecs": ["bitldp.pack", "bitldp.unpack"]}

#: Room of what mechanisms inherit; the page of a mechanism only lists it, and leads there.
COMMON = "mechanism"

#: What the package asks of its own mechanisms: documented with the class that defines it, listed by no other.
PLUMBING = {"answers", "bias_on", "extremes", "index_block", "letters_on", "outside"}

RUST = """# The Rust crate

`bitldp-core` is the crate below the package: no Python in it. Its documentation is made by `cargo doc` and
stands <a href="../rust/bitldp_core/index.html">beside these pages</a>.

| module | what it has |
|---|---|
| `probability` | probabilities as integers over 2^64, exact logarithms of ratios, rounded up |
| `random` | the ChaCha12 keystream by key and chunk, fresh keys, keyed random bits |
| `codec` | fixed-point words, grids, categories; packing |
| `channel` | laws and their exact ε |
| `kernel` | portable loops and their vector twins |
| `aggregate` | counts and sums of reports |
"""


def exported(module: str) -> list[str]:
    """Return the names of a public module: those that it lists, or what it defines."""
    result = import_module(module)
    defined = (name for name, each in vars(result).items() if getattr(each, "__module__", "") == module)
    return list(getattr(result, "__all__", None) or (name for name in defined if not name.startswith("_")))


def _modules(room: str) -> list[str]:
    """Return the public modules of a room."""
    return [f"bitldp.{room}", *(f"bitldp.{room}.{name}" for name in MODULES.get(room, ()))]


def public() -> set[str]:
    """Return every dotted name of `bitldp` that others may import: modules, and what they export."""
    modules = [module for room in ROOMS for module in _modules(room)]
    inside = {f"{module}.{name}" for module in modules for name in exported(module)}
    return {"bitldp", *modules, *inside, *(f"bitldp.{name}" for name in bitldp.__all__)}


def names(room: str) -> list[str]:
    """Return the dotted names of a room's page, in order."""
    result = [f"{owner}.{name}" for owner in _modules(room) for name in exported(owner)]
    listed = {name.rpartition(".")[2] for name in result}
    for name in bitldp.__all__:
        owner = getattr(getattr(bitldp, name), "__module__", "") or ""
        if owner.split(".")[1:2] == [room] and name not in listed:
            result.append(f"{owner}.{name}")
    result += BESIDE.get(room, [])
    if room == COMMON:
        result += [_dotted(base) for base in bases()]
    return sorted(set(result), key=lambda name: name.rpartition(".")[2].lower())


def inherited(kind: type) -> dict[type, list[str]]:
    """Return the documented names that a mechanism has of others, by the class that defines them."""
    fields = (
        {each.name for each in dataclasses.fields(kind) if each.init}
        if dataclasses.is_dataclass(kind)
        else set()
    )
    result: dict[type, list[str]] = {}
    for name in dir(kind):
        owner = next(base for base in kind.__mro__ if name in vars(base))
        documented = getattr(vars(owner)[name], "__doc__", None) and not isinstance(
            vars(owner)[name], (str, tuple)
        )
        if not name.startswith("_") and name not in fields and owner is not kind and documented:
            result.setdefault(owner, []).append(name)
    return {owner: result[owner] for owner in kind.__mro__ if owner in result}


@cache
def bases() -> tuple[type, ...]:
    """Return every class that a public mechanism inherits something from, and that is none itself."""
    public = [each for each in (getattr(bitldp, name) for name in bitldp.__all__) if _is_mechanism(each)]
    result = {base: None for kind in public for base in inherited(kind) if base not in public}
    return tuple(result)


def pages() -> dict[str, str]:
    """Return the text of each page by its address: of a room or package, then of its names."""
    made = {}
    for room, title in ROOMS.items():
        if listed := names(room):
            made |= _pages(room, f"bitldp.{room}", title, listed)
    for package, (address, title) in PAPERS.items():
        listed = [f"{package}.{name}" for name in sorted(exported(package), key=str.lower)]
        made |= _pages(address, package, title, listed)
    return made


def indexes() -> list[str]:
    """Return the addresses of the pages that list others."""
    return [address for address in pages() if address.count("/") == 1]


def _pages(address: str, module: str, title: str, listed: list[str]) -> dict[str, str]:
    """Return the page of a room, with a line for each name, and a page for each class and function.

    Names that differ in capitals alone share a page: not every file system tells them apart.
    """
    kinds: dict[str, list[str]] = {"Classes": [], "Functions": [], "Exceptions and warnings": []}
    made: dict[str, list[str]] = {}
    constants = []
    for name in listed:
        short, value = name.rpartition(".")[2], object_of(name)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            constants.append(f"::: {name}")
            continue
        page = next((each for each in made if each.lower() == short.lower()), short)
        made.setdefault(page, []).append(name)
        line = f"- [`{short}`]({address}/{page}.md#{name}): {_sentence(value)}"
        kinds[_kind(value)].append(line)
    parts = [f"# {title}", f"`{module}`"]
    for kind, lines in kinds.items():
        parts += [f"## {kind}", "\n".join(lines)] if lines else []
    parts += ["## Constants", *constants] if constants else []
    result = {f"reference/{address}.md": "\n\n".join(parts) + "\n"}
    single: dict[str, str] = {}
    for page, inside in made.items():
        for name in inside:
            if inspect.isclass(kind := object_of(name)) and _long(kind):
                for each in _members(kind):
                    up = f"<small>[{page}](../{page}.md)</small>"
                    head = f"---\ntitle: {json.dumps(f'{page}.{each}')}\n---\n\n{up}"
                    entry = f"::: {name}.{each}\n    options:\n      heading_level: 1"
                    single[f"reference/{address}/{page}/{each}.md"] = f"{head}\n\n{entry}\n"
        head = f"---\ntitle: {json.dumps(page)}\n---\n\n<small>[{title}](../{address}.md)</small>"
        result[f"reference/{address}/{page}.md"] = "\n\n".join([head, *map(_block, inside)]) + "\n"
    return result | single


def object_of(name: str) -> Any:
    """Return what a dotted name stands for."""
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def _kind(value: Any) -> str:
    if not inspect.isclass(value):
        return "Functions"
    return "Exceptions and warnings" if issubclass(value, BaseException) else "Classes"


def _sentence(value: Any) -> str:
    """Return the first paragraph of a docstring; what is not code is no markup."""
    text = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    parts = re.split(r"(`[^`]+`)", text.replace("``", "`"))
    plain = (re.sub(r"([\\*_|\[\]#<>])", r"\\\1", part) for part in parts[::2])
    return "".join(each for pair in zip(plain, [*parts[1::2], ""], strict=True) for each in pair)


def _block(name: str) -> str:
    """Return a name's entry; of a mechanism without what it inherits, which is named and linked."""
    result = object_of(name)
    entry = f"::: {name}\n    options:\n      heading_level: 1"
    if inspect.isclass(result) and _long(result):
        page = name.rpartition(".")[2]
        lines = [
            f"- [`{each}`]({page}/{each}.md#{name}.{each}): {_sentence(getattr(result, each))}"
            for each in _members(result)
        ]
        entry = "\n\n".join(
            [
                f"{entry}\n      members: false\n      inherited_members: false",
                "## Methods and properties",
                "\n".join(lines),
            ]
        )
        return entry if not _is_mechanism(result) else f"{entry}\n\n{_inherited(name, result)}"
    if not _is_mechanism(result) and result not in bases():
        return entry
    entry += "\n      inherited_members: false"
    if result in bases():
        return entry
    return f"{entry}\n\n{_inherited(name, result)}"


def _inherited(name: str, result: type) -> str:
    """Return the list of what a mechanism has of others, which a click opens."""
    more = [
        f"    - [`{each}`]({_link(base, each)}): {_sentence(vars(base)[each])}"
        for base, own in inherited(result).items()
        for each in own
        if each not in PLUMBING
    ]
    short = name.rpartition(".")[2]
    return "\n\n".join([f'??? abstract "`{short}` also has {len(more)} inherited members"', "\n".join(more)])


def _link(base: type, member: str) -> str:
    """Return the link to the entry of a class's member, from the page of another class."""
    page = f"{base.__name__}/{member}" if _long(base) else base.__name__
    return f"../{_room(base)}/{page}.md#{_anchor_of(base)}.{member}"


def _members(kind: type) -> list[str]:
    """Return the documented names of a class, in order; of a mechanism those that it defines itself."""
    whole = not (_is_mechanism(kind) or kind in bases())
    result = []
    for name in dict.fromkeys(name for base in kind.__mro__ for name in vars(base)):
        owner = next(base for base in kind.__mro__ if name in vars(base))
        if name.startswith("_") or not owner.__module__.startswith("bitldp") or not (whole or owner is kind):
            continue
        if inspect.isroutine(vars(owner)[name]) or isinstance(vars(owner)[name], (property, cached_property)):
            result.append(name)
    return result


@cache
def _long(kind: type) -> bool:
    """Tell whether the members of a class have pages of their own, since one page would be too long."""
    texts = [kind, *(getattr(kind, name) for name in _members(kind))]
    return sum((inspect.getdoc(each) or "").count("\n") + 4 for each in texts) > _LONG


def _room(base: type) -> str:
    return COMMON if base in bases() else base.__module__.split(".")[1]


def _anchor_of(base: type) -> str:
    """Return the name under which a class stands on its page."""
    if base in bases():
        return _dotted(base)
    room = base.__module__.split(".")[1]
    public = base.__name__ in getattr(import_module(f"bitldp.{room}"), "__all__", ())
    return f"bitldp.{room}.{base.__name__}" if public else _dotted(base)


def _dotted(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_mechanism(result: Any) -> bool:
    return inspect.isclass(result) and issubclass(result, Mechanism) and result is not Mechanism
