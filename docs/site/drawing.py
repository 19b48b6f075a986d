"""Drawings of numbers as SVG: small, of words that stay words, light or dark as the page is.

A panel is a plain dict, so that it is kept as JSON as it is drawn. Every key but "lines" may be missing:

    {"title": "", "x": AXIS, "y": AXIS, "lines": [LINE], "rules": [RULE], "words": [WORD], "image": IMAGE}
    AXIS  {"label": "", "scale": "log" or "linear", "range": [low, high], "names": {"1": "a"}}
    LINE  {"name": "", "x": [], "y": [], "spread": [], "kind": "line", "dots", "step", "pale" or "behind"}
          and "colour": 0 to 20; pale lines stay behind the others, and "behind" names them in the legend
    RULE  {"axis": "x" or "y", "at": 1.0, "name": "", "colour": 0}
    WORD  {"x": 1.0, "y": 2.0, "text": "", "side": "left" or "right"}
    IMAGE [[shares of ink by row and column]]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

WIDTH, PLOT = 420, 230
LEFT, RIGHT, TOP, BOTTOM = 60, 10, 26, 40
LETTER = 6.1  # about what a letter of the legend takes

#: Of a file by itself; on the site these rules stand in assets/site.css.
STYLE = """<style>.plot{--ink:#1a1a1b;--soft:#dededf;--c0:#0072b2;--c1:#c65500;--c2:#00845f;--c3:#b95f93;\
--c4:#b57d00;--c5:#3a9bd0;--c6:#1a1a1b;font:12px sans-serif}\
@media(prefers-color-scheme:dark){.plot{--ink:#e4e4e6;--soft:#47474d;--c0:#5ab4ea;--c1:#ff8a3d;--c2:#3ccb9f;\
--c3:#e79ac6;--c4:#f0b93f;--c5:#9bd3f5;--c6:#e4e4e6}}\
.plot text{fill:var(--ink)}.plot .g{stroke:var(--soft);fill:none}.plot .a{stroke:var(--ink);fill:none}\
.plot .l{fill:none;stroke-width:1.8}.plot .r{stroke-dasharray:4 3}.plot .d{stroke-dasharray:2 3}\
"""
STYLE += "".join(
    f".plot .c{place}{{stroke:var(--c{place});fill:var(--c{place})}}.plot .l.c{place}{{fill:none}}"
    for place in range(7)
)
STYLE += "</style>"

#: Markers: a circle, a square, a triangle, a diamond, a triangle upside down, a plus, a cross.
_FORMS = (
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
    "m-3-3h6v6h-6z",
    "m0-4l3.6 6.4h-7.2z",
    "m0-4l4 4l-4 4l-4-4z",
    "m0 4l3.6-6.4h-7.2z",
    "m-1-4h2v8h-2zm-3 3h8v2h-8z",
    "m-3-3l6 6m0-6l-6 6",
)
_UP = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def document(panels: Sequence[dict[str, Any]], alt: str) -> str:
    """Return a picture of panels side by side, as a file by itself."""
    drawn = [_panel(panel) for panel in panels]
    height = max(tall for _, tall in drawn)
    inside = "\n".join(
        f'<svg class="plot" x="{place * (WIDTH + 16)}" width="{WIDTH}" height="{tall}" '
        f'viewBox="0 0 {WIDTH} {tall}">{parts}</svg>'
        for place, (parts, tall) in enumerate(drawn)
    )
    wide = len(drawn) * (WIDTH + 16) - 16
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height}" width="{wide}" '
        f'height="{height}" role="img"><title>{escape(alt)}</title>{STYLE}\n{inside}\n</svg>\n'
    )


def inline(panels: Sequence[dict[str, Any]], alt: str) -> str:
    """Return panels for a page, which stand below each other where it is narrow."""
    parts = []
    for panel in panels:
        drawn, tall = _panel(panel)
        said = f"{alt}: {panel['title']}" if panel.get("title") and len(panels) > 1 else alt
        parts.append(
            f'<svg class="plot" viewBox="0 0 {WIDTH} {tall}" role="img" '
            f'aria-label="{escape(said)}">{drawn}</svg>'
        )
    return f'<div class="plots">{"".join(parts)}</div>'


def _panel(panel: dict[str, Any]) -> tuple[str, int]:
    """Return the parts of one panel, and its height."""
    across = _Scale(panel, "x", LEFT, WIDTH - RIGHT)
    up = _Scale(panel, "y", TOP + PLOT, TOP)
    parts = []
    if panel.get("title"):
        parts.append(_text(LEFT, 16, panel["title"], more=' font-weight="600"'))
    if panel.get("image"):
        parts.append(_image(panel["image"]))
    parts += _axes(across, up)
    for rule in panel.get("rules", ()):
        parts.append(_rule(rule, across, up))
    for place, line in enumerate(panel.get("lines", ())):
        parts.append(_line(line, line.get("colour", place), across, up))
    for word in panel.get("words", ()):
        parts.append(_word(word, across, up))
    named = [
        (line, line.get("colour", place))
        for place, line in enumerate(panel.get("lines", ()))
        if line["name"] and line.get("kind") != "pale"
    ]
    key, tall = _key(named)
    return "".join([*parts, key]), TOP + PLOT + BOTTOM + tall


class _Scale:
    """One axis: where a number stands, and at which numbers there are ticks."""

    def __init__(self, panel: dict[str, Any], name: str, first: int, last: int) -> None:
        self.axis = panel.get(name, {})
        self.log = self.axis.get("scale") == "log"
        self.first, self.last = first, last
        self.low, self.high = self.axis.get("range") or self._range(_numbers(panel, name))

    def _range(self, numbers: Iterable[float]) -> tuple[float, float]:
        found = [math.log10(each) if self.log else each for each in numbers if each > 0 or not self.log]
        low, high = (min(found), max(found)) if found else (0.0, 1.0)
        room = 0.04 * (high - low) or 0.5
        ends = low - room, high + room
        return (10 ** ends[0], 10 ** ends[1]) if self.log else ends

    def __call__(self, value: float) -> float:
        turn = (lambda each: math.log10(max(each, 1e-300))) if self.log else float
        low, high = turn(self.low), turn(self.high)
        share = (turn(value) - low) / (high - low)
        return self.first + min(max(share, -0.02), 1.02) * (self.last - self.first)

    def ticks(self) -> list[tuple[float, str]]:
        """Return where ticks stand, and what is written there."""
        if names := self.axis.get("names"):
            return [(self(float(at)), name) for at, name in names.items()]
        ends = sorted((self.low, self.high))  # of a picture, rows count downwards
        values = _powers(*ends) if self.log else _steps(*ends)
        most = 4 if self.log else 6
        return [(self(value), short(value, most)) for value in values]


def _numbers(panel: dict[str, Any], name: str) -> Iterable[float]:
    for line in panel.get("lines", ()):
        yield from (each for each in line[name] if each is not None and math.isfinite(each))
    yield from (rule["at"] for rule in panel.get("rules", ()) if rule["axis"] == name)


def _steps(low: float, high: float) -> list[float]:
    """Return at most seven round numbers of a range."""
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    while (high - low) / step > 6:
        step *= 2.5 if str(f"{step:e}")[0] == "2" else 2.0
    return [round(place * step, 12) for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Return round numbers of a range of a logarithmic axis."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    tens = [10.0**power for power in range(first, last + 1) if low <= 10.0**power <= high]
    if len(tens) > 2:
        return tens[:: math.ceil(len(tens) / 7)]
    finer = [k * 10.0**p for p in range(first - 1, last + 1) for k in (1, 2, 5) if low <= k * 10.0**p <= high]
    return finer if len(finer) > 1 else _steps(low, high)


def short(value: float, most: int = 5) -> str:
    """Return a number as it is written at a tick: from 10**most on as a power."""
    if value == 0.0:
        return "0"
    power = math.floor(math.log10(abs(value)) + 1e-9)
    if -4 < power < most:
        return f"{value:,.{max(0, 3 - power)}f}".rstrip("0").rstrip(".") if power < 3 else f"{value:,.0f}"
    lead = round(value / 10.0**power, 2)
    ten = f"10{str(power).translate(_UP)}"
    return ten if lead == 1 else f"{lead:g}·{ten}"


def _axes(across: _Scale, up: _Scale) -> list[str]:
    base = TOP + PLOT
    grid, words = [], []
    for y, name in up.ticks():
        grid.append(f"M{LEFT} {y:.1f}H{WIDTH - RIGHT}")
        words.append(_text(LEFT - 6, y + 4, name, "end"))
    for x, name in across.ticks():
        grid.append(f"M{x:.1f} {TOP}V{base}")
        words.append(_text(x, base + 16, name, "middle"))
    parts = [
        f'<path class="g" d="{"".join(grid)}"/><path class="a" d="M{LEFT} {TOP}V{base}H{WIDTH - RIGHT}"/>'
    ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    if across.axis.get("label"):
        words.append(_text(middle, base + 34, across.axis["label"], "middle"))
    if up.axis.get("label"):
        place = TOP + PLOT / 2
        turned = f' transform="rotate(-90 13 {place:.0f})"'
        words.append(_text(13, place, up.axis["label"], "middle", turned))
    return parts + words


def _line(line: dict[str, Any], colour: int, across: _Scale, up: _Scale) -> str:
    points = [
        (across(x), up(y), x, y)
        for x, y in zip(line["x"], line["y"], strict=True)
        if x is not None and y is not None and math.isfinite(x) and math.isfinite(y)
    ]
    style = f"c{colour % 7}"
    kind = line.get("kind", "line")
    parts = []
    if kind == "pale":
        return f'<path class="l g" d="{_path(points, kind)}"><title>{escape(line["name"])}</title></path>'
    if kind != "dots" and len(points) > 1:
        dash = ("", ' stroke-dasharray="6 3"', ' stroke-dasharray="2 3"')[colour // 7 % 3]
        parts.append(f'<path class="l {style}"{dash} d="{_path(points, kind)}"/>')
    if kind == "dots" or len(points) <= 24:
        parts.append(f'<path class="{style}" d="{"".join(_marker(colour, x, y) for x, y, *_ in points)}"/>')
    if line.get("spread"):
        bars = zip(points, line["spread"], strict=False)
        ends = "".join(
            f"M{x:.1f} {up(value - each):.1f}V{up(value + each):.1f}"
            for (x, _, _, value), each in bars
            if each
        )
        parts.append(f'<path class="l {style}" style="stroke-width:1" d="{ends}"/>')
    return f"<g><title>{escape(line['name'])}</title>{''.join(parts)}</g>"


def _path(points: Sequence[tuple[float, float, float, float]], kind: str) -> str:
    if kind == "step":
        (x, y, *_), *rest = points
        return f"M{x:.1f} {y:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y, *_ in rest)
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, *_ in points)


def _marker(colour: int, x: float, y: float) -> str:
    return f"M{x:.1f} {y:.1f}{_FORMS[colour % 7]}"


def _rule(rule: dict[str, Any], across: _Scale, up: _Scale) -> str:
    style = f"c{rule['colour'] % 7}" if "colour" in rule else "a"
    if rule["axis"] == "y":
        y = up(rule["at"])
        word = _text(WIDTH - RIGHT - 4, y - 4, rule.get("name", ""), "end")
        return f'<path class="{style} d" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>{word}'
    x = across(rule["at"])
    place = TOP + PLOT - 6
    turned = f' transform="rotate(-90 {x - 4:.1f} {place})"'
    word = _text(x - 4, place, rule.get("name", ""), "start", turned)
    return f'<path class="{style} r" d="M{x:.1f} {TOP}V{TOP + PLOT}"/>{word}'


def _word(word: dict[str, Any], across: _Scale, up: _Scale) -> str:
    x, y = across(word["x"]), up(word["y"]) - 5
    lines = word["text"].strip().split("\n")
    left = word.get("side") == "right" or x + max(map(len, lines)) * LETTER > WIDTH - RIGHT
    return "".join(
        _text(
            x + (-5 if left else 5),
            y - 13 * (len(lines) - 1 - place),
            line,
            "end" if left else "start",
            ' font-size="10.5"',
        )
        for place, line in enumerate(lines)
    )


def _image(rows: Sequence[Sequence[float]]) -> str:
    high, wide = PLOT / len(rows), (WIDTH - LEFT - RIGHT) / len(rows[0])
    return "".join(
        f'<rect class="c0" stroke-width="0" x="{LEFT + j * wide:.1f}" y="{TOP + i * high:.1f}" '
        f'width="{wide:.1f}" height="{high:.1f}" fill-opacity="{each:.2g}" stroke-opacity="0"/>'
        for i, row in enumerate(rows)
        for j, each in enumerate(row)
        if each >= 0.005
    )


def _key(named: Sequence[tuple[dict[str, Any], int]]) -> tuple[str, int]:
    """Return the legend, and its height."""
    if not named:
        return "", 0
    longest = max(len(line["name"]) for line, _ in named)
    columns = max(1, min(len(named), int((WIDTH - 16) // (longest * LETTER + 34))))
    wide = (WIDTH - 16) / columns
    parts = []
    for place, (line, colour) in enumerate(named):
        x, y = 12 + place % columns * wide, TOP + PLOT + BOTTOM + 12 + place // columns * 17
        dash = ("", ' stroke-dasharray="6 3"', ' stroke-dasharray="2 3"')[colour // 7 % 3]
        if line.get("kind") == "behind":
            parts += [f'<path class="l g" d="M{x:.0f} {y - 4}h22"/>', _text(x + 28, y, line["name"])]
            continue
        stroke = f'<path class="l c{colour % 7}"{dash} d="M{x:.0f} {y - 4}h22"/>'
        stroke = "" if line.get("kind") == "dots" else stroke
        parts.append(f'{stroke}<path class="c{colour % 7}" d="{_marker(colour, x + 11, y - 4)}"/>')
        parts.append(_text(x + 28, y, line["name"]))
    return "".join(parts), 10 + 17 * math.ceil(len(named) / columns)


def _text(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    if not text:
        return ""
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{side}{more}>{escape(text)}</text>'
