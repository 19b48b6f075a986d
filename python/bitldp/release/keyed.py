"""Reports that are a function of a key, a record's id and its value: a release repeated gives the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.release.base import Release
from bitldp.release.coin import CoinRelease

Ids = NDArray[np.uint64] | NDArray[np.uint8] | Sequence[bytes]


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
    """Release values with coins that a retry does not draw anew.

    The report of a record and column is a function of the key, the context, the release itself, the record's
    id, the column and the value: not of the batch, the order, the partition, threads or instruction set. The
    law is that of `Release.randomize`, and so is epsilon, as long as the key stays secret.

    One key and context serve one frozen snapshot of the data: a report that changes says that its record
    changed, so name the snapshot in `context`. Keep the key with the data's owner, never beside the output:
    whoever holds it can test values.

    Parameters
    ----------
    release : Release
        One of a `Window`, `Matrix`, `Shift` or `Mixture` channel, each value by itself.
    x : array_like, shape (n,) or (n, columns)
        Values as `Release.randomize` takes them; numbers also as integers. float32 1.0, float64 1.0 and the
        integer 1 are one number; so are 0.0, -0.0 and subnormals of double precision.
    key : bytes
        32 of them, secret.
    ids : ndarray of uint64, shape (n,); of uint8, shape (n, 32); or sequence of n bytes
        The records' ids: numbers, digests of 32 bytes, or names, of which SHA-256 makes digests.
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
        A release of another kind, or arguments of another type.
    """
    method = None if release.whole else getattr(release.channel, "randomize_keyed", None)
    if method is None:
        raise TypeError(f"release: the channel {type(release.channel).__name__} takes no keyed coins")
    names = _named(ids)
    if not duplicates and len(np.unique(names, axis=0)) != len(names):
        raise ValueError("ids: each may come up once; duplicates=True allows more")
    codec: Any = release.codec
    if isinstance(release, CoinRelease):
        codec = (release.piecewise.codec, release.ends)
    reports: NDArray[Any] = method(x, codec, release.letters, key, context, names, column, output, threads)
    return reports


def _named(ids: Ids) -> NDArray[Any]:
    """Return ids as the core takes them."""
    if isinstance(ids, np.ndarray):
        return ids
    if not all(isinstance(name, bytes) for name in ids):
        raise TypeError("ids: an array of uint64 or uint8, or a sequence of bytes, is needed")
    digests = b"".join(hashlib.sha256(name).digest() for name in ids)
    return np.frombuffer(digests, np.uint8).reshape(-1, 32)
