"""How one number is released: dither to a grid, a channel, and letters whose mean is the number."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp import _checks
from bitldp._core import Bits, Cube, Grid, Matrix, Shift, Window
from bitldp._mechanism import readonly
from bitldp._window import Law, window
from bitldp.numeric._spread import Spread

Interval = tuple[float, float]

_ONE = 1 << 64
_RESOLUTION = 1 << 16  # a grid's ends may be off by this part of a step, as for single precision in the core


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


@dataclass(frozen=True, eq=False)
class WindowScalar(Scalar):
    """A release by a window of m in N cells whose place tells the number."""

    law: Law
    grid: Grid

    @property
    def alphabet(self) -> int:
        return self.law.channel.cells

    def randomize(
        self,
        x: ArrayLike,
        keys: Sequence[bytes | None],
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        return self.law.randomize(x, self.grid, self.letters, keys[0], output, out, threads, first_chunk)

    def probabilities(self) -> NDArray[np.float64]:
        channel = self.law.channel
        first = channel.width // 2  # the cell whose window is the leftmost one
        return channel.probabilities()[first : first + len(self.points)]


@lru_cache(maxsize=64)
def windowed(cells: int, width: int, epsilon: float, interval: Interval) -> WindowScalar:
    """Return the release by a sliding window, of exact epsilon `epsilon`.

    With N cells, m of them in the window, there are S + 1 = N - m + 1 windows, one for each of as many points
    of the interval; the window that starts at cell s stands for low + h s, where h = (high - low)/S. A number
    x is dithered to one of the two points beside it, so that E[s] = (x - low)/h.

    Letters. Let c = (N - 1)/2 be the middle cell, H the probability of a report y inside the window, and
    d = s - S/2, so that the window's mean is c + d. The mean of all N cells is c, so the mean of the other
    S cells is c - d m/S. Hence

        E[y - c | s] = H d - (1 - H) d m/S = d (H N - m)/S,

    and the letter ``middle + (y - c) (high - low)/(H N - m)`` has the mean middle + d h = low + h s, the
    point, exactly; over the dither, the mean is x. With H = T/2^64 the factor is a quotient of integers.

    Variance. A window of m cells has the second moment w = d^2 + (m^2 - 1)/12 about c, all N cells together
    sum to N (N^2 - 1)/12, so that

        E[(y - c)^2 | s] = H w + (1 - H) (N (N^2 - 1)/12 - m w)/S
                         = w (H N - m)/S + (1 - H) N (N^2 - 1)/(12 S).

    The channel takes cells and starts their window at ``clamp(x - m//2, 0, S)``. So its grid goes m//2 steps
    beyond `low` and m - 1 - m//2 beyond `high`: the clamp is then the clip to the interval.

    Raises
    ------
    ValueError
        If the interval is so narrow for its distance from 0 that doubles blur the steps of the grid.
    """
    law = window(cells, width, epsilon)
    low, high = interval
    slides = cells - width
    step = (high - low) / slides
    if width > 1 and math.ulp(max(abs(low), abs(high))) * _RESOLUTION > step:
        raise ValueError(
            f"interval: ({low}, {high}) is too narrow for its distance from 0; {slides} steps in it cannot "
            "be told apart in double precision"
        )
    before = width // 2
    grid = Grid(cells, low=low - before * step, high=high + (width - 1 - before) * step)
    points = equidistant(interval, slides + 1)
    excess = cells * law.channel.high - width * _ONE  # (H N - m) 2^64
    if law.mute or excess == 0:
        return WindowScalar(law.epsilon, points, None, None, (law.channel,), law, grid)
    scale = (high - low) * (_ONE / excess)
    middle = low + (high - low) / 2.0
    letters = middle + (np.arange(cells) - (cells - 1) / 2.0) * scale
    inside = np.square(np.arange(slides + 1) - slides / 2.0) + (width * width - 1) / 12.0
    rest = (_ONE - law.channel.high) / _ONE * (cells * (cells * cells - 1) / (12 * slides))
    moments = scale * scale * (inside * (excess / (slides * _ONE)) + rest)
    spread = Spread(points, readonly(moments))
    return WindowScalar(law.epsilon, points, readonly(letters), spread, (law.channel,), law, grid)


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
    ends = _checks.shape("interval", interval)
    if ends != (2,):
        raise ValueError(f"interval: must be a pair (low, high), got shape {ends}")
    low, high = (_checks.real("interval", end) for end in interval)
    return check_interval("interval", (low, high))
