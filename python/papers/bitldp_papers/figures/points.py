"""Points of a drawing as numbers: lines, rules, images and words of each panel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["points"]


def points(draw: Callable[[Any], None] | None) -> list[dict[str, Any]]:
    """Return the panels of a drawing, or none of a table.

    Parameters
    ----------
    draw : callable or None
        As of `FigureResult`.
    """
    if draw is None:
        return []
    from matplotlib.figure import Figure

    figure = Figure()
    draw(figure)
    return [_panel(axes) for axes in figure.axes if axes.lines or axes.images]


def _panel(axes: Any) -> dict[str, Any]:
    from matplotlib.container import ErrorbarContainer

    panel: dict[str, Any] = {"title": axes.get_title(), "x": _axis(axes, "x"), "y": _axis(axes, "y")}
    barred = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
    bars = {id(each.lines[0]): each for each in barred}
    panel["lines"], panel["rules"] = [], []
    caps = {id(cap) for container in barred for cap in container.lines[1]}
    spreads = {key: _spread(container) for key, container in bars.items()}
    colours: list[str] = []
    for line in axes.lines:
        if id(line) in caps:
            continue
        x, y = (list(map(float, each)) for each in (line.get_xdata(), line.get_ydata()))
        rule = _rule(axes, line, x, y)
        if rule:
            same = [index for index, each in enumerate(colours) if each.startswith(f"{line.get_color()} ")]
            panel["rules"].append(rule | ({"colour": same[0]} if same else {}))
            continue
        colour = f"{line.get_color()} {line.get_marker()}"
        if colour not in colours:
            colours.append(colour)
        label = str((bars.get(id(line)) or line).get_label())
        one: dict[str, Any] = {"name": "" if label.startswith("_") else label, "x": x, "y": y}
        one["colour"] = len(panel["lines"]) if len(axes.lines) > 7 and one["name"] else colours.index(colour)
        if line.get_linestyle() in ("", " ", "None"):
            one["kind"] = "dots"
        if id(line) in spreads:
            one["spread"] = spreads[id(line)]
        panel["lines"].append(one)
    if axes.images:
        image = axes.images[0]
        low, high = image.get_clim()
        panel["image"] = [[float((each - low) / (high - low)) for each in row] for row in image.get_array()]
    panel["words"] = [
        {"x": float(each.xy[0]), "y": float(each.xy[1]), "text": each.get_text(), "side": each.get_ha()}
        for each in axes.texts
        if hasattr(each, "xy")
    ]
    return {key: value for key, value in panel.items() if value}


def _axis(axes: Any, name: str) -> dict[str, Any]:
    axis: dict[str, Any] = {"scale": getattr(axes, f"get_{name}scale")()}
    axis |= {"label": getattr(axes, f"get_{name}label")()}
    axis |= {"range": list(map(float, getattr(axes, f"get_{name}lim")()))}
    return axis


def _spread(container: Any) -> list[float]:
    """Return half the length of each error bar."""
    from matplotlib.collections import LineCollection

    (bars,) = (each for each in container.lines[2] if isinstance(each, LineCollection))
    return [float((segment[1][1] - segment[0][1]) / 2) for segment in bars.get_segments()]


def _rule(axes: Any, line: Any, x: list[float], y: list[float]) -> dict[str, Any] | None:
    """Return what `axhline` or `axvline` drew."""
    for name, along, at in (("y", x, y), ("x", y, x)):
        if along == [0.0, 1.0] and len(set(at)) == 1 and line.get_transform() != axes.transData:
            label = line.get_label()
            return {"axis": name, "at": at[0], "name": "" if label.startswith("_") else label}
    return None
