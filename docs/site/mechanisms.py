"""Parts of the families' pages: a list of the mechanisms, and numbers and figures of each."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import bitldp
import drawing
from bitldp.report import number

DOCS = Path(__file__).parents[1]
HEADING = re.compile(r"^### `([A-Z]\w+)`$", re.MULTILINE)
_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
_FAR = 9.0  # an exact epsilon beyond it: a claim that fails


@cache
def sheets() -> dict[str, Any]:
    """Return what docs/sheets.py kept of each mechanism."""
    result: dict[str, Any] = json.loads((DOCS / "figures" / "mechanisms.json").read_text(encoding="utf-8"))
    return result


@cache
def sections() -> dict[str, str]:
    """Return the page and the anchor of each mechanism's section, from the folder of the pages."""
    return {
        name: f"{page.stem}.md#{name.lower()}"
        for page in sorted(DOCS.glob("*.md"))
        for name in HEADING.findall(page.read_text(encoding="utf-8"))
    }


def everyone() -> str:
    """Return all mechanisms, page by page, each with a link to its section."""
    by_page: dict[str, list[str]] = {}
    for name, link in sections().items():
        by_page.setdefault(link.partition("#")[0], []).append(f"[`{name}`]({link})")
    rows = [
        f"| {page.removesuffix('.md')} | {', '.join(sorted(links, key=str.lower))} |"
        for page, links in by_page.items()
    ]
    return "\n".join([f"All {len(sections())} of them:\n", "| family | mechanisms |", "|---|---|", *rows])


def filled(markdown: str) -> str:
    """Return the text of a family's page with its list and its sheets."""
    names = HEADING.findall(markdown)
    rows = [f"| [`{name}`](#{name.lower()}) | {_summary(name)} |" for name in names]
    listed = "\n".join(["| mechanism | in one line |", "|---|---|", *rows])
    markdown = markdown.replace("<!-- site:list -->", listed)
    whole = f"{markdown}\n### "
    for name in names:
        begin = whole.index(f"### `{name}`")
        end = whole.index("\n### ", begin + 1)
        section = whole[begin:end].rstrip()
        head = f"### `{name}` {{#{name.lower()}}}\n\n{_summary(name)}."
        section = section.replace(f"### `{name}`", head, 1)
        whole = f"{whole[:begin]}{section}\n{_sheet(name)}\n{whole[end:]}"
    return whole.removesuffix("\n### ")


def _summary(name: str) -> str:
    line = (getattr(bitldp, name).__doc__ or "").split("\n", 1)[0].rstrip(".")
    parts = re.split(r"(`[^`]+`)", line)
    parts[::2] = [re.sub(r"([|_*])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def _sheet(name: str) -> str:
    """Return the numbers and the two figures of a mechanism."""
    sheet = sheets()[name]
    values = dict(zip(_EPSILONS, sheet["values"], strict=True))
    said = ", ".join(f"{number(values[e], 3)} at ε {e:g}" for e in (1.0, 2.0, 4.0))
    bits = "1 bit" if sheet["bits"] == 1 else f"{sheet['bits']:,} bits"
    setting = f" ({sheet['setting']})" if sheet["setting"] else ""
    measure = sheet["measure"][0].upper() + sheet["measure"][1:]
    lines = [f"- **{measure}.** {said}; a report takes {bits}{setting}."]
    lines += [f"- **Its guarantee at ε 1.** {_guarantee(sheet['guarantee'])}."]
    if "proof" in sheet:
        lines.append(f"- **Its bound at ε 1.** {sheet['proof'][0].upper()}{sheet['proof'][1:]}.")
    panels = [_error(name, sheet)] + ([sheet["law"]] if sheet["law"] else [])
    room = getattr(bitldp, name).__module__.split(".")[1]
    reference = f"[All parameters](reference/{room}/{name}.md#{_where(name, room)})"
    drawn = drawing.inline(panels, f"{name}: {sheet['measure']} against ε", name.lower())
    return "\n".join([*lines, "", drawn, "", reference])


def _where(name: str, room: str) -> str:
    """Return the anchor of a class on the page of its room, which may export it or only define it."""
    module = __import__(f"bitldp.{room}", fromlist=["__all__"])
    if name in getattr(module, "__all__", ()):
        return f"bitldp.{room}.{name}"
    return f"{getattr(bitldp, name).__module__}.{name}"


def _guarantee(kept: dict[str, Any]) -> str:
    delta = f", δ {number(kept['delta'], 2)}" if kept["delta"] else ""
    parts = [f"exact {number(kept['record'])} a record{delta}"]
    parts += [f"{number(kept['feature'])} a feature", f"{number(kept['bit'])} the worst bit"]
    holds = "holds" if kept["holds"] else "**fails**"
    return f"{', '.join(parts)}; claimed {number(kept['claimed'])}: {holds}"


def _error(name: str, sheet: dict[str, Any]) -> dict[str, Any]:
    """Return the panel of the error, with those it can be compared with behind it."""
    alike = {other: each for other, each in sheets().items() if other != name and _comparable(sheet, each)}
    lines = [
        {"name": other, "x": each["exact"], "y": each["values"], "kind": "pale"}
        for other, each in alike.items()
    ]
    lines.append({"name": name, "x": sheet["exact"], "y": sheet["values"], "colour": 0})
    if alike:
        lines.append({"name": "others of the same task", "x": [], "y": [], "kind": "behind"})
    across: dict[str, Any] = {"scale": "log", "label": "exact ε of a record"}
    if max(sheet["exact"]) < _FAR:
        across["names"] = {f"{epsilon:g}": f"{epsilon:g}" for epsilon in _EPSILONS}
    linear = sheet["measure"].startswith("chance")
    return {
        "title": "By ε" if linear else "Error by ε",
        "x": across,
        "y": {"scale": "linear" if linear else "log", "label": sheet["measure"]},
        "lines": lines,
    }


def _comparable(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two sheets are of the same task, of records of the same size."""
    if (one["takes"], one["measure"]) != (other["takes"], other["measure"]):
        return False
    if max(one["exact"]) > _FAR or max(other["exact"]) > _FAR:
        return False
    if one["takes"] in ("reals", "categories", "points"):
        return "features" not in one["setting"] + other["setting"]
    return bool(one["setting"] == other["setting"])
