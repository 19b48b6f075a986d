"""How one number is released: dither to a grid, a channel, and letters whose mean is the number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Bits, Cube, Matrix, Shift, Window
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.letters.spread import Spread

Interval = tuple[float, float]

_ONE = 1 << 64


@dataclass(frozen=True, eq=False)
class Scalar(ABC):
    """A release of one number in an interval.

    Attributes
    ----------
    epsilon : float
        Exact epsilon between any two numbers.
    points : ndarray of float64
        The points of the interval that a number is dithered to, ascending.
    letters : ndarray of float64, shape (alphabet,), or None
        What every code of a report is worth; None where reports say nothing (epsilon 0).
    spread : Spread or None
        Variance of the letters; None without letters.
    channels : tuple
        The channels behind it.
    """

    epsilon: float
    points: NDArray[np.float64]
    letters: NDArray[np.float64] | None
    spread: Spread | None
    channels: tuple[Window | Matrix | Bits | Shift | Cube, ...]

    streams = 1  # keys that a call needs
    whole = False  # whether one release is about all numbers of a record together

    @property
    @abstractmethod
    def alphabet(self) -> int:
        """How many codes a report can be."""

    @abstractmethod
    def randomize(
        self,
        x: ArrayLike,
        keys: Sequence[bytes | None],
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        """Release floats of any shape; the caller has checked `threads` and `first_chunk`."""

    @abstractmethod
    def probabilities(self) -> NDArray[np.float64]:
        """Return P(code | point), one row for each of `points`."""


def equidistant(interval: Interval, count: int) -> NDArray[np.float64]:
    """Return `count` points of an interval, both ends among them and exact; read-only."""
    shares = np.arange(count) / (count - 1)
    return readonly(interval[0] * (1.0 - shares) + interval[1] * shares)


def check_interval(name: str, interval: Interval) -> Interval:
    """Refuse an interval unless the squares of letters stay in the range of doubles at any epsilon."""
    low, high = interval
    if not 1e-100 <= high - low <= 1e100:
        raise ValueError(
            f"{name}: the interval must rise from low to high, by 1e-100 to 1e100, got ({low}, {high})"
        )
    return interval


def checked_interval(interval: tuple[float, float]) -> Interval:
    """Return the parameter `interval` as a pair of floats, or raise."""
    ends = checks.shape("interval", interval)
    if ends != (2,):
        raise ValueError(f"interval: must be a pair (low, high), got shape {ends}")
    low, high = (checks.real("interval", end) for end in interval)
    return check_interval("interval", (low, high))
