"""Plots of accuracy against exact epsilon, and over the rounds of a federated run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from os import PathLike
from statistics import fmean, stdev
from typing import Any

from bitldp.base.errors import require
from bitldp.base.palette import STYLES

__all__ = ["accuracy_plot", "rounds_plot"]


def accuracy_plot(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    references: Mapping[str, Mapping[str, float]],
    path: str | PathLike[str],
    *,
    title: str,
) -> None:
    """Save a PNG of accuracy against exact epsilon: a panel for each data set, a line for each mechanism.

    Parameters
    ----------
    panels : mapping
        ``{data set: {mechanism: [(exact epsilon of a record, accuracy), ...]}}``.
    references : mapping
        ``{data set: {name: accuracy}}``: horizontal lines.
    path : path
        The file to write.
    title : str
        Title of the figure.

    Raises
    ------
    MissingExtraError
        Without matplotlib (extra ``plot``).
    """
    require("a plot", ["matplotlib"], "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter, PercentFormatter

    figure = Figure(figsize=(6.4 * len(panels), 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    styles = dict(
        zip(sorted({name for lines in panels.values() for name in lines}), STYLES * 3, strict=False)
    )
    for axis, (data, lines) in zip(axes, panels.items(), strict=True):
        for name, points in lines.items():
            ordered = sorted(point for point in points if 0 < point[0] < math.inf)
            color, marker = styles[name]
            axis.plot(*zip(*ordered, strict=True), color=color, marker=marker, label=name, linewidth=1.8)
        for (name, level), dashes in zip(references.get(data, {}).items(), ("--", ":", "-."), strict=False):
            axis.axhline(level, color="0.25", linestyle=dashes, linewidth=1.2, label=name)
        axis.set(
            xscale="log",
            xlabel="exact epsilon of a record (features and label)",
            title=data,
            ylim=(0.0, 1.02),
        )
        axis.xaxis.set_major_formatter(LogFormatter())
        axis.yaxis.set_major_formatter(PercentFormatter(1.0))
        axis.grid(True, which="major", color="0.9")
    axes[0].set_ylabel("accuracy on clean test records")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(title)
    figure.savefig(path, dpi=130, format="png")


def rounds_plot(
    runs: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]],
    metric: str,
    path: str | PathLike[str],
    *,
    title: str,
) -> None:
    """Save a PNG of the score of federated runs by round: of several seeds, mean and standard deviation.

    Parameters
    ----------
    runs : mapping
        ``{mechanism: [rows of a run, ...]}``; a row holds "round", and the score under `metric`, or None.
    metric : str
        Name of the score; "accuracy" is drawn from 0 to 100 %.
    path : path
        The file to write.
    title : str

    Raises
    ------
    MissingExtraError
        Without matplotlib (extra ``plot``).
    """
    require("a plot", ["matplotlib"], "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = Figure(figsize=(6.8, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    for (name, those), (color, marker) in zip(runs.items(), STYLES * 3, strict=False):
        scores: dict[int, list[float]] = {}
        for row in chain.from_iterable(those):
            if row.get(metric) is not None:
                scores.setdefault(row["round"], []).append(row[metric])
        rounds, means = list(scores), [fmean(each) for each in scores.values()]
        axis.plot(rounds, means, color=color, marker=marker, markersize=4, linewidth=1.8, label=name)
        if len(those) > 1:
            spread = [stdev(each) if len(each) > 1 else 0.0 for each in scores.values()]
            low, high = (
                [mean + side * each for mean, each in zip(means, spread, strict=True)] for side in (-1, 1)
            )
            axis.fill_between(rounds, low, high, color=color, alpha=0.2, linewidth=0)
    if len(runs) > 1:
        axis.legend(frameon=False)
    axis.set(xlabel="round", ylabel=f"{metric} on clean test records", title=title)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    if metric == "accuracy":
        axis.set_ylim(0.0, 1.02)
        axis.yaxis.set_major_formatter(PercentFormatter(1.0))
    axis.grid(True, which="major", color="0.9")
    figure.savefig(path, dpi=130, format="png")
