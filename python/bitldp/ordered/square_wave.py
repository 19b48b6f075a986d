"""The square wave: the distribution of an ordered number, from reports near it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import sliding_masses
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.estimate.accumulators import Accumulated
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.means import MeanAccumulator, SampledMeanAccumulator
from bitldp.estimate.statistics import CodeCounts, kept
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import Interval, whole
from bitldp.privacy import ONE
from bitldp.release.base import Release
from bitldp.release.sampled import SampledReports
from bitldp.release.window import windowed

__all__ = [
    "Distribution",
    "DistributionAccumulator",
    "SampledDistributionAccumulator",
    "SquareWave",
    "half_width",
]

_MOST = 4096  # cells: with the window they are at most twice as many
_SMALL = 1e-4  # epsilon below which the closed form loses its digits


def half_width(epsilon: float) -> float:
    """Return b, the half-width of the window on [0, 1] that tells most about the number.

    b = (epsilon e^epsilon - e^epsilon + 1)/(2 e^epsilon (e^epsilon - 1 - epsilon)) maximises the mutual
    information of report and number for an upper bound of it; Li et al. 2020, Section 5.3. It is 1/2 at
    epsilon 0, and falls.
    """
    if epsilon < _SMALL:
        return 0.5 * (1.0 - epsilon / 3.0) / (1.0 + epsilon / 3.0)
    fading = math.exp(-epsilon)
    return (epsilon + math.expm1(-epsilon)) * fading / (2.0 * (1.0 - (1.0 + epsilon) * fading))


@dataclass(frozen=True, eq=False, repr=False)
class SquareWave(Numeric):
    """Square wave (SW): reports a value near the number, for its distribution: shares, median, quantiles.

    The window around a number of [0, 1] reaches b = (e e^e - e^e + 1)/(2 e^e (e^e - 1 - e)) to either side, e
    the epsilon, and reports lie in [-b, 1 + b], a wider range than the numbers, so that numbers at the ends
    have whole windows, too.

    Parameters
    ----------
    epsilon, features, interval, spend, k, clip, unit
        As of `Numeric`.
    cells : int
        Points at which the distribution is estimated, 2 to 4096, evenly from end to end of the interval. A
        number is dithered to one of its two neighbours. Fewer points smooth more: a distribution with two
        humps at epsilon 1 has twice the error at 128 points.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or an interval too narrow for its distance from 0; the message names
        it.

    Notes
    -----
    Neighbouring records differ in any way. The law is a window of m in ``cells + m - 1`` cells with exact
    epsilon, where m is the number nearest to 2 b cells. `estimate_mean` is unbiased. From epsilon 2 on,
    `Piecewise` estimates means with less variance. `estimate_distribution` and `estimate_quantile` maximise
    the likelihood with smoothing (EMS), which is biased toward distributions without gaps and steps. Source:
    Li, Wang, Lopuhaa- Zwakenberg, Li and Skoric, "Estimating numerical distributions under local differential
    privacy", SIGMOD 2020, Sections 5 and 5.5.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> ages = np.random.default_rng(1).normal(40.0, 12.0, 50_000)
    >>> mechanism = bitldp.SquareWave(epsilon=1.0, interval=(0.0, 100.0), cells=64)
    >>> reports = mechanism.randomize(ages, rng=2)
    >>> median = mechanism.estimate_quantile(reports, 0.5)
    >>> bool(abs(median.value - 40.0) < 2.0)
    True
    >>> mechanism.estimate_distribution(reports).value.shape
    (64,)
    """

    _lasting: ClassVar[str] = "bitldp.ordered.square_wave.SquareWave"

    _: KW_ONLY
    cells: Annotated[int, whole(2, _MOST)] = 512
    interval: Interval = (-1.0, 1.0)

    _distribution: Distribution = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        super()._build()
        channel = self._release.channel
        self._set(_distribution=Distribution(channel.width, channel.high, self.points))

    def _released(self, epsilon: float, interval: Interval) -> Release:
        width = max(1, round(2.0 * half_width(epsilon) * self.cells))
        return windowed(self.cells + width - 1, width, epsilon, interval)

    def accumulator(self) -> DistributionAccumulator | SampledDistributionAccumulator:
        """Return an empty accumulator of mean and distribution: streams, merges and serialises.

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0), or if there are so many features that their counts
            take over 32 MB.
        """
        self._check_informative()
        if self.k is None:
            return DistributionAccumulator(self, self._distribution, self.letters, self._records)
        middle, scale = self._check_spread().middle, self.features / self.k
        return SampledDistributionAccumulator(
            self, self._distribution, middle, scale * (self.letters - middle), self._check_pair
        )

    def estimate_distribution(self, reports: ArrayLike, *, resamples: int = 50, seed: int = 0) -> Estimate:
        """Estimate the distribution of the numbers: the share of records at each point of the interval.

        Parameters
        ----------
        reports : array_like of int, or SampledReports
            Codes of n >= 1 records as `randomize` gives them.
        resamples : int
            Number of bootstrap draws of the counts for the standard errors, 2 or more.
        seed : int
            Seed of those draws, zero or more. The estimate does not depend on it.

        Returns
        -------
        Estimate
            Shape (cells,), or (features, cells) for several; `labels` are the `points`. Shares are zero or
            more and sum to 1. `stderr` is from the bootstrap: it covers the random bits and the sampling of
            records, but not the bias of the smoothing.

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), for no reports (of a feature), or for a report out
            of range.
        """
        return self.accumulator()._filled(reports).estimate_distribution(resamples=resamples, seed=seed)

    def simulate_distribution(
        self, shares: ArrayLike, users: int, *, draws: int = 16, seed: int = 0
    ) -> NDArray[np.float64]:
        """Return estimates of a distribution that is known, without randomizing any record.

        Parameters
        ----------
        shares : array_like of float, shape (cells,)
            Shares of the records at each of the `points`, zero or more, of sum 1.
        users : int
            Number of records to draw from it, 1 or more.
        draws : int
            Number of simulations, 1 or more.
        seed : int
            Of the draws, zero or more.

        Returns
        -------
        ndarray of float64, shape (draws, cells)
            Estimates of `estimate_distribution` from counts of reports, drawn by their law: random bits and
            the sampling of records together.

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), or for anything out of its range.
        """
        self._check_informative()
        masses = checks.numbers("shares", shares).astype(np.float64)
        if masses.shape != (self.cells,):
            raise ValueError(f"shares: shape must be ({self.cells},), got {masses.shape}")
        if not ((masses >= 0.0).all() and abs(masses.sum() - 1.0) <= 1e-9):  # written so that NaN fails
            raise ValueError("shares: must be zero or more, of sum 1")
        law = masses @ self.probabilities()
        return self._distribution.drawn(
            law / law.sum(),
            checks.integer("users", users, 1),
            checks.integer("draws", draws, 1),
            checks.integer("seed", seed, 0),
        )

    def estimate_quantile(
        self, reports: ArrayLike, q: ArrayLike, *, resamples: int = 50, seed: int = 0
    ) -> Estimate:
        """Estimate quantiles: the numbers below which shares `q` of the records lie; 0.5 is the median.

        Parameters
        ----------
        reports : array_like of int, or SampledReports
            As for `estimate_distribution`.
        q : array_like of float
            Shares, 0 to 1, any shape.
        resamples, seed
            As for `estimate_distribution`.

        Returns
        -------
        Estimate
            Shape of `q`, in the units of the numbers; with several features, an axis of features comes first.
            The share of a point counts as spread evenly, half the way to its neighbours.

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), for no reports (of a feature), or for a report out
            of range.
            Also for a `q` out of its range.
        """
        shares = np.asarray(q)  # looked at before the reports are
        return self.accumulator()._filled(reports).estimate_quantile(shares, resamples=resamples, seed=seed)


class Distribution:
    """Distribution that counts of reports make likely: its masses, and quantiles of them.

    Parameters
    ----------
    width : int
        Cells of a window; that of point i starts at cell i.
    high : int
        Probability of a report inside the window, over 2**64.
    points : ndarray of float64, shape (cells,)
        The points of the interval, ascending and equidistant.
    """

    def __init__(self, width: int, high: int, points: NDArray[np.float64]) -> None:
        self._width, self._high = width, high / ONE
        self.points = points
        middles = (points[1:] + points[:-1]) / 2.0
        self._edges = readonly(np.concatenate([points[:1], middles, points[-1:]]))

    def masses(self, counts: NDArray[Any], resamples: int, seed: int) -> NDArray[np.float64]:
        """Return the masses that counts make likely, and those of as many resamples of the counts.

        Parameters
        ----------
        counts : ndarray of int, shape (alphabet,)
            Reports of each code, one or more.
        resamples, seed : int
            Number and seed of the multinomial draws of as many reports.

        Returns
        -------
        ndarray of float64, shape (1 + resamples, cells)
        """
        n = int(counts.sum())
        drawn = np.random.default_rng(seed).multinomial(n, counts / n, resamples)
        rows = np.concatenate([counts[None], drawn]).astype(np.uint64)
        return sliding_masses(rows, self._width, self._high)

    def drawn(self, law: NDArray[np.float64], n: int, draws: int, seed: int) -> NDArray[np.float64]:
        """Return the masses that n reports of a law make likely, shape (draws, cells)."""
        rows = np.random.default_rng(seed).multinomial(n, law, draws)
        return sliding_masses(rows.astype(np.uint64), self._width, self._high)

    def quantiles(self, masses: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantiles of each row of masses, shape (rows, *shares.shape)."""
        below = np.concatenate([np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)], axis=1)
        return np.stack([np.interp(shares, row / row[-1], self._edges) for row in below])


class Distributed(MeanAccumulator):
    """Counts of codes by feature, of which the mean is estimated, and the distribution."""

    kind = "distribution"
    distribution: Distribution

    def _rows(self, resamples: int, seed: int) -> list[NDArray[np.float64]]:
        """Return the masses of each feature, with those of its resamples."""
        resamples = checks.integer("resamples", resamples, 2)
        seed = checks.integer("seed", seed, 0)
        if not self.n:
            raise ValueError("reports: at least one is needed for an estimate")
        counts = np.asarray(self._counts, dtype=np.int64)
        empty = np.flatnonzero(counts.sum(axis=1) == 0)
        if len(empty):
            raise ValueError(f"reports: none is about feature {int(empty[0])}")
        return [self.distribution.masses(row, resamples, seed) for row in counts]

    def _estimate(self, rows: list[NDArray[np.float64]], labels: NDArray[Any] | None) -> Estimate:
        """Return an estimate of the first of each feature's rows, the others being its resamples."""
        value = np.stack([row[0] for row in rows])
        stderr = np.stack([row[1:].std(axis=0, ddof=1) for row in rows])
        if len(rows) == 1:
            value, stderr = value[0], stderr[0]
        return Estimate(value, stderr, self.n, labels)

    def estimate_distribution(self, *, resamples: int = 50, seed: int = 0) -> Estimate:
        """Estimate the distribution; see `SquareWave.estimate_distribution`."""
        return self._estimate(self._rows(resamples, seed), self.distribution.points)

    def estimate_quantile(self, q: ArrayLike, *, resamples: int = 50, seed: int = 0) -> Estimate:
        """Estimate quantiles; see `SquareWave.estimate_quantile`."""
        shares = checks.numbers("q", q).astype(np.float64)
        if not ((shares >= 0.0) & (shares <= 1.0)).all():  # written so that NaN fails
            raise ValueError("q: must be from 0 to 1")
        rows = self._rows(resamples, seed)
        return self._estimate([self.distribution.quantiles(each, shares) for each in rows], None)


class DistributionAccumulator(Distributed):
    """Mean and distribution of numbers that are all released.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are accumulated.
    distribution : Distribution
        Distribution that counts of its codes make likely.
    letters : ndarray of float64, shape (alphabet,)
        Decoded value of each code.
    records : callable
        Letters of a batch of reports, shape (n, features).
    """

    def __init__(
        self,
        mechanism: Accumulated,
        distribution: Distribution,
        letters: NDArray[np.float64],
        records: Callable[[ArrayLike], NDArray[np.float64]],
    ) -> None:
        features = mechanism._report_parts[0][0]
        super().__init__(mechanism, features, records, kept(CodeCounts(features, letters)))
        self.distribution = distribution


class SampledDistributionAccumulator(SampledMeanAccumulator, Distributed):
    """Mean and distribution of numbers of which some of each record are released.

    Parameters
    ----------
    mechanism, distribution
        As of `DistributionAccumulator`.
    middle, deviations, check
        As of `SampledMeanAccumulator`.
    """

    def __init__(
        self,
        mechanism: Any,
        distribution: Distribution,
        middle: float,
        deviations: NDArray[np.float64],
        check: Callable[[Any], SampledReports],
    ) -> None:
        super().__init__(mechanism, mechanism.features, middle, deviations, check, codes=True)
        self.distribution = distribution

    def _rows(self, resamples: int, seed: int) -> list[NDArray[np.float64]]:
        self._settle()  # all reports are to be in the counts
        return super()._rows(resamples, seed)
