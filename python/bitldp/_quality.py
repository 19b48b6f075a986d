"""What the reports of BRR are worth: the expected loss, and estimates where m is 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._parts import Part
from bitldp._window import CategoricalWindow
from bitldp.estimate import Estimate


@dataclass(frozen=True, eq=False, repr=False)
class Bipartite(CategoricalWindow):
    """Base of BRR: everything that is computed from its law rather than sampled from it."""

    # Set on the instance, by _build; ClassVar keeps them out of the dataclass' fields.
    _points: ClassVar[NDArray[np.float64]]
    _regions: ClassVar[list[Part]]
    _larger_is_better: ClassVar[bool]

    @property
    def report_bits(self) -> int:
        """Bits of one record's report in its packed form: as few a feature as tell the candidates apart."""
        return self._columns * (len(self._points) - 1).bit_length()

    def _check_speaks(self) -> tuple[float, float]:
        if len(self._regions) > 1:
            raise ValueError(
                "BRR: estimates are not offered across regions; build one mechanism for each region"
            )
        if self._regions[0].m > 1:
            reason = (
                "candidates at the ends have identical rows of the law, so no unbiased decode exists"
                if self._regions[0].alike
                else "an unbiased decode is offered for m = 1 only"
            )
            raise ValueError(f"BRR with m = {self._regions[0].m}: {reason}")
        return super()._check_speaks()

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the points that the records hold, where m = 1 and the points are on a line.

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
            If no unbiased decode exists (m >= 2, or epsilon 0), with regions, for points in space, for no
            reports.
        """
        if self._points.ndim > 1:
            raise ValueError("BRR: points in space have no mean here; see estimate_frequencies")
        p, q = self._check_speaks()
        n, counts = self._count(reports)
        if n < 1:
            raise ValueError("reports: at least one is needed for an estimate")
        letters = (self._points - q * self._points.sum()) / (p - q)  # sum over v of v (1[y = v] - q)/(p - q)
        shares = counts.reshape(-1, len(letters)) / n
        value = shares @ letters
        deviations = np.square(letters - value[:, None])
        spread = np.sum(shares * deviations, axis=1) / (n - 1) if n > 1 else np.full_like(value, np.nan)
        return Estimate(value, np.sqrt(spread), n)

    def expected_error(self) -> float:
        """Return the global expected error Q_g (Eq. 11): the mean loss of a report over uniform inputs.

        Returns
        -------
        float
            In units of the metric, computed from the integers of the channel.

        Raises
        ------
        ValueError
            If the mechanism has a `utility`; see `expected_utility`.
        """
        if self._larger_is_better:
            raise ValueError("utility: was given in place of a loss; see expected_utility")
        return sum(part.total_error() for part in self._regions) / len(self._points)

    def expected_utility(self) -> float:
        """Return the global utility Q_g of a mechanism that has a `utility`: the larger, the better.

        Raises
        ------
        ValueError
            If the mechanism has a loss; see `expected_error`.
        """
        if not self._larger_is_better:
            raise ValueError("utility: was not given; see expected_error")
        return -sum(part.total_error() for part in self._regions) / len(self._points)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one value: P[x, y] = P(report y | x), shape (N, N); zero between regions."""
        law = np.zeros((len(self._points),) * 2)
        for part in self._regions:
            law[np.ix_(part.members, part.members)] = part.law.channel.probabilities()
        return law
