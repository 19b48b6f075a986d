"""What is released: addresses from one variable, and a checker that sees what is wrong with a wheel."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wheel import check_wheel, stage
from tools import project

tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
lief = pytest.importorskip("lief", reason='needs pip install "bitldp[dev]"')

ROOT = Path(__file__).parents[2]
ADDRESS = "https://github.com/Someone/bitldp"
Files = dict[str, bytes]
INFO = f"bitldp-{project.version()}.dist-info"
TAG = "manylinux_2_60_x86_64"


def test_every_address_is_of_one_variable() -> None:
    told = stage.written(ROOT, ADDRESS)
    for folder in ("", "python/papers/", "python/prio/"):
        urls = tomllib.loads(told[f"{folder}pyproject.toml"])["project"]["urls"]
        assert urls["Repository"] == ADDRESS
        assert all(url.startswith((ADDRESS, project.site(ADDRESS))) for url in urls.values())
        targets = [found["target"] for found in stage.LINK.finditer(told[f"{folder}README.md"])]
        assert all(target.startswith(("https://", "#")) for target in targets), targets
    assert f'repository-code: "{ADDRESS}"' in told["CITATION.cff"]
    assert "repository.invalid" not in told["conda/recipe.yaml"]
    readme = told["README.md"]
    assert f"{ADDRESS}/raw/v{project.version()}/docs/figures/honest.svg" in readme
    assert f"{ADDRESS}/blob/v{project.version()}/docs/guides/install.md" in readme


def test_what_the_readme_leads_to_is_there() -> None:
    for folder in ("", "python/papers", "python/prio"):
        for found in stage.LINK.finditer((ROOT / folder / "README.md").read_text(encoding="utf-8")):
            target = found["target"].partition("#")[0]
            assert target.startswith("https://") or (ROOT / folder / target).exists(), found[0]


def test_before_the_first_release_each_line_says_where_it_installs_from() -> None:
    """The README, the home page and the guide name the folder of wheels; what is released does not."""
    for name in ("README.md", "docs/index.md", "docs/start.md", "docs/guides/install.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "--find-links dist" in text, name
    assert "--find-links" not in stage.written(ROOT, ADDRESS)["README.md"]


@pytest.mark.parametrize("address", ["http://github.com/a/b", "https://github.com/a", "github.com/a/b", "a"])
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"^repository: must be https://host/owner/name"):
        project.checked(address)


@pytest.mark.slow
def test_there_is_no_release_without_an_address_or_with_another_tag(tmp_path: Path) -> None:
    """The workflow begins with this command, and all its jobs need that one."""
    script = str(ROOT / "tests" / "wheel" / "stage.py")
    if not project.repository():
        done = subprocess.run(
            [sys.executable, script, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr.strip()) == (1, stage.NOWHERE)
    command = [sys.executable, script, str(tmp_path), "--repository", ADDRESS, "--tag", "v99"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("v99: is not v")
    assert not list(tmp_path.iterdir())
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = re.findall(r"^  ([\w-]+):\n((?:    .*\n|\n)+)", workflow.partition("jobs:\n")[2], re.MULTILINE)
    assert len(jobs) == 9
    for name, text in jobs:
        assert ("python tests/wheel/stage.py staged" in text) if name == "stage" else ("needs:" in text), name


def test_each_action_is_named_by_a_commit() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for line in re.findall(r"uses: (.*)", path.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line), line


def test_the_record_of_a_release_has_no_failure() -> None:
    kept = json.loads((ROOT / "benches" / "records" / "release.json").read_text(encoding="utf-8"))["rows"]
    for name, row in kept.items():
        words = [row[column][0] for column in ("built", "checked", "run") if column in row]
        assert set(words) <= {"yes", "left out"}, name


def written(
    folder: Path, files: Files, name: str = f"bitldp-{project.version()}-cp310-abi3-{TAG}.whl"
) -> Path:
    """Write a wheel with its record."""
    rows = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}\n")
    files = {**files, f"{INFO}/RECORD": "".join([*rows, f"{INFO}/RECORD,,\n"]).encode()}
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return folder / name


@pytest.fixture(scope="module")
def files() -> Files:
    """Return what is in a good wheel, with a module of the standard library for its extension module."""
    spec = importlib.util.find_spec("_json")
    if sys.platform != "linux" or spec is None or not (spec.origin or "").endswith(".so"):
        pytest.skip("needs an extension module of Linux in the standard library")
    module = Path(spec.origin or "").read_bytes().replace(b"PyInit__json", b"PyInit__core")
    source = ROOT / "python"
    found = {
        path.relative_to(source).as_posix(): path.read_bytes()
        for path in (source / "bitldp").rglob("*")
        if path.is_file() and path.suffix not in {".so", ".pyd", ".pyc", ".wasm"}
    }
    notices = (ROOT / "THIRD-PARTY-NOTICES.txt").read_text(encoding="utf-8")
    listed = re.findall(r"^([\w-]+) (\d[\w.+-]*): ", notices, re.MULTILINE)
    bill = {"bomFormat": "CycloneDX", "components": [{"name": each, "version": one} for each, one in listed]}
    readme = stage.written(ROOT, ADDRESS)["README.md"]
    metadata = (
        f"Metadata-Version: 2.4\nName: bitldp\nVersion: {project.version()}\nRequires-Dist: numpy>=1.26\n"
        f"License-Expression: MIT OR Apache-2.0\nRequires-Python: >=3.10\n"
        f"Project-URL: Repository, {ADDRESS}\n"
        f"Description-Content-Type: text/markdown; charset=UTF-8; variant=GFM\n\n{readme}"
    )
    return {
        **found,
        "bitldp/_core.abi3.so": module,
        "bitldp/client/web/bitldp.wasm": b"\0asm",
        **{f"{INFO}/licenses/{name}": (ROOT / name).read_bytes() for name in check_wheel.LICENCES},
        f"{INFO}/sboms/bitldp-python.cyclonedx.json": json.dumps(bill).encode(),
        f"{INFO}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp310-abi3-{TAG}\n".encode(),
        f"{INFO}/METADATA": metadata.encode(),
    }


def ordinary(faults: list[str]) -> list[str]:
    """Return the faults but for that of the stand-in: some Pythons are built with tables for a debugger."""
    return [each for each in faults if not each.endswith("tables for a debugger")]


def test_a_good_wheel_has_no_fault(files: Files, tmp_path: Path) -> None:
    assert ordinary(list(check_wheel.faults(written(tmp_path, files), ADDRESS))) == []


def changed(name: str, old: bytes, new: bytes) -> Callable[[Files], Files]:
    """Return a change of one file."""

    def change(files: Files) -> Files:
        path = next(each for each in files if each.endswith(name))
        assert old in files[path]
        return {**files, path: files[path].replace(old, new)}

    return change


def without(name: str) -> Callable[[Files], Files]:
    return lambda files: {path: data for path, data in files.items() if not path.endswith(name)}


def beside(name: str, data: bytes = b"text") -> Callable[[Files], Files]:
    return lambda files: {**files, name: data}


PLANTED: dict[str, tuple[Callable[[Files], Files], str]] = {
    "no licence": (without("LICENSE-MIT"), r"has no licenses/LICENSE-MIT"),
    "old notices": (changed("NOTICES.txt", b"libm", b"libn"), r"NOTICES.txt is not that of the repository"),
    "no bill": (without(".cyclonedx.json"), r"has 0 bills of materials"),
    "unnamed crate": (
        changed(".cyclonedx.json", b'"name": "libm"', b'"name": "other"'),
        r"lists other .* say nothing",
    ),
    "no types": (without("py.typed"), r"bitldp/py.typed: is left out"),
    "no module for pages": (without(".wasm"), r"bitldp/client/web/bitldp.wasm: is left out"),
    "a room left out": (without("bitldp/privacy.py"), r"bitldp/privacy.py: is left out"),
    "a compiled file": (beside("bitldp/__pycache__/privacy.cpython-311.pyc"), r"is no part of the package"),
    "tests": (beside("tests/test_privacy.py"), r"tests/test_privacy.py: is no part of the package"),
    "no module": (without("_core.abi3.so"), r"has 0 extension modules"),
    "two modules": (beside("bitldp/_core.pyd", b"MZ"), r"has 2 extension modules"),
    "another tag inside": (changed("WHEEL", b"abi3-manylinux", b"cp310-manylinux"), r"WHEEL: has the tags"),
    "pure": (changed("WHEEL", b"false", b"true"), r"same on every platform"),
    "another version": (changed("METADATA", b"\nVersion: ", b"\nVersion: 9"), r"METADATA: Version is '9"),
    "a dependency": (
        changed("METADATA", b"numpy>", b"pandas\nRequires-Dist: numpy>"),
        r"it must need numpy alone",
    ),
    "a relative link": (changed("METADATA", f"({ADDRESS}/blob/".encode(), b"(docs/"), r"leads to docs/v"),
    "a relative image": (changed("METADATA", f"({ADDRESS}/raw/".encode(), b"(docs/"), r"leads to docs/v"),
    "a relative tag": (changed("METADATA", b"\n\n# bitldp", b'\n\n<img src="a.svg">'), r"leads to a.svg"),
    "no address": (changed("METADATA", b"Project-URL", b"Project-X"), r"no Project-URL says"),
    "not published": (
        changed("METADATA", b"# bitldp", b"# on no index yet"),
        r"says that the package is not",
    ),
    "no entry point": (changed(".so", b"PyInit__core", b"PyInit__cord"), r"has no entry point"),
    "no library": (changed(".so", b"\x7fELF", b"\x7fELV"), r"is no library that a system loads"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_bad_wheel_is_seen(fault: str, files: Files, tmp_path: Path) -> None:
    change, message = PLANTED[fault]
    told = ordinary(list(check_wheel.faults(written(tmp_path, change(files)), ADDRESS)))
    assert any(re.search(message, each) for each in told), told


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("manylinux2014_x86_64", r"needs glibc \(2, \d+\), newer than manylinux2014_x86_64 promises"),
        ("manylinux_2_60_aarch64", r"is of the machine X86_64, not of manylinux_2_60_aarch64"),
        ("musllinux_1_2_x86_64", r"needs libc.so.6, which musllinux does not promise"),
        ("win_amd64", r"is of another system than win_amd64"),
        ("macosx_11_0_arm64", r"is of another system than macosx_11_0_arm64"),
    ],
)
def test_a_module_of_another_platform_is_seen(tag: str, message: str, files: Files, tmp_path: Path) -> None:
    spec = importlib.util.find_spec("math")  # it has newer symbols of the C library than `_json`
    if spec is None or not (spec.origin or "").endswith("x86_64-linux-gnu.so"):
        pytest.skip("needs x86-64")
    module = {
        "bitldp/_core.abi3.so": Path(spec.origin or "").read_bytes().replace(b"PyInit_math", b"PyInit__cor")
    }
    other = changed("WHEEL", TAG.encode(), tag.encode())({**files, **module})
    wheel = written(tmp_path, other, f"bitldp-{project.version()}-cp310-abi3-{tag}.whl")
    assert any(re.search(message, each) for each in check_wheel.faults(wheel, ADDRESS))


def test_a_changed_file_and_a_wheel_of_another_abi_and_size_are_seen(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = written(tmp_path, files, f"bitldp-{project.version()}-cp311-cp311-{TAG}.whl")
    with zipfile.ZipFile(wheel, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("bitldp/privacy.py", b"changed")
    monkeypatch.setattr(check_wheel, "MOST_BYTES", 10_000)
    told = ordinary(list(check_wheel.faults(wheel, ADDRESS)))
    for message in ("bytes, more than", "must be of cp310-abi3", "privacy.py has another digest"):
        assert any(message in each for each in told), told


def sdist(folder: Path, changes: dict[str, bytes | None]) -> Path:
    """Write an sdist of the sources, with files changed, added or left out."""
    top = f"bitldp-{project.version()}"
    built = re.compile(r"\.(so|pyd|pyc)$")
    names = [*check_wheel.BESIDE, *check_wheel.LICENCES]
    for below in ("python/bitldp", "tests/law"):
        names += [
            path.relative_to(ROOT).as_posix() for path in (ROOT / below).rglob("*.py*") if path.is_file()
        ]
    files: dict[str, bytes | None] = {
        name: (ROOT / name).read_bytes() for name in names if not built.search(name)
    }
    metadata = (
        f"Metadata-Version: 2.4\nName: bitldp\nVersion: {project.version()}\nRequires-Dist: numpy>=1.26\n"
        f"License-Expression: MIT OR Apache-2.0\nRequires-Python: >=3.10\n"
        f"Project-URL: Repository, {ADDRESS}\nDescription-Content-Type: text/markdown\n\n"
        f"{stage.written(ROOT, ADDRESS)['README.md']}"
    )
    files |= {f"python/{check_wheel.PAGE}": b"\0asm", "PKG-INFO": metadata.encode(), **changes}
    with tarfile.open(folder / f"{top}.tar.gz", "w") as archive:
        for name, data in files.items():
            if data is not None:
                member = tarfile.TarInfo(f"{top}/{name}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return folder / f"{top}.tar.gz"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"LICENSE-MIT": None}, r"LICENSE-MIT: is left out"),
        ({"Cargo.lock": None}, r"Cargo.lock: is left out"),
        ({"tests/law/test_privacy.py": None}, r"tests/law/test_privacy.py: is left out"),
        ({f"python/{check_wheel.PAGE}": None}, r"bitldp.wasm: is left out"),
        ({"notes.txt": b"text"}, r"notes.txt: is no file of the sources"),
        ({"python/bitldp/_core.abi3.so": b"\x7fELF"}, r"_core.abi3.so: is no file of the sources"),
        ({"PKG-INFO": b"Name: bitldp\nVersion: 9\n\n[a](docs/a.md)"}, r"leads to docs/a.md"),
    ],
)
def test_what_is_wrong_with_an_sdist_is_seen(
    changes: dict[str, bytes | None], message: str | None, tmp_path: Path
) -> None:
    faults = list(check_wheel.sdist_faults(sdist(tmp_path, changes), ADDRESS))
    assert any(re.search(message, each) for each in faults) if message else faults == [], faults


def test_a_wheel_of_another_project_is_refused(files: Files, tmp_path: Path) -> None:
    wheel = written(tmp_path, files, f"other-{project.version()}-cp310-abi3-{TAG}.whl")
    assert list(check_wheel.faults(wheel)) == ["its file name is not that of a wheel of this project"]
