"""Integer weights of ranks: the first k of an order at one weight, the others at a smaller one."""

from __future__ import annotations

import math

__all__ = ["ROOM", "top_weights"]

ROOM = (1 << 64) - (1 << 56)
"""Largest sum of weights before they are rounded: well below 2**64."""

_LARGEST = 44.0  # above, the largest weight would pass 2^64


def top_weights(ranks: int, k: int, epsilon: float) -> tuple[int, int]:
    """Return (high, low): weights of each of the k likely ranks and of each other one, about e^eps apart.

    Parameters
    ----------
    ranks : int
        How many there are.
    k : int
        How many of them are likely, 1 to ranks - 1.
    epsilon : float
        Zero or more; above 44 the weights stay as they are there.

    Returns
    -------
    (int, int)
        ``k * high + (ranks - k) * low`` is below 2**64, and near to it.
    """
    rest, bounded = ranks - k, min(epsilon, _LARGEST)
    low = max(1, int(ROOM / (rest + k * math.exp(bounded))))
    high = low + int(low * math.expm1(bounded))
    return min(high, ((1 << 64) - 1 - rest * low) // k), low
