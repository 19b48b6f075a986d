"""Writing of client documents: a program as canonical JSON, with a golden report for a self-test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Grid, keystream
from bitldp.base import checks
from bitldp.base.keys import keys
from bitldp.client import laws
from bitldp.client.codec import Codec, Item, OneHot, Placed, Signs
from bitldp.client.document import KeyedAnswers, ModelUpdate, Promise, exact_of, within
from bitldp.client.notation import VERSION, NoDocumentError, canonical, digest, double, text_of
from bitldp.client.program import ClientProgram, PublicDraw, PublicRotation, packed
from bitldp.client.record import ClientRecord
from bitldp.release.draws import scaled

__all__ = ["GOLDEN_SEED", "golden_inputs", "write"]

GOLDEN_SEED = 1
"""Seed of the golden reports. Its keys are public: the document states them."""

_GOLDEN_BITS = 64  # of golden reports, at least, so that a wrong client hardly passes by chance
_MOST_GOLDEN = 64  # records


def write(
    program: ClientProgram,
    promise: Promise,
    golden: Sequence[NDArray[Any]],
    *,
    keyed: KeyedAnswers | None = None,
    spends: tuple[str, int] | None = None,
    update: ModelUpdate | None = None,
    header: bytes = b"",
) -> str:
    """Check a program against its mechanism, and return the document as canonical text.

    Parameters
    ----------
    program, promise, keyed, spends, update, header
        Contents of the document.
    golden : sequence of ndarray
        Codes that the mechanism itself makes of `golden_inputs` with ``rng=GOLDEN_SEED``, an array for each
        field.

    Raises
    ------
    NoDocumentError
        For an epsilon that no client could compute.
    ArithmeticError
        If the program makes other reports than the mechanism, or has another epsilon.
    """
    if spends is not None:
        spends = str(spends[0]), checks.integer("spends[1]", spends[1], 1)
    if not math.isfinite(promise.epsilon):
        raise NoDocumentError(f"{promise.mechanism}: has no client document, since its epsilon is infinite")
    if promise.delta and program.symbols > 1:
        raise NoDocumentError(
            f"{promise.mechanism}: has no client document: no other client adds up the deltas of numbers"
        )
    inputs = golden_inputs(program)
    own: list[bytes] = [key for key in keys(GOLDEN_SEED, program.streams) if key is not None]
    report = packed(golden, program.fields)
    if report != program.packed(inputs, own):
        raise ArithmeticError("client_document: a client would not make this mechanism's reports")
    if not within(exact_of(program, promise, update), promise.epsilon):
        raise ArithmeticError("client_document: a client would not find this mechanism's epsilon")
    raw = b"".join(_raw(each, record) for each, record in zip(inputs, program.records, strict=True))
    fields: dict[str, Any] = {
        "bitldp": VERSION,
        "mechanism": promise.mechanism[:4096],
        "fingerprint": promise.fingerprint.hex(),
        "unit": promise.unit,
        "epsilon": double(promise.epsilon),
        "delta": double(promise.delta),
        **_of_program(program),
        "golden": {
            "key": b"".join(own).hex(),
            "input": text_of(raw),
            "report": text_of(report),
        },
    }
    if promise.given:
        fields["given"] = promise.given
    if keyed is not None:
        fields["keyed"] = {"context": keyed.context.hex(), "column": keyed.column, "id": keyed.id}
        if keyed.apart:
            fields["keyed"]["apart"] = True
    if update is not None:
        fields["update"] = {
            "clip": double(update.clip),
            "norm": update.norm,
            "low": double(update.low),
            "high": double(update.high),
            "records": update.records,
            "header": text_of(update.header),
        }
        if update.rows > 1:
            fields["update"]["rows"] = update.rows
    if header:
        fields["header"] = text_of(header)
    if spends is not None:
        fields["spends"] = {"ledger": spends[0], "most": spends[1]}
    return canonical(fields | {"sha256": digest(fields)})


def _raw(values: NDArray[Any], record: ClientRecord) -> bytes:
    return np.ascontiguousarray(values, record.dtype).tobytes()


def golden_inputs(program: ClientProgram) -> list[NDArray[Any]]:
    """Return the records of the self-test: enough for 64 bits of report, and at most 64."""
    bits = sum(columns * size for columns, size in program.fields)
    count = max(1, min(_MOST_GOLDEN, math.ceil(_GOLDEN_BITS / bits)))
    result, key = [], bytes(range(32))
    for index, record in enumerate(program.records):
        words = np.frombuffer(keystream(key, index, 8 * count * record.columns), "<u8")
        if not record.real and record.codes is not None:
            values: NDArray[Any] = scaled(words, np.resize(record.codes, len(words)))
        else:
            ends = record.intervals or (record.interval or (-1.0, 1.0),)
            low, high = np.resize(np.array(ends), (len(words), 2)).T
            shares = (words >> np.uint64(11)) * 2.0**-53
            values = np.clip(low * (1.0 - shares) + high * shares, low, high)
            if record.gaps:
                values[words % np.uint64(2) == 0] = np.nan
        kind = record.dtype.newbyteorder("=")
        own = values.astype(kind).reshape(count, record.columns)
        if record.interval is not None and record.outside == "refuse":
            low, high = (kind.type(end) for end in record.interval)
            own = np.clip(own, low, high)
        result.append(own)
    return result


def _of_program(program: ClientProgram) -> dict[str, Any]:
    """Return the fields of a program: those of a document, or of a part of it."""
    fields: dict[str, Any] = {
        "report": {"form": "packed", "fields": [list(part) for part in program.fields]},
        "keys": program.streams,
    }
    if program.parts:
        parts = [_of_program(part) for part in program.parts]
        fields |= {"parts": parts} | ({"chunked": True} if program.chunked else {})
        if program.record is not None:
            cells = [[list(cell) for cell in cells] for cells in program.cells]
            fields |= {"record": _of_record(program.record), "cells": cells}
        return fields if program.draw is None else fields | {"public": [_of_draw(program.draw)]}
    assert program.record is not None
    fields |= {"record": _of_record(program.record), "channel": laws.written(program.channel)}
    if program.ends is not None:
        fields["channel"] |= {"ends": _of_grid(program.ends)}
    if program.second is not None:
        fields["second"] = laws.written(program.second)
    if program.codec is not None:
        fields["codec"] = _of_codec(program.codec)
    if program.order is not None:
        fields["order"] = list(program.order)
    return fields if program.draw is None else fields | {"public": [_of_draw(program.draw)]}


def _of_draw(draw: PublicDraw | PublicRotation) -> dict[str, Any]:
    if isinstance(draw, PublicRotation):
        _, radius, kind, key = draw.rotation.__getnewargs__()
        return {
            "draw": "rotation",
            "kind": kind,
            "key": key.hex(),
            "radius": double(radius),
            "rotations": draw.count,
            "reports": draw.reports,
        }
    names = {"coordinates": ("of", "k"), "affine": ("prime", "values"), "step": ("count", "cells")}
    of, count = names[draw.kind]
    return {"draw": draw.kind, of: draw.of, count: draw.count}


def _of_record(record: ClientRecord) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": record.type, "columns": record.columns}
    if record.names is not None:
        fields["names"] = list(record.names)
    if not record.real:
        fields["below"] = list(record.below) if isinstance(record.below, tuple) else record.below
        if record.fill is not None:
            fields["fill"] = int(record.fill)
        return fields if record.labels is None else fields | {"labels": list(record.labels)}
    if record.below is not None:
        fields["points"] = record.below
    if record.gaps:
        fields["gaps"] = True
    if record.unit is not None:
        fields["unit"] = record.unit
    fields["outside"] = record.outside
    if record.interval is not None:
        fields["interval"] = [double(end) for end in record.interval]
    if record.fill is not None:
        fields["fill"] = double(record.fill)
    if record.span is not None:
        fields["intervals"] = [[double(end) for end in each] for each in record.intervals]
        if record.below is None:
            fields["span"] = [double(end) for end in record.span]
    return fields


def _of_grid(grid: Grid) -> dict[str, Any]:
    return {
        "kind": "grid",
        "points": grid.points,
        "low": double(grid.low),
        "high": double(grid.high),
        "rounding": grid.rounding,
        "clip": grid.clip,
    }


def _of_codec(codec: Codec) -> dict[str, Any]:
    if isinstance(codec, Grid):
        return _of_grid(codec)
    if isinstance(codec, Signs):
        return _of_grid(codec.grid) | {"kind": "signs", "columns": codec.columns}
    if isinstance(codec, Placed):
        return _of_grid(codec.grid) | {"kind": "placed"}
    if isinstance(codec, Item):
        own = {"kind": "item", "items": codec.items, "padding": codec.padding}
        return own | {"signs": True} if codec.signs else own
    if isinstance(codec, OneHot):
        return {"kind": "onehot", "categories": codec.categories, "top": codec.top}
    return {
        "kind": "fixed",
        "bits": codec.bits,
        "integer_bits": codec.integer_bits,
        "sign": codec.sign,
        "infinities": codec.infinities,
    }
