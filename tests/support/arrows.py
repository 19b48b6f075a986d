"""Which source file uses which: the imports of a Python package, the paths of a Rust crate.

An arrow leads from a file to a file that it names. Imports within functions and for type checkers count: they
are what a reader has to know.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

Arrows = Mapping[str, set[str]]


# -- Python


def python_arrows(package: Path) -> dict[str, set[str]]:
    """Return what each module of a package imports of it, by dotted names, without the extension module."""
    modules = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if path.stem == "__init__" else parts)] = path
    stubs = {path.stem for path in package.glob("*.pyi")}
    extensions = {f"{package.name}.{stem}" for stem in stubs if stem != "__init__"}
    arrows: dict[str, set[str]] = {}
    for name, path in modules.items():
        arrows[name] = set()
        stub = path.with_suffix(".pyi")
        for named in chain.from_iterable(imported(each, name) for each in (path, stub) if each.exists()):
            if not named.startswith(f"{package.name}."):
                target = package.name if named == package.name else ""
            elif any(f"{named}.".startswith(f"{extension}.") for extension in extensions):
                continue
            else:
                target = named
                while target not in modules:
                    target = target.rpartition(".")[0]
            if target and target != name:
                arrows[name].add(target)
    return arrows


def imported(path: Path, name: str) -> Iterator[str]:
    """Yield the dotted names that a file imports; `from a import b` names `a.b`."""
    inside = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = inside.split(".")[: len(inside.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{base}.{each.name}" for each in node.names)


def between_rooms(arrows: Arrows) -> dict[str, set[str]]:
    """Return the arrows between rooms: the top folders and files of a package, and itself by its name."""
    rooms: dict[str, set[str]] = {}
    for name, targets in arrows.items():
        own = rooms.setdefault(room_of(name), set())
        own |= {room_of(target) for target in targets} - {room_of(name)}
    return rooms


def room_of(module: str) -> str:
    """Return the room of a module: the second part of its dotted name; the package itself is one."""
    parts = module.split(".")
    return parts[min(1, len(parts) - 1)]


# -- Rust


def rust_arrows(source: Path) -> dict[str, set[str]]:
    """Return which files of a crate each file names by `crate::`, `super::` or `self::`, or as its child.

    A name that a module only hands on (`pub use`) leads to the file where it is. Unit tests do not count.
    """
    files = {}
    for path in source.rglob("*.rs"):
        parts = path.relative_to(source).with_suffix("").parts
        files[parts[:-1] if path.stem in {"mod", "lib"} else parts] = _without_tests(path)
    handed_on = {}
    for module, text in files.items():
        for tree in re.findall(r"\bpub(?:\([^)]*\))?\s+use\s+([^;]+);", text):
            for path in _leaves(tree):
                found = _absolute(path, module, files)
                if found:
                    handed_on[(*module, found[-1])] = found
    arrows: dict[str, set[str]] = {}
    for module, text in files.items():
        paths = [
            path for tree in re.findall(r"^\s*use\s+([^;]+);", text, re.MULTILINE) for path in _leaves(tree)
        ]
        paths += re.findall(r"\b(?:crate|super)(?:::\w+)+", re.sub(r"\buse\s[^;]+;", "", text))
        targets = {_file(_absolute(path, module, files), handed_on, files) for path in paths}
        arrows["::".join(module)] = {"::".join(target) for target in targets - {module, ()}}
    return arrows


def _without_tests(path: Path) -> str:
    text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def _leaves(tree: str) -> Iterator[str]:
    """Yield the paths of a tree such as `a::{b, c::{d, e}}`."""
    braced = re.match(r"([\w:\s]*?)\{(.*)\}$", tree.strip(), re.DOTALL)
    if braced is None:
        yield tree.split(" as ", maxsplit=1)[0].strip()
        return
    depth, branch = 0, ""
    for letter in braced[2] + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if branch.strip():
                yield from (braced[1].strip() + leaf for leaf in _leaves(branch))
            branch = ""
        else:
            branch += letter


def _absolute(path: str, module: tuple[str, ...], files: Mapping[tuple[str, ...], str]) -> tuple[str, ...]:
    """Return a path from the root of the crate; nothing for one that leads out of it."""
    parts = [part.strip() for part in path.split("::")]
    if parts[0] == "crate":
        return tuple(parts[1:])
    if parts[0] == "self":
        return (*module, *parts[1:])
    above = module
    while parts[0] == "super":
        above, parts = above[:-1], parts[1:]
    return (*above, *parts) if above != module or (*module, parts[0]) in files else ()


def _file(
    path: tuple[str, ...],
    handed_on: Mapping[tuple[str, ...], tuple[str, ...]],
    files: Mapping[tuple[str, ...], str],
) -> tuple[str, ...]:
    """Return the file that holds what a path names."""
    for _ in range(8):  # a name is handed on a few times at most
        step = next((end for end in range(1, len(path) + 1) if path[:end] in handed_on), None)
        if step is None:
            break
        path = handed_on[path[:step]] + path[step:]
    return max((path[:end] for end in range(len(path) + 1) if path[:end] in files), key=len, default=())


# -- both


def circles(arrows: Arrows) -> set[frozenset[str]]:
    """Return the sets of places that reach each other."""
    ways = {start: reached(arrows, start) for start in arrows}
    return {
        frozenset(other for other in ways[start] if start in ways.get(other, ()))
        for start in arrows
        if start in ways[start]
    }


def reached(arrows: Arrows, start: str) -> set[str]:
    """Return the places that arrows lead to from a start."""
    found: set[str] = set()
    ahead = list(arrows[start])
    while ahead:
        place = ahead.pop()
        if place not in found:
            found.add(place)
            ahead += arrows.get(place, ())
    return found


def floors(arrows: Arrows) -> list[str]:
    """Return one longest chain of arrows, from its top to its ground; the arrows have no circle."""
    chains: dict[str, list[str]] = {}

    def chain(place: str) -> list[str]:
        if place not in chains:
            below = (chain(target) for target in sorted(arrows.get(place, ())))
            chains[place] = [place, *max(below, key=len, default=[])]
        return chains[place]

    return max((chain(place) for place in sorted(arrows)), key=len, default=[])
