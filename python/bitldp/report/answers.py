"""Plots of answers to questions about released tables: forests of intervals, heat maps, bands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.palette import INK, STYLES
from bitldp.report.axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_answer"]


class Shown(Protocol):
    """The part of `bitldp.tables.TableAnswer` that is drawn."""

    @property
    def what(self) -> str: ...

    @property
    def column(self) -> str: ...

    @property
    def keys(self) -> Mapping[str, Any]: ...

    @property
    def level(self) -> float: ...

    @property
    def whole(self) -> bool: ...

    @property
    def span(self) -> tuple[float, float]: ...

    @property
    def estimate(self) -> NDArray[np.float64]: ...

    @property
    def interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    def __len__(self) -> int: ...


_KINDS = ("forest", "heat", "band")
_ALONG = ("q", "at")  # keys that are numbers of an axis
_CELLS = 16  # columns of a heat map; with more, its numbers cover each other
_WIDE = 6  # columns up to which shares have a decimal
_INK = 0.75  # of the largest cell, so that its number is read


def plot_answer(answer: Shown, *, kind: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw an answer with its intervals.

    Parameters
    ----------
    answer : bitldp.tables.TableAnswer
        As a `bitldp.tables.ReleasedTable` gives it.
    kind : {None, "forest", "heat", "band"}
        A "forest" has a line for each answer, from the lower to the upper limit; a "heat" map has a cell for
        each pair of two keys; a "band" is a line along quantiles, thresholds or dates, with its limits
        on either side, for each group. None: a band where there is such a key, a heat map of the shares of a
        table of two columns, and a forest of all else.
    ax : matplotlib Axes, optional
        Where to draw. None: new axes. They are returned.

    Raises
    ------
    ValueError
        For a heat map of another number of keys than two, and a band without such a key.
    MissingExtraError
        Without matplotlib (extra ``plot``).
    """
    keys = {name: column.to_pylist() for name, column in answer.keys.items()}
    along = [name for name, values in keys.items() if name in _ALONG or hasattr(values[0], "toordinal")]
    if kind is None:
        cells = answer.what == "share" and answer.whole and len(keys) == 2
        kind = "band" if along else "heat" if cells else "forest"
    checks.choice("kind", kind, _KINDS)
    if kind == "heat" and len(keys) != 2:
        raise ValueError(f"kind: a heat map is of two keys, and the answer has {len(keys)}")
    if kind == "band" and not along:
        raise ValueError("kind: a band is along quantiles, thresholds or dates, and the answer has none")
    axes = new_axes(ax)
    if kind == "heat":
        _heat(axes, answer, keys)
    elif kind == "band":
        _band(axes, answer, keys, along[-1])
    else:
        _forest(axes, answer, keys)
    return axes


def _named(answer: Shown) -> str:
    return f"{answer.what} of {answer.column}"


def _forest(axes: Any, answer: Shown, keys: dict[str, list[Any]]) -> None:
    low, high = answer.interval
    value, rows = answer.estimate, np.arange(len(answer))
    sides = np.stack([value - low, high - value])
    axes.errorbar(value, rows, xerr=np.maximum(sides, 0.0), fmt="o", color=STYLES[0][0], capsize=3)
    texts = [", ".join(filter(None, map(_text, each))) for each in zip(*keys.values(), strict=True)]
    axes.set_yticks(rows, texts or [""])
    axes.invert_yaxis()
    axes.set(xlabel=f"{_named(answer)}, {answer.level:.0%} intervals")


def _heat(axes: Any, answer: Shown, keys: dict[str, list[Any]]) -> None:
    (down, rows), (across, columns) = keys.items()
    sides = [list(dict.fromkeys(each)) for each in (rows, columns)]
    shown = np.full([len(each) for each in sides], np.nan)
    for row, column, value in zip(rows, columns, answer.estimate.tolist(), strict=True):
        shown[sides[0].index(row), sides[1].index(column)] = value
    most = max(float(np.nanmax(shown)), 1e-300) if np.isfinite(shown).any() else 1.0
    shares, digits = answer.span == (0.0, 1.0), 1 if len(sides[1]) <= _WIDE else 0
    for i, j in np.ndindex(*shown.shape):
        alpha = _INK * float(np.clip(np.nan_to_num(shown[i, j] / most), 0.0, 1.0))
        axes.fill_between([j - 0.5, j + 0.5], i - 0.5, i + 0.5, color=STYLES[0][0], alpha=alpha, linewidth=0)
        if len(sides[1]) <= _CELLS and np.isfinite(shown[i, j]):
            text = (
                f"{round(100.0 * shown[i, j], digits) + 0.0:.{digits}f}" if shares else f"{shown[i, j]:.3g}"
            )
            axes.text(j, i, text, ha="center", va="center", color=INK, fontsize="small")
    axes.set_xticks(np.arange(len(sides[1])), [_text(each) for each in sides[1]])
    axes.set_yticks(np.arange(len(sides[0])), [_text(each) for each in sides[0]])
    axes.set(
        xlabel=across,
        ylabel=down,
        title=_named(answer) + (", %" if shares else ""),
        xlim=(-0.5, len(sides[1]) - 0.5),
    )
    axes.set_ylim(len(sides[0]) - 0.5, -0.5)
    axes.grid(visible=False)


def _band(axes: Any, answer: Shown, keys: dict[str, list[Any]], along: str) -> None:
    groups = list(zip(*(values for name, values in keys.items() if name != along), strict=True))
    groups = groups or [()] * len(answer)
    low, high = answer.interval
    place: NDArray[Any] = np.array(keys[along])
    for number, group in enumerate(dict.fromkeys(groups)):
        own = [i for i, each in enumerate(groups) if each == group]
        color, marker = STYLES[number % len(STYLES)]
        axes.fill_between(place[own], low[own], high[own], color=color, alpha=0.2, linewidth=0)
        label = ", ".join(map(_text, group)) or None
        axes.plot(place[own], answer.estimate[own], color=color, marker=marker, label=label)
    axes.set(xlabel={"q": "share of records below", "at": answer.column}.get(along, along))
    axes.set(ylabel=f"{_named(answer)}, {answer.level:.0%} intervals")
    if any(groups):
        axes.legend()


def _text(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
