"""Columns of ordered numbers that are released by a hierarchy of ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.errors import DataError, PlanError
from bitldp.tables.intervals import Intervals
from bitldp.tables.points import Points
from bitldp.tables.reading import Of, Reading, refused
from bitldp.tables.written import Decoding

__all__ = ["Ranges"]

_MOST = 4096  # points whose shares are told apart
_LISTED = 1 << 22  # numbers of reports, times points, up to which all reports are listed
_HELD = 1 << 22  # indicators that are held at once
_NEAR = 0.15  # part by which second moments may be off where reports are not listed
_QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class _RangeReading(Reading):
    """Reading of sums over points, of which further sums are no sums of entries.

    Attributes
    ----------
    linear : callable
        Returns the reading of a column, labels, and weights of shape (labels, points).
    """

    linear: Callable[..., Reading] | None = None

    def summed(self, sets: NDArray[np.float64]) -> Reading:
        """Return the reading of sums of entries; `sets` has a column of 0 and 1 for each."""
        assert self.linear is not None  # given with the entries
        made = self.linear(self.column, self.labels, sets.T)
        return replace(self, read=made.read, ends=made.ends, table=made.table, codes=made.codes, moments=None)


@dataclass(frozen=True)
class _Sums:
    """Sums of consistent shares of points, as each report tells them.

    Attributes
    ----------
    levels, laws : tuple
        The mechanism of each level, and its law.
    always : ndarray of float64, shape (sums,)
        What all reports tell.
    weights : sequence of ndarray, shape (sums, nodes)
        By level.
    means : sequence of ndarray, shape (sums,)
        Their means over the points.

    Notes
    -----
    A sum of consistent shares is c + sum over levels and nodes of w_v times the share below v. A report is
    about one of L levels: L times what it says of that level, and 0 of the others, has the right mean. From
    the w_v of a level their mean over the points is taken, and added for all reports.
    """

    levels: tuple[Any, ...]
    laws: tuple[Any, ...]
    always: NDArray[np.float64]
    weights: Sequence[NDArray[np.float64]]
    means: Sequence[NDArray[np.float64]]

    def read(self, levels: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the sums by reports, shape (n, sums)."""
        result = np.empty((len(levels), len(self.always)))
        for level, each in enumerate(self.levels):
            every, step = np.flatnonzero(levels == level), max(1, _HELD // self.weights[level].shape[1])
            for start in range(0, len(every), step):
                those = every[start : start + step]
                own = each._indicators(codes[those]) @ self.weights[level].T - self.means[level]
                result[those] = self.always + len(self.levels) * own
        return result

    @property
    def ends(self) -> NDArray[np.float64]:
        """The least and the largest, or beyond, shape (2, sums): of any nodes that a report counts for."""
        every = []
        for each, law, weights, mean in zip(self.levels, self.laws, self.weights, self.means, strict=True):
            most = each._support_sizes()[1]
            ordered = np.sort(weights, axis=1)
            low = np.minimum(ordered[:, :most], 0.0).sum(axis=1)
            high = np.maximum(ordered[:, -most:], 0.0).sum(axis=1)
            shift, scale = law.other * weights.sum(axis=1), law.own - law.other
            both = (np.stack([low, high]) - shift) / scale - mean
            every.append(self.always + len(self.levels) * both)
        return np.stack([np.min(every, axis=(0, 1)), np.max(every, axis=(0, 1))])

    def second(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return E[sum^2 | point], shape (points, sums), of points below given nodes of each level.

        It is that of a design whose blocks meet evenly, as they nearly do.
        """
        result = np.zeros((len(places), len(self.always)))
        count = len(self.levels)
        for level, ((p, q, r, s), weights, mean) in enumerate(
            zip(self.laws, self.weights, self.means, strict=True)
        ):
            own = weights.T  # (nodes, sums)
            one, two = own.sum(axis=0), np.square(own).sum(axis=0)
            rest = one - own
            squares = np.square(own) * p + (two - np.square(own)) * q
            squares += 2.0 * own * rest * r + (np.square(rest) - two + np.square(own)) * s
            spread = np.maximum(squares - np.square(own * p + rest * q), 0.0) / (p - q) ** 2
            made = np.square(self.always + count * (own - mean)) + count**2 * spread
            result += made[places[:, level]]
        return result / count


class Ranges(Points, takes="ordered"):
    """A number as the nearest of N equidistant points, and reports about a range of them to two columns.

    Without an interval the points are the integers 0 to N - 1.
    """

    def _check(self) -> None:
        self.settings.refuse_several()
        if self.settings.categories is not None:
            raise PlanError(f"{self.settings.title}: categories: {self.settings.mechanism} takes numbers")
        self.settings.refuse_unless_numeric()

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the interval, both of which are points."""
        return self.settings.interval or (0.0, float(self.points - 1))

    @property
    def points(self) -> int:
        """Number of points."""
        return int(self.mechanism.categories)

    def _form(self) -> str:
        if self.settings.output not in (None, "codes"):
            asked = self.settings.spelled("output", self.settings.output)
            raise PlanError(f"{asked}: a report of {self.settings.mechanism} is about a range; use codes")
        return "codes"

    def _decoding(self) -> Decoding:
        if self.settings.decode is not None:
            raise PlanError(f"{self.settings.spelled('decode')} is for values, not for codes")
        return Decoding(
            estimate=f"{self._maker}(...).estimate_range and estimate_quantile, of levels and codes"
        )

    @property
    def names(self) -> list[str]:
        """The level of the ranges that a report is about, and its code."""
        return [f"{self.columns[0]}_level", f"{self.columns[0]}_code"]

    @property
    def _several(self) -> bool:
        return True

    def _inputs(self, x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        low, high = self.interval
        share = (x.clip(low, high) - low) / (high - low)
        return (np.rint(share * (self.points - 1)).astype(np.uint32),)

    def _values(self, reports: Any) -> Any:
        return reports

    def written(self, reports: Any, arrow_type: Any) -> list[tuple[str, Any]]:
        """Return the two columns."""
        return [
            (name, np.ascontiguousarray(part[:, 0])) for name, part in zip(self.names, reports, strict=True)
        ]

    def _from_codes(self, codes: NDArray[Any]) -> tuple[Any, str]:
        levels = codes[:, 0]
        if len(codes) and not (levels < len(self._cells)).all():
            raise DataError(f"column {self.names[0]!r}: holds something else than the levels of a report")
        if not (codes[:, 1] < self._cells[levels]).all():
            raise DataError(f"column {self.names[1]!r}: holds something else than the codes of a report")
        return self.mechanism._join([codes[:, :1], codes[:, 1:]]), "codes"

    # -- what a report says

    @cached_property
    def _cells(self) -> NDArray[np.int64]:
        """Codes of each level."""
        return np.array([each.channel.outputs for each in self.mechanism.mechanisms])

    def _numbered(self, reports: Any) -> NDArray[np.int64]:
        """Return levels and codes as one number."""
        levels, codes = (np.asarray(part, np.int64).reshape(-1) for part in reports)
        return (np.cumsum(self._cells) - self._cells)[levels] + codes

    def _sums(self, weights: NDArray[np.float64]) -> _Sums:
        """Return what reports say of sums over the points, in each of which a point has a weight."""
        consistency, levels = self.mechanism._check_informative(), self.mechanism.mechanisms
        tree = consistency.tree
        nothing = consistency.leaves([np.zeros(each) for each in tree.sizes])
        below = tree.levels(np.full(self.points, 1.0 / self.points))
        own = consistency.weights(weights)
        means = [each @ shares for each, shares in zip(own, below, strict=True)]
        always = weights @ nothing + np.sum(means, axis=0)
        return _Sums(tuple(levels), self.mechanism._laws, always, own, means)

    @property
    def alone(self) -> bool:
        """False: what the levels say together is a reading."""
        return False

    def _linear(self, column: str, labels: tuple[Any, ...], weights: NDArray[np.float64]) -> _RangeReading:
        """Return the reading of sums over the points, one for each label."""
        sums, total = self._sums(weights), int(self._cells.sum())
        table = None
        if total * self.points <= _LISTED:
            every = np.repeat(np.arange(len(self._cells)), self._cells)
            codes = np.arange(total) - np.repeat(np.cumsum(self._cells) - self._cells, self._cells)
            table = sums.read(every, codes)

        def read(reports: Any) -> NDArray[np.float64]:
            if table is not None:
                return table[self._numbered(reports)]
            levels, codes = (np.asarray(part, np.int64).reshape(-1) for part in reports)
            return sums.read(levels, codes)

        truths = np.array([weights.min(axis=1), weights.max(axis=1)])
        span = float(truths.min()), float(truths.max())
        ends = sums.ends if table is None else np.stack([table.min(axis=0), table.max(axis=0)])
        note = "; ".join(filter(None, [self.caveat, self.filling]))
        return _RangeReading(
            *(column, labels, read, ends, span, 0.0),
            table=table,
            codes=None if table is None else self._numbered,
            note=note,
            linear=self._linear,
        )

    def _second(
        self, table: NDArray[np.float64] | None, weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """Return E[sum^2 | point], shape (points, sums), and the part by which it may be off."""
        places = self.mechanism._tree.ancestors(np.arange(self.points))
        if table is None:
            return self._sums(weights).second(places), _NEAR
        result, start = np.zeros((self.points, len(weights))), 0
        for level, each in enumerate(self.mechanism.mechanisms):
            codes = np.arange(each.channel.outputs)
            inside = each._support(codes, np.arange(self.mechanism._tree.sizes[level])).T
            likely, width = each.probabilities()[0], inside.sum(axis=1, keepdims=True)
            law = np.where(inside, likely / width, (1.0 - likely) / np.maximum(1, len(codes) - width))
            result += (law @ np.square(table[start : start + len(codes)]))[places[:, level]]
            start += len(codes)
        return result / len(self.mechanism.mechanisms), 0.0

    def reading(self, column: str, of: Of) -> Reading:
        """Return the indicators of the points, or a number or square by them; see `ColumnCodec.reading`."""
        points = self._numbers
        if self.points > _MOST:
            raise PlanError(
                f"column {column!r}: has {self.points:,} points; {_MOST:,} can be distinguished in a question"
            )
        try:
            if of != "category":
                truths = (points if of == "number" else np.square(points))[None]
                made = self._linear(column, (None,), truths)
                second, off = self._second(made.table, truths)
                variance = second * (1.0 - off) - np.square(truths.T)
                return replace(made, floor=max(0.0, float(variance.min())))
            one = np.eye(self.points)
            made = self._linear(column, tuple(points.tolist()), one)
            second, off = self._second(made.table, one)
        except ValueError as error:
            raise refused(f"column {column!r}", self.settings.mechanism, of, str(error)) from None
        own = second.diagonal() * (1.0 + off)
        np.fill_diagonal(second, np.inf)
        least = second.min(axis=0) * (1.0 - off)
        np.fill_diagonal(second, -np.inf)
        floor = max(0.0, min(float(own.min()) - 1.0, float(least.min())))
        return replace(made, moments=np.stack([own, least, second.max(axis=0) * (1.0 + off)]), floor=floor)

    # -- counts

    @cached_property
    def counted(self) -> Any:
        """Owner of the counts: the mechanism, or what stands for one that has no unbiased estimate."""
        return super(Points, self).counted

    def answers(self, counts: Any, intervals: Intervals) -> Iterator[dict[str, Any]]:
        """Yield the mean and the quartiles."""
        (low, high), points = self.interval, self._numbers
        step = (high - low) / (self.points - 1)
        for what, category in (("mean", None), *(("quantile", f"{each:g}") for each in _QUARTERS)):
            note = "; ".join(filter(None, [self.caveat, self.filling])) or None
            estimate = first = None
            try:
                if what == "mean":
                    estimate = counts.estimate_sum(points[None])
                else:
                    made = counts.estimate_quantile([float(category or 0.5)])
                    value = np.clip(low + (made.value - 0.5) * step, low, high)
                    estimate = replace(made, value=value, stderr=made.stderr * step)
                first = intervals.add(estimate, counts.mechanism)
            except ValueError as error:  # the reports say nothing, or none is about some level
                note = str(error)
            yield {
                "column": self.columns[0],
                "what": what,
                "category": category,
                "estimate": None if estimate is None else float(estimate.value[0]),
                "stderr": None if estimate is None else float(estimate.stderr[0]),
                "interval": first,
                "records": int(counts.n),
                "note": note,
                "influence": None if estimate is None else estimate.influence,
            }
