"""Frequencies and means from counts of reports, by the inverse of a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bitldp.estimate.accumulators import Accumulated, Count, CountAccumulator
from bitldp.estimate.estimates import Estimate, project_simplex
from bitldp.estimate.intervals import Counted, LetterLaw
from bitldp.estimate.means import mean_of


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
