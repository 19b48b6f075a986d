"""A release by one of two channels, as a public coin decides."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid
from bitldp.release.base import Call, Direct, Release


@dataclass(frozen=True, eq=False)
class CoinRelease(Release):
    """A release by the piecewise mechanism if the coin says so, else by Duchi's.

    The report tells which: codes below N are the piecewise one's cells, the last two are Duchi's points. The
    coin is a channel of two inputs, Duchi's points, and three answers: the piecewise mechanism decides (as
    likely for both inputs), low, high. The channel is the `Mixture` of both.
    """

    _: KW_ONLY
    piecewise: Release
    ends: Grid

    streams: ClassVar[int] = 2

    @property
    def channels(self) -> tuple[Any, ...]:
        return (*self.piecewise.channels, self.channel.matrix)

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        keys, output, out, threads, first_chunk = call
        grids = (self.piecewise.codec, self.ends)
        return self.channel.randomize(
            x, grids, self.letters, (keys[0], keys[1]), output, out, threads, first_chunk
        )

    def direct(self, columns: int) -> Direct | None:
        grids = (self.piecewise.codec, self.ends)
        rest = (grids, None, (None, None), "codes", None, None, 0)
        return Direct.of(self.channel.randomize, rest, "codes", columns)

    def probabilities(self) -> NDArray[np.float64]:
        law = self.channel.matrix.probabilities()
        points = self.piecewise.probabilities()
        shares = np.linspace(0.0, 1.0, len(points))[:, None]  # chance of the dither to the upper end
        dithered = (1.0 - shares) * law[0, 1:] + shares * law[1, 1:]
        return np.hstack([law[0, 0] * points, dithered])
