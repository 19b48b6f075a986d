"""Mean of decoded reports, with its standard error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


class ReportMean:
    """Weighted mean of vectors, streamed.

    Parameters
    ----------
    size : int
        Coordinates of a vector.

    Notes
    -----
    With weights w_i that do not depend on the coins, m = sum w_i v_i / sum w_i is unbiased for the mean of
    the clients' updates so weighted, and its standard error is estimated, for each coordinate, by
    sqrt(n/(n - 1) * sum w_i^2 (v_i - m)^2) / sum w_i: the usual one where the weights are equal. Sums are of
    deviations from the first vector, so that a common offset does not cancel digits.
    """

    def __init__(self, size: int) -> None:
        self.reports = 0
        self._first = np.zeros(size)
        self._weights = self._squares = 0.0
        self._sum, self._square_sum, self._spread = np.zeros(size), np.zeros(size), np.zeros(size)

    def add(self, vector: NDArray[np.float64], weight: float) -> None:
        """Add one decoded report."""
        if self.reports == 0:
            self._first = np.array(vector)
        offset = vector - self._first
        self.reports += 1
        self._weights += weight
        self._squares += weight * weight
        self._sum += weight * offset
        self._square_sum += weight * weight * offset
        self._spread += np.square(weight * offset)

    @property
    def value(self) -> NDArray[np.float64]:
        """The mean, shape (size,)."""
        mean: NDArray[np.float64] = self._first + self._sum / self._weights
        return mean

    def errors(self) -> NDArray[np.float64]:
        """Return the standard error of each coordinate; for two reports or more."""
        offset = self._sum / self._weights
        spread = self._spread - 2.0 * offset * self._square_sum + np.square(offset) * self._squares
        scale = self.reports / (self.reports - 1)
        errors: NDArray[np.float64] = np.sqrt(scale * np.maximum(spread, 0.0)) / self._weights
        return errors

    def stderr(self) -> float:
        """Return the root mean square of `errors` over the coordinates."""
        return math.sqrt(float(np.mean(np.square(self.errors()))))
