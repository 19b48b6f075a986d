"""Sampled signs: a few coordinates' signs as one symbol of randomized response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Window, pack
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.client.codec import Signs
from bitldp.client.program import ClientProgram, PublicDraw
from bitldp.client.record import ClientRecord, Type
from bitldp.letters.spread import Spread
from bitldp.mechanism.base import Mechanism, Part, Takes
from bitldp.mechanism.law import Experiment, Pair
from bitldp.mechanism.numeric import Means, refuse_outside
from bitldp.mechanism.parameters import Budget, Features, Flag, Interval
from bitldp.privacy import ONE, Guarantee
from bitldp.release.base import Call, Release, equidistant
from bitldp.release.draws import coordinates
from bitldp.release.sampled import SampledReports, checked_floats, index_bits
from bitldp.release.window import window

__all__ = ["SampledSigns"]

_MOST_SIGNS = 31  # a symbol is one of 2^k cells, which are counted in 32 bits


def _second_moment(features: int, k: int, epsilon: float) -> float:
    """Return (r/k) ((e^eps + 2^k - 1)/(e^eps - 1))^2, without overflow."""
    rare = math.exp(-epsilon)
    letter = (1.0 + float(2**k - 1) * rare) / -math.expm1(-epsilon)
    return features / k * letter * letter


def _best(features: int, epsilon: float) -> int:
    counts = range(1, min(features, _MOST_SIGNS) + 1)
    return 1 if epsilon == 0.0 else min(counts, key=lambda k: _second_moment(features, k, epsilon))


@dataclass(frozen=True, eq=False, repr=False)
class SampledSigns(Means):
    """Sampled signs: randomized response on the signs of k sampled coordinates, as one symbol.

    Parameters
    ----------
    features : int
        Numbers of a record, r.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    k : int, optional
        Coordinates that are drawn for each record without looking at it, 1 to min(r, 31). None: the number
        with the least variance. The attribute then holds the chosen number.
    interval, clip
        As of `Duchi`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Numbers are dithered to the ends of the interval. Neighbouring records differ in any way. Records that
    differ in one feature reach epsilon if it is sampled, so bit, feature and record are equal in `guarantee`.
    On [-1, 1] a sampled coordinate is decoded as +-(r/k) (e^eps + 2^k - 1)/(e^eps - 1) and the others 0: its
    second moment is (r/k) ((e^eps + 2^k - 1)/(e^eps - 1))^2. Which coordinates were sampled is public.

    Source: Chen, Kairouz and Ozgur, "Breaking the communication-privacy-accuracy trilemma", NeurIPS 2020
    (SQKR, without Kashin's representation), with coordinates that are different.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.SampledSigns(768, epsilon=8.0)
    >>> mechanism.k, mechanism.report_bits, round(mechanism.worst_variance(), 1)
    (8, 88, 113.2)
    >>> indices, symbols = mechanism.randomize(np.zeros((5, 768)))
    >>> indices.shape, symbols.shape
    ((5, 8), (5,))
    """

    features: Features
    _: KW_ONLY
    epsilon: Budget
    k: int | None = None
    interval: Interval = (-1.0, 1.0)
    clip: Flag = True

    _takes: ClassVar[Takes | None] = "reals"
    _usual_size: ClassVar[int] = 100
    _size: int = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        features, epsilon = self.features, self.epsilon
        if self.k is None:
            k = _best(features, epsilon)
        else:
            k = checks.integer("k", self.k, 1, min(features, _MOST_SIGNS))
        release = symbols(k, epsilon, self.interval)
        exact = release.epsilon
        self._set(
            k=k,
            _size=k,
            _release=release,
            _ends=self.interval,
            _spread=None if release.spread is None else release.spread.scaled(features / k),
            _guarantee=Guarantee.judge(epsilon, (exact, exact, exact)),
        )

    @property
    def channel(self) -> Window:
        """The channel of symbols: its `high` is the law; uninformative at epsilon 0."""
        return self._release.channel

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits): the indices, and the symbol."""
        return ((self._size, index_bits(self.features)), (1, self._size))

    def _join(self, parts: Sequence[NDArray[Any]]) -> SampledReports:
        """Return reports, as `decode` takes them, of the arrays of their parts."""
        return SampledReports(parts[0], parts[1].ravel())

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return the corners of the interval; the sampled coordinates are part of the report."""
        return Mechanism.extremes(self, pair)

    @staticmethod
    def _single(reports: Any, call: Call) -> Any:
        """Return the report of a single value as that of any record: the axis of the records stays."""
        return reports

    @property
    def _streams(self) -> int:
        return 3

    def _program(self, numbers: Type) -> ClientProgram:
        record = ClientRecord(
            numbers, self.features, interval=self._ends, outside="clip" if self.clip else "refuse"
        )
        grid = self._release.codec
        assert grid is not None  # of numbers
        draw = PublicDraw("coordinates", self.features, self._size)
        return ClientProgram(record, self._report_parts, self.channel, Signs(grid, self._size), draw=draw)

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        checks.records("x", x, self.features)
        if call.out is not None:
            raise ValueError("out: not supported, since a report is a pair")
        if call.output == "values":
            self._check_informative()
        if not self.clip:
            refuse_outside(x, self._ends)
        table = checked_floats(x).reshape(-1, self.features)
        *keys, last = call.keys
        indices = coordinates(last, len(table), self.features, self._size, call.first_chunk)
        chosen = np.take_along_axis(table, indices.astype(np.intp), axis=1)
        drawn = self._release.randomize(chosen, call.codes(keys))
        if call.output == "packed":
            return SampledReports(pack(indices, index_bits(self.features)), pack(drawn, self._size))
        reports = SampledReports(indices, drawn)
        return self.decode(reports).astype(x.dtype, copy=False) if call.output == "values" else reports

    def _check_pair(self, reports: Any) -> SampledReports:
        """Return the coordinates and their signs, shape (n, k) each, once they are checked."""
        if not isinstance(reports, (tuple, list)) or len(reports) != 2:
            raise TypeError("reports: must be a pair (indices, symbols), as randomize gives it")
        indices = checks.codes("reports.indices", reports[0], self.features)
        symbols = checks.codes("reports.symbols", reports[1], self.alphabet)
        if symbols.ndim != 1 or indices.shape != (len(symbols), self._size):
            raise ValueError(
                f"reports: shapes must be (n, {self._size}) and (n,), got {indices.shape} and {symbols.shape}"
            )
        ordered = np.sort(indices, axis=1)
        repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if repeated.any():
            raise ValueError(f"reports.indices: record {int(np.argmax(repeated))} has a coordinate twice")
        positions = np.arange(self._size - 1, -1, -1)
        return SampledReports(indices, symbols[:, None].astype(np.int64) >> positions & 1)


_DITHER = Window(2, 1, 1.0)  # never leaves its cell: the dither alone


@dataclass(frozen=True, eq=False)
class SymbolRelease(Release):
    """A release of the signs of k numbers as one symbol, the first sign its highest bit."""

    _: KW_ONLY
    k: int

    streams: ClassVar[int] = 2
    straight: ClassVar[bool] = False
    whole: ClassVar[bool] = True

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        keys, output, out, threads, first_chunk = call
        signs = _DITHER.randomize(x, self.codec, None, keys[0], "codes", None, threads, first_chunk)
        symbols = signs.astype(np.int64) @ (1 << np.arange(self.k - 1, -1, -1))
        return self.channel.randomize(symbols, None, None, keys[1], output, out, threads, first_chunk)

    def probabilities(self) -> NDArray[np.float64]:
        right = self.channel.high / ONE
        right += (1.0 - right) * (self.alphabet // 2 - 1) / (self.alphabet - 1)
        right = 0.5 if self.epsilon == 0.0 else right
        return np.array([[right, 1.0 - right], [1.0 - right, right]])


def symbols(k: int, epsilon: float, interval: Interval) -> SymbolRelease:
    """Return the release of k signs.

    A symbol is reported as itself with p = T/2^64, and as each of the others with q. Half of the symbols
    have a given sign, so the sign's mean is p - q times itself: the letters are middle +- h/(p - q),
    exactly h (2^k - 1) 2^64/(2^k T - 2^64).
    """
    law = window(1 << k, 1, epsilon)
    low, high = interval
    points, grid = equidistant(interval, 2), Grid(2, low=low, high=high)
    excess = (law.channel.high << k) - ONE
    if law.epsilon == 0.0 or excess <= 0:
        return SymbolRelease(law.channel, 0.0, 1 << k, grid, points, k=k)
    half = (high - low) / 2.0 * (((1 << k) - 1) * ONE / excess)
    letters = low + (high - low) / 2.0 + np.array([-half, half])
    spread = Spread(points, readonly(np.array([half * half, half * half])))
    return SymbolRelease(law.channel, law.epsilon, 1 << k, grid, points, readonly(letters), spread, k=k)
