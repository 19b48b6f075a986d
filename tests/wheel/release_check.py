"""Build, check and try what a release ships, as far as this machine can: ``make release-check``.

The tree is staged with the repository's address (a stand-in where there is none yet). Each distribution is
built there, checked, and, where it can run on this machine, installed into an empty environment and used.
What cannot be built or run is left out with the reason. The command fails where something is wrong, not where
something is left out.

    python tests/wheel/release_check.py [NAME...] [--profile demo] [--record]

A name is sdist, papers, manylinux, windows and so on: these alone are done. The profile `demo` compiles in a
fraction of the time, to try the check itself; such wheels are larger, and the table says so. With
``--record`` the rows of what was done replace those of before in benches/records/release.json, from which
docs/fill.py fills the page about releases.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import every_python
import pythons
import stage
from targets import (
    DEBIAN,
    MACOS,
    TARGETS,
    WINDOWS,
    LeftOutError,
    Target,
    has_library,
    macos_linker,
    start_objects,
)

ROOT = Path(__file__).parents[2]
HERE = ROOT / "target" / "release-check"
TREE, BUILT, LOGS, TOOLS = HERE / "tree", HERE / "dist", HERE / "logs", HERE / "tools"
RECORD = ROOT / "benches" / "records" / "release.json"
PROFILE = "demo" if "demo" in sys.argv else "release"
STAND_IN = "https://repository.invalid/bitldp/bitldp"
COLUMNS = ("built", "checked", "run")
NEEDED = (
    *("abi3audit", "auditwheel", "cffconvert", "hatchling", "lief", "maturin>=1.9,<2", "py-rattler-build"),
    *("readme-renderer[md]", "twine", "ziglang", "zizmor"),
)
VARIANT = "c_stdlib: [sysroot]\nc_stdlib_version: ['2.17']\nc_compiler: [gcc]\nrust_compiler: [rust]\n"
MOST_MEGABYTES = 260
"""What the command line may take in an empty environment, bitldp itself included."""


class FailedError(Exception):
    """Something that went wrong."""


@dataclass
class Row:
    """One line of the table: what became of a distribution, by column a word and what is to be said."""

    name: str
    cells: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether a step went wrong."""
        return any(word == "FAILED" for word, _ in self.cells.values())

    def do(self, column: str, work: Callable[[], str]) -> bool:
        """Do one step and keep in its column what came out; tell whether the next one can begin."""
        begun = time.monotonic()
        print(f"{self.name}: {column} ...", flush=True)
        try:
            self.cells[column] = ("yes", work())
        except (LeftOutError, pythons.NoPythonError) as reason:
            self.cells[column] = ("left out", str(reason))
        except (FailedError, AssertionError) as fault:
            self.cells[column] = ("FAILED", str(fault))
        word, said = self.cells[column]
        print(f"{self.name}: {column}: {word}: {said} ({time.monotonic() - begun:.0f} s)", flush=True)
        return word == "yes"


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
        said = next(
            (line for line in reversed(last) if "error" in line.lower()), last[-1] if last else "no word"
        )
        raise FailedError(f"{said[:200]} (logs/{log}.txt)")
    return done.stdout


def environment(name: str, python: Path | str = sys.executable) -> Path:
    """Return the Python of a new environment with nothing in it."""
    folder = HERE / "environments" / name
    shutil.rmtree(folder, ignore_errors=True)
    run(name, python, "-m", "venv", folder, cwd=HERE)
    return folder / "bin" / "python"


def install(python: Path, *wanted: object) -> None:
    """Install with pip, or with uv where there is one, which takes seconds."""
    uv = shutil.which("uv")
    front: list[object] = (
        [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    )
    run(python.parents[1].name, *front, "--quiet", *wanted, cwd=HERE)


def tool(name: str) -> Path:
    """Return a tool of the environment that has them."""
    return TOOLS / "bin" / name


def log_name(name: str) -> str:
    """Return the name of a log."""
    return name.lower().replace(" ", "-")


def megabytes(file: Path) -> str:
    """Return a file's name and size."""
    return f"{file.name} ({file.stat().st_size / 1e6:.2f} MB)"


def built(target: Target, name: str = "bitldp", folder: Path = TREE) -> Path:
    """Build the wheel of a platform and return it."""
    options = target.options(PROFILE)
    if target.triple == WINDOWS and not has_library("rustc", target.triple):
        start_objects(HERE / "start", run)
    if target.triple == MACOS and sys.platform != "darwin":
        macos_linker(HERE / "macos", TOOLS)
    for old in BUILT.glob(f"{name}-*.whl"):
        if target.names(old):
            old.unlink()
    command = [tool("maturin"), "build", *options, "--out", BUILT]
    run(log_name(target.name), *command, cwd=folder, **target.variables(HERE, TOOLS))
    made = [each for each in BUILT.glob(f"{name}-*.whl") if target.names(each)]
    assert len(made) == 1, f"{[each.name for each in made]}: one wheel is built"
    return made[0]


def own(name: str = "bitldp") -> Path:
    """Return the wheel of a distribution that this machine can install, which other rows need."""
    for each in BUILT.glob(f"{name}-*.whl"):
        if each.stem.endswith("none-any") or TARGETS[0].names(each):
            return each
    raise LeftOutError(f"it needs the wheel of {name} for this machine, of another row")


def checked(wheel: Path, address: str) -> str:
    """Check a wheel by our rules, abi3audit, auditwheel where it is Linux's, and twine."""
    log = f"check-{wheel.stem}"
    script = TREE / "tests" / "wheel" / "check_wheel.py"
    run(log, tool("python"), script, "--repository", address, wheel)
    run(log, tool("twine"), "check", "--strict", wheel)
    if wheel.stem.endswith("none-any"):
        return "content, licences, twine"
    run(log, tool("abi3audit"), "--strict", "--assume-minimum-abi3", "3.10", wheel)
    audited = ""
    # It looks for musl's libc.so in the system, where glibc has a text of that name.
    if "manylinux" in wheel.name:
        said = run(log, tool("auditwheel"), "show", wheel)
        tag = wheel.stem.rpartition("-")[2].split(".")[0]
        if f'"{tag}"' not in " ".join(said.split()) and "manylinux_2_17" not in said:
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
    return f"installed, and the README prints what it says, on Python {', '.join(versions)}"


def last_line(said: str) -> str:
    """Return the last line of what was printed."""
    return said.strip().splitlines()[-1]


def used_on_arm(wheel: Path) -> str:
    """Install a wheel in an emulated Python of AArch64; run the README's lines and the golden streams."""
    ready = subprocess.run([ROOT / "tests/arm/setup"], capture_output=True, text=True, check=False)
    if ready.returncode:
        raise LeftOutError(" ".join(ready.stderr.split())[:160])
    for old in (ROOT / "target/arm/python/site").glob("bitldp*"):
        shutil.rmtree(old)
    run("arm", "tests/arm/python", "--install", wheel, cwd=ROOT, PYTHON=str(tool("python")))
    said = run("arm", "tests/arm/python", "tests/wheel/try_streams.py", "neon", cwd=ROOT)
    return f"QEMU: {last_line(said)}"


def used_on_musl(wheel: Path) -> str:
    """Install a wheel in a Python of musl; run the README's lines and the golden streams."""
    zig = next(TOOLS.glob("lib/python*/site-packages/ziglang/zig"))
    return used_elsewhere(wheel, "musl", pythons.musl(HERE / "pythons" / "musl", run, zig))


def used_under_wine(wheel: Path) -> str:
    """Install a wheel in a Python of Windows; run the README's lines: Wine 8 lacks C99 for streams."""
    python = pythons.windows(HERE / "pythons" / "windows", run, tool("python"))
    return used_elsewhere(wheel, "Wine", python, "try_lines.py")


def used_elsewhere(wheel: Path, name: str, python: pythons.Foreign, script: str = "try_streams.py") -> str:
    """Install a wheel in a Python of another system, and run a script there."""
    for old in python.packages.glob("bitldp*"):
        shutil.rmtree(old)
    log = log_name(name)
    with_tag = wheel.parent / wheel.name.replace("musllinux_1_2", "musllinux_1_1")  # of Debian's musl
    if with_tag != wheel:
        shutil.copy2(wheel, with_tag)
    try:
        python.install(run, log, "--no-deps", with_tag)
    finally:
        if with_tag != wheel:
            with_tag.unlink()
    file = TREE / "tests" / "wheel" / script
    return f"{name}: {last_line(run(log, *python.command, file, **python.variables))}"


def not_used(reason: str) -> Callable[[Path], str]:
    """Return a trial that says why there is none."""

    def trial(wheel: Path) -> str:
        raise LeftOutError(reason)

    return trial


TRIALS: dict[str, Callable[[Path], str]] = {
    "x86_64-unknown-linux-gnu": used_on_every_python,
    "aarch64-unknown-linux-gnu": used_on_arm,
    "x86_64-unknown-linux-musl": used_on_musl,
    WINDOWS: used_under_wine,
    MACOS: not_used("macOS programs run on macOS alone; the release workflow runs it there"),
}


def wheel_row(target: Target, address: str) -> Row:
    """Build, check and try the wheel of a platform."""
    row, made = Row(target.name), []

    def build() -> str:
        made.append(built(target))
        return megabytes(made[0])

    if row.do("built", build):
        row.do("checked", lambda: checked(made[0], address))
        row.do("run", lambda: TRIALS[target.triple](made[0]))
    return row


def core_under_wine_row() -> Row:
    """Run the tests of the Rust core, built for Windows."""
    row = Row("the core's tests on Windows")

    def use() -> str:
        target = next(each for each in TARGETS if each.triple == WINDOWS)
        target.options(PROFILE)  # what it needs is there
        python = pythons.windows(HERE / "pythons" / "windows", run, tool("python"))
        variables = {
            **target.variables(HERE, TOOLS),
            **{name: python.variables[name] for name in ("WINEDEBUG", "WINEPATH", "WINEPREFIX")},
            "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER": python.command[0],
            "CARGO_PROFILE_TEST_DEBUG": "0",
        }
        debian = not has_library("rustc", target.triple)
        if debian:
            start_objects(HERE / "start", run)
        said = run(
            *("core-under-wine", DEBIAN / "cargo" if debian else "cargo", "test", "-p", "bitldp-core"),
            *(["-Zbuild-std=std,panic_unwind,test"] if debian else []),
            *("--locked", "--target", target.triple, "--lib", "--test", "golden"),
            **variables,
        )
        passed = sum(
            int(line.split()[3]) for line in said.splitlines() if line.startswith("test result: ok.")
        )
        return f"Wine: {passed} tests pass, golden streams included"

    row.do("run", use)
    return row


def sdist_row(address: str) -> Row:
    """Build the sdist twice, compile it into an empty environment, and run the README's lines."""
    row, made = Row("sdist"), []

    def build() -> str:
        digests = set()
        for _ in range(2):
            for old in BUILT.glob("bitldp-*.tar.gz"):
                old.unlink()
            run("sdist", tool("maturin"), "sdist", "--out", BUILT)
            (file,) = BUILT.glob("bitldp-*.tar.gz")
            digests.add(hashlib.sha256(file.read_bytes()).hexdigest())
        assert len(digests) == 1, "two builds have other bytes"
        made.append(file)
        return f"{megabytes(file)}; two builds have the same bytes"

    def check() -> str:
        run("sdist", tool("python"), TREE / "tests/wheel/check_wheel.py", "--repository", address, made[0])
        run("sdist", tool("twine"), "check", "--strict", made[0])
        return "content, licences, metadata, twine"

    def use() -> str:
        python = environment("sdist")
        install(python, made[0])
        run("sdist", python, "tests/wheel/try_lines.py")
        return f"compiled, and the README prints what it says, on Python {platform.python_version()}"

    if row.do("built", build):
        row.do("checked", check)
        row.do("run", use)
    return row


def crates_row() -> Row:
    """Pack the crates that others build on, compile them from their packages, and check what they hold."""
    row, made = Row("crates bitldp-core, bitldp-client"), []

    def build() -> str:
        packages = [option for name in ("bitldp-core", "bitldp-client") for option in ("-p", name)]
        front = ("crates", "cargo", "package", "--locked", "--allow-dirty", "--target-dir", HERE / "crates")
        run(*map(str, front), *packages)
        made.extend(sorted((HERE / "crates" / "package").glob("bitldp-*.crate")))
        return f"{', '.join(map(megabytes, made))}; compiled from their packages"

    def check() -> str:
        for crate in made:
            with tarfile.open(crate) as archive:
                held = {name.partition("/")[2] for name in archive.getnames()}
                manifest = archive.extractfile(f"{crate.stem}/Cargo.toml")
                assert manifest is not None
                assert b"\nrepository = " in manifest.read(), f"{crate.name}: Cargo.toml names no repository"
            needed = {"LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"}
            needed |= {"include/bitldp.h", "examples/c/report.c"} if "client" in crate.name else set()
            assert needed <= held, f"{crate.name}: {sorted(needed - held)} are left out"
            strange = [name for name in held if name.startswith("tests")]
            assert not strange, f"{crate.name}: holds {strange}"
        return "licences, README, header, repository"

    if row.do("built", build):
        row.do("checked", check)
    return row


def papers_row(address: str) -> Row:
    """Build the wheel of bitldp-papers, and install it with all that it needs beside the library's wheel."""
    row, made = Row("bitldp-papers"), []

    def build() -> str:
        for old in BUILT.glob("bitldp_papers-*.whl"):
            old.unlink()
        front = ["papers", tool("python"), "-m", "pip", "wheel", "--quiet", "--no-deps"]
        run(*map(str, front), "--no-build-isolation", "--wheel-dir", BUILT, TREE / "python/papers")
        made.extend(BUILT.glob("bitldp_papers-*.whl"))
        return megabytes(made[0])

    def use() -> str:
        library, python = own(), environment("papers")
        install(python, f"{library}[cli,design,plot]", made[0])
        said = run("papers", python.with_name("bitldp"), "paper", "list", cwd=HERE)
        return f"installed with all that it needs; `bitldp paper list` prints {len(said.splitlines())} lines"

    if row.do("built", build):
        row.do("checked", lambda: checked(made[0], address))
        row.do("run", use)
    return row


def prio_row(address: str) -> Row:
    """Build the wheel of bitldp-prio, and run its tests beside the library's wheel."""
    row, made, target = Row("bitldp-prio, manylinux x86-64"), [], TARGETS[0]

    def build() -> str:
        made.append(built(target, "bitldp_prio", TREE / "python" / "prio"))
        return megabytes(made[0])

    def use() -> str:
        library, python = own(), environment("prio")
        install(python, library, made[0], "pytest")
        # Only the tests and the example that they run, so that nothing is imported from the tree.
        tests = HERE / "environments" / "prio" / "tests" / "prio"
        for each in ("tests/prio", "examples/two_servers"):
            shutil.copytree(TREE / each, tests.parents[1] / each)
        said = run("prio", python, "-m", "pytest", "-q", "--rootdir", tests, tests, cwd=tests)
        return f"its tests beside the library's wheel: {last_line(said).partition(' in ')[0]}"

    if row.do("built", build):
        row.do("checked", lambda: checked(made[0], address))
        row.do("run", use)
    return row


def command_line_row() -> Row:
    """Install the command line from a find-links page, weigh it, and write the files of a page with it."""
    row = Row("`bitldp[cli]` from a find-links page")

    def use() -> str:
        own()
        page = BUILT / "index.html"
        page.write_text("".join(f'<a href="{each.name}">{each.name}</a>\n' for each in BUILT.glob("*.whl")))
        python = environment("cli")
        install(python, "--find-links", page, "bitldp[cli]")
        folder = python.parents[1]
        program = (
            "from importlib.metadata import distributions; from pathlib import Path;"
            "files = [Path(f.locate()) for d in distributions() if d.name not in ('pip', 'setuptools')"
            " for f in d.files or () if f.suffix != '.pyc'];"
            "print(sum(f.stat().st_size for f in files if f.is_file()))"
        )
        size = round(int(run("cli", python, "-c", program, cwd=folder)) / 1e6)
        assert size <= MOST_MEGABYTES, f"{size} MB, more than {MOST_MEGABYTES}"
        asked = ("--mechanism", "grr", "--categories", 16, "--epsilon", 1, "--out", folder / "web")
        run("cli", python.with_name("bitldp"), "client", *asked, cwd=folder)
        module = folder / "web" / "bitldp.wasm"
        assert module.read_bytes()[:4] == b"\0asm", "the page has no module"
        return f"{size} MB; `bitldp client --out web` writes {megabytes(module)}"

    row.do("run", use)
    return row


def free_threaded_row() -> Row:
    """Say what becomes of Pythons without a global lock, for which a stable ABI begins with 3.15."""
    row = Row("free-threaded Python (cp313t, cp314t)")

    def build() -> str:
        reason = "wheels of the stable ABI do not load there, so pip compiles the sdist"
        if not sysconfig.get_config_var("Py_GIL_DISABLED") and not any(
            map(shutil.which, ("python3.13t", "python3.14t"))
        ):
            raise LeftOutError(f"no such Python here; {reason}")
        raise LeftOutError(f"not released; {reason}")

    row.do("built", build)
    return row


def pages_row() -> Row:
    """Build the module of pages, which each wheel holds."""
    row = Row("WebAssembly module")

    def build() -> str:
        module = ROOT / "python" / "bitldp" / "client" / "web" / "bitldp.wasm"
        ready = subprocess.run([ROOT / "tests/wasm/setup"], capture_output=True, text=True, check=False)
        if ready.returncode == 0:
            run("pages", "make", "wasm", cwd=ROOT)
        elif not module.exists():
            raise LeftOutError(" ".join(ready.stderr.split())[:160])
        stage.stage(TREE, stage.repository() or STAND_IN)
        return megabytes(module)

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
    lines = [f"| what | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for row in rows:
        cells = [row.cells.get(each, ("", "")) for each in COLUMNS]
        said = (said if word == "yes" else f"{word}: {said}" if word else "" for word, said in cells)
        lines.append(f"| {row.name} | {' | '.join(said)} |")
    return "\n".join(lines)


def record(rows: Sequence[Row], order: Sequence[str]) -> None:
    """Put the rows in the place of those of before, with the day and the profile of each."""
    kept = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"rows": {}}
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    for row in rows:
        cells = {column: list(row.cells[column]) for column in COLUMNS if column in row.cells}
        kept["rows"][row.name] = {"date": day, "profile": PROFILE, **cells}
    kept["system"] = f"{platform.system()} {platform.machine()}"
    kept["rows"] = {name: kept["rows"].get(name, {}) for name in order}
    RECORD.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


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
        "sdist": lambda: sdist_row(address),
        **{log_name(target.name): (lambda target=target: wheel_row(target, address)) for target in TARGETS},  # type: ignore[misc]
        "crates": crates_row,
        "papers": lambda: papers_row(address),
        "prio": lambda: prio_row(address),
        "command-line": command_line_row,
        "windows-core": core_under_wine_row,
        "free-threaded": free_threaded_row,
    }
    holding = {"sdist", *(log_name(target.name) for target in TARGETS)}  # the module of pages
    chosen = [name for name in steps if not wanted or any(name.startswith(each) for each in wanted)]
    if holding & {*chosen}:
        chosen = [name for name in steps if name in {*chosen, "pages"}]
    rows = [steps[name]() for name in chosen]
    said = "" if PROFILE == "release" else f"\n\nCompiled with the profile {PROFILE}."
    said += "" if stage.repository() else f"\n\nNo repository is set; {STAND_IN} stands in for its address."
    (HERE / "table.md").write_text(table(rows) + said + "\n", encoding="utf-8")
    print(f"\n{table(rows)}{said}")
    if "--record" in sys.argv:
        record(rows, ORDER)
    return int(any(row.failed for row in rows))


#: Names of rows, as the record and the page list them.
ORDER = (
    *("sdist", *(target.name for target in TARGETS), "the core's tests on Windows", "WebAssembly module"),
    *(
        "`bitldp[cli]` from a find-links page",
        "crates bitldp-core, bitldp-client",
        "bitldp-papers",
        "bitldp-prio, manylinux x86-64",
    ),
    *("CITATION, workflow, recipe, notices", "free-threaded Python (cp313t, cp314t)"),
)

if __name__ == "__main__":
    sys.exit(main([each for each in sys.argv[1:] if each not in ("--profile", "demo", "--record")]))
