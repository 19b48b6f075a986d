"""Copy the tree into a folder as it is released, with the address of the repository written in.

    python tests/wheel/stage.py FOLDER [--repository URL] [--tag TAG]

``repository`` under ``[tool.bitldp]`` of pyproject.toml is the only place that has the address, and
tools/project.py reads it; ``--repository`` stands in for it in a trial. In the copy, each pyproject.toml has
``[project.urls]``, each published crate its repository, CITATION.cff its ``repository-code``, the conda
recipe its source, and each README absolute links, which a package index needs. The README's note that the
package is not published is left out.
Without an address it refuses, and so does the release workflow.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

sys.path.append(str(Path(__file__).parents[2] / "tools"))

from project import ROOT, checked, repository, site, urls, version

NOWHERE = "pyproject.toml, [tool.bitldp] repository: needs the address of the repository before a release"
CRATES = ("rust/core/", "rust/client/")
PASSAGE = re.compile(r"<!-- unpublished:begin -->\n.*?<!-- unpublished:end -->\n+", re.DOTALL)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^]]*)\]\((?P<target>[^()\s]+)\)")


def absolute(markdown: str, address: str, tag: str, folder: str = "") -> str:
    """Return Markdown of a folder whose links lead to the repository at a tag; links within the page stay."""

    def lead(found: re.Match[str]) -> str:
        target = found["target"]
        if urlsplit(target).scheme or target.startswith("#"):
            return found[0]
        kind = "raw" if found["image"] else "blob"
        return (
            f"{found['image']}[{found['text']}]({address}/{kind}/{tag}/{folder}{target.removeprefix('./')})"
        )

    return LINK.sub(lead, PASSAGE.sub("", markdown))


def written(root: Path, address: str) -> dict[str, str]:
    """Return the files that differ from the tree, as they are released, by path."""

    def read(path: str) -> str:
        return (root / path).read_text(encoding="utf-8")

    number = version(root)
    named = "\n".join(f'{label} = "{url}"' for label, url in urls(address).items())
    told: dict[str, str] = {}
    for folder in ("", "python/papers/", "python/prio/"):
        told[f"{folder}pyproject.toml"] = (
            f"{read(f'{folder}pyproject.toml').rstrip()}\n\n[project.urls]\n{named}\n"
        )
        told[f"{folder}README.md"] = absolute(read(f"{folder}README.md"), address, f"v{number}", folder)
    for folder in CRATES:
        manifest = read(f"{folder}Cargo.toml")
        told[f"{folder}Cargo.toml"] = manifest.replace(
            "[package]\n", f'[package]\nrepository = "{address}"\n'
        )
        told[f"{folder}README.md"] = absolute(read(f"{folder}README.md"), address, f"v{number}", folder)
    notes = read("CITATION.cff")
    return told | {
        "CITATION.cff": f'{notes.rstrip()}\nrepository-code: "{address}"\nurl: "{site(address)}"\n',
        "conda/recipe.yaml": read("conda/recipe.yaml").replace(
            "https://repository.invalid/bitldp/bitldp", address
        ),
    }


def stage(folder: Path, address: str, root: Path = ROOT) -> None:
    """Fill a folder with the files that git knows, and those that are built for the wheel."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True).stdout
    built = [str(path.relative_to(root)) for path in root.glob("python/bitldp/client/web/*.wasm")]
    for name in [*filter(None, listed.decode().split("\0")), *built]:
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    for name, text in written(root, address).items():
        (folder / name).write_text(text, encoding="utf-8")


def main() -> int:
    """Fill the folder; return 1 where there is no address, or the tag is another version's."""
    parser = argparse.ArgumentParser(description="Copy the tree into a folder as it is released.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repository", type=checked, help="stands in for the variable, in a trial")
    parser.add_argument(
        "--tag", default=f"v{version()}", help="of the release; it must be that of the version"
    )
    asked = parser.parse_args()
    if asked.tag != f"v{version()}":
        print(f"{asked.tag}: is not v{version()}, the version of Cargo.toml", file=sys.stderr)
        return 1
    address = asked.repository or repository()
    if not address:
        print(NOWHERE, file=sys.stderr)
        return 1
    stage(asked.folder, address)
    print(f"{asked.folder}: version {version()}, {address}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
