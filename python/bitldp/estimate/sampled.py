"""Reports on some coordinates of each record, and the accumulator of their mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.estimate.accumulators import Accumulated, unpacked
from bitldp.estimate.means import MeanAccumulator, countable
from bitldp.estimate.statistics import SampledCounts, kept, of_sampled
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
    codes : bool
        Whether codes are counted where sums would do for the mean.
    """

    def __init__(
        self,
        mechanism: Accumulated,
        features: int,
        middle: float,
        deviations: NDArray[np.float64],
        check: Callable[[Any], SampledReports],
        *,
        codes: bool = False,
    ) -> None:
        counted = (
            kept(SampledCounts(features, middle, deviations, codes=True))
            if codes
            else of_sampled(features, middle, deviations)
        )
        super().__init__(mechanism, features, self.dense, counted)
        self._middle = middle
        self._deviations = deviations
        self._check = check

    def _shaped(self, reports: Any, output: str, records: int | None) -> tuple[int, Any]:
        if records is not None:
            reports = unpacked(self.mechanism, reports, records)
        indices, codes = self._check(reports)
        return len(codes), (countable("reports.indices", indices), countable("reports.codes", codes))

    def dense(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the letters of all coordinates, shape (n, features)."""
        indices, codes = self._check(reports)
        letters = np.full((len(codes), len(self._summed[1])), self._middle)
        np.put_along_axis(letters, indices.astype(np.intp), self._middle + self._deviations[codes], axis=1)
        return letters
