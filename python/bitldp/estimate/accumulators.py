"""Streaming accumulators: update with batches, merge across machines, pass on as JSON.

An accumulator holds reports in aggregate only. It belongs to one mechanism: it refuses to merge with
another's, and its JSON carries the mechanism's parameters, which loading compares.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.estimate import saved
from bitldp.estimate.estimates import Estimate, frequencies

__all__ = ["Accumulator", "CountAccumulator", "MeanAccumulator"]

_FORMAT = "bitldp.accumulator"
_VERSION = 1
_BATCH = 1 << 20  # letters decoded at once: bounds the working memory of an update to a few tens of MB

_A = TypeVar("_A", bound="Accumulator")


@runtime_checkable
class Accumulated(Protocol):
    """What an accumulator knows of the mechanism whose reports it holds."""

    def fingerprint(self) -> dict[str, Any]:
        """Return what two mechanisms share whose reports may be aggregated together."""

    def accumulator(self) -> Accumulator:
        """Return an empty accumulator."""


class Accumulator(ABC):
    """Base of the accumulators; `Mechanism.accumulator()` makes them.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are accumulated.
    """

    kind: ClassVar[str]

    def __init__(self, mechanism: Accumulated) -> None:
        self.mechanism = mechanism
        self.n = 0

    def _same(self, other: object) -> None:
        if type(other) is not type(self):
            raise TypeError(f"other: must be a {type(self).__name__}, not {type(other).__name__}")
        if other.mechanism != self.mechanism:
            raise ValueError("other: accumulates the reports of another mechanism, or of other parameters")

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
            If `text` is no str, or `mechanism` no mechanism, or its accumulators are of another class than
            this one.
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


class CountAccumulator(Accumulator):
    """Exact counts of reported categories, in any order of updates and merges.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are counted.
    shape : tuple of int
        Shape of the counts: (categories,) or (features, categories).
    count : callable
        Counts one batch of reports: (n, counts).
    law : tuple of float
        (p, q): probability of reporting a category for a record that has it, and that has not.
    exclusive : bool
        Whether a report is one category (of each feature), so that the counts add up to the number of
        reports; else a report may count for any number of categories.
    """

    kind = "counts"

    def __init__(
        self,
        mechanism: Accumulated,
        shape: tuple[int, ...],
        count: Callable[[ArrayLike], tuple[int, NDArray[np.int64]]],
        law: tuple[float, float],
        *,
        exclusive: bool = True,
    ) -> None:
        super().__init__(mechanism)
        self.counts: NDArray[np.int64] = np.zeros(shape, np.int64)
        self._count = count
        self._law = law
        self._exclusive = exclusive

    def update(self, reports: ArrayLike) -> None:
        """Add a batch of reports, in the form that the mechanism's `estimate_frequencies` takes."""
        n, counts = self._count(reports)
        self.n = saved.together("reports", self.n, n)
        self.counts += counts

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
        return frequencies(self.counts, self.n, *self._law, project=project)

    def _state(self) -> dict[str, Any]:
        return {"n": self.n, "counts": self.counts.tolist()}

    def _restore(self, state: dict[str, Any]) -> None:
        n = saved.whole(state.get("n"))
        self.counts = saved.counts(state.get("counts"), self.counts.shape, n, exclusive=self._exclusive)
        self.n = n


class MeanAccumulator(Accumulator):
    """Mean and variance of unbiased letters by feature, merged as by Chan, Golub and LeVeque (1979).

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are accumulated.
    features : int
        Letters of a record.
    letters : callable
        Letters of a batch of reports, shape (n, features).
    """

    kind = "mean"

    def __init__(
        self, mechanism: Accumulated, features: int, letters: Callable[[ArrayLike], NDArray[np.float64]]
    ) -> None:
        super().__init__(mechanism)
        self.mean: NDArray[np.float64] = np.zeros(features)
        self.m2: NDArray[np.float64] = np.zeros(features)
        self._letters = letters

    def update(self, reports: ArrayLike) -> None:
        """Add a batch of reports, in the form that the mechanism's `estimate_mean` takes.

        Results of the same reports in other batches agree up to rounding of floats.
        """
        batch = np.asarray(reports)
        if batch.ndim < 2:
            self._add(self._letters(batch))
            return
        before = self.n, self.mean, self.m2
        step = max(1, _BATCH // max(1, len(self.mean)))
        try:
            for start in range(0, max(1, len(batch)), step):
                self._add(self._letters(batch[start : start + step]))
        except (TypeError, ValueError):
            self.n, self.mean, self.m2 = before  # all of a batch or nothing
            raise

    def _add(self, letters: NDArray[np.float64]) -> None:
        if len(letters):
            mean = letters.mean(axis=0)
            self._combine(len(letters), mean, np.square(letters - mean).sum(axis=0))

    def _combine(
        self, n: int, mean: NDArray[np.float64], m2: NDArray[np.float64], name: str = "reports"
    ) -> None:
        total = saved.together(name, self.n, n)
        if not total:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # looked at next
            shift = mean - self.mean
            mean = self.mean + shift * (n / total)
            m2 = self.m2 + m2 + shift * shift * (self.n / total * n)
        if not (np.isfinite(mean).all() and np.isfinite(m2).all()):
            raise ValueError(f"{name}: the sum of squares would pass the range of doubles")
        self.n, self.mean, self.m2 = total, mean, m2

    def merge(self, other: MeanAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism.

        Raises
        ------
        ValueError, TypeError
            For an accumulator of another mechanism or kind, or if there would be 2**63 reports or more.
            Nothing is added then.
        """
        self._same(other)
        self._combine(other.n, other.mean, other.m2, "other")

    def estimate(self) -> Estimate:
        """Estimate the mean of every feature, with the standard error of the sample.

        Raises
        ------
        ValueError
            If nothing has been accumulated.
        """
        if not self.n:
            raise ValueError("reports: at least one is needed for an estimate")
        if self.n == 1:
            return Estimate(self.mean.copy(), np.full_like(self.mean, np.nan), 1)
        return Estimate(self.mean.copy(), np.sqrt(self.m2 / (self.n - 1) / self.n), self.n)

    def _state(self) -> dict[str, Any]:
        return {"n": self.n, "mean": self.mean.tolist(), "m2": self.m2.tolist()}

    def _restore(self, state: dict[str, Any]) -> None:
        n = saved.whole(state.get("n"))
        self.mean, self.m2 = saved.moments(state, len(self.mean), n)
        self.n = n
