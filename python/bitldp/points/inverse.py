"""Estimates by the inverse of a table: what each report says about every candidate, where the law tells."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bitldp.letters import solve

Refusal = Callable[[str], ValueError]


class Inverse:
    """The unbiased letters of a table, made when they are asked for.

    Parameters
    ----------
    law : callable
        Returns P(report | input), shape (N, N), or None where all inputs have the same law.
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
        """What a report (row) is worth for every candidate; raises where rows of the law are dependent."""
        law = self._law()
        found = None if law is None else solve.inverse(law)
        if found is None:
            raise self._refuse("the rows of the law are not independent, or too nearly dependent")
        return found

    @cached_property
    def letters(self) -> NDArray[np.float64]:
        """What each report is worth, so that the mean is the candidate, read-only; raises where none are."""
        law = self._law()
        found = None if law is None else solve.letters(law, self._points)
        if found is None:
            raise self._refuse("no letters of its reports have the candidates as their means")
        found.flags.writeable = False
        return found

    def letter_variance(self) -> NDArray[np.float64]:
        """Return the variance of a report's letter for each candidate."""
        letters, law = self.letters, self._law()
        moments: NDArray[np.float64] = np.sum(law * np.square(letters - self._points[:, None]), axis=1)
        return moments

    def variance(self) -> NDArray[np.float64]:
        """Return the variance of one report's indicators (columns) for each candidate (row)."""
        indicators, law = self.indicators, self._law()
        moments: NDArray[np.float64] = law @ np.square(indicators) - np.eye(len(indicators))
        return moments
