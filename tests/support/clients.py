"""Mechanisms with a client document, why others have none, and the packed reports that Python makes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
from bitldp.base.keys import keys
from bitldp.client import open_document
from bitldp.client.notation import canonical, digest

from support.cases import CASES, FAMILIES, MIXED, ORDERED

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "client.schema.json"

BALL, BOUND = "sums of NumPy", "a bound over all vectors"

#: Cases of no document, and a part of the reason that each gives.
WITHOUT = {
    "BRR-regions": "each region has a channel of its own",
    "RecordCap": "drawn by kind",
    "MixedCap": "dithered before one channel",
    "CLDP": BALL,
    "BallWindow": BALL,
    "LaplaceBall": BOUND,
    "BallGaussian": BOUND,
    "Skellam": BOUND,
    "RandomCodebook": "logarithms and cosines",
    "TwoStage": "released once more",
    "Compressed": "public matrix",
    "HeavyHitters": "a word",
}

#: Cases whose epsilon other clients compute by integers of 128 bits: within 1e-12 of it.
AMPLIFIED = ("ItemSet", "KeyValue")

DOCUMENTED = [case for case in CASES + FAMILIES + ORDERED + MIXED if case.name not in WITHOUT]


def packed_reports(mechanism: Any, inputs: Sequence[np.ndarray], seed: int) -> bytes:
    """Return the reports of a mechanism as a client sends them: each field packed to whole bytes."""
    flat = [each[:, 0] if each.ndim == 2 and each.shape[1] == 1 else each for each in inputs]
    reports = mechanism.randomize(*flat, rng=seed, output=mechanism._wire_output)
    parts = reports if isinstance(reports, tuple) else (reports,)
    fields = zip(parts, mechanism._report_parts, strict=True)
    return b"".join(
        bitldp.pack(np.ascontiguousarray(part).ravel(), bits).tobytes() for part, (_, bits) in fields
    )


def values_of(document: Any, inputs: Sequence[Any]) -> list[Any]:
    """Return the inputs of a mechanism as values of the document's records."""
    tables = [each.reshape(len(each), -1) for each in inputs]
    result, start = [], {"f": 0, "u": 0}
    for record in document.program.records:
        kind = "f" if record.below is None else "u"
        table = next(each for each in tables if (each.dtype.kind == "f") == (kind == "f"))
        result.append(table[:, start[kind] : start[kind] + record.columns])
        start[kind] += record.columns
    return result


def changed(text: str, changes: dict[str, Any]) -> str:
    """Return a document with other values at dotted paths; ... takes them away."""
    fields = json.loads(text)
    for path, value in changes.items():
        *names, last = [int(each) if each.isdigit() else each for each in path.split(".")]
        place = fields
        for name in names:
            place = place[name]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return canonical(fields | {"sha256": digest(fields)})


def replays(count: int) -> Iterator[str]:
    """Yield a line of JSON for each documented mechanism: its document, and Python's reports under keys.

    Parameters
    ----------
    count : int
        Records of each mechanism, each randomized with a key of its own.
    """
    for case in DOCUMENTED:
        mechanism = case.make()
        text = mechanism.client_document(dtype="float64")
        document = open_document(text)
        drawn = case.inputs(np.random.default_rng(2026), count)
        inputs = [each.astype(np.float64) if each.dtype.kind == "f" else each for each in drawn]
        values = values_of(document, inputs)
        calls = []
        for index in range(count):
            own = b"".join(key for key in keys(index, document.program.streams) if key is not None)
            both = zip(values, document.program.records, strict=True)
            x = b"".join(np.ascontiguousarray(v[index : index + 1], r.dtype).tobytes() for v, r in both)
            expected = packed_reports(mechanism, [each[index : index + 1] for each in inputs], index)
            calls.append([base64.b64encode(each).decode() for each in (own, x, expected)])
        epsilon = document.epsilon
        slack = 1e-12 * epsilon if case.name in AMPLIFIED else 0.0
        line = {"name": case.name, "document": text, "epsilon": epsilon, "slack": slack, "calls": calls}
        yield json.dumps(line)
