"""A release by one of two channels, as a public coin decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Mixture
from bitldp.release.base import Scalar
from bitldp.release.window import WindowScalar


@dataclass(frozen=True, eq=False)
class CoinScalar(Scalar):
    """A release by the piecewise mechanism if the coin says so, else by Duchi's.

    The report tells which: codes below N are the piecewise one's cells, the last two are Duchi's points. The
    coin is a channel of two inputs, Duchi's points, and three answers: the piecewise mechanism decides (as
    likely for both inputs), low, high.
    """

    piecewise: WindowScalar
    mixture: Mixture
    grid: Grid

    streams = 2

    @property
    def alphabet(self) -> int:
        return self.mixture.outputs

    def randomize(
        self,
        x: ArrayLike,
        keys: Sequence[bytes | None],
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        grids = (self.piecewise.grid, self.grid)
        streams = (keys[0], keys[1])
        return self.mixture.randomize(x, grids, self.letters, streams, output, out, threads, first_chunk)

    def probabilities(self) -> NDArray[np.float64]:
        law = self.mixture.matrix.probabilities()
        shares = np.linspace(0.0, 1.0, len(self.points))[:, None]  # chance of the dither to the upper end
        dithered = (1.0 - shares) * law[0, 1:] + shares * law[1, 1:]
        return np.hstack([law[0, 0] * self.piecewise.probabilities(), dithered])
