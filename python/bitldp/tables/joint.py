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

__all__ = ["MOST_TERMS", "Joint", "Moments", "Read", "Sums", "Term", "estimate_of"]

#: Entries of readings that are multiplied, each as (number of the reading, number of the entry).
Term = tuple[tuple[int, int], ...]

#: Terms of one question: their second moments are a square of as many.
MOST_TERMS = 4096

_LISTED = 1 << 18  # patterns of codes that are counted one by one
_LETTERS = 1 << 18  # numbers of terms that are held at once: they stay in a cache
_BITS = 21  # of a term's upper part, and of its lower part
_EXACT = 1 << 11  # rows whose products of such parts sum to less than 2^53: in any order, without rounding


class Moments:
    """Number of records, mean and covariance of the terms of a question."""

    def __init__(self, n: int, mean: NDArray[np.float64], covariance: NDArray[np.float64]) -> None:
        self.n, self.mean, self.covariance = n, mean, covariance


class _Wide:
    """Array of integers of up to 2^103, as two words; it grows by exact additions."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._low, self._high = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def add(self, numbers: NDArray[Any]) -> None:
        """Add whole numbers below 2^54."""
        self._low += numbers.astype(np.int64)
        self._high += self._low >> 40
        self._low &= (1 << 40) - 1

    def merge(self, other: _Wide) -> None:
        """Add another."""
        self._high += other._high
        self.add(other._low)

    def to_json(self) -> list[int]:
        """Return the numbers as a list."""
        pairs = zip(self._high.ravel().tolist(), self._low.ravel().tolist(), strict=True)
        return [(high << 40) + low for high, low in pairs]

    def restore(self, numbers: Sequence[Any]) -> None:
        """Take the numbers of a list."""
        if not all(type(each) is int for each in numbers):
            raise TypeError
        self._high = np.array([each >> 40 for each in numbers], np.int64).reshape(self._high.shape)
        self._low = np.array([each % (1 << 40) for each in numbers], np.int64).reshape(self._low.shape)

    @property
    def values(self) -> NDArray[np.float64]:
        """The numbers, rounded to floats."""
        made: NDArray[np.float64] = self._high.astype(np.float64) * 2.0**40 + self._low.astype(np.float64)
        return made


class Joint:
    """Sum of the terms of a question, and of their products.

    Where the reports together are one of few patterns, the patterns are counted. Otherwise products of
    readings are summed, as integers: a term is a multiple of 2^-42 of its bound. So sums are the same in any
    order, of any parts.

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
        self._patterns = np.zeros(0, np.int64)  # ascending, and how often each was seen
        self._counts = np.zeros(0, np.int64)
        bounds = np.concatenate([[1.0], *(np.abs(each.ends).max(axis=0) for _, each in readings)])
        reach = bounds[self._factors].prod(axis=1) * (1.0 + 1e-6)
        self._units = 2.0 ** (np.ceil(np.log2(np.where(reach > 0.0, reach, 1.0))) - _BITS)
        self._sum = _Wide((2, 0 if self._listed else len(terms)))
        self._squares = _Wide((0, 0) if self._listed else (len(terms), 2 * len(terms)))

    def update(self, reports: dict[Any, Any], n: int) -> None:
        """Add the reports of n records, by key."""
        self.n += n
        if self._listed:
            if self._shape:
                codes = [_codes(each, reports[key]) for key, each in self._sources.items()]
                self._count(*_counted(np.ravel_multi_index(codes, self._shape), int(np.prod(self._shape))))
            return
        size = len(self._units)
        step = min(_EXACT, max(1, _LETTERS // max(1, size)))
        for start in range(0, n, step):
            some = {key: _rows(each, slice(start, start + step)) for key, each in reports.items()}
            terms = self._terms([each.read(some[key]) for key, each in self._readings], min(step, n - start))
            terms /= self._units[:, None]
            both = np.concatenate([np.rint(terms), np.empty_like(terms)])
            np.rint((terms - both[:size]) * 2.0**_BITS, out=both[size:])
            self._sum.add(both.sum(axis=1).reshape(2, size))
            self._squares.add((both @ both.T)[:size])  # of an array with itself: by one thread, where small

    def _count(self, patterns: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Count patterns, which are ascending."""
        every = np.union1d(self._patterns, patterns)
        total = np.zeros(len(every), np.int64)
        total[np.searchsorted(every, self._patterns)] += self._counts
        total[np.searchsorted(every, patterns)] += counts
        self._patterns, self._counts = every, total

    def _terms(self, values: Sequence[NDArray[np.float64]], rows: int) -> NDArray[np.float64]:
        """Return the terms of readings, shape (terms, rows)."""
        entries = np.concatenate([np.ones((1, rows)), *(each.T for each in values)])
        terms: NDArray[np.float64] = entries[self._factors[:, 0]]
        for column in self._factors.T[1:]:
            terms *= entries[column]
        return terms

    def merge(self, other: Joint) -> None:
        """Add the sums of another, of the same terms."""
        self.n += other.n
        self._count(other._patterns, other._counts)
        self._sum.merge(other._sum)
        self._squares.merge(other._squares)

    def to_json(self) -> dict[str, Any]:
        """Return the sums as JSON values."""
        if self._listed:
            return {"n": self.n, "patterns": self._patterns.tolist(), "counts": self._counts.tolist()}
        return {"n": self.n, "sum": self._sum.to_json(), "squares": self._squares.to_json()}

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take the sums of JSON values, as `to_json` gives them.

        Raises
        ------
        KeyError, ValueError, TypeError
            For what is none.
        """
        if type(document["n"]) is not int or document["n"] < 0:
            raise TypeError
        self.n = document["n"]
        if not self._listed:
            self._sum.restore(document["sum"])
            self._squares.restore(document["squares"])
            return
        patterns, counts = (np.array(document[name], np.int64) for name in ("patterns", "counts"))
        inside = len(patterns) == 0 or 0 <= patterns.min() <= patterns.max() < np.prod(self._shape)
        whole = not self._shape or counts.sum() == self.n
        if not (inside and whole and (np.diff(patterns) > 0).all() and (counts > 0).all()):
            raise ValueError
        self._count(patterns, counts)

    def moments(self) -> Moments:
        """Return the moments of the terms over the records, which are one or more."""
        size = len(self._units)
        if self._listed:
            total, squares = np.zeros(size), np.zeros((size, size))
            step = max(1, _LETTERS // max(1, size))
            for start in range(0, max(len(self._patterns), not self._shape), step):
                some, counts = self._patterns[start : start + step], self._counts[start : start + step]
                if not self._shape:
                    terms, counts = self._terms([], 1), np.array([self.n])
                else:
                    codes = dict(zip(self._sources, np.unravel_index(some, self._shape), strict=True))
                    values = [
                        each.table[codes[key]] for key, each in self._readings if each.table is not None
                    ]
                    terms = self._terms(values, len(some))
                weighed = terms * counts
                total += weighed.sum(axis=1)
                squares += weighed @ terms.T
        else:
            upper, lower = self._sum.values
            total = (upper + lower * 2.0**-_BITS) * self._units
            both = self._squares.values
            cross = both[:, size:] * 2.0**-_BITS
            squares = (both[:, :size] + cross + cross.T) * np.outer(self._units, self._units)
        mean = total / self.n
        covariance = squares / self.n - np.outer(mean, mean)
        return Moments(self.n, mean, covariance * (self.n / max(1, self.n - 1)))


def _counted(codes: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct codes below a size, ascending, and how often each comes."""
    if size > 8 * len(codes):
        patterns, counts = np.unique(codes, return_counts=True)
        return patterns, counts
    counts = np.bincount(codes, minlength=size)
    patterns = np.flatnonzero(counts)
    return patterns, counts[patterns]


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


class Sums:
    """Terms of some readings, and the counts of one mechanism where a question takes its own estimates.

    Parameters
    ----------
    reads : sequence of Read
    terms : sequence of Term
    number, codec : int and ColumnCodec, optional
        The mechanism.
    """

    def __init__(
        self, reads: Sequence[Read], terms: Sequence[Term], number: int = 0, codec: ColumnCodec | None = None
    ) -> None:
        self._sources = {each.source: each.codec for each in reads}
        self.joint = Joint([(each.source, each.reading) for each in reads], terms)
        self._number, self._codec = number, codec
        self.counts: Any = None if codec is None else codec.counts()

    def update(self, reports: Mapping[int, tuple[Any, str]], n: int) -> None:
        """Add the reports of n records, by codec."""
        if not n:
            return
        if self.counts is not None:
            own, form = reports[self._number]
            self.counts.update(own, **({} if form == "codes" else {"output": form}))
        self.joint.update({source: reports[codec][0] for source, codec in self._sources.items()}, n)

    def merge(self, other: Sums) -> None:
        """Add the sums of another, of the same readings and terms."""
        self.joint.merge(other.joint)
        if self.counts is not None:
            self.counts.merge(other.counts)

    def to_json(self) -> dict[str, Any]:
        """Return the sums as JSON values."""
        counts = {} if self.counts is None else {"counts": self.counts.to_json()}
        return {"terms": self.joint.to_json(), **counts}

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take the sums of JSON values, as `to_json` gives them.

        Raises
        ------
        KeyError, ValueError, TypeError
            For what is none.
        """
        self.joint.restore(document["terms"])
        if self._codec is not None:
            self.counts = type(self.counts).from_json(document["counts"], self._codec.counted)


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
