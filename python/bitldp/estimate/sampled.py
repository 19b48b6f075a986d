"""Reports on some coordinates of each record, and the accumulator of their mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.estimate.accumulators import Accumulated, MeanAccumulator
from bitldp.release.sampled import SampledReports


def checked(reports: Any, features: int, k: int, alphabet: int) -> SampledReports:
    """Return reports as arrays of shape (n, k), after checking them against the mechanism's form."""
    if not isinstance(reports, (tuple, list)) or len(reports) != 2:
        raise TypeError("reports: must be a pair (indices, codes), as randomize gives it")
    indices = checks.codes("reports.indices", reports[0], features)
    codes = checks.codes("reports.codes", reports[1], alphabet)
    for name, array in (("indices", indices), ("codes", codes)):
        if array.ndim not in (1, 2) or array.shape[-1] != k or array.shape != indices.shape:
            raise ValueError(
                f"reports.{name}: shape must be (n, {k}) or ({k},), the same for both, got {array.shape}"
            )
    indices, codes = indices.reshape(-1, k), codes.reshape(-1, k)
    ordered = np.sort(indices, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if repeated.any():
        raise ValueError(f"reports.indices: record {int(np.argmax(repeated))} has a coordinate twice")
    return SampledReports(indices, codes)


class SampledMeanAccumulator(MeanAccumulator):
    """Mean and variance of sampled coordinates; the others count as the middle.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are accumulated.
    features : int
        Coordinates of a record.
    middle : float
        What a coordinate that was not sampled is worth.
    deviations : ndarray of float64, shape (alphabet,)
        What each code is worth, less `middle`.
    check : callable
        Checks reports and returns them with shape (n, k).
    """

    def __init__(
        self,
        mechanism: Accumulated,
        features: int,
        middle: float,
        deviations: NDArray[np.float64],
        check: Callable[[Any], SampledReports],
    ) -> None:
        super().__init__(mechanism, features, self.dense)
        self._middle = middle
        self._deviations = deviations
        self._check = check

    def update(self, reports: Any) -> None:
        """Add a batch of reports: a pair (indices, codes), each of shape (n, k).

        Raises
        ------
        ValueError, TypeError
            For reports of another form, or out of range. Nothing is added then.
        """
        indices, codes = self._check(reports)
        n = len(codes)
        if n == 0:
            return
        # Sums by coordinate, without the table of (n, features) letters that are mostly the middle.
        flat, deviations = indices.ravel().astype(np.intp), self._deviations[codes.ravel()]
        features = len(self.mean)
        mean = np.bincount(flat, deviations, features) / n
        squares = np.bincount(flat, np.square(deviations), features)
        self._combine(n, self._middle + mean, np.maximum(squares - n * np.square(mean), 0.0))

    def dense(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the letters of all coordinates, shape (n, features)."""
        indices, codes = self._check(reports)
        letters = np.full((len(codes), len(self.mean)), self._middle)
        np.put_along_axis(letters, indices.astype(np.intp), self._middle + self._deviations[codes], axis=1)
        return letters
