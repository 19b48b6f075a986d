"""Base of PS and PE: the k coordinates of the largest magnitude against all others."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.means import countable
from bitldp.estimate.statistics import counts_of
from bitldp.selection.base import Selection


class TopAccumulator(CountAccumulator):
    """Counts of selected coordinates, for the share of vectors that have each among their top k."""

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the shares; they sum to k, so that there is no simplex to project to.

        Raises
        ------
        ValueError
            If nothing has been accumulated, or for ``project=True``.
        """
        if project:
            raise ValueError("project: must be False; the shares of a top k sum to k, not to 1")
        return super().estimate()


class TopSelection(Selection):
    """Base of PS and PE: each of the k largest is reported with one probability, each other with another."""

    @classmethod
    def usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: the 10 largest coordinates, or all but one."""
        parameters = super().usual(epsilon, size)
        return parameters | {"k": max(1, min(10, parameters["dimensions"] - 1))}

    def _chances(self) -> tuple[float, float]:
        """Return P(a given top coordinate) and P(a given other one), which must differ."""
        weights, total = self._channel.weights(), self._channel.total
        high, low = int(weights[-1]), int(weights[0])
        if high == low:
            self._refuse_mute()
        return high / total, low / total

    def _refuse_mute(self) -> NoReturn:
        raise ValueError(
            f"{type(self).__name__}: no unbiased decode exists at epsilon 0, all coordinates are alike"
        )

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased letters of "coordinate j is among the k largest", for every j.

        Parameters
        ----------
        reports : array_like of int, shape (n,)
            Selected coordinates.

        Returns
        -------
        ndarray of float64, shape (n, dimensions)
            ``(indicator - b)/(a - b)``, a and b being the chances of a top coordinate and of another one.
            Ties at the k-th place count with the chance to be in the top k.

        Raises
        ------
        ValueError
            At epsilon 0, or for anything but such reports.
        """
        high, low = self._chances()
        codes = self._check_reports(reports)
        own = codes[:, None] == np.arange(self._channel.dimensions)
        letters: NDArray[np.float64] = np.where(own, 1.0 - low, -low) / (high - low)
        return letters

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate, without bias, the share of vectors that have each coordinate among their k largest.

        Parameters
        ----------
        reports : array_like of int, shape (n,)
            Selected coordinates of n >= 1 vectors.
        project : bool
            Must be False: the shares sum to k.

        Returns
        -------
        Estimate
            Shape (dimensions,).

        Raises
        ------
        ValueError
            At epsilon 0, for no reports, or for ``project=True``.
        """
        accumulator = self.accumulator()
        accumulator.update(reports)
        return accumulator.estimate(project=project)

    def accumulator(self) -> TopAccumulator:
        """Return an empty accumulator of the counts: streams, merges and serialises.

        Raises
        ------
        ValueError
            At epsilon 0.
        """
        shape = (self._channel.dimensions,)
        return TopAccumulator(self, shape, self._count, self._chances(), exclusive=False)

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        form, array = "packed", reports
        if records is None:
            form, array = "codes", countable("reports", reports)
            if array.ndim != 1:
                raise ValueError(f"reports: shape must be (n,), got {array.shape}")
            records = len(array)
        cells = self._channel.outputs
        found = counts_of(array, 1, cells, form, records, threads)
        return records, found[0, : self._channel.dimensions]

    def variance(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of the letters that `decode` gives, in closed form.

        Parameters
        ----------
        scores : array_like of float, shape (n, dimensions)
            Vectors.

        Returns
        -------
        ndarray of float64, shape (n, dimensions)
            P (1 - P)/(a - b)^2, P the probability to report the coordinate.

        Raises
        ------
        ValueError
            At epsilon 0, or for scores of another shape or not finite.
        """
        high, low = self._chances()
        chance = self.law(scores)[:, : self._channel.dimensions]
        spread: NDArray[np.float64] = chance * (1.0 - chance) / (high - low) ** 2
        return spread

    def mean_variance(self) -> float:
        """Return the mean of `variance` over the coordinates of a vector without equal magnitudes.

        Raises
        ------
        ValueError
            At epsilon 0.
        """
        return float(self._by_rank().mean())

    def worst_variance(self) -> float:
        """Return the largest `variance` of a coordinate of a vector without equal magnitudes.

        Raises
        ------
        ValueError
            At epsilon 0.
        """
        return float(self._by_rank().max())

    def _by_rank(self) -> NDArray[np.float64]:
        ranks = np.arange(1.0, self._channel.dimensions + 1.0)
        spread: NDArray[np.float64] = self.variance(ranks[None, :])[0]
        return spread
