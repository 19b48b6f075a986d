"""Pages and parts that mkdocs builds: reference, commands, papers, sheets, tables, numbers."""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "wheel"))
sys.path.insert(0, str(Path(__file__).parent))

import choosing
import commands
import explore
import mechanisms
import papers
import reference
import stage

ROOT = Path(__file__).parents[2]

#: Pages that stand beside the site's folder, under the address that they have in it.
BESIDE = {
    "internals/security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}

EXAMPLES = ("flower", "survey", "tables", "telemetry")


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
    """Put the generated pages into the navigation, and the repository's address where there is one."""
    address = stage.repository()
    if address:
        config.site_url = stage.site(address)  # of which each page has its canonical address
        config.repo_url, config.repo_name = address, address.partition("//")[2].partition("/")[2]
        config.edit_uri = "edit/main/docs/"
        config.theme["features"].append("content.action.edit")
    for entry in config.nav:
        if entry.get("Papers") == "papers/":
            entry["Papers"] = ["papers.md", *papers.pages()]
        if entry.get("Reference") == "reference/":
            entry["Reference"] = [
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
        **papers.pages(),
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
    """Fill in what is computed, put figures into the page itself, and lead links to pages of the site."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]  # the cards lead on
    up = "../" * page.file.src_uri.count("/")
    if "<!-- site:choosing -->" in markdown:
        known = {name: f"{up}{link.replace('.md', '.html')}" for name, link in mechanisms.sections().items()}
        markdown = markdown.replace("<!-- site:choosing -->", choosing.tables(known))
    if "<!-- site:papers -->" in markdown:
        markdown = markdown.replace("<!-- site:papers -->", papers.overview())
    markdown = markdown.replace("<!-- site:all -->", mechanisms.everyone())
    if "<!-- site:list -->" in markdown:
        markdown = mechanisms.filled(markdown)
    markdown = re.sub(r"!\[([^]]*)\]\((?:\.\./)*(?:docs/)?figures/(\w+)\.svg\)", _figure, markdown)
    return re.sub(r"\]\((?:\.\./)+examples/(\w+)/README\.md\)", rf"]({up}examples/\1.md)", markdown)


def _figure(found: re.Match[str]) -> str:
    """Return the panels of a picture as parts of the page: they follow its colours and its width."""
    alt, name = found.groups()
    picture = (ROOT / "docs" / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    panels = re.findall(r'<svg class="plot".*?viewBox="([^"]*)">(.*?)</svg>', picture, re.DOTALL)
    drawn = "".join(
        f'<svg class="plot" viewBox="{box}" role="img" aria-label="{escape(alt)}">{parts}</svg>'
        for box, parts in panels
    )
    drawn = re.sub(r'(id="|#)(?=p\d+-\d)', rf"\g<1>{name}-", drawn)  # unlike those of other drawings
    return f'<div class="plots">{drawn}</div>'


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """Let the page for what is not found take nothing from elsewhere."""
    return _at_home(output, "") if template_name.endswith(".html") else output


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Let a page take nothing from elsewhere: what searches in a folder comes with the site."""
    return _at_home(output, "../" * page.file.src_uri.count("/"))


def _at_home(output: str, up: str) -> str:
    fetched = '<script src="https://unpkg.com/iframe-worker/shim"></script>'
    output = output.replace(fetched, f'<script src="{up}assets/worker.js"></script>')
    found = re.search(
        r'<(?:script|img|iframe|link rel="stylesheet")[^>]* (?:src|href)="(?:https?:)?//[^"]*"', output
    )
    if found:
        raise ValueError(f"a page takes something from elsewhere: {found[0]}")
    return output
