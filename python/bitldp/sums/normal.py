"""Normal laws that a sum of integer shares hides a record no worse than, from the integers of a share."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple

from bitldp.sums.convolution import Noise, lower_chances

__all__ = ["Slope", "slope_of_sum"]

_NORMAL = NormalDist()
_DIGITS = 36  # of a chance: units of 10^-36
_UNIT = 10**_DIGITS
_RARE = 1e-22  # chance of sums that are not looked at
_UP = 1.0 + 2.0**-50  # more than the rounding of a quotient, or of a product
_CLOSE = 2.0**-40  # relative: how far a quantile is moved, and more than what erfc and exp lose


class Slope(NamedTuple):
    """How well a sum tells inputs apart, by their distance.

    Attributes
    ----------
    per_step : float
        c: inputs t steps apart are told apart no better than normal laws of variance 1 that are c t apart.
    lost : float
        How far the law that this holds of is from the sum's own, in total variation.
    """

    per_step: float
    lost: float


@lru_cache(maxsize=16)
def _half(law: Noise, shares: int) -> list[int]:
    """Return log-concave lower bounds of the chances of 0, 1, 2, ... in units of 10^-36."""
    whole = lower_chances(law, shares, law.reach(shares, _RARE), _DIGITS)
    chances = whole[len(whole) // 2 :]
    for k in range(2, len(chances)):  # floors and rounded weights are not quite log-concave
        before, last = chances[k - 2], chances[k - 1]
        chances[k] = min(chances[k], last * last // before if before else 0)
    return chances


@lru_cache(maxsize=256)
def slope_of_sum(law: Noise, shares: int, tail: float) -> Slope:
    """Return how well a sum of shares tells two dithered inputs apart, rounded up.

    Parameters
    ----------
    law : Noise
        Of a share, symmetric: a `ShareLaw`, as a rule.
    shares : int
        How many independent shares the sum has, 1 or more.
    tail : float
        Chance of noise so far out, on either side, that the slope is not taken there; above 0. What the
        tails and the floors cost is returned as `lost`.

    Returns
    -------
    Slope
        For a share of the standard deviation s and a cut at K deviations about (1 + K/(2 s sqrt(h)))/(s
        sqrt(h)); infinite where nothing is hidden.

    Notes
    -----
    An input x = n + f steps is dithered to n, or to n + 1 with the chance f. The shares' sum has the law w,
    so the report has P(y) = (1 - f) w(k) + f w(k - 1) at k = y - n. What others add to it, and that it is
    known modulo 2^b only, is a function of it.

    *The law that is looked at.* Let v be at most w up to some K, symmetric and log-concave, and go on beyond
    as a geometric tail, of the ratio v(K)/v(K - 1), which is the least. Divided by its sum S it is a law. Up
    to K both it and w are v/max(1, S) at least, so their distance is at most 1 - sum(v)/max(1, S) in total
    variation.

    *Its slope.* If every test (an event, or a randomized one) has a chance a(x) whose derivative is at most c
    I(a), with I(a) = phi(Phi^-1(a)), then Phi^-1(a) has the slope c at most, and x and x' are c |x - x'|-GDP
    (see `bitldp.channels.normal.slope_of_noise`; Dong, Roth and Su, "Gaussian differential privacy", JRSS B
    2022). Between two integers k gains g(k) = v(k - 1) - v(k), whatever f is. As v is log-concave, g/v rises
    with k, and so does g/(v + f g): the tests that gain most for their chance are the events {k >= j}, j >=
    1. Such an event gains v(j - 1), and has at f = 0 the chance T(j) = v(j) + v(j + 1) + ..., between which
    and 1 - T(j) it stays. I is concave, symmetric and highest in the middle, so events decide, and f = 0 is
    the worst: c is the largest v(j - 1)/I(T(j)). Tests that hold what loses are complements of these,
    mirrored. In the geometric tail v(j - 1)/T(j) is the same for all j, and T/I(T) rises with T, so the first
    event decides. Coordinates with noise of their own compose to c times the l2 distance.

    *Rounding.* Sums are those of integers; T is rounded down and the gain up. I rises up to 1/2, so a lower
    bound of it is phi(z) for a z with Phi(-z) <= T, which is checked by the complementary error function.
    """
    chances = _half(law, shares)
    if len(chances) < 2 or chances[1] >= chances[0]:
        return Slope(math.inf, 1.0)
    beyond = list(accumulate(reversed(chances)))[::-1]  # k or more
    spared = math.floor(tail * _UNIT)
    reach = next((k for k in range(1, len(chances) - 1) if beyond[k + 1] <= spared), len(chances) - 1)
    while reach > 1 and not chances[reach]:
        reach -= 1
    last, before = chances[reach], chances[reach - 1]
    if last == 0:
        return Slope(math.inf, 1.0)
    rest = last * last // (before - last)  # of the tail, rounded down; one more is above it
    inside = chances[0] + 2 * (beyond[1] - (beyond[reach + 1] if reach + 1 < len(beyond) else 0))
    least, most = inside + 2 * rest, inside + 2 * rest + 2
    per_step, chance = 0.0, rest
    for j in range(reach + 1, 0, -1):
        density = _least_density(chance / most / _UP)
        if density == 0.0:
            return Slope(math.inf, 1.0)
        per_step = max(per_step, chances[j - 1] / least / density)
        chance += chances[j - 1]
    bound = max(_UNIT, most)
    return Slope(per_step * _UP**4, (bound - inside) / bound * _UP)


def _least_density(chance: float) -> float:
    """Return a lower bound of the normal density at the quantile of a chance up to 1/2."""
    if not chance > 0.0:
        return 0.0
    place = max(0.0, -_NORMAL.inv_cdf(min(chance, 0.5)))
    while True:
        place += _CLOSE * max(1.0, place)
        if math.erfc(place / math.sqrt(2.0)) / 2.0 * (1.0 + _CLOSE / 64.0) <= chance:
            return _NORMAL.pdf(place) * (1.0 - _CLOSE)
