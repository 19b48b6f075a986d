"""Build, check and try what a release ships, as far as this machine can: ``make release-check``.

The tree is staged with the repository's address (a stand-in where there is none yet). Each distribution is
built there, checked, and, where it can run on this machine, installed into an empty environment and used.
What cannot be built or run is left out with the reason. The table at the end is the result, kept in
target/release-check/table.md. The command fails where something is wrong, not where something is left out.

    python tests/wheel/release_check.py [NAME...] [--profile demo]

A name is sdist, papers, manylinux, windows and so on: these alone are done. The profile `demo` compiles in a
fraction of the time, to try the check itself; such wheels are larger, and the table says so.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import every_python
import stage

ROOT = Path(__file__).parents[2]
HERE = ROOT / "target" / "release-check"
TREE, BUILT, LOGS, TOOLS = HERE / "tree", HERE / "dist", HERE / "logs", HERE / "tools"
PROFILE = "demo" if "demo" in sys.argv else "release"
STAND_IN = "https://repository.invalid/bitldp/bitldp"
NEEDED = (
    *(
        "abi3audit",
        "auditwheel",
        "cffconvert",
        "lief",
        "maturin>=1.9,<2",
        "py-rattler-build",
        "readme-renderer[md]",
    ),
    *("twine", "ziglang", "zizmor"),
)
DEBIAN = Path("/usr/bin")
SOURCES = DEBIAN.parent / "lib/rustlib/src/rust/library"
VARIANT = "c_stdlib: [sysroot]\nc_stdlib_version: ['2.17']\nc_compiler: [gcc]\nrust_compiler: [rust]\n"


class LeftOutError(Exception):
    """Something that this machine cannot do, with the reason."""


class FailedError(Exception):
    """Something that went wrong."""


@dataclass
class Row:
    """One line of the table: what became of a distribution."""

    name: str
    cells: dict[str, str] = field(default_factory=dict)
    failed: bool = False

    def do(self, column: str, work: Callable[[], str]) -> bool:
        """Do one step and keep in its column what came out; tell whether the next one can begin."""
        begun = time.monotonic()
        print(f"{self.name}: {column} ...", flush=True)
        try:
            self.cells[column] = work()
            good = True
        except LeftOutError as reason:
            self.cells[column] = f"left out: {reason}"
            good = False
        except (FailedError, AssertionError) as fault:
            self.cells[column] = f"FAILED: {fault}"
            self.failed, good = True, False
        print(f"{self.name}: {column}: {self.cells[column]} ({time.monotonic() - begun:.0f} s)", flush=True)
        return good


def run(log: str, *command: object, cwd: Path = TREE, **environment: str) -> str:
    """Run a command, with all it says in a log of that name; return what it printed."""
    words = [str(word) for word in command]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words, cwd=cwd, env={**inherited, **environment}, capture_output=True, text=True, check=False
    )
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / f"{log}.txt").open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(words)}\n{done.stdout}{done.stderr}\n")
    if done.returncode:
        last = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        told = next(
            (line for line in reversed(last) if "error" in line.lower()), last[-1] if last else "no word"
        )
        raise FailedError(f"{told[:200]} (logs/{log}.txt)")
    return done.stdout


def environment(name: str, python: Path | str = sys.executable) -> Path:
    """Return the Python of a new environment with nothing in it."""
    folder = HERE / "environments" / name
    shutil.rmtree(folder, ignore_errors=True)
    run(name, python, "-m", "venv", folder, cwd=HERE)
    return folder / "bin" / "python"


def install(python: Path, *wanted: object) -> None:
    """Install with pip, or with uv where it is found, which takes seconds."""
    uv = shutil.which("uv")
    front: list[object] = (
        [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    )
    run(python.parents[1].name, *front, "--quiet", *wanted, cwd=HERE)


def tool(name: str) -> Path:
    """Return a tool of the environment that has them."""
    return TOOLS / "bin" / name


@dataclass(frozen=True)
class Target:
    """A platform that a wheel is built for."""

    name: str
    triple: str
    compatibility: str = ""
    zig: bool = True
    flags: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """The compiler that has a standard library of this platform, or can build one, and its linker."""
        shared = {"CARGO_TARGET_DIR": str(HERE / "build"), "CARGO_PROFILE_RELEASE_DEBUG": "0"}
        zig = tool("python").parent.parent.glob("lib/python*/site-packages/ziglang")
        path = os.pathsep.join([*map(str, zig), str(TOOLS / "bin")])
        name = self.triple.upper().replace("-", "_")
        if self.flags:
            shared[f"CARGO_TARGET_{name}_RUSTFLAGS"] = self.flags
        if self.triple == "x86_64-pc-windows-gnu":
            shared[f"CARGO_TARGET_{name}_LINKER"] = "x86_64-w64-mingw32-gcc"
        if has_library("rustc", self.triple):
            return {**shared, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
        path = os.pathsep.join([path, str(DEBIAN), os.environ["PATH"]])
        shared |= {"PATH": path, "RUSTC": str(DEBIAN / "rustc"), "CARGO": str(DEBIAN / "cargo")}
        return (
            shared if has_library(str(DEBIAN / "rustc"), self.triple) else {**shared, "RUSTC_BOOTSTRAP": "1"}
        )

    def options(self) -> list[str]:
        """Return what maturin is asked for; a standard library is built where none is installed."""
        if not shutil.which("rustc"):
            raise LeftOutError("there is no rustc")
        if self.triple == "x86_64-pc-windows-gnu" and not shutil.which("x86_64-w64-mingw32-gcc"):
            raise LeftOutError("it needs apt-get install gcc-mingw-w64-x86-64")
        options = ["--profile", PROFILE, "--locked", "--target", self.triple, "--out", str(BUILT)]
        options += ["--zig"] if self.zig else []
        options += ["--compatibility", self.compatibility] if self.compatibility else []
        if not any(has_library(rustc, self.triple) for rustc in ("rustc", str(DEBIAN / "rustc"))):
            if not SOURCES.exists() or not (DEBIAN / "cargo").exists():
                raise LeftOutError(
                    f"no standard library of {self.triple}: rustup target add, or Debian's rust-web-src"
                )
            options += ["-Z", "build-std=std,panic_unwind"]
        return options


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
    Target("Windows x86-64", "x86_64-pc-windows-gnu", zig=False, flags=f"-Lnative={HERE / 'start'}"),
    Target("macOS AArch64", "aarch64-apple-darwin"),
)


def start_objects() -> None:
    """Compile what a program of Windows begins and ends with, which Debian's compiler comes without."""
    folder = HERE / "start"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("rsbegin", "rsend"):
        source = SOURCES / "rtstartup" / f"{name}.rs"
        run(
            "windows-start",
            *(DEBIAN / "rustc", "--target", "x86_64-pc-windows-gnu", "--emit=obj", "-Cpanic=abort"),
            *("-o", folder / f"{name}.o", source),
            RUSTC_BOOTSTRAP="1",
        )


def log_name(name: str) -> str:
    """Return the name of a log."""
    return name.lower().replace(" ", "-")


def built(target: Target) -> Path:
    """Build the wheel of a platform and return it."""
    options = target.options()
    if target.triple == "x86_64-pc-windows-gnu" and not has_library("rustc", target.triple):
        start_objects()
    before = set(BUILT.glob("*.whl"))
    for each in before:
        if wheel_platform(each, target):
            each.unlink()
    run(log_name(target.name), tool("maturin"), "build", *options, **target.variables)
    found = [each for each in BUILT.glob("bitldp-*.whl") if wheel_platform(each, target)]
    assert len(found) == 1, f"{[each.name for each in found]}: one wheel is built"
    return found[0]


def wheel_platform(wheel: Path, target: Target) -> bool:
    """Tell whether a wheel's name is of a platform."""
    tag = wheel.stem.rpartition("-")[2]
    kind = {"linux-gnu": "manylinux", "linux-musl": "musllinux", "windows-gnu": "win", "darwin": "macosx"}
    begins = next(value for end, value in kind.items() if target.triple.endswith(end))
    machine = ("x86_64", "amd64") if target.triple.startswith("x86_64") else ("aarch64", "arm64")
    return tag.startswith(begins) and tag.endswith(machine)


def checked(wheel: Path, address: str) -> str:
    """Check a wheel by our rules, abi3audit, auditwheel where it is Linux's, and twine."""
    log = f"check-{wheel.stem}"
    script = TREE / "tests" / "wheel" / "check_wheel.py"
    run(log, tool("python"), script, "--repository", address, wheel)
    run(log, tool("abi3audit"), "--strict", "--assume-minimum-abi3", "3.10", wheel)
    run(log, tool("twine"), "check", "--strict", wheel)
    audited = ""
    if "linux" in wheel.name:
        said = run(log, tool("auditwheel"), "show", wheel)
        tag = wheel.stem.rpartition("-")[2].split(".")[0]
        if (
            f'"{tag}"' not in " ".join(said.split())
            and "manylinux_2_17" not in said
            and "musllinux" not in said
        ):
            raise FailedError(f"auditwheel: does not say {tag} (logs/{log}.txt)")
        audited = ", auditwheel"
    return f"content, licences, SBOM, imports, abi3audit, twine{audited}"


def used_on_every_python(wheel: Path) -> str:
    """Install a wheel into an empty environment of each Python, with the oldest NumPy in the oldest one."""
    versions = []
    for version, python in every_python.interpreters():
        place = environment(f"wheel-{version}", python)
        oldest = version == ".".join(map(str, every_python.OLDEST))
        install(place, wheel, *(["numpy==1.26.*"] if oldest else []))
        run(f"wheel-{version}", place, "tests/wheel/try_lines.py")
        versions.append(f"{version}{' with NumPy 1.26' if oldest else ''}")
    return f"installed and run on Python {', '.join(versions)}"


def used_on_arm(wheel: Path) -> str:
    """Install a wheel in an emulated Python of AArch64; run the README's lines and the golden streams."""
    ready = subprocess.run([ROOT / "tests/arm/setup"], capture_output=True, text=True, check=False)
    if ready.returncode:
        raise LeftOutError(" ".join(ready.stderr.split())[:160])
    for old in (ROOT / "target/arm/python/site").glob("bitldp*"):
        shutil.rmtree(old)
    run("arm", "tests/arm/python", "--install", wheel, cwd=ROOT, PYTHON=str(tool("python")))
    said = run("arm", "tests/arm/python", "tests/arm/try_wheel.py", cwd=ROOT)
    return f"under QEMU: {said.splitlines()[-1]}"


def used_under_wine(wheel: Path) -> str:
    """Run the tests of the Rust core, built for Windows, where no Python for Windows is to be had."""
    wine = shutil.which("wine64") or shutil.which("wine") or shutil.which("wine64", path="/usr/lib/wine")
    if wine is None:
        raise LeftOutError("it needs apt-get install wine64")
    target = next(each for each in TARGETS if each.triple == "x86_64-pc-windows-gnu")
    variables = target.variables | {
        "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER": wine,
        "WINEDEBUG": "-all",
        "WINEPREFIX": str(HERE / "wine"),
        "CARGO_PROFILE_TEST_DEBUG": "0",
    }
    command = [
        "cargo",
        "test",
        "-p",
        "bitldp-core",
        "--locked",
        "--target",
        target.triple,
        "--lib",
        "--test",
        "golden",
    ]
    if not has_library("rustc", target.triple):
        command = [str(DEBIAN / "cargo"), *command[1:4], "-Zbuild-std=std,panic_unwind,test", *command[4:]]
    said = run("wine", *command, **variables)
    passed = sum(int(line.split()[3]) for line in said.splitlines() if line.startswith("test result: ok."))
    return f"no Python for Windows here; under wine {passed} tests of the core pass, golden streams included"


def not_used(reason: str) -> Callable[[Path], str]:
    """Return a trial that says why there is none."""

    def trial(wheel: Path) -> str:
        raise LeftOutError(reason)

    return trial


TRIALS: dict[str, Callable[[Path], str]] = {
    "x86_64-unknown-linux-gnu": used_on_every_python,
    "aarch64-unknown-linux-gnu": used_on_arm,
    "x86_64-unknown-linux-musl": not_used("no Python of musl is in a registry that is asked"),
    "x86_64-pc-windows-gnu": used_under_wine,
    "aarch64-apple-darwin": not_used("macOS programs run on macOS alone; the release workflow runs it there"),
}


def wheel_row(target: Target, address: str) -> Row:
    """Build, check and try the wheel of a platform."""
    row, found = Row(target.name), []

    def build() -> str:
        found.append(built(target))
        return f"{found[0].name} ({found[0].stat().st_size / 1e6:.2f} MB)"

    if row.do("built", build):
        row.do("checked", lambda: checked(found[0], address))
        row.do("run", lambda: TRIALS[target.triple](found[0]))
    return row


def sdist_row() -> Row:
    """Build the sdist, compile it into an empty environment, and run the README's lines."""
    row, found = Row("sdist"), []

    def build() -> str:
        for old in BUILT.glob("bitldp-*.tar.gz"):
            old.unlink()
        run("sdist", tool("maturin"), "sdist", "--out", BUILT)
        found.extend(BUILT.glob("bitldp-*.tar.gz"))
        return f"{found[0].name} ({found[0].stat().st_size / 1e6:.2f} MB)"

    def check() -> str:
        run("sdist", tool("twine"), "check", "--strict", found[0])
        return "twine"

    def use() -> str:
        python = environment("sdist")
        install(python, found[0])
        run("sdist", python, "tests/wheel/try_lines.py")
        return f"compiled and run on Python {platform.python_version()}, maturin fetched by pip"

    if row.do("built", build):
        row.do("checked", check)
        row.do("run", use)
    return row


def papers_row() -> Row:
    """Build the wheel of bitldp-papers, which is pure Python, and import it beside the library's wheel."""
    row, found = Row("bitldp-papers"), []

    def build() -> str:
        run(
            "papers",
            tool("python"),
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            BUILT,
            TREE / "python/papers",
        )
        found.extend(BUILT.glob("bitldp_papers-*.whl"))
        return f"{found[0].name} ({found[0].stat().st_size / 1e6:.2f} MB)"

    def check() -> str:
        run("papers", tool("twine"), "check", "--strict", found[0])
        return "twine"

    if row.do("built", build):
        row.do("checked", check)
        row.cells["run"] = "by make wheel, beside the library's wheel"
    return row


def free_threaded_row() -> Row:
    """Say what becomes of Pythons without a global lock, for which a stable ABI begins with 3.15."""
    row = Row("cp313t, cp314t")

    def build() -> str:
        if not sysconfig.get_config_var("Py_GIL_DISABLED") and not any(
            map(shutil.which, ("python3.13t", "python3.14t"))
        ):
            raise LeftOutError(
                "no free-threaded Python here; abi3 wheels do not load there, so pip takes the sdist"
            )
        raise LeftOutError("not released yet: abi3 wheels do not load there, so pip takes the sdist")

    row.do("built", build)
    return row


def pages_row() -> Row:
    """Build the module of pages, which each wheel holds."""
    row = Row("WebAssembly module")

    def build() -> str:
        module = ROOT / "python" / "bitldp" / "client" / "web" / "bitldp.wasm"
        if not module.exists():
            ready = subprocess.run([ROOT / "tests/wasm/setup"], capture_output=True, text=True, check=False)
            if ready.returncode:
                raise LeftOutError(" ".join(ready.stderr.split())[:160])
            run("pages", "make", "wasm", cwd=ROOT)
        stage.stage(TREE, stage.repository() or STAND_IN)
        return f"{module.name} ({module.stat().st_size / 1e6:.2f} MB)"

    row.do("built", build)
    return row


def papers_of_release_row() -> Row:
    """Check what describes a release: citation, workflow, recipe, notices."""
    row = Row("CITATION, workflow, recipe, notices")

    def check() -> str:
        run("describing", tool("cffconvert"), "--validate")
        run("describing", tool("zizmor"), "--offline", "--no-progress", TREE / ".github")
        done = ["cffconvert", "zizmor"]
        if shutil.which("actionlint"):
            run("describing", "actionlint", TREE / ".github/workflows/release.yml")
            done.append("actionlint")
        program = (
            "import sys; from rattler_build import Stage0Recipe, VariantConfig;"
            "Stage0Recipe.from_file(sys.argv[1]).render(VariantConfig.from_yaml(sys.argv[2]))"
        )
        run("describing", tool("python"), "-c", program, TREE / "conda/recipe.yaml", VARIANT)
        run("describing", sys.executable, "tests/wheel/notices.py", "--check")
        return ", ".join([*done, "rattler-build renders the recipe", "notices are those of Cargo.lock"])

    row.do("checked", check)
    return row


def table(rows: Sequence[Row]) -> str:
    """Return the rows in Markdown."""
    columns = ("built", "checked", "run")
    lines = ["| what | built | checked | run |", "|---|---|---|---|"]
    lines += [f"| {row.name} | {' | '.join(row.cells.get(each, '') for each in columns)} |" for row in rows]
    return "\n".join(lines)


def main(wanted: Sequence[str]) -> int:
    """Do what is wanted, or everything; print the table and return 1 where something failed."""
    address = stage.repository() or STAND_IN
    shutil.rmtree(LOGS, ignore_errors=True)
    BUILT.mkdir(parents=True, exist_ok=True)
    stage.stage(TREE, address)
    if not (TOOLS / "whole").exists():
        TOOLS.parent.mkdir(parents=True, exist_ok=True)
        run("tools", sys.executable, "-m", "venv", TOOLS, cwd=HERE)
        install(tool("python"), *NEEDED)
        (TOOLS / "whole").touch()
    steps: dict[str, Callable[[], Row]] = {
        "describing": papers_of_release_row,
        "pages": pages_row,
        "sdist": sdist_row,
        "papers": papers_row,
        **{log_name(target.name): (lambda target=target: wheel_row(target, address)) for target in TARGETS},  # type: ignore[misc]
        "free-threaded": free_threaded_row,
    }
    chosen = [name for name in steps if not wanted or any(name.startswith(each) for each in wanted)]
    rows = [steps[name]() for name in chosen]
    said = "" if PROFILE == "release" else f"\n\nCompiled with the profile {PROFILE}."
    said += "" if stage.repository() else f"\n\nNo repository is set; {STAND_IN} stands in for its address."
    (HERE / "table.md").write_text(table(rows) + said + "\n", encoding="utf-8")
    print(f"\n{table(rows)}{said}")
    return int(any(row.failed for row in rows))


if __name__ == "__main__":
    sys.exit(main([each for each in sys.argv[1:] if each not in ("--profile", "demo")]))
