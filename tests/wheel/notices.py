"""Write THIRD-PARTY-NOTICES.txt: the licences of the Rust crates that are linked into an extension module.

There are two: that of bitldp, and that of bitldp-prio (python/prio), each with a file of its own.

    python tests/wheel/notices.py          # after a change of Cargo.lock
    python tests/wheel/notices.py --check  # whether the file is as it would be written

It asks cargo for the crates on Linux, macOS and Windows, and copies their licences' texts from the sources
that cargo has fetched. Of a crate that offers several licences it is the MIT one, where that is among them.
What only builds others (build scripts, and macros with what they stand on), and what is for other systems, is
in no wheel, and is listed by name.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OF = {
    "bitldp": (ROOT, ("bitldp-python", "bitldp-client")),
    "bitldp-prio": (ROOT / "python" / "prio", ("bitldp-prio",)),
}
"""Folder of each extension module, its crate, and that of the library for clients beside it."""
NAME = "THIRD-PARTY-NOTICES.txt"
RULE = "=" * 80  # which no text of a licence has
PLATFORMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
# By preference: one of these is enough where a crate offers several.
TEXTS = ("LICENSE-MIT", "LICENSE-MIT0", "LICENSE_A2", "LICENSE.txt", "LICENSE")
HEADER = """Third-party notices

The extension module of {module}, and the library for clients where it has one, contain code of the crates
below, each under the licence that stands above it. Where several are offered, the text is that of one of
them. tests/wheel/notices.py writes this file.
"""
STANDARD_LIBRARY = """\
The standard library of Rust is linked, too (https://github.com/rust-lang/rust): MIT OR Apache-2.0,
Copyright (c) The Rust Project Contributors. The text of its MIT licence is that of LICENSE-MIT beside this
file, but for the name.
"""


def crates(module: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the crates that are linked into an extension module, and those that are in no wheel."""
    folder, names = OF[module]
    everywhere = _reached(_metadata(folder), names, (None, "build"), macros=True)
    linked: dict[str, dict[str, Any]] = {}
    for platform in PLATFORMS:
        linked |= _reached(_metadata(folder, "--filter-platform", platform), names, (None,), macros=False)
    rest = {each: package for each, package in everywhere.items() if each not in linked}
    first, second = (
        sorted(found.values(), key=lambda package: (package["name"], package["version"]))
        for found in (linked, rest)
    )
    return first, second


def _metadata(folder: Path, *options: str) -> Any:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", *options]
    return json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout)


def _reached(
    metadata: Any, names: tuple[str, ...], kinds: tuple[str | None, ...], macros: bool
) -> dict[str, dict[str, Any]]:
    """Return by id the crates that these depend on in one of these ways, but for those of the workspace."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [each for each, package in packages.items() if package["name"] in names]
    found: set[str] = set()
    while waiting:
        each = waiting.pop()
        macro = any("proc-macro" in target["kind"] for target in packages[each]["targets"])
        if each in found or (macro and not macros):
            continue
        found.add(each)
        for one in nodes[each]["deps"]:
            if any(kind["kind"] in kinds for kind in one["dep_kinds"]):
                waiting.append(one["pkg"])
    return {each: packages[each] for each in found - set(metadata["workspace_members"])}


def licence(package: dict[str, Any]) -> str:
    """Return the text of a crate's licence.

    Raises
    ------
    FileNotFoundError
        If its sources hold none: then there is something to ask its authors.
    """
    folder = Path(package["manifest_path"]).parent
    for name in TEXTS:
        if (folder / name).exists():
            text = (folder / name).read_text(encoding="utf-8")
            others = folder / "LICENSE-THIRD-PARTY"  # of parts that the crate took over
            text += "\n" + others.read_text(encoding="utf-8") if others.exists() else ""
            return "\n".join(line.rstrip() for line in text.strip().splitlines())
    raise FileNotFoundError(f"{package['name']} {package['version']}: no text of a licence in its sources")


def notices(module: str) -> str:
    """Return the text of the file."""
    linked, rest = crates(module)
    groups: dict[str, list[str]] = {}
    for package in linked:
        title = f"{package['name']} {package['version']}: {package['license'].replace('/', ' OR ')}"
        groups.setdefault(licence(package), []).append(f"{title}\n  {package['repository']}")
    parts = [HEADER.format(module=module), STANDARD_LIBRARY]
    parts += [f"{RULE}\n" + "\n".join(titles) + f"\n\n{text}\n" for text, titles in groups.items()]
    names = ", ".join(f"{package['name']} {package['version']}" for package in rest)
    parts.append(f"{RULE}\nIn no wheel, since they only build it or are for other systems: {names}\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


if __name__ == "__main__":
    for module, (folder, _) in OF.items():
        made, file = notices(module), folder / NAME
        if "--check" not in sys.argv[1:]:
            file.write_text(made, encoding="utf-8")
        elif file.read_text(encoding="utf-8") != made:
            sys.exit(f"{file.relative_to(ROOT)}: write it again")
