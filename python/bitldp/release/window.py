"""Windows of exact epsilon: some cells are likely, all the others less so."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Grid, Window, log_ratio
from bitldp.base.arrays import readonly
from bitldp.letters.spread import Spread
from bitldp.privacy import ONE, calibrated
from bitldp.release.base import Interval, Release, equidistant

_UNIT_IN_LAST_PLACE = 2.0**-53
_RESOLUTION = 1 << 16  # a grid's ends may be off by this part of a step, as for single precision in the core
_exact = attrgetter("epsilon")


class WindowRelease(Release):
    """A release by a window of m in N cells whose place tells the input."""

    def probabilities(self) -> NDArray[np.float64]:
        if self.points is None:
            return self.channel.probabilities()
        first = self.channel.width // 2  # the cell whose window is the leftmost one
        return self.channel.probabilities()[first : first + len(self.points)]

    def chances(self) -> tuple[float, float]:
        """Return P(report v | v) and P(report v | another) of a window of one cell, from its integers."""
        high, cells = self.channel.high, self.channel.cells
        return high / ONE, (ONE - high) / ((cells - 1) * ONE)

    def letters_on(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the decoded value of each report where the cells are points and the window is one of them.

        The sum over points v of v (1[report = v] - q)/(p - q): its mean over the randomness is the point.
        """
        p, q = self.chances()
        return (points - q * points.sum()) / (p - q)

    def bias_on(self, points: NDArray[np.float64]) -> float:
        """Return how far the mean of a reported point may be from the true one, of such a window."""
        p, q = self.chances()
        return float(np.abs((p - q - 1.0) * points + q * points.sum()).max())

    def row(self, x: int) -> NDArray[np.float64]:
        channel, given = self.channel, 0 if self.epsilon == 0.0 else x
        order = channel.order
        inside = channel.high / (channel.width * ONE)
        whole = np.full(channel.cells, (ONE - channel.high) / ((channel.cells - channel.width) * ONE))
        if order is None:
            start = channel.start(given)
            whole[start : start + channel.width] = inside
        else:
            whole[order[given, : channel.width]] = inside
        return whole


@lru_cache(maxsize=64)
def window(cells: int, width: int, epsilon: float, order: NDArray[np.uint16] | None = None) -> WindowRelease:
    """Return the window of exact epsilon `epsilon`: `width` cells at weight e^epsilon, the rest at 1.

    With an order, row x of it lists the cells from best to worst; see `ordered_window`, which keeps none.
    """

    def build(target: float) -> WindowRelease:
        # A window of m in N cells is uniform at m/N, which is no multiple of 2^-64 unless N/m is a power of
        # two: the exact epsilon 0 needs a channel that leaves its input out.
        channel = Window(cells, width, high_share(cells, width, target), order, mute=target == 0.0)
        return WindowRelease(channel, channel.epsilon, cells)

    return calibrated(build, epsilon, _exact)


ordered_window = window.__wrapped__
"""The same without a cache, for windows in an order of their own."""


def drawn_in_secret(channel: Window, size: int) -> float:
    """Return epsilon of randomized response of one of `size` symbols or more, drawn in secret; rounded up.

    A symbol that is drawn with the chance s is reported with q + s (p - q), and q is the least: one that is
    not in the other set. So the ratio is 1 + s (p - q)/q, of integers, with the largest s of a draw.
    """
    drawn = Fraction(-(-ONE // size), ONE)
    p = Fraction(channel.high, ONE)
    q = (1 - p) / (channel.cells - 1)
    ratio = 1 + drawn * max(p - q, Fraction(0)) / q
    above, below = ratio.numerator, ratio.denominator
    if above >= 1 << 128:  # which the logarithm does not take
        beyond = above.bit_length() - 127
        above, below = -(-above >> beyond), below >> beyond
    return log_ratio(above, below)


def high_share(cells: int, width: int, epsilon: float) -> float:
    """Return width e^epsilon/(width e^epsilon + cells - width), kept below 1 so that no cell is excluded."""
    return min(width / (width + (cells - width) * math.exp(-epsilon)), 1.0 - _UNIT_IN_LAST_PLACE)


@lru_cache(maxsize=64)
def windowed(cells: int, width: int, epsilon: float, interval: Interval) -> WindowRelease:
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
    channel, exact = law.channel, law.epsilon
    low, high = interval
    slides = cells - width
    step = (high - low) / slides
    if width > 1 and math.ulp(max(abs(low), abs(high))) * _RESOLUTION > step:
        raise ValueError(
            f"interval: ({low}, {high}) is too narrow for its distance from 0; {slides} steps in it "
            f"cannot be distinguished in double precision"
        )
    before = width // 2
    grid = Grid(cells, low=low - before * step, high=high + (width - 1 - before) * step)
    points = equidistant(interval, slides + 1)
    excess = cells * channel.high - width * ONE  # (H N - m) 2^64
    if exact == 0.0 or excess == 0:
        return WindowRelease(channel, 0.0, cells, grid, points)
    scale = (high - low) * (ONE / excess)
    middle = low + (high - low) / 2.0
    letters = middle + (np.arange(cells) - (cells - 1) / 2.0) * scale
    inside = np.square(np.arange(slides + 1) - slides / 2.0) + (width * width - 1) / 12.0
    rest = (ONE - channel.high) / ONE * (cells * (cells * cells - 1) / (12 * slides))
    moments = scale * scale * (inside * (excess / (slides * ONE)) + rest)
    spread = Spread(points, readonly(moments))
    return WindowRelease(channel, exact, cells, grid, points, readonly(letters), spread)
