"""Frequencies and means from counts of reports, by the inverse of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bitldp.estimate.accumulators import Accumulated, Count, CountAccumulator
from bitldp.estimate.estimates import Estimate, project_simplex
from bitldp.estimate.intervals import Counted, LetterLaw
from bitldp.estimate.means import mean_of
from bitldp.letters import solve
from bitldp.letters.spread import Mixed


class FrequencyAccumulator(CountAccumulator):
    """Counts of a table's reports, and the frequencies that its inverse makes of them.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are counted.
    shape : tuple of int
        Shape of the counts: (N,) or (features, N).
    count : callable
        Counts one batch of reports: (n, counts).
    indicators : ndarray of float64, shape (N, N)
        Decoded value of a report (row) for every candidate.
    law : LetterLaw
        Of the indicators, by candidate.
    """

    def __init__(
        self,
        mechanism: Accumulated,
        shape: tuple[int, ...],
        count: Count,
        indicators: NDArray[np.float64],
        law: LetterLaw,
    ) -> None:
        super().__init__(mechanism, shape, count, (1.0, 0.0), reported="codes")
        self._indicators = indicators
        self._letter_law = law

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the frequencies of the candidates, without bias.

        Parameters
        ----------
        project : bool
            Whether to project the frequencies to the simplex (which makes them biased).

        Raises
        ------
        ValueError
            If nothing has been accumulated.
        """
        made = averaged(self.counts, self.n, self._indicators, self._letter_law)
        if project:
            made = replace(made, value=project_simplex(made.value), projected=True)
        return self._judged(made)


def averaged(counts: NDArray[np.int64], n: int, letters: NDArray[np.float64], law: LetterLaw) -> Estimate:
    """Return the estimate of means of letters from counts of n reports.

    Parameters
    ----------
    counts : ndarray of int, shape (..., N)
        How often each report came.
    n : int
        Reports of each row of counts.
    letters : ndarray of float64, shape (N,) or (N, entries)
        What each report stands for: one number, or one for each entry.
    law : LetterLaw
        Of them.

    Raises
    ------
    ValueError
        If there are no reports.
    """
    if n < 1:
        raise ValueError("reports: at least one is needed for an estimate")
    shares = counts / n
    value = shares @ letters
    if len(letters) == 2:
        ones = counts[..., 1] if letters.ndim == 1 else counts[..., 1:]
        limits = Counted(np.broadcast_to(ones, value.shape), n, *letters)
    middle = letters.mean(axis=0)
    spread = np.maximum(shares @ np.square(letters - middle) - np.square(value - middle), 0.0)
    variance = spread * (n / (n - 1)) if n > 1 else np.full_like(value, np.nan)
    made = mean_of(value, variance, n, replace(law, mixed=law.mixed.by_entry(value.shape)))
    return replace(made, limits=limits) if len(letters) == 2 else made


Refusal = Callable[[str], ValueError]


class Inverse:
    """The unbiased letters of a table, made when they are asked for.

    Parameters
    ----------
    law : callable
        Returns P(report | input), shape (N, reports), or None where all inputs have the same law. The
        letters of a table that is not square are those of least variance over uniform inputs.
    points : ndarray of float64, shape (N,) or (N, d)
        The candidates.
    refuse : callable
        Makes the error that says why there are no letters.
    """

    def __init__(
        self, law: Callable[[], NDArray[np.float64] | None], points: NDArray[np.float64], refuse: Refusal
    ) -> None:
        self._law, self._points, self._refuse = law, points, refuse

    @cached_property
    def indicators(self) -> NDArray[np.float64]:
        """Unbiased indicators of all candidates by report (row); raises where the law has dependent rows."""
        law = self._law()
        result = None
        if law is not None:
            result = solve.inverse(law) if law.shape[0] == law.shape[1] else solve.indicators(law)
        if result is None:
            raise self._refuse("the rows of the law are not independent, or too nearly dependent")
        return result

    @cached_property
    def letters(self) -> NDArray[np.float64]:
        """Decoded value of each report, whose mean is the candidate; read-only. Raises where none exists."""
        law = self._law()
        result = None if law is None else solve.letters(law, self._points)
        if result is None:
            raise self._refuse("no letters of its reports have the candidates as their means")
        result.flags.writeable = False
        return result

    def letter_variance(self) -> NDArray[np.float64]:
        """Return the variance of a report's letter for each candidate."""
        letters, law = self.letters, self._law()
        return np.sum(law * np.square(letters - self._points[:, None]), axis=1)

    def variance(self) -> NDArray[np.float64]:
        """Return the variance of one report's indicators (columns) for each candidate (row)."""
        indicators, law = self.indicators, self._law()
        return law @ np.square(indicators) - np.eye(indicators.shape[1])

    @cached_property
    def law(self) -> LetterLaw:
        """Law of each candidate's indicator, for intervals: for the candidate, and for all others."""
        spread = self.variance() + 0.25  # second moments about 1/2
        own = spread.diagonal().copy()
        np.fill_diagonal(spread, np.inf)
        least = np.stack([spread.min(axis=0), own])
        np.fill_diagonal(spread, -np.inf)
        most = np.stack([spread.max(axis=0), own])
        reach = float(np.ptp(self.indicators, axis=0).max())
        return LetterLaw(Mixed(np.array([0.0, 1.0]), least, most), reach, jump=reach / 2.0)
