"""Keep the papers' figures as numbers, from which the site draws them: ``make papers``.

    python docs/record.py FOLDER       keep what `bitldp paper --all --quick` left in FOLDER
    python docs/record.py --check      make again what needs no data, and compare

The record has no data of anybody in it: of each figure the numbers that were compared, the sentences, and
the points of its lines, rounded to four digits.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import bitldp
from bitldp.base.documents import jsonable
from bitldp_papers.figures import FigureEntry, FigureResult, FigureRun, figures
from matplotlib.collections import LineCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

RECORD = Path(__file__).parents[1] / "benches" / "records" / "papers.json"

#: Drawings that would hand on records of a data set: where people have been.
OF_RECORDS = ("brr-6",)
#: Figures of time, which no second run repeats.
OF_TIME = ("fedsel-2-e", "peers-")
_KEPT = ("title", "source", "claim", "verdict", "honest", "stand_in", "compared", "seconds", "seeds", "form")


def kept(folder: Path) -> dict[str, Any]:
    """Return the record of the figures in a folder; those that are not there in short form are missing."""
    result: dict[str, Any] = {"date": date.today().isoformat(), "figures": {}}
    for name, entry in figures().items():
        path = folder / name / "figure.json"
        if not path.exists():
            continue
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["status"] != "done":
            result["figures"][name] = {key: document[key] for key in ("title", "source", "claim", "reason")}
            continue
        result["versions"] = document["versions"]
        made = {key: document[key] for key in _KEPT} | {"data": sorted(document["data"])}
        outcome = entry.make(FigureRun(folder / name, form=document["form"]))  # its steps are in the folder
        if outcome.draw is None or name.startswith("attack-"):
            made["rows"] = outcome.rows
        result["figures"][name] = plain(made | {"panels": drawn(name, outcome)})
        print(name, flush=True)
    return result


def drawn(name: str, outcome: FigureResult) -> list[dict[str, Any]]:
    """Return the panels of a figure's drawing, or none: of a table, and of places that people were at."""
    if outcome.draw is None or name in OF_RECORDS:
        return []
    figure = Figure()
    outcome.draw(figure)
    return [_panel(axes) for axes in figure.axes if axes.lines or axes.images]


def _panel(axes: Any) -> dict[str, Any]:
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
        label = bars[id(line)].get_label() if id(line) in bars else line.get_label()
        one = {"name": "" if label.startswith("_") else label, "x": x, "y": y}
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
    (bars,) = (each for each in container.lines[2] if isinstance(each, LineCollection))
    return [float((segment[1][1] - segment[0][1]) / 2) for segment in bars.get_segments()]


def _rule(axes: Any, line: Any, x: list[float], y: list[float]) -> dict[str, Any] | None:
    """Return what `axhline` or `axvline` drew."""
    for name, along, at in (("y", x, y), ("x", y, x)):
        if along == [0.0, 1.0] and len(set(at)) == 1 and line.get_transform() != axes.transData:
            label = line.get_label()
            return {"axis": name, "at": at[0], "name": "" if label.startswith("_") else label}
    return None


def plain(value: Any) -> Any:
    """Return JSON values, numbers of drawings rounded to four digits."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.4g}") if abs(value) < 1e4 else round(value)
    return jsonable(value)


def again(record: Mapping[str, Any], most: float = 60.0) -> Iterator[tuple[str, FigureEntry]]:
    """Yield what can be made again without data and in at most so many seconds."""
    for name, entry in figures().items():
        one = record["figures"].get(name, {})
        if not one.get("data") and one.get("seconds", math.inf) <= most and not name.startswith(OF_TIME):
            yield name, entry


def differences(name: str, entry: FigureEntry, record: Mapping[str, Any]) -> list[str]:
    """Make a figure again; return where its numbers are others than those that were kept."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        outcome = entry.make(FigureRun(Path(folder), form="quick"))
    was = record["figures"][name]
    new = plain({"compared": outcome.document()["compared"], "panels": drawn(name, outcome)})
    return [f"{name}{position}" for key in new for position in differs(was[key], new[key], f".{key}")]


def differs(was: Any, now: Any, position: str) -> Iterator[str]:
    """Yield where JSON values are others than those that were kept, numbers by more than 0.2 %."""
    if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        for key in was:
            yield from differs(was[key], now[key], f"{position}.{key}")
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for i, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from differs(one, other, f"{position}[{i}]")
    elif isinstance(was, (int, float)) and isinstance(now, (int, float)):
        if not math.isclose(was, now, rel_tol=2e-3, abs_tol=1e-9):
            yield f"{position}: {was} was kept, {now} is so"
    elif was != now:
        yield f"{position}: is not what was kept"


def main(arguments: list[str]) -> int:
    """Keep a folder's figures, or check those that were kept; return 1 where they differ."""
    warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
    if arguments == ["--check"]:
        record = json.loads(RECORD.read_text(encoding="utf-8"))
        wrong = [line for name, entry in again(record) for line in differences(name, entry, record)]
        print("\n".join(wrong[:20]) or "as kept")
        return bool(wrong)
    result = kept(Path(arguments[0]))
    lines = ",\n".join(
        f" {json.dumps(name)}: {json.dumps(one, ensure_ascii=False, separators=(',', ':'))}"
        for name, one in result.pop("figures").items()
    )
    head = json.dumps(result)[1:-1]
    RECORD.write_text(f'{{{head},\n"figures": {{\n{lines}\n}}}}\n', encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
