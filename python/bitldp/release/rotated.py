"""Releases of vectors of an l2 ball: lifted and rotated in public, then one signed coordinate selected."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import KeyedRandomness, Rotation, Select, keystream, pack
from bitldp.base import checks
from bitldp.channels.ranks import top_weights
from bitldp.letters.polytope import tops
from bitldp.privacy import calibrated
from bitldp.release.base import Call, Release, Source

__all__ = ["MOST_ROTATIONS", "RotatedRelease", "RotatedReports", "signed_top"]

MOST_ROTATIONS = 1 << 32
"""The most rotations of one seed: their numbers have 32 bits."""

_WORD = 4  # bytes of a rotation's number
_BLOCK = 1 << 22  # rotated coordinates at once, with keyed randomness


class RotatedReports(NamedTuple):
    """Reports of n vectors: one signed coordinate each, after a public rotation.

    Attributes
    ----------
    rotations : ndarray of uint32, shape (n,) or (n, reports)
        The number of each rotation, chosen without looking at the data.
    codes : ndarray of unsigned int, the same shape
        2 j + 1 for coordinate j of the rotated vector, 2 j for its negative.
    """

    rotations: NDArray[Any]
    codes: NDArray[Any]


@lru_cache(maxsize=64)
def signed_top(dimensions: int, k: int, epsilon: float) -> Select:
    """Return the channel by which each of the k largest of +-y_j is e^eps times as likely as each other."""
    ranks = 2 * dimensions

    def build(target: float) -> Select:
        high, low = top_weights(ranks, k, target)
        return Select(np.array([ranks - k, k], np.uint32), np.array([low, high], np.uint64), signed=True)

    return calibrated(build, epsilon, lambda channel: channel.epsilon)


@dataclass(frozen=True, eq=False)
class RotatedRelease(Release):
    """A release of vectors by a public rotation and a selection from its signed coordinates.

    Attributes
    ----------
    rotation : Rotation
        The codec: lifts and rotates.
    count : int
        Reports of a vector, each with a rotation and a key of its own.
    rotations : int
        How many rotations there are; numbers are taken modulo it.
    """

    _: KW_ONLY
    rotation: Rotation
    count: int = 1
    rotations: int = MOST_ROTATIONS

    @property
    def rotation_bits(self) -> int:
        """Bits of a rotation's number, at least 1."""
        return max(1, (self.rotations - 1).bit_length())

    @property
    def runs(self) -> tuple[int, int, int]:
        """(k, high, low): how many ranks are likely, their weight, and that of each other one."""
        counts, weights = self.channel.runs()
        return int(counts[1]), int(weights[1]), int(weights[0])

    @property
    def moments(self) -> tuple[float, float]:
        """(m, t): the means of a reported coordinate and of its square, for a direction that is uniform.

        With the k likely ones at weight w1, the others at w0, and the sums S and T of `tops` over k,

            m = (w1 - w0) S/(k w1 + (2 D - k) w0),    t = ((w1 - w0) T + 2 w0)/(k w1 + (2 D - k) w0).
        """
        k, high, low = self.runs
        sums = tops(self.channel.dimensions, k)
        total = self.channel.total
        return (high - low) * sums.sum / total, ((high - low) * sums.squares + 2 * low) / total

    def drawn(self, keys: Sequence[Source], records: int, first_chunk: int) -> NDArray[np.uint32]:
        """Return rotations for records, shape (records, count), drawn without looking at them.

        They are numbers of the key behind those of the channel, which shares none with it; chunk c of the
        channel's records takes those of the nonce c, so that batches of whole chunks concatenate.
        """
        key = keys[self.count] if len(keys) > self.count else None
        if isinstance(key, KeyedRandomness):
            return self._numbers((key.words(self.count, 0) >> np.uint64(32)).reshape(records, self.count))
        key = os.urandom(32) if key is None else key
        chunk, row = self.channel.chunk, _WORD * self.count
        stream = b"".join(
            keystream(key, first_chunk + index, row * min(chunk, records - start))
            for index, start in enumerate(range(0, records, chunk))
        )
        return self._numbers(np.frombuffer(stream, "<u4").reshape(records, self.count))

    def _numbers(self, words: NDArray[Any]) -> NDArray[np.uint32]:
        """Return words of 32 random bits as numbers of rotations."""
        if self.rotations == MOST_ROTATIONS:
            return words.astype(np.uint32, copy=False)
        return (words.astype(np.uint64) * np.uint64(self.rotations) >> np.uint64(32)).astype(np.uint32)

    def numbered(self, records: int, first: int) -> NDArray[np.uint32]:
        """Return the rotations first, first + 1, ... of records, shape (records, count)."""
        steps = np.arange(records * self.count, dtype=np.uint64)
        numbers = (steps + np.uint64(first % self.rotations)) % np.uint64(self.rotations)
        return numbers.astype(np.uint32).reshape(records, self.count)

    def select(self, x: NDArray[Any], rotations: NDArray[np.uint32], call: Call) -> NDArray[Any]:
        """Return the codes of vectors of shape (n, features) under their rotations, shape (n, count)."""
        keys = call.keys if len(call.keys) >= self.count else [None] * self.count
        columns = [
            self._column(x, np.ascontiguousarray(rotations[:, index]), keys[index], call)
            for index in range(self.count)
        ]
        return columns[0][:, None] if self.count == 1 else np.stack(columns, axis=1)

    def _column(self, x: NDArray[Any], rotations: NDArray[Any], key: Source, call: Call) -> NDArray[Any]:
        """Return one code of each vector."""
        if isinstance(key, KeyedRandomness):  # which is of the record: its vector is rotated beforehand
            step = max(1, _BLOCK // self.rotation.dimensions)
            starts = range(0, max(1, len(x)), step)
            return np.concatenate([self._keyed(x, rotations, key, call, slice(i, i + step)) for i in starts])
        return self.channel.randomize_rotated(
            x, self.rotation, rotations, key, "codes", None, call.threads, call.first_chunk
        )

    def _keyed(
        self, x: NDArray[Any], rotations: NDArray[Any], randomness: KeyedRandomness, call: Call, part: slice
    ) -> NDArray[Any]:
        rotated = self.rotation.rotate(x[part], rotations[part], call.threads)
        own = randomness.taken(np.arange(len(x), dtype=np.int64)[part], 0)
        return self.channel.randomize(rotated, own, "codes", None, call.threads, 0)

    def packed(self, reports: RotatedReports) -> RotatedReports:
        """Return both parts of reports packed."""
        rotations = pack(np.ascontiguousarray(reports.rotations), self.rotation_bits)
        return RotatedReports(rotations, pack(np.ascontiguousarray(reports.codes), self.bits))

    def flat(self, reports: Any) -> RotatedReports:
        """Return checked reports as uint32, shape (n, count) each."""
        if not isinstance(reports, (tuple, list)) or len(reports) != 2:
            raise TypeError("reports: must be a pair (rotations, codes), as randomize gives it")
        rotations = checks.codes("reports.rotations", reports[0], self.rotations)
        return RotatedReports(*(self._table(part) for part in (rotations, self.coded(reports[1], rotations))))

    def coded(self, codes: Any, rotations: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return codes, checked; they have the shape of the rotations, if any, or one of those allowed."""
        result = checks.codes("reports.codes", codes, self.alphabet)
        most, last = (1, ()) if self.count == 1 else (2, (self.count,))
        if result.ndim not in (most - 1, most) or result.shape[len(result.shape) - len(last) :] != last:
            allowed = "(n,) or ()" if self.count == 1 else f"(n, {self.count}) or ({self.count},)"
            raise ValueError(f"reports.codes: shape must be {allowed}, got {result.shape}")
        if rotations is not None and rotations.shape != result.shape:
            raise ValueError(f"reports.rotations: shape must be {result.shape}, got {rotations.shape}")
        return result

    def _table(self, part: NDArray[Any]) -> NDArray[np.uint32]:
        return np.ascontiguousarray(part.reshape(-1, self.count), dtype=np.uint32)
