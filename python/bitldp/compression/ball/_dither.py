"""Norm-preserving dither: to the points of a grid, drawn anew until the record is in a (larger) ball."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bitldp.release.base import Source
from bitldp.release.draws import _words

__all__ = ["bias_factor", "conditioned", "enlarged"]

_ATTEMPTS = 200  # each is accepted with probability above 0.39; after that, rounding toward the middle
_APART = 1 << 40  # chunks between the streams of two attempts


def enlarged(radius: float, features: int, power: int) -> float:
    """Return the norm, in steps, that dither of a record with norm `radius` keeps with chance 1 - e^-1/2.

    For l2, ``K^2 = R^2 + d/4 + R + sqrt(d)/2``: Kairouz, Liu and Steinke, "The distributed discrete Gaussian
    mechanism for federated learning with secure aggregation", ICML 2021, Proposition 22, with
    beta = e^(-1/2). For l1, a coordinate's distance from the middle stays the same on average unless it is
    less than half a step, so by Hoeffding ``K = R + d/2 + sqrt(d)/2``.
    """
    if power == 1:
        return radius + features / 2.0 + math.sqrt(features) / 2.0
    return math.sqrt(radius * radius + features / 4.0 + radius + math.sqrt(features) / 2.0)


def bias_factor() -> float:
    """Return a bound of the bias, in steps and in the l2 norm: the mean of a record given its acceptance.

    In any direction v, ``|E[v Y | A] - E[v Y]| <= sd(v Y) sqrt((1 - P(A))/P(A))``; dither has a standard
    deviation of at most half a step in every direction, and P(A) >= 1 - e^-1/2.
    """
    miss = math.exp(-0.5)
    return 0.5 * math.sqrt(miss / (1.0 - miss))


def conditioned(
    places: NDArray[np.float64],
    points: int,
    bound: float,
    power: int,
    key: Source,
    first_chunk: int,
) -> NDArray[np.int64]:
    """Return grid points for places on the grid, whose norm about the grid's middle is at most `bound`.

    Parameters
    ----------
    places : ndarray of float64, shape (n, d)
        In steps, [0, points - 1].
    points : int
        Points of the grid.
    bound : float
        As of `enlarged`, in steps.
    power : {1, 2}
        Which norm.
    key : bytes, Coins or None
        Where the dither comes from.
    first_chunk : int
        Chunks of the key's stream to skip.

    Returns
    -------
    ndarray of int64, shape (n, d)
        The norm is checked as integers, so what is released comes from the ball, whatever the floats were.
    """
    low = np.minimum(np.floor(places), points - 2).astype(np.int64)
    # the chance of the upper point in units of 2^-64; 1 itself has no such integer and is within 2^-53 of it
    upper = ((places - low) * 2.0**53).astype(np.uint64) << np.uint64(11)
    upper[places - low >= 1.0] = np.uint64(0xFFFFFFFFFFFFFFFF)
    toward = np.where(2 * low + 1 <= points - 1, 1, 0)  # rounding toward the middle never leaves the ball
    drawn = low + toward
    most = math.floor((2.0 * bound) ** power)
    waiting = np.arange(len(places))
    for attempt in range(_ATTEMPTS):
        words = _words(key, places.size, first_chunk + attempt * _APART).reshape(places.shape)[waiting]
        tried = low[waiting] + (words < upper[waiting])
        doubled = np.abs(2 * tried - (points - 1)) ** power  # odd or even integers: twice the distance
        kept = doubled.sum(axis=1) <= most
        drawn[waiting[kept]] = tried[kept]
        waiting = waiting[~kept]
        if not len(waiting):
            break
    return drawn
