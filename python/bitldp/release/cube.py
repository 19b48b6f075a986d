"""Releases of whole records of numbers: dither to signs, the half-cube channel, and two letters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Cube, Grid, log_ratio
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.letters.spread import Spread
from bitldp.privacy import ONE, calibrated
from bitldp.release.base import Call, Interval, Release, equidistant

MOST = 1 << 22
"""The most features of a record: its sets are big integers of as many bits."""

_WHOLE = 1 << 17
"""Features up to which all thresholds are compared."""

_LEADING = 1 << 10
"""Bits that are kept of a factor: those behind them do not change a double."""


def _quotient(above: tuple[int, ...], below: tuple[int, ...]) -> float:
    """Return the quotient of two products of big integers, rounded once."""

    def leading(factors: tuple[int, ...]) -> tuple[int, int]:
        beyond = [max(0, factor.bit_length() - _LEADING) for factor in factors]
        return math.prod(factor >> shift for factor, shift in zip(factors, beyond, strict=True)), sum(beyond)

    (numerator, up), (denominator, down) = leading(above), leading(below)
    return (numerator << max(0, up - down)) / (denominator << max(0, down - up))


def scale_of(channel: Cube) -> float | None:
    """Return 1/m for the mean m of agreement less disagreement in one place; None where it is 0.

    Exactly, with T = `high`, sizes N and F of the sets and E[2A/r - 1 | near] = e/N, E[... | far] = -f/F:

        m = (T e F - (2^64 - T) f N)/(2^64 N F),

    a quotient of integers that is rounded once. Where e = f, it leaves the difference.
    """
    high = channel.high
    (near, far), (inner, outer) = channel.sizes(), channel.edges()
    if inner == outer:
        mean = high * far - (ONE - high) * near
        return None if mean <= 0 else _quotient((ONE, near, far), (mean, inner))
    mean = high * inner * far - (ONE - high) * outer * near
    return None if mean <= 0 else _quotient((ONE, near, far), (mean,))


@lru_cache(maxsize=16)
def _sets(bits: int, near: int, far: int) -> Cube:
    return Cube(bits, near, far, 1 << 63)


def _high(channel: Cube, epsilon: float) -> int:
    """Return T for p = e^eps N/(e^eps N + F), N and F the sizes of the two sets; never 0 or 2^64."""
    near, far = channel.sizes()
    apart = abs(near.bit_length() - far.bit_length()) > 1000  # the quotient is no double
    odds = epsilon + (math.log(near) - math.log(far) if apart else math.log(near / far))
    rare = math.exp(-abs(odds)) / (1.0 + math.exp(-abs(odds)))
    rarely = min(math.ceil(rare * ONE), ONE >> 1)
    return ONE - max(1, rarely) if odds > 0.0 else max(1, rarely)


@lru_cache(maxsize=64)
def cap(bits: int, near: int, epsilon: float) -> Cube:
    """Return the law of exact epsilon `epsilon` whose likely set begins at `near` agreements."""
    sets = _sets(bits, near, near - 1)

    def build(target: float) -> Cube:
        return sets.with_high(_high(sets, target), mute=target == 0.0)

    return calibrated(build, epsilon, attrgetter("epsilon"))


@lru_cache(maxsize=64)
def published_half(bits: int, epsilon: float) -> Cube:
    """Return the law of the paper: p = e^eps/(e^eps + 1), and ties in both halves where there are any."""
    near = (bits + 1) // 2
    sets = _sets(bits, near, bits // 2)

    def build(target: float) -> Cube:
        rare = math.exp(-target) / (1.0 + math.exp(-target))
        return sets.with_high(ONE - max(1, math.ceil(rare * ONE)))

    def claimed(channel: Cube) -> float:
        return log_ratio(channel.high, ONE - channel.high)

    return calibrated(build, epsilon, claimed)


@lru_cache(maxsize=64)
def best_threshold(bits: int, epsilon: float) -> int:
    """Return the number of agreements from which the likely set gives the largest mean m.

    With N strings from kappa agreements on, F below, and A = C(r - 1, kappa - 1), the mean is
    A (e^eps - 1)/(e^eps N + F). All kappa are compared in logarithms; the law itself is made of integers.
    """
    places, weights = _weights(bits, epsilon)
    near = np.logaddexp.accumulate(weights[::-1])[::-1][1:]  # from kappa on, for kappa = 1 .. r
    far = np.logaddexp.accumulate(weights)[:-1]
    edge = weights[1:] + np.log(places[1:] / bits)  # C(r - 1, kappa - 1) = C(r, kappa) kappa/r
    means = edge - np.logaddexp(near + epsilon, far)
    return int(places[1 + np.argmax(means)])


def _weights(bits: int, epsilon: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return numbers of agreements and the logarithms of how many strings have them, up to a constant.

    At most e^(-2 d^2/r) of the strings agree in d places more than the half, or more. Where that is
    e^-epsilon, the likely set of the best threshold begins, about. Standard deviations are sqrt(r)/2; 20 of
    them beyond, nothing is left that a double would show.
    """
    if bits <= _WHOLE:
        logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, bits + 1)))])  # ln a!
        places = np.arange(bits + 1)
        return places, logs[bits] - logs - logs[bits - places]
    reach = math.ceil(math.sqrt(bits) * (math.sqrt(epsilon / 2.0) + 10.0))
    low, high = max(0, bits // 2 - reach), min(bits, bits // 2 + reach)
    places = np.arange(low, high + 1)
    ratios = np.log((bits - places[:-1]) / places[1:])  # C(r, a + 1) = C(r, a) (r - a)/(a + 1)
    return places, np.concatenate([[0.0], np.cumsum(ratios)])


@dataclass(frozen=True, eq=False)
class CubeRelease(Release):
    """A release of whole records of signs; what it says of one number is the law of its place."""

    whole: ClassVar[bool] = True

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        keys, output, out, threads, first_chunk = call
        values, channel, codec = checks.plain("x", x), self.channel, self.codec
        letters = None if self.letters is None else (float(self.letters[0]), float(self.letters[1]))
        flat = channel.bits == 1 and values.ndim == 1
        if flat:  # n records of one feature
            values = values[:, None]
            out = out[:, None] if isinstance(out, np.ndarray) and out.ndim == 1 else out
        reports: NDArray[Any] = channel.randomize(
            values, codec, letters, keys[0], output, out, threads, first_chunk
        )
        return reports[:, 0] if flat and output != "packed" else reports

    def probabilities(self) -> NDArray[np.float64]:
        scale = None if self.epsilon == 0.0 else scale_of(self.channel)
        mean = 0.0 if scale is None else 1.0 / scale
        return np.array([[1.0 + mean, 1.0 - mean], [1.0 - mean, 1.0 + mean]]) / 2.0


def cube_release(channel: Cube, interval: Interval) -> CubeRelease:
    """Return the release of records of numbers of an interval by a law of signs.

    A number x goes to an end of the interval, middle +- h; a sign is kept with the mean m (`scale_of`),
    so the letters middle +- h/m have the mean x, and the variance (h/m)^2 - (x - middle)^2.
    """
    low, high = interval
    points = equidistant(interval, 2)
    grid = Grid(2, low=low, high=high)
    exact = channel.epsilon
    scale = None if exact == 0.0 else scale_of(channel)
    if scale is None:
        return CubeRelease(channel, exact, 2, grid, points)
    half = (high - low) / 2.0 * scale
    letters = low + (high - low) / 2.0 + np.array([-half, half])
    spread = Spread(points, readonly(np.array([half * half, half * half])))
    return CubeRelease(channel, exact, 2, grid, points, readonly(letters), spread)
