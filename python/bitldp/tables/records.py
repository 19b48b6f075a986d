"""Ids of records as coins are drawn by: each once, none missing."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.refused import DataError, PlanError

__all__ = ["SeenIds", "ids_of"]


def ids_of(column: Any, name: str, first_row: int) -> NDArray[Any]:
    """Return a column of ids as the core takes them.

    Parameters
    ----------
    column : pyarrow.ChunkedArray or pyarrow.Array
        Integers, text or bytes. An integer and its text are different ids, so the column keeps its type.
    name : str
        Of the column.
    first_row : int
        Number of its first row, for errors.

    Returns
    -------
    ndarray
        Of uint64, or digests: uint8 of shape (n, 32).

    Raises
    ------
    DataError
        For a missing id, or one that comes up twice.
    PlanError
        For a column of another type.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:
        row = first_row + int(pc.index(column.is_null(), True).as_py())
        raise DataError(f"row {row}, column {name!r}: missing value, where every record needs its id")
    kind = column.type
    if pa.types.is_integer(kind):
        signed = column.to_numpy()
        ids: NDArray[Any] = signed.astype(np.uint64 if signed.dtype.kind == "u" else np.int64).view(np.uint64)
    elif (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or str(kind).startswith(("binary", "large_binary", "string_view", "fixed_size_binary"))
    ):
        texts = column.cast(pa.large_binary()).to_pylist()
        ids = np.frombuffer(b"".join(hashlib.sha256(text).digest() for text in texts), np.uint8).reshape(
            -1, 32
        )
    else:
        raise PlanError(f"column {name!r}: holds {kind}; ids of records are integers, text or bytes")
    _refuse_twice(ids, name, first_row)
    return ids


def _refuse_twice(ids: NDArray[Any], name: str, first_row: int) -> None:
    order = np.argsort(ids, kind="stable") if ids.ndim == 1 else np.lexsort(ids.T[::-1])
    same = ids[order[1:]] == ids[order[:-1]]
    twice = same if ids.ndim == 1 else same.all(axis=1)
    if twice.any():
        row = first_row + int(order[1:][twice].min())
        raise DataError(f"row {row}, column {name!r}: an id that came up before; every record has its own")


class SeenIds:
    """Looks whether an id of a table comes up in two of its batches.

    Integers that follow each other by one take no memory; others eight bytes each.

    Parameters
    ----------
    name : str
        Column of the ids, for errors.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._runs: list[tuple[int, int]] = []
        self._others: list[NDArray[np.uint64]] = []

    def add(self, ids: NDArray[Any]) -> None:
        """Keep the ids of a batch, as `ids_of` gives them."""
        if not len(ids):
            return
        # Of digests the first eight bytes: among 10^7 ids two are alike by chance once in 400,000 tables.
        short = ids if ids.ndim == 1 else np.ascontiguousarray(ids[:, :8]).view(np.uint64)[:, 0]
        first, last = int(short[0]), int(short[-1])
        if last - first == len(short) - 1 and bool((short[1:] > short[:-1]).all()):
            self._runs.append((first, last))
        else:
            self._others.append(short)

    def check(self) -> None:
        """Raise if an id came up twice.

        Raises
        ------
        DataError
            Without the id.
        """
        runs = np.array(sorted(self._runs), np.uint64).reshape(-1, 2)
        twice = bool((runs[1:, 0] <= runs[:-1, 1]).any())
        if self._others and not twice:
            others = np.sort(np.concatenate(self._others))
            place = np.searchsorted(runs[:, 0], others, side="right")
            inside = (place > 0) & (others <= runs[np.maximum(place, 1) - 1, 1]) if len(runs) else np.False_
            twice = bool((others[1:] == others[:-1]).any() or np.any(inside))
        if twice:
            raise DataError(f"column {self._name!r}: an id comes up twice; every record has its own")
