"""Reports that are a function of a key, a record's id and its value: a release repeated gives the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import KeyedRandomness
from bitldp.base import checks
from bitldp.base.keys import check_secret
from bitldp.release.base import Call, Release, Source, called

Ids = NDArray[np.integer[Any]] | Sequence[bytes]
"""Names of records: whole numbers of zero or more, digests of 32 bytes, or bytes, which SHA-256 digests."""

_FORMS = ("codes", "bits", "values", "packed")


def keyed_randomness(key: bytes, ids: Ids, context: bytes, column: int, duplicates: bool) -> KeyedRandomness:
    """Return the keyed randomness of records.

    Parameters
    ----------
    key, ids, context, column, duplicates
        As of `keyed`.

    Raises
    ------
    ValueError, TypeError
        For a key of another length or of zeros, ids of another shape or dtype, or an id twice.
    """
    check_secret(key)
    names = _named(ids)
    randomness = KeyedRandomness(key, context, names, column)
    if not duplicates and len(repeated(names)):
        raise ValueError("ids: each may come up once; duplicates=True allows more")
    return randomness


def repeated(ids: NDArray[Any]) -> NDArray[np.intp]:
    """Return the places of ids that came up before: integers, or digests a row."""
    short = ids if ids.ndim == 1 else np.ascontiguousarray(ids[:, :8]).view(np.uint64)[:, 0]
    if (short[1:] > short[:-1]).all():
        return np.empty(0, np.intp)
    ascending = np.sort(short)
    twice = ascending[1:][ascending[1:] == ascending[:-1]]
    if not len(twice):
        return np.empty(0, np.intp)
    # Digests whose beginnings are alike may still differ.
    alike = np.flatnonzero(np.isin(short, twice))
    _, firsts = np.unique(ids[alike], axis=0, return_index=True)
    return np.delete(alike, firsts)


def bound(
    randomness: KeyedRandomness, records: Sequence[NDArray[Any]], threads: int | None
) -> KeyedRandomness:
    """Return keyed randomness that depends on the whole records: arrays with these on their first axis."""
    for values in records:
        fitting(randomness, values)
        randomness = randomness.bound(values, threads)
    return randomness


def fitting(randomness: KeyedRandomness, values: NDArray[Any]) -> None:
    """Refuse values of another number of records."""
    if values.ndim == 0 or len(values) != len(randomness):
        records = f"{len(values)} records" if values.ndim else "a single value, which needs an array of one"
        raise ValueError(f"ids: {len(randomness)} of them do not fit {records}")


def by_column(
    places: NDArray[np.intp], sources: Sequence[Source], columns: int
) -> Iterator[tuple[NDArray[np.intp], Sequence[Source]]]:
    """Yield places of some values of records, counted record by record, and what they are drawn from.

    Keys draw for all at once. Of keyed randomness, every value takes that of its own record and column.
    """
    keyed = [source for source in sources if isinstance(source, KeyedRandomness)]
    if not keyed:
        yield places, sources
        return
    for column in range(columns):
        mine = places[places % columns == column]
        yield mine, [each.taken(mine // columns, column) for each in keyed]


def keyed_call(
    randomness: KeyedRandomness, streams: int, output: Any, allowed: tuple[str, ...], threads: Any
) -> Call:
    """Return the call of a release with keyed randomness: a stage of it for each of its streams.

    Raises
    ------
    ValueError, TypeError
        For a form that is not allowed, or for threads that are no number.
    """
    call = called(None, output, None, threads, 0, allowed, 0)
    return call._replace(keys=[randomness.stage(stage) for stage in range(streams)])


def keyed(
    release: Release,
    x: ArrayLike,
    *,
    key: bytes,
    ids: Ids,
    context: bytes = b"",
    column: int = 0,
    output: str = "codes",
    threads: int | None = None,
    duplicates: bool = False,
) -> NDArray[Any]:
    """Release values with keyed randomness, which a retry does not draw anew.

    The report of a record and column is a function of the key, the context, the release itself, the record's
    id, the column and the value: not of the batch, the order, the partition, threads or instruction set. The
    law is that of `Release.randomize`, and so is epsilon, as long as the key stays secret. A release that is
    of whole records, or takes more than one draw a value, has the record for its value: a record of which
    one number is another has independent reports in all columns.

    One key and context serve one frozen snapshot of the data: a report that changes says that its record
    changed, so name the snapshot in `context`. Keep the key with the data's owner, never beside the output:
    whoever holds it can test values.

    Parameters
    ----------
    release : Release
        Any.
    x : array_like, shape (n,) or (n, columns)
        Values as `Release.randomize` takes them; numbers also as integers. float32 1.0, float64 1.0 and the
        integer 1 are one number; so are 0.0, -0.0 and subnormals of double precision.
    key : bytes
        32 of them, secret.
    ids : ndarray of uint64, shape (n,); of uint8, shape (n, 32); or sequence of n bytes
        Ids of the records: numbers, digests of 32 bytes, or names, which are hashed with SHA-256.
    context : bytes
        The plan and the snapshot.
    column : int
        Number of the first column among all columns that are released under the key and context, from 0.
    output : str
        "codes", "packed", or "values" where the release has letters.
    threads : int, optional
        Number of threads; the reports do not depend on it.
    duplicates : bool
        Whether an id may come up twice. Then equal values of it give the same report, different ones
        independent reports, each at the cost of epsilon.

    Returns
    -------
    ndarray
        Reports, of the shape of `x`; "packed" is flat.

    Raises
    ------
    ValueError
        A key of another length, ids that are not as many as the records, duplicates, or what `randomize`
        refuses.
    TypeError
        Arguments of another type.
    """
    randomness = keyed_randomness(key, ids, context, column, duplicates)
    values = checks.plain("x", x)
    if release.codec is not None and values.dtype.kind in "iu":
        values = values.astype(np.float64)  # the integer 1 is the number 1.0
    fitting(randomness, values)
    if not release.straight:
        randomness = bound(randomness, [values], threads)
    return release.randomize(values, keyed_call(randomness, release.streams, output, _FORMS, threads))


def _named(ids: Ids) -> NDArray[Any]:
    """Return ids as the core takes them."""
    if isinstance(ids, np.ndarray):
        if ids.dtype.kind not in "iu" or ids.dtype == np.uint8:
            return ids
        if ids.size and ids.min() < 0:
            raise ValueError("ids: whole numbers must be zero or more")
        return ids.astype(np.uint64, copy=False)
    if not all(isinstance(name, bytes) for name in ids):
        raise TypeError("ids: an array of uint64 or uint8, or a sequence of bytes, is needed")
    digests = b"".join(hashlib.sha256(name).digest() for name in ids)
    return np.frombuffer(digests, np.uint8).reshape(-1, 32)
