"""Parts of the page: its templates, numbers as words, tables, and marks of claims that fail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bitldp.report import number
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

__all__ = [
    "TEMPLATES",
    "agreement",
    "figure_of",
    "marked",
    "of_paper",
    "overrun",
    "standing",
    "table",
    "worded",
]

#: Texts that come from documents are escaped.
TEMPLATES = Environment(
    loader=PackageLoader("bitldp_papers", "page"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)


def figure_of(value: Any, spread: Any = None) -> str:
    """Write a number of a document, which may be a word already, with its spread."""
    value = (
        {"infinity": math.inf, "-infinity": -math.inf}.get(value, value) if isinstance(value, str) else value
    )
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    shown = "∞" if math.isinf(value) else number(float(value))
    return f"{shown} ± {number(float(spread), 2)}" if spread else shown


def of_paper(row: Mapping[str, Any]) -> str:
    """Write the paper's number of a comparison: as it is printed, or as it was read off a drawing."""
    return str(row["text"] or figure_of(row["paper"], row["within"]))


def agreement(row: Mapping[str, Any]) -> str:
    """Return whether ours is the paper's number: a word, or nothing where there is none to compare."""
    if not row.get("reached", True):
        return "not reached"
    if row["agrees"] is None:
        return "within the spread" if row["kind"] in ("printed", "drawn") else ""
    return "yes" if row["agrees"] else marked("no", "bad")


def worded(word: str) -> str:
    """Return the word of a finding in its colour."""
    kinds = {"holds": "good", "does not hold": "bad", "sign holds, size does not": "bad"}
    return marked(word, kinds[word]) if word in kinds else word


def overrun(row: Mapping[str, Any], slack: float) -> bool:
    """Tell whether a comparison's exact epsilon is above the claimed one, by more than a relative slack."""
    exact, claimed = (math.inf if row[key] == "infinity" else row[key] for key in ("exact", "claimed"))
    return exact is not None and claimed is not None and exact > claimed * (1.0 + slack)


def marked(text: str, kind: str) -> Markup:
    """Return a text in the colour of "good" or "bad"."""
    return Markup('<span class="{}">{}</span>').format(kind, text)


def standing(names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Return names and rows without the columns in which nothing stands."""
    kept = [index for index in range(len(names)) if any(row[index] for row in rows)]
    return [names[index] for index in kept], [[row[index] for index in kept] for row in rows]


def table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Markup:
    """Return a table as HTML; columns of figures stand to the right."""
    macro: Any = TEMPLATES.get_template("tables.html").module
    return Markup(macro.table(names, rows, right))
