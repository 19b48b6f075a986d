"""The law of a mechanism in integers, as a privacy report holds it for `bitldp.verify`."""

from __future__ import annotations

import hashlib
import json
from functools import singledispatch
from typing import Any

import numpy as np

from bitldp._core import Bits, Cube, Design, Matrix, Mixture, Select, Shift, Subset, Unary, Window

__all__ = ["canonical_digest", "law_of"]

_MOST = 1 << 16  # integers of a law that a report holds


def canonical_digest(values: Any) -> str:
    """Return the SHA-256 of JSON values, written in the one way that has keys sorted and no spaces."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def law_of(mechanism: Any) -> list[dict[str, Any]]:
    """Return the independent symbols of a report: their laws in integers over 2**64, and how many there are.

    A law of more than 65,536 integers, and one that is known by its guarantee alone, is named and not proven.
    """
    return [{"times": times, "laws": [_bounded(law) for law in laws]} for laws, times in mechanism.symbols()]


def _bounded(law: Any) -> dict[str, Any]:
    if isinstance(law, Matrix) and law.inputs * law.outputs > _MOST:
        return {"law": "a large table", "epsilon": law.epsilon}
    if isinstance(law, Shift) and law.outputs * law.inputs > _MOST * 64:
        return {"law": "a long noise", "epsilon": law.epsilon}
    return _integers(law)


def _window(cells: int, width: int, law: Any) -> dict[str, Any]:
    return {"law": "window", "cells": cells, "width": width, "high": str(law.high), "mute": law.mute}


@singledispatch
def _integers(law: Any) -> dict[str, Any]:
    return {"law": "promised", "epsilon": getattr(law, "record", None)}


@_integers.register
def _(law: Window) -> dict[str, Any]:
    return _window(law.cells, law.width, law)


@_integers.register
def _(law: Subset) -> dict[str, Any]:
    # A subset holds the input with the chance `high`; those that do are to those that do not as w to k - w.
    return {
        "law": "window",
        "cells": law.elements,
        "width": law.size,
        "high": str(law.high),
        "mute": law.mute,
    }


@_integers.register
def _(law: Design) -> dict[str, Any]:
    return _window(law.cells, law.width, law)


@_integers.register
def _(law: Matrix) -> dict[str, Any]:
    return {"law": "matrix", "weights": [[str(weight) for weight in row] for row in law.weights()]}


@_integers.register
def _(law: Bits) -> dict[str, Any]:
    pattern = law.pattern
    features = [law.features] if pattern is None else np.bincount(pattern).tolist()
    return {
        "law": "bits",
        "thresholds": [
            [str(p), str(q)]
            for each, count in zip(law.thresholds(), features, strict=False)
            for _ in range(count)
            for p, q in each
        ],
    }


@_integers.register
def _(law: Unary) -> dict[str, Any]:
    p, q = law.thresholds()
    return {"law": "unary", "p": str(p), "q": str(q)}


@_integers.register
def _(law: Shift) -> dict[str, Any]:
    return {
        "law": "shift",
        "inputs": law.inputs,
        "outputs": law.outputs,
        "reach": law.reach,
        "offset": law.offset,
        "mute": law.mute,
        "weights": [str(weight) for weight in law.weights()],
    }


@_integers.register
def _(law: Mixture) -> dict[str, Any]:
    return {
        "law": "mixture",
        "window": _integers(law.window),
        "weights": [[str(weight) for weight in row] for row in law.matrix.weights()],
    }


@_integers.register
def _(law: Cube) -> dict[str, Any]:
    return {
        "law": "cube",
        "bits": law.bits,
        "near": law.near,
        "far": law.far,
        "high": str(law.high),
        "mute": law.mute,
    }


@_integers.register
def _(law: Select) -> dict[str, Any]:
    # Runs of ranks share a weight: each weight once is enough.
    return {"law": "select", "weights": sorted({str(weight) for weight in law.weights().tolist()})}
