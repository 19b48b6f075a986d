"""Crates that are linked, into the extension module or for clients: licences, texts in the wheel, sources."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[2]
PRIO = ROOT / "python" / "prio"
CRATES = ("rust/client/Cargo.toml", "rust/core/Cargo.toml", "rust/python/Cargo.toml")
MANIFESTS = {ROOT: CRATES, PRIO: ("Cargo.toml",)}
# Of one crate of the second module, whose text asks to say where its source is: the notices do.
BESIDE = {ROOT: set[str](), PRIO: {"MPL-2.0 AND Apache-2.0 AND MIT"}}
modules = pytest.mark.parametrize("folder", [ROOT, PRIO], ids=["bitldp", "bitldp-prio"])


def notices(folder: Path) -> str:
    return (folder / "THIRD-PARTY-NOTICES.txt").read_text(encoding="utf-8")


def linked(folder: Path) -> list[tuple[str, str, str]]:
    _, *sections = notices(folder).split("=" * 80 + "\n")
    titles = "\n".join(each.partition("\n\n")[0] for each in sections)
    return re.findall(r"^([\w-]+) (\d[\w.+-]*): (.+)$", titles, re.M)


def others(folder: Path) -> list[tuple[str, str]]:
    return re.findall(r"([\w-]+) (\d[\w.+-]*)", notices(folder).splitlines()[-1].partition(": ")[2])


def read(name: str, folder: Path = ROOT) -> dict[str, Any]:
    return tomllib.loads((folder / name).read_text(encoding="utf-8"))


def locked(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the crates of Cargo.lock that the extension module may stand on: not those of tests alone."""
    packages = {(each["name"], each["version"]): each for each in read("Cargo.lock", folder)["package"]}
    by_name: dict[str, list[tuple[str, str]]] = {}
    for each in packages:
        by_name.setdefault(each[0], []).append(each)
    waiting = []
    for manifest in MANIFESTS[folder]:
        asked = read(manifest, folder)
        tables = [asked, *asked.get("target", {}).values()]
        for name in {name for table in tables for name in table.get("dependencies", {})}:
            waiting += by_name[name]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    while waiting:
        each = waiting.pop()
        if each in found or "source" not in packages[each]:
            continue
        found[each] = packages[each]
        for dependency in packages[each].get("dependencies", []):
            name, _, version = dependency.partition(" ")
            waiting += [(name, version.split()[0])] if version else by_name[name]
    return found


@modules
def test_every_crate_has_its_notice(folder: Path) -> None:
    """After a change of Cargo.lock: python tests/wheel/notices.py."""
    named = {(name, version) for name, version, _ in linked(folder)} | set(others(folder))
    assert named == locked(folder).keys()
    some = (
        {"libm", "zmij", "numpy", "pyo3", "rayon", "blake3"} if folder == ROOT else {"pyo3", "prio", "rand"}
    )
    assert some <= {name for name, _, _ in linked(folder)}


@modules
def test_every_notice_has_a_text(folder: Path) -> None:
    _, *sections = notices(folder).split("=" * 80 + "\n")
    for section in sections[:-1]:
        title, _, text = section.partition("\n\n")
        assert re.search(
            r"Permission is hereby|Redistribution and use|Apache License|Mozilla Public License", text
        ), title
    holders = {"libm": "musl", "numpy": "Redistribution and use", "zmij": "Permission"}
    for name, holder in (holders if folder == ROOT else {"prio": "Source Code Form"}).items():
        assert holder in next(each for each in sections if re.search(rf"^{name} ", each, re.M))


@modules
def test_every_licence_is_allowed(folder: Path) -> None:
    allowed = set(read("deny.toml")["licenses"]["allow"])
    for name, version, expression in linked(folder):
        if expression in BESIDE[folder]:
            continue
        offers = [part.strip("() ").split(" WITH ")[0] for part in expression.split(" OR ")]
        assert " AND " not in expression, f"{name} {version}: {expression}"
        assert allowed.intersection(offers), f"{name} {version}: {expression}"


@modules
def test_every_crate_is_of_the_registry_and_has_a_digest(folder: Path) -> None:
    (registry,) = read("deny.toml")["sources"]["allow-registry"]
    for each in read("Cargo.lock", folder)["package"]:
        if each["name"].startswith("bitldp-"):
            assert "source" not in each
            continue
        assert each["source"] == f"registry+{registry}", each["name"]
        assert re.fullmatch(r"[0-9a-f]{64}", each["checksum"]), each["name"]


@modules
def test_the_notices_are_in_the_wheel(folder: Path) -> None:
    files = read("pyproject.toml", folder)["project"]["license-files"]
    assert files == ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt"]
    assert all((folder / name).is_file() for name in files)
