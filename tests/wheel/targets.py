"""Platforms that wheels are built for: compiler and linker of each, as far as this machine has them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DEBIAN = Path("/usr/bin")
SOURCES = DEBIAN.parent / "lib/rustlib/src/rust/library"
MINGW = "x86_64-w64-mingw32-gcc"
WINDOWS = "x86_64-pc-windows-gnu"
MACOS = "aarch64-apple-darwin"
ICONV = """--- !tapi-tbd
tbd-version: 4
targets: [ arm64-macos ]
install-name: '/usr/lib/libiconv.2.dylib'
exports:
  - targets: [ arm64-macos ]
    symbols: [ _iconv, _iconv_close, _iconv_open ]
...
"""


class LeftOutError(Exception):
    """Something that this machine cannot do, with the reason."""


@dataclass(frozen=True)
class Target:
    """A platform that a wheel is built for."""

    name: str
    triple: str
    compatibility: str = ""
    zig: bool = True
    flags: str = ""

    def variables(self, here: Path, tools: Path) -> dict[str, str]:
        """Return what names the compiler that has, or can build, a standard library of it, and the linker.

        Parameters
        ----------
        here : Path
            Folder in which is built.
        tools : Path
            Environment that has maturin and Zig.
        """
        shared = {"CARGO_TARGET_DIR": str(here / "build"), "CARGO_PROFILE_RELEASE_DEBUG": "0"}
        zig = tools.glob("lib/python*/site-packages/ziglang")
        path = os.pathsep.join([*map(str, zig), str(tools / "bin")])
        name = self.triple.upper().replace("-", "_")
        if self.flags:
            shared[f"CARGO_TARGET_{name}_RUSTFLAGS"] = self.flags
        if self.triple == WINDOWS:
            shared[f"CARGO_TARGET_{name}_LINKER"] = MINGW
            shared[f"CARGO_TARGET_{name}_RUSTFLAGS"] = f"-Lnative={here / 'start'}"
        if self.triple == MACOS and sys.platform != "darwin":
            path = os.pathsep.join([str(here / "macos" / "bin"), path])
            shared["SDKROOT"] = str(here / "macos")
            shared[f"CARGO_TARGET_{name}_LINKER"] = str(here / "macos" / "bin" / "ld")
            shared[f"CARGO_TARGET_{name}_RUSTFLAGS"] = (
                f"-Clinker-flavor=ld64.lld -Clink-arg=-L{here / 'macos' / 'usr' / 'lib'}"
            )
        if has_library("rustc", self.triple):
            return {**shared, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
        path = os.pathsep.join([path, str(DEBIAN), os.environ["PATH"]])
        shared |= {"PATH": path, "RUSTC": str(DEBIAN / "rustc"), "CARGO": str(DEBIAN / "cargo")}
        return (
            shared if has_library(str(DEBIAN / "rustc"), self.triple) else {**shared, "RUSTC_BOOTSTRAP": "1"}
        )

    def options(self, profile: str) -> list[str]:
        """Return what maturin is asked for; a standard library is built where none is installed."""
        if not shutil.which("rustc"):
            raise LeftOutError("there is no rustc")
        if self.triple == WINDOWS and not shutil.which(MINGW):
            raise LeftOutError("it needs apt-get install gcc-mingw-w64-x86-64")
        options = ["--profile", profile, "--locked", "--target", self.triple]
        options += ["--zig"] if self.zig else []
        options += ["--compatibility", self.compatibility] if self.compatibility else []
        if not any(has_library(rustc, self.triple) for rustc in ("rustc", str(DEBIAN / "rustc"))):
            if not SOURCES.exists() or not (DEBIAN / "cargo").exists():
                raise LeftOutError(
                    f"no standard library of {self.triple}: rustup target add, or Debian's rust-web-src"
                )
            options += ["-Z", "build-std=std,panic_unwind"]
        return options

    def names(self, wheel: Path) -> bool:
        """Tell whether a wheel's name is of this platform."""
        tag = wheel.stem.rpartition("-")[2]
        kind = {"linux-gnu": "manylinux", "linux-musl": "musllinux", "windows-gnu": "win", "darwin": "macosx"}
        begins = next(value for end, value in kind.items() if self.triple.endswith(end))
        machine = ("x86_64", "amd64") if self.triple.startswith("x86_64") else ("aarch64", "arm64")
        return tag.startswith(begins) and tag.endswith(machine)


def has_library(rustc: str, triple: str) -> bool:
    """Tell whether a compiler has the standard library of a platform."""
    command = [rustc, "--print", "target-libdir", "--target", triple]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return False
    return found.returncode == 0 and any(Path(found.stdout.strip()).glob("libstd-*.rlib"))


TARGETS = (
    Target("manylinux x86-64", "x86_64-unknown-linux-gnu", "manylinux2014"),
    Target("manylinux AArch64", "aarch64-unknown-linux-gnu", "manylinux2014"),
    Target(
        "musllinux x86-64", "x86_64-unknown-linux-musl", "musllinux_1_2", flags="-Ctarget-feature=-crt-static"
    ),
    Target("Windows x86-64", WINDOWS, zig=False),
    Target("macOS AArch64", MACOS, zig=False),
)


def start_objects(folder: Path, run: Callable[..., str]) -> None:
    """Compile what a program of Windows begins and ends with, which Debian's compiler comes without."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("rsbegin", "rsend"):
        source = SOURCES / "rtstartup" / f"{name}.rs"
        run(
            "windows-start",
            *(DEBIAN / "rustc", "--target", WINDOWS, "--emit=obj", "-Cpanic=abort"),
            *("-o", folder / f"{name}.o", source),
            RUSTC_BOOTSTRAP="1",
        )


def macos_linker(folder: Path, tools: Path) -> None:
    """Write what links for macOS elsewhere: rustup's linker, and stubs of the libraries that every Mac has.

    Zig's own linker shows every name of a library, whatever it is asked to show.
    """
    found = subprocess.run(["rustc", "--print", "target-libdir"], capture_output=True, text=True, check=False)
    programs = Path(found.stdout.strip()).parent / "bin"
    if not (programs / "rust-lld").is_file():
        raise LeftOutError("it needs rust-lld of a toolchain of rustup")
    bin_folder, libraries = folder / "bin", folder / "usr" / "lib"
    for each in (bin_folder, libraries):
        each.mkdir(parents=True, exist_ok=True)
    # maturin writes options as a C compiler takes them.
    scripts = {
        "ld": "#!/usr/bin/env python3\nimport os\nimport sys\n\n"
        'split = [each[4:].split(",") if each.startswith("-Wl,") else [each] for each in sys.argv[1:]]\n'
        f'os.execv("{programs}/rust-lld", ["rust-lld", *sum(split, [])])\n',
        "rust-objcopy": f"#!/bin/sh\nLD_LIBRARY_PATH={programs.parents[2]} "
        f'exec {programs}/rust-objcopy "$@"\n',
    }
    for name, text in scripts.items():
        (bin_folder / name).write_text(text)
        (bin_folder / name).chmod(0o755)
    stubs = next(tools.glob("lib/python*/site-packages/ziglang/lib/libc/darwin/libSystem.tbd")).read_text()
    # The linker does not know the latest machines.
    stubs = re.sub(r",\s*arm64e\.x1-\w+|arm64e\.x1-\w+,\s*|arm64e\.x1-\w+", "", stubs)
    for name in ("libSystem", "libc", "libm"):
        (libraries / f"{name}.tbd").write_text(stubs)
    (libraries / "libiconv.tbd").write_text(ICONV)
