"""Releases of vectors of the l2 ball: one of many random directions that everybody knows is selected."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Coins, keystream
from bitldp.letters.directions import nearest
from bitldp.release.base import Call, Source
from bitldp.release.rotated import RotatedRelease

__all__ = ["DirectedRelease", "Directions"]

_WORD = 8  # bytes of a random number
_BLOCK = 1 << 20  # coordinates of directions, or projections, at once


class Directions:
    """Codebooks of independent uniform directions of the sphere, each drawn from a number and a public key.

    Codebook i is drawn from the keystream of nonce i, direction j from its words j w to (j + 1) w, with w the
    least even number from the features on. Normal numbers over their norm; Box and Muller, "A note on the
    generation of random normal deviates", 1958.

    Parameters
    ----------
    features : int
        Coordinates of a direction.
    count : int
        Directions of a codebook.
    key : bytes
        32 of them, public.
    """

    def __init__(self, features: int, count: int, key: bytes) -> None:
        self.features = features
        self.dimensions = count  # what is ranked: as many projections
        self._key = key
        self._width = features + features % 2

    def _units(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return directions of random numbers, shape (..., width) to (..., features)."""
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        half = self._width // 2
        radius, angle = np.sqrt(-2.0 * np.log(uniform[..., :half])), 2.0 * np.pi * uniform[..., half:]
        normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
        normal = normal[..., : self.features]
        found: NDArray[np.float64] = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
        return found

    def rotate(
        self, x: NDArray[Any], numbers: NDArray[np.uint32], threads: int | None = None
    ) -> NDArray[np.float32]:
        """Return the projections of vectors on the directions of codebooks, shape (n, count)."""
        row = self.dimensions * self._width
        found = np.empty((len(x), self.dimensions), np.float32)
        step = max(1, _BLOCK // row)
        for start in range(0, len(x), step):
            part = slice(start, start + step)
            stream = b"".join(keystream(self._key, int(each), _WORD * row) for each in numbers[part])
            words = np.frombuffer(stream, "<u8").reshape(-1, self.dimensions, self._width)
            # not a matrix product, whose rounding may depend on how many vectors there are
            found[part] = (self._units(words) * x[part, None, :]).sum(axis=2)
        return found

    def letters(
        self,
        numbers: NDArray[np.uint32],
        codes: NDArray[np.uint32],
        scale: float,
        threads: int | None = None,
    ) -> NDArray[np.float64]:
        """Return the directions that reports are of, times a length and their sign, shape (n, features)."""
        places = codes >> 1
        words = np.empty((len(codes), self._width), np.uint64)
        for report, (number, place) in enumerate(zip(numbers.tolist(), places.tolist(), strict=True)):
            end = (place + 1) * self._width
            words[report] = np.frombuffer(keystream(self._key, number, _WORD * end), "<u8")[-self._width :]
        signs = np.where(codes & 1, scale, -scale)
        found: NDArray[np.float64] = self._units(words) * signs[:, None]
        return found

    def sums(
        self,
        numbers: NDArray[np.uint32],
        codes: NDArray[np.uint32],
        scale: float,
        threads: int | None = None,
    ) -> list[NDArray[np.float64]]:
        """Return the sums of the letters of reports and of their squares, shape (features,) each."""
        total, squares = np.zeros(self.features), np.zeros(self.features)
        step = max(1, _BLOCK // self._width)
        for start in range(0, len(codes), step):
            part = slice(start, start + step)
            letters = self.letters(numbers[part], codes[part], scale)
            total += letters.sum(axis=0)
            squares += np.square(letters).sum(axis=0)
        return [total, squares]


@dataclass(frozen=True, eq=False)
class DirectedRelease(RotatedRelease):
    """A release of vectors by a selection from their signed projections on the directions of a codebook.

    `rotation` is the `Directions`; a report is one number of a codebook, and one code.
    """

    radius: float = 1.0

    @property
    def moments(self) -> tuple[float, float]:
        """(m, t): the means of a reported projection and of its square, for unit vectors; see `nearest`."""
        k, high, low = self.runs
        features, count = self.rotation.features, self.rotation.dimensions
        sums = nearest(features, count, k)
        total = self.channel.total
        squares = (high - low) * sums.squares + 2.0 * low * count / features
        return (high - low) * sums.sum / total, squares / total

    def select(self, x: NDArray[Any], rotations: NDArray[np.uint32], call: Call) -> NDArray[Any]:
        """Return the codes of vectors of the ball under their codebooks, shape (n, 1)."""
        keys = call.keys if len(call.keys) > 2 else [None] * 3
        unit = self._units(x, keys[2], call.first_chunk)
        return self._column(unit, np.ascontiguousarray(rotations[:, 0]), keys[0], call)[:, None]

    def _units(self, x: NDArray[Any], key: Source, first_chunk: int) -> NDArray[np.float64]:
        """Return unit vectors whose mean is x over the radius: of its direction, or of the opposite one.

        Zero has the direction of the first coordinate. No privacy rests on the draw: the law of a report is
        as far apart for any two unit vectors.
        """
        top = np.maximum(np.abs(x).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        shares = x / top
        lengths = np.sqrt(np.square(shares).sum(axis=1, keepdims=True))
        nothing = lengths[:, 0] < 0.5  # of others the largest share is 1
        unit = shares / np.where(nothing[:, None], 1.0, lengths)
        unit[nothing] = np.eye(1, x.shape[1])[0]
        norm = np.where(nothing, 0.0, lengths[:, 0] * (top[:, 0] / self.radius))
        flipped = self._uniform(key, len(x), first_chunk) >= (1.0 + norm) / 2.0
        found: NDArray[np.float64] = np.where(flipped[:, None], -unit, unit)
        return found

    def _uniform(self, key: Source, records: int, first_chunk: int) -> NDArray[np.float64]:
        """Return numbers of [0, 1) for records; chunk c of the channel's records takes those of nonce c."""
        if isinstance(key, Coins):
            words = key.words(1, 0)
        else:
            key, chunk = os.urandom(32) if key is None else key, self.channel.chunk
            stream = b"".join(
                keystream(key, first_chunk + place, _WORD * min(chunk, records - start))
                for place, start in enumerate(range(0, records, chunk))
            )
            words = np.frombuffer(stream, "<u8")
        found: NDArray[np.float64] = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return found

    def _column(self, x: NDArray[Any], rotations: NDArray[Any], key: Source, call: Call) -> NDArray[Any]:
        if isinstance(key, Coins):
            return super()._column(x, rotations, key, call)
        chunk = self.channel.chunk
        key = os.urandom(32) if key is None else key
        step = chunk * max(1, _BLOCK // (chunk * self.rotation.dimensions))
        found = [
            self.channel.randomize(
                self.rotation.rotate(x[start : start + step], rotations[start : start + step]),
                key,
                "codes",
                None,
                call.threads,
                call.first_chunk + start // chunk,
            )
            for start in range(0, max(1, len(x)), step)
        ]
        return np.concatenate(found)
