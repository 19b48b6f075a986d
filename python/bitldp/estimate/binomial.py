"""Exact limits of a chance from a count (Clopper and Pearson), and Student's quantiles, by NumPy alone."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["share_limits", "student"]

_NODES = 40  # of an integral
_BLOCK = 1 << 12  # counts whose integrals are computed at once
_FALL = 40.0  # what is cut off of an integral is below e^-40 of its largest value, on either side
_REST = 3.0  # standard deviations from which on the density is taken to fall by the exponential of its slope
_STEPS = 60
_CLOSE = 1e-10  # standard deviations: the last step of the search
_SPARE = 1e-9  # standard deviations by which limits are moved outward, for what rounding may have done
_SERIES = 60  # degrees of freedom from which on Student's quantile is a series


def share_limits(
    counts: NDArray[Any], n: NDArray[Any] | int, tail: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper limits of a chance, each wrong with probability at most `tail`.

    Parameters
    ----------
    counts : ndarray of int
        Successes, any shape.
    n : int or ndarray of int
        Trials, 1 or more, of a shape that `counts` has or broadcasts to.
    tail : float
        Error probability of one limit, above 0 and at most 1/4.

    Returns
    -------
    lower, upper : ndarray of float64
        Quantiles of Beta(k, n - k + 1) and Beta(k + 1, n - k), moved outward by some 1e-9 of a standard
        deviation; 0 for no success, 1 for no failure.

    Notes
    -----
    The chance is that of n equal trials, or the mean of the chances of n unlike ones. Of all independent
    trials whose chances have the mean c, equal ones have the heaviest tails from one success beyond the mean
    on: P(S <= k) is at most the binomial's for k <= n c - 1, and P(S >= k) for k >= n c + 1 (Hoeffding 1956,
    Theorem 4). A limit is wrong where the binomial tail is below `tail`, so where k is beyond its median.
    Between n c - 1 and n c that happens for k = n - 1 alone: from P(S <= k) = P(n - S >= j) with j the first
    integer above n (1 - c), that tail is 1/4 or more for j >= 2. For j = 1 Markov's inequality bounds it by
    n (1 - c) for any trials, so the upper limit of n - 1 successes is 1 - tail/n where that is larger, and
    the lower one of a single success tail/n.

    Source: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934); Hoeffding, "On the distribution of the number of successes in independent
    trials", Annals of Mathematical Statistics 27 (1956).
    """
    successes, trials = np.broadcast_arrays(np.asarray(counts, np.float64), np.asarray(n, np.float64))
    pairs = np.stack([successes.ravel(), trials.ravel()])
    distinct, inverse = _distinct(pairs)
    k, of = distinct
    lower = _lower(k, of, tail)[0]
    upper = _lower(of - k, of, tail)[1]
    lower = np.where(k == 1.0, np.minimum(lower, tail / of), lower)
    upper = np.where(k == of - 1.0, np.maximum(upper, 1.0 - tail / of), upper)
    return lower[inverse].reshape(successes.shape), upper[inverse].reshape(successes.shape)


def _distinct(pairs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the distinct columns, and which of them each column is."""
    if pairs.shape[1] and (pairs[1] == pairs[1, 0]).all():
        k, inverse = np.unique(pairs[0], return_inverse=True)
        return np.stack([k, np.full_like(k, pairs[1, 0])]), inverse.ravel()
    distinct, inverse = np.unique(pairs, axis=1, return_inverse=True)
    return distinct, inverse.ravel()


def _lower(
    k: NDArray[np.float64], n: NDArray[np.float64], tail: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower limit of k successes of n, and 1 less it; 0 and 1 for none."""
    low, rest = np.zeros_like(k), np.ones_like(k)
    places = np.flatnonzero(k > 0.0)
    for start in range(0, len(places), _BLOCK):
        some = places[start : start + _BLOCK]
        low[some], rest[some] = _Beta(k[some], n[some] - k[some] + 1.0).quantile(tail)
    return low, rest


class _Beta:
    """Beta(a, b) for whole a and b, by the logit u of its variable about that of its mean.

    With P = a/(a + b), Q = 1 - P and d = u - ln(a/b), its density in d is log-concave and in proportion to
    e^L, L = a d - (a + b) ln(1 + P (e^d - 1)) = -b d - (a + b) ln(1 + Q (e^-d - 1)), which is 0 at its summit
    d = 0. Integrals of e^L are by one rule of Gauss and Legendre each, cut off where nothing is left.
    """

    def __init__(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
        self._a, self._b = a[:, None], b[:, None]
        self._of = self._a + self._b
        self._left = self._a <= self._b
        self._part = np.where(self._left, self._a, self._b) / self._of  # at most 1/2, so that digits are kept
        self._deviation = np.sqrt(self._of / (self._a * self._b))

    def _log(self, d: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return L."""
        side = np.where(self._left, d, -d)
        slope = np.where(self._left, self._a, self._b)
        logs: NDArray[np.float64] = slope * side - self._of * np.log1p(self._part * np.expm1(side))
        return logs

    def _shares(self, d: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the variable at d, and 1 less it."""
        side = np.where(self._left, d, -d)
        below = 1.0 + self._part * np.expm1(side)
        one, other = self._part * np.exp(side) / below, (1.0 - self._part) / below
        return np.where(self._left, one, other), np.where(self._left, other, one)

    def _integral(self, d: NDArray[np.float64], sign: float) -> NDArray[np.float64]:
        """Return the integral of e^(L - L(d)) from d on, to the right (1) or to the left (-1)."""
        beyond = d + sign * _REST * self._deviation
        own, rest = self._shares(beyond)
        # L' = a - (a + b) share = a rest - b share
        fall = np.maximum(-sign * (self._a * rest - self._b * own), 1e-300)
        width = _REST * self._deviation + _FALL / fall
        nodes, weights = _rule()
        logs = self._log(d + sign * width * nodes) - self._log(d)
        with np.errstate(under="ignore"):
            # No product of matrices, whose rows may depend in the last digit on how many there are.
            return width * (np.exp(logs) * weights).sum(axis=1, keepdims=True)

    def quantile(self, tail: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return where the distribution function is `tail`, below its median, and 1 less that.

        Newton's steps on its logarithm, which is concave: from the second on they come from the left. Each
        search ends by itself, so that no limit depends on the counts beside it.
        """
        summit = np.zeros_like(self._a)
        whole = self._integral(summit, -1.0) + self._integral(summit, 1.0)
        goal = np.log(tail * whole)
        d = NormalDist().inv_cdf(tail) * self._deviation
        moving = np.ones_like(d, np.bool_)
        for _ in range(_STEPS):
            area = self._integral(d, -1.0)  # in units of the density at d
            step = (goal - np.log(area) - self._log(d)) * area
            d = np.where(moving, np.minimum(d + step, 0.0), d)
            moving &= np.abs(step) > _CLOSE * self._deviation
            if not moving.any():
                break
        spare = _SPARE + 2.0**-50 * np.sqrt(self._of)  # L is a difference of terms of about that size
        share, rest = self._shares(d - spare * self._deviation)
        return share[:, 0], rest[:, 0]


@lru_cache(maxsize=1)
def _rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0


@lru_cache(maxsize=256)
def student(freedom: int, tail: float) -> float:
    """Return what Student's variable of so many degrees of freedom exceeds with probability `tail`.

    Parameters
    ----------
    freedom : int
        Degrees of freedom, 1 or more.
    tail : float
        Above 0 and at most 1/2.

    Notes
    -----
    With t = sqrt(v) tan(x), the density of x is in proportion to cos(x)^(v - 1): below 60 degrees of freedom
    its integral is searched by halves. From there on the series of Fisher and Cornish in 1/v is within 1e-6
    of it, for tails from 1e-4.
    """
    z, v = -NormalDist().inv_cdf(tail), float(freedom)
    if freedom >= _SERIES:
        terms = (
            (z**3 + z) / 4.0,
            (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
            (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
            (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
        )
        return z + math.fsum(term / v**power for power, term in enumerate(terms, 1))
    nodes, weights = _rule()

    def beyond(x: float) -> float:
        rest = math.pi / 2.0 - x
        return rest * float(np.cos(x + rest * nodes) ** (v - 1.0) @ weights)

    goal, low, high = 2.0 * tail * beyond(0.0), 0.0, math.pi / 2.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if beyond(middle) > goal else (low, middle)
    return math.sqrt(v) * math.tan(high)
