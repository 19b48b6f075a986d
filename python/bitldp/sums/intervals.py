"""Intervals of secure sums, from the law of their noise: exact for whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.estimate.intervals import Both, Limits
from bitldp.sums.laws import ShareLaw

__all__ = ["Rounded", "Summed"]

_RARE = 1e-15  # chance of noise that is not looked at
_HALVINGS = 60
_NORMAL = NormalDist()
_POINTS = 4096  # of noise with many steps, which is looked at in groups


@lru_cache(maxsize=32)
def _chances(law: ShareLaw, shares: int) -> NDArray[np.float64]:
    """Return the chances of 0, 1, ... of the noise of so many shares."""
    return np.array([float(each) for each in law.ideal(shares, law.reach(shares, _RARE))])


@dataclass(frozen=True, eq=False)
class Summed(Limits):
    """Limits of whole numbers whose noise has a known law: as near as whole numbers allow.

    Attributes
    ----------
    law : ShareLaw
        Of a share.
    shares : int
        How many were added up.
    step : float
        What one step of the sum is worth.
    """

    law: ShareLaw
    shares: int
    step: float

    @property
    def method(self) -> str:
        """Name of the method."""
        return "exact law of the noise"

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return lower and upper limits that are both right with a probability of at least 1 - 2 tail.

        The least numbers a and b, a being b or b + 1, such that noise from -b to a has that probability.
        Noise is whole, so its probability may be more.
        """
        chances = _chances(self.law, self.shares)
        inside = 2.0 * np.cumsum(chances) - chances[0]  # of noise from -k to k
        least = 1.0 - 2.0 * tail
        b = int(np.searchsorted(inside, least))
        a = b
        if b and b < len(chances) and inside[b - 1] + chances[b] >= least:
            b -= 1
        return value - a * self.step, value + b * self.step

    def at(self, index: Any) -> Summed:
        """Return those of some entries: the same."""
        return self


@dataclass(frozen=True, eq=False)
class Rounded(Summed):
    """Limits of a mean of dithered numbers under noise of a known law.

    The sum of n numbers that are dithered is off by at most what normal noise of variance n/4 (in squares of
    a step) is, since each is one of two neighbours.
    """

    @property
    def method(self) -> str:
        """Name of the method."""
        return "law of the noise, and normal dither"

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return lower and upper limits, each wrong with probability `tail`."""
        chances = _chances(self.law, self.shares)
        group = -(-len(chances) // _POINTS)
        places = np.arange(len(chances), dtype=np.float64)
        if group > 1:
            starts = np.arange(1, len(chances), group)
            masses = np.concatenate([chances[:1], np.add.reduceat(chances, starts)])
            places = np.concatenate([[0.0], np.minimum(starts + group - 1, len(chances) - 1)])
            chances = masses
        deviation = math.sqrt(self.shares) / 2.0
        weights = np.concatenate([chances[:0:-1], chances])
        noise = np.concatenate([-places[:0:-1], places])
        weights /= weights.sum()
        low, high = 0.0, float(places[-1]) + 10.0 * deviation
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            beyond = float(weights @ _upper((middle - noise) / deviation))
            low, high = (middle, high) if beyond > tail else (low, middle)
        return value - high * self.step, value + high * self.step


def _upper(quantiles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chances of normal numbers beyond quantiles."""
    return np.array([math.erfc(each) / 2.0 for each in (quantiles / math.sqrt(2.0)).tolist()])
