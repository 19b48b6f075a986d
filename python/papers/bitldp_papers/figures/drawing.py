"""Drawing of a figure as SVG and PNG, in one look; lines for the functions that draw; SVG within a page."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bitldp.base.extras import require
from bitldp.base.palette import GRID, INK, STYLES

from bitldp_papers.figures.result import FigureResult

__all__ = ["LOOK", "drawn", "in_page", "lines"]

LOOK: Any = {
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.titlesize": 11,
    "font.size": 9.5,
    "grid.color": GRID,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.fonttype": "none",  # words stay words: small files, found by a search
    "svg.hashsalt": "bitldp",  # the same figure, the same bytes
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}

#: Colours of a drawing, and of the page instead.
_COLOURS = {
    INK: "currentColor",
    "#000000": "currentColor",
    GRID: "var(--grid)",
    "fill: #ffffff": "fill: none",
    **{color.lower(): f"var(--c{index})" for index, (color, _) in enumerate(STYLES[:-1])},
}


def lines(
    axes: Any,
    lines: Mapping[str, tuple[Any, ...]],
    *,
    spread: Mapping[str, Sequence[float]] | None = None,
    **settings: Any,
) -> None:
    """Draw a line a name, each in its own colour and marker; the legend follows by itself, below.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    lines : mapping
        ``{name: (x, y)}``.
    spread : mapping, optional
        ``{name: standard deviations}``, drawn as bars.
    **settings
        Of ``axes.set``: xlabel, yscale, ...
    """
    for number, (name, (x, y)) in enumerate(lines.items()):
        color, marker = STYLES[number % len(STYLES)]
        dash = ("-", "--", ":")[number // len(STYLES) % 3]
        style: dict[str, Any] = {"color": color, "marker": marker, "linestyle": dash, "label": name}
        if spread and name in spread:
            axes.errorbar(x, y, yerr=spread[name], capsize=2, **style)
        else:
            axes.plot(x, y, **style)
    axes.set(**settings)


def drawn(result: FigureResult, title: str) -> dict[str, bytes]:
    """Return the drawing of an result as "svg" and "png"."""
    require("a figure", ["matplotlib"], "plot")
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    pictures = {}
    with rc_context(LOOK):
        figure = Figure(figsize=(5.6, 4.0), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title, wrap=True)
        (result.draw or _table_of(result))(figure)
        _legend(figure)
        # Without a date, so that the same figure is the same file.
        for form, more in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 140})):
            file = io.BytesIO()
            figure.savefig(file, format=form, **more)
            pictures[form] = file.getvalue()
    return pictures


def in_page(svg: str, name: str) -> str:
    """Return what is inside an SVG of matplotlib, in the colours of the page around it.

    Ink becomes ``currentColor``, the grid ``var(--grid)``, the colours of lines ``var(--c0)`` to
    ``var(--c5)``; a white ground is left out.

    Parameters
    ----------
    svg : str
        As matplotlib writes it.
    name : str
        Of the drawing, put before every id, since one page holds many drawings.
    """
    body = re.search(r"<svg\b[^>]*>(.*)</svg>", svg, flags=re.DOTALL)
    if body is None:
        return ""
    text = re.sub(
        r"<metadata>.*?</metadata>|<defs>\s*<style.*?</defs>|<!--.*?-->", "", body[1], flags=re.DOTALL
    )
    used = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    short = {old: f"{name}-{index}" for index, old in enumerate(used)}
    text = re.sub(r' id="([^"]*)"', lambda each: f' id="{short[each[1]]}"' if each[1] in short else "", text)
    text = re.sub(r'(href="#|url\(#)([^")]+)', lambda each: each[1] + short[each[2]], text)
    text = re.sub(r"\d+\.\d{3,}", lambda each: f"{float(each[0]):.2f}", text)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    for own, of_page in _COLOURS.items():
        text = text.replace(own, of_page)
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    return re.sub(r"(?<=>) (?=<)", "", re.sub(r"\s+", " ", text)).strip()


def _legend(figure: Any) -> None:
    """Name the lines of all panels once, below them, where the drawing did not do so itself."""
    if figure.legends or any(axes.get_legend() for axes in figure.axes):
        return
    named: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if named:
        letters = figure.get_size_inches()[0] / 0.085  # that fit into the width
        columns = max(1, min(len(named), int(letters // (max(map(len, named)) + 8))))
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns)


def _table_of(result: FigureResult) -> Any:
    def draw(figure: Any) -> None:
        columns = list(dict.fromkeys(name for row in result.rows for name in row))
        cells = [[_cell(row.get(name)) for name in columns] for row in result.rows]
        figure.set_size_inches(max(5.6, 1.1 * len(columns)), 0.9 + 0.24 * (len(cells) + 1))
        axes = figure.subplots()
        axes.axis("off")
        table = axes.table(cells, colLabels=columns, loc="upper center", edges="horizontal")
        table.auto_set_font_size(False)
        table.set_fontsize(8)
        table.auto_set_column_width(range(len(columns)))

    return draw


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
