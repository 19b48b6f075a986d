"""Measure what each extra brings: packages and megabytes in an environment that has nothing else.

    python benches/extras.py [EXTRA...] [--record]

It takes the requirements of pyproject.toml, not the package itself, which is beside them in every row. With
``--record`` the figures are kept in records/extras.json, from which the page of installing is filled.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "wheel"))

import requirements

RECORD = Path(__file__).parent / "records" / "extras.json"
MEASURED = ("", "cli", "tables", "plot", "design", "fl", "sign", "sklearn", "remote", "frames", "demo")
MOST_MEGABYTES = {"cli": 260}
"""What an extra may take."""


def size(distribution: Distribution) -> int:
    """Return the bytes of the files that a distribution installs, without compiled copies of sources."""
    files = [Path(str(distribution.locate_file(each))) for each in distribution.files or ()]
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")


def measured(extra: str) -> dict[str, Any]:
    """Return the figures of one extra; the empty name is the package without any."""
    project = requirements.tomllib.loads(requirements.PROJECT.read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    if extra:
        wanted += [
            each for each in requirements.requirements(project, extra) if not each.startswith("bitldp-")
        ]
    with tempfile.TemporaryDirectory(prefix="extra-") as folder:
        uv = shutil.which("uv")
        place = Path(folder) / "env"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        front = [uv, "pip"] if uv else [sys.executable, "-m", "pip"]
        of = ["--python", str(place / "bin" / "python")]
        command = [*front, "install", *of] if uv else [*front, *of, "install"]
        subprocess.run([*command, "--quiet", *wanted], check=True)
        found = sorted(
            (
                (size(each), each.name)
                for each in distributions(path=[str(next(place.glob("lib/*/site-packages")))])
            ),
            reverse=True,
        )
    largest = [[name, round(count / 1e6)] for count, name in found[:3] if count > 5e6]
    return {
        "packages": len(found),
        "megabytes": round(sum(count for count, _ in found) / 1e6),
        "largest": largest,
    }


def main(arguments: list[str]) -> int:
    """Print each extra; return 1 where one takes more than it may."""
    kept = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"extras": {}}
    failed = False
    for extra in [each for each in arguments if each != "--record"] or MEASURED:
        figures = kept["extras"][extra] = measured(extra)
        most = MOST_MEGABYTES.get(extra)
        over = most is not None and figures["megabytes"] > most
        failed |= over
        of = ", ".join(f"{name} {count}" for name, count in figures["largest"])
        said = f"{figures['packages']} packages, {figures['megabytes']} MB ({of})"
        print(f"{extra or 'bitldp alone'}: {said}{f', more than {most}' if over else ''}", flush=True)
    if "--record" in arguments:
        kept["python"] = ".".join(platform.python_version_tuple()[:2])
        kept["system"] = f"{platform.system()} {platform.machine()}"
        RECORD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
