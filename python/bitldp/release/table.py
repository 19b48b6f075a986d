"""Releases by a table: one row of chances for each point of the grid."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Grid, Matrix
from bitldp.base.arrays import readonly
from bitldp.letters.spread import Spread
from bitldp.privacy import ONE
from bitldp.release.base import Interval, Release, equidistant


def table(channel: Matrix) -> Release:
    """Return the release of a code by a table."""
    return Release(channel, channel.epsilon, channel.outputs)


def placed(channel: Matrix, letters: NDArray[np.float64], moments: Spread, interval: Interval) -> Release:
    """Return the release of a number of `interval` by a channel whose letters are for [0, 1]."""
    low, high = interval
    points = equidistant(interval, channel.inputs)
    return Release(
        channel,
        channel.epsilon,
        channel.outputs,
        Grid(channel.inputs, low=low, high=high),
        points,
        readonly(low * (1.0 - letters) + high * letters),
        Spread(points, readonly(moments.moments * (high - low) ** 2)),
    )


@lru_cache(maxsize=64)
def uninformative(inputs: int, outputs: int, interval: Interval) -> Release:
    """Return the uninformative release: all of its reports are as likely, whatever the number."""
    channel = Matrix.from_weights([[ONE // outputs] * outputs] * inputs)
    grid = Grid(inputs, low=interval[0], high=interval[1])
    return Release(channel, 0.0, outputs, grid, equidistant(interval, inputs))
