"""A release of numbers as fixed-point code words, each of whose bits is answered by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Bits, FixedPoint
from bitldp.letters.words import CodeLetters
from bitldp.privacy import ONE
from bitldp.release.base import Call, Release


@dataclass(frozen=True, eq=False)
class WordsRelease(Release):
    """Code words of all numbers of a record, and letters that spell a word's worth bit by bit.

    Its channel is `Bits` over all bits of a record, its codec a `FixedPoint`, its letters `CodeLetters`; its
    `epsilon` is that of a record.
    """

    whole = True

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        keys, output, out, threads, first_chunk = call
        reports: NDArray[Any] = self.channel.randomize(
            x, self.codec, keys[0], output, out, threads, first_chunk
        )
        return reports

    def probabilities(self) -> NDArray[np.float64]:
        """Return P(report 1 | bit 1) and P(report 1 | bit 0), shape (laws, bits, 2)."""
        return np.array([[(p / ONE, q / ONE) for p, q in law] for law in self.channel.thresholds()])

    def bit_rows(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the law of every bit of records, shape (records, bits of a record, 2)."""
        places = np.arange(self.codec.bits - 1, -1, -1)  # type: ignore[union-attr]
        ones = self.codec.encode(x).astype(np.int64)[..., None] >> places & 1  # type: ignore[union-attr]
        p, q = np.moveaxis(self.probabilities(), -1, 0)
        given: NDArray[np.intp] = self.letters.pattern  # type: ignore[union-attr]
        reported = np.where(ones == 1, p[given], q[given]).reshape(len(x), -1)
        return np.stack([1.0 - reported, reported], axis=-1)


def words(channel: Bits, codec: FixedPoint, pattern: NDArray[np.intp] | None = None) -> WordsRelease:
    """Return the release of records by a channel of all their bits.

    Parameters
    ----------
    channel : Bits
        Of as many features as a record has.
    codec : FixedPoint
        Of as many bits as the channel has for a feature.
    pattern : ndarray of int, shape (features,), optional
        The law of each feature; None where there is one law for all.
    """
    letters: Any = CodeLetters(channel.thresholds(), codec, channel.features, pattern)
    place: Any = codec
    return WordsRelease(channel, channel.epsilon[2], 1 << codec.bits, place, None, letters)
