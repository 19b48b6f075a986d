"""Drawing of a figure as SVG and PNG, in one look, and lines for the functions that draw."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from bitldp.base.errors import require
from bitldp.base.palette import GRID, INK, STYLES

from bitldp_papers.figures.outcome import Outcome

__all__ = ["drawn", "lines"]

_LOOK: Any = {
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
    for place, (name, (x, y)) in enumerate(lines.items()):
        color, marker = STYLES[place % len(STYLES)]
        dash = ("-", "--", ":")[place // len(STYLES) % 3]
        style: dict[str, Any] = {"color": color, "marker": marker, "linestyle": dash, "label": name}
        if spread and name in spread:
            axes.errorbar(x, y, yerr=spread[name], capsize=2, **style)
        else:
            axes.plot(x, y, **style)
    axes.set(**settings)


def drawn(outcome: Outcome, title: str) -> dict[str, bytes]:
    """Return the drawing of an outcome as "svg" and "png"."""
    require("a figure", ["matplotlib"], "plot")
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = {}
    with rc_context(_LOOK):
        figure = Figure(figsize=(5.6, 4.0), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title, wrap=True)
        (outcome.draw or _table_of(outcome))(figure)
        _legend(figure)
        # Without a date, so that the same figure is the same file.
        for form, more in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 140})):
            file = io.BytesIO()
            figure.savefig(file, format=form, **more)
            found[form] = file.getvalue()
    return found


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


def _table_of(outcome: Outcome) -> Any:
    def draw(figure: Any) -> None:
        columns = list(dict.fromkeys(name for row in outcome.rows for name in row))
        cells = [[_cell(row.get(name)) for name in columns] for row in outcome.rows]
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
