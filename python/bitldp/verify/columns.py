"""Columns that a mechanism of a report releases: their names, and what may stand in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import parameters
from .findings import Unproven
from .laws import whole
from .parameters import BITS, NUMBERED, RECORDS, SIZES, WORDS

__all__ = ["released_columns", "released_values"]

_DIFFERENT = 1 << 16  # values of a column that are still looked at one by one


def released_columns(entry: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns that a mechanism releases."""
    kind, p, columns, first = entry["mechanism"], entry["parameters"], entry["columns"], entry["columns"][0]
    if not parameters.known(kind):
        raise Unproven(f"the columns of {kind!r} are not known here")
    if kind in NUMBERED:
        return [f"{first}_{part}" for part in NUMBERED[kind]]
    if kind == "BlockDesign" and p["public"]:
        raise Unproven("a report of two parts has no columns that are known here")
    if kind in RECORDS:
        return _of_cap(p, first) if kind in ("MixedCap", "RecordCap") else _of_record(entry)
    drawn = _drawn_pairs(entry)
    if drawn:
        codes = 1 if kind == "SampledSigns" else drawn
        return [f"{first}_attribute{i}" for i in range(drawn)] + [f"{first}_code{i}" for i in range(codes)]
    if kind in WORDS and entry["output"] == "bits":
        return [f"{name}_bit{i}" for name in columns for i in range(p["bits"])]
    if kind in BITS or kind == "LabelLaplace":
        size = next((p[k] for k in SIZES if type(p.get(k)) is int), 0)
        return [*(f"{first}={label}" for label in entry["categories"]), f"{first} missing"][:size]
    return list(columns)


def _drawn_pairs(entry: Mapping[str, Any]) -> int:
    """Return how many numbers with intervals of their own are drawn of a record; 0 where all are released."""
    drawn = entry["parameters"].get("k") or 0
    return drawn if "intervals" in entry and drawn < len(entry["columns"]) else 0


def _of_record(entry: Mapping[str, Any]) -> list[str]:
    """Return the columns of a record's report: the attributes that were drawn, and the codes of answers."""
    p, first = entry["parameters"], entry["columns"][0]
    oracles = [p["oracle"]] * len(p["sizes"]) if isinstance(p["oracle"], str) else p["oracle"]
    strings = [name in BITS for name in oracles]
    if p["k"] is None:
        widths = [size if string else 1 for string, size in zip(strings, p["sizes"], strict=True)]
        return [f"{first}_code{i}" for i in range(p.get("features", 0) + sum(widths))]
    drawn = [f"{first}_attribute{i}" for i in range(p["k"])]
    if not any(strings):
        return [*drawn, *(f"{first}_code{i}" for i in range(p["k"]))]
    if entry["law"][0]["laws"][0]["law"] == "mute":
        raise Unproven("at epsilon 0 its law does not say how long its reports are")
    # Where a report of some attribute is a string of bits, those that are one code are so many bits, too.
    symbols, numbers = entry["law"][0], p.get("features", 0)
    laws = [one for one, count in zip(symbols["laws"], symbols["each"], strict=True) for _ in range(count)]
    sizes = [size if string else 0 for string, size in zip(strings, p["sizes"], strict=True)]
    makers = [str(p.get("number"))] * numbers + list(oracles)
    longest = max(
        size or max(1, (_alphabet(maker, one) - 1).bit_length())
        for maker, size, one in zip(makers, [0] * numbers + sizes, laws, strict=True)
    )
    return [*drawn, *(f"{first}_code{i}" for i in range(p["k"] * longest))]


def _of_cap(p: Mapping[str, Any], first: str) -> list[str]:
    """Return the columns of a record's report: the attributes that were drawn, numbers, and subsets."""
    sizes = parameters.numbers_of(p["attributes"])
    widths = [1 if w == 1 else k for k, w in zip(sizes, p["subset"], strict=True)]
    if p.get("m", len(sizes)) == len(sizes):
        return [f"{first}_code{i}" for i in range(p.get("features", 0) + sum(widths))]
    longest = max((k - 1).bit_length() if w == 1 else k for k, w in zip(sizes, p["subset"], strict=True))
    codes = p["m"] * (1 if max(widths) == 1 else longest)
    drawn = [f"{first}_attribute{i}" for i in range(p["m"])]
    return [*drawn, *(f"{first}_code{i}" for i in range(codes))]


def _alphabet(maker: str, law: Mapping[str, Any]) -> int:
    """Return how many reports a law has."""
    kind = law["law"]
    if maker == "BlockDesign":
        return _blocks(whole(law["cells"]), whole(law["width"]))
    if kind == "matrix":
        return len(law["weights"][0])
    if kind == "mixture":
        return int(law["window"]["cells"]) + len(law["weights"][0]) - 1
    if kind == "bits":
        return 1 << min(len(law["thresholds"]), 64)
    if kind == "cap":
        points, reach = law["windows"][0]
        return int(points + 2 * reach)
    return {"window": int(law.get("cells", 0)), "shift": int(law.get("outputs", 0)), "cube": 2}[kind]


def _blocks(cells: int, width: int) -> int:
    """Return how many reports a block design has: its cells, or where these are steps, pairs of them.

    The hyperplanes of a projective space have v = 1 + q b cells, b of the next smaller space in each block,
    which has as many of the next one, down to a point.
    """
    order, rest = divmod(cells - 1, width)
    while rest == 0 and width > 1:
        width, rest = divmod(width - 1, order)
    return cells if rest == 0 and width == 1 else cells * (cells - 1) // 2


def released_values(
    entry: Mapping[str, Any], column: Mapping[str, Any]
) -> tuple[set[str] | None, int] | None:
    """Return the texts that a released column may hold, and how many; None where that is not known here."""
    kind, p, output = entry["mechanism"], entry["parameters"], entry["output"]
    law = entry["law"][0]["laws"][0]
    if output == "bits":
        return {"0", "1"}, 2
    if kind in RECORDS or kind in NUMBERED or _drawn_pairs(entry) or law["law"] in ("mute", "unary"):
        return None
    if kind in WORDS:
        count = 1 << p["bits"]
    elif kind == "SampledSigns":
        count = 2
    else:
        count = _alphabet(kind, law)
    if count > _DIFFERENT:
        return None
    if output == "codes":
        return {str(code) for code in range(count)}, count
    if "interval" in entry or kind == "LabelLaplace":
        return None, count + (p.get("k") is not None)
    texts = {str(label).lower() for label in entry["categories"]}
    return texts | ({""} if column.get("nulls") == "category" else set()), len(texts) + 1
