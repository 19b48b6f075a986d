"""Moments of readings that are multiplied: what a question about several columns adds up, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.estimate.estimates import Estimate
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.reading import Reading

__all__ = ["MOST_TERMS", "Alone", "Joint", "Moments", "Read", "Term", "Terms", "estimate_of"]

#: Entries of readings that are multiplied, each as (number of the reading, number of the entry).
Term = tuple[tuple[int, int], ...]

#: Terms of one question: their second moments are a square of as many.
MOST_TERMS = 4096

_LISTED = 1 << 18  # patterns of codes that are counted one by one
_LETTERS = 1 << 18  # numbers of terms that are held at once: they stay in a cache


class Moments:
    """Number of records, mean and covariance of the terms of a question."""

    def __init__(self, n: int, mean: NDArray[np.float64], covariance: NDArray[np.float64]) -> None:
        self.n, self.mean, self.covariance = n, mean, covariance


class Joint:
    """Sum of the terms of a question, and of their products.

    Where the reports together are one of few patterns, the patterns are counted, in integers; otherwise
    products of readings are summed.

    Parameters
    ----------
    readings : sequence of (key, Reading)
        Readings of one key are of the same report.
    terms : sequence of Term
        Each a product; the empty product is 1.

    Raises
    ------
    PlanError
        For more terms than a question has.
    """

    def __init__(self, readings: Sequence[tuple[Any, Reading]], terms: Sequence[Term]) -> None:
        if len(terms) > MOST_TERMS:
            raise PlanError(
                f"question: {len(terms):,} cells are too many; {MOST_TERMS:,} are answered at once"
            )
        self.n = 0
        self._readings = readings
        starts = np.cumsum([1, *(len(each.labels) for _, each in readings)])  # 0 is the number 1
        most = max(1, *(len(term) for term in terms)) if terms else 1
        padded = [[*(int(starts[i]) + j for i, j in term), *[0] * (most - len(term))] for term in terms]
        self._factors = np.array(padded, np.intp).reshape(len(terms), most)
        self._sources: dict[Any, Reading] = {}
        for key, each in readings:
            self._sources.setdefault(key, each)
        tables = [each.table for each in self._sources.values()]
        sizes = [0 if table is None else len(table) for table in tables]
        self._listed = all(each.table is not None for _, each in readings) and np.prod(sizes) <= _LISTED
        self._shape = tuple(sizes)
        self._counts = np.zeros(int(np.prod(sizes)) if self._listed else 0, np.int64)
        self._sum = np.zeros(len(terms))
        self._squares = np.zeros((len(terms), len(terms)))

    def update(self, reports: dict[Any, Any], n: int) -> None:
        """Add the reports of n records, by key."""
        self.n += n
        if self._listed:
            if not self._shape:
                return
            codes = [_codes(each, reports[key]) for key, each in self._sources.items()]
            self._counts += np.bincount(np.ravel_multi_index(codes, self._shape), minlength=len(self._counts))
            return
        step = max(1, _LETTERS // max(1, len(self._sum)))
        for start in range(0, n, step):
            some = {key: _rows(each, slice(start, start + step)) for key, each in reports.items()}
            self._add([each.read(some[key]) for key, each in self._readings], min(step, n - start))

    def _add(
        self, values: Sequence[NDArray[np.float64]], rows: int, counts: NDArray[Any] | None = None
    ) -> None:
        """Add the terms of readings, as often as counts say."""
        entries = np.concatenate([np.ones((1, rows)), *(each.T for each in values)])
        terms = entries[self._factors[:, 0]]
        for column in self._factors.T[1:]:
            terms *= entries[column]
        weighed = terms if counts is None else terms * counts
        self._sum += weighed.sum(axis=1)
        self._squares += weighed @ terms.T

    def moments(self) -> Moments:
        """Return the moments of the terms over the records, which are one or more."""
        if self._listed:
            self._sum, self._squares = np.zeros_like(self._sum), np.zeros_like(self._squares)
            seen = np.flatnonzero(self._counts)
            step = max(1, _LETTERS // max(1, len(self._sum)))
            for start in range(0, len(seen), step):
                some = seen[start : start + step]
                codes = dict(zip(self._sources, np.unravel_index(some, self._shape), strict=True))
                self._add(
                    [each.table[codes[key]] for key, each in self._readings if each.table is not None],
                    len(some),
                    self._counts[some],
                )
            if not self._shape:
                self._add([], 1, np.array([self.n]))
        mean = self._sum / self.n
        covariance = self._squares / self.n - np.outer(mean, mean)
        return Moments(self.n, mean, covariance * (self.n / max(1, self.n - 1)))


def _rows(reports: Any, rows: slice) -> Any:
    """Return the reports of some records: rows of an array, or of each of several."""
    if not isinstance(reports, tuple):
        return reports[rows]
    parts = [each[rows] for each in reports]
    return type(reports)(*parts) if hasattr(reports, "_fields") else tuple(parts)


def _codes(reading: Reading, reports: Any) -> NDArray[np.int64]:
    assert reading.codes is not None  # it has a table
    return reading.codes(reports)


@dataclass(frozen=True)
class Read:
    """A reading and the codec whose reports it reads.

    Attributes
    ----------
    codec : int
        Number of the codec.
    reading : Reading
    """

    codec: int
    reading: Reading

    @property
    def source(self) -> tuple[int, str]:
        """Name of the reports: those of one column of one codec are the same."""
        return self.codec, self.reading.column


class Terms:
    """Terms of several readings."""

    def __init__(self, reads: Sequence[Read], terms: Sequence[Term]) -> None:
        self._sources = {each.source: each.codec for each in reads}
        self.joint = Joint([(each.source, each.reading) for each in reads], terms)

    def update(self, reports: Mapping[int, tuple[Any, str]], n: int) -> None:
        """Add the reports of n records, by codec."""
        if n:
            self.joint.update({source: reports[codec][0] for source, codec in self._sources.items()}, n)


class Alone(Terms):
    """Terms of one reading, and the counts of its mechanism."""

    def __init__(self, own: Read, terms: Sequence[Term], codec: ColumnCodec) -> None:
        super().__init__([own], terms)
        self._codec, self.counts = own.codec, codec.counts()

    def update(self, reports: Mapping[int, tuple[Any, str]], n: int) -> None:
        """Add the reports of n records, by codec."""
        if n:
            own, form = reports[self._codec]
            self.counts.update(own, **({} if form == "codes" else {"output": form}))
            super().update(reports, n)


def estimate_of(counts: Any, codec: ColumnCodec, reading: Reading, size: int) -> Estimate:
    """Return the estimate that counts give of one column; none where no report is about it."""
    place = codec.columns.index(reading.column)
    every = getattr(counts, "attributes", None)
    try:
        made: Estimate = (counts if every is None else every[place]).estimate()
    except ValueError:  # there are no reports: what has no estimate was refused before
        return Estimate(np.full(size, np.nan), np.full(size, np.nan), 0)
    if reading.labels != (None,):
        return made
    if every is None and len(codec.columns) > 1:
        made = made[place : place + 1]
    return codec.rescaled(made, (reading.column,))
