"""Cost of normal noise, (epsilon, delta), and the normal noise that is no more private than given integers.

Two normal laws of variance 1 whose means are mu apart are told apart with the error rates G_mu. A release is
mu-GDP if its inputs are never told apart better. That composes exactly: the squares of mu add up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.privacy import ONE

__all__ = [
    "NormalBound",
    "beside",
    "continuous_sigma",
    "delta_of",
    "epsilon_of",
    "largest_mu",
    "slope_of_noise",
    "slope_of_rows",
]

_NORMAL = NormalDist()
_HALVINGS = 100
_LARGEST = 1e6  # mu beyond which nothing is private
_UP = 1.0 + 2.0**-40
_ROUNDING = 2.0**-40  # relative: more than what erfc, exp and their difference lose
_SLOPE_UP = 1.0 + 1e-9  # more than what the quantile and the density of the normal law lose


def _reached(epsilon: float, sigma: float) -> tuple[float, float]:
    """Return the two terms whose difference is delta, for a sensitivity of 1."""
    a, b = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
    far = math.erfc(-b / math.sqrt(2.0))
    scaled = math.exp(epsilon + math.log(far)) if far > 0.0 else 0.0
    return math.erfc(-a / math.sqrt(2.0)), scaled


def continuous_sigma(epsilon: float, delta: float) -> float:
    """Return the least standard deviation of continuous Gaussian noise, for a sensitivity of 1.

    With s = sigma, delta = F(1/(2s) - eps s) - e^eps F(-1/(2s) - eps s), F the normal distribution function
    (Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, Theorem 8).
    """

    def reached(sigma: float) -> float:
        near, scaled = _reached(epsilon, sigma)
        return (near - scaled) / 2.0

    low, high = 1e-9, 1.0
    while reached(high) > delta:
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if reached(middle) <= delta else (middle, high)
    return high


def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu whose G_mu keeps (epsilon, delta), rounded down by a few parts in 10^9."""
    return (1.0 - 2.0**-28) / continuous_sigma(epsilon, delta)


def delta_of(mu: float, epsilon: float) -> float:
    """Return the delta of mu-GDP at an epsilon of zero or more, rounded up; mu from 0 to 1e6."""
    if mu == 0.0:
        return 0.0
    if not mu <= _LARGEST:
        return 1.0
    near, scaled = _reached(epsilon, 1.0 / mu)
    return min((near - scaled + _ROUNDING * (near + scaled)) / 2.0, 1.0)


def epsilon_of(mu: float, delta: float) -> float:
    """Return the least epsilon at which mu-GDP keeps a delta above 0, rounded up."""
    if delta_of(mu, 0.0) <= delta:
        return 0.0
    if not mu <= _LARGEST:
        return math.inf
    low, high = 0.0, 1.0
    while delta_of(mu, high) > delta:
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if delta_of(mu, middle) > delta else (low, middle)
    return high * _UP


def beside(epsilon_at: Callable[[float], float], delta: float, lost: float) -> float:
    """Return an epsilon at a delta of which (1 + epsilon's exponential) lost is spent beside a law.

    Parameters
    ----------
    epsilon_at : callable
        From a delta to the law's epsilon there.
    delta : float
        Above 0.
    lost : float
        Total variation between the law and what is released, for one input.

    Returns
    -------
    float
        Infinite where there is none.

    Notes
    -----
    With P and Q the law's chances of an event under two inputs, what is released has P + lost at most, and
    Q - lost at least: so delta is that of the law and (1 + e^epsilon) lost.
    """
    if not lost > 0.0:
        return epsilon_at(delta)
    epsilon = 0.0
    for _ in range(_HALVINGS):
        left = delta - (1.0 + math.exp(epsilon)) * lost * _UP if epsilon < 700.0 else 0.0
        if not left > 0.0:
            return math.inf
        reached = epsilon_at(left)
        if reached <= epsilon:
            return epsilon
        epsilon = reached * (1.0 + 1e-9)
    return math.inf


class NormalBound(NamedTuple):
    """Normal laws that two records are told apart no better than, but for a part of delta.

    Attributes
    ----------
    mu : float
        How far normal laws of variance 1 are apart.
    lost : float
        Total variation between the reports' law and the one that this holds of, for one record.
    """

    mu: float
    lost: float

    def delta(self, epsilon: float) -> float:
        """Return delta, rounded up: that of the normal laws, and (1 + e^epsilon) lost."""
        if epsilon > 700.0:
            return 1.0
        return min(1.0, (delta_of(self.mu, epsilon) + (1.0 + math.exp(epsilon)) * self.lost) * _UP)

    def epsilon(self, delta: float) -> float:
        """Return about the least epsilon at a delta, rounded up; infinite where none is found."""
        return beside(lambda left: epsilon_of(self.mu, left), delta, self.lost)


def slope_of_noise(weights: Sequence[int]) -> float:
    """Return c such that inputs x and x' of dithered integer noise are c |x - x'|-GDP, rounded up.

    Parameters
    ----------
    weights : sequence of int
        Symmetric noise -K..K over 2^64, whose ends stand for all that is beyond them. A report at x = n + f
        has the law (1 - f) w(y - n) + f w(y - n - 1), and may be clamped at n + K or nearer.

    Returns
    -------
    float
        In units of a step. For discrete Gaussian noise about 1/sigma (1 + K/(2 sigma^2)).

    Notes
    -----
    Let a(x) be the chance of a test (an event, or a randomized one) at x, and I(a) = phi(Phi^-1(a)). If every
    test has a'(x) <= c I(a(x)), then Phi^-1(a) has a slope of at most c, as (Phi^-1)'(a) is 1/I(a). So from x
    to x' a test's power is at most Phi(Phi^-1(size) + c |x - x'|): that is c |x - x'|-GDP, and the converse
    slope is that of the test's complement. Coordinates with noise of their own compose to c |x - x'|_2-GDP
    (Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022, Corollary 3.3). That a smooth law of
    noise is compared with the normal one by its profile is Bobkov's functional form of the isoperimetric
    inequality; here it is a finite check.

    Between two integers the law is affine in x, so a report k = y - n of the chance w(k) at f = 0 gains g(k)
    = w(k - 1) - w(k) everywhere. Of all tests of a chance the one of the largest g(k)/P(k), highest first,
    gains most; that order is one for every f, since P(k) = w(k) + f g(k). What it gains, H(a), is piecewise
    linear, and I is concave, so H <= c I is decided at its corners, the sets of the highest reports. Such a
    set of chance p and gain G has p + f G at f. By symmetry all that gains has at most 1 - p at f = 1, a
    smaller set less: so p + f G is from p to 1 - p, where I is no less than at p, and f = 0 is the worst.
    Tests that hold reports which lose are complements of such sets at 1 - f, mirrored.

    To clamp nearer takes reports together, of which tests are fewer. At n + K itself the report has, from n
    to n + 1, all that is beyond, too: it gains w(K - 1).
    """
    law = np.array([float(weight) for weight in weights]) / ONE
    gains = law[:-1] - law[1:]
    gains[-1] = law[-2]  # the end is a tail, which gains all that is before it
    up = gains > 0.0
    up[0] = False  # so is the other end, which loses as much
    chances, gains = law[1:][up], gains[up]
    with np.errstate(divide="ignore"):
        scores = gains / chances
    return _cut(chances, gains, scores) * _SLOPE_UP


def slope_of_rows(rows: NDArray[np.float64]) -> float:
    """Return c such that inputs t steps apart of a dithered table are c t-GDP; see `slope_of_noise`.

    Parameters
    ----------
    rows : ndarray of float64, shape (points, values)
        P(value | point); between two points the law is interpolated.
    """
    worst = 0.0
    for one, other in itertools.pairwise(rows):
        for gains in (other - one, one - other):
            up = gains > 0.0
            # either end of the step: between them, I is no less than at one of them
            for at in (one[up], other[up]):
                worst = max(worst, _cut(at, gains[up], gains[up] / np.minimum(one[up], other[up])))
    return worst * _SLOPE_UP


def _cut(at: NDArray[np.float64], gains: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    """Return the largest quotient of gain and I(chance), over the events of the highest scores."""
    order = np.argsort(-scores, kind="stable")
    total, gained = np.cumsum(at[order]), np.cumsum(gains[order])
    worst = 0.0
    for chance, gain in zip(total.tolist(), gained.tolist(), strict=True):
        if not 0.0 < chance < 1.0:
            return math.inf
        worst = max(worst, gain / _NORMAL.pdf(_NORMAL.inv_cdf(chance)))
    return worst
