"""Try the wheels of ``dist/`` in every Python of this machine, as someone who has nothing but that folder.

``make wheel`` calls it. In an environment of its own, each Python installs bitldp by ``--find-links``, runs
the README's six lines, is told by the command line which extra is missing, installs it by that very line, and
perturbs a table; with the extra ``design`` it runs them once more. All that
needs no bitldp-papers, whose commands name the line that brings it. Its wheel then adds them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.ten_lines import README, ten_lines

ROOT = Path(__file__).parents[2]
OLDEST = (3, 10)
PROBE = "import sys; print(*sys.version_info[:2], sys.implementation.name, sys.executable)"


def interpreters() -> Iterator[tuple[str, Path]]:
    """Yield each version of CPython that is recent enough, once: on the path, or kept by pyenv."""
    seen: set[str] = set()
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = [sys.executable, *(shutil.which(f"python3.{minor}") for minor in range(10, 30))]
    for each in [*named, *map(str, sorted(pyenv.glob("versions/3.*/bin/python3")))]:
        if each is None:
            continue
        asked = subprocess.run([each, "-c", PROBE], capture_output=True, text=True, check=False)
        if asked.returncode:  # a shim of a version that is not switched on
            continue
        major, minor, kind, place = asked.stdout.split(maxsplit=3)
        version = f"{major}.{minor}"
        if (int(major), int(minor)) >= OLDEST and kind == "cpython" and version not in seen:
            seen.add(version)
            yield version, Path(place.strip())


def run(*command: object, ok: bool = True, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command without the sources of the clone; show all it said where it did not end as it should."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=cwd,
    )
    assert (done.returncode == 0) == ok, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def tried(python: Path, folder: Path) -> str:
    """Install, run and perturb with one Python; return the name of the wheel's version."""
    run(python, "-m", "venv", folder / "env")
    scripts = folder / "env" / "bin"
    install: list[object] = [
        scripts / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    run(*install, "--find-links", ROOT / "dist", "bitldp")
    source, printed = ten_lines()
    said = run(scripts / "python", "-W", "error", "-c", source, cwd=folder)
    assert said.stdout.splitlines() == printed, said.stdout
    version = run(scripts / "bitldp", "--version").stdout.strip()
    message = run(scripts / "bitldp", "perturb", "people.csv", ok=False, cwd=folder).stderr
    line = shlex.split(message[message.index("pip install") :])
    run(*install, *line[2:])  # as it is printed, without the folder
    (folder / "people.csv").write_text("age\n" + "\n".join(str(18 + i % 60) for i in range(500)) + "\n")
    options = ("--mechanism", "piecewise", "--epsilon", 1, "--low", 0, "--high", 100, "--columns", "age")
    run(scripts / "bitldp", "perturb", "people.csv", "-o", "out.csv", *options, cwd=folder)
    assert len((folder / "out.csv").read_text().splitlines()) == 501
    run(scripts / "bitldp", "verify", "out.csv.privacy.json", "out.csv", cwd=folder)
    run(*install, "--find-links", ROOT / "dist", "bitldp[design]")
    source, printed = readme()
    assert run(scripts / "python", "-c", source, cwd=folder).stdout.splitlines() == printed
    options = ("--mechanism", "grr", "--categories", 16, "--epsilon", 1)
    run(scripts / "bitldp", "client", *options, "--out", "web", cwd=folder)
    assert (folder / "web" / "bitldp.wasm").read_bytes()[:4] == b"\0asm", "the wheel has no module of a page"
    papers(scripts, install)
    return version


def readme() -> tuple[str, list[str]]:
    """Return the README's Python, and the lines that it says it prints."""
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    source = "\n".join(blocks)
    return source, re.findall(r"# -> (.*)", source)


def papers(scripts: Path, install: list[object]) -> None:
    """See that the commands of bitldp-papers are named where it is not, and join where its wheel is."""
    run(scripts / "python", "-c", "import bitldp_papers", ok=False)
    for command in ("attack", "fl", "paper"):
        message = run(scripts / "bitldp", command, ok=False).stderr
        assert message.endswith(': pip install "bitldp[papers]"\n'), message
    run(*install, "--find-links", ROOT / "dist", "--no-deps", "bitldp-papers")  # its libraries are not tried
    for command in ("attack", "fl", "paper"):
        assert f"bitldp {command}" in run(scripts / "bitldp", command, "--help").stdout


def check_papers_of(wheel: Path) -> None:
    """Refuse a wheel of the extension module without its licences, or without a list of what is in it."""
    names = zipfile.ZipFile(wheel).namelist()
    for end in (
        "licenses/LICENSE-MIT",
        "licenses/LICENSE-APACHE",
        "licenses/THIRD-PARTY-NOTICES.txt",
        ".cyclonedx.json",
    ):
        assert any(name.endswith(end) for name in names), f"{wheel.name}: has no {end}"


def main() -> int:
    """Print a line for each Python."""
    for wheel in (ROOT / "dist").glob("bitldp-*.whl"):
        check_papers_of(wheel)
    for version, python in interpreters():
        with tempfile.TemporaryDirectory(prefix="wheel-") as name:
            print(f"Python {version}: {tried(python, Path(name))}, installed from dist and used", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
