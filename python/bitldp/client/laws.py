"""Channels as data: the integers that a sampler compares with are written, and read back as a channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bitldp._core import Bits, Cap, Cube, Design, Matrix, Mixture, Select, Shift, Subset, Unary, Window
from bitldp.client.notation import MOST_ENTRIES, Fields, integers, shorts
from bitldp.privacy import ONE

__all__ = ["read", "written"]

_MOST_CELLS = 1 << 16
_MOST_FEATURES = 1 << 22
_MOST_CATEGORIES = 1 << 24


# -- writing


def written(channel: Any) -> dict[str, Any]:
    """Return a channel as values of JSON."""
    fields = _WRITERS[type(channel)](channel)
    return fields | {"mute": True} if getattr(channel, "mute", False) else fields


def _window(channel: Window) -> dict[str, Any]:
    fields = {
        "kind": "window",
        "cells": channel.cells,
        "width": channel.width,
        "high": str(channel.high),
    }
    return fields if channel.order is None else fields | {"order": shorts(channel.order, "<u2")}


def _matrix(channel: Matrix) -> dict[str, Any]:
    weights = [weight for row in channel.weights() for weight in row]
    return {
        "kind": "matrix",
        "inputs": channel.inputs,
        "outputs": channel.outputs,
        "weights": integers(weights),
    }


def _shift(channel: Shift) -> dict[str, Any]:
    return {
        "kind": "shift",
        "inputs": channel.inputs,
        "outputs": channel.outputs,
        "offset": channel.offset,
        "weights": integers(channel.weights()),
    }


def _bits(channel: Bits) -> dict[str, Any]:
    laws = [[[str(p), str(q)] for p, q in law] for law in channel.thresholds()]
    fields: dict[str, Any] = {"kind": "bits", "features": channel.features, "laws": laws}
    pattern = channel.pattern
    return fields if pattern is None else fields | {"pattern": shorts(np.array(pattern), "<u4")}


def _unary(channel: Unary) -> dict[str, Any]:
    p, q = channel.thresholds()
    return {"kind": "unary", "categories": channel.categories, "p": str(p), "q": str(q)}


def _subset(channel: Subset) -> dict[str, Any]:
    return {
        "kind": "subset",
        "elements": channel.elements,
        "size": channel.size,
        "high": str(channel.high),
    }


def _cube(channel: Cube) -> dict[str, Any]:
    return {
        "kind": "cube",
        "bits": channel.bits,
        "near": channel.near,
        "far": channel.far,
        "high": str(channel.high),
    }


def _cap(channel: Cap) -> dict[str, Any]:
    return {
        "kind": "cap",
        "windows": [list(each) for each in channel.windows],
        "subsets": [list(each) for each in channel.subsets],
        "hits": channel.hits,
        "high": str(channel.high),
    }


def _mixture(channel: Mixture) -> dict[str, Any]:
    return {"kind": "mixture", "window": written(channel.window), "matrix": written(channel.matrix)}


def _select(channel: Select) -> dict[str, Any]:
    counts, weights = channel.runs()
    fields: dict[str, Any] = {
        "kind": "select",
        "counts": [int(each) for each in counts],
        "weights": [str(int(each)) for each in weights],
    }
    if channel.nothing is not None:
        fields["nothing"] = str(channel.nothing)
    return fields | {"signed": True} if channel.signed else fields


def _design(channel: Design) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kind": "design",
        "family": channel.family,
        "inputs": channel.inputs,
        "cells": channel.cells,
        "width": channel.width,
        "high": str(channel.high),
    }
    return fields if channel.order is None else fields | {"order": shorts(channel.order, "<u4")}


_WRITERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Window: _window,
    Matrix: _matrix,
    Shift: _shift,
    Bits: _bits,
    Unary: _unary,
    Subset: _subset,
    Design: _design,
    Cube: _cube,
    Cap: _cap,
    Mixture: _mixture,
    Select: _select,
}


# -- reading


def read(fields: Fields) -> Any:
    """Return the channel of an object of a document, with its integers as they stand there.

    Raises
    ------
    DocumentError
        For a kind that version 1 does not know, or integers that make no law.
    """
    kind = fields.choice("kind", tuple(_READERS))
    mute = kind in _MUTED and fields.flag("mute")
    make = _READERS[kind](fields, mute)
    fields.done()
    try:
        return make()
    except (ValueError, TypeError, OverflowError):
        # The message of the core may show a number of the document.
        raise fields.refuse("kind", "the integers of this channel make no law") from None


Make = Callable[[], Any]


def _read_window(fields: Fields, mute: bool) -> Make:
    cells = fields.count("cells", 2, (1 << 32) - 1)
    width = fields.count("width", 1, cells - 1)
    high = fields.chance("high")
    order = None
    if "order" in fields:
        if cells > 1 << 11:
            raise fields.refuse("cells", f"must be at most {1 << 11:,} with an order")
        order = fields.shorts("order", "<u2", cells * cells)
        if order.size != cells * cells:
            raise fields.refuse("order", "must list all cells for each of them")
        order = order.reshape(cells, cells)
    return lambda: Window.from_integers(cells, width, high, order, mute)


def _read_matrix(fields: Fields, mute: bool) -> Make:
    inputs, outputs = (fields.count(name, 1, _MOST_CELLS) for name in ("inputs", "outputs"))
    if inputs * outputs > MOST_ENTRIES:
        raise fields.refuse("inputs", f"must be at most {MOST_ENTRIES:,} with the outputs")
    weights = fields.integers("weights", inputs * outputs)
    rows = [weights[start : start + outputs] for start in range(0, len(weights), outputs)]
    if any(sum(row) != ONE for row in rows):
        raise fields.refuse("weights", "a row does not add up to 2**64")
    return lambda: Matrix.from_weights(rows)


def _read_shift(fields: Fields, mute: bool) -> Make:
    inputs, outputs = (fields.count(name, 2, 1 << 17) for name in ("inputs", "outputs"))
    offset = fields.count("offset", -(1 << 31), (1 << 31) - 1)
    raw = fields.raw("weights", 9 * _MOST_CELLS)
    if len(raw) % 18 != 9:
        raise fields.refuse("weights", "must be an odd number of integers of 9 bytes")
    weights = [int.from_bytes(raw[start : start + 9], "little") for start in range(0, len(raw), 9)]
    if sum(weights) != ONE:
        raise fields.refuse("weights", "do not add up to 2**64")
    return lambda: Shift(inputs, outputs, weights, offset, mute)


def _read_bits(fields: Fields, mute: bool) -> Make:
    features = fields.count("features", 1, _MOST_FEATURES)
    thresholds: list[list[tuple[int, int]]] = []
    for index, law in enumerate(fields.entries("laws", 256, 1)):
        name = f"laws[{index}]"
        if not isinstance(law, list) or not 1 <= len(law) <= 32:
            raise fields.refuse(name, "must be a list of 1 to 32 bits")
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in law):
            raise fields.refuse(name, "must be a list of pairs")
        both = [(fields.chance_of(one, name), fields.chance_of(zero, name)) for one, zero in law]
        thresholds.append(both)
    pattern = None
    if "pattern" in fields:
        pattern = fields.shorts("pattern", "<u4", features).tolist()
        if len(pattern) != features or max(pattern) >= len(thresholds):
            raise fields.refuse("pattern", "must name a law for each feature")
    elif len(thresholds) > 1:
        raise fields.refuse("pattern", "is missing, where there are several laws")
    return lambda: Bits.from_integers(thresholds, features, pattern)


def _read_unary(fields: Fields, mute: bool) -> Make:
    categories = fields.count("categories", 2, _MOST_CATEGORIES)
    p, q = fields.chance("p"), fields.chance("q")
    return lambda: Unary.from_integers(categories, p, q)


def _read_subset(fields: Fields, mute: bool) -> Make:
    elements = fields.count("elements", 2, _MOST_CATEGORIES)
    size, high = fields.count("size", 1, elements - 1), fields.chance("high")
    return lambda: Subset.from_integers(elements, size, high, mute)


def _read_design(fields: Fields, mute: bool) -> Make:
    family: Any = fields.choice("family", ("translates", "progressions", "halves"))
    inputs, high = fields.count("inputs", 2, _MOST_CATEGORIES), fields.chance("high")
    cells, width = fields.count("cells", 2, _MOST_CATEGORIES), fields.count("width", 1, _MOST_CATEGORIES)
    order = None
    if family == "translates":
        order = fields.shorts("order", "<u4")
        if order.size != cells:
            raise fields.refuse("order", "must list each cell once")
    return lambda: Design.from_integers(family, inputs, cells, width, high, order, mute)


def _read_cube(fields: Fields, mute: bool) -> Make:
    bits = fields.count("bits", 1, 1 << 16)
    near, far, high = fields.count("near", 0, bits), fields.count("far", 0, bits), fields.chance("high")
    return lambda: Cube(bits, near, far, high, mute)


def _read_cap(fields: Fields, mute: bool) -> Make:
    lists = {}
    for name in ("windows", "subsets"):
        lists[name] = [tuple(each) for each in fields.entries(name, 1 << 12) if isinstance(each, list)]
        if not all(
            len(each) == 2 and all(type(n) is int and 0 <= n < 1 << 32 for n in each) for each in lists[name]
        ):
            raise fields.refuse(name, "must be a list of pairs of whole numbers")
    hits, high = fields.count("hits", 0, 1 << 12), fields.chance("high")
    return lambda: Cap(lists["windows"], lists["subsets"], hits, high, mute)


def _read_mixture(fields: Fields, mute: bool) -> Make:
    window, matrix = (read(fields.object(name)) for name in ("window", "matrix"))
    if not isinstance(window, Window):
        raise fields.refuse("window", "must be a window")
    if not isinstance(matrix, Matrix):
        raise fields.refuse("matrix", "must be a matrix")
    return lambda: Mixture(window, matrix)


def _read_select(fields: Fields, mute: bool) -> Make:
    counts = fields.entries("counts", 1 << 16, 1)
    if not all(type(each) is int and 0 < each < 1 << 32 for each in counts):
        raise fields.refuse("counts", "must be whole numbers from 1 to 2**32 - 1")
    weights = [fields.chance_of(each, "weights") for each in fields.entries("weights", 1 << 16, 1)]
    nothing = fields.chance("nothing") if "nothing" in fields else None
    if max([*weights, nothing or 0]) >= ONE:
        raise fields.refuse("weights", "must be below 2**64")
    signed = fields.flag("signed")
    numbers = np.array(counts, np.uint32), np.array(weights, np.uint64)
    return lambda: Select(*numbers, nothing, signed)


_READERS: dict[str, Callable[[Fields, bool], Make]] = {
    "window": _read_window,
    "matrix": _read_matrix,
    "shift": _read_shift,
    "bits": _read_bits,
    "unary": _read_unary,
    "subset": _read_subset,
    "design": _read_design,
    "cube": _read_cube,
    "cap": _read_cap,
    "mixture": _read_mixture,
    "select": _read_select,
}
_MUTED = ("window", "shift", "subset", "design", "cube", "cap")
