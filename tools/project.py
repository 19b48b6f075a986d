"""Read what the project says of itself: its version, and the address of its repository.

``repository`` under ``[tool.bitldp]`` of pyproject.toml is the only place that has the address, and
Cargo.toml the only one that has the version. The site (docs/site) and the release (tests/wheel) read both
here.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).parents[1]


def repository(root: Path = ROOT) -> str:
    """Return the address of the repository, without a slash at its end; empty until there is one."""
    described = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    address: str = described["tool"]["bitldp"]["repository"]
    return checked(address) if address else ""


def version(root: Path = ROOT) -> str:
    """Return the version of every distribution."""
    described = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    found: str = described["workspace"]["package"]["version"]
    return found


def checked(address: str) -> str:
    """Return an address, refused where it is not https://host/owner/name."""
    parts = urlsplit(address)
    if parts.scheme != "https" or not re.fullmatch(r"/[\w.-]+/[\w.-]+/?", parts.path) or parts.query:
        raise ValueError(f"repository: must be https://host/owner/name, not {address!r}")
    return address.rstrip("/")


def site(address: str) -> str:
    """Return the address of the site: GitHub's pages of the repository, or the repository's own elsewhere."""
    host, owner, name = urlsplit(address).netloc, *urlsplit(address).path.strip("/").split("/")
    return f"https://{owner.lower()}.github.io/{name}/" if host == "github.com" else f"{address}/pages/"


def urls(address: str) -> dict[str, str]:
    """Return what ``[project.urls]`` says, by label."""
    return {
        "Documentation": site(address),
        "Repository": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
    }
