"""Pieces of the page: cells, tables, and a drawing that takes the page's colours."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bitldp.base.palette import GRID, INK, STYLES
from bitldp.report import number

__all__ = ["cell", "drawing", "figure_of", "overrun", "standing", "table", "words"]

_WIDE = 520.0  # points: a drawing of more is not shrunk to the width of a phone


def words(text: object) -> str:
    """Return a text as HTML."""
    return html.escape(str(text))


def figure_of(value: Any, spread: Any = None) -> str:
    """Write a number of a document, which may be a word already, with its spread."""
    value = (
        {"infinity": math.inf, "-infinity": -math.inf}.get(value, value) if isinstance(value, str) else value
    )
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return words(value)
    shown = "∞" if math.isinf(value) else number(float(value))
    return f"{shown} ± {number(float(spread), 2)}" if spread else shown


def overrun(row: Mapping[str, Any], slack: float) -> bool:
    """Whether a comparison's exact epsilon is above the claimed one, by more than a relative slack."""
    exact, claimed = (math.inf if row[key] == "infinity" else row[key] for key in ("exact", "claimed"))
    return exact is not None and claimed is not None and exact > claimed * (1.0 + slack)


def standing(names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Return names and rows without the columns in which nothing stands."""
    places = [place for place in range(len(names)) if any(row[place] for row in rows)]
    return [names[place] for place in places], [[row[place] for place in places] for row in rows]


def cell(name: str, text: str, *, kind: str = "") -> str:
    """Return a cell that says its column's name where columns have no room."""
    classes = f' class="{kind}"' if kind else ""
    of = f' data-of="{words(name)}"' if name and text else ""
    return f"<td{classes}{of}>{text}</td>"


def table(names: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Return a table of cells that are HTML already; columns of figures stand to the right."""
    heads = "".join(
        f'<th class="n">{words(name)}</th>' if place in right else f"<th>{words(name)}</th>"
        for place, name in enumerate(names)
    )
    lines = []
    for row in rows:
        cells = [
            cell("" if place == 0 else name, text, kind="n" if place in right else "")
            for place, (name, text) in enumerate(zip(names, row, strict=True))
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def drawing(svg: str, name: str) -> str:
    """Return an SVG for the inside of the page: its names are its own, its ink is the page's.

    Parameters
    ----------
    svg : str
        As matplotlib writes it.
    name : str
        Of the figure; put before every id, since one page holds many drawings.
    """
    found = re.search(r"<svg\b.*</svg>", svg, flags=re.DOTALL)
    if found is None:
        return ""
    text = re.sub(r"<metadata>.*?</metadata>", "", found[0], flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
    for own, of_page in (
        (INK, "currentColor"),
        ("#000000", "currentColor"),
        (GRID, "var(--grid)"),
        (STYLES[0][0].lower(), "var(--blue)"),
        ("fill: #ffffff", "fill: none"),
    ):
        text = text.replace(own, of_page)
    width = re.search(r'<svg[^>]*?width="([\d.]+)pt"', text)
    points = float(width[1]) if width else 0.0
    text = re.sub(
        r'(<svg[^>]*?) width="[\d.]+pt"', rf'\1 style="max-width:{points * 1.5:.0f}px"', text, count=1
    )
    text = re.sub(r'(<svg[^>]*?) height="[\d.]+pt"', r"\1", text, count=1)
    wide = " wide" if points > _WIDE else ""
    return f'<div class="drawing{wide}">{text}</div>'
