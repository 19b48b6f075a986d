"""Releases of some coordinates of each record, drawn without looking at it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import pack
from bitldp.base.arrays import position
from bitldp.release.base import Call, Release
from bitldp.release.draws import coordinates


class SampledReports(NamedTuple):
    """Reports of n records of which k coordinates each were sampled.

    Attributes
    ----------
    indices : ndarray of unsigned int, shape (n, k)
        The coordinates, chosen without looking at the data; different within a record.
    codes : ndarray, shape (n, k)
        The report of each of them.
    """

    indices: NDArray[Any]
    codes: NDArray[Any]


def index_bits(features: int) -> int:
    """Return the bits that tell the coordinates of a record apart, at least 1."""
    return max(1, (features - 1).bit_length())


def checked_floats(x: NDArray[Any]) -> NDArray[Any]:
    """Refuse other dtypes, and NaN in any coordinate: an error must not depend on which ones are drawn."""
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"x: dtype {x.dtype} is not allowed; float32 and float64 are")
    missing = np.isnan(x)
    if missing.any():
        raise ValueError(f"x: {position(missing)} is NaN")
    return x


def sampled(release: Release, x: NDArray[Any], size: tuple[int, int], call: Call) -> SampledReports:
    """Release k of the d numbers of each record; which ones depends on the last key alone.

    `size` is (d, k). The reports are codes, or packed where the call asks for that.
    """
    features, k = size
    table = checked_floats(x).reshape(-1, features)
    *keys, last = call.keys
    indices = coordinates(last, len(table), features, k, call.first_chunk)
    values = np.take(table, indices + features * np.arange(len(table))[:, None])
    codes = release.randomize(values, call.codes(keys))
    if call.output == "packed":
        return SampledReports(pack(indices, index_bits(features)), pack(codes, release.bits))
    shape = (k,) if x.shape == (features,) != (1,) else codes.shape
    return SampledReports(indices.reshape(shape), codes.reshape(shape))


def drawn_together(count: int, drawn: int | None, every: int) -> tuple[float, float]:
    """Return the factor and the chance of so many of the values of which some are drawn, all as likely.

    Each value is divided by its own chance to be drawn, and the product is of the chance to draw all.
    """
    if drawn is None:
        return 1.0, 1.0
    chance = math.perm(drawn, count) / math.perm(every, count)
    if not chance:
        raise ValueError(f"a report covers {drawn} of them, never {count} together")
    return (drawn / every) ** count / chance, chance
