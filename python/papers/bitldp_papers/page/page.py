"""Writing of the page, ``report.html``, from the documents in a folder of figures."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bitldp.base.files import replacing
from markupsafe import Markup

from bitldp_papers.figures.drawing import in_page
from bitldp_papers.page.buys import CANDIDATES, attacks_table, buys_table
from bitldp_papers.page.parts import (
    TEMPLATES,
    agreement,
    figure_of,
    marked,
    of_paper,
    overrun,
    standing,
    worded,
)

__all__ = ["drawing", "write_page"]

_SHOWN = 8  # rows of a comparison that are there at once; the rest is behind a click
_WIDE = 520.0  # points: a drawing of more is not shrunk to the width of a phone
_PAPERS = ("bitrand", "ldpfl", "mvu", "fedsel", "brr")


def write_page(folder: Path) -> Path:
    """Write ``report.html`` of the figures in a folder, and return its path.

    Parameters
    ----------
    folder : path
        As `bitldp_papers.figures.make` fills it. Figures that are not there are not on the page.
    """
    documents = _documents(folder)
    counts = Counter(each["status"] for each in documents)
    text = TEMPLATES.get_template("page.html").render(
        candidates=CANDIDATES,
        buys=buys_table(),
        attacks=attacks_table(documents),
        counts=", ".join(f"{count} {status}" for status, count in counts.items()),
        lines=[_line(each) for each in documents],
        figures=[_figure(each, folder) for each in documents],
        shown=_SHOWN,
    )
    page = folder / "report.html"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(page) as file:
        file.write(text.encode())
    return page


def _documents(folder: Path) -> list[dict[str, Any]]:
    """Return the documents of all figures, paper after paper."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*/figure.json")]
    documents = [each for each in found if "form" in each]  # others are of an earlier version

    def order(document: Mapping[str, Any]) -> tuple[int, list[tuple[int, str]]]:
        paper, _, rest = document["name"].partition("-")
        index = _PAPERS.index(paper) if paper in _PAPERS else len(_PAPERS)
        return index, [(int(part) if part.isdigit() else 1 << 20, part) for part in (paper, *rest.split("-"))]

    return sorted(documents, key=order)


def _line(document: Mapping[str, Any]) -> list[str]:
    name = document["name"]
    found = document.get("findings", ())
    lines = [Markup("{}: {}").format(worded(each["word"]), each["says"]) for each in found]
    said = Markup("<br>").join(lines) or document.get("verdict")
    said = said or f"{document['status']}: {document.get('reason', '')}"
    return [Markup('<a href="#{}">{}</a>').format(name, name), document["title"], said]


def _figure(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what the template shows of a figure."""
    if document["status"] != "done":
        return {"reason": "", **document}
    svg = (folder / document["name"] / "figure.svg").read_text(encoding="utf-8")
    drawn = drawing(svg, document["name"])
    findings = [[each["says"], worded(each["word"]), each["because"]] for each in document["findings"]]
    compared = _compared(document["compared"])
    return {**document, "drawing": drawn, "compared": compared, "findings": findings}


def drawing(svg: str, name: str) -> dict[str, Any]:
    """Return the inside of an SVG of matplotlib, its box, its width on the page, and whether that is wide."""
    head = re.search(r"<svg\b[^>]*>", svg)
    tag = head[0] if head else ""
    width, box = re.search(r'width="([\d.]+)pt"', tag), re.search(r'viewBox="([^"]*)"', tag)
    points = float(width[1]) if width else 0.0
    body = Markup(in_page(svg, name))  # matplotlib has escaped its words
    return {
        "body": body,
        "box": box[1] if box else "",
        "width": f"{points * 1.5:.0f}",
        "wide": points > _WIDE,
    }


def _compared(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the numbers side by side; a column in which nothing stands is left out."""
    names = ("What", "Paper", "Formula", "Ours", "Agrees", "Claimed ε", "Exact ε")
    lines = [
        [
            row["what"],
            of_paper(row),
            figure_of(row["formula"]),
            figure_of(row["ours"], row["spread"]),
            agreement(row),
            figure_of(row["claimed"]),
            _exact(row),
        ]
        for row in rows
    ]
    heads, cut = standing(names, lines)
    return {"names": heads, "rows": cut}


def _exact(row: Mapping[str, Any]) -> str:
    """Return the exact epsilon, marked where it is above the claimed one."""
    exact = math.inf if row["exact"] == "infinity" else row["exact"]
    shown = figure_of(exact if exact is None or math.isinf(exact) else round(exact, 4))
    return marked(shown, "bad") if overrun(row, 1e-6) else shown
