"""Columns of numbers that are put on the points of an interval, and counts of reported points."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.estimate import saved
from bitldp.estimate.accumulators import BatchAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.grouping import Grouping
from bitldp.estimate.intervals import LetterLaw
from bitldp.estimate.inverse import averaged
from bitldp.estimate.statistics import counts_of
from bitldp.letters.reach import Reach
from bitldp.tables.codec import Batch, ColumnCodec
from bitldp.tables.numbers import numbers_of, unbiased_or_reported, undecoded
from bitldp.tables.reading import Of, Reading, by_code, indicators, refused
from bitldp.tables.written import Decoding, codes_of_values

__all__ = ["PointCounts", "Points"]


class Points(ColumnCodec, takes="points"):
    """A number as the nearest of N equidistant points of a public interval; an end, if it is outside.

    Mechanisms of points take the numbers themselves. Those of categories take the indices of the points, on
    an interval that the column has.
    """

    def _check(self) -> None:
        settings, mechanism = self.settings, self.mechanism
        settings.refuse_count(mechanism)
        settings.refuse_several()
        if mechanism._span is not None and settings.interval is not None:
            raise PlanError(f"{settings.title}: interval: {settings.mechanism} has its own")
        if mechanism._span is None and not mechanism._on_points:
            raise PlanError(f"{settings.title}: interval: {settings.mechanism} takes categories")
        settings.refuse_unless_numeric()

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the interval, both of which are points."""
        low, high = self.mechanism._span or self.settings.interval or (0.0, 1.0)
        return low, high

    @cached_property
    def letter_law(self) -> LetterLaw:
        """Law of the unbiased number of a report, for intervals."""
        law: LetterLaw = (
            self.mechanism._law_on(self._numbers) if self._indexed else self.mechanism._letter_law
        )
        return law

    @property
    def numeric(self) -> tuple[str, ...]:
        """The column, which is a number."""
        return self.columns

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the interval."""
        return self.interval

    @property
    def points(self) -> int:
        """Number of points."""
        mechanism = self.mechanism
        size = mechanism._usual_size
        if mechanism._sized_by is not None:
            size = mechanism.parameters[mechanism._sized_by]
        return int(size) if isinstance(size, (int, np.integer)) else len(size)

    @property
    def _numbers(self) -> NDArray[np.float64]:
        """The points."""
        return np.linspace(*self.interval, self.points)

    @property
    def _indexed(self) -> bool:
        """True if the mechanism takes the indices of points; otherwise it takes numbers."""
        return self.mechanism._span is None

    @property
    def _dithered(self) -> bool:
        """True if the mechanism rounds a number up or down at random, so that the mean stays."""
        return getattr(self.mechanism, "rounding", "nearest") == "dither"

    def _unbiased(self) -> NDArray[np.float64]:
        """Return the unbiased number of each point; raise ValueError where there is none."""
        mechanism, numbers = self.mechanism, self._numbers
        if self._indexed:
            return np.asarray(mechanism.letters_on(numbers))
        return np.asarray(mechanism.unbias(np.arange(len(numbers))))

    def _decoding(self) -> Decoding:
        if self.output != "values":
            return undecoded(self, "numbers of points" if self.output != "bits" else "")
        low, high = self.interval
        numbers, mechanism = self._numbers, self.mechanism
        return unbiased_or_reported(
            self,
            self._unbiased,
            lambda: mechanism.bias_on(numbers) if self._indexed else mechanism.decode_bias(),
            0.0 if self._dithered else (high - low) / (self.points - 1) / 2.0,
            numbers,
        )

    @property
    def public(self) -> dict[str, Any]:
        """The interval and the number of points."""
        return {"interval": list(self.interval), "points": self.points}

    @property
    def caveat(self) -> str | None:
        """The points that numbers are put on, where that moves a mean."""
        return None if self._dithered else f"of the nearest of {self.points} points"

    @property
    def neutral(self) -> float:
        """The point in the middle, or next to it."""
        return float(self._numbers[(self.points - 1) // 2])

    @property
    def names(self) -> list[str]:
        """The column itself."""
        return list(self.columns)

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n,) float64."""
        if isinstance(batch, np.ndarray):
            batch = batch.astype(np.float64)
        settings = self.settings
        numbers = numbers_of(batch, self.columns, first_row, settings.missing, settings.unit)
        return numbers[:, 0].astype(np.float64)

    def outside(self, x: NDArray[Any]) -> int:
        """Return how many numbers lie outside the interval, so that they count as an end."""
        low, high = self.interval
        return int(np.count_nonzero((x < low) | (x > high)))

    def _inputs(self, x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        if not self._indexed:
            return (x,)
        low, high = self.interval
        share = (x.clip(low, high) - low) / (high - low)
        return (np.rint(share * (self.points - 1)).astype(np.uint32),)

    def _values(self, reports: NDArray[Any]) -> NDArray[Any]:
        numbers = self.decoding.numbers
        return reports if numbers is None else numbers[reports]

    def written(self, reports: NDArray[Any], arrow_type: Any) -> list[tuple[str, Any]]:
        """Return one column."""
        return [(self.columns[0], reports)]

    def _from_codes(self, codes: NDArray[Any]) -> tuple[Any, str]:
        return codes[:, 0], "codes"

    def _from_values(self, columns: list[Any], first_row: int) -> NDArray[Any]:
        table, dtype = self._floats(columns)
        numbers = self.decoding.numbers
        decoded = self.mechanism.decode(np.arange(self.points)) if numbers is None else numbers
        return codes_of_values(table, decoded.astype(dtype), self.names, first_row)[:, 0]

    def reading(self, column: str, of: Of) -> Reading:
        """Return the indicators of the points, or a number or square by them; see `ColumnCodec.reading`."""
        mechanism, points = self.mechanism, self._numbers
        note = "; ".join(filter(None, [self.caveat, self.filling]))
        try:
            if of == "category":
                return replace(indicators(column, tuple(points.tolist()), mechanism), note=note)
            if of == "number":
                values, mixed = self._unbiased(), self.letter_law.mixed
                floor = float(mixed.bounds(mixed.points)[0].min())
            elif self._indexed:
                values, floor = np.asarray(mechanism.letters_on(np.square(points))), 0.0
            else:
                every = mechanism._indicators(np.arange(len(points)))
                values, floor = every @ np.square(points), 0.0
        except ValueError as error:
            raise refused(f"column {column!r}", self.settings.mechanism, of, str(error)) from None
        truths = points if of == "number" else np.square(points)
        span = (float(truths.min()), float(truths.max()))
        return by_code(column, values, lambda x: np.asarray(x, np.int64).reshape(-1), span, floor, note)

    @cached_property
    def counted(self) -> _PointLaw:
        """The mechanism on these points."""
        return _PointLaw(self.mechanism, self.interval, self.points, self)


@dataclass(frozen=True)
class _PointLaw:
    """A mechanism on the points of an interval, as counts belong to it."""

    mechanism: Any
    interval: tuple[float, float]
    points: int
    codec: Points = field(compare=False)

    def fingerprint(self) -> dict[str, Any]:
        return {"points": [*self.interval, self.points], **self.mechanism.fingerprint()}

    def accumulator(self) -> PointCounts:
        return PointCounts(self)

    def influence(self, share: float) -> float:
        """Return how far a share of liars may move the mean, or raise ValueError."""
        decoded = self.codec._unbiased()
        return Reach.of_numbers(decoded.min(), decoded.max(), self.interval, 1).moved(share)

    @property
    def _report_parts(self) -> Any:
        return self.mechanism._report_parts

    def _join(self, parts: Any) -> Any:
        return self.mechanism._join(parts)


class PointCounts(BatchAccumulator):
    """Counts of the points of an interval that were reported, of a mechanism that knows points by number."""

    kind = "points"

    def __init__(self, mechanism: _PointLaw) -> None:
        super().__init__(mechanism)
        self._codec = mechanism.codec
        self.counts = np.zeros(mechanism.points, np.int64)

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        """Add the numbers of reported points."""
        codes = np.ascontiguousarray(reports)
        self.take(len(codes), counts_of(codes, 1, len(self.counts), "codes", len(codes), None)[0])

    def by_group(self, reports: Any, output: str, groups: Grouping) -> NDArray[Any]:
        """Return the counts of each group; see `Accumulator.by_group`."""
        codes, points = np.ascontiguousarray(reports), len(self.counts)
        counts_of(codes, 1, points, "codes", len(codes), None)  # which refuses what is no point
        return groups.codes(codes[:, None], points)[:, 0]

    def take(self, n: int, integers: NDArray[Any]) -> None:
        """Add the counts of n reports."""
        self.n = saved.together("reports", self.n, n)
        self.counts += integers

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
            If the law has no unbiased decoded values, or nothing was counted.
        """
        if not self.n:
            raise ValueError("estimate: nothing has been counted")
        return self._judged(
            averaged(self.counts[None], self.n, self._codec._unbiased(), self._codec.letter_law)
        )

    def _state(self) -> dict[str, Any]:
        return {"n": self.n, "counts": self.counts.tolist()}

    def _restore(self, state: dict[str, Any]) -> None:
        n = saved.whole(state.get("n"))
        self.counts = saved.counts(state.get("counts"), self.counts.shape, n, exclusive=True)
        self.n = n
