"""Pythons of systems that this machine is not, to install and run a wheel in: musl, and Windows under Wine.

Package indexes have no such Python. Two packages that freeze applications carry one: panda3d's wheels for
Windows have CPython's library and extension modules, signed by the Python Software Foundation, and
cx_Freeze's for musl have a program that is CPython. What of the standard library is Python comes from this
interpreter, of the same version. What is put together runs files, for trials alone.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
TAG = f"cp{VERSION.replace('.', '')}"
NUMPY = "numpy==1.26.4"  # newer ones need a newer musl, and more of C99 than Wine 8 has
LEFT_OUT = (
    "site-packages",
    "lib-dynload",
    "test",
    "idlelib",
    "tkinter",
    "ensurepip",
    "lib2to3",
    "__pycache__",
)
Run = Callable[..., str]


class NoPythonError(Exception):
    """A Python that cannot be put together here, with the reason."""


@dataclass(frozen=True)
class Foreign:
    """A Python of another system: how it is started, and the folder from which it imports packages.

    Parameters
    ----------
    command : tuple of str
        What starts it, before the name of a file.
    variables : dict of str
        Environment variables that it needs.
    packages : Path
        The folder of its packages.
    platforms : tuple of str
        Platform tags of wheels that it loads.
    """

    command: tuple[str, ...]
    variables: dict[str, str]
    packages: Path
    platforms: tuple[str, ...]

    def install(self, run: Run, log: str, *wanted: object) -> None:
        """Put wheels into its folder of packages, as pip does for that platform."""
        kinds = [word for each in self.platforms for word in ("--platform", each)]
        run(
            *(log, sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--upgrade", "--target", self.packages, "--python-version", VERSION, "--implementation", "cp"),
            *("--only-binary", ":all:", *kinds, *wanted),
        )


def musl(folder: Path, run: Run, zig: Path) -> Foreign:
    """Put together a Python of musl.

    Parameters
    ----------
    folder : Path
        Where it is kept; it is made anew unless it is whole.
    run : callable
        Takes the name of a log, then a command.
    zig : Path
        The compiler that knows musl.

    Raises
    ------
    NoPythonError
        If this is no Debian, whose package musl has the C library.
    """
    packages = folder / "packages"
    loader, program = folder / "loader", folder / "python"
    result = Foreign(
        (str(loader), str(program)), {"BITLDP_PACKAGES": str(packages)}, packages, ("musllinux_1_1_x86_64",)
    )
    if (folder / "whole").exists():
        return result
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise NoPythonError("Debian's package musl has the C library")
    shutil.rmtree(folder, ignore_errors=True)
    library = folder / "lib"
    _standard_library(library)
    bases = _unpacked(folder, run, "cx_Freeze==6.15.16", "musllinux_1_1_x86_64") / "cx_Freeze" / "bases"
    shutil.copy2(bases / f"console-cpython-{TAG[2:]}-x86_64-linux-musl", program)
    program.chmod(0o755)
    for each in (*(bases / "lib").iterdir(), *(bases / "lib-dynload").iterdir()):
        shutil.copy2(each, library / each.name)
    run("musl", "apt-get", "download", "-qq", "musl", cwd=folder)
    run("musl", "dpkg-deb", "--extract", next(folder.glob("musl_*.deb")), folder / "musl")
    # Beside the program, so that it takes the loader's folder for its own.
    shutil.copy2(folder / "musl/lib/x86_64-linux-musl/libc.so", loader)
    sources = _zlib(folder, run)
    run(
        *("musl", zig, "cc", "-target", "x86_64-linux-musl", "-shared", "-fPIC", "-O1", "-w"),
        *("-DHAVE_UNISTD_H", "-o", library / "libz.so.1", *sources),
    )
    (library / "__startup__.py").write_text(STARTUP, encoding="utf-8")
    result.install(run, "musl", NUMPY, "pytest")
    (folder / "whole").touch()
    return result


#: What the program runs first: a file, as `python FILE` does, with packages of the folder that is named.
STARTUP = """import os, runpy, sys

def init():
    sys.path.append(os.environ["BITLDP_PACKAGES"])

def run():
    del sys.argv[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def windows(folder: Path, run: Run, python: Path) -> Foreign:
    """Put together a Python of Windows, for Wine.

    Parameters
    ----------
    folder : Path
        Where it is kept; it is made anew unless it is whole.
    run : callable
        Takes the name of a log, then a command, and returns what that printed.
    python : Path
        A Python with lief, which reads signatures.

    Raises
    ------
    NoPythonError
        If there is no Wine, or no compiler for Windows.
    """
    packages = folder / "packages"
    wine = shutil.which("wine64", path=f"{os.environ['PATH']}{os.pathsep}/usr/lib/wine")
    if wine is None:
        raise NoPythonError("it needs apt-get install wine64")
    if not shutil.which("x86_64-w64-mingw32-gcc"):
        raise NoPythonError("it needs apt-get install gcc-mingw-w64-x86-64")
    result = Foreign(
        (wine, str(folder / "python.exe")),
        {
            "WINEDEBUG": "-all",
            "WINEPREFIX": str(folder.parent / "wine"),
            "WINEPATH": _drive(folder),
            "PYTHONHOME": _drive(folder),
            "PYTHONPATH": _drive(packages),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUTF8": "1",
        },
        packages,
        ("win_amd64",),
    )
    if (folder / "whole").exists():
        return result
    shutil.rmtree(folder, ignore_errors=True)
    _standard_library(folder / "Lib")
    (folder / "DLLs").mkdir()
    for each in (_unpacked(folder, run, "panda3d==1.10.16", "win_amd64") / "deploy_libs").iterdir():
        if not each.name.startswith("api-ms-"):  # Wine has them
            shutil.copy2(each, folder / "DLLs" / each.name if each.suffix == ".pyd" else folder / each.name)
    library = folder / f"python{TAG[2:]}.dll"
    shown = run("wine", python, "-c", SIGNED, library).split()
    (folder / "python.c").write_text(PROGRAM.replace("LIBRARY", library.name), encoding="utf-8")
    compiler = "x86_64-w64-mingw32-gcc"
    run("wine", compiler, "-municode", "-O1", "-o", folder / "python.exe", folder / "python.c")
    # Names of the stable ABI, which CPython's installer has in a library of their own.
    forwarded = [f"{name}={library.stem}.{name}" for name in shown if name.startswith(("Py", "_Py"))]
    (folder / "python3.def").write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *forwarded, ""]))
    (folder / "empty.c").write_text("")
    run(
        *("wine", compiler, "-shared", "-o", folder / "python3.dll"),
        *(folder / "empty.c", folder / "python3.def"),
    )
    # Windows has it since 10, Wine since 8.1: the source of random bytes that Rust's library asks.
    (folder / "random.c").write_text(RANDOM, encoding="utf-8")
    random = ("-o", folder / "bcryptprimitives.dll", folder / "random.c", "-ladvapi32")
    run("wine", compiler, "-shared", "-O1", *random)
    result.install(run, "wine", NUMPY, "pytest", "colorama")
    (folder / "whole").touch()
    return result


PROGRAM = """#include <wchar.h>
#include <windows.h>

int wmain(int count, wchar_t **words) {
    HMODULE library = LoadLibraryW(L"LIBRARY");
    int (*run)(int, wchar_t **) = library ? (int (*)(int, wchar_t **))GetProcAddress(library, "Py_Main") : 0;
    return run ? run(count, words) : 70;
}
"""

RANDOM = """#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
    return RtlGenRandom(bytes, (ULONG)count);
}
"""


def _standard_library(folder: Path) -> None:
    """Copy what of the standard library is Python: it is the same on every system."""
    source = Path(os.__file__).parent
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*LEFT_OUT, "config-*"))


def _unpacked(folder: Path, run: Run, wanted: str, platform: str) -> Path:
    """Download the wheel of another platform and unpack it."""
    place = folder / "downloaded"
    run(
        *(folder.name, sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary", ":all:", "--platform", platform, "--python-version", VERSION),
        *("--dest", place, wanted),
    )
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    return place


def _zlib(folder: Path, run: Run) -> list[Path]:
    """Fetch the sources of zlib, which CPython takes from its system, from the crate that has them."""
    crate = folder / "zlib"
    (crate / "src").mkdir(parents=True)
    (crate / "src" / "lib.rs").write_text("")
    (crate / "Cargo.toml").write_text(
        '[package]\nname = "zlib"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n\n'
        '[dependencies]\nlibz-sys = "=1.1.31"\n'
    )
    told = json.loads(run("musl", "cargo", "metadata", "--format-version", "1", cwd=crate))
    (own,) = (each for each in told["packages"] if each["name"] == "libz-sys")
    return sorted((Path(own["manifest_path"]).parent / "src" / "zlib").glob("*.c"))


def _drive(path: Path) -> str:
    """Return a path as Wine names it."""
    return f"Z:{path}".replace("/", "\\")


#: Prints the names that a library shows, if the Python Software Foundation signed it and nobody changed it.
SIGNED = """import lief, sys

library = lief.parse(sys.argv[1])
signers = [str(each.subject) for one in library.signatures for each in one.certificates]
assert library.verify_signature() == lief.PE.Signature.VERIFICATION_FLAGS.OK, "error: it was changed"
assert any("O=Python Software Foundation" in each for each in signers), f"error: signed by {signers}"
print(*(each.name for each in library.get_export().entries), sep="\\n")
"""
