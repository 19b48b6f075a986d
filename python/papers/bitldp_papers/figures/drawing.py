"""Drawing of a figure as SVG and PNG, in one look; lines for the functions that draw; SVG within a page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, TypeAlias

from bitldp.base.errors import require
from bitldp.base.palette import GRID, INK, STYLES

from bitldp_papers.figures.compared import spread
from bitldp_papers.figures.result import FigureResult

__all__ = ["LOOK", "Line", "drawn", "in_page", "lines", "panels", "score_name", "scored"]

#: x and y of a line, and perhaps the standard deviations of y; a number is a constant over the width.
Line: TypeAlias = tuple[Any, ...] | float

_FEW = 8  # values of x, each of which is marked on a logarithmic axis

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


def score_name(score: str) -> str:
    """Return what a score of a run is called in a figure."""
    return "AUC" if score == "auc" else score


def lines(axes: Any, lines: Mapping[str, Line], **settings: Any) -> None:
    """Draw a line a name, each in its own colour and marker; the legend follows by itself, below.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    lines : mapping
        ``{name: (x, y)}``, or ``{name: (x, y, standard deviations)}``: these are drawn as bars; or
        ``{name: y}``, a constant: a dotted line in ink over the whole width.
    **settings
        Of ``axes.set``: xlabel, yscale, ...
    """
    constants = {name: line for name, line in lines.items() if not isinstance(line, tuple)}
    for (name, y), pattern in zip(constants.items(), (":", "-.", "--", (0, (1, 4))), strict=False):
        axes.axhline(float(y), color=INK, linestyle=pattern, linewidth=1.2, label=name)
    drawn = {name: line for name, line in lines.items() if isinstance(line, tuple)}
    for number, (name, (x, y, *bars)) in enumerate(drawn.items()):
        color, marker = STYLES[number % len(STYLES)]
        turn = number // len(STYLES)
        style: dict[str, Any] = {"color": color, "marker": marker, "label": name}
        style["linestyle"] = ("-", "--", ":")[turn % 3]
        if turn:  # the same colour again: with a hollow marker
            style["markerfacecolor"] = "white"
        if bars:
            axes.errorbar(x, y, yerr=bars[0], capsize=2, **style)
        else:
            axes.plot(x, y, **style)
    axes.set(**settings)


def scored(x: Sequence[float], scores: Iterable[Sequence[float]]) -> Line:
    """Return a line of mean scores with the deviations between them as bars: 0 of a single score."""
    values = list(scores)
    return x, [fmean(some) for some in values], [spread(some) or 0.0 for some in values]


def panels(
    shown: Mapping[str, Mapping[str, Line]],
    *,
    size: tuple[float, float] | None = None,
    columns: int = 0,
    sharex: bool = False,
    sharey: bool = False,
    **settings: Any,
) -> Callable[[Any], None]:
    """Return the drawing of `lines` in panels by title; a sole panel needs none: ``{"": lines}``.

    Parameters
    ----------
    shown : mapping
        ``{title: lines}``.
    size : tuple of float, optional
        Width and height in inches.
    columns : int
        Of panels; all side by side by default.
    sharex, sharey : bool
        Whether panels have the same axis; of a y that is shared, the first panel alone has the label.
    **settings
        Of ``axes.set``, for every panel.
    """

    def draw(canvas: Any) -> None:
        if size:
            canvas.set_size_inches(*size)
        across = columns or len(shown)
        grid = canvas.subplots(
            -(-len(shown) // across), across, sharex=sharex, sharey=sharey, squeeze=False
        ).ravel()
        for axes, (title, some) in zip(grid, shown.items(), strict=False):
            lines(axes, some, title=title, **settings)
            _ticks(axes, some)
            if sharey and axes is not grid[0]:
                axes.set_ylabel("")
        for axes in grid[len(shown) :]:
            axes.set_visible(False)

    return draw


def _ticks(axes: Any, lines: Mapping[str, Line]) -> None:
    """Mark few values of x themselves on a logarithmic axis, whole ones by whole numbers on a linear one."""
    values = sorted({float(x) for line in lines.values() if isinstance(line, tuple) for x in line[0]})
    if axes.get_xscale() == "log":
        if 1 < len(values) <= _FEW and all(b >= 1.5 * a for a, b in pairwise(values)):
            axes.set_xticks(values, [f"{each:g}" for each in values])
            axes.set_xticks([], minor=True)
    elif values and all(each.is_integer() for each in values):
        axes.xaxis.get_major_locator().set_params(integer=True)


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
