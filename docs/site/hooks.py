"""What mkdocs builds beside the written pages: reference, commands, numbers of the interactive page."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

import commands
import explore
import reference

ROOT = Path(__file__).parents[2]

#: Pages that stand beside the site's folder, under the address that they have in it.
BESIDE = {
    "internals/security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}

EXAMPLES = ("flower", "tables", "telemetry")


def example(name: str) -> str:
    """Return the page of an example: what it says of itself, and its files as they are."""
    folder = ROOT / "examples" / name
    parts = [(folder / "README.md").read_text(encoding="utf-8"), "## The files\n"]
    for path in sorted(folder.rglob("*")):
        language = {".py": "python", ".toml": "toml"}.get(path.suffix)
        text = path.read_text(encoding="utf-8").strip() if language else ""
        if text:
            parts.append(f'```{language} title="{path.relative_to(folder)}"\n{text}\n```\n')
    return "\n".join(parts)


def on_config(config: Any) -> Any:
    """Put the generated pages into the navigation."""
    for place in config.nav:
        if place.get("Reference") == "reference/":
            place["Reference"] = [
                *reference.pages(),
                "reference/commands.md",
                "reference/rust.md",
                "changelog.md",
            ]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages and numbers."""
    made = {
        **reference.pages(),
        "reference/commands.md": commands.page(),
        "reference/rust.md": reference.RUST,
        "assets/explore-data.js": explore.script(),
        **{address: (ROOT / name).read_text(encoding="utf-8") for address, name in BESIDE.items()},
        **{f"examples/{name}.md": example(name) for name in EXAMPLES},
    }
    for address, content in made.items():
        files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links to what stands beside the site's folder in a checkout lead to its page."""
    up = "../" * page.file.src_uri.count("/")
    return re.sub(r"\]\((?:\.\./)+examples/(\w+)/README\.md\)", rf"]({up}examples/\1.md)", markdown)
