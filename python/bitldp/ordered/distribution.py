"""Distributions of numbers from counts of reports whose window slides over their cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import sliding_masses
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.estimate.accumulators import Accumulated
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.means import MeanAccumulator, SampledMeanAccumulator
from bitldp.estimate.statistics import CodeCounts, kept
from bitldp.privacy import ONE
from bitldp.release.sampled import SampledReports

__all__ = ["Distribution", "DistributionAccumulator", "SampledDistributionAccumulator"]


class Distribution:
    """What counts of reports say of a distribution: its masses, and quantiles of them.

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

    def _rows(self, resamples: Any, seed: Any) -> list[NDArray[np.float64]]:
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
        What counts of its codes say.
    letters : ndarray of float64, shape (alphabet,)
        What each code is worth.
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
        features = mechanism.report_parts[0][0]
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
