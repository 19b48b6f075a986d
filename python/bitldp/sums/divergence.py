"""Delta and epsilon of a sum from bounds of its law, rounded up.

No argument here needs a law to be log-concave or to have one mode: Pólya shares of shape below one are not
log-concave, and integers that are rounded have small steps anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bitldp.sums.convolution import SumLaw

__all__ = ["delta_of_moves", "delta_of_two"]

_UP = 1.0 + 1e-12
_ROUND = 2.0**-53


def delta_of_moves(law: SumLaw, steps: int) -> Callable[[float], float]:
    """Return delta as a function of epsilon where a record moves the sum by 1 to `steps`, rounded up.

    Parameters
    ----------
    law : SumLaw
        Lower bounds of the chances P(y) of the noise, which is symmetric.
    steps : int
        S, at least 1.

    Returns
    -------
    callable
        From epsilon to delta.

    Notes
    -----
    Of the true P = L + E, with E >= 0 and the sum of E what is missing, delta for a move by t is at most the
    sum of (L(y) - e^eps L(y - t))_+ and what is missing. Let V(y) be the least L(z) with abs(z) <= abs(y): it
    is at most L, and falls from the middle outward. As abs(y - t) is at most the larger of abs(y - 1) and
    abs(y - S) for every t from 1 to S, each term is at most (L(y) - e^eps min(V(y - 1), V(y - S)))_+: so one
    sum bounds all moves. For a law that falls itself, it is the delta of the move by S.
    """
    half = len(law.lower) // 2
    above = law.lower * (1.0 + law.slack)
    least = np.minimum.accumulate(np.minimum(law.lower[half:], law.lower[half::-1]))
    padded = np.concatenate([least * (1.0 - law.slack), [0.0]])
    places = np.arange(-half, half + 1)
    farther = np.maximum(np.abs(places - 1), np.abs(places - steps))
    below = padded[np.minimum(farther, half + 1)]

    def delta(epsilon: float) -> float:
        factor = math.exp(epsilon) * (1.0 - 1e-14)
        gains = np.maximum(above - factor * below, 0.0)
        return min(1.0, float(gains.sum()) * _UP + law.missing)

    return delta


def delta_of_two(law: SumLaw) -> Callable[[float], float]:
    """Return delta as a function of epsilon where one sum rises by one and another falls by one, rounded up.

    Parameters
    ----------
    law : SumLaw
        Lower bounds L of the chances of the noise of either, independent of each other.

    Notes
    -----
    delta is at most the sum over (y, z) of (L(y) L(z) - e^eps L(y - 1) L(z + 1))_+, and what the products
    lack. With r(y) = L(y)/L(y - 1) and q(z) = L(z)/L(z + 1) a term is positive where r(y) q(z) > e^eps: for
    each z, sums over the y of the largest r. What the sums of doubles may be off by is added.
    """
    chances = law.lower
    before = np.concatenate([[0.0], chances[:-1]])
    after = np.concatenate([chances[1:], [0.0]])
    some = chances > 0.0
    chances, before, after = chances[some], before[some], after[some]
    with np.errstate(divide="ignore"):
        ratios = chances / before
    order = np.argsort(-ratios, kind="stable")
    falling = -ratios[order]
    mine = np.concatenate([[0.0], np.cumsum(chances[order])])
    others = np.concatenate([[0.0], np.cumsum(before[order])])
    off = 8.0 * len(chances) * _ROUND
    missing = law.missing * 2.0

    def delta(epsilon: float) -> float:
        factor = math.exp(epsilon)
        with np.errstate(divide="ignore"):
            least = factor * after / chances
        taken = np.searchsorted(falling, -least, side="left")
        gains = chances * mine[taken] - factor * after * others[taken]
        rounding = (off + 4.0 * law.slack) * float(
            (chances * mine[taken] + factor * after * others[taken]).sum()
        )
        return min(1.0, float(np.maximum(gains, 0.0).sum()) + rounding + missing)

    return delta
