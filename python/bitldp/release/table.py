"""Releases by a table: one row of chances for each point of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Matrix
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.design.result import ONE
from bitldp.letters.spread import Spread
from bitldp.release.base import Interval, Scalar, equidistant


@dataclass(frozen=True, eq=False)
class TableLaw:
    """A table as the release calls it."""

    channel: Matrix

    @property
    def epsilon(self) -> float:
        return self.channel.epsilon

    def randomize(
        self,
        x: ArrayLike,
        grid: Grid | None,
        letters: NDArray[np.float64] | None,
        key: bytes | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        threads, first_chunk = checks.stream(threads, first_chunk)
        return self.channel.randomize(x, grid, letters, key, output, out, threads, first_chunk)


def placed(
    channel: Matrix, letters: NDArray[np.float64], moments: Spread, interval: Interval
) -> MatrixScalar:
    """Return the release of a number of `interval` by a channel whose letters are for [0, 1]."""
    low, high = interval
    points = equidistant(interval, channel.inputs)
    return MatrixScalar(
        channel.epsilon,
        points,
        readonly(low * (1.0 - letters) + high * letters),
        Spread(points, readonly(moments.moments * (high - low) ** 2)),
        (channel,),
        channel,
        Grid(channel.inputs, low=low, high=high),
    )


@lru_cache(maxsize=64)
def silent(inputs: int, outputs: int, interval: Interval) -> MatrixScalar:
    """Return the release that says nothing: all of 2**b reports are alike."""
    channel = Matrix.from_weights([[ONE // outputs] * outputs] * inputs)
    grid = Grid(inputs, low=interval[0], high=interval[1])
    return MatrixScalar(0.0, equidistant(interval, inputs), None, None, (channel,), channel, grid)


@dataclass(frozen=True, eq=False)
class MatrixScalar(Scalar):
    """A release by a table, one row for each point of the grid."""

    channel: Matrix
    grid: Grid

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
        return self.channel.randomize(x, self.grid, self.letters, keys[0], output, out, threads, first_chunk)

    def probabilities(self) -> NDArray[np.float64]:
        return self.channel.probabilities()
