"""Sums of bits: all pairs of neighbouring data sets of any number of users, some of them at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.accounting.search import least_epsilon
from bitldp.amplification.sums import ROUND, UP, WIDTH

__all__ = ["Binary", "binomial"]

_CLOSE = 1e-6  # relative, of an epsilon that is searched
_PARTS = 512  # of the others' records: within one of them 1/512 of the users are told, 0.1 % of epsilon
_MORE = 60.0  # steps of a binomial law beyond `WIDTH` deviations that are looked at, to either side
_MISSED = 1e-13  # Bernstein's bound of what is not: 4 exp(-t^2/2(v + t/3)) at t = 9 sqrt(v) + 60 is below
_RELATIVE = 1e-9  # more than a running product of 2^24 factors loses
_STEEPEST = 600.0  # tilt; any is right, and this one still a double


class _Others(NamedTuple):
    """Others of known records: how many, and the chance of a 1, of each; and the one user's two chances."""

    many: tuple[tuple[int, float], tuple[int, float]]
    one: float
    other: float


class Binary:
    """All pairs of neighbouring data sets of n users who report 0 or 1, some of them at a time.

    Parameters
    ----------
    rows, n
        As of `Datasets`; rows of shape (2, 2).

    Notes
    -----
    Of the others some c hold the one input. For all c from a to b delta is no more than where the reports of
    b - a of them are told besides, which leaves a sum of fewer users: one law bounds many data sets. With R
    the sum of the reports of those who are left, and p > p' the chances that the user reports 1,

        delta = sum over k of (x R(k - 1) - y R(k))_+,  x = p - e^eps p',  y = e^eps (1 - p') - (1 - p).

    R is log-concave (a sum of independent bits), so R(k - 1)/R(k) rises with k, and the terms above zero are
    the last ones. They begin where the ratio is y/x: where R tilted by t = ln(y/x) has its middle. So the
    chances of the tilted sum, a convolution of two binomial laws, are taken by a Fourier transform whose
    error is small beside them. Where p < p', 0 and 1 are exchanged.
    """

    def __init__(self, rows: NDArray[np.float64], n: int) -> None:
        self._chances, self._n = rows[:, 1].tolist(), n

    def _cases(self) -> Iterator[_Others]:
        """Yield what bounds all pairs of neighbouring data sets."""
        p, q = self._chances
        others = self._n - 1
        step = max(1, -(-others // _PARTS))
        for first in range(0, others + 1, step):
            last = min(first + step - 1, others)
            for one, other in ((p, q), (q, p)):
                known = ((first, p), (others - last, q))
                if one < other:
                    known = ((first, 1.0 - p), (others - last, 1.0 - q))
                    yield _Others(known, 1.0 - one, 1.0 - other)
                else:
                    yield _Others(known, one, other)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of the delta of the worst pair at an epsilon."""
        return max(_delta_of_bits(case, epsilon) for case in self._cases())

    def epsilon(self, delta: float, local: float) -> float:
        """Return an upper bound of the epsilon of the worst pair at a delta, never above the local one."""
        worst = 0.0
        for case in self._cases():
            if worst >= local:
                break
            if _delta_of_bits(case, worst) > delta:
                worst = least_epsilon(partial(_delta_of_bits, case), delta, worst, local, close=_CLOSE)
        return worst


def _delta_of_bits(case: _Others, epsilon: float) -> float:
    """Return an upper bound of delta for some users of known records and the one user."""
    factor = math.exp(min(epsilon, 700.0))
    x = case.one - factor * case.other
    y = factor * (1.0 - case.other) - (1.0 - case.one)
    if x <= 0.0:
        return 0.0
    if y <= 0.0:
        return 1.0
    tilt = min(max(0.0, math.log(y) - math.log(x)), _STEEPEST)
    chances, first, log_mass = np.ones(1), 0, 0.0
    for users, chance in case.many:
        odds = chance * math.exp(tilt)
        mass = 1.0 - chance + odds
        law, start = binomial(users, min(1.0, odds / mass))
        log_mass += users * math.log(mass)
        chances, first = _added(chances, law), first + start
    error = 4.0 * ROUND * (6.0 * math.log2(len(chances) + 2) + 4.0) + _MISSED
    sums = first + np.arange(-1, len(chances) + 1)  # and the two beside the window
    weights = np.exp(np.minimum(log_mass - tilt * sums, 700.0))
    held = np.pad(np.maximum(chances, 0.0), 1)
    upper = (held * (1.0 + _RELATIVE) + error) * weights
    lower = np.maximum(held * (1.0 - _RELATIVE) - error, 0.0) * weights
    gains = x * upper[:-1] - y * lower[1:]
    # The true gain rises with the sum from below zero; a bound of it that is not above settles all before.
    settled = np.flatnonzero(gains <= 0.0)
    start = int(settled[-1]) + 1 if len(settled) else 0
    if not len(settled) and first > 0:
        return 1.0
    beyond = _MISSED * x * float(weights[start])  # the window, above
    return min(1.0, (float(gains[start:].sum()) + beyond) * UP)


def binomial(users: int, chance: float) -> tuple[NDArray[np.float64], int]:
    """Return the chances of a binomial law about its middle, of sum 1, and the first number they are of."""
    if users == 0 or chance in (0.0, 1.0):
        return np.ones(1), users if chance == 1.0 else 0
    middle = min(users, int((users + 1) * chance))
    reach = math.ceil(WIDTH * math.sqrt(users * chance * (1.0 - chance)) + _MORE)
    low, high = max(0, middle - reach), min(users, middle + reach)
    odds = chance / (1.0 - chance)
    up = np.arange(middle, high)
    down = np.arange(middle, low, -1)
    above = np.cumprod((users - up) / (up + 1.0) * odds)
    below = np.cumprod(down / ((users - down + 1.0) * odds))
    law = np.concatenate([below[::-1], [1.0], above])
    return law / law.sum(), low


def _added(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the law of a sum."""
    size = len(one) + len(other) - 1
    if min(len(one), len(other)) == 1:
        return np.asarray(one * other)
    length = 1 << (size - 1).bit_length()
    return np.asarray(np.fft.irfft(np.fft.rfft(one, length) * np.fft.rfft(other, length), length)[:size])
