"""Pages and parts that mkdocs builds: reference, commands, papers, sheets, tables, numbers."""

from __future__ import annotations

import posixpath
import re
import sys
from functools import cache
from html import escape, unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import bitldp
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[2] / "tools"))

import choosing
import commands
import explore
import live
import mechanisms
import papers
import project
import reference
import splitting

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

#: Pages that stand beside the site's folder, under the address that they have in it.
BESIDE = {
    "internals/security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}

#: Addresses of the sources and of the site: without them, pages have no edit link and no canonical address.
REPOSITORY = project.repository()

PAPERS = [f"papers/{name}.md" for name in papers.PAPERS]
EXAMPLES = ("flower", "survey", "tables", "telemetry")


def example(name: str) -> str:
    """Return the page of an example: what it says of itself, and its files as they are."""
    folder = ROOT / "examples" / name
    parts = [(folder / "README.md").read_text(encoding="utf-8"), "## The files\n"]
    for path in sorted(folder.rglob("*")):
        language = {".py": "python", ".toml": "toml", ".html": "html", ".js": "js"}.get(path.suffix)
        text = path.read_text(encoding="utf-8").strip() if language else ""
        if text:
            parts.append(f'```{language} title="{path.relative_to(folder)}"\n{text}\n```\n')
    return "\n".join(parts)


@cache
def whole() -> dict[str, str]:
    """Return the text of every page that is generated or cut, before it is cut, by its address."""
    return {
        **papers.pages(),
        "reference/commands.md": commands.page(),
        **{
            address: _filled(address, _read(address))
            for address in splitting.LEVELS
            if (DOCS / address).exists()
        },
    }


@cache
def cut() -> dict[str, splitting.Split]:
    """Return the pages that are cut, in parts, by their address."""
    levels = {**dict.fromkeys(PAPERS, 2), **splitting.LEVELS}
    return {address: splitting.split(whole()[address], level) for address, level in levels.items()}


@cache
def places() -> dict[tuple[str, str], str]:
    """Return the page on which each anchor of a page that was cut stands now."""
    return splitting.moved(cut())


@cache
def parts() -> dict[str, dict[str, str]]:
    """Return the pages that stand below another, and are not in the navigation, by that page's address."""
    below: dict[str, dict[str, str]] = {}
    for address, text in reference.pages().items():
        if address not in reference.indexes():
            below.setdefault(f"{posixpath.dirname(address)}.md", {})[address] = text
    for address, split in cut().items():
        for section in split.sections:
            new = f"{address.removesuffix('.md')}/{section.name}.md"
            text = splitting.linked(splitting.part(section), address, new, places())
            below.setdefault(address, {})[new] = text
    return below


def index(address: str) -> str:
    """Return a page that was cut: what stands before its parts, and a list of them."""
    split = cut()[address]
    if splitting.LEVELS.get(address) == 3:  # a family: its list stands at the top
        text = split.before.replace("\n\n## Each by itself", "")
    elif address.startswith("papers/"):
        text = f"{split.before}\n\n{_overview()[address]}"
    else:
        text = splitting.index(address, split)
    return splitting.linked(text, address, address, places())


@cache
def _overview() -> dict[str, str]:
    """Return the table of each paper, by the address of its page; under "papers.md", what is about all."""
    first, *each = papers.overview().split("\n### ")
    result = {}
    for text in each:
        found = re.search(r"\]\((papers/\w+\.md)\)", text)
        if found is None:
            raise ValueError("a paper's part of the overview does not lead to its page")
        table = text[found.end() :].lstrip(".\n")
        result[found[1]] = splitting.linked(table, "papers.md", found[1], {})
        name, _, said = text[: found.start()].partition("\n\n")
        first += f"\n- [{name}]({found[1]}): {said.rpartition(':')[0]}"
    return {"papers.md": first, **result}


def _read(address: str) -> str:
    return (DOCS / address).read_text(encoding="utf-8")


def _filled(address: str, markdown: str) -> str:
    """Return a page of docs/ with what is computed for it, before it is cut."""
    if "<!-- site:choosing -->" in markdown:
        return markdown.replace("<!-- site:choosing -->", choosing.sections())
    if "<!-- site:papers -->" in markdown:
        return markdown.replace("<!-- site:papers -->", _overview()["papers.md"])
    return mechanisms.filled(markdown) if "<!-- site:list -->" in markdown else markdown


def on_config(config: Any) -> Any:
    """Put the generated pages into the navigation, and the version and the addresses where they are known."""
    for entry in config.nav:
        if entry.get("Papers") == "papers/":
            entry["Papers"] = ["papers.md", *PAPERS]
        if entry.get("Reference") == "reference/":
            entry["Reference"] = [
                *reference.indexes(),
                "reference/commands.md",
                "reference/rust.md",
                "changelog.md",
            ]
    config.copyright = f"bitldp {bitldp.__version__}"
    config.site_url = project.site(REPOSITORY) if REPOSITORY else None  # each page has its canonical address
    if REPOSITORY:
        config.repo_url, config.repo_name = REPOSITORY, REPOSITORY.partition("//")[2].partition("/")[2]
        config.edit_uri = "edit/main/docs/"
        config.theme["features"].append("content.action.edit")
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages and numbers."""
    indexes = {address: reference.pages()[address] for address in reference.indexes()}
    made = {
        **indexes,
        **{address: index(address) for address in cut() if not (DOCS / address).exists()},
        **{address: text for below in parts().values() for address, text in below.items()},
        "reference/rust.md": reference.RUST,
        "assets/explore-data.js": explore.script(),
        "assets/form-data.js": live.script(),
        **{address: (ROOT / name).read_text(encoding="utf-8") for address, name in BESIDE.items()},
        **{f"examples/{name}.md": example(name) for name in EXAMPLES},
    }
    for address, content in made.items():
        files.append(File.generated(config, address, content=content))
    return files


def on_nav(nav: Any, config: Any, files: Files) -> Any:
    """Put pages that stand below another beside it, each with the one before and the one after."""
    for address, below in parts().items():
        upper = files.get_file_from_path(address).page
        row = [upper, *(files.get_file_from_path(each).page for each in below)]
        for before, page in pairwise(row):
            page.parent, page.previous_page, page.next_page = upper.parent, before, None
            if before is not upper:
                before.next_page = page
    return nav


def on_pre_page(page: Any, config: Any, files: Files) -> Any:
    """Let the edit link lead to the file that a page is made of, where there is one."""
    if REPOSITORY and page.file.generated_by:
        source = BESIDE.get(page.file.src_uri)
        upper = next((each for each, below in parts().items() if page.file.src_uri in below), "")
        source = source or (f"docs/{upper}" if (DOCS / upper).is_file() else None)
        page.edit_url = f"{REPOSITORY}/edit/main/{source}" if source else None
    return page


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fill in what is computed, put figures into the page itself, and lead links to pages of the site."""
    address = page.file.src_uri
    if address == "index.md":
        page.meta["hide"] = ["navigation", "toc"]  # the cards lead on
    if address.startswith(("guides/", "concepts/", "start.", "tables.")):  # before names of the reference
        page.meta["search"] = {"boost": 4}
    up = "../" * address.count("/")
    for task in re.findall(r"<!-- site:choosing (\w+) -->", markdown):
        known = {name: f"{up}{link.replace('.md', '.html')}" for name, link in sections().items()}
        markdown = markdown.replace(f"<!-- site:choosing {task} -->", choosing.table(task, known))
    markdown = markdown.replace("<!-- site:all -->", mechanisms.everyone())
    if "<!-- site:form -->" in markdown:
        markdown = markdown.replace("<!-- site:form -->", live.said())
    if address in cut() and (DOCS / address).exists():
        markdown = index(address)
    elif not page.file.generated_by:
        markdown = splitting.linked(markdown, address, address, places())
    markdown = re.sub(r"!\[([^]]*)\]\((?:\.\./)*(?:docs/)?figures/(\w+)\.svg\)", _figure, markdown)
    return re.sub(r"\]\((?:\.\./)+examples/(\w+)/README\.md\)", rf"]({up}examples/\1.md)", markdown)


def sections() -> dict[str, str]:
    """Return the page and the anchor of each mechanism's section."""
    links = (link.partition("#") for link in mechanisms.sections().values())
    now = (f"{places()[page, anchor]}#{anchor}" for page, _, anchor in links)
    return dict(zip(mechanisms.sections(), now, strict=True))


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Describe the page by its first sentences, and name each cell of a wide table after its column."""
    room, _, name = page.file.src_uri.removeprefix("reference/").removesuffix(".md").partition("/")
    said = describing(html)
    whose = f"bitldp.{room}.{name}: " if page.file.src_uri.startswith("reference/") and name else ""
    page.meta.setdefault("description", escape(f"{whose}{said}"))
    return re.sub(r"<table>.*?</table>", lambda found: _labelled(found[0]), html, flags=re.DOTALL)


def describing(html: str) -> str:
    """Return what a search engine shows of a page: whole sentences from its beginning, about 160 letters."""
    html = re.sub(r"<(pre|table|svg|small|style|script|details)\b.*?</\1>", "", html, flags=re.DOTALL)
    result = ""
    html = re.sub(r'<p class="(?:admonition|doc doc-class)[^>]*>.*?</p>', "", html, flags=re.DOTALL)
    for paragraph in re.findall(r"<(?:p|li)\b[^>]*>(.*?)</(?:p|li)>", html, re.DOTALL):
        text = " ".join(unescape(re.sub(r"<[^>]+>", "", paragraph)).split())
        for sentence in re.split(r"(?<=[.?!:])\s+(?=[A-Z])", text):
            if result and len(result) + len(sentence) > 160:
                return result
            result = f"{result} {sentence}".strip()
        if len(result) >= 60:
            return result
    return result


#: Letters that stand beside each other on a phone, about: a table whose words need more becomes cards.
_ACROSS = 40


def _labelled(table: str) -> str:
    """Return a table whose cells carry the names of their columns, if a phone is too narrow for it."""
    heads = [_plain(each) for each in re.findall(r"<th\b[^>]*>(.*?)</th>", table, re.DOTALL)]
    rows = [re.findall(r"<td\b[^>]*>(.*?)</td>", row, re.DOTALL) for row in table.split("<tr>")]
    rows = [row for row in rows if row]
    if not heads or any(len(row) != len(heads) for row in rows):
        return table
    columns = [[head, *map(_plain, column)] for head, *column in zip(heads, *rows, strict=True)]
    words = [max(len(word) for cell in column for word in [*cell.split(), ""]) for column in columns]
    whole = [max(map(len, column)) for column in columns]
    if sum(whole) + 3 * len(heads) <= _ACROSS or (len(heads) == 2 and sum(words) + 6 <= _ACROSS):
        return table
    if len(heads) == 2:
        heads[1] = ""  # below the first cell, which is the card's title
    names = iter(heads * len(rows))
    return re.sub(r"<td\b", lambda _: f'<td data-label="{escape(next(names))}"', table)


def _plain(cell: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", cell)).strip()


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
    """Let the page for what is not found take nothing from elsewhere, and say where to go on."""
    if not template_name.endswith(".html"):
        return output
    home = re.search(r'<a href="([^"]*)"[^>]*md-logo"', output)
    said = f'Search for it above, or begin at the <a href="{home[1]}">home page</a>.' if home else ""
    title = "<h1>404 - Not found</h1>"
    return _at_home(output.replace(title, f"{title}\n<p>There is no such page. {said}</p>"), "")


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
