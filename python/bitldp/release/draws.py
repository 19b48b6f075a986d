"""Randomness beside a channel: public coordinates and permutations, and items that are drawn in secret.

Value i of a call takes the i-th number of its key's stream. As in the channels, the stream comes in chunks of
``CHUNK`` values, chunk c being the keystream of nonce c, so that batches of whole chunks concatenate. With
keyed randomness in place of a key, every record has a stream of its own. The core draws, for clients in other
languages, too.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp import _core
from bitldp._core import CHUNK, KeyedRandomness
from bitldp.release.base import Source

_FINE = 1 << 31  # steps of the chance of a sign
MOST_NUMBER = (1 << 62) - 1  # of a record that implies its public random numbers


def public_key(seed: int, use: str = "rotation") -> bytes:
    """Return the key of a seed that everybody knows; no key of a release is derived in this way."""
    return hashlib.sha256(f"bitldp {use} 1 {seed}".encode()).digest()


def _words(key: Source, count: int, first_chunk: int) -> NDArray[np.uint64]:
    """Return `count` words of 64 bits; without a key, from a fresh one of the operating system."""
    if isinstance(key, KeyedRandomness):
        return _core.words(key, len(key), count // max(1, len(key)), first_chunk)
    return _core.words(key, count, 1, first_chunk)


def words_of_numbers(key: bytes, first: int, records: int, each: int) -> NDArray[np.uint64]:
    """Return `each` words of a public key for the numbers first, first + 1, ..., shape (records, each)."""
    chunk, skip = divmod(first * each, CHUNK)
    return _words(key, skip + records * each, chunk)[skip:].reshape(records, each)


def coordinates(
    key: Source, records: int, features: int, k: int, first_chunk: int
) -> NDArray[np.unsignedinteger]:
    """Return k different coordinates for every record, shape (records, k), any subset as likely as another.

    Floyd's algorithm: the draw for j is uniform over 0..j, and one that is taken already stands for j itself
    (Bentley and Floyd, "A sample of brilliance", CACM 30, 1987). A draw is 64 bits wide, so that chances
    differ from uniform by less than features/2**64 of their value.
    """
    return _core.coordinates(key, records, features, k, first_chunk)


def distinct(draws: NDArray[np.uint64], features: int) -> NDArray[np.unsignedinteger]:
    """Return the different coordinates that 64-bit draws of shape (records, k) stand for: `coordinates`."""
    return _core.distinct(draws, features)


def words_by_record(key: Source, records: int, each: int, chunk: int, first_chunk: int) -> NDArray[np.uint64]:
    """Return `each` words for every record, shape (records, each), in chunks of `chunk` records."""
    stream = 0 if isinstance(key, KeyedRandomness) else first_chunk
    return _core.words(key, records, each, stream, chunk * each).reshape(records, each)


def functions(key: Source, records: int, prime: int, first_chunk: int) -> NDArray[np.uint32]:
    """Return a from 1 and b from 0 to below a prime for every record, shape (records, 2).

    A draw is 64 bits wide, so that chances differ from uniform by less than prime/2**64 of their value. A
    chunk is ``CHUNK`` records.
    """
    words = _words(key, 2 * records, 2 * first_chunk).reshape(records, 2)
    return _core.functions(words, prime)


def functions_of_numbers(key: bytes, first: int, records: int, prime: int) -> NDArray[np.uint32]:
    """Return the `functions` of a public key for the numbers first, first + 1, ..., shape (records, 2)."""
    return _core.functions(words_of_numbers(key, first, records, 2), prime)


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
    """Return floor(draw * count/2**64) for 64-bit draws and count < 2**32."""
    counts = int(count) if np.ndim(count) == 0 else np.asarray(count, np.int64)
    return _core.scaled(draws, counts)


def sampled_items(members: NDArray[np.bool_], size: int, key: Source, first_chunk: int) -> NDArray[np.int64]:
    """Return a uniform item of each set, padded to `padding` by dummies behind the items, shape (n,).

    A set of more than `size` items is not padded. A draw is 64 bits wide: no item has a chance above
    ceil(2**64/size)/2**64, which is what `amplified` counts with.
    """
    records, items = members.shape
    counts = members.sum(axis=1)
    drawn = whole_numbers(key, records, np.maximum(counts, size), first_chunk)
    # The drawn one in order is where so many items have come up; beyond them it is a dummy.
    place = (np.cumsum(members, axis=1, dtype=np.int32) <= drawn[:, None]).sum(axis=1)
    return np.where(drawn < counts, place, items + drawn - counts).astype(np.int64)


def signed_items(
    items: NDArray[np.int64], values: NDArray[Any], key: Source, first_chunk: int
) -> NDArray[np.int64]:
    """Return pairs of an item and a sign as codes, shape (n,): twice the item, and 1 where the sign is +.

    A sign is + with the chance (1 + value)/2 of the item's value on [-1, 1], in steps of 2**-31; a dummy's
    value is 0. `values` has the shape (n, items).
    """
    records, count = values.shape
    held = items < count
    own = np.where(held, values[np.arange(records), np.where(held, items, 0)], 0.0)
    steps = np.rint((own + 1.0) * (_FINE // 2)).astype(np.int64)
    return 2 * items + (whole_numbers(key, records, _FINE, first_chunk) < steps)
