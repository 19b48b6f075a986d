"""Sums of vectors with integer noise in every coordinate, by normal laws that tell two records no worse."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bitldp._core import Shift
from bitldp.amplification.sums import more_than
from bitldp.channels.normal import NormalBound
from bitldp.mechanism.law import Coordinates
from bitldp.sums.laws import ShareTable
from bitldp.sums.normal import slope_of_sum

__all__ = ["SummedVectors"]

_BITS = 128  # of the free noise's weights, so that their floors lose nothing of delta
_SET_ASIDE = 2.0**-8  # of delta: for the tails of the sum, and as much for clamped noise
_LARGEST = 1 << 18  # values of a sum's noise, whose integers are multiplied in seconds
_DELTAS = (1e-3, 1e-6, 1e-9, 1e-12)  # what tails are compared with where a delta is asked for
_FEW = 1000  # users, whose sums are convolved in tenths of a second
_TILTS = np.logspace(-1.0, 2.0, 60)
_UP = 1.0 + 1e-9


class _FreeNoise(NamedTuple):
    """Noise of a report at which no input is clamped, as a law that `slope_of_sum` takes.

    Attributes
    ----------
    table : ShareTable
        Weights of the noise, given that it is free.
    told : float
        Chance of other noise.
    """

    table: ShareTable
    told: float
    mirrored: bool = False

    def __hash__(self) -> int:
        """Return that of the table, which is its own."""
        return hash(self.table)

    def reach(self, shares: int, tail: float) -> int:
        """Return what the sum of so many exceeds with that chance at most, to one side (Chernoff)."""
        chances = np.array([float(weight) for weight in self.table.weights]) / 2.0**_BITS
        values = np.arange(len(chances), dtype=np.float64) - len(chances) // 2
        deviation = math.sqrt(shares * float(chances @ np.square(values)))
        best = shares * float(values[-1])
        for tilt in (_TILTS / max(deviation, 1e-3)).tolist():
            if tilt * values[-1] < 600.0:
                moment = math.log1p(2.0 * float(chances @ np.square(np.sinh(tilt * values / 2.0))))
                best = min(best, (shares * moment - math.log(tail)) / tilt)
        return math.ceil(best * _UP)


def _free_noise(channel: Shift) -> _FreeNoise | None:
    """Return the noise of a channel that is never clamped, or None where it is not symmetric."""
    weights, reach = channel.weights(), channel.reach
    low, high = -channel.offset, channel.outputs - channel.inputs - channel.offset
    if channel.mute or low != -high or not 0 < high <= reach or weights != weights[::-1]:
        return None
    inside = weights[reach + low : reach + high + 1]
    total, whole = sum(inside), sum(weights)
    kept = tuple((weight << _BITS) // total for weight in inside)
    return _FreeNoise(ShareTable(kept, low, _BITS), (whole - total) / whole)


class SummedVectors:
    """The sum of n reports of vectors, each coordinate an input that is dithered, with noise, and clamped.

    Parameters
    ----------
    law : Coordinates
        Of a report.
    n : int
        Users.

    Raises
    ------
    TypeError
        For noise that is not symmetric.
    ValueError
        For a sum of so much noise that its integers take minutes.

    Notes
    -----
    Whether the noise of a report is free, so far from the ends that no input is clamped, does not depend on
    any record. Say which noise is not free, in each coordinate, and what it is. Then another user's report
    moves the sum by something that is known, or by an input that does not depend on the one record and free
    noise. Of the one user the report is its dithered input and free noise, or an input that is clamped
    after known noise was added: coordinate by coordinate that is a dithered input again, of a function that
    moves no faster than its argument. So with j told in a coordinate, the sum tells two records apart no
    better than a dithered input under the sum of n - j free noises: by c of `slope_of_sum` times their
    distance, in any dimension. More than j are told in some coordinate with a chance of D times a binomial
    tail at most, and delta is that and the delta of the normal laws.
    """

    def __init__(self, law: Coordinates, n: int) -> None:
        noise = _free_noise(law.channel)
        if noise is None:
            raise TypeError("mechanism: the noise of a vector's coordinate must be symmetric")
        self._law, self._noise, self._n = law, noise, n
        reach = noise.reach(n, 1e-22)
        if reach > _LARGEST:
            most = max(1, math.floor(n * (_LARGEST / reach) ** 2))
            raise ValueError(
                f"n: at most about {most} for noise of {noise.reach(1, 1e-22)} steps, got {n}; fewer "
                f"output_bits allow more, and the bound for {most} users also holds for more"
            )

    def epsilon(self, delta: float) -> float:
        """Return epsilon at a delta, rounded up."""
        bound, told = self._bound(delta, 3.0)
        near = bound.epsilon(delta - told)
        if not near < 700.0:
            return near
        bound, told = self._bound(delta, 1.0 + math.exp(near))
        return min(near, bound.epsilon(delta - told))

    def delta(self, epsilon: float) -> float:
        """Return delta at an epsilon, rounded up."""
        # of many users one number that are told, so that their sum is convolved once
        best, least = 1.0, _DELTAS[-1] if self._n > _FEW else None
        for delta in _DELTAS:
            bound, told = self._bound(delta, 1.0 + math.exp(min(epsilon, 600.0)), least)
            best = min(best, bound.delta(epsilon) + told)
        return min(1.0, best * _UP)

    def _bound(self, delta: float, cost: float, least: float | None = None) -> tuple[NormalBound, float]:
        """Return the normal laws, and the chance that more are told than they allow for."""
        features, spared = self._law.features, delta * _SET_ASIDE
        rarely = (spared if least is None else least * _SET_ASIDE) / features
        told, rare = _told(self._n, self._noise.told, rarely)
        if told >= self._n:
            return NormalBound(math.inf, 0.0), 0.0
        tail = 0.25 ** math.ceil(math.log(2.5 * cost * features / spared, 4.0))
        slope = slope_of_sum(self._noise, self._n - told, tail)
        mu = slope.per_step * self._law.diameter * (1.0 + 2.0**-40)
        return NormalBound(mu, min(1.0, slope.lost * features * _UP)), min(1.0, rare * features * _UP)


def _told(users: int, chance: float, rare: float) -> tuple[int, float]:
    """Return how many users, each with a chance, are rarely exceeded; and the chance that they are."""
    told = math.floor(users * chance)
    while told < users and more_than(users, chance, told) > rare:
        told += max(1, told // 64)
    told = min(told, users)
    return told, more_than(users, chance, told)
