"""What an edit may have broken, in about a minute: lint of what changed, and the tests that are quick.

    make quick              # since the last commit
    make quick SINCE=main   # since the branch began

Python: ruff, mypy (which knows what it looked at before), and the tests without a marker: all of them, but
where an edit stays in test files, documents or the papers, for everything else may depend on it.

Rust: clippy and the core's unit tests, then the extension module anew in the profile `demo`, which takes
longer than a minute where the core itself changed. It draws the same bytes; `make test` builds what ships.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
QUICK = "not (statistical or browser or engine or slow or evidence)"
DOCUMENTS = ("tests/house", "tests/faces/cli/test_explain.py")
#: Folders with quick tests; what the others have is all slow, and takes seconds to collect.
FOLDERS = ("tests/families", "tests/law", "tests/tasks", "tests/faces", "tests/house")


def changed(since: str) -> list[str]:
    """Return the files that differ from a commit's merge base with HEAD, new ones too, deleted ones not."""
    base = _git("merge-base", since, "HEAD").strip()
    names = _git("diff", "--name-only", base) + _git("ls-files", "--others", "--exclude-standard")
    return sorted({name for name in names.splitlines() if (ROOT / name).exists()})


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def commands(files: list[str]) -> list[list[str]]:
    """Return what is to be run for these files, the quickest first."""
    python = [name for name in files if name.endswith((".py", ".pyi"))]
    rust = [name for name in files if name.startswith("rust/") or name in ("Cargo.toml", "Cargo.lock")]
    steps = []
    if python:
        steps += [[f"{BIN}/ruff", "check", *python], [f"{BIN}/ruff", "format", "--check", *python]]
    if rust:
        steps += [
            ["cargo", "fmt", "--all", "--check"],
            ["cargo", "clippy", "--workspace", "--locked", "--quiet", "--", "-D", "warnings"],
            ["cargo", "test", "-p", "bitldp-core", "--lib", "--locked", "--quiet"],
            [f"{BIN}/maturin", "develop", "--quiet", "--locked", "--profile", "demo", "--skip-install"],
        ]
    if any(name.startswith("python/") for name in python):
        steps.append([f"{BIN}/mypy"])
    pytest = [f"{BIN}/pytest", "-q", "--numprocesses", str(os.cpu_count() or 1), "--dist", "loadfile"]
    if tests := selected(files):
        steps.append([*pytest, "-m", QUICK, *tests])
    return steps


def selected(files: list[str]) -> list[str]:
    """Return the folders and files whose tests may see these edits."""
    tests: set[str] = set()
    for name in files:
        path = Path(name)
        if path.parts[0] == "tests" and path.name.startswith("test_") and path.suffix == ".py":
            tests.add(name)
        elif path.parts[:2] in (("python", "papers"), ("tests", "papers")):
            tests.add("tests/house")  # its own are slow: `make papers-test`
        elif path.parts[0] in ("docs", "examples") or path.suffix == ".md":
            tests |= set(DOCUMENTS)
        elif path.parts[0] in ("python", "rust", "tests") or path.suffix in (".toml", ".lock"):
            return list(FOLDERS)
    return sorted(tests)


def main(since: str) -> int:
    """Run it all; return the status of the first that fails."""
    files = changed(since)
    for command in commands(files):
        start = time.perf_counter()
        shown = " ".join([Path(command[0]).name, *command[1:]])
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        print(
            f"{time.perf_counter() - start:5.1f} s  {shown if len(shown) < 100 else shown[:97] + '...'}",
            flush=True,
        )
        if status not in (0, 5):  # 5: pytest found none among these that is quick
            return status
    print(f"{len(files)} files changed since {since}: nothing found; `make test` has the last word")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:] or ["HEAD"]))
