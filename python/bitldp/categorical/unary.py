"""Unary encodings of a category: SUE (basic RAPPOR) and OUE, independent bits on one-hot input."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Unary
from bitldp.base import checks
from bitldp.base.keys import RandomSource, keys
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate, indicator_spread, indicator_variance
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee, calibrated

__all__ = ["OUE", "SUE"]

_ONE = 1 << 64
_SMALLEST = 2.0**-53
_MOST = 1 << 31  # categories: a report is as many bits


@lru_cache(maxsize=64)
def _sue_channel(categories: int, epsilon: float) -> Unary:
    def build(target: float) -> Unary:
        # p = e^(eps/2)/(1 + e^(eps/2)); q = 1 - p is exact, since p >= 1/2
        p = min(0.5 + 0.5 * math.tanh(target / 4.0), 1.0 - _SMALLEST)
        return Unary(categories, p, 1.0 - p)

    return calibrated(build, epsilon, lambda channel: channel.epsilon[2])


@lru_cache(maxsize=64)
def _oue_channel(categories: int, epsilon: float) -> Unary:
    def build(target: float) -> Unary:
        q = max(0.5 - 0.5 * math.tanh(target / 2.0), _SMALLEST)  # 1/(1 + e^eps), without loss near 1/2
        if target > 1.0:
            q = max(math.exp(-target) / (1.0 + math.exp(-target)), 2.0**-60)  # nor in the tail
        return Unary(categories, 0.5, q)

    return calibrated(build, epsilon, lambda channel: channel.epsilon[2])


@dataclass(frozen=True, eq=False, repr=False)
class UnaryEncoding(Mechanism):
    """Base of the mechanisms that answer the k bits of a one-hot vector independently."""

    # Set on the instance, by _finish; ClassVar keeps it out of the dataclass' fields.
    _channel: ClassVar[Unary]
    _no_mean: ClassVar[str] = "its reports are categories; use estimate_frequencies"

    def _finish(self, categories: int, epsilon: float, channel: Unary) -> None:
        self._set(
            categories=categories,
            epsilon=epsilon,
            _channel=channel,
            _guarantee=Guarantee.judge(epsilon, channel.epsilon, given="one-hot input"),
        )

    @property
    def channel(self) -> Unary:
        """The channel: its `thresholds()` are the law."""
        return self._channel

    @property
    def report_bits(self) -> int:
        """Bits of one record's report: one a category."""
        return int(self._channel.categories)

    @property
    def epsilon_arbitrary(self) -> float:
        """Exact epsilon if the same bits were answered on arbitrary strings: the sum over all bits.

        One-hot inputs differ in two bits, whatever k is; that is what `guarantee` counts.
        """
        return self._channel.epsilon_arbitrary

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Literal["bits", "packed"] = "bits",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> NDArray[Any]:
        """Encode categories as one-hot vectors and randomize every bit.

        Parameters
        ----------
        x : array_like of int, shape (n,)
            Categories in [0, categories).
        rng : None, int, SeedSequence or Generator
            None: a fresh 256-bit key of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.
        output : {"bits", "packed"}
            0/1 bytes of shape (n, categories), or packed bytes (one-dimensional, no padding between records).
        out : ndarray, optional
            C-contiguous uint8 array of the exact shape to fill; must not overlap `x`.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks (of ``channel.chunk`` records) of the key's stream to skip.

        Returns
        -------
        ndarray of uint8
            The reports, safe to release at `guarantee`.

        Raises
        ------
        ValueError, TypeError
            A category out of range (its index is given, never the value), wrong shape or dtype, unfit `out`.
            Nothing is written then.
        """
        key = None if rng is None else keys(rng, 1)[0]
        threads, first_chunk = checks.stream(threads, first_chunk)
        checks.form(output)
        return self._channel.randomize(checks.plain("x", x), key, output, out, threads, first_chunk)

    def _law(self) -> tuple[float, float]:
        p, q = self._channel.thresholds()
        return p / _ONE, q / _ONE

    def _check_speaks(self) -> tuple[float, float]:
        p, q = self._channel.thresholds()
        if p == q:
            raise ValueError(
                f"{type(self).__name__}: no unbiased decode exists at epsilon 0, every bit is reported alike"
            )
        return self._law()

    def _check_bits(self, reports: ArrayLike) -> NDArray[Any]:
        bits = checks.codes("reports", reports, 2)
        if bits.ndim != 2 or bits.shape[1] != self._channel.categories:
            raise ValueError(f"reports: shape must be (n, {self._channel.categories}), got {bits.shape}")
        return bits

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased letters of the bits: their mean over the coins is the one-hot vector.

        Parameters
        ----------
        reports : array_like of 0 and 1, shape (n, categories)
            Reported bits.

        Returns
        -------
        ndarray of float64
            (bit - q)/(p - q), same shape.

        Raises
        ------
        ValueError
            If the bits say nothing (epsilon 0), or for anything but bits of that shape.
        """
        p, q = self._check_speaks()
        letters: NDArray[np.float64] = np.array([-q / (p - q), (1.0 - q) / (p - q)])[
            self._check_bits(reports)
        ]
        return letters

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate the frequency of every category among the records, without bias.

        Parameters
        ----------
        reports : array_like of 0 and 1, shape (n, categories)
            Reported bits of n >= 1 records.
        project : bool
            Whether to project the frequencies to the simplex (which makes them biased).

        Returns
        -------
        Estimate
            Shape (categories,).

        Raises
        ------
        ValueError
            If the bits say nothing (epsilon 0), or for no reports.
        """
        accumulator = self.accumulator()
        accumulator.update(reports)
        return accumulator.estimate(project=project)

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator of the ones at each position: streams, merges and serialises.

        Raises
        ------
        ValueError
            If the bits say nothing (epsilon 0).
        """
        return CountAccumulator(
            self, (self._channel.categories,), self._count, self._check_speaks(), exclusive=False
        )

    def _count(self, reports: ArrayLike) -> tuple[int, NDArray[np.int64]]:
        bits = self._check_bits(reports)
        return len(bits), bits.sum(axis=0, dtype=np.int64)

    def probabilities(self) -> NDArray[np.float64]:
        """Return P(report 1 | bit 1) and P(report 1 | bit 0), shape (2,)."""
        return np.array(self._law())

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one record's unbiased letters, in closed form.

        Parameters
        ----------
        x : array_like of int, shape (n,)
            True categories.

        Returns
        -------
        ndarray of float64, shape (n, categories)
            p(1 - p)/(p - q)^2 at the true category, q(1 - q)/(p - q)^2 at the others.

        Raises
        ------
        ValueError
            If the bits say nothing (epsilon 0), or for a category out of range.
        """
        p, q = self._check_speaks()
        truth = checks.codes("x", x, self._channel.categories)
        return indicator_variance(truth, self._channel.categories, p, q)

    def worst_variance(self) -> float:
        """Return the largest variance of an unbiased indicator of a category.

        Raises
        ------
        ValueError
            If no unbiased decode exists.
        """
        return indicator_spread(self._channel.categories, *self._check_speaks())[0]

    def mean_variance(self) -> float:
        """Return the variance of the unbiased indicators, averaged over categories and over uniform inputs.

        Raises
        ------
        ValueError
            If no unbiased decode exists.
        """
        return indicator_spread(self._channel.categories, *self._check_speaks())[1]


@dataclass(frozen=True, eq=False, repr=False)
class SUE(UnaryEncoding):
    """Symmetric unary encoding (basic one-time RAPPOR): p = e^(eps/2)/(1 + e^(eps/2)), q = 1 - p.

    Parameters
    ----------
    categories : int
        Categories k, 2 or more.
    epsilon : float
        Privacy budget of a record, finite, zero or more; the exact epsilon is at most that (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records hold any two categories, so their one-hot vectors differ in two bits: exact epsilon
    is ln(p(1 - q)/((1 - p)q)). No probability is nearer to 1 than 1 - 2**-53, so it is at most 73.5, however
    large the budget. Source: Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014.
    """

    categories: int
    _: KW_ONLY
    epsilon: float

    def _build(self) -> None:
        categories = checks.count("categories", self.categories, 2, _MOST)
        epsilon = checks.budget("epsilon", self.epsilon)
        self._finish(categories, epsilon, _sue_channel(categories, epsilon))


@dataclass(frozen=True, eq=False, repr=False)
class OUE(UnaryEncoding):
    """Optimized unary encoding: p = 1/2, q = 1/(1 + e^eps).

    Parameters
    ----------
    categories : int
        Categories k, 2 or more.
    epsilon : float
        Privacy budget of a record, finite, zero or more; the exact epsilon is at most that (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records hold any two categories, so their one-hot vectors differ in two bits: exact epsilon
    is ln(p(1 - q)/((1 - p)q)) = ln((1 - q)/q). q is at least 2**-60, so it is at most 41.6, however large the
    budget. Source: Wang, Blocki, Li and Jha, "Locally differentially
    private protocols for frequency estimation", USENIX Security 2017.
    """

    categories: int
    _: KW_ONLY
    epsilon: float

    def _build(self) -> None:
        categories = checks.count("categories", self.categories, 2, _MOST)
        epsilon = checks.budget("epsilon", self.epsilon)
        self._finish(categories, epsilon, _oue_channel(categories, epsilon))
