"""A release of a whole record as one symbol of a table."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Window
from bitldp.base.arrays import readonly
from bitldp.letters.spread import Spread
from bitldp.privacy import ONE
from bitldp.release.base import Call, Interval, Release, equidistant
from bitldp.release.window import window

_DITHER = Window(2, 1, 1.0)  # never leaves its cell: the dither alone


@dataclass(frozen=True, eq=False)
class SymbolRelease(Release):
    """A release of the signs of k numbers as one symbol, the first sign its highest bit."""

    _: KW_ONLY
    k: int

    streams: ClassVar[int] = 2
    straight: ClassVar[bool] = False
    whole: ClassVar[bool] = True

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        keys, output, out, threads, first_chunk = call
        signs = _DITHER.randomize(x, self.codec, None, keys[0], "codes", None, threads, first_chunk)
        symbols = signs.astype(np.int64) @ (1 << np.arange(self.k - 1, -1, -1))
        reports: NDArray[Any] = self.channel.randomize(
            symbols, None, None, keys[1], output, out, threads, first_chunk
        )
        return reports

    def probabilities(self) -> NDArray[np.float64]:
        right = self.channel.high / ONE
        right += (1.0 - right) * (self.alphabet // 2 - 1) / (self.alphabet - 1)
        right = 0.5 if self.epsilon == 0.0 else right
        return np.array([[right, 1.0 - right], [1.0 - right, right]])


def symbols(k: int, epsilon: float, interval: Interval) -> SymbolRelease:
    """Return the release of k signs.

    A symbol is reported as itself with p = T/2^64, and as each of the others with q. Half of the symbols
    have a given sign, so the sign's mean is p - q times itself: the letters are middle +- h/(p - q),
    exactly h (2^k - 1) 2^64/(2^k T - 2^64).
    """
    law = window(1 << k, 1, epsilon)
    low, high = interval
    points, grid = equidistant(interval, 2), Grid(2, low=low, high=high)
    excess = (law.channel.high << k) - ONE
    if law.epsilon == 0.0 or excess <= 0:
        return SymbolRelease(law.channel, 0.0, 1 << k, grid, points, k=k)
    half = (high - low) / 2.0 * (((1 << k) - 1) * ONE / excess)
    letters = low + (high - low) / 2.0 + np.array([-half, half])
    spread = Spread(points, readonly(np.array([half * half, half * half])))
    return SymbolRelease(law.channel, law.epsilon, 1 << k, grid, points, readonly(letters), spread, k=k)
