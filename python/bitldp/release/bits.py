"""A release of a number bit by bit, each with a budget of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Matrix, pack
from bitldp.base.arrays import fill, zeros_if_refused
from bitldp.privacy import ONE
from bitldp.release.base import Call, Release

_MOST = 8  # bits: a grid of 256 points, whose step is far below the noise of independent bits


@lru_cache(maxsize=_MOST)
def _undisturbed(count: int) -> Matrix:
    return Matrix(np.eye(count))


@dataclass(frozen=True, eq=False)
class BitsRelease(Release):
    """A release of a point's code by independent bits."""

    @property
    def dither(self) -> Matrix:
        """The channel that places a number and leaves it there."""
        return _undisturbed(self.alphabet)

    streams: ClassVar[int] = 2
    straight: ClassVar[bool] = False

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        # The dither is a channel without noise; its codes never leave this function.
        keys, output, out, threads, first_chunk = call
        with zeros_if_refused(out):
            codes = self.dither.randomize(x, self.codec, None, keys[0], "codes", None, threads, first_chunk)
        flat = self.channel.randomize(codes.ravel(), None, keys[1], "codes", None, threads, first_chunk)
        reports: NDArray[Any] = flat.reshape(codes.shape)
        if output == "packed":
            reports = pack(reports, self.channel.bits)
        elif output == "values" and self.letters is not None:
            reports = self.letters.astype(np.asarray(x).dtype)[reports]
        return reports if out is None else fill(out, reports)

    def probabilities(self) -> NDArray[np.float64]:
        law: NDArray[np.float64] = np.ones((1, 1))
        for one, zero in self.channel.thresholds()[0]:
            bit = np.array([[ONE - zero, zero], [ONE - one, one]]) / ONE
            law = np.asarray(np.kron(law, bit), dtype=np.float64)
        return law
