"""Check wheels and sdists before they are published: ``python tests/wheel/check_wheel.py FILE...``.

It reads each wheel's name, record, content, metadata, licences, bill of materials, size and extension module,
and of an sdist its content and metadata. It prints each fault, and returns 1 where there is one. lief reads
extension modules of any system on any system.
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
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_string
from email.message import Message
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

sys.path.append(str(Path(__file__).parents[2] / "tools"))

from project import repository

ROOT = Path(__file__).parents[2]
MOST_BYTES = 4_000_000
"""What a wheel may weigh: a phone's picture."""
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt")
PAGE = "bitldp/client/web/bitldp.wasm"
"""The module of a page, which `make wasm` builds."""
BESIDE = ("CHANGELOG.md", "CITATION.cff", "Cargo.lock", "README.md", "SECURITY.md", "pyproject.toml")
"""What an sdist has beside its sources and licences."""


@dataclass(frozen=True)
class Distribution:
    """What the wheel of a distribution has.

    Parameters
    ----------
    folder : str
        Where its pyproject.toml and its licences are.
    source : str
        Where its package is.
    module : str
        Its extension module; empty where it has none.
    needs : tuple of str
        Distributions that it needs without an extra.
    licence : str
        Its licences, as metadata say them.
    """

    folder: str
    source: str
    module: str
    needs: tuple[str, ...]
    licence: str = "MIT OR Apache-2.0"

    @property
    def modules(self) -> tuple[str, ...]:
        """The names that its extension module has on each system."""
        return (f"{self.module}.abi3.so", f"{self.module}.pyd") if self.module else ()

    @property
    def abi(self) -> str:
        """The tags of its wheels, without the platform."""
        return "cp310-abi3" if self.module else "py3-none"

    @property
    def licences(self) -> tuple[str, ...]:
        """The files of licences that it has."""
        return LICENCES if self.module else LICENCES[:2]


DISTRIBUTIONS = {
    "bitldp": Distribution("", "python", "bitldp/_core", ("numpy",)),
    "bitldp_papers": Distribution(
        *("python/papers", "python/papers", ""),
        ("bitldp", "flwr", "jax", "jinja2", "numpy", "scikit-learn"),
    ),
    "bitldp_prio": Distribution(
        *("python/prio", "python/prio", "bitldp_prio/_prio3"),
        ("bitldp", "numpy"),
        "(MIT OR Apache-2.0) AND MPL-2.0",
    ),
}

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
    if named is None or named["name"] not in DISTRIBUTIONS:
        yield "its file name is not that of a wheel of this project"
        return
    of = DISTRIBUTIONS[named["name"]]
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
    yield from _tags(files, info, of, named["python"], named["platform"])
    yield from _content(files, info, named["name"], of)
    metadata = message_from_string(files[f"{info}/METADATA"].decode())
    yield from _metadata(metadata, named["name"], named["version"], of)
    yield from _links(str(metadata.get_payload()), metadata, address)
    yield from _licences(files, info, of)
    if of.module:
        yield from _materials(files, info)
    for name in of.modules:
        if name in files:
            yield from _module(files[name], name, named["platform"])


def sdist_faults(sdist: Path, address: str = "") -> Iterator[str]:
    """Yield what is wrong with an sdist of bitldp, in one line each; an address stands in its metadata."""
    of = DISTRIBUTIONS["bitldp"]
    top = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as archive:
        members = [each for each in archive.getmembers() if not each.isdir()]
        names = {each.name.removeprefix(f"{top}/") for each in members}
        odd = [each.name for each in members if not each.isfile() or not each.name.startswith(f"{top}/")]
        described = archive.extractfile(f"{top}/PKG-INFO") if "PKG-INFO" in names else None
        text = described.read().decode() if described else ""
    for name in odd:
        yield f"{name}: is no file below {top}"
    source = {path.relative_to(ROOT).as_posix() for path in (ROOT / "python" / "bitldp").rglob("*.py*")}
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "law").rglob("*.py")}
    wanted = {*BESIDE, *of.licences, *source, *tests, f"python/{PAGE}"}
    wanted = {name for name in wanted if not re.search(r"\.(so|pyd|pyc)$", name)}
    for name in sorted(wanted - names):
        yield f"{name}: is left out"
    for name in sorted(names - wanted - {"PKG-INFO"}):
        if not (ROOT / name).is_file() or re.search(r"\.(so|pyd|pyc)$", name):
            yield f"{name}: is no file of the sources"
    metadata = message_from_string(text)
    yield from _metadata(metadata, "bitldp", top.partition("-")[2], of)
    yield from _links(str(metadata.get_payload()), metadata, address)


def _record(files: dict[str, bytes], info: str) -> Iterator[str]:
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(files[f"{info}/RECORD"].decode())) if row}
    for name in sorted(rows.keys() ^ files.keys()):
        yield f"RECORD: {name} is {'listed and not there' if name in rows else 'there and not listed'}"
    for name in rows.keys() & files.keys() - {f"{info}/RECORD"}:
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        if rows[name] != [f"sha256={digest}", str(len(files[name]))]:
            yield f"RECORD: {name} has another digest or size"


def _tags(files: dict[str, bytes], info: str, of: Distribution, python: str, platform: str) -> Iterator[str]:
    if python != of.abi:
        yield f"its name says {python}; it must be of {of.abi}"
    wheel = message_from_string(files[f"{info}/WHEEL"].decode())
    told = set(wheel.get_all("Tag", []))
    expected = {
        "-".join(parts) for parts in product(*(part.split(".") for part in (*python.split("-"), platform)))
    }
    if told != expected:
        yield f"WHEEL: has the tags {sorted(told)}; its name says {sorted(expected)}"
    if wheel["Root-Is-Purelib"] != ("false" if of.module else "true"):
        yield f"WHEEL: says that it is {'the same' if of.module else 'not the same'} on every platform"


def _content(files: dict[str, bytes], info: str, package: str, of: Distribution) -> Iterator[str]:
    source = ROOT / of.source
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / package).rglob("*")
        if path.suffix in {".py", ".pyi", ".typed", ".html", ".css", ".js", ".mjs"} or path.name == "py.typed"
    }
    if package == "bitldp":
        wanted.add(PAGE)
    inside = {name for name in files if not name.startswith(f"{info}/")}
    for name in sorted(wanted - inside):
        yield f"{name}: is left out"
    for name in sorted(inside - wanted):
        known = (source / name).is_file() and not re.search(r"\.(so|pyd|pyc)$", name)
        if name not in of.modules and not known:
            yield f"{name}: is no part of the package"
    count = len(inside.intersection(of.modules))
    if of.module and count != 1:
        yield f"has {count} extension modules; it must have one of {of.modules}"


def _metadata(metadata: Message, name: str, version: str, of: Distribution) -> Iterator[str]:
    expected = {
        "Name": name.replace("_", "-"),
        "Version": version,
        "License-Expression": of.licence,
        "Requires-Python": ">=3.10",
    }
    for field, value in expected.items():
        if metadata[field] != value:
            yield f"METADATA: {field} is {metadata[field]!r}; it must be {value!r}"
    if not str(metadata["Description-Content-Type"]).startswith("text/markdown"):
        yield "METADATA: the description is not in Markdown"
    core = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    if tuple(sorted(re.split(r"[^\w-]", each)[0] for each in core)) != of.needs:
        yield f"METADATA: needs {core}; it must need {', '.join(of.needs)} alone"


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


def _licences(files: dict[str, bytes], info: str, of: Distribution) -> Iterator[str]:
    for name in of.licences:
        own = ROOT / of.folder / name
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
    entry = f"PyInit_{name.rpartition('/')[2].partition('.')[0]}"
    if entry not in shown:
        yield f"{name}: has no entry point for Python"
    elif len(shown) > 1:
        yield f"{name}: shows {len(shown)} names; it must show its entry point alone"


def main() -> int:
    """Print the faults of each wheel; return 1 where there is one."""
    parser = argparse.ArgumentParser(description="Check wheels and sdists before they are published.")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--repository", default=repository(), help="stands in for that of pyproject.toml")
    asked = parser.parse_args()
    lines = [
        f"{file.name}: {fault}"
        for file in asked.files
        for fault in (sdist_faults if file.name.endswith(".tar.gz") else faults)(file, asked.repository)
    ]
    print("\n".join(lines) or f"{len(asked.files)} without a fault")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
