"""What the reports of candidates are worth: their expected losses, and estimates where there are letters."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.tables import averages
from bitldp.mechanism.frequencies import Frequencies
from bitldp.points.base import CandidateRelease


@dataclass(frozen=True, eq=False, repr=False)
class CandidateEstimates(CandidateRelease, Frequencies):
    """Base of the mechanisms of candidates: what is computed from the law rather than sampled from it."""

    @property
    @abstractmethod
    def _letters(self) -> NDArray[np.float64]:
        """What each code is worth, shape (N,), so that the mean is the candidate; or a refusal."""

    @abstractmethod
    def _expected(self) -> float:
        """Return the mean loss of a report over the inputs."""

    @abstractmethod
    def _worst(self) -> float:
        """Return the largest mean loss of a report of an input."""

    @property
    def _cells(self) -> int:
        return len(self._points)

    def _check_alone(self) -> None:
        if len(self._regions) > 1:
            raise ValueError(
                f"{type(self).__name__}: estimates are not offered across regions; build one mechanism for "
                "each region"
            )

    def _check_line(self) -> None:
        if self._points.ndim > 1:
            raise ValueError(
                f"{type(self).__name__}: points in space have no mean here; see estimate_frequencies"
            )

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the points that the records hold, for candidates on a line.

        Parameters
        ----------
        reports : array_like of int
            Codes of n >= 1 records, of the shapes that `randomize` takes.

        Returns
        -------
        Estimate
            Shape (features,). Unbiased for the candidates that the inputs were rounded to; with
            ``rounding="dither"`` for the (clipped) inputs themselves.

        Raises
        ------
        ValueError
            If no unbiased decode exists (at epsilon 0; of `BRR`, for m >= 2), with regions, for points in
            space, or for no reports.
        """
        letters = self._letters
        n, counts = self._count(reports)
        value, stderr = averages(counts.reshape(-1, len(letters)), n, letters)
        return Estimate(value, stderr, n)

    def unbias(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the letters of reports: numbers whose mean over the coins is the candidate.

        Parameters
        ----------
        reports : array_like of int
            Codes in [0, N), any shape.

        Raises
        ------
        ValueError, TypeError
            As for `estimate_mean`, or for a code out of range.
        """
        letters = self._letters
        values: NDArray[np.float64] = letters[checks.codes("reports", reports, len(letters))]
        return values

    def expected_error(self) -> float:
        """Return the global expected error Q_g (BRR, Eq. 11): the mean loss of a report over its inputs.

        Returns
        -------
        float
            In units of the metric, computed from the integers of the channel; over uniform inputs, or over
            those of a `prior`.

        Raises
        ------
        ValueError
            If the mechanism has a `utility`; see `expected_utility`.
        """
        if self.utility is not None:
            raise ValueError("utility: was given in place of a loss; see expected_utility")
        return self._expected()

    def worst_error(self) -> float:
        """Return the largest expected loss of a report, over the inputs, in units of the metric.

        Raises
        ------
        ValueError
            If the mechanism has a `utility`.
        """
        if self.utility is not None:
            raise ValueError("utility: was given in place of a loss; see expected_utility")
        return self._worst()

    def expected_utility(self) -> float:
        """Return the global utility Q_g of a mechanism that has a `utility`: the larger, the better.

        Raises
        ------
        ValueError
            If the mechanism has a loss; see `expected_error`.
        """
        if self.utility is None:
            raise ValueError("utility: was not given; see expected_error")
        return -self._expected()

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one value: P[x, y] = P(report y | x), shape (N, N); zero between regions."""
        law = np.zeros((len(self._points),) * 2)
        for part in self._regions:
            law[np.ix_(part.members, part.members)] = part.release.channel.probabilities()
        return law
