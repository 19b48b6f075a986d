"""A release of numbers as fixed-point code words, each of whose bits is answered by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Bits, FixedPoint
from bitldp.privacy import ONE
from bitldp.release.base import Call, Release

_TRIED_BITS = 21  # the longest words that are tried one by one
_TABLE_BITS = 16  # the largest magnitude that one table covers; longer ones are split in two


class CodeLetters:
    """Letters of the reports of a `Bits` channel behind a `FixedPoint` codec.

    Parameters
    ----------
    thresholds : list of list of tuple of int
        (T_p, T_q) over 2**64, by law and position, as the channel gives them.
    codec : FixedPoint
        Gives bits, weights and sign convention.
    features : int
        Features of a record.
    pattern : ndarray of int, shape (features,), or None
        Law of each feature; None where there is one law for all.
    """

    def __init__(
        self,
        thresholds: list[list[tuple[int, int]]],
        codec: FixedPoint,
        features: int,
        pattern: NDArray[np.intp] | None,
    ) -> None:
        self.bits = codec.bits
        self._features = features
        self._pattern = pattern
        self.weights = codec.step * 2.0 ** np.arange(codec.bits - 2, -1, -1)
        self._positive = 1.0 if codec.sign == "bitrand" else -1.0  # sign of a word whose sign bit is 1
        self._thresholds = thresholds

    @property
    def pattern(self) -> NDArray[np.intp]:
        """Law of each feature, shape (features,)."""
        return np.zeros(self._features, np.intp) if self._pattern is None else self._pattern

    @property
    def law_counts(self) -> NDArray[np.intp]:
        """Number of features that have each law, shape (laws,)."""
        if self._pattern is None:
            return np.array([self._features], np.intp)
        return np.bincount(self._pattern, minlength=len(self._thresholds))

    @property
    def uninformative(self) -> int | None:
        """Return the first position whose reports are independent of the bit (p == q), if any."""
        laws = [self._thresholds[law] for law in np.flatnonzero(self.law_counts)]
        places = [index for law in laws for index, (one, zero) in enumerate(law) if one == zero]
        return min(places, default=None)

    @cached_property
    def bit_letters(self) -> NDArray[np.float64]:
        """Letters of a reported 0 and of a reported 1, shape (laws, bits, 2).

        Quotients of integers, so correctly rounded however small p - q is.
        """
        return np.array(
            [
                [(-zero / (one - zero), (ONE - zero) / (one - zero)) for one, zero in law]
                for law in self._thresholds
            ]
        )

    @cached_property
    def bit_variances(self) -> NDArray[np.float64]:
        """Variance of a bit's letter on a true 0 and on a true 1, shape (laws, bits, 2)."""
        return np.array(
            [
                [
                    (zero * (ONE - zero) / (one - zero) ** 2, one * (ONE - one) / (one - zero) ** 2)
                    for one, zero in law
                ]
                for law in self._thresholds
            ]
        )

    @cached_property
    def sign_letters(self) -> NDArray[np.float64]:
        """Letters of a reported sign bit, shape (laws, 2)."""
        return self._positive * (2.0 * self.bit_letters[:, 0, :] - 1.0)

    def _magnitudes(self, first: int, last: int) -> NDArray[np.float64]:
        """Sum of weight times letter over positions [first, last), by their bits as one integer."""
        table = np.zeros((len(self._thresholds), 1))
        for index in range(first, last):
            step = self.weights[index - 1] * self.bit_letters[:, index, :]
            table = (table[:, :, None] + step[:, None, :]).reshape(len(table), -1)
        return table

    @cached_property
    def _tables(self) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        low = self._magnitudes(max(1, self.bits - _TABLE_BITS), self.bits)
        return low, self._magnitudes(1, self.bits - _TABLE_BITS) if self.bits - 1 > _TABLE_BITS else None

    def unbias(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the unbiased letters of codes, whose last axis is the features."""
        law: Any = 0 if self._pattern is None else self._pattern
        low, high = self._tables
        words = codes.astype(np.int64, copy=False)
        magnitude = low[law, words & (low.shape[1] - 1)]
        if high is not None:
            magnitude = magnitude + high[law, words >> _TABLE_BITS & (high.shape[1] - 1)]
        return self.sign_letters[law, words >> (self.bits - 1)] * magnitude

    def variance(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the variance of a report's letter for each true code; the last axis is the features.

        ``Var(S M) = E[S^2] E[M^2] - (s m)^2`` for the independent letters S of the sign and M of the
        magnitude.
        """
        return self._of_law(0 if self._pattern is None else self._pattern, codes)

    def every_variance(self, codes: NDArray[Any]) -> list[NDArray[np.float64]]:
        """Return the variance for each of the codes, under every law that some feature has."""
        return [self._of_law(law, codes) for law in np.flatnonzero(self.law_counts)]

    @property
    def reach(self) -> float:
        """Largest letter of a word, by its size."""
        magnitudes = np.abs(self.bit_letters[:, 1:]).max(axis=2) @ self.weights
        return float((np.abs(self.sign_letters).max(axis=1) * magnitudes).max())

    def _of_law(self, law: Any, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the variance for each true code; `law` is one, or one for each place of the last axis."""
        words = codes.astype(np.int64, copy=False)
        spread = np.zeros(words.shape)
        for index in range(1, self.bits):
            bit = words >> (self.bits - 1 - index) & 1
            spread += self.weights[index - 1] ** 2 * self.bit_variances[law, index, bit]
        magnitude = (words & ((1 << (self.bits - 1)) - 1)) * self.weights[-1]
        sign_square = 1.0 + 4.0 * self.bit_variances[law, 0, words >> (self.bits - 1)]
        return sign_square * (magnitude**2 + spread) - magnitude**2

    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and the largest letter of any word, two arrays of shape (features,)."""
        steps = self.weights[:, None] * self.bit_letters[:, 1:, :]
        least, most = steps.min(axis=-1).sum(axis=-1), steps.max(axis=-1).sum(axis=-1)
        corners = self.sign_letters[:, :, None] * np.stack([least, most], axis=-1)[:, None, :]
        flat = corners.reshape(len(corners), -1)[self.pattern]
        return flat.min(axis=1), flat.max(axis=1)

    def decode_bias(self) -> float:
        """Return how far the mean of a reported word's value may be from the true word's, over all words.

        Sign and magnitude are independent, so the difference is linear in the bits of the magnitude.
        """
        worst = 0.0
        for law in np.flatnonzero(self.law_counts):
            p, q = np.array(self._thresholds[law], dtype=np.float64).T / ONE
            for bit, chance in ((0, q[0]), (1, p[0])):
                sign, mean = self._positive * (2 * bit - 1), self._positive * (2.0 * chance - 1.0)
                each = self.weights * (mean * (p[1:] - q[1:]) - sign)
                base = mean * float(self.weights @ q[1:])
                ends = base + each[each > 0.0].sum(), base + each[each < 0.0].sum()
                worst = max(worst, *map(abs, ends))
        return float(worst)

    def worst_variances(self) -> NDArray[np.float64]:
        """Return the largest variance over all code words, for each law in use, shape (laws in use,).

        The second moment of the sign's letter is 1 or more, so the variance rises with every bit of the
        magnitude whose letter spreads no less on 1 than on 0: then all ones is the worst. Otherwise all words
        are tried.
        """
        worst = []
        for law in np.flatnonzero(self.law_counts):
            variances = self.bit_variances[law]
            if (variances[1:, 1] >= variances[1:, 0]).all():
                magnitudes = np.array([(1 << (self.bits - 1)) - 1])
            elif self.bits <= _TRIED_BITS:
                magnitudes = np.arange(1 << (self.bits - 1))
            else:
                reason = f"the worst of 2**{self.bits} code words is sought up to {_TRIED_BITS} bits only"
                raise ValueError(f"bits: {reason}")
            signs = np.array([0, 1])[:, None] << (self.bits - 1)
            worst.append(float(self._of_law(law, signs | magnitudes).max()))
        return np.array(worst)

    def mean_variances(self) -> NDArray[np.float64]:
        """Return the mean variance over uniform code words, by law, shape (laws,)."""
        signs = 1.0 + 4.0 * self.bit_variances[:, 0].mean(axis=-1)
        spread = self.bit_variances[:, 1:].mean(axis=-1) @ self.weights**2
        square = np.sum(self.weights) ** 2 / 4.0 + np.sum(self.weights**2) / 4.0
        return signs * (square + spread) - square


@dataclass(frozen=True, eq=False)
class WordsRelease(Release):
    """Code words of all numbers of a record, and letters that add up to a word's value bit by bit.

    Its channel is `Bits` over all bits of a record, its codec a `FixedPoint`, its letters `CodeLetters`; its
    `epsilon` is that of a record.
    """

    whole = True

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        keys, output, out, threads, first_chunk = call
        return self.channel.randomize(x, self.codec, keys[0], output, out, threads, first_chunk)

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
    words: Any = codec
    return WordsRelease(channel, channel.epsilon[2], 1 << codec.bits, words, None, letters)
