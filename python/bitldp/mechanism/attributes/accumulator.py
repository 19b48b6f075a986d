"""Accumulator of records of attributes: that of each attribute, updated together."""

from __future__ import annotations

from typing import Any

from bitldp.base import checks
from bitldp.estimate import saved
from bitldp.estimate.accumulators import BatchAccumulator, unpacked
from bitldp.estimate.estimates import Estimate

__all__ = ["AttributesAccumulator"]


class AttributesAccumulator(BatchAccumulator):
    """Accumulators of all attributes of a record: each counts the reports of its own.

    Parameters
    ----------
    mechanism : Attributes
        Whose reports are accumulated.
    """

    kind = "attributes"

    def __init__(self, mechanism: Any) -> None:
        super().__init__(mechanism)
        self.attributes: tuple[Any, ...] = tuple(each.accumulator() for each in mechanism.attributes)

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        checks.choice("output", output, ("codes", "packed"))
        mechanism: Any = self.mechanism
        reports = unpacked(mechanism, reports, records)
        fresh = [each.accumulator() for each in mechanism.attributes]
        n = 0
        for accumulator, own in zip(fresh, mechanism.answers(reports), strict=True):
            if len(own.records):
                accumulator.update(own.reports, threads=threads)
            n += accumulator.n
        n //= mechanism.k or len(fresh)
        total = saved.together("reports", self.n, n)
        for mine, more in zip(self.attributes, fresh, strict=True):
            mine.merge(more)
        self.n = total

    def merge(self, other: AttributesAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism.

        Raises
        ------
        ValueError, TypeError
            For an accumulator of another mechanism or kind, or if there would be 2**63 reports or more.
        """
        self._same(other)
        total = saved.together("other", self.n, other.n)
        for mine, theirs in zip(self.attributes, other.attributes, strict=True):
            mine.merge(theirs)
        self.n = total

    def estimate(self, *, project: bool = False) -> Any:
        """Estimate every attribute from its own reports, as the mechanism's estimators return it.

        Parameters
        ----------
        project : bool
            Whether frequencies are projected to the simplex, which makes them biased.

        Raises
        ------
        ValueError
            If there is an attribute of which nothing has been reported yet.
        """
        mechanism: Any = self.mechanism
        return mechanism._joined([self._one(place, project) for place in range(len(self.attributes))])

    def _one(self, place: int, project: bool) -> Estimate:
        accumulator = self.attributes[place]
        if not accumulator.n:
            raise ValueError(f"reports: at least one of attribute {place} is needed for an estimate")
        estimate: Estimate = accumulator.estimate(**({"project": project} if project else {}))
        return estimate

    def _state(self) -> dict[str, Any]:
        return {"n": self.n, "attributes": [each._state() for each in self.attributes]}

    def _restore(self, state: dict[str, Any]) -> None:
        n, states = saved.whole(state.get("n")), state.get("attributes")
        if not isinstance(states, list) or len(states) != len(self.attributes):
            raise ValueError("text: the contents are damaged")
        for each, own in zip(self.attributes, states, strict=True):
            if not isinstance(own, dict):
                raise ValueError("text: the contents are damaged")
            each._restore(own)
        mechanism: Any = self.mechanism
        if sum(each.n for each in self.attributes) != n * (mechanism.k or len(states)):
            raise ValueError("text: the number of reports is damaged")
        self.n = n
