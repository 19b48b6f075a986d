"""Writing of the page from the documents in a folder of figures."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from bitldp.base.files import replacing

from bitldp_papers.page.buys import CANDIDATES, attacks_table, buys_table
from bitldp_papers.page.parts import drawing, figure_of, overrun, standing, table, words

__all__ = ["write_page"]

_HERE = Path(__file__).parent
_SHOWN = 8  # rows of a comparison that are there at once; the rest is behind a click
_PAPERS = ("bitrand", "ldpfl", "mvu", "fedsel", "brr")

_INTRO = (
    "Five papers on local differential privacy, made again with bitldp. ε bounds how much one report may "
    "reveal of "
    "a record: every chance changes by a factor of at most e^ε. The exact ε is computed from the integers "
    "that are "
    f"sampled. “Found” is the chance that an attacker who holds {CANDIDATES:,} candidates, equally likely "
    "before, "
    "names the right one after a single report: the most that the claimed ε would allow, and the most that "
    "the exact "
    "one does."
)
_ENDING = (
    "“Paper” is the number as printed or drawn; “ours” the mean over the seeds, ± one standard deviation. "
    "A blank "
    "exact ε: nothing is released there. Each figure has a folder with its table (CSV), its document (JSON: "
    "parameters, "
    "seeds, versions, checksums of the data) and its drawing (SVG, PNG)."
)


def write_page(folder: Path) -> Path:
    """Write ``report.html`` of the figures in a folder, and return its path.

    Parameters
    ----------
    folder : path
        As `bitldp_papers.figures.make` fills it. Figures that are not there are not on the page.
    """
    documents = _documents(folder)
    counts = Counter(each["status"] for each in documents)
    text = Template((_HERE / "template.html").read_text(encoding="utf-8")).substitute(
        style=(_HERE / "style.css").read_text(encoding="utf-8"),
        intro=_INTRO,
        buys=buys_table(),
        attacks=attacks_table(documents),
        counts=", ".join(f"{count} {status}" for status, count in counts.items()),
        lines=_lines(documents),
        figures="\n".join(_figure(each, folder) for each in documents),
        ending=_ENDING,
    )
    page = folder / "report.html"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(page) as file:
        file.write(text.encode())
    return page


def _documents(folder: Path) -> list[dict[str, Any]]:
    """Return the documents of all figures, paper after paper."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*/figure.json")]

    def order(document: Mapping[str, Any]) -> tuple[int, list[tuple[int, str]]]:
        paper, _, rest = document["name"].partition("-")
        place = _PAPERS.index(paper) if paper in _PAPERS else len(_PAPERS)
        return place, [(int(part) if part.isdigit() else 1 << 20, part) for part in (paper, *rest.split("-"))]

    return sorted(found, key=order)


def _lines(documents: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            f'<a href="#{words(each["name"])}">{words(each["name"])}</a>',
            words(each["title"]),
            words(each.get("verdict") or f"{each['status']}: {each.get('reason', '')}"),
        ]
        for each in documents
    ]
    return table(("Figure", "What", "Verdict"), rows)


def _figure(document: Mapping[str, Any], folder: Path) -> str:
    name = document["name"]
    parts = [
        f'<article id="{words(name)}" class="{words(document["status"])}">',
        f"<h2>{words(document['title'])}</h2>",
        f'<p class="soft">{words(document["source"])} · {words(name)}</p>',
        f"<p>The paper: {words(document['claim'])}</p>",
    ]
    if document["status"] != "done":
        parts.append(f'<p class="bad">{words(document["status"])}: {words(document.get("reason", ""))}</p>')
    else:
        parts += _made(document, (folder / name / "figure.svg").read_text(encoding="utf-8"))
    return "\n".join([*parts, "</article>"])


def _made(document: Mapping[str, Any], svg: str) -> list[str]:
    name = document["name"]
    form = "short form" if document["quick"] else "in full"
    seeds = ", ".join(map(str, document["seeds"]))
    data = ", ".join(document["data"]) or "none"
    notes = [f"{form}, seeds {seeds}, data {data}, {document['seconds']:,.0f} s"]
    links = [f'<a href="{name}/figure.{form}">{form.upper()}</a>' for form in ("csv", "json", "svg", "png")]
    said = [("Honestly", document["honest"]), ("Stand-in", document["stand_in"])]
    return [
        f'<p class="verdict">{words(document["verdict"])}</p>',
        drawing(svg, name),
        _compared(document["compared"]),
        *(f"<p>{title}: {words(text)}</p>" for title, text in said if text),
        f'<p class="soft">{words("; ".join(notes))} · {" ".join(links)}</p>',
    ]


def _compared(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the numbers side by side; a column in which nothing stands is left out."""
    names = ("What", "Paper", "Ours", "Claimed ε", "Exact ε")
    lines = [
        [
            words(row["what"]),
            figure_of(row["paper"]),
            figure_of(row["ours"], row["spread"]),
            figure_of(row["claimed"]),
            _exact(row),
        ]
        for row in rows
    ]
    heads, cut = standing(names, lines)
    right = range(1, len(heads))
    if not cut:
        return ""
    first = table(heads, cut[:_SHOWN], right=right)
    rest = cut[_SHOWN:]
    if not rest:
        return first
    more = f"<summary>{len(rest)} more</summary>{table(heads, rest, right=right)}"
    return f"{first}<details>{more}</details>"


def _exact(row: Mapping[str, Any]) -> str:
    """Return the exact epsilon, marked where it is above the claimed one."""
    exact = math.inf if row["exact"] == "infinity" else row["exact"]
    shown = figure_of(exact if exact is None or math.isinf(exact) else round(exact, 4))
    return f'<span class="bad">{shown}</span>' if overrun(row, 1e-6) else shown
