"""Frequencies and means from counts of reports, by the inverse of a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitldp.estimate.accumulators import Accumulated, Count, CountAccumulator
from bitldp.estimate.estimates import Estimate, project_simplex


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
    """

    def __init__(
        self,
        mechanism: Accumulated,
        shape: tuple[int, ...],
        count: Count,
        indicators: NDArray[np.float64],
    ) -> None:
        super().__init__(mechanism, shape, count, (1.0, 0.0))
        self._indicators = indicators

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
        value, stderr = averages(self.counts, self.n, self._indicators)
        made = Estimate(project_simplex(value) if project else value, stderr, self.n, projected=project)
        return self._judged(made)


def averages(
    counts: NDArray[np.int64], n: int, letters: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard error of letters from counts of reports, which lie on the first axis."""
    if n < 1:
        raise ValueError("reports: at least one is needed for an estimate")
    shares = counts / n
    value = shares @ letters
    spread = np.maximum(shares @ np.square(letters) - np.square(value), 0.0)
    stderr = np.sqrt(spread / (n - 1)) if n > 1 else np.full_like(value, np.nan)
    return value, stderr
