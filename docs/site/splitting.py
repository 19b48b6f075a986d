"""Long pages in parts: a page for each section, and an index that lists them with a line each.

The files of docs/ stay whole, so that they read from top to bottom in the repository; the site has them in
pages that are short on a phone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from markdown.extensions.toc import slugify

#: Level of the headings at which a page is cut, by its address.
LEVELS = {
    **dict.fromkeys(
        (
            "bits.md",
            "categorical.md",
            "compression.md",
            "guides/choosing.md",
            "numeric.md",
            "ordered.md",
            "record.md",
            "selection.md",
        ),
        3,
    ),
    "federated.md": 2,
    "tables.md": 2,
    "papers.md": 2,
    "reference/commands.md": 2,
}

_FENCE = re.compile(r"^ *(`{3,}|~{3,})")
_HEADING = re.compile(r"^(#{1,6}) (.+?)(?: \{#([\w.-]+)\})?$")
_LINK = re.compile(r"(?<=\]\()([^)\s#:]*)(#[\w.-]+)?(?=\))")


class Section(NamedTuple):
    """A part of a page: its heading, the anchors in it, and its text below the heading."""

    name: str
    title: str
    anchors: list[str]
    text: str


class Split(NamedTuple):
    """A page in parts."""

    before: str
    sections: list[Section]


def split(markdown: str, level: int) -> Split:
    """Cut a page before each heading of a level; deeper ones stay in their section, higher ones end it.

    What follows a section under a heading of its own, higher than `level`, stays on the page.
    """
    before: list[str] = []
    parts: list[tuple[str, str, list[str], list[str]]] = []
    here, fence = before, ""
    for line in markdown.splitlines():
        found = _FENCE.match(line)
        if found:
            fence = "" if fence and found[1].startswith(fence) else fence or found[1]
        heading = None if fence else _HEADING.match(line)
        if heading:
            depth, title = len(heading[1]), heading[2]
            name = heading[3] or slugify(re.sub(r"[`*]", "", title), "-")
            if depth == level:
                here = []
                parts.append((name, title, [name], here))
                continue
            if depth < level:
                here = before
            elif parts and here is parts[-1][3]:
                parts[-1][2].append(name)
                here.append(line[level - 1 :])  # its page begins with a heading of the first level
                continue
        here.append(line)
    sections = [
        Section(name, title, anchors, "\n".join(text).strip()) for name, title, anchors, text in parts
    ]
    return Split("\n".join(before).strip(), sections)


def moved(pages: Mapping[str, Split]) -> dict[tuple[str, str], str]:
    """Return the page that an anchor of a page is on now."""
    return {
        (address, anchor): f"{address.removesuffix('.md')}/{section.name}.md"
        for address, parts in pages.items()
        for section in parts.sections
        for anchor in section.anchors
    }


def linked(markdown: str, old: str, new: str, places: Mapping[tuple[str, str], str]) -> str:
    """Return a text that moved from one address to another, with its links to where things are now."""

    def resolved(found: re.Match[str]) -> str:
        path, anchor = found[1] or "", found[2] or ""
        if not (path or anchor) or path.startswith("/"):
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(old), path)) if path else old
        target = places.get((target, anchor[1:]), target)
        if target == new and anchor:
            return anchor
        return posixpath.relpath(target, posixpath.dirname(new) or ".") + anchor

    parts = re.split(r"(^ *```.*?^ *```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [_LINK.sub(resolved, part) for part in parts[::2]]
    return "".join(parts)


def index(address: str, parts: Split, line: Callable[[Section], str] | None = None) -> str:
    """Return the page that lists the parts; `line` says each in one sentence."""
    folder = posixpath.basename(address).removesuffix(".md")
    rows = [
        f"- [{section.title}]({folder}/{section.name}.md): {(line or first_sentence)(section)}"
        for section in parts.sections
    ]
    return f"{parts.before}\n\n" + "\n".join(rows) + "\n"


def part(section: Section) -> str:
    """Return the page of a section."""
    anchor = "" if slugify(section.title, "-") == section.name else f" {{#{section.name}}}"
    return f"# {section.title}{anchor}\n\n{section.text}\n"


def first_sentence(section: Section) -> str:
    """Return the first sentence of a section's first paragraph, without its links."""
    for paragraph in section.text.split("\n\n"):
        if re.match(r"[\w\"“*`(\[]", paragraph):
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            return re.split(r"(?<=[.:;])\s(?=[A-Z`])", text, maxsplit=1)[0].rstrip(":;.") + "."
    return ""
