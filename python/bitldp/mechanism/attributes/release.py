"""Releases of attributes: of those that a public coin draws for each record, or of all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import CHUNK, Coins, keystream
from bitldp.mechanism.attributes.payload import form_of, payload
from bitldp.mechanism.base import Mechanism, Part
from bitldp.release.base import Call
from bitldp.release.draws import coordinates
from bitldp.release.keyed import by_column

__all__ = ["Run", "Table", "released", "shape"]

Table = tuple[int, NDArray[Any]]
"""Columns of records that are of one dtype, and the number of the attribute that the first of them is."""


class Run(NamedTuple):
    """Attributes that follow each other and have the same mechanism."""

    mechanism: Mechanism
    start: int
    stop: int


def shape(records: int, k: int, form: Part) -> tuple[int, ...]:
    """Return the shape of the reports of k sampled attributes."""
    return (records, k) if form[0] == 1 else (records, k, form[0])


def released(
    runs: Sequence[Run], k: int | None, form: Part, tables: Sequence[Table], records: int, call: Call
) -> list[NDArray[Any]]:
    """Release records, a chunk of `CHUNK` after the other.

    Parameters
    ----------
    runs : sequence of Run
        All attributes.
    k : int or None
        Attributes that are drawn for each record; None where all are released.
    form : (int, int)
        The common form of sampled attributes' reports.
    tables : sequence of Table
        The records, checked.
    records : int
        How many.
    call : Call
        A key for the coin, and those of each run's mechanism.

    Returns
    -------
    list of ndarray
        The attributes that were drawn and their reports; or the reports of each run.
    """
    if isinstance(call.keys[0], Coins):  # every record has coins of its own
        stage, *rest = call.keys
        if k is None:
            return _all(runs, tables, records, call.codes(rest))
        drawn = coordinates(stage, records, runs[-1].stop, k, 0)
        return _drawn(runs, k, form, tables, drawn, call.codes(rest))
    streams = 1 + sum(run.mechanism._streams for run in runs)
    # Where nobody gave keys there are three that say so, and there may be more streams.
    keys = [*call.keys, *[None] * streams][:streams]
    secret = [key if isinstance(key, bytes) else os.urandom(32) for key in keys]
    found = []
    for place, start in enumerate(range(0, max(1, records), CHUNK)):
        # Each chunk of records has keys of its own: how far a mechanism reads its stream is its affair.
        coin, *others = (keystream(key, call.first_chunk + place, 32) for key in secret)
        parts = [(first, table[start : start + CHUNK]) for first, table in tables]
        count, own = min(CHUNK, records - start), call.codes(others)
        if k is None:
            found.append(_all(runs, parts, count, own))
        else:
            found.append(_drawn(runs, k, form, parts, coordinates(coin, count, runs[-1].stop, k, 0), own))
    return [np.concatenate(each) for each in zip(*found, strict=True)]


def _all(runs: Sequence[Run], tables: Sequence[Table], records: int, call: Call) -> list[NDArray[Any]]:
    """Release every attribute of the records of a chunk."""
    found = []
    for run, own in zip(runs, _keys(runs, call), strict=True):
        first, table = _table(run, tables)
        values = table[:, run.start - first : run.stop - first].reshape(-1)
        form = form_of(run.mechanism)
        answer = _answer(run.mechanism, values, own, form)
        found.append(answer.reshape(records, (run.stop - run.start) * form[0]))
    return found


def _drawn(
    runs: Sequence[Run],
    k: int,
    form: Part,
    tables: Sequence[Table],
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


def _keys(runs: Sequence[Run], call: Call) -> list[Call]:
    """Return the call of each run's mechanism, with its own keys."""
    found, begin = [], 0
    for run in runs:
        end = begin + run.mechanism._streams
        keys = call.keys[begin:end]
        found.append(Call(keys, run.mechanism.wire_output, None, call.threads, 0))
        begin = end
    return found


def _table(run: Run, tables: Sequence[Table]) -> Table:
    """Return the table that has the columns of a run."""
    return next(each for each in reversed(tables) if each[0] <= run.start)


def _answer(mechanism: Mechanism, values: NDArray[Any], call: Call, form: Part) -> NDArray[Any]:
    return payload(mechanism, mechanism._perturb(values, call), len(values), form)
