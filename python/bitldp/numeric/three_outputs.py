"""Three-outputs mechanism: low, middle and high, by a table of three rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from bitldp._core import Grid, Matrix
from bitldp.base.arrays import readonly
from bitldp.letters.spread import Spread
from bitldp.mechanism.numeric import Numeric
from bitldp.privacy import ONE, calibrated
from bitldp.release.base import Interval, Release, equidistant

__all__ = ["ThreeOutputs"]

_HALVINGS = 200  # of an interval within [0, 1/2]: past the last place of a double


def _fading(epsilon: float) -> float:
    """Return e^-epsilon, kept large enough for no entry of the table to vanish in units of 2^-64."""
    return max(math.exp(-epsilon), 2.0**-62)


def side_chance(epsilon: float) -> float:
    """Return b = P(low | middle) = P(high | middle) that minimises the worst-case variance.

    With a = 1 - 2b = P(middle | middle), u = e^-eps and C the letter on [-1, 1], the dither between 0 and 1
    makes the variance at x in [0, 1]

        V(x) = C^2 (1 - a) + C^2 a (1 - u) x - x^2,   C = (1 + u)/((1 - u)(1 - a u)),

    which is largest at x* = C^2 a (1 - u)/2, or at 1 where x* is beyond. While x* < 1, dV(x*)/da has the sign
    of

        h(a) = (2u - a u - 1)(1 - a u)^2 + a (1 + a u)(1 + u)^2/2,

    which increases from h(0) = 2u - 1; where x* >= 1, V(1) increases with a. So the best a is where h or
    x* - 1 first reaches zero, and at most 1/(1 + 2u), where P(low | low)/P(low | middle) reaches e^eps; it is
    0 for eps < ln 2. The search is for b: near a = 1, for large budgets, doubles are too coarse for a.
    """
    u = _fading(epsilon)

    def falls(b: float) -> bool:
        """Return whether the worst-case variance still falls as a increases, b decreases."""
        a = 1.0 - 2.0 * b
        rest = 1.0 - a * u
        slope = (2.0 * u - a * u - 1.0) * rest * rest + a * (1.0 + a * u) * (1.0 + u) ** 2 / 2.0
        return slope < 0.0 and (1.0 + u) ** 2 * a < 2.0 * (1.0 - u) * rest * rest

    least, most = u / (1.0 + 2.0 * u), 0.5
    if falls(least):
        return least
    for _ in range(_HALVINGS):
        middle = (least + most) / 2.0
        least, most = (least, middle) if falls(middle) else (middle, most)
    return most


def table(epsilon: float) -> Matrix:
    """Return the 3 x 3 channel. Its integers are symmetric, so that the letters are -C, 0, C exactly.

    A row's rounding to 2^-64 is made up for by its largest entry. That is the middle one of the middle row,
    or else b > 1/4, where 1 - 2b is exact and nothing is left to make up for.
    """
    u = _fading(epsilon)
    b = side_chance(epsilon)
    a = 1.0 - 2.0 * b
    opposite = u * (1.0 - a * u) / (1.0 + u)
    same = (1.0 - a * u) / (1.0 + u)
    return Matrix(np.array([[same, a * u, opposite], [b, a, b], [opposite, a * u, same]]))


@lru_cache(maxsize=64)
def three(epsilon: float, interval: Interval) -> Release:
    """Return the release by three outputs, of exact epsilon `epsilon`.

    The letter of the ends is C = 1/(P(high | high) - P(low | high)) half-lengths from the middle: a quotient
    of the channel's integers, by which the mean of the letters is -1, 0 and 1 half-lengths for the three
    points.
    """
    channel = calibrated(table, epsilon, lambda channel: channel.epsilon)
    low, high = interval
    points = equidistant(interval, 3)
    grid = Grid(3, low=low, high=high)
    weights = channel.weights()
    excess = weights[2][2] - weights[2][0]
    if channel.epsilon == 0.0 or excess == 0:
        return Release(channel, 0.0, 3, grid, points)
    reach = (high - low) / 2.0 * (ONE / excess)
    letters = low + (high - low) / 2.0 + reach * np.array([-1.0, 0.0, 1.0])
    moments = reach * reach * np.array([(row[0] + row[2]) / ONE for row in weights])
    spread = Spread(points, readonly(moments))
    return Release(channel, channel.epsilon, 3, grid, points, readonly(letters), spread)


@dataclass(frozen=True, eq=False, repr=False)
class ThreeOutputs(Numeric):
    """Three-outputs mechanism: reports a number as low, middle or high, with least worst-case variance.

    Parameters
    ----------
    epsilon, features, interval, spend, k, clip, unit
        As of `Numeric`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way. On [-1, 1] the letters are -C, 0 and C, C = e^eps (e^eps +
    1)/((e^eps - 1)(e^eps - a)). The probability a of reporting the middle for the middle is found by
    bisection. For epsilon below ln 2 it is 0, and the variance is that of Duchi's mechanism. Source: Zhao et
    al., "Local differential privacy-based federated learning for Internet of Things", IEEE Internet of Things
    Journal 8 (2021).

    Inputs are placed on the grid with a resolution of 2**-32 of a step, in the precision of their dtype.
    """

    _lasting: ClassVar[str] = "bitldp.numeric.three_outputs.ThreeOutputs"

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return three(epsilon, interval)
