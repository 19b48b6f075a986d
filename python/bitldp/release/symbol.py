"""A release of a whole record as one symbol of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Window
from bitldp.base.arrays import readonly
from bitldp.letters.spread import Spread
from bitldp.release.base import Interval, Scalar, equidistant
from bitldp.release.window import Law, window

_ONE = 1 << 64
_DITHER = Window(2, 1, 1.0)  # never leaves its cell: the dither alone


@dataclass(frozen=True, eq=False)
class _SymbolScalar(Scalar):
    """A release of the signs of k numbers as one symbol, the first sign its highest bit."""

    law: Law
    grid: Grid
    k: int

    streams = 2
    whole = True

    @property
    def alphabet(self) -> int:
        return 1 << self.k

    def randomize(
        self,
        x: ArrayLike,
        keys: Sequence[bytes | None],
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        signs = _DITHER.randomize(x, self.grid, None, keys[0], "codes", None, threads, first_chunk)
        symbols = signs.astype(np.int64) @ (1 << np.arange(self.k - 1, -1, -1))
        return self.law.randomize(symbols, None, None, keys[1], output, out, threads, first_chunk)

    def probabilities(self) -> NDArray[np.float64]:
        right = self.law.channel.high / _ONE
        right += (1.0 - right) * (self.alphabet // 2 - 1) / (self.alphabet - 1)
        right = 0.5 if self.law.mute else right
        return np.array([[right, 1.0 - right], [1.0 - right, right]])


def _symbols(k: int, epsilon: float, interval: Interval) -> _SymbolScalar:
    """Return the release of k signs.

    A symbol is reported as itself with p = T/2^64, and as each of the others with q. Half of the symbols
    have a given sign, so the sign's mean is p - q times itself: the letters are middle +- h/(p - q),
    exactly h (2^k - 1) 2^64/(2^k T - 2^64).
    """
    law = window(1 << k, 1, epsilon)
    low, high = interval
    points, grid = equidistant(interval, 2), Grid(2, low=low, high=high)
    excess = (law.channel.high << k) - _ONE
    if law.mute or excess <= 0:
        return _SymbolScalar(law.epsilon, points, None, None, (law.channel,), law, grid, k)
    half = (high - low) / 2.0 * (((1 << k) - 1) * _ONE / excess)
    letters = low + (high - low) / 2.0 + np.array([-half, half])
    spread = Spread(points, readonly(np.array([half * half, half * half])))
    return _SymbolScalar(law.epsilon, points, readonly(letters), spread, (law.channel,), law, grid, k)
