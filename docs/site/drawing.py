"""Drawings of numbers as SVG by matplotlib, with words that stay words and the colours of the page.

A panel is a plain dict, so that it is kept as JSON as it is drawn; or it has a function "draw" that is
called with the axes. Every key but "lines" may be missing:

    {"title": "", "x": AXIS, "y": AXIS, "lines": [LINE], "rules": [RULE], "words": [WORD], "image": IMAGE}
    AXIS  {"label": "", "scale": "log" or "linear", "range": [low, high], "names": {"1": "a"}}
    LINE  {"name": "", "x": [], "y": [], "spread": [], "kind": "line", "dots", "step", "pale" or "behind"}
          and "colour": 0 to 20; pale lines stay behind the others, and "behind" names them in the legend
    RULE  {"axis": "x" or "y", "at": 1.0, "name": "", "colour": 0}
    WORD  {"x": 1.0, "y": 2.0, "text": "", "side": "left" or "right"}
    IMAGE [[shares of ink by row and column]]
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from bitldp.base.palette import GRID, INK, STYLES
from bitldp_papers.figures import drawing as looks
from bitldp_papers.figures.drawing import LOOK, in_page
from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

KEPT = Path(__file__).parents[2] / "target" / "drawings"
WIDTH, HEIGHT, ROW = 4.2, 3.1, 0.2  # inches: of a panel without its legend, and of a row of the legend
GAP = 12  # points between panels of a file
LETTER = 0.066  # inches that a letter of the legend takes, about
_ACROSS, _ALONG = 48, 38  # letters of a line of a label: of the x axis, of the y axis
_DASHES = ("-", "--", ":")

#: Of a file by itself; on the site these rules stand in assets/site.css.
STYLE = """<style>.plot{--grid:#dededf;--c0:#0072b2;--c1:#c65500;--c2:#00845f;--c3:#b95f93;--c4:#b57d00;\
--c5:#3a9bd0;color:#1a1a1b;font-family:sans-serif}.plot *{stroke-linejoin:round}\
@media(prefers-color-scheme:dark){.plot{--grid:#47474d;--c0:#5ab4ea;--c1:#ff8a3d;--c2:#3ccb9f;--c3:#e79ac6;--c4:#f0b93f;--c5:#9bd3f5;\
color:#e4e4e6}}</style>"""


def document(panels: Sequence[dict[str, Any]], alt: str) -> str:
    """Return a picture of panels side by side, as a file by itself."""
    drawn = [_panel(panel, f"p{index}") for index, panel in enumerate(panels)]
    width, height = 72 * WIDTH, max(tall for _, tall in drawn)
    inside = "\n".join(
        f'<svg class="plot" x="{index * (width + GAP):g}" width="{width:g}" height="{tall:g}" '
        f'viewBox="0 0 {width:g} {tall:g}">{parts}</svg>'
        for index, (parts, tall) in enumerate(drawn)
    )
    whole = len(drawn) * (width + GAP) - GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {whole:g} {height:g}" width="{1.4 * whole:g}" height="{1.4 * height:g}" role="img">'
        f"<title>{escape(alt)}</title>{STYLE}\n{inside}\n</svg>\n"
    )


def inline(panels: Sequence[dict[str, Any]], alt: str, name: str) -> str:
    """Return panels for a page, which stand below each other where it is narrow.

    Parameters
    ----------
    panels : sequence of dict
    alt : str
        Read out in place of the drawing.
    name : str
        Of the drawing, unlike any other on the page.

    Notes
    -----
    A drawing is kept in target/drawings, by all that it depends on: most of the site's time goes into them.
    """
    if os.environ.get("BITLDP_SITE_DRAFT"):
        return _blank(panels, alt)
    given = [
        json.dumps(panels, sort_keys=True),
        alt,
        name,
        matplotlib.__version__,
        *map(_source, (__file__, looks.__file__)),
    ]
    kept = KEPT / f"{hashlib.sha256(json.dumps(given).encode()).hexdigest()}.html"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(_inline(panels, alt, name), encoding="utf-8")
    return kept.read_text(encoding="utf-8")


def _source(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def _blank(panels: Sequence[dict[str, Any]], alt: str) -> str:
    """Return the room that panels take, for a site that is measured only."""
    box = f"0 0 {72 * WIDTH:g} {72 * HEIGHT:g}"
    drawn = f'<svg class="plot" viewBox="{box}" role="img" aria-label="{escape(alt)}"></svg>'
    return f'<div class="plots">{drawn * len(panels)}</div>'


def _inline(panels: Sequence[dict[str, Any]], alt: str, name: str) -> str:
    parts = []
    for index, panel in enumerate(panels):
        drawn, tall = _panel(panel, f"{name}-{index}")
        said = f"{alt}: {panel['title']}" if panel.get("title") and len(panels) > 1 else alt
        parts.append(
            f'<svg class="plot" viewBox="0 0 {72 * WIDTH:g} {tall:g}" role="img" '
            f'aria-label="{escape(said)}">{drawn}</svg>'
        )
    return f'<div class="plots">{"".join(parts)}</div>'


def _panel(panel: dict[str, Any], name: str) -> tuple[str, float]:
    """Return the parts of one panel, and its height in points."""
    lines = [(line, line.get("colour", index)) for index, line in enumerate(panel.get("lines", ()))]
    named = [line["name"] for line, _ in lines if line["name"] and line.get("kind") != "pale"]
    columns = max(1, min(len(named), int(WIDTH / (LETTER * max(map(len, named), default=0) + 0.4))))
    height = HEIGHT + ROW * -(-len(named) // columns)
    with rc_context({**LOOK, "axes.titleweight": "bold", "font.size": 8.5, "legend.fontsize": 7.5}):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        if "draw" in panel:
            panel["draw"](axes)
            return _saved(figure, name), 72.0 * height
        axes.set_title(panel.get("title", ""), loc="left")
        if panel.get("image"):
            edges = [np.arange(size + 1) - 0.5 for size in np.shape(panel["image"])]
            axes.pcolormesh(*reversed(edges), panel["image"], cmap=_ink(), vmin=0.0, vmax=1.0)
            axes.grid(visible=False)
        for line, colour in lines:
            _line(axes, line, colour)
        for rule in panel.get("rules", ()):
            _rule(axes, rule)
        for word in panel.get("words", ()):
            side = word.get("side", "left")
            apart = (-3 if side == "right" else 3, 3)
            place = {"ha": side, "xytext": apart, "textcoords": "offset points"}
            axes.annotate(word["text"], (word["x"], word["y"]), fontsize=7, **place)
        for axis, scale in (("x", panel.get("x", {})), ("y", panel.get("y", {}))):
            _scale(axes, axis, scale)
        if named:
            figure.legend(loc="outside lower center", ncols=columns)
        return _saved(figure, name), 72.0 * height


def _saved(figure: Any, name: str) -> str:
    """Return a figure's parts for a page."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    return in_page(file.getvalue().decode(), name)


def _line(axes: Any, line: dict[str, Any], colour: int) -> None:
    kind, name = line.get("kind", "line"), line["name"] or "_"
    if kind in ("pale", "behind"):
        axes.plot(line["x"], line["y"], color=GRID, zorder=1, label="_" if kind == "pale" else name)
        return
    color, marker = STYLES[colour % len(STYLES)]
    settings: dict[str, Any] = {
        "color": color,
        "label": name,
        "linestyle": _DASHES[colour // len(STYLES) % 3],
    }
    if kind == "dots":
        settings["linestyle"] = "none"
    if kind == "dots" or len(line["x"]) <= 24:
        settings["marker"] = marker
    if kind == "step":
        settings |= {"drawstyle": "steps-post", "marker": ""}
    if line.get("spread"):
        axes.errorbar(line["x"], line["y"], yerr=line["spread"], capsize=2, **settings)
    else:
        axes.plot(line["x"], line["y"], **settings)


def _rule(axes: Any, rule: dict[str, Any]) -> None:
    color = STYLES[rule["colour"] % len(STYLES)][0] if "colour" in rule else INK
    across = rule["axis"] == "y"
    (axes.axhline if across else axes.axvline)(rule["at"], color=color, linestyle=":", linewidth=1)
    if rule.get("name"):
        anchor = (0.99, rule["at"]) if across else (rule["at"], 0.02)
        turned = (
            {"ha": "right", "va": "bottom"} if across else {"ha": "right", "va": "bottom", "rotation": 90}
        )
        transform = axes.get_yaxis_transform() if across else axes.get_xaxis_transform()
        axes.annotate(rule["name"], anchor, xycoords=transform, fontsize=7, **turned)


def _scale(axes: Any, name: str, axis: dict[str, Any]) -> None:
    label = fill(axis.get("label", ""), _ACROSS if name == "x" else _ALONG)  # in full, on several lines
    axes.set(**{f"{name}label": label, f"{name}scale": axis.get("scale", "linear")})
    if axis.get("range"):
        axes.set(**{f"{name}lim": axis["range"]})
    if names := axis.get("names"):
        ticks = getattr(axes, f"{name}axis")
        ticks.set_ticks([float(at) for at in names], list(names.values()))
        ticks.set_minor_locator(NullLocator())
        ticks.set_minor_formatter(NullFormatter())


def _ink() -> Any:
    """Return shades from nothing to the first colour, by their opacity."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    return LinearSegmentedColormap.from_list("ink", [to_rgba(STYLES[0][0], 0.0), to_rgba(STYLES[0][0], 1.0)])
