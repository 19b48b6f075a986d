"""Ids of records, by which keyed random bits are drawn: each once, none missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp._core import text_digests
from bitldp.base.errors import DataError, PlanError
from bitldp.release.keyed import repeated
from bitldp.tables.frames import plain_column, worded

__all__ = ["FirstIds", "SeenIds", "ids_of"]


def ids_of(
    column: Any,
    name: str,
    first_row: int,
    threads: int | None = None,
    *,
    typed: bool = False,
    again: bool = False,
) -> NDArray[Any]:
    """Return a column of ids as the core takes them.

    Parameters
    ----------
    column : pyarrow.ChunkedArray or pyarrow.Array
        Integers, text or bytes. An integer and its text are different ids, so the column keeps its type.
    name : str
        Of the column.
    first_row : int
        Number of its first row, for errors.
    threads : int, optional
    typed : bool
        Whether the plan states the ids' type: then -1 and 2**64 - 1 are two ids, as integers of any width.
    again : bool
        Whether an id may come up twice.

    Returns
    -------
    ndarray
        Of uint64, or uint8 of shape (n, 32): SHA-256 digests, and integers of a stated type.

    Raises
    ------
    DataError
        For a missing id, or one that comes up twice.
    PlanError
        For a column of another type.
    """
    with worded([name]):
        column = plain_column(column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:
        row = first_row + int(pc.index(column.is_null(), True).as_py())
        raise DataError(f"row {row}, column {name!r}: missing value, where every record needs its id")
    kind = column.type
    if pa.types.is_integer(kind):
        signed = column.to_numpy()
        ids: NDArray[Any] = signed.astype(np.uint64 if signed.dtype.kind == "u" else np.int64).view(np.uint64)
        if typed:
            ids = _wide(ids, large=signed.dtype.kind == "u")
    elif (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or str(kind).startswith(("binary", "large_binary", "string_view", "fixed_size_binary"))
    ):
        ids = _digests(column.cast(pa.large_binary()), threads)
    else:
        raise PlanError(f"column {name!r}: holds {kind}; ids of records are integers, text or bytes")
    if not again and len(twice := repeated(ids)):
        where = f"row {first_row + int(twice[0])}, column {name!r}"
        raise DataError(f"{where}: an id that came up before; every record has its own")
    return ids


def _wide(words: NDArray[np.uint64], *, large: bool) -> NDArray[np.uint8]:
    """Return integers as 32 bytes each: those of 2**63 or more, where there are such, are no negative ones.

    The first eight bytes tell them apart, too, but for chance; `SeenIds` looks at these.
    """
    rows = np.zeros((len(words), 4), "<u8")
    rows[:, 0] = words
    if large and bool((beyond := words >> np.uint64(63) == 1).any()):
        rows[beyond, 0] = (words[beyond] ^ words[beyond] >> np.uint64(31)) * np.uint64(0x9E3779B97F4A7C15)
        rows[beyond, 1], rows[beyond, 2] = words[beyond], 1
    return rows.view(np.uint8)


def _digests(texts: Any, threads: int | None) -> NDArray[np.uint8]:
    """Return the digests of a column of large binary, from the buffers that it has."""
    _, offsets, content = texts.buffers()
    if not len(texts):
        return np.empty((0, 32), np.uint8)
    starts = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return text_digests(starts, np.frombuffer(content or b"", np.uint8), threads=threads)


class SeenIds:
    """Looks whether an id of a table comes up in two of its batches, or in two partitions of it.

    Integers that follow each other by one take no memory; others eight bytes each. What was seen of a
    partition leaves a worker as bytes (`to_bytes`), and is joined with what others have seen (`merge`).

    Parameters
    ----------
    name : str
        Column of the ids, for errors.
    """

    def __init__(self, name: str) -> None:
        self.name = name
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

    def merge(self, other: SeenIds) -> SeenIds:
        """Add what another has seen."""
        self._runs += other._runs
        self._others += other._others
        return self

    def __len__(self) -> int:
        """Return how many ids there were."""
        return sum(last - first + 1 for first, last in self._runs) + sum(map(len, self._others))

    def to_bytes(self) -> bytes:
        """Return what was seen: how many runs, their ends, and the other ids, as little-endian uint64."""
        parts = [np.array([len(self._runs)]), np.array(self._runs, np.uint64).ravel(), *self._others]
        return b"".join(part.astype("<u8").tobytes() for part in parts)

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> SeenIds:
        """Return what was seen elsewhere, of a column of this name.

        Raises
        ------
        ValueError
            For bytes that `to_bytes` did not give.
        """
        words = np.frombuffer(data, "<u8") if len(data) % 8 == 0 else np.empty(0, np.uint64)
        if not len(words) or 2 * int(words[0]) > len(words) - 1:
            raise ValueError("data: are not the ids of a store")
        result, ends = cls(name), 1 + 2 * int(words[0])
        result._runs = [(int(first), int(last)) for first, last in words[1:ends].reshape(-1, 2)]
        if len(words) > ends:
            result._others = [words[ends:].astype(np.uint64)]
        return result

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
            after = np.searchsorted(runs[:, 0], others, side="right")
            inside = (after > 0) & (others <= runs[np.maximum(after, 1) - 1, 1]) if len(runs) else np.False_
            twice = bool((others[1:] == others[:-1]).any() or np.any(inside))
        if twice:
            raise DataError(f"column {self.name!r}: an id comes up twice; every record has its own")


class FirstIds(SeenIds):
    """Refuses an id that came up before as soon as it is added.

    Sorted arrays of ids, each at least twice as long as the next, are looked through by bisection: what is
    added costs the same however many there are, but for a logarithm.
    """

    def add(self, ids: NDArray[Any]) -> None:
        """Keep the ids of a batch; see `SeenIds.add`.

        Raises
        ------
        DataError
            If one of them came up before, without the id.
        """
        new = SeenIds(self.name)
        new.add(ids)
        own = (
            np.concatenate([np.sort(each) for each in new._others]) if new._others else np.empty(0, np.uint64)
        )
        for first, last in new._runs:
            self._refuse(any(a <= last and first <= b for a, b in self._runs))
            self._refuse(any(_between(each, first, last) for each in self._others))
        self._refuse(any(_between(own, first, last) for first, last in self._runs))
        for each in self._others:
            where = np.searchsorted(each, own)
            self._refuse(bool((each[np.minimum(where, len(each) - 1)] == own).any()))
        for first, last in new._runs:
            joined = self._runs and self._runs[-1][1] + 1 == first
            self._runs[-1 if joined else len(self._runs) :] = [(self._runs[-1][0] if joined else first, last)]
        if len(own):
            self._others.append(own)
        while len(self._others) > 1 and len(self._others[-2]) < 2 * len(self._others[-1]):
            latest, before = self._others.pop(), self._others.pop()
            self._others.append(np.sort(np.concatenate([before, latest]), kind="stable"))

    def _refuse(self, twice: bool) -> None:
        if twice:
            raise DataError(f"column {self.name!r}: an id that came up before; every record has its own")


def _between(numbers: NDArray[np.uint64], first: int, last: int) -> bool:
    """Return whether sorted numbers have one from `first` to `last`."""
    ends = np.array([first, last], np.uint64)
    return bool(
        np.searchsorted(numbers, ends[1], side="right") > np.searchsorted(numbers, ends[0], side="left")
    )
