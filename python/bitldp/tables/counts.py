"""Counts of reports that no unbiased estimate can be made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.estimate import saved
from bitldp.estimate.accumulators import BatchAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.grouping import Grouping

__all__ = ["Uncounted", "Unestimated"]


class Uncounted(BatchAccumulator):
    """Number of reports that no unbiased estimate can be made of."""

    kind = "uncounted"

    def __init__(self, mechanism: Unestimated) -> None:
        super().__init__(mechanism)
        self._reason = mechanism.reason

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        """Add the number of reports."""
        self.take(len(reports), np.zeros(0, np.int64))

    def by_group(self, reports: Any, output: str, groups: Grouping) -> NDArray[Any]:
        """Return nothing of each group but that it is there."""
        return np.zeros((groups.count, 0), np.int64)

    def take(self, n: int, integers: NDArray[Any]) -> None:
        """Add a number of reports."""
        self.n = saved.together("reports", self.n, n)

    def merge(self, other: Uncounted) -> None:
        """Add the number of another."""
        self._same(other)
        self.n = saved.together("other", self.n, other.n)

    def estimate(self) -> Estimate:
        """Raise the reason why there is none."""
        raise ValueError(self._reason)

    def _state(self) -> dict[str, Any]:
        return {"n": self.n}

    def _restore(self, state: dict[str, Any]) -> None:
        self.n = saved.whole(state.get("n"))


@dataclass(frozen=True)
class Unestimated:
    """A mechanism without an unbiased estimate, and the reason."""

    mechanism: Any
    reason: str

    def fingerprint(self) -> Any:
        """Return that of the mechanism."""
        return self.mechanism.fingerprint()

    def accumulator(self) -> Uncounted:
        """Return an empty count."""
        return Uncounted(self)

    def influence(self, share: float) -> float:
        """Raise the reason why there is no estimate to move."""
        raise ValueError(self.reason)

    @property
    def _report_parts(self) -> Any:
        """The arrays of a report."""
        return self.mechanism._report_parts

    def _join(self, parts: Any) -> Any:
        """Return reports of their arrays."""
        return self.mechanism._join(parts)
