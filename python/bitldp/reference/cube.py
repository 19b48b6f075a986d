"""Whole records of signs, in NumPy: half-cubes, caps, and the law of short records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.reference.laws import Law

_ONE = 1 << 64


def cap(signs: NDArray[Any], near: int, p: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return reports that agree in `near` places or more with probability p, else in fewer.

    Parameters
    ----------
    signs : ndarray of uint8, shape (n, r)
        Bits of the records.
    near : int
        Least agreements of the likely set, 1 to r.
    p : float
        Its probability.
    rng : Generator
        Where the randomness comes from.

    Returns
    -------
    ndarray of uint8, shape (n, r)
        The number of agreements is drawn by inversion; which places agree are those of the smallest keys.
    """
    n, r = signs.shape
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, r + 1)))])
    weights = np.exp(logs[r] - logs - logs[::-1] - r * math.log(2.0))
    law = (
        np.where(np.arange(r + 1) >= near, p / weights[near:].sum(), (1.0 - p) / weights[:near].sum())
        * weights
    )
    agreements = np.searchsorted(np.cumsum(law)[:-1], rng.random((n,)), side="right")
    ranks = np.argsort(rng.random((n, r), dtype=np.float32), axis=1)
    reports: NDArray[np.uint8] = np.empty_like(signs)
    wrong = (np.arange(r) >= agreements[:, None]).astype(np.uint8)
    np.put_along_axis(reports, ranks, wrong ^ np.take_along_axis(signs, ranks, axis=1), axis=1)
    return reports


def half_cube(signs: NDArray[Any], p: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return reports of the half-cube of an odd number of signs: a uniform vector, or its opposite.

    Parameters
    ----------
    signs, rng
        As of `cap`, with an odd r.
    p : float
        Probability of agreement in more than half of the places.

    Returns
    -------
    ndarray of uint8, shape (n, r)
    """
    n, r = signs.shape
    reports = np.unpackbits(np.frombuffer(rng.bytes(n * -(-r // 8)), np.uint8).reshape(n, -1), axis=1)[:, :r]
    agrees = 2 * np.count_nonzero(reports == signs, axis=1) > r
    turned = (agrees != (rng.random(n) < p)).astype(np.uint8)
    result: NDArray[np.uint8] = reports ^ turned[:, None]
    return result


def cube_law(bits: int, near: int, far: int, high: int) -> Law:
    """Return the law of records of signs.

    Parameters
    ----------
    bits : int
        Places r.
    near, far : int
        Least agreements of the likely set, and most agreements of the other.
    high : int
        Probability of the likely set in units of 2**-64.

    Returns
    -------
    ndarray of object, shape (2**r, 2**r)
        Row v, column z: P(report z | v) in units of 2**-64 over the product of the sets' sizes.
    """
    inside = sum(math.comb(bits, a) for a in range(near, bits + 1))
    outside = sum(math.comb(bits, a) for a in range(far + 1))
    count = [
        (high * outside if a >= near else 0) + ((_ONE - high) * inside if a <= far else 0)
        for a in range(bits + 1)
    ]
    rows = range(1 << bits)
    law: Law = np.array([[count[bits - (v ^ z).bit_count()] for z in rows] for v in rows], dtype=object)
    return law
