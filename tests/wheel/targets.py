"""Platforms that wheels are built for: compiler and linker of each, as far as this machine has them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DEBIAN = Path("/usr/bin")
SOURCES = DEBIAN.parent / "lib/rustlib/src/rust/library"
MINGW = "x86_64-w64-mingw32-gcc"
WINDOWS = "x86_64-pc-windows-gnu"


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
        if has_library("rustc", self.triple):
            return {**shared, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
        path = os.pathsep.join([path, str(DEBIAN), os.environ["PATH"], *_programs()])
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


def _programs() -> list[str]:
    """Return the folder of rustup's own programs; Debian's compiler strips for macOS with one of them."""
    found = subprocess.run(["rustc", "--print", "target-libdir"], capture_output=True, text=True, check=False)
    return [str(Path(found.stdout.strip()).parent / "bin")] if found.returncode == 0 else []


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
    Target("macOS AArch64", "aarch64-apple-darwin"),
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
