"""Releases of one number by noise: dither to a grid, integer noise, a clamp, and letters."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Grid, Shift
from bitldp.base.arrays import readonly
from bitldp.letters.spread import Spread
from bitldp.privacy import ONE
from bitldp.release.base import Interval, Release, equidistant

_RESOLUTION = 1 << 16  # a grid's ends may be off by this part of a step, as for single precision in the core


def law_of(channel: Shift) -> NDArray[np.float64]:
    """Return the probabilities of the noise -K..K."""
    return np.array(channel.weights(), dtype=np.float64) / ONE


def row_of(channel: Shift, x: int) -> NDArray[np.float64]:
    """Return the probabilities of the reports of an input, 0 to inputs - 1."""
    start = channel.offset - channel.reach + x
    reports = np.clip(start + np.arange(2 * channel.reach + 1), 0, channel.outputs - 1)
    return np.bincount(reports, weights=law_of(channel), minlength=channel.outputs).astype(np.float64)


def overshooting(steps: int, beyond: int, rate: float) -> NDArray[np.float64]:
    """Return what the reports of geometric noise stand for, in steps from the middle of the interval.

    There are `beyond` of them past either end of the `steps`, and chances fall by e^-rate a step. A report
    between the ends stands for itself. Given that the noise is n or more, its excess over n is geometric
    whatever n is, with the mean a/(1 - a) = 1/(e^rate - 1) for a = e^-rate. So an end that stands for that
    much beyond itself keeps the mean of the letters at x exactly, for every x.
    """
    places = np.arange(-beyond, steps + beyond + 1, dtype=np.float64) - steps / 2.0
    excess = 1.0 / math.expm1(rate) if rate < 700.0 else 0.0
    places[0] -= excess
    places[-1] += excess
    return places


def shifted(
    channel: Shift, epsilon: float, interval: Interval, steps: int, places: NDArray[np.float64] | None
) -> Release:
    """Return the release of a number of an interval by a shift.

    Parameters
    ----------
    channel : Shift
        Of ``steps + 1`` inputs.
    epsilon : float
        Exact epsilon of its use.
    interval : (float, float)
        Where the number lies; it is dithered to ``steps + 1`` points.
    steps : int
        Steps between the points.
    places : ndarray of float64, shape (outputs,), or None
        Decoded value of every report, in steps from the middle of the interval; None where it is
        uninformative.

    Raises
    ------
    ValueError
        If the interval is so narrow for its distance from 0 that doubles blur the steps of the grid.

    Notes
    -----
    The second moment of a letter at a point sums the squares of the letters that the noise reaches from it,
    those beyond the ends being the ends' own.
    """
    low, high = interval
    step = (high - low) / steps
    if steps > 1 and math.ulp(max(abs(low), abs(high))) * _RESOLUTION > step:
        raise ValueError(
            f"interval: ({low}, {high}) is too narrow for its distance from 0; {steps} steps in it "
            f"cannot be distinguished in double precision"
        )
    points, grid = equidistant(interval, steps + 1), Grid(steps + 1, low=low, high=high)
    if places is None:
        return Release(channel, 0.0, channel.outputs, grid, points)
    squares = np.square(places * step)
    start = channel.offset - channel.reach  # the report that input 0 and the least noise would give
    reached = np.arange(start, start + channel.inputs + 2 * channel.reach)
    moments = np.correlate(squares[np.clip(reached, 0, channel.outputs - 1)], law_of(channel), "valid")
    letters = readonly(low + (high - low) / 2.0 + places * step)
    spread = Spread(points, readonly(moments))
    return Release(channel, epsilon, channel.outputs, grid, points, letters, spread)
