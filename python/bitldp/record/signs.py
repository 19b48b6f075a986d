"""Sampled signs: a few coordinates' signs as one symbol of randomized response."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Window, pack
from bitldp.base import checks
from bitldp.base.arrays import place
from bitldp.base.keys import RandomSource, keys
from bitldp.estimate.sampled import SampledReports
from bitldp.numeric.unbiased import Unbiased, refuse_outside
from bitldp.privacy import Guarantee
from bitldp.release.base import checked_interval
from bitldp.release.draws import coordinates
from bitldp.release.symbol import _symbols, _SymbolScalar

__all__ = ["SampledSigns"]

_ONE = 1 << 64
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
class SampledSigns(Unbiased):
    """The signs of k sampled coordinates as one symbol of 2^k, by generalised randomized response.

    Parameters
    ----------
    features : int
        Numbers of a record, r.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    k : int, optional
        Coordinates that are drawn for every record without looking at it, 1 to min(r, 31). None: the number
        with the least variance. Holds the number afterwards.
    interval : (float, float)
        Where every number lies.
    clip : bool
        Whether values outside the interval are clipped to it, or refused.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Numbers are dithered to the ends of the interval. Neighbouring records differ in any way; those that
    differ in one feature reach epsilon where it is sampled, so bit, feature and record are the same in
    `guarantee`. On [-1, 1] a sampled coordinate is worth +-(r/k) (e^eps + 2^k - 1)/(e^eps - 1) and the others
    0: its second moment is (r/k) ((e^eps + 2^k - 1)/(e^eps - 1))^2. Which coordinates were sampled is public.

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

    features: int
    _: KW_ONLY
    epsilon: float
    k: int | None = None
    interval: tuple[float, float] = (-1.0, 1.0)
    clip: bool = True

    _size: ClassVar[int]
    _symbols: ClassVar[_SymbolScalar]

    def _build(self) -> None:
        features = checks.count("features", self.features, 1)
        epsilon = checks.budget("epsilon", self.epsilon)
        interval = checked_interval(self.interval)
        clip = checks.flag("clip", self.clip)
        if self.k is None:
            k = _best(features, epsilon)
        else:
            k = checks.integer("k", self.k, 1, min(features, _MOST_SIGNS))
        scalar = _symbols(k, epsilon, interval)
        exact = scalar.epsilon
        self._set(
            features=features,
            epsilon=epsilon,
            k=k,
            interval=interval,
            clip=clip,
            _size=k,
            _symbols=scalar,
            _scalar=scalar,
            _ends=interval,
            _spread=None if scalar.spread is None else scalar.spread.scaled(features / k),
            _guarantee=Guarantee.judge(epsilon, (exact, exact, exact)),
        )

    @property
    def channel(self) -> Window:
        """The channel of symbols: its `high` is the law. At epsilon 0 it is given zeros."""
        return self._symbols.law.channel

    @property
    def report_bits(self) -> int:
        """Bits of one record's report: its indices and its symbol."""
        return self._size * (_index_bits(self.features) + 1)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one sampled sign: P[i, s] = P(sign s | the number is end i), shape (2, 2)."""
        return self._scalar.probabilities()

    def outside(self, x: ArrayLike) -> int:
        """Return how many values of `x` (float32 or float64) lie outside the interval and are clipped."""
        return self._symbols.grid.outside(x)

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Literal["codes", "values", "packed"] = "codes",
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> Any:
        """Randomize records.

        Parameters
        ----------
        x : array_like of float32 or float64
            Shape (n, features) or (features,); (n,) too for one feature.
        rng : None, int, SeedSequence or Generator
            None: fresh 256-bit keys of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.
        output : {"codes", "values", "packed"}
            The pair (indices, symbols), their letters (see `decode`), or both as packed bytes.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks (``bitldp._core.CHUNK`` values) of the keys' streams to skip.

        Returns
        -------
        SampledReports or ndarray
            Indices of shape (n, k) and symbols (n,) in the smallest unsigned dtypes, safe to release at
            `guarantee`; for a record by itself n is 1. "values" have shape (n, features).

        Raises
        ------
        ValueError
            NaN, a value outside with ``clip=False`` (an index is given, never the value), wrong shape, or
            "values" where reports say nothing. Nothing is written then.
        TypeError
            Wrong dtype or kind of argument.
        """
        self._check_axis("x", checks.shape("x", x))
        threads, first_chunk = checks.stream(threads, first_chunk)
        checks.choice("output", output, ("codes", "values", "packed"))
        if output == "values":
            self._check_speaks()
        values = checks.plain("x", x)
        if values.dtype not in (np.float32, np.float64):
            raise TypeError(f"x: dtype {values.dtype} is not allowed; float32 and float64 are")
        if not self.clip:
            refuse_outside(values, self._ends)
        missing = np.isnan(values)
        if missing.any():  # in any coordinate: an error must not depend on the draw
            raise ValueError(f"x: {place(missing)} is NaN")
        table = values.reshape(-1, self.features)
        streams = keys(rng, self._symbols.streams + 1)
        indices = coordinates(streams[-1], len(table), self.features, self._size, first_chunk)
        chosen = np.take_along_axis(table, indices.astype(np.intp), axis=1)
        symbols = self._symbols.randomize(chosen, streams[:-1], "codes", None, threads, first_chunk)
        if output == "packed":
            return SampledReports(pack(indices, _index_bits(self.features)), pack(symbols, self._size))
        reports = SampledReports(indices, symbols)
        return self.decode(reports).astype(values.dtype, copy=False) if output == "values" else reports

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
        places = np.arange(self._size - 1, -1, -1)
        return SampledReports(indices, symbols[:, None].astype(np.int64) >> places & 1)


def _index_bits(features: int) -> int:
    return max(1, (features - 1).bit_length())
