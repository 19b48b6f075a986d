"""Questions about released tables: what each counts, and the answer that the counts give.

Columns that are released by mechanisms of their own have reports that are independent given the record. So
the product of what they say has the product of the truths for its mean: cells of a table, a number where
somebody is in a category. What one report says of several columns is multiplied by the law of that report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.errors import PlanError
from bitldp.estimate.intervals import ByLetters, Deviation
from bitldp.estimate.ratio import Ratio
from bitldp.tables import fits
from bitldp.tables.answer import Crossing, Moved, Stacked, TableAnswer, crossed
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.column import Column
from bitldp.tables.counting import Counting, Question
from bitldp.tables.filters import PERIODS, Condition, Where, conditions_of
from bitldp.tables.joint import Read, Term, estimate_of
from bitldp.tables.plan import TablePlan
from bitldp.tables.products import (
    cautions,
    cell_law,
    cells_of,
    diagonal,
    letters_of,
    notes_of,
    points_of,
    quotient,
    quotients,
    together,
)
from bitldp.tables.reading import Of, Reading
from bitldp.tables.together import cells_together, known, letters_together, resolved, shared
from bitldp.tables.tops import topped, word_column

__all__ = ["Names", "Questions", "answered"]

_MOST_FACTORS = 3  # columns whose readings are multiplied
_ONE = Reading("", (None,), lambda x: np.ones((len(x), 1)), np.ones((2, 1)), (1.0, 1.0), 0.0)

_TOGETHER = 64  # categories of one column whose covariance is kept

Names: TypeAlias = "str | Sequence[str]"


class Questions:
    """Questions about the released tables of a plan, all of one filter.

    Parameters
    ----------
    plan : TablePlan
    options : mapping
        `level`, `together` and `projected` of the answers.
    where : mapping or sequence of conditions, optional
        As of `ReleasedTable.mean`.
    every : str, optional
    """

    def __init__(
        self, plan: TablePlan, options: dict[str, Any], where: Where | None = None, every: str | None = None
    ) -> None:
        self.plan, self.options = plan, options
        self._homes: dict[str, tuple[Column, int]] = {}
        start = 0
        for column in plan.columns:
            for offset, codec in enumerate(column.codecs):
                for name in codec.columns:
                    self._homes.setdefault(name, (column, start + offset))
            start += len(column.codecs)
        if every is not None:
            checks.choice("every", every, PERIODS)
        conditions = conditions_of(where)
        self._every = every
        self._kept_where = tuple(each for each in conditions if each.column in plan.keep)
        self.within = self._chosen([each for each in conditions if each.column not in plan.keep])

    def _chosen(self, conditions: Sequence[Condition]) -> list[Read]:
        """Return readings of whether a record meets conditions, one for each released column."""
        made: dict[str, tuple[Read, NDArray[np.bool_]]] = {}
        for each in conditions:
            own = self.read(each.column, "category")
            met = each.chosen(own.reading.labels)
            made[each.column] = (own, met & made[each.column][1] if each.column in made else met)
        for name, (_, met) in made.items():
            if not met.any():
                raise PlanError(f"where: no category of column {name!r} is left")
        return [replace(own, reading=own.reading.among(met)) for own, met in made.values() if not met.all()]

    # -- questions, each as in `ReleasedTable`

    def mean(self, column: str, by: Names = ()) -> Question:
        """Yield what a mean counts, and return it."""
        number, present = self.read(column, "number"), self.present(column)
        kept, split = self._by(by)
        if present is None and not split and self._by_counts(number):
            return (yield from self._alone(number, "mean", kept))
        shift = self._neutral(column)
        return (yield from self._ratios("mean", column, [number], present, split, kept, shift=shift))

    def share(self, column: str, by: Names = ()) -> Question:
        """Yield what shares count, and return them."""
        own = self.read(column, "category")
        kept, split = self._by(by)
        if not split and self._by_counts(own):
            return (yield from self._alone(own, "share", kept))
        return (yield from self._ratios("share", column, [own], None, split, kept))

    def table(self, *columns: str) -> Question:
        """Yield what a table counts, and return it."""
        kept, split = self._by(columns, "table")
        if not columns:
            raise PlanError("table: needs one column or more")
        if not split:
            raise PlanError("table: all columns are kept: count them as they are")
        if self.within:
            if kept:
                raise PlanError(
                    "where: a condition on a released column needs a table of released columns only"
                )
            return (yield from self._ratios("share", ", ".join(columns), split, None, [], ()))
        if len(split) == 1 and not kept and self._by_counts(split[0]):
            return (yield from self._alone(split[0], "share", ()))
        counted = yield self.joint(split, [*cells_of(split)], kept=kept)
        found = counted.moments()
        total = sum(each.n for each in found)
        values, squares = [], []  # a group's mean is over its own records
        for each in found:
            values.append(each.mean * (each.n / total))
            unbiased = (each.n - 1.0) / each.n
            squares.append((each.covariance * unbiased + np.outer(each.mean, each.mean)) * (each.n / total))
        value = np.concatenate(values)
        covariance = (diagonal(squares) - np.outer(value, value)) / max(1, total - 1)
        codecs, grouped = self.plan.codecs, bool(kept)
        if shared(codecs, split):
            law = cells_together(known(codecs, split), grouped, len(found))
        else:
            law = cell_law([each.reading for each in split], grouped, len(found))
        variance = np.maximum(covariance.diagonal() * total, law.mixed.bounds(value)[0])
        n = np.full(len(value), total)
        cells = [(each.reading.column, each.reading.labels) for each in split]
        return TableAnswer(
            *("share", ", ".join(columns), counted.keys(cells), value),
            *(np.sqrt(variance / total), n, notes_of(split, len(value)), ByLetters(variance, total, law)),
            covariance=covariance,
            span=(0.0, 1.0),
            whole=True,
            **self.options,
        )

    def total(self, column: str, by: Names = ()) -> Question:
        """Yield what sums count, and return them."""
        if not self.tells(column, "number"):
            if self.within:
                own = self.read(column, "category")
                kept, split = self._by(by)
                answer = yield from self._ratios("total", column, [own], None, split, kept, everybody=True)
            else:
                answer = yield from self.table(column, *_named(by))
            return answer.times_records()
        kept, split = self._by(by)
        own = self.read(column, "number")
        answer = yield from self._ratios("total", column, [own], None, split, kept, everybody=True)
        return answer.times_records()

    def ratio(self, top: str, bottom: str, by: Names = ()) -> Question:
        """Yield what a ratio counts, and return it."""
        upper, lower = self.read(top, "number"), self.read(bottom, "number")
        if lower.reading.span[0] < 0.0:
            raise PlanError(
                f"column {bottom!r}: its interval reaches below 0, so that a ratio may be anything"
            )
        kept, split = self._by(by)
        return (yield from self._ratios("ratio", f"{top} / {bottom}", [upper], lower, split, kept))

    def difference(self, column: str, by: Names, base: Any = None) -> Question:
        """Yield what differences of groups count, and return them."""
        method = self.mean if self.tells(column, "number") else self.share
        answer = yield from method(column, by)
        return answer.differences(_named(by), base)

    def histogram(self, column: str, bins: int | Iterable[float], by: Names = ()) -> Question:
        """Yield what a histogram counts, and return it."""
        own = self.read(column, "category")
        points = points_of(own)
        if isinstance(bins, int) and not isinstance(bins, bool):
            most = checks.integer("bins", bins, 1)
            if most > len(points):
                raise PlanError(f"bins: column {column!r} was put on {len(points)} points, and has no more")
            edges = np.linspace(points[0], points[-1], most + 1)
        else:
            edges = checks.numbers("bins", list(bins)).astype(np.float64)  # type: ignore[arg-type]
            if len(edges) < 2 or not (np.diff(edges) > 0.0).all():
                raise ValueError("bins: must be a number of bins, or two edges or more, ascending")
        slots = np.searchsorted(edges, points + 1e-9 * np.ptp(points), side="right") - 1
        slots[np.abs(points - edges[-1]) <= 1e-9 * np.ptp(points)] = len(edges) - 2  # the last edge is inside
        sets = (slots[:, None] == np.arange(len(edges) - 1)).astype(np.float64)
        made = replace(own.reading, labels=tuple(edges[:-1].tolist())).summed(sets)
        kept, split = self._by(by)
        top = [replace(own, reading=made)]
        answer = yield from self._ratios("share", column, top, None, split, kept, label="from")
        ends = np.tile(edges[1:], len(answer) // (len(edges) - 1))
        return replace(answer, keys={**answer.keys, "to": pa.array(ends)})

    def cdf(self, column: str, at: Iterable[float], by: Names = ()) -> Question:
        """Yield what shares below numbers count, and return them."""
        numbers = checks.numbers("at", list(at)).astype(np.float64)
        own = self.read(column, "category")
        points = points_of(own)
        sets = (points[:, None] <= numbers + 1e-9 * np.ptp(points)).astype(np.float64)
        made = replace(own.reading, labels=tuple(numbers.tolist())).summed(sets)
        kept, split = self._by(by)
        top = [replace(own, reading=made)]
        return (yield from self._ratios("cdf", column, top, None, split, kept, label="at"))

    def quantile(self, column: str, q: float | Iterable[float], by: Names = ()) -> Question:
        """Yield what quantiles count, and return them."""
        shares = np.atleast_1d(checks.numbers("q", q if isinstance(q, float) else list(q))).astype(np.float64)
        if not ((shares > 0.0) & (shares < 1.0)).all():  # written so that NaN fails
            raise ValueError("q: must be above 0 and below 1")
        kept, split = self._by(by)
        own = self.read(column, "category")
        points = points_of(own)
        smooth = own.reading.dithered and not split and not self.within
        slack = float(points[1] - points[0]) / 2.0 if own.reading.dithered else 0.0
        edges = np.concatenate([points[:1], (points[1:] + points[:-1]) / 2.0, points[-1:]])
        sets = np.triu(np.ones((len(points), len(points) - 1)))
        made = replace(own.reading, labels=tuple(points[:-1].tolist())).summed(sets)
        question = self._ratios(
            *("quantile", column, [replace(own, reading=made)], None, split, kept),
            label="q",
            own=own.codec if smooth else None,
        )
        counted = yield next(question)
        below = answered(question, counted)
        assert isinstance(below.limits, Stacked)
        cells = len(below) // (len(points) - 1)
        limits = Crossing(below.limits, edges, np.tile(shares, cells), slack)
        rows = np.repeat(np.arange(cells) * (len(points) - 1), len(shares))
        value = np.concatenate([crossed(each, shares, edges) for each in below.value.reshape(cells, -1)])
        low, high = limits.limits(value, value, 0.16)  # a standard error to either side
        stderr, notes = (high - low) / 2.0, [below.notes[row] for row in rows.tolist()]
        if smooth:  # by the mechanism's own estimate
            place = self.codec(column).columns.index(column)
            own_made = [each.counts.estimate_quantile(shares) for each in counted.sums()]
            value, stderr = (
                np.concatenate([each.reshape(-1, len(shares))[place] for each in every])
                for every in ([each.value for each in own_made], [each.stderr for each in own_made])
            )
            notes = ["the estimate is smoothed, the interval of unbiased shares"] * len(value)
        keys = {name: each.take(pa.array(rows)) for name, each in below.keys.items() if name != "q"}
        return TableAnswer(
            *("quantile", column, {**keys, "q": pa.array(np.tile(shares, cells))}, value, stderr),
            *(below.n[rows], notes, limits),
            span=(float(edges[0]), float(edges[-1])),
            **self.options,
        )

    def regress(self, column: str, on: Names) -> Question:
        """Yield what least squares count, and return them."""
        return (yield from fits.regressed(self, column, list(_named(on))))

    def correlation(self, one: str, other: str) -> Question:
        """Yield what a correlation counts, and return it."""
        return (yield from fits.correlated(self, one, other))

    def covariance(self, one: str, other: str) -> Question:
        """Yield what a covariance counts, and return it."""
        return (yield from fits.correlated(self, one, other, scaled=False))

    def logistic(self, column: str, on: Names, category: str | None = None) -> Question:
        """Yield what a logistic fit counts, and return it."""
        return (yield from fits.logistic(self, column, list(_named(on)), category))

    def top(self, column: str, most: int = 10, by: Names = ()) -> Question:
        """Yield what the most frequent words count, and return them."""
        kept = _named(by)
        codec = word_column(self.codec(column), column, kept, self.plan.keep)
        if self.within:
            raise PlanError(
                f"where: needs kept columns for top({column!r}), since its words have no public list"
            )
        counted = yield self.counting([], [], kept=kept, own=self._homes[column][1])
        return topped(codec, counted, most, self.options)

    # -- what questions are made of

    def _by_counts(self, own: Read) -> bool:
        """Return whether the counts of one mechanism answer a question about its column alone."""
        return not self.within and self.plan.codecs[own.codec].alone

    def codec(self, column: str) -> ColumnCodec:
        """Return the codec of a released column, or refuse what is none."""
        if column not in self._homes:
            names = ", ".join(map(repr, list(self._homes)[:20]))
            kept = (
                "is kept as it is; its own answers need no estimate"
                if column in self.plan.keep
                else "was not released"
            )
            raise PlanError(f"column {column!r}: {kept}; released are {names}")
        codec: ColumnCodec = self.plan.codecs[self._homes[column][1]]
        return codec

    def read(self, column: str, of: Of) -> Read:
        """Return what reports say of a number, of its square, or of a category of one column."""
        codec = self.codec(column)
        return Read(self._homes[column][1], codec.reading(column, of))

    def tells(self, column: str, of: Of) -> bool:
        """Return whether reports say that."""
        try:
            self.read(column, of)
        except PlanError:
            return False
        return True

    def present(self, column: str) -> Read | None:
        """Return the reading of whether there is a value, where that is reported."""
        self.codec(column)
        owner, place = self._homes[column]
        if owner.nulls != "report":
            return None
        return Read(place + 1, self.plan.codecs[place + 1].reading(column, "number"))

    def _neutral(self, column: str) -> float:
        """Return the number that a missing one counts as, where that is reported."""
        codec = self.codec(column)
        return float(codec.neutral or 0.0) if codec.settings.missing.policy == "report" else 0.0

    def _by(self, by: Names, word: str = "by") -> tuple[tuple[str, ...], list[Read]]:
        """Return the kept columns among some, and the readings of the released ones."""
        names = _named(by)
        if len(set(names)) != len(names):
            raise PlanError(f"{word}: a column is named twice")
        split = [self.read(name, "category") for name in names if name not in self.plan.keep]
        return tuple(name for name in names if name in self.plan.keep), split

    def counting(self, reads: Sequence[Read], terms: Sequence[Term], **options: Any) -> Counting:
        """Return what counts terms of readings, of the rows that the filter leaves."""
        where = self._kept_where
        return Counting(self.plan, reads, terms, where=where, every=self._every, **options)

    def joint(self, reads: Sequence[Read], terms: Sequence[Term], **options: Any) -> Counting:
        """Return what counts products of readings, each of a column of its own."""
        if len(reads) > _MOST_FACTORS:
            raise PlanError(
                f"question: reads {len(reads)} released columns; a question may read {_MOST_FACTORS}"
            )
        return self.counting(*resolved(self.plan.codecs, reads, terms), **options)

    def fitted(self, reads: Sequence[Read], terms: Sequence[Term]) -> Counting:
        """Return what counts products of pairs of readings, of records that the filter leaves."""
        reads = [*reads, *self.within]
        weights = [(len(reads) - 1 - i, 0) for i in range(len(self.within))]
        weighed = [(*term, *weights) for term in terms]
        return self.counting(*resolved(self.plan.codecs, reads, weighed, once=False))

    # -- kinds of answers

    def _alone(self, own: Read, what: str, kept: tuple[str, ...]) -> Question:
        """Return the answers about one column, with the intervals of its mechanism."""
        size = len(own.reading.labels)
        terms: list[Term] = [((0, j),) for j in range(size)] if size <= _TOGETHER else []
        codec = self.plan.codecs[own.codec]
        counted = yield self.counting([own], terms, kept=kept, own=own.codec)
        estimates = [estimate_of(each.counts, codec, own.reading, size) for each in counted.sums()]
        limits = [(size, Deviation(1) if each.limits is None else each.limits) for each in estimates]
        covariance = None
        if terms:
            covariance = diagonal([each.covariance / each.n for each in counted.moments()])
        label = own.reading.column if what == "share" else ""
        n = np.repeat([each.joint.n for each in counted.sums()], size)
        return TableAnswer(
            what,
            own.reading.column,
            counted.keys([(label, own.reading.labels)]),
            np.concatenate([each.value for each in estimates]),
            np.concatenate([each.stderr for each in estimates]),
            n,
            [own.reading.note] * len(n),
            limits[0][1] if len(limits) == 1 else Stacked(limits),
            covariance=covariance,
            span=own.reading.span,
            whole=what == "share" and not kept,
            **self.options,
        )

    def _ratios(
        self,
        what: str,
        column: str,
        tops: list[Read],
        bottom: Read | None,
        split: list[Read],
        kept: tuple[str, ...],
        shift: float = 0.0,
        *,
        label: str | None = None,
        everybody: bool = False,
        own: int | None = None,
    ) -> Question:
        """Return the means of products of readings, less a shift, over those of another, in each cell.

        Where `everybody` is true a mean is over all records, of which those in no cell count as 0. `own` is a
        codec whose own counts are wanted, too.
        """
        weighing = [*split, *self.within]
        upper = together([each.reading for each in tops]).less(shift)
        factors = [*(replace(each, reading=each.reading.less(shift)) for each in tops), *weighing]
        factors += [] if bottom is None else [bottom]
        first = len(tops)
        entries = [*product(*(range(len(each.reading.labels)) for each in tops))]
        cells = [*product(*(range(len(each.reading.labels)) for each in weighing))]
        weights: list[Term] = [tuple((first + i, j) for i, j in enumerate(cell)) for cell in cells]
        above: list[Term] = [(*enumerate(entry), *cell) for cell in weights for entry in entries]
        last = () if bottom is None else ((len(factors) - 1, 0),)
        below: list[Term] = [() if everybody else (*cell, *last) for cell in weights]
        counted = yield self.joint(factors, [*above, *below], kept=kept, own=own)
        lower = _ONE if bottom is None else bottom.reading
        span = upper.span
        if everybody:
            span = (min(0.0, span[0]), max(0.0, span[1]))
        elif bottom is not None and what == "ratio":
            span = quotients(upper.span, lower.span)
        codecs, rate = self.plan.codecs, min(each.reading.rate for each in factors)
        if shared(codecs, factors):
            over = known(codecs, factors[first : first + len(weighing)] + factors[:first])
            below_all = factors[first:]
            under = known(codecs, below_all) if below_all and not everybody else None
            ends, floor = letters_together(over, under, len(entries))
            rate = over.rate
        else:
            ends, floor = letters_of(upper, lower, [each.reading for each in weighing], everybody)
        which = len(above) + np.repeat(np.arange(len(cells)), len(entries))
        rows = np.arange(len(above))
        parts, covariances = [], []
        for each in counted.moments():
            square, mean = each.covariance, each.mean
            variances = np.stack([square[rows, rows], square[rows, which], square[which, which]])
            law = Ratio(
                *(mean[rows], mean[which], variances, np.full(len(rows), each.n), span, ends, floor, rate)
            )
            parts.append(law)
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = law.top / law.bottom
                slopes = np.eye(len(rows), len(mean)) / law.bottom[:, None]
                slopes[rows, which] -= ratio / law.bottom
                covariances.append(slopes @ square @ slopes.T / each.n)
        value = np.concatenate([quotient(each) for each in parts]) + shift
        limits = [(len(rows), Moved(each, np.ones(len(rows)), shift) if shift else each) for each in parts]
        notes = [cautions(each) for each in parts]
        base = "; ".join(dict.fromkeys(filter(None, [each.reading.note for each in factors])))
        keys = [(each.reading.column, each.reading.labels) for each in split]
        keys += [("", each.reading.labels) for each in self.within]
        for factor in tops:
            categories = len(factor.reading.labels) > 1 or factor.reading.labels[0] is not None
            name = label if label is not None else factor.reading.column if categories else ""
            keys.append((name, factor.reading.labels))
        return TableAnswer(
            *(what, column, counted.keys(keys), value),
            *(np.concatenate([each.stderr for each in parts]), np.concatenate([each.n for each in parts])),
            *(["; ".join(filter(None, [base, note])) for each in notes for note in each], Stacked(limits)),
            covariance=diagonal(covariances),
            span=(span[0] + shift, span[1] + shift),
            whole=what == "share" and not everybody and len(parts) == len(cells) == 1 and label is None,
            **self.options,
        )


def answered(question: Question, counted: Counting) -> TableAnswer:
    """Return the answer of a question that was asked what it counts."""
    try:
        question.send(counted)
    except StopIteration as ended:
        answer: TableAnswer = ended.value
        return answer
    raise RuntimeError("question: counts twice")


def _named(names: Names) -> tuple[str, ...]:
    """Return one name, or several, as several."""
    return (names,) if isinstance(names, str) else tuple(names)
