"""Streaming accumulators: update with batches, merge across machines, pass on as JSON.

An accumulator holds reports in aggregate only. It belongs to one mechanism: it refuses to merge with
another's, and its JSON carries the mechanism's parameters, which loading compares.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bitldp._core import unpack
from bitldp.base import checks
from bitldp.estimate import saved
from bitldp.estimate.estimates import LIARS, Estimate, frequencies
from bitldp.estimate.grouping import Grouping

__all__ = ["Accumulator", "BatchAccumulator", "CountAccumulator"]

_FORMAT = "bitldp.accumulator"
_VERSION = 1

_A = TypeVar("_A", bound="Accumulator")
_B = TypeVar("_B", bound="BatchAccumulator")


@runtime_checkable
class Accumulated(Protocol):
    """Mechanism as an accumulator of its reports knows it."""

    def fingerprint(self) -> dict[str, Any]:
        """Return what two mechanisms share whose reports may be aggregated together."""

    def accumulator(self) -> Accumulator:
        """Return an empty accumulator."""

    @property
    def _report_parts(self) -> tuple[tuple[int, int], ...]:
        """(columns, bits) of each array of codes that makes one record's report."""

    def _join(self, parts: Any) -> Any:
        """Return reports of one array of shape (n, columns) for each part."""

    def influence(self, share: float) -> float:
        """Return how far a share of lying clients may move an entry of the estimate, or raise ValueError."""


class Accumulator(ABC):
    """Base of the accumulators; `Mechanism.accumulator()` makes them.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of the reports.
    """

    kind: ClassVar[str]
    _chance = 1.0  # that an honest record's report comes here, where its sender chooses; see `Reach`

    def __init__(self, mechanism: Accumulated) -> None:
        self.mechanism = mechanism
        self.n = 0

    def _judged(self, estimate: Estimate) -> Estimate:
        """Return an estimate that says how far liars could have moved it, where that is bounded."""
        try:
            influence = self.mechanism.influence(LIARS / (LIARS + (1.0 - LIARS) * self._chance))
        except ValueError:
            return estimate
        return replace(estimate, influence=influence)

    def _same(self, other: object) -> None:
        if type(other) is not type(self):
            raise TypeError(f"other: must be a {type(self).__name__}, not {type(other).__name__}")
        if other.mechanism != self.mechanism:
            raise ValueError("other: accumulates the reports of another mechanism, or of other parameters")

    def by_group(self, reports: Any, output: str, groups: Grouping) -> NDArray[Any] | None:
        """Return the integers that a batch of reports would add for each group, or raise as `update` does.

        Returns
        -------
        ndarray or None
            Shape (groups, ...), for `take`. None where reports add no integers of one shape, so that each
            group needs an accumulator of its own from the first report on.
        """
        return None

    def take(self, n: int, integers: NDArray[Any]) -> None:
        """Add the integers of n reports, as `by_group` gives them for one group."""
        raise TypeError(f"integers: a {type(self).__name__} holds no integers")

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Contents as JSON values."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Take over contents; ValueError where they do not fit."""

    def to_json(self) -> str:
        """Return the contents as a JSON text.

        Returns
        -------
        str
            Format and version, name and parameters of the mechanism, and the aggregate.
        """
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "kind": self.kind,
            "mechanism": self.mechanism.fingerprint(),
            "state": self._state(),
        }
        return json.dumps(document, allow_nan=False)

    @classmethod
    def from_json(cls: type[_A], text: str, mechanism: Accumulated) -> _A:
        """Return an accumulator with the contents of a JSON text.

        Parameters
        ----------
        text : str
            As `to_json` gives it.
        mechanism : Mechanism
            The mechanism whose reports were accumulated.

        Returns
        -------
        Accumulator
            Of the kind that ``mechanism.accumulator()`` makes.

        Raises
        ------
        ValueError
            If the text is not such a document, is of another version, of another mechanism or of other
            parameters, or damaged.
        TypeError
            If `text` is not a str, if `mechanism` is not a mechanism, or if its accumulators are of another
            class.
        """
        if not isinstance(mechanism, Accumulated):
            raise TypeError(f"mechanism: must be a Mechanism, not {type(mechanism).__name__}")
        accumulator = mechanism.accumulator()
        if not isinstance(accumulator, cls):
            raise TypeError(f"mechanism: accumulates with {type(accumulator).__name__}, not {cls.__name__}")
        accumulator._restore(accumulator._open(text))
        return accumulator

    def _open(self, text: str) -> dict[str, Any]:
        """Check a document's head against this accumulator; return its contents."""
        document = saved.document(text)
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise ValueError(f"text: is not a {_FORMAT} document")
        if document.get("version") != _VERSION:
            raise ValueError(f"text: version must be {_VERSION}, got {document.get('version')!r}")
        if document.get("kind") != self.kind:
            raise ValueError(f"text: kind must be {self.kind!r}, got {document.get('kind')!r}")
        # compared as JSON, since a tuple comes back as a list
        if document.get("mechanism") != json.loads(json.dumps(self.mechanism.fingerprint())):
            raise ValueError("text: accumulates the reports of another mechanism, or of other parameters")
        state = document.get("state")
        if not isinstance(state, dict):
            raise ValueError("text: the contents are damaged")
        return state


Count = Callable[[Any, "int | None", "int | None"], "tuple[int, NDArray[np.int64]]"]


def packed_records(output: Any, records: Any) -> int | None:
    """Return the number of records of packed reports, None for others; refuse what does not fit together."""
    checks.choice("output", output, ("codes", "bits", "packed"))
    if output == "packed":
        return checks.integer("records", records, 0)
    if records is not None:
        raise ValueError("records: is for output='packed'; other reports say themselves how many there are")
    return None


def unpacked(mechanism: Accumulated, reports: Any, records: int | None) -> Any:
    """Return packed reports of so many records as arrays of codes; others as they are."""
    if records is None:
        return reports
    parts = mechanism._report_parts
    arrays = reports if isinstance(reports, tuple) else (reports,)
    if len(arrays) != len(parts):
        raise ValueError(f"reports: {len(parts)} packed arrays are needed, got {len(arrays)}")
    return mechanism._join(
        [
            unpack(checks.plain("reports", array), bits, records * columns).reshape(records, columns)
            for array, (columns, bits) in zip(arrays, parts, strict=True)
        ]
    )


class BatchAccumulator(Accumulator):
    """Base of the accumulators that take a batch of reports as one argument."""

    def update(
        self,
        reports: Any,
        *,
        output: str = "codes",
        records: int | None = None,
        threads: int | None = None,
    ) -> None:
        """Add a batch of reports.

        Parameters
        ----------
        reports : array_like, or tuple of them
            As `randomize` gives them in the form `output`.
        output : {"codes", "bits", "packed"}
            One of the mechanism's `outputs` except "values". "codes" may be bits, if reports are bits.
        records : int, optional
            Number of records; needed for packed reports.
        threads : int, optional
            Number of threads; the result does not depend on it.

        Raises
        ------
        ValueError, TypeError
            For reports of another form, or out of range. Nothing is added then.
        """
        self._update(reports, output, packed_records(output, records), threads)

    def _filled(self: _B, reports: Any) -> _B:
        """Add a batch of reports; return the accumulator."""
        self.update(reports)
        return self

    @abstractmethod
    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        """Add a batch of reports; `records` is the number of packed ones, None for others."""


class CountAccumulator(BatchAccumulator):
    """Exact counts of reported categories, in any order of updates and merges.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of the reports.
    shape : tuple of int
        Shape of the counts: (categories,) or (features, categories).
    count : callable
        Counts one batch of reports: (n, counts), given the records of packed ones (else None) and threads.
    law : tuple of float
        (p, q): probability of reporting a category for a record that has it, and that has not.
    exclusive : bool
        Whether a report is one category (of each feature), so that the counts add up to the number of
        reports; else a report may count for any number of categories.
    doubt : callable, optional
        Describes what in n reports and their counts honest records cannot produce; empty if there is nothing.
    reported : {"codes", "bits"}, optional
        What reports are, where each code, or each bit that is 1, counts for the category of its number.
    """

    kind = "counts"

    def __init__(
        self,
        mechanism: Accumulated,
        shape: tuple[int, ...],
        count: Count,
        law: tuple[float, float],
        *,
        exclusive: bool = True,
        doubt: Callable[[int, NDArray[np.int64]], str] | None = None,
        reported: Literal["codes", "bits"] | None = None,
    ) -> None:
        super().__init__(mechanism)
        self._reported = reported
        self.counts: NDArray[np.int64] = np.zeros(shape, np.int64)
        self._count = count
        self._law = law
        self._exclusive = exclusive
        self._doubt = doubt

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        self.take(*self._count(reports, records, threads))

    def by_group(self, reports: Any, output: str, groups: Grouping) -> NDArray[Any] | None:
        """Return the counts of each group; see `Accumulator.by_group`."""
        if self._reported is None:
            return None
        n, _ = self._count(reports, None, None)  # which refuses what is no report
        array, shape = np.asarray(reports).reshape(n, -1), self.counts.shape
        made = groups.codes(array, shape[-1]) if self._reported == "codes" else groups.sums(array, 1)
        return None if made is None else made.reshape(groups.count, *shape)

    def take(self, n: int, integers: NDArray[Any]) -> None:
        """Add the counts of n reports."""
        self.n = saved.together("reports", self.n, n)
        self.counts += integers

    def merge(self, other: CountAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism.

        Raises
        ------
        ValueError, TypeError
            For an accumulator of another mechanism or kind, or if there would be 2**63 reports or more.
        """
        self._same(other)
        self.n = saved.together("other", self.n, other.n)
        self.counts += other.counts

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the frequencies: `bitldp.estimate.frequencies`.

        Raises
        ------
        ValueError
            If nothing has been accumulated.
        """
        result = self._judged(frequencies(self.counts, self.n, *self._law, project=project))
        return result if self._doubt is None else replace(result, doubt=self._doubt(self.n, self.counts))

    def _state(self) -> dict[str, Any]:
        return {"n": self.n, "counts": self.counts.tolist()}

    def _restore(self, state: dict[str, Any]) -> None:
        n = saved.whole(state.get("n"))
        self.counts = saved.counts(state.get("counts"), self.counts.shape, n, exclusive=self._exclusive)
        self.n = n
