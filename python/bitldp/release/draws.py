"""Public randomness beside a channel: coordinates and permutations that do not depend on the data.

Value i of a call takes the i-th number of its key's stream. As in the channels, the stream comes in chunks of
``CHUNK`` values, chunk c being the keystream of nonce c, so that batches of whole chunks concatenate. With
keyed randomness in place of a key, every record has a stream of its own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import CHUNK, KeyedRandomness, keystream
from bitldp.release.base import Source

_KEY_BYTES = 32
_BLOCK = 1 << 13  # records that are drawn for at once: their words stay in a cache
MOST_NUMBER = (1 << 62) - 1  # of a record that implies its public random numbers


def public_key(seed: int, use: str = "rotation") -> bytes:
    """Return the key of a seed that everybody knows; no key of a release is derived in this way."""
    return hashlib.sha256(f"bitldp {use} 1 {seed}".encode()).digest()


def _words(key: Source, count: int, first_chunk: int) -> NDArray[np.uint64]:
    """Return `count` words of 64 bits; without a key, from a fresh one of the operating system."""
    if isinstance(key, KeyedRandomness):
        return key.words(count // max(1, len(key)), first_chunk)
    key = os.urandom(_KEY_BYTES) if key is None else key
    chunks = range(0, count, CHUNK)
    stream = b"".join(
        keystream(key, first_chunk + index, 8 * min(CHUNK, count - start))
        for index, start in enumerate(chunks)
    )
    return np.frombuffer(stream, "<u8")


def words_of_numbers(key: bytes, first: int, records: int, each: int) -> NDArray[np.uint64]:
    """Return `each` words of a public key for the numbers first, first + 1, ..., shape (records, each)."""
    chunk, skip = divmod(first * each, CHUNK)
    return _words(key, skip + records * each, chunk)[skip:].reshape(records, each)


def coordinates(
    key: Source, records: int, features: int, k: int, first_chunk: int
) -> NDArray[np.unsignedinteger]:
    """Return k different coordinates for every record, shape (records, k), any subset as likely as another.

    Floyd's algorithm, one column at a time: the draw for j is uniform over 0..j, and one that is taken
    already stands for j itself (Bentley and Floyd, "A sample of brilliance", CACM 30, 1987). A draw is 64
    bits wide, so that chances differ from uniform by less than features/2**64 of their value.
    """
    return distinct(_words(key, records * k, first_chunk).reshape(records, k), features)


def distinct(draws: NDArray[np.uint64], features: int) -> NDArray[np.unsignedinteger]:
    """Return the different coordinates that 64-bit draws of shape (records, k) stand for: `coordinates`."""
    records, k = draws.shape
    chosen = np.empty((records, k), np.min_scalar_type(features - 1))
    if k == 1:
        chosen[:, 0] = scaled(draws[:, 0], features)
        return chosen
    for start in range(0, records, _BLOCK):
        block = slice(start, start + _BLOCK)
        columns = np.ascontiguousarray(draws[block].T)
        drawn = np.empty(columns.shape, chosen.dtype)
        for index, last in enumerate(range(features - k, features)):
            own = drawn[index]
            own[:] = scaled(columns[index], last + 1)
            np.copyto(own, last, where=(drawn[:index] == own).any(axis=0))
        chosen[block] = drawn.T
    return chosen


def words_by_record(key: Source, records: int, each: int, chunk: int, first_chunk: int) -> NDArray[np.uint64]:
    """Return `each` words for every record, shape (records, each), in chunks of `chunk` records."""
    if isinstance(key, KeyedRandomness):
        return key.words(each, 0).reshape(records, each)
    key = os.urandom(_KEY_BYTES) if key is None else key
    stream = b"".join(
        keystream(key, first_chunk + index, 8 * each * min(chunk, records - start))
        for index, start in enumerate(range(0, records, chunk))
    )
    return np.frombuffer(stream, "<u8").reshape(records, each)


def coefficients(
    key: Source, records: int, prime: int, first_chunk: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a from 1 and b from 0 to below a prime for every record, shape (records,) each.

    A draw is 64 bits wide, so that chances differ from uniform by less than prime/2**64 of their value. A
    chunk is ``CHUNK`` records.
    """
    a, b = np.empty((2, records), np.int64)
    for block, *both in coefficient_blocks(key, records, prime, first_chunk):
        a[block], b[block] = both
    return a, b


def coefficient_blocks(
    key: Source, records: int, prime: int, first_chunk: int
) -> Iterator[tuple[slice, NDArray[np.int64], NDArray[np.int64]]]:
    """Yield `coefficients` of a block of records after the other, each behind the slice of its records."""
    words = _words(key, 2 * records, 2 * first_chunk).reshape(records, 2)
    for start in range(0, records, _BLOCK):
        block = slice(start, start + _BLOCK)
        yield block, *scaled_coefficients(words[block], prime)


def scaled_coefficients(draws: NDArray[np.uint64], prime: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a from 1 and b from 0 to below a prime, of two words for every record."""
    return 1 + scaled(draws[:, 0], prime - 1).astype(np.int64), scaled(draws[:, 1], prime).astype(np.int64)


def seeds(key: Source, records: int, first_chunk: int) -> NDArray[np.uint32]:
    """Return a uniform number of 32 bits for every record, shape (records,)."""
    return (_words(key, records, first_chunk) >> np.uint64(32)).astype(np.uint32)


def whole_numbers(
    key: Source, records: int, count: int | NDArray[np.integer[Any]], first_chunk: int, skip: int = 0
) -> NDArray[np.intp]:
    """Return a number from 0 to below `count`, one or one a record, shape (records,), behind `skip` others.

    A draw is 64 bits wide, so that chances differ from uniform by less than count/2**64 of their value.
    """
    return scaled(_words(key, skip + records, first_chunk)[skip:], count)


def permutations(key: bytes | None, rows: int, columns: int) -> NDArray[np.intp]:
    """Return an independent permutation of range(rows) in every column, shape (rows, columns).

    Each column is ordered by 64-bit draws; equal ones (a chance below rows**2/2**64) keep their order.
    """
    draws = _words(key, rows * columns, 0).reshape(rows, columns)
    return np.argsort(draws, axis=0, kind="stable")


def scaled(draws: NDArray[np.uint64], count: int | NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Return floor(draw * count/2**64) for 64-bit draws and count < 2**32, in halves that cannot overflow."""
    high, low = draws >> np.uint64(32), draws & np.uint64(0xFFFFFFFF)
    factor = np.asarray(count, np.uint64)
    result: NDArray[np.uint64] = (high * factor + (low * factor >> np.uint64(32))) >> np.uint64(32)
    return result.astype(np.intp)
