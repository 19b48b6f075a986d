"""Base of FRR, MOUE and UER: fixed-point code words whose bits are answered independently."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitldp._core import Bits, FixedPoint
from bitldp.base import checks
from bitldp.base.keys import RandomSource, keys
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.intervals import LetterLaw
from bitldp.estimate.statistics import WordCounts
from bitldp.letters.reach import Reach
from bitldp.letters.spread import Mixed
from bitldp.mechanism.base import Output, Takes
from bitldp.mechanism.described import spreads
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols, neighbours
from bitldp.mechanism.numeric import Means
from bitldp.mechanism.parameters import (
    RANDOMIZE,
    Budget,
    Calibration,
    Features,
    Unit,
    one_of,
    refuse_unknown,
    whole,
)
from bitldp.privacy import Guarantee
from bitldp.release.base import Call
from bitldp.release.code_words import WordsRelease, words

__all__ = ["facts"]

Sign = Annotated[Literal["bitrand", "ldpfl"], one_of("bitrand", "ldpfl")]
Infinities = Annotated[Literal["refuse", "saturate"], one_of("refuse", "saturate")]


def of_unit(channel: Bits, unit: str) -> float:
    """Return the exact epsilon of a record or of a feature."""
    return channel.epsilon[2] if unit == "record" else channel.epsilon[1]


_TRIED_BITS = 16  # of words that are tried one by one for an interval


@dataclass(frozen=True, eq=False, repr=False)
class FixedPointBits(Means):
    """Base of the mechanisms that encode each feature to l bits and answer each bit by itself."""

    features: Features
    _: KW_ONLY
    bits: Annotated[int, whole(2, 32)] = 10
    integer_bits: int = 5
    epsilon: Budget
    calibration: Calibration = "exact"
    unit: Unit = "record"
    sign: Sign = "bitrand"
    infinities: Infinities = "refuse"

    _takes: ClassVar[Takes | None] = "numbers"
    outputs: ClassVar[tuple[str, ...]] = ("codes", "bits", "values", "packed")

    # Derived of the parameters while the mechanism is built.
    _release: WordsRelease = field(init=False, repr=False, compare=False)
    _core: tuple[Callable[..., NDArray[Any]], FixedPoint] = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        self._set(integer_bits=checks.integer("integer_bits", self.integer_bits, 0, self.bits - 1))
        if self.calibration != "exact" and self.unit != "record":
            raise ValueError(
                f"unit: must be 'record' with calibration={self.calibration!r}, since the paper's claim "
                "covers a record"
            )
        codec = FixedPoint(
            self.bits, integer_bits=self.integer_bits, sign=self.sign, infinities=self.infinities
        )
        channel, pattern = self._bits()
        self._set(
            _release=words(channel, codec, pattern),
            _core=(channel.randomize, codec),
            _ends=(-codec.limit, codec.limit),
            _guarantee=Guarantee.judge(self.epsilon, channel.epsilon, unit=self.unit),
        )

    @abstractmethod
    def _bits(self) -> tuple[Bits, NDArray[np.intp] | None]:
        """Return the channel of all bits of a record, and which law each feature has."""

    @property
    def codec(self) -> FixedPoint:
        """The codec between values and code words."""
        codec: FixedPoint = self._release.codec  # type: ignore[assignment]
        return codec

    @property
    def channel(self) -> Bits:
        """The channel: its `thresholds()` are the law."""
        return self._release.channel

    @property
    def _words(self) -> Any:
        return self._release.letters

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of all bits of a record."""
        return (Symbols((self.channel,), 1),)

    def extremes(self, pair: Pair | None = None) -> Experiment:
        """Return records whose code words are complements: largest and "-0", zero and the most negative.

        Zero is included because faulty code that scales its noise by the data may leave a zero unchanged.
        """
        codec, features = self.codec, self.features
        tiny = -codec.step / 2.0  # truncated to the code word "-0"
        names = [f"every feature {codec.limit:g}", 'every feature "-0"']
        names += ["every feature 0", f"every feature {-codec.limit:g}"]
        inputs = [np.full(features, x) for x in (codec.limit, tiny, 0.0, -codec.limit)]
        if pair is not None:
            inputs = [np.asarray(each, dtype=np.float64) for each in pair]
            for each in inputs:
                checks.records("pair", each, features)
        rows = self._release.bit_rows(np.stack([each.reshape(-1) for each in inputs]))

        def describe(symbol: int, value: int) -> str:
            return f"bit {symbol % codec.bits} of feature {symbol // codec.bits} is reported {value}"

        pairs = neighbours(len(inputs))
        return Experiment(inputs, names, [Block(rows, describe)], pairs, {"output": "bits"})

    def _shortcut(self) -> None:
        """Return none: `randomize` is short by itself."""

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
        **unknown: Any,
    ) -> NDArray[Any]:
        """Encode records and randomize every bit; the arguments are those of `Mechanism.randomize`.

        Magnitudes above the codec's `limit` saturate, and the fraction is truncated toward zero. "codes" are
        code words in the shape of `x`. "bits" are bytes of 0 and 1 in the shape (n, features * bits), most
        significant first. "packed" are one-dimensional bytes with `bits` bits per feature. For a single
        number of one feature, the report is a scalar, or its bits. Infinities are refused, like NaN, unless
        ``infinities="saturate"``.
        """
        if unknown:
            refuse_unknown("randomize", unknown, RANDOMIZE)
        # The common call stays short: a record of a thousand features takes about a microsecond.
        key = None if rng is None else keys(rng, 1)[0]
        if threads is not None or first_chunk != 0:
            threads, first_chunk = checks.stream(threads, first_chunk)
        core, codec = self._core
        try:
            return core(x, codec, key, output, out, threads, first_chunk)
        except (TypeError, ValueError):
            pass  # refused by the core: converted below, or refused by name and index
        checks.form(output)
        values = checks.numbers("x", x)
        if values.ndim or self.features > 1:
            return core(values, codec, key, output, out, threads, first_chunk)
        if out is not None:
            raise ValueError("out: not supported for a single value")
        reports: NDArray[Any] = core(values[None], codec, key, output, None, threads, first_chunk)
        return reports if output == "packed" else reports[0]

    @property
    def _bound(self) -> bool:
        return False  # one draw of a record, in which it is

    def _program(self, numbers: Type) -> ClientProgram:
        return ClientProgram(
            ClientRecord(numbers, self.features), self._report_parts, self.channel, self.codec
        )

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        return self._release.randomize(x, call)

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
        words = checks.codes("reports", reports, 1 << self.codec.bits)
        smallest = np.min_scalar_type((1 << self.codec.bits) - 1)
        values = self.codec.decode(np.atleast_1d(words).astype(smallest, copy=False), dtype)
        return values.reshape(words.shape)

    def decode_bias(self) -> float:
        """Return the largest distance of the mean of `decode` from the encoded number, in units of `x`."""
        return self._words.decode_bias()

    def unbias(self, reports: Any) -> NDArray[np.float64]:
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
        self._check_informative()
        return self._words.unbias(self._check_codes(reports))

    def _check_codes(self, reports: Any) -> NDArray[Any]:
        """Return code words with the features on the last axis; refuse another width."""
        words = checks.codes("reports", reports, 1 << self.codec.bits)
        checks.records("reports", words, self.features)
        return words

    def _check_informative(self) -> None:
        position = self._words.uninformative
        if position is not None:
            raise ValueError(
                f"{type(self).__name__}: no unbiased decode exists, because position {position} of the code "
                "word is reported alike whatever its bit is (p == q)"
            )

    def _records(self, reports: ArrayLike) -> NDArray[np.float64]:
        return self.unbias(reports).reshape(-1, self.features)

    @cached_property
    def _letter_law(self) -> LetterLaw | None:
        """Law of a letter, for intervals: its variance for every code word, where these can be tried."""
        if self._words.uninformative is not None:
            return None
        limit, reach = self.codec.limit, self._words.reach
        if self.codec.bits > _TRIED_BITS:
            return LetterLaw(Mixed.of_range(-reach, reach), 2.0 * reach)
        every = np.arange(1 << self.codec.bits)
        values = self.codec.decode(every.astype(np.min_scalar_type(every[-1])), np.float64)
        moments = [np.square(values) + each for each in self._words.every_variance(every)]
        return LetterLaw(Mixed.of_points(values, *moments), limit + reach)

    def _statistic(self) -> WordCounts:
        return WordCounts(self.features, self._words)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of the bits.

        Returns
        -------
        ndarray of float64, shape (laws, bits, 2)
            P(report 1 | bit 1) and P(report 1 | bit 0) by position, most significant (the sign) first. One
            law, except where the law depends on the feature.
        """
        return self._release.probabilities()

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
        self._check_informative()
        values = np.asarray(x)
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        checks.records("x", values, self.features)
        return self._words.variance(self.codec.encode(values))

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: 8 bits on [-1, 1], so that variances compare."""
        return super()._usual(epsilon, size) | {"bits": 8, "integer_bits": 0}

    def _bounds(self) -> dict[str, float]:
        """Return a paper's bounds of the errors."""
        return {}

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the laws of the bits and the errors of reports; see `Mechanism._facts`."""
        return facts(self, self._bounds(), users)

    def worst_variance(self) -> float:
        """Return the largest `variance` of a feature, over all code words.

        Raises
        ------
        ValueError
            If no unbiased decode exists, or if words of more than 21 bits would have to be tried one by one.
        """
        self._check_informative()
        return float(self._words.worst_variances().max())

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return the least and the largest letter of every feature, over all code words."""
        self._check_informative()
        low, high = self._words.ends()
        return (Reach.of_numbers(low, high, self._ends),)

    def mean_variance(self) -> float:
        """Return the mean `variance` over uniform code words and features; see `Mechanism.mean_variance`."""
        self._check_informative()
        return float(np.average(self._words.mean_variances(), weights=self._words.law_counts))

    def expected_error(self) -> float:
        """Return E|decode(report) - value| over uniform codes and the random bits of the channel, exactly.

        Returns
        -------
        float
            In units of `x`; the mean over the features' laws.

        Notes
        -----
        The sum over all pairs of true and reported code words simplifies. If the sign flips, the error is the
        sum of the two magnitudes. If it does not, the error is the absolute difference of the magnitudes. The
        highest position at which they differ decides its sign, and the positions below add their mean
        difference only.
        """
        weights = self._words.weights
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
        return float(np.average(per_law, weights=self._words.law_counts))


def facts(mechanism: Any, bounds: dict[str, float], users: int | None) -> dict[str, Any]:
    """Return the laws of the bits, and the errors of a decoded value, of its letter and of a mean.

    Parameters
    ----------
    mechanism : FixedPointBits
    bounds : dict
        A paper's bounds of its errors.
    users : int or None
        As of `Mechanism._facts`.
    """
    codec = mechanism.codec
    laws = [
        [
            {
                "position": position,
                "weight": None if position == 0 else 2.0 ** (codec.integer_bits - position),
                "one_stays_one": float(p),
                "zero_becomes_one": float(q),
            }
            for position, (p, q) in enumerate(law)
        ]
        for law in mechanism.probabilities()
    ]
    errors: dict[str, Any] = {
        "values": f"multiples of {codec.step:g} from {-codec.limit:g} to {codec.limit:g}",
        "expected_absolute_error": mechanism.expected_error(),
        **bounds,
    }
    try:
        ends = np.array([[0.0], [codec.limit]]) * np.ones(mechanism.features)
        at_zero, at_limit = np.sqrt(mechanism.variance(ends)).max(axis=1).tolist()
    except ValueError as error:
        errors["unbiased"] = str(error)
    else:
        errors |= spreads("a_mean", {"at_zero": at_zero, "at_the_limit": at_limit}, users)
    return {"laws_of_the_bits": laws, "errors": errors}
