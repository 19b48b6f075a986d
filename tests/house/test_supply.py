"""Crates that are linked into the extension module: their licences, the texts in the wheel, their sources."""

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
NOTICES = (ROOT / "THIRD-PARTY-NOTICES.txt").read_text(encoding="utf-8")
LINKED = re.findall(r"^([\w-]+) (\d[\w.+-]*): (.+)$", NOTICES, re.M)
OTHERS = re.findall(r"([\w-]+) (\d[\w.+-]*)", NOTICES.splitlines()[-1].partition(": ")[2])


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def locked() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the crates of Cargo.lock that the extension module may stand on: not those of tests alone."""
    packages = {(each["name"], each["version"]): each for each in read("Cargo.lock")["package"]}
    by_name: dict[str, list[tuple[str, str]]] = {}
    for each in packages:
        by_name.setdefault(each[0], []).append(each)
    waiting = []
    for manifest in ("rust/core/Cargo.toml", "rust/python/Cargo.toml"):
        asked = read(manifest)
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


def test_every_crate_has_its_notice() -> None:
    """After a change of Cargo.lock: python tests/wheel/notices.py."""
    named = {(name, version) for name, version, _ in LINKED} | set(OTHERS)
    assert named == locked().keys()
    assert {"libm", "zmij", "numpy", "pyo3", "rayon", "blake3"} <= {name for name, _, _ in LINKED}


def test_every_notice_has_a_text() -> None:
    _, *sections = NOTICES.split("=" * 80 + "\n")
    for section in sections[:-1]:
        title, _, text = section.partition("\n\n")
        assert re.search(r"Permission is hereby|Redistribution and use|Apache License", text), title
    for name, holder in (
        ("libm", "musl"),
        ("numpy", "Redistribution and use"),
        ("zmij", "Permission"),
    ):
        assert holder in next(each for each in sections if re.search(rf"^{name} ", each, re.M))


def test_every_licence_is_allowed() -> None:
    allowed = set(read("deny.toml")["licenses"]["allow"])
    for name, version, expression in LINKED:
        offers = [part.strip("() ").split(" WITH ")[0] for part in expression.split(" OR ")]
        assert " AND " not in expression, f"{name} {version}: {expression}"
        assert allowed.intersection(offers), f"{name} {version}: {expression}"


def test_every_crate_is_of_the_registry_and_has_a_digest() -> None:
    (registry,) = read("deny.toml")["sources"]["allow-registry"]
    for each in read("Cargo.lock")["package"]:
        if each["name"].startswith("bitldp-"):
            assert "source" not in each
            continue
        assert each["source"] == f"registry+{registry}", each["name"]
        assert re.fullmatch(r"[0-9a-f]{64}", each["checksum"]), each["name"]


def test_the_notices_are_in_the_wheel() -> None:
    files = read("pyproject.toml")["project"]["license-files"]
    assert files == ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt"]
    assert all((ROOT / name).is_file() for name in files)
