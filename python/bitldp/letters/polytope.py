"""Moments of the largest coordinates of a random direction: the letters of the cross-polytope."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

__all__ = ["Tops", "best_top", "mean_length", "tops"]

_NODES = 801  # of the integral, equally apart in the logarithm
_DEEP = 42.0  # logarithms below the peak, where the integrand is nothing
_LOW, _HIGH = -46.0, math.log(37.0)  # logarithms between which a normal number's size lies
_HALVINGS = 90  # of the bracket of the peak
_EXACT = 256  # dimensions from which on the series of the mean length is exact


class Tops(NamedTuple):
    """Mean sums over the k largest of the 2 D coordinates +-y_j of a uniform direction y.

    Attributes
    ----------
    sum : float
        Of the coordinates.
    squares : float
        Of their squares.
    """

    sum: float
    squares: float


def mean_length(dimensions: int) -> float:
    """Return E[chi_D] = sqrt(2) Gamma((D + 1)/2)/Gamma(D/2), the mean length of D standard normal numbers."""
    if dimensions <= _EXACT:
        halves = math.lgamma((dimensions + 1) / 2.0) - math.lgamma(dimensions / 2.0)
        return math.sqrt(2.0) * math.exp(halves)
    inverse = 1.0 / dimensions  # the series of the logarithm of a ratio of gammas, whose next term is D^-5
    series = inverse * (-0.25 + inverse * inverse * (1.0 / 24.0))
    return math.sqrt(dimensions) * math.exp(series)


@lru_cache(maxsize=4096)
def tops(dimensions: int, k: int) -> Tops:
    """Return the mean sums of the k largest of +-y_j, for y uniform on the unit sphere.

    Parameters
    ----------
    dimensions : int
        D, 2 or more.
    k : int
        1 to D: then they are the k largest magnitudes.

    Returns
    -------
    Tops
        To about 11 digits.

    Notes
    -----
    Let g be D standard normal numbers: a direction, and by itself their length. A magnitude t is among the k
    largest with the chance that at most k - 1 of the other D - 1 are larger, each of which is with
    p(t) = erfc(t/sqrt 2): that a Beta(k, D - k) number B is above p(t). Hence, with the density
    phi(t) = sqrt(2/pi) e^(-t^2/2) of a magnitude,

        E[sum of the k largest |g|] = D E[integral of t phi(t) over p(t) < B]   = D E[phi(T)],
        E[... of their squares]     = D E[integral of t^2 phi(t) over p(t) < B] = D E[T phi(T) + p(T)],

    where p(T) = B. The density of T in its logarithm is smooth and falls off on both sides, so that the
    trapezoidal rule converges faster than any power of its step; its constant divides out.
    """
    if k == dimensions:
        return Tops(dimensions * math.sqrt(2.0 / math.pi) / mean_length(dimensions), 1.0)

    def density(place: float) -> float:
        t = math.exp(place)
        above, below = math.erfc(t / math.sqrt(2.0)), math.erf(t / math.sqrt(2.0))
        return (
            (k - 1) * math.log(above) + (dimensions - k - 1) * math.log(below) - t * t / 2.0 + place
            if above > 0.0
            else -math.inf
        )

    low, high = _LOW, _HIGH
    for _ in range(_HALVINGS):  # the density has one peak
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (left, high) if density(left) < density(right) else (low, right)
    peak = (low + high) / 2.0
    floor = density(peak) - _DEEP
    start, end = (_edge(density, peak, floor, limit) for limit in (_LOW, _HIGH))
    places = np.linspace(start, end, _NODES)
    weights = np.exp([density(place) - floor - _DEEP for place in places.tolist()])
    sizes = np.exp(places)
    phi = math.sqrt(2.0 / math.pi) * np.exp(-sizes * sizes / 2.0)
    beyond = np.array([math.erfc(size / math.sqrt(2.0)) for size in sizes.tolist()])
    total = float(weights.sum())
    first = float(weights @ phi) / total
    second = float(weights @ (sizes * phi + beyond)) / total
    # E[chi^2] = D, so squares of a direction are those of normal numbers over D
    return Tops(dimensions * first / mean_length(dimensions), second)


def _edge(density: Callable[[float], float], peak: float, floor: float, limit: float) -> float:
    """Return where, from the peak toward a limit, the density falls below a floor; at most the limit."""
    inside, outside = peak, limit
    if density(outside) > floor:
        return limit
    while abs(outside - inside) > 1e-3 * abs(outside - peak):
        middle = (inside + outside) / 2.0
        inside, outside = (middle, outside) if density(middle) > floor else (inside, middle)
    return outside


@lru_cache(maxsize=256)
def best_top(dimensions: int, epsilon: float) -> int:
    """Return the k at which the mean m of a reported coordinate is largest, 1 to D.

    m = (e^eps - 1) S_k/(k e^eps + 2 D - k), with S_k of `tops`: a concave sum over a line, so it rises up to
    the best k and falls from there on.
    """
    odds = math.expm1(min(epsilon, 700.0))

    def gain(k: int) -> float:
        return tops(dimensions, k).sum / (k * odds + 2.0 * dimensions)

    low, high = 1, dimensions
    while low < high:
        middle = (low + high) // 2
        if gain(middle + 1) > gain(middle):
            low = middle + 1
        else:
            high = middle
    return low
