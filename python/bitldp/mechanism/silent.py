"""What reports may be worth: nothing, until a mechanism says otherwise; and why."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.estimate.estimates import Estimate


class Silent:
    """Base of the mechanisms, for those whose reports have no unbiased worth: each question is refused."""

    _no_mean: ClassVar[str] = "its reports are not numbers"
    _no_frequencies: ClassVar[str] = "its reports are not categories"
    _no_letters: ClassVar[str] = "the mean of its reports does not tell the input"

    def unbias(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return reports as numbers whose mean over the coins is the record, where the mechanism has them.

        Raises
        ------
        ValueError
            Where it has none. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no mean to estimate: {self._no_mean}")

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the records, where the mechanism has one; see its own method.

        Raises
        ------
        ValueError
            Where it has none. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no mean to estimate: {self._no_mean}")

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate the frequencies of the categories, where the mechanism has them; see its own method.

        Raises
        ------
        ValueError
            Where it has none. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no frequencies to estimate: {self._no_frequencies}")

    def mean_variance(self) -> float:
        """Return the variance of one report's unbiased letter, averaged over inputs, where it has one.

        Raises
        ------
        ValueError
            Where no unbiased decode exists. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no unbiased letters: {self._no_letters}")

    def worst_variance(self) -> float:
        """Return the variance of one report's unbiased letter for the worst input, where it has one.

        Raises
        ------
        ValueError
            Where no unbiased decode exists. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no unbiased letters: {self._no_letters}")
