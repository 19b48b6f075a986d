"""Ask cargo-deny and pip-audit for known faults of what bitldp stands on; say what is left out, and why.

    python tests/wheel/advisories.py

Nothing fails without the tools, or without a network to fetch advisories from. cargo-deny checks licences and
sources without one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON_TOOLS = ("pip-audit", "--strict", "--skip-editable", "--local")


def is_reached(url: str) -> bool:
    """Tell whether an address answers within five seconds."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def main() -> int:
    """Run what there is; return 1 where a check found something."""
    failed = False

    def run(*command: str) -> None:
        nonlocal failed
        print(*command, flush=True)
        failed |= subprocess.run(command, cwd=ROOT, check=False).returncode != 0

    def left_out(what: str, why: str) -> None:
        print(f"{what}: left out, {why}")

    if shutil.which("cargo-deny") is None:
        left_out("cargo-deny", "it is not installed (cargo install --locked cargo-deny)")
    else:
        run("cargo-deny", "--offline", "--locked", "check", "bans", "licenses", "sources")
        if is_reached("https://github.com/RustSec/advisory-db"):
            run("cargo-deny", "--locked", "check", "advisories")
        else:
            left_out("advisories of crates", "github.com/RustSec cannot be reached")
    if shutil.which(PYTHON_TOOLS[0]) is None:
        left_out("pip-audit", "it is not installed (pip install pip-audit)")
    elif is_reached("https://pypi.org/simple/pip/"):
        run(*PYTHON_TOOLS)
    else:
        left_out("advisories of Python packages", "pypi.org cannot be reached")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
