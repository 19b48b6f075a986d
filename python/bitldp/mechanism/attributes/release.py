"""Release of attributes: of those that are drawn for each record, or of all; reports in one common form.

Where attributes are drawn, a report does not depend on which mechanism answered: a mechanism that reports one
code keeps it, and reports of other forms become their bits. The common form is codes of the widest, or bits
with zeros behind.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import CHUNK, KeyedRandomness, keystream
from bitldp.mechanism.base import Mechanism, Part
from bitldp.release.base import Call
from bitldp.release.draws import coordinates
from bitldp.release.keyed import by_column

__all__ = [
    "ColumnTable",
    "EqualAttributes",
    "common",
    "form_of",
    "payload",
    "released",
    "reports_of",
    "shape",
]


def form_of(mechanism: Mechanism) -> Part:
    """Return (columns, bits) of one report: a code, or as many single bits as its parts have."""
    parts = mechanism._report_parts
    return parts[0] if len(parts) == 1 and 1 in parts[0] else (mechanism.report_bits, 1)


def common(mechanisms: Sequence[Mechanism]) -> Part:
    """Return the form that a report of any of the mechanisms fits."""
    forms = [form_of(each) for each in mechanisms]
    if all(columns == 1 for columns, _ in forms):
        return 1, max(bits for _, bits in forms)
    return max(columns * bits for columns, bits in forms), 1


def payload(mechanism: Mechanism, reports: Any, records: int, form: Part) -> NDArray[np.unsignedinteger]:
    """Return reports of `records` records in a form that they fit, shape (records, columns)."""
    arrays = [np.asarray(each) for each in (reports if isinstance(reports, tuple) else (reports,))]
    columns, bits = form
    if columns == 1:
        return arrays[0].reshape(records, 1).astype(np.min_scalar_type((1 << bits) - 1))
    result = np.zeros((records, columns), np.uint8)
    begin = 0
    for array, (width, size) in zip(arrays, mechanism._report_parts, strict=True):
        if size == 1:
            result[:, begin : begin + width] = array.reshape(records, width)
            begin += width
            continue
        places = np.arange(size - 1, -1, -1, dtype=np.uint64)
        spelled = array.reshape(records, width, 1).astype(np.uint64) >> places & np.uint64(1)
        result[:, begin : begin + width * size] = spelled.reshape(records, width * size)
        begin += width * size
    return result


def reports_of(mechanism: Mechanism, table: NDArray[Any], form: Part) -> Any:
    """Return what `payload` was given, as the mechanism's estimators take it.

    Raises
    ------
    ValueError
        For bits where the form has none for this mechanism. A code out of its range is for the mechanism to
        refuse.
    """
    parts = mechanism._report_parts
    if form[0] == 1:
        return table.reshape(-1)
    arrays, begin = [], 0
    for width, size in parts:
        if size == 1:
            arrays.append(table[:, begin : begin + width])
            begin += width
            continue
        spelled = table[:, begin : begin + width * size].reshape(len(table), width, size).astype(np.uint64)
        places = np.arange(size - 1, -1, -1, dtype=np.uint64)
        codes = (spelled << places).sum(axis=2, dtype=np.uint64)
        arrays.append(codes.astype(np.min_scalar_type((1 << size) - 1)))
        begin += width * size
    if table[:, begin:].any():
        raise ValueError("reports: there are bits beyond those of the attribute that was sampled")
    arrays = [array[:, 0] if width == 1 else array for array, (width, _) in zip(arrays, parts, strict=True)]
    return mechanism._join(arrays)


ColumnTable = tuple[int, NDArray[Any]]
"""Columns of records that are of one dtype, and the number of the attribute that the first of them is."""


class EqualAttributes(NamedTuple):
    """Attributes that follow each other and have the same mechanism."""

    mechanism: Mechanism
    start: int
    stop: int


def shape(records: int, k: int, form: Part) -> tuple[int, ...]:
    """Return the shape of the reports of k sampled attributes."""
    return (records, k) if form[0] == 1 else (records, k, form[0])


def released(
    runs: Sequence[EqualAttributes],
    k: int | None,
    form: Part,
    tables: Sequence[ColumnTable],
    records: int,
    call: Call,
) -> list[NDArray[Any]]:
    """Release records, a chunk of `CHUNK` after the other.

    Parameters
    ----------
    runs : sequence of EqualAttributes
        All attributes.
    k : int or None
        Attributes that are drawn for each record; None where all are released.
    form : (int, int)
        The common form of sampled attributes' reports.
    tables : sequence of ColumnTable
        The records, checked.
    records : int
        How many.
    call : Call
        A key for the draw of attributes, and those of each run's mechanism.

    Returns
    -------
    list of ndarray
        The attributes that were drawn and their reports; or the reports of each run.
    """
    if isinstance(call.keys[0], KeyedRandomness):  # every record has randomness of its own
        stage, *rest = call.keys
        if k is None:
            return _all(runs, tables, records, call.codes(rest))
        drawn = coordinates(stage, records, runs[-1].stop, k, 0)
        return _drawn(runs, k, form, tables, drawn, call.codes(rest))
    streams = 1 + sum(run.mechanism._streams for run in runs)
    # Where nobody gave keys there are three that say so, and there may be more streams.
    keys = [*call.keys, *[None] * streams][:streams]
    secret = [key if isinstance(key, bytes) else os.urandom(32) for key in keys]
    result = []
    for index, start in enumerate(range(0, max(1, records), CHUNK)):
        # Each chunk of records has keys of its own: how far a mechanism reads its stream is its affair.
        draw, *others = (keystream(key, call.first_chunk + index, 32) for key in secret)
        parts = [(first, table[start : start + CHUNK]) for first, table in tables]
        count, own = min(CHUNK, records - start), call.codes(others)
        if k is None:
            result.append(_all(runs, parts, count, own))
        else:
            result.append(_drawn(runs, k, form, parts, coordinates(draw, count, runs[-1].stop, k, 0), own))
    return [np.concatenate(each) for each in zip(*result, strict=True)]


def _all(
    runs: Sequence[EqualAttributes], tables: Sequence[ColumnTable], records: int, call: Call
) -> list[NDArray[Any]]:
    """Release every attribute of the records of a chunk."""
    result = []
    for run, own in zip(runs, _keys(runs, call), strict=True):
        first, table = _table(run, tables)
        values = table[:, run.start - first : run.stop - first].reshape(-1)
        form = form_of(run.mechanism)
        answer = _answer(run.mechanism, values, own, form)
        result.append(answer.reshape(records, (run.stop - run.start) * form[0]))
    return result


def _drawn(
    runs: Sequence[EqualAttributes],
    k: int,
    form: Part,
    tables: Sequence[ColumnTable],
    indices: NDArray[np.unsignedinteger],
    call: Call,
) -> list[NDArray[Any]]:
    """Release the attributes that were drawn for the records of a chunk."""
    flat = indices.ravel().astype(np.intp)
    codes = np.zeros((flat.size, form[0]), np.min_scalar_type((1 << form[1]) - 1))
    for run, own in zip(runs, _keys(runs, call), strict=True):
        first, table = _table(run, tables)
        every = np.flatnonzero((flat >= run.start) & (flat < run.stop))
        for rows, keys in by_column(every, own.keys, k):
            values = table[rows // k, flat[rows] - first]
            codes[rows] = _answer(run.mechanism, values, own._replace(keys=keys), form)
    return [indices, codes.reshape(shape(len(indices), k, form))]


def _keys(runs: Sequence[EqualAttributes], call: Call) -> list[Call]:
    """Return the call of each run's mechanism, with its own keys."""
    result, begin = [], 0
    for run in runs:
        end = begin + run.mechanism._streams
        keys = call.keys[begin:end]
        result.append(Call(keys, run.mechanism._wire_output, None, call.threads, 0))
        begin = end
    return result


def _table(run: EqualAttributes, tables: Sequence[ColumnTable]) -> ColumnTable:
    """Return the table that has the columns of a run."""
    return next(each for each in reversed(tables) if each[0] <= run.start)


def _answer(mechanism: Mechanism, values: NDArray[Any], call: Call, form: Part) -> NDArray[Any]:
    return payload(mechanism, mechanism._perturb(values, call), len(values), form)
