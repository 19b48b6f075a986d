"""How one number is released by noise: dither to a grid, integer noise, a clamp, and letters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Shift
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.letters.spread import Spread
from bitldp.release.base import Interval, Scalar, equidistant

_ONE = 1 << 64
_RESOLUTION = 1 << 16  # a grid's ends may be off by this part of a step, as for single precision in the core


@dataclass(frozen=True, eq=False)
class ShiftScalar(Scalar):
    """A release by a shift. Where it says nothing, it is given zeros, once it has checked the input."""

    channel: Shift
    grid: Grid

    @property
    def mute(self) -> bool:
        return self.letters is None

    @property
    def alphabet(self) -> int:
        return self.channel.outputs

    def randomize(
        self,
        x: ArrayLike,
        keys: Sequence[bytes | None],
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        checks.form(output)
        channel, letters = self.channel, self.letters
        if not self.mute:
            return channel.randomize(x, self.grid, letters, keys[0], output, out, threads, first_chunk)
        channel.randomize(x, self.grid, None, None, "codes", None, threads, first_chunk)
        zeros = np.zeros(np.shape(x), np.uint8)
        return channel.randomize(zeros, None, None, keys[0], output, out, threads, first_chunk)

    def probabilities(self) -> NDArray[np.float64]:
        table = self.channel.probabilities()
        return np.broadcast_to(table[0], table.shape).copy() if self.mute else table


def law_of(channel: Shift) -> NDArray[np.float64]:
    """Return the probabilities of the noise -K..K."""
    return np.array(channel.weights(), dtype=np.float64) / _ONE


def shifted(
    channel: Shift, epsilon: float, interval: Interval, steps: int, places: NDArray[np.float64] | None
) -> ShiftScalar:
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
        What every report stands for, in steps from the middle of the interval; None where it says nothing.

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
            f"interval: ({low}, {high}) is too narrow for its distance from 0; {steps} steps in it cannot "
            "be told apart in double precision"
        )
    points, grid = equidistant(interval, steps + 1), Grid(steps + 1, low=low, high=high)
    if places is None:
        return ShiftScalar(epsilon, points, None, None, (channel,), channel, grid)
    squares = np.square(places * step)
    start = channel.offset - channel.reach  # the report that input 0 and the least noise would give
    reached = np.arange(start, start + channel.inputs + 2 * channel.reach)
    moments = np.correlate(squares[np.clip(reached, 0, channel.outputs - 1)], law_of(channel), "valid")
    letters = readonly(low + (high - low) / 2.0 + places * step)
    spread = Spread(points, readonly(moments))
    return ShiftScalar(epsilon, points, letters, spread, (channel,), channel, grid)
