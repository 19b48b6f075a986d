"""What FRR, MOUE and UER share: fixed-point code words whose bits are answered independently."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitldp._core import Bits, FixedPoint
from bitldp.base import checks
from bitldp.base.keys import RandomSource, keys
from bitldp.estimate.accumulators import MeanAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.letters.words import CodeLetters
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee, Unit

Output = Literal["codes", "bits", "values", "packed"]
Sign = Literal["bitrand", "ldpfl"]
Infinities = Literal["refuse", "saturate"]

_ONE = 1 << 64


def of_unit(channel: Bits, unit: Unit) -> float:
    """Return the exact epsilon of a record or of a feature."""
    return channel.epsilon[2] if unit == "record" else channel.epsilon[1]


@dataclass(frozen=True, eq=False, repr=False)
class FixedPointBits(Mechanism):
    """Base of the mechanisms that encode each feature to l bits and answer each bit by itself."""

    # Set on the instance, by _build; ClassVar keeps them out of the dataclass' fields.
    _channel: ClassVar[Bits]
    _codec: ClassVar[FixedPoint]
    _letters: ClassVar[CodeLetters]
    _no_frequencies: ClassVar[str] = "its reports are numbers; use estimate_mean"

    def _check_shape(self, features: Any, bits: Any, integer_bits: Any, epsilon: Any) -> None:
        """Normalise the parameters that all of them have."""
        l_bits = checks.integer("bits", bits, 2, 32)
        self._set(
            features=checks.count("features", features, 1),
            bits=l_bits,
            integer_bits=checks.integer("integer_bits", integer_bits, 0, l_bits - 1),
            epsilon=checks.budget("epsilon", epsilon),
        )

    def _check_words(self, calibration: Any, unit: Any, sign: Any, infinities: Any) -> None:
        checks.choice("calibration", calibration, ("exact", "paper"))
        checks.choice("unit", unit, ("record", "feature"))
        checks.choice("sign", sign, ("bitrand", "ldpfl"))
        checks.choice("infinities", infinities, ("refuse", "saturate"))
        if calibration == "paper" and unit != "record":
            raise ValueError(
                "unit: must be 'record' with calibration='paper', since the paper's claim is about a record"
            )

    def _finish(
        self,
        channel: Bits,
        codec: FixedPoint,
        claimed: float,
        unit: Unit,
        pattern: NDArray[np.intp] | None = None,
    ) -> None:
        self._set(
            _channel=channel,
            _codec=codec,
            _letters=CodeLetters(channel.thresholds(), codec, channel.features, pattern),
            _guarantee=Guarantee.judge(claimed, channel.epsilon, unit=unit),
        )

    @property
    def codec(self) -> FixedPoint:
        """The codec between values and code words."""
        return self._codec

    @property
    def channel(self) -> Bits:
        """The channel: its `thresholds()` are the law."""
        return self._channel

    @property
    def report_bits(self) -> int:
        """Bits of one record's report in its packed form."""
        return int(self._channel.features * self._codec.bits)

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> NDArray[Any]:
        """Encode records and randomize every bit.

        Parameters
        ----------
        x : array_like of float32 or float64, shape (n, features) or (features,)
            Records. Magnitudes past the codec's `limit` saturate; the fraction is truncated toward zero.
        rng : None, int, SeedSequence or Generator
            None: a fresh 256-bit key of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.
        output : {"codes", "bits", "values", "packed"}
            Code words (same shape, smallest unsigned dtype); 0/1 bytes of shape (n, features * bits), most
            significant first; decoded values (dtype of `x`); packed bytes (one-dimensional, `bits` a
            feature).
        out : ndarray, optional
            C-contiguous array of the exact shape and dtype to fill; must not overlap `x`.
        threads : int, optional
            Number of threads; the result does not depend on it. None chooses by the size of `x`.
        first_chunk : int
            How many chunks (``bitldp._core.CHUNK`` features) of the key's stream to skip: batches of whole
            chunks, each with its own offset, concatenate to the result of one call.

        Returns
        -------
        ndarray
            The reports, safe to release at `guarantee`.

        Raises
        ------
        ValueError
            NaN, infinity (unless ``infinities="saturate"``), wrong shape, unfit `out`. Nothing is written
            then.
        TypeError
            Wrong dtype or kind of argument.
        """
        # The common call stays short: a record of a thousand features takes about a microsecond.
        key = None if rng is None else keys(rng, 1)[0]
        if threads is not None or first_chunk != 0:
            threads, first_chunk = checks.stream(threads, first_chunk)
        try:
            return self._channel.randomize(x, self._codec, key, output, out, threads, first_chunk)
        except (TypeError, ValueError):
            checks.form(output)  # which the core's own message does not name
            checks.shape("x", x)  # nor NumPy's
            raise

    def decode(self, reports: ArrayLike, *, dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """Return the value that each reported code word spells (biased toward the middle of the range).

        Parameters
        ----------
        reports : array_like of int
            Code words, any shape.
        dtype : dtype
            float32 or float64.

        Returns
        -------
        ndarray
            Values, same shape.

        Raises
        ------
        ValueError, TypeError
            For a code word out of range (its index is given), or for anything but integers.
        """
        words = checks.codes("reports", reports, 1 << self._codec.bits)
        smallest = np.min_scalar_type((1 << self._codec.bits) - 1)
        return self._codec.decode(words.astype(smallest, copy=False), dtype)

    def unbias(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return letters whose mean is the encoded value.

        Parameters
        ----------
        reports : array_like of unsigned int, shape (n, features) or (features,)
            Code words; ``(n,)`` too where `features` is 1.

        Returns
        -------
        ndarray of float64
            Same shape. Unbiased for the value after encoding: truncated toward zero to a multiple of
            ``codec.step``, saturated at ``codec.limit``.

        Raises
        ------
        ValueError
            If some position answers 0 and 1 alike (p == q): then no unbiased decode exists.
        """
        self._check_speaks()
        return self._letters.unbias(self._check_codes("reports", reports))

    def _check_codes(self, name: str, reports: ArrayLike) -> NDArray[Any]:
        """Return code words with the features on the last axis; refuse another width."""
        words = checks.codes(name, reports, 1 << self._codec.bits)
        self._check_axis(name, words)
        return words

    def _check_axis(self, name: str, array: NDArray[Any]) -> None:
        features = self._channel.features
        shapes = (
            ((features,),) if features > 1 else (array.shape[:1],)
        )  # of one feature, many records in a row
        if array.ndim not in (1, 2) or (array.shape[1:] != (features,) and array.shape not in shapes):
            raise ValueError(f"{name}: shape must be (n, {features}) or ({features},), got {array.shape}")

    def _check_speaks(self) -> None:
        place = self._letters.silent
        if place is not None:
            raise ValueError(
                f"{type(self).__name__}: no unbiased decode exists, because position {place} of the code "
                "word is reported alike whatever its bit is (p == q)"
            )

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of every feature over the records.

        Parameters
        ----------
        reports : array_like of unsigned int, shape (n, features)
            Code words of n >= 1 records.

        Returns
        -------
        Estimate
            `value` and `stderr` of shape (features,); the standard error needs n >= 2 and is NaN for one
            record. The mean is that of the encoded values (see `unbias`).

        Raises
        ------
        ValueError
            If no unbiased decode exists, or for no reports.
        """
        accumulator = self.accumulator()
        accumulator.update(reports)
        return accumulator.estimate()

    def accumulator(self) -> MeanAccumulator:
        """Return an empty accumulator of the mean: streams, merges and serialises.

        Raises
        ------
        ValueError
            If no unbiased decode exists.
        """
        self._check_speaks()
        return MeanAccumulator(self, self._channel.features, self._records)

    def _records(self, reports: ArrayLike) -> NDArray[np.float64]:
        return self.unbias(reports).reshape(-1, self._channel.features)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of the bits.

        Returns
        -------
        ndarray of float64, shape (laws, bits, 2)
            P(report 1 | bit 1) and P(report 1 | bit 0) by position, most significant (the sign) first. One
            law, except where the law depends on the feature.
        """
        return np.array([[(p / _ONE, q / _ONE) for p, q in law] for law in self._channel.thresholds()])

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of the unbiased letter of one report, in closed form.

        Parameters
        ----------
        x : array_like of float, shape (n, features) or (features,)
            True values, encoded first.

        Returns
        -------
        ndarray of float64
            Same shape, in squared units of `x`.

        Raises
        ------
        ValueError
            If no unbiased decode exists.
        """
        self._check_speaks()
        values = np.asarray(x)
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        self._check_axis("x", values)
        return self._letters.variance(self._codec.encode(values))

    def worst_variance(self) -> float:
        """Return the largest `variance` of a feature, over all code words.

        Raises
        ------
        ValueError
            If no unbiased decode exists, or if words of more than 21 bits would have to be tried one by one.
        """
        self._check_speaks()
        return float(self._letters.worst_variances().max())

    def mean_variance(self) -> float:
        """Return the mean of `variance` over uniform code words and over the features.

        Raises
        ------
        ValueError
            If no unbiased decode exists.
        """
        self._check_speaks()
        return float(np.average(self._letters.mean_variances(), weights=self._letters.law_counts))

    def expected_error(self) -> float:
        """Return E|decode(report) - value| over uniform codes and the coins of the channel, exactly.

        Returns
        -------
        float
            In units of `x`; the mean over the features' laws.

        Notes
        -----
        The sum over all pairs of true and reported code words collapses. If the sign flips, the error is the
        sum of the two magnitudes. If not, it is the absolute difference of magnitudes, and that has the sign
        of the highest position at which they differ: given that position, the lower ones only add their mean
        difference.
        """
        weights = self._letters.weights
        per_law = []
        for law in self.probabilities():
            rises, falls = law[:, 1] / 2.0, (1.0 - law[:, 0]) / 2.0  # a uniform bit turns 0 -> 1, 1 -> 0
            change = rises[0] + falls[0]
            ones = 0.5 + rises[1:] - falls[1:]
            flipped = math.fsum(weights * 0.5) + math.fsum(weights * ones)
            equal_above = np.cumprod(np.append(1.0, 1.0 - rises[1:] - falls[1:]))[:-1]
            drift = weights * (rises[1:] - falls[1:])
            below = np.append(np.cumsum(drift[::-1])[::-1][1:], 0.0)  # mean difference of the lower positions
            kept = math.fsum(equal_above * (rises[1:] * (weights + below) + falls[1:] * (weights - below)))
            per_law.append(change * flipped + (1.0 - change) * kept)
        return float(np.average(per_law, weights=self._letters.law_counts))
