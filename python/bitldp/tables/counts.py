"""Counts of reported points, and the mean of the numbers that they are worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitldp.estimate import saved
from bitldp.estimate.accumulators import BatchAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.statistics import counts_of
from bitldp.tables.cells import Points
from bitldp.tables.part import Part

__all__ = ["PointCounts", "Uncounted", "countable", "counts_for"]


def counts_for(part: Part) -> Any:
    """Return empty counts of a part's reports."""
    return countable(part).accumulator()


def countable(part: Part) -> Any:
    """Return what the counts of a part belong to."""
    if isinstance(part.codec, Points):
        return _Points(part.mechanism, (part.codec.low, part.codec.high, part.codec.points))
    try:
        part.mechanism.accumulator()
    except ValueError as error:
        return _Silent(part.mechanism, str(error))
    return part.mechanism


class Uncounted(BatchAccumulator):
    """Number of reports that no unbiased estimate can be made of."""

    kind = "uncounted"

    def __init__(self, mechanism: Any, reason: str) -> None:
        super().__init__(mechanism)
        self._reason = reason

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        """Add the number of reports."""
        self.n = saved.together("reports", self.n, len(reports))

    def merge(self, other: Uncounted) -> None:
        """Add the number of another."""
        self._same(other)
        self.n = saved.together("other", self.n, other.n)

    def estimate(self) -> Estimate:
        """Say why there is none."""
        raise ValueError(self._reason)

    def _state(self) -> dict[str, Any]:
        return {"n": self.n}

    def _restore(self, state: dict[str, Any]) -> None:
        self.n = saved.whole(state.get("n"))


class PointCounts(BatchAccumulator):
    """Counts of the points of an interval that were reported, of a mechanism that knows points by number."""

    kind = "points"

    def __init__(self, mechanism: Any, points: tuple[float, float, int]) -> None:
        super().__init__(mechanism)
        self._law = mechanism
        self.counts = np.zeros(points[2], np.int64)

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        """Add the numbers of reported points."""
        codes = np.ascontiguousarray(reports)
        self.n = saved.together("reports", self.n, len(codes))
        self.counts += counts_of(codes, 1, len(self.counts), "codes", len(codes), None)[0]

    def merge(self, other: PointCounts) -> None:
        """Add the counts of another of the same kind."""
        self._same(other)
        self.n = saved.together("other", self.n, other.n)
        self.counts += other.counts

    def estimate(self) -> Estimate:
        """Estimate the mean of the numbers, each at its nearest point, without bias.

        Raises
        ------
        ValueError
            If the law has no unbiased letters, or nothing was counted.
        """
        if not self.n:
            raise ValueError("estimate: nothing has been counted")
        letters = self._law.letters_of()
        mean = float(self.counts @ letters) / self.n
        square = float(self.counts @ (letters - mean) ** 2)
        stderr = math.sqrt(square / (self.n - 1) / self.n) if self.n > 1 else math.nan
        return Estimate(np.array([mean]), np.array([stderr]), self.n)

    def _state(self) -> dict[str, Any]:
        return {"n": self.n, "counts": self.counts.tolist()}

    def _restore(self, state: dict[str, Any]) -> None:
        n = saved.whole(state.get("n"))
        self.counts = saved.counts(state.get("counts"), self.counts.shape, n, exclusive=True)
        self.n = n


@dataclass(frozen=True)
class _Points:
    """A mechanism on the points of an interval."""

    mechanism: Any
    points: tuple[float, float, int]

    def letters_of(self) -> Any:
        """Return the unbiased number of each point; raise where there is none."""
        numbers = np.linspace(*self.points)
        if self.mechanism.takes == "points":
            return np.asarray(self.mechanism.unbias(np.arange(len(numbers))))
        return np.asarray(self.mechanism.letters_on(numbers))

    def fingerprint(self) -> dict[str, Any]:
        return {"points": list(self.points), **self.mechanism.fingerprint()}

    def accumulator(self) -> PointCounts:
        return PointCounts(self, self.points)

    @property
    def report_parts(self) -> Any:
        return self.mechanism.report_parts

    def join(self, parts: Any) -> Any:
        return self.mechanism.join(parts)


@dataclass(frozen=True)
class _Silent:
    """A mechanism without an unbiased estimate, and why."""

    mechanism: Any
    reason: str

    def fingerprint(self) -> Any:
        return self.mechanism.fingerprint()

    def accumulator(self) -> Uncounted:
        return Uncounted(self, self.reason)

    @property
    def report_parts(self) -> Any:
        return self.mechanism.report_parts

    def join(self, parts: Any) -> Any:
        return self.mechanism.join(parts)
