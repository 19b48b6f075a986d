"""Counts of reports that no unbiased estimate can be made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bitldp.estimate import saved
from bitldp.estimate.accumulators import BatchAccumulator
from bitldp.estimate.estimates import Estimate

__all__ = ["Uncounted", "Unestimated"]


class Uncounted(BatchAccumulator):
    """Number of reports that no unbiased estimate can be made of."""

    kind = "uncounted"

    def __init__(self, mechanism: Unestimated) -> None:
        super().__init__(mechanism)
        self._reason = mechanism.reason

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        """Add the number of reports."""
        self.n = saved.together("reports", self.n, len(reports))

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
