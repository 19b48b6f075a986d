"""Normal laws that records of dithered integer noise are told apart no better than, by whole steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.channels.noise import is_log_concave
from bitldp.privacy import ONE

__all__ = ["Distances", "distances"]

_NORMAL = NormalDist()
_SLACK = 2.0**-36  # of a quantile: far more than what its computation loses
_CUTS = 40  # of the search for the price; any price gives a bound
_UP = 1.0 + 2.0**-40


class Distances(NamedTuple):
    """How far apart the normal laws are that two inputs of a coordinate are told apart no better than.

    Attributes
    ----------
    slope : float
        Per step of the distance of the inputs, as in `bitldp.channels.normal.slope_of_noise`.
    whole : ndarray of float64
        At 0, 1, 2, ... whole steps.
    between : float
        What inputs between the grid's points may add to the line through the values of `whole`.
    """

    slope: float
    whole: NDArray[np.float64]
    between: float

    def at(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the bound for inputs so many steps apart, wherever they are."""
        line = np.interp(distance, np.arange(len(self.whole)), self.whole) + self.between
        return np.asarray(np.minimum(self.slope * distance, line))

    def record(self, diameter: float, features: int) -> float:
        """Return the bound for two records of so many coordinates, `diameter` steps apart in the l2 norm.

        Notes
        -----
        Coordinates compose: the squares of their mu add up. With N(t) the bound of a coordinate and any
        price c >= 0, Lagrangian duality bounds the knapsack:

            sum over l of N(t_l)^2 <= c diameter^2 + d max over t of (N(t)^2 - c t^2).

        N is the lesser of two lines on every step, so the largest value there is at an end, where the lines
        meet, or where the derivative is 0. The price slope^2 gives slope times the diameter.
        """
        low = np.arange(len(self.whole) - 1, dtype=np.float64)
        rise = np.diff(self.whole)
        base = self.whole[:-1] - rise * low + self.between

        def dual(price: float) -> float:
            with np.errstate(divide="ignore", invalid="ignore"):
                turns = (base / (self.slope - rise), base * rise / (price - np.square(rise)))
            top = 0.0
            for each in (low, low + 1.0, *turns):
                inner = np.clip(np.where(np.isfinite(each), each, low), low, low + 1.0)
                top = max(top, float((np.square(self.at(inner)) - price * np.square(inner)).max()))
            return price * diameter * diameter + features * top

        least, most = 0.0, self.slope * self.slope
        best = most * diameter * diameter
        for _ in range(_CUTS):  # the dual is convex in the price, so it has one valley
            left, right = least + (most - least) / 3.0, most - (most - least) / 3.0
            one, other = dual(left), dual(right)
            best = min(best, one, other)
            least, most = (least, right) if one <= other else (left, most)
        return math.sqrt(best) * _UP


def distances(weights: Sequence[int], slope: float, steps: int) -> Distances | None:
    """Return the bounds of a coordinate by the distance of its inputs, or None where they cannot be had.

    Parameters
    ----------
    weights : sequence of int
        Symmetric noise -K..K over 2^64, whose ends stand for all that is beyond them.
    slope : float
        As of `bitldp.channels.normal.slope_of_noise`.
    steps : int
        Between the lowest input and the highest. A report is clamped where the noise ends at K for the lowest
        and at -K for the highest, or nearer.

    Returns
    -------
    Distances or None
        None for weights that are not log-concave, whose best tests need not be thresholds.

    Notes
    -----
    The weights are log-concave, and an end is no more than a geometric tail that goes on so. Then they are a
    log-concave law, clamped. The likelihood ratio of two inputs of such a law rises with the report, also
    where they are dithered: within a step it is (1 - g + g r)/(1 - f + f r) for f < g, with r the ratio of
    neighbouring weights, and the order by likelihood ratios is transitive. So the best tests are thresholds.
    With T(k) the chance that the noise is k or more, an input x = n + f is k - n or above with the chance
    (1 - f) T(k - n) + f T(k - n - 1). Let h be its normal quantile. Two inputs are mu-GDP if h differs by mu
    or less at every threshold: between thresholds the trade-off is a chord of a convex function.

    - Whole steps: T is a sum of integers, so the largest difference is computed, for each distance.
    - Between points, h differs from the line through its values at the points. These lines are the mean of h
      over the dither. If two inputs m + g steps apart are dithered by the same random number, their points
      are m or m + 1 apart, the latter with the chance g. So the lines differ by no more than the line
      through the bounds of m and m + 1 steps. Dithered records may leave the ball, so it is not enough to
      look at grid records inside it: the distance bounds the pair, not the norms of the points.
    - The quantile is concave below 1/2, and h is above its line there; above 1/2 it is below, by symmetry.
      The higher input has the larger chance. So of both inputs only one is on the wrong side of its line,
      unless both are in the middle step. The excess is largest where the derivatives agree.
    """
    reach = len(weights) // 2
    half = list(weights[reach:])
    if reach < 3 or steps > reach or list(weights) != list(weights[::-1]):
        return None
    last, before = half[-2], half[-3]
    if half[-1] * (before - last) > last * last or not is_log_concave(list(weights[1:-1])):
        return None
    tails = list(itertools.accumulate(reversed(half[1:])))[::-1]  # that the noise is 1 or more, 2 or more, ..
    chances = [tail / ONE for tail in tails]
    if not (chances[-1] > 0.0 and chances[0] < 0.5):
        return None
    quantiles = [_NORMAL.inv_cdf(chance) for chance in chances]
    # at thresholds K, .., 1, 0, .., 1 - K, rising
    places = np.array(quantiles[::-1] + [-each for each in quantiles])
    whole = [0.0] + [float((places[m:] - places[:-m]).max()) + _SLACK for m in range(1, steps + 1)]
    inner = _excess(chances[0], 1.0 - chances[0], quantiles[0], -quantiles[0])
    outer = max(_excess(chances[k + 1], chances[k], quantiles[k + 1], quantiles[k]) for k in range(reach - 1))
    return Distances(slope, np.array(whole), max(outer, 2.0 * inner) + _SLACK)


def _excess(low: float, high: float, start: float, end: float) -> float:
    """Return the most that the quantile of a chance from `low` to `high` exceeds the line from end to end."""
    rise = (end - start) / (high - low)
    # there the derivative of the quantile, 1 over the density, is the slope of the line
    square = -2.0 * math.log(math.sqrt(2.0 * math.pi) / rise)
    top = -math.sqrt(max(square, 0.0))
    if not start < top < end:  # by rounding alone
        return end - start
    return top - start - rise * (math.erfc(-top / math.sqrt(2.0)) / 2.0 - low)
