"""Moments of the largest projections on random directions: the letters of a random codebook."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.letters.polytope import Tops

__all__ = ["best_directions", "best_nearest", "least_spread", "nearest", "projected_mean"]

Floats = NDArray[np.float64]

_NODES = 6001
_REACH = 4.2  # of the double-exponential rule: beyond, the nodes are the ends
_DEEP = 45.0  # logarithms below the peak, where the integrand is nothing
_TERMS = 500  # of a continued fraction, at most
_FEWEST, _MOST = 16, 1 << 16  # directions that are chosen from, powers of two
_COORDINATES = 1 << 21  # of all directions of a codebook: more are asked for, not chosen
_NEAR = 1.019  # times the variance of infinitely many directions: what fewer may cost


class _Angles(NamedTuple):
    """Angles of a fixed vector to the line of a uniform direction, and what lies within them.

    Attributes
    ----------
    density : ndarray
        Logarithm of the density of the angle, times the node's weight, up to a constant.
    inside, outside : ndarray
        The chance of a smaller angle, and of a larger one.
    sums, squares : ndarray
        Mean of the cosine, and of its square, where the angle is smaller; 0 where it is not.
    """

    density: Floats
    inside: Floats
    outside: Floats
    sums: Floats
    squares: Floats


def projected_mean(features: int) -> float:
    """Return E|t| of the projection t of a unit vector on a uniform direction."""
    return math.exp(math.lgamma(features / 2.0) - math.lgamma((features + 1.0) / 2.0)) / math.sqrt(math.pi)


def _beta(x: Floats, rest: Floats, a: float, b: float) -> Floats:
    """Return the regularized incomplete beta function I_x(a, b), with rest = 1 - x; to about 14 digits."""
    swap = x > (a + 1.0) / (a + b + 2.0)
    low = _fraction(np.where(swap, 0.0, x), np.where(swap, 1.0, rest), a, b)
    high = _fraction(np.where(swap, rest, 0.0), np.where(swap, x, 1.0), b, a)
    return np.where(swap, 1.0 - high, low)


def _fraction(x: Floats, rest: Floats, a: float, b: float) -> Floats:
    """Return I_x(a, b) by its continued fraction (Lentz; DLMF 8.17.22), which converges fast for small x."""
    c = np.ones_like(x)
    d = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    total = d.copy()
    for m in range(1, _TERMS):
        for factor in (
            m * (b - m) / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d = 1.0 / (1.0 + factor * x * d)
            c = 1.0 + factor * x / c
            change = c * d
            total *= change
        if np.abs(change - 1.0).max() < 1e-15:
            break
    scale = math.lgamma(a + b) - math.lgamma(a + 1.0) - math.lgamma(b)
    with np.errstate(divide="ignore"):
        result: Floats = np.exp(a * np.log(x) + b * np.log(rest) + scale) * total
    return result


@lru_cache(maxsize=64)
def _angles(features: int) -> _Angles:
    """Return nodes of the double-exponential rule (Takahasi and Mori 1974) for d >= 2 features.

    The angle has the density sin^(d - 2), so that sin^2 of it is a Beta((d - 1)/2, 1/2) number; weighted with
    cos^2, of mean 1/d, a Beta((d - 1)/2, 3/2) one.
    """
    places = np.linspace(-_REACH, _REACH, _NODES)
    inner = 0.5 * math.pi * np.sinh(places)
    share, rest = 1.0 / (1.0 + np.exp(-2.0 * inner)), 1.0 / (1.0 + np.exp(2.0 * inner))
    slope = np.log(share) + np.log(rest) + np.log(np.cosh(places))
    sine, cosine = np.sin(0.5 * math.pi * share), np.sin(0.5 * math.pi * rest)
    half, square, other = (features - 1.0) / 2.0, np.square(sine), np.square(cosine)
    mean = projected_mean(features)
    return _Angles(
        (features - 2.0) * np.log(sine) + slope,
        _beta(square, other, half, 0.5),
        _beta(other, square, 0.5, half),
        mean * np.exp((features - 1.0) * np.log(sine)),
        _beta(square, other, half, 1.5) / features,
    )


@lru_cache(maxsize=4096)
def nearest(features: int, directions: int, k: int) -> Tops:
    """Return the mean sums over the k of n independent uniform directions that are nearest, either way.

    Parameters
    ----------
    features : int
        Dimensions d of the directions, 2 or more.
    directions : int
        How many there are, n.
    k : int
        1 to n.

    Returns
    -------
    Tops
        Of the sizes of the vector's projections, and of their squares, to about 8 digits.

    Notes
    -----
    A direction is among the k nearest with the chance that at most k - 1 of the n - 1 others are nearer: that
    a Beta(k, n - k) number is above the chance p of a smaller angle. So the sums are n times the mean over
    such a number B of what lies within the angle at which p = B.
    """
    if k == directions:
        return Tops(directions * projected_mean(features), directions / features)
    angles = _angles(features)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = angles.density + (k - 1.0) * np.log(angles.inside)
        weight += (directions - k - 1.0) * np.log(angles.outside)
    weight = np.where(np.isnan(weight), -np.inf, weight)  # at the very ends, which weigh nothing
    chances = np.exp(np.maximum(weight - weight.max(), -_DEEP)) * (weight > weight.max() - _DEEP)
    total = float(chances.sum())
    first, second = float(chances @ angles.sums) / total, float(chances @ angles.squares) / total
    return Tops(directions * first, directions * second)


def _mean(features: int, directions: int, k: int, odds: float) -> float:
    return odds * nearest(features, directions, k).sum / (k * odds + 2.0 * directions)


@lru_cache(maxsize=256)
def best_nearest(features: int, directions: int, epsilon: float) -> int:
    """Return the k at which the mean m of a reported projection is largest, 1 to n.

    m = (e^eps - 1) S_k/(k e^eps + 2 n - k), with S_k of `nearest`, which rises up to the best k and falls
    from there on.
    """
    odds = math.expm1(min(epsilon, 700.0))
    low, high = 1, directions
    while low < high:
        middle = (low + high) // 2
        if _mean(features, directions, middle + 1, odds) > _mean(features, directions, middle, odds):
            low = middle + 1
        else:
            high = middle
    return low


@lru_cache(maxsize=256)
def least_spread(features: int, epsilon: float) -> float:
    """Return the total variance of PrivUnit for unit vectors, 1/m^2 - 1, its cap the best one.

    The limit of infinitely many directions: those within an angle, each way, are e^eps times as likely as the
    others, and m = (e^eps - 1) S/(p (e^eps - 1) + 2), with the chance p of a smaller angle to a line and the
    mean projection S there. Source: Bhowmick et al., arXiv:1812.00984; Asi, Feldman and Talwar, ICML 2022.
    """
    odds = math.expm1(min(epsilon, 700.0))
    if features == 1:
        return _spread(odds / (odds + 2.0))
    angles = _angles(features)
    return _spread(float(np.max(odds * angles.sums / (angles.inside * odds + 2.0))))


def _spread(mean: float) -> float:
    """Return 1/m^2 - 1, infinite where epsilon is so small that m^2 is no double above 0."""
    square = mean * mean
    return 1.0 / square - 1.0 if square > 0.0 else math.inf


@lru_cache(maxsize=256)
def best_directions(features: int, epsilon: float) -> int:
    """Return the least power of two of directions within 1.9 % of the limit's variance.

    It is 16 or more, and at most the largest power of two up to 2**16 whose codebook has 2**21 coordinates:
    a report draws them all.
    """
    if epsilon == 0.0:
        return _FEWEST
    odds, count = math.expm1(min(epsilon, 700.0)), _FEWEST
    limit = min(_MOST, _COORDINATES // features)
    most = _NEAR * least_spread(features, epsilon)
    while 2 * count <= limit:
        mean = _mean(features, count, best_nearest(features, count, epsilon), odds)
        if _spread(mean) <= most:
            break
        count *= 2
    return count
