"""Check wheels before they are published: ``python tests/wheel/check_wheel.py WHEEL...``.

It reads each wheel's name, record, content, metadata, licences, bill of materials, size and extension module,
prints each fault, and returns 1 where there is one. lief reads extension modules of any system on any system.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from email import message_from_string
from email.message import Message
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent))

from stage import repository

ROOT = Path(__file__).parents[2]
MOST_BYTES = 4_000_000
"""What a wheel may weigh: a phone's picture."""
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt")
MODULES = ("bitldp/_core.abi3.so", "bitldp/_core.pyd")
ABI = "cp310-abi3"

#: Libraries that a system has, by the beginning of a platform tag.
LIBRARIES = {
    "manylinux": r"lib(c|m|pthread|dl|rt|gcc_s)\.so\.\d+|ld-linux-[\w-]+\.so\.\d",
    "musllinux": r"lib(c|gcc_s)\.so(\.1)?|libc\.musl-[\w]+\.so\.1",
    "win": r"(?i:python3|kernel32|ntdll|ws2_32|bcryptprimitives|advapi32|userenv|msvcrt|vcruntime140|"
    r"api-ms-win-[\w-]+)\.dll",
    "macosx": r"/usr/lib/lib(System\.B|iconv\.2|resolv\.9)\.dylib|@rpath/[\w.-]+",
}


def faults(wheel: Path, address: str = "") -> Iterator[str]:
    """Yield what is wrong with a wheel, in one line each; an address that is given stands in its metadata."""
    named = re.fullmatch(
        r"(?P<name>\w+)-(?P<version>[\w.]+)-(?P<python>[\w.]+-[\w.]+)-(?P<platform>[\w.]+)\.whl", wheel.name
    )
    if named is None:
        yield "its file name is not that of a wheel"
        return
    if wheel.stat().st_size > MOST_BYTES:
        yield f"{wheel.stat().st_size:,} bytes, more than the {MOST_BYTES:,} that it may have"
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    info = f"{named['name']}-{named['version']}.dist-info"
    missing = [end for end in ("METADATA", "WHEEL", "RECORD") if f"{info}/{end}" not in files]
    if missing:
        yield f"{info}: has no {', '.join(missing)}"
        return
    yield from _record(files, info)
    yield from _tags(files, info, named["python"], named["platform"])
    yield from _content(files, info)
    metadata = message_from_string(files[f"{info}/METADATA"].decode())
    yield from _metadata(metadata, named["name"], named["version"])
    yield from _links(str(metadata.get_payload()), metadata, address)
    yield from _licences(files, info)
    yield from _materials(files, info)
    for name in MODULES:
        if name in files:
            yield from _module(files[name], name, named["platform"])


def _record(files: dict[str, bytes], info: str) -> Iterator[str]:
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(files[f"{info}/RECORD"].decode())) if row}
    for name in sorted(rows.keys() ^ files.keys()):
        yield f"RECORD: {name} is {'listed and not there' if name in rows else 'there and not listed'}"
    for name in rows.keys() & files.keys() - {f"{info}/RECORD"}:
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        if rows[name] != [f"sha256={digest}", str(len(files[name]))]:
            yield f"RECORD: {name} has another digest or size"


def _tags(files: dict[str, bytes], info: str, python: str, platform: str) -> Iterator[str]:
    if python != ABI:
        yield f"its name says {python}; it must be of {ABI}"
    wheel = message_from_string(files[f"{info}/WHEEL"].decode())
    told = set(wheel.get_all("Tag", []))
    expected = {
        "-".join(parts) for parts in product(*(part.split(".") for part in (*python.split("-"), platform)))
    }
    if told != expected:
        yield f"WHEEL: has the tags {sorted(told)}; its name says {sorted(expected)}"
    if wheel["Root-Is-Purelib"] != "false":
        yield "WHEEL: says that it is the same on every platform"


def _content(files: dict[str, bytes], info: str) -> Iterator[str]:
    source = ROOT / "python"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "bitldp").rglob("*")
        if path.suffix in {".py", ".pyi", ".typed", ".html", ".css", ".js", ".mjs"} or path.name == "py.typed"
    }
    wanted.add("bitldp/client/web/bitldp.wasm")  # of `make wasm`; pages need it
    inside = {name for name in files if not name.startswith(f"{info}/")}
    for name in sorted(wanted - inside):
        yield f"{name}: is left out"
    for name in sorted(inside - wanted):
        known = (source / name).is_file() and not re.search(r"\.(so|pyd|pyc)$", name)
        if name not in MODULES and not known:
            yield f"{name}: is no part of the package"
    if len(inside.intersection(MODULES)) != 1:
        yield f"has {len(inside.intersection(MODULES))} extension modules; it must have one of {MODULES}"


def _metadata(metadata: Message, name: str, version: str) -> Iterator[str]:
    expected = {
        "Name": name,
        "Version": version,
        "License-Expression": "MIT OR Apache-2.0",
        "Requires-Python": ">=3.10",
        "Description-Content-Type": "text/markdown; charset=UTF-8; variant=GFM",
    }
    for field, value in expected.items():
        if metadata[field] != value:
            yield f"METADATA: {field} is {metadata[field]!r}; it must be {value!r}"
    core = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    if [re.split(r"[^\w-]", each)[0] for each in core] != ["numpy"]:
        yield f"METADATA: needs {core}; it must need NumPy alone"


def _links(text: str, metadata: Message, address: str) -> Iterator[str]:
    """Yield links of the description that a package index cannot follow, and addresses of elsewhere."""
    targets = re.findall(r"\]\(([^)\s]+)", text) + re.findall(r"(?:src|href)=[\"']([^\"']+)", text)
    targets += re.findall(r"^\[[^]]+\]:\s*(\S+)", text, re.MULTILINE)
    for target in targets:
        if not target.startswith("#") and urlsplit(target).scheme != "https":
            yield f"METADATA: the description leads to {target}, which no package index has"
    if address:
        told = [each.partition(", ") for each in metadata.get_all("Project-URL", [])]
        if not any(label == "Repository" and url == address for label, _, url in told):
            yield f"METADATA: no Project-URL says that the repository is {address}"
        if "on no index yet" in text:
            yield "METADATA: the description says that the package is not published"


def _licences(files: dict[str, bytes], info: str) -> Iterator[str]:
    for name in LICENCES:
        own = ROOT / name
        if f"{info}/licenses/{name}" not in files:
            yield f"{info}: has no licenses/{name}"
        elif files[f"{info}/licenses/{name}"] != own.read_bytes():
            yield f"{info}: licenses/{name} is not that of the repository"


def _materials(files: dict[str, bytes], info: str) -> Iterator[str]:
    """Yield where the bill of materials is missing, or lists a crate that the notices do not."""
    bills = [name for name in files if name.startswith(f"{info}/sboms/") and name.endswith(".cyclonedx.json")]
    if len(bills) != 1:
        yield f"{info}: has {len(bills)} bills of materials in CycloneDX; it must have one"
        return
    bill = json.loads(files[bills[0]])
    if bill.get("bomFormat") != "CycloneDX":
        yield f"{bills[0]}: is not in CycloneDX"
    notices = files.get(f"{info}/licenses/THIRD-PARTY-NOTICES.txt", b"").decode()
    told = set(re.findall(r"([\w-]+) (\d[\w.+-]*)", notices))
    listed = {(each["name"], each["version"]) for each in bill.get("components", [])}
    unnamed = [
        f"{name} {version}" for name, version in sorted(listed - told) if not name.startswith("bitldp-")
    ]
    if unnamed:
        yield f"{bills[0]}: lists {', '.join(unnamed)}, of which the notices say nothing"
    if len(listed) < 10:
        yield f"{bills[0]}: lists {len(listed)} components; it misses some"


def _module(data: bytes, name: str, platform: str) -> Iterator[str]:
    """Yield what an extension module needs beside its system, or shows beside its entry point."""
    import lief

    binary = lief.parse(io.BytesIO(data))
    if binary is None:
        yield f"{name}: is no library that a system loads"
        return
    system = next((each for each in LIBRARIES if platform.startswith(each)), None)
    if system is None:
        yield f"{platform}: is no platform that wheels are made for"
        return
    kind = {
        lief.ELF.Binary: ("manylinux", "musllinux"),
        lief.PE.Binary: ("win",),
        lief.MachO.Binary: ("macosx",),
    }
    if system not in kind[type(binary)]:
        yield f"{name}: is of another system than {platform}"
        return
    machine = str(
        getattr(
            binary.header,
            "machine_type",
            getattr(binary.header, "machine", getattr(binary.header, "cpu_type", "")),
        )
    ).rpartition(".")[2]
    wanted = {"X86_64", "AMD64"} if platform.endswith(("x86_64", "amd64")) else {"AARCH64", "ARM64"}
    if machine not in wanted:
        yield f"{name}: is of the machine {machine}, not of {platform}"
    for library in binary.libraries:
        said = library if isinstance(library, str) else library.name
        if not re.fullmatch(LIBRARIES[system], said):
            yield f"{name}: needs {said}, which {system} does not promise"
    yield from _shown(binary, name, platform)


def _shown(binary: object, name: str, platform: str) -> Iterator[str]:
    import lief

    if isinstance(binary, lief.ELF.Binary):
        shown = {str(each.name) for each in binary.exported_symbols}
        if any(section.name.startswith(".debug") for section in binary.sections):
            yield f"{name}: has tables for a debugger"
        versions = {
            tuple(map(int, found[1].split(".")))
            for each in binary.symbols_version_requirement
            for one in each.get_auxiliary_symbols()
            if (found := re.fullmatch(r"GLIBC_(\d+\.\d+).*", str(one.name)))
        }
        told = re.search(r"manylinux_(\d+)_(\d+)", platform.replace("manylinux2014", "manylinux_2_17"))
        allowed = (int(told[1]), int(told[2])) if told else None
        newer = [each for each in versions if allowed and each > allowed]
        if newer:
            yield f"{name}: needs glibc {max(newer)}, newer than {platform} promises"
    elif isinstance(binary, lief.PE.Binary):
        shown = {str(each.name) for each in binary.get_export().entries} if binary.has_exports else set()
    else:
        shown = {str(each.name).removeprefix("_") for each in binary.exported_symbols}  # type: ignore[attr-defined]
    if "PyInit__core" not in shown:
        yield f"{name}: has no entry point for Python"
    elif len(shown) > 1:
        yield f"{name}: shows {len(shown)} names; it must show its entry point alone"


def main() -> int:
    """Print the faults of each wheel; return 1 where there is one."""
    parser = argparse.ArgumentParser(description="Check wheels before they are published.")
    parser.add_argument("wheels", type=Path, nargs="+")
    parser.add_argument("--repository", default=repository(), help="stands in for that of pyproject.toml")
    asked = parser.parse_args()
    lines = [f"{wheel.name}: {fault}" for wheel in asked.wheels for fault in faults(wheel, asked.repository)]
    print("\n".join(lines) or f"{len(asked.wheels)} without a fault")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
