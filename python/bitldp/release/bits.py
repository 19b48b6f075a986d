"""A release of a number bit by bit, each with a budget of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Bits, Grid, Matrix, pack
from bitldp.release.base import Scalar

_ONE = 1 << 64
_MOST = 8  # bits: a grid of 256 points, whose step is far below the noise of independent bits


@dataclass(frozen=True, eq=False)
class BitsScalar(Scalar):
    """A release of a point's code by independent bits."""

    channel: Bits
    grid: Grid
    dither: Matrix

    streams = 2

    @property
    def alphabet(self) -> int:
        return len(self.points)

    def randomize(
        self,
        x: ArrayLike,
        keys: Sequence[bytes | None],
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        # The dither is a channel without noise; its codes never leave this function.
        codes = self.dither.randomize(x, self.grid, None, keys[0], "codes", None, threads, first_chunk)
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
            bit = np.array([[_ONE - zero, zero], [_ONE - one, one]]) / _ONE
            law = np.asarray(np.kron(law, bit), dtype=np.float64)
        return law


@lru_cache(maxsize=_MOST)
def _undisturbed(count: int) -> Matrix:
    return Matrix(np.eye(count))


def fill(out: NDArray[Any], reports: NDArray[Any]) -> NDArray[Any]:
    """Copy reports into an array that the caller gave, once it is checked."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out: must be an array, not {type(out).__name__}")
    if out.shape != reports.shape or out.dtype != reports.dtype:
        raise ValueError(
            f"out: must have shape {reports.shape} and dtype {reports.dtype}, got {out.shape} and {out.dtype}"
        )
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError("out: must be C-contiguous and writable")
    np.copyto(out, reports)
    return out
