"""Questions asked of a released table: means, shares, tables, quantiles and fits, each with its interval.

Columns that are released by mechanisms of their own have reports that are independent given the record. So
the product of what they say has the product of the truths for its mean: cells of a table, a number where
somebody is in a category. What one report says of several columns is no such product, and is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.errors import PlanError
from bitldp.estimate.intervals import ByLetters, Deviation
from bitldp.estimate.ratio import Ratio
from bitldp.tables import fits, groups
from bitldp.tables.answer import Crossing, Moved, Stacked, TableAnswer, crossed
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.column import Column
from bitldp.tables.groups import Group
from bitldp.tables.joint import Alone, Moments, Read, Term, Terms, estimate_of
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
)
from bitldp.tables.reading import Of, Reading
from bitldp.tables.streamed import rows_of

__all__ = ["ReleasedTable"]

_MOST_FACTORS = 3  # columns whose readings are multiplied
_ONE = Reading("", (None,), lambda x: np.ones((len(x), 1)), np.ones((2, 1)), (1.0, 1.0), 0.0)

_TOGETHER = 64  # categories of one column whose covariance is kept

Names: TypeAlias = "str | Sequence[str]"


class ReleasedTable:
    """A released table that answers questions.

    Each question reads the table once, a batch at a time, and holds sums alone. Released columns are named in
    ``by`` as kept ones are: an answer for each of their categories comes from the reports of all records, as
    a ratio, for nobody knows which records are in a category. (A filter on a released column selects others.)

    The truth of an answer is that of the population from which the records are drawn independently, of the
    values that were released: clipped to intervals, on points, or to words, as `note` says.

    Parameters
    ----------
    plan : TablePlan
    source : frame, sequence of frames, path, sequence of paths, pyarrow.dataset.Dataset, or callable
        A released table, as `Aggregate.update` takes it; several; files, folders and globs, local or remote;
        or what returns frames anew when it is called with the names of the columns that are needed.
    level : float
        How often an interval holds the truth.
    simultaneous : {None, "bonferroni", "sidak"}
        Whether that is for each interval by itself, or for all intervals of a question at once. Bonferroni's
        holds whatever the answers are; Sidak's is a little shorter, and for answers that are independent or
        jointly normal.
    project : bool
        Whether estimates and intervals are moved to where the truth can be (shares to [0, 1], those of one
        whole to the simplex), which biases the estimates. The unbiased ones stand beside.
    """

    def __init__(
        self,
        plan: TablePlan,
        source: Any,
        *,
        level: float = 0.95,
        simultaneous: str | None = None,
        project: bool = False,
    ) -> None:
        self.plan = plan
        self._source = source
        self._options: dict[str, Any] = {
            "level": checks.chance("level", level),
            "together": simultaneous,
            "projected": checks.flag("project", project),
        }
        self._homes: dict[str, tuple[Column, int]] = {}
        start = 0
        for column in plan.columns:
            for offset, codec in enumerate(column.codecs):
                for name in codec.columns:
                    self._homes.setdefault(name, (column, start + offset))
            start += len(column.codecs)

    @classmethod
    def read(
        cls, path: str | PathLike[str], report: str | PathLike[str] | None = None, **options: Any
    ) -> ReleasedTable:
        """Return a file that ``bitldp perturb`` wrote, by the plan in its privacy report.

        Parameters
        ----------
        path : str or path
            Parquet, Arrow or CSV, or a folder of them.
        report : str or path, optional
            ``path`` and ".privacy.json" by default; of a folder, "_privacy.json" in it. What it proves is a
            matter of ``bitldp verify``.
        **options
            `level`, `simultaneous` and `project`.

        Raises
        ------
        PlanError
            For a report without a plan.
        """
        inside = Path(path) / "_privacy.json"
        beside = inside if Path(path).is_dir() else f"{path}.privacy.json"
        text = Path(beside if report is None else report).read_text(encoding="utf-8")
        try:
            document = json.loads(text)["plan"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise PlanError("report: is no privacy report that says its plan") from None
        return cls(TablePlan.from_document(document), path, **options)

    # -- questions

    def mean(self, column: str, by: Names = ()) -> TableAnswer:
        """Return the mean of a column of numbers, in all records or by categories and groups.

        Parameters
        ----------
        column : str
            A column of numbers. Where it was released with ``nulls="report"``, the mean of those there are.
        by : str or sequence of str
            Columns of categories, released or kept.

        Returns
        -------
        TableAnswer

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
        """
        number, present = self._read(column, "number"), self._present(column)
        kept, split = self._by(by)
        if present is None and not split:
            return self._alone(number, "mean", kept)
        return self._ratios("mean", column, number, present, split, kept, shift=self._neutral(column))

    def share(self, column: str, by: Names = ()) -> TableAnswer:
        """Return the share of each category (or point) of a column, of all records or by others.

        The arguments are those of `mean`; the column is one of categories, or of points of an interval.
        """
        own = self._read(column, "category")
        kept, split = self._by(by)
        if not split:
            return self._alone(own, "share", kept)
        return self._ratios("share", column, own, None, split, kept)

    def table(self, *columns: str) -> TableAnswer:
        """Return the shares of the cells of up to three released columns, and of kept ones.

        Parameters
        ----------
        *columns : str
            Columns of categories or points, released or kept, each once.

        Returns
        -------
        TableAnswer
            A row for each cell; all of them together sum to 1.

        Raises
        ------
        PlanError
            As of `mean`.
        """
        kept, split = self._by(columns, "table")
        if not columns:
            raise PlanError("table: needs one column or more")
        if not split:
            raise PlanError("table: all columns are kept: count them as they are")
        if len(split) == 1 and not kept:
            return self._alone(split[0], "share", ())
        found = self._moments(split, [*cells_of(split)], kept)
        total = sum(each.n for each in found.values())
        values, squares = [], []  # a group's mean is over its own records
        for each in found.values():
            values.append(each.mean * (each.n / total))
            unbiased = (each.n - 1.0) / each.n
            squares.append((each.covariance * unbiased + np.outer(each.mean, each.mean)) * (each.n / total))
        value = np.concatenate(values)
        covariance = (diagonal(squares) - np.outer(value, value)) / max(1, total - 1)
        law = cell_law([each.reading for each in split], bool(kept), len(found))
        variance = np.maximum(covariance.diagonal() * total, law.mixed.bounds(value)[0])
        n = np.full(len(value), total)
        cells = [(each.reading.column, each.reading.labels) for each in split]
        return TableAnswer(
            *("share", ", ".join(columns), self._keys(kept, found, cells), value),
            *(np.sqrt(variance / total), n, notes_of(split, len(value)), ByLetters(variance, total, law)),
            covariance=covariance,
            span=(0.0, 1.0),
            whole=True,
            **self._options,
        )

    def total(self, column: str, by: Names = ()) -> TableAnswer:
        """Return the sum of a column of numbers over the records, those of categories and groups where named.

        The arguments are those of `mean`. Of a column of categories, how many records are in each.
        """
        if not self._tells(column, "number"):
            return self.table(column, *named(by)).times_records()
        kept, split = self._by(by)
        own = self._read(column, "number")
        return self._ratios("total", column, own, None, split, kept, everybody=True).times_records()

    def ratio(self, top: str, bottom: str, by: Names = ()) -> TableAnswer:
        """Return the mean of one column of numbers over that of another, in all records or by categories.

        Parameters
        ----------
        top, bottom : str
            Columns of numbers; the lower one's interval does not reach below 0.
        by : str or sequence of str
            As of `mean`.

        Raises
        ------
        PlanError
            As of `mean`.
        """
        upper, lower = self._read(top, "number"), self._read(bottom, "number")
        if lower.reading.span[0] < 0.0:
            raise PlanError(
                f"column {bottom!r}: its interval reaches below 0, so that a ratio may be anything"
            )
        kept, split = self._by(by)
        return self._ratios("ratio", f"{top} / {bottom}", upper, lower, split, kept)

    def cdf(self, column: str, at: Iterable[float], by: Names = ()) -> TableAnswer:
        """Return the share of records with at most each of some numbers, `at`.

        Each counts as the last point that is not above it. The other arguments are those of `quantile`.
        """
        numbers = checks.numbers("at", list(at)).astype(np.float64)
        own = self._read(column, "category")
        points = points_of(own)
        sets = (points[:, None] <= numbers + 1e-9 * np.ptp(points)).astype(np.float64)
        made = replace(own.reading, labels=tuple(numbers.tolist())).summed(sets)
        kept, split = self._by(by)
        return self._ratios("cdf", column, replace(own, reading=made), None, split, kept, label="at")

    def quantile(self, column: str, q: float | Iterable[float], by: Names = ()) -> TableAnswer:
        """Return the numbers below which shares `q` of the records are: .5 is the median.

        Parameters
        ----------
        column : str
            A column of points of an interval: of GRR or another mechanism of categories with ``interval=``,
            or of `SquareWave`.
        q : float or sequence of float
            Shares, above 0 and below 1.
        by : str or sequence of str
            As of `mean`.

        Returns
        -------
        TableAnswer
            An interval holds all numbers whose share of records below is not refuted to be `q` (Woodruff,
            1952), and reaches to the next point on either side. Without released columns in `by`, the
            estimate of `SquareWave` is smoothed: it varies less than its interval, and has a bias.

        Raises
        ------
        PlanError
            As of `mean`.
        """
        shares = np.atleast_1d(checks.numbers("q", q if isinstance(q, float) else list(q))).astype(np.float64)
        if not ((shares > 0.0) & (shares < 1.0)).all():  # written so that NaN fails
            raise ValueError("q: must be above 0 and below 1")
        kept, split = self._by(by)
        own = self._read(column, "category")
        points = points_of(own)
        slack = float(points[1] - points[0]) / 2.0 if own.reading.dithered else 0.0
        edges = np.concatenate([points[:1], (points[1:] + points[:-1]) / 2.0, points[-1:]])
        sets = np.triu(np.ones((len(points), len(points) - 1)))
        made = replace(own.reading, labels=tuple(points[:-1].tolist())).summed(sets)
        below = self._ratios("quantile", column, replace(own, reading=made), None, split, kept, label="q")
        assert isinstance(below.limits, Stacked)
        cells = len(below) // (len(points) - 1)
        limits = Crossing(below.limits, edges, np.tile(shares, cells), slack)
        rows = np.repeat(np.arange(cells) * (len(points) - 1), len(shares))
        value = np.concatenate([crossed(each, shares, edges) for each in below.value.reshape(cells, -1)])
        low, high = limits.limits(value, value, 0.16)  # a standard error to either side
        stderr, notes = (high - low) / 2.0, [below.notes[row] for row in rows.tolist()]
        if own.reading.dithered and not split:
            value, stderr = self._smoothed(column, shares, kept)
            notes = ["the estimate is smoothed, the interval of unbiased shares"] * len(value)
        keys = {name: each.take(pa.array(rows)) for name, each in below.keys.items() if name != "q"}
        return TableAnswer(
            *("quantile", column, {**keys, "q": pa.array(np.tile(shares, cells))}, value, stderr),
            *(below.n[rows], notes, limits),
            span=(float(edges[0]), float(edges[-1])),
            **self._options,
        )

    def regress(self, column: str, on: Names) -> TableAnswer:
        """Return the coefficients of least squares of one column of numbers on others.

        Parameters
        ----------
        column : str
            A column of numbers.
        on : str or sequence of str
            Columns of numbers, whose squares the mechanism must tell, and of categories, each against the
            first of its list.

        Returns
        -------
        TableAnswer
            The intercept, and a coefficient for each number and category, from unbiased second moments. Where
            these are those of no records, for want of some, the nearest that are take their place, and there
            is no interval: `note` says so.

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
        """
        return fits.regressed(self, column, list(named(on)))

    def correlation(self, one: str, other: str) -> TableAnswer:
        """Return the correlation of two columns of numbers, whose squares the mechanisms must tell.

        Raises
        ------
        PlanError
            As of `regress`.
        """
        return fits.correlated(self, one, other)

    # -- what questions are made of

    def _codec(self, column: str) -> ColumnCodec:
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

    def _read(self, column: str, of: Of) -> Read:
        codec = self._codec(column)
        return Read(self._homes[column][1], codec.reading(column, of))

    def _tells(self, column: str, of: Of) -> bool:
        try:
            self._read(column, of)
        except PlanError:
            return False
        return True

    def _present(self, column: str) -> Read | None:
        """Return the reading of whether there is a value, where that is reported."""
        self._codec(column)
        owner, place = self._homes[column]
        if owner.nulls != "report":
            return None
        return Read(place + 1, self.plan.codecs[place + 1].reading(column, "number"))

    def _neutral(self, column: str) -> float:
        """Return the number that a missing one counts as, where that is reported."""
        codec = self._codec(column)
        return float(codec.neutral or 0.0) if codec.settings.missing.policy == "report" else 0.0

    def _by(self, by: Names, word: str = "by") -> tuple[tuple[str, ...], list[Read]]:
        """Return the kept columns among some, and the readings of the released ones."""
        names = named(by)
        if len(set(names)) != len(names):
            raise PlanError(f"{word}: a column is named twice")
        split = [self._read(name, "category") for name in names if name not in self.plan.keep]
        return tuple(name for name in names if name in self.plan.keep), split

    def _apart(self, reads: Sequence[Read]) -> None:
        """Refuse columns whose reports are not independent of each other."""
        for i, one in enumerate(reads):
            for other in reads[:i]:
                names = f"columns {other.reading.column!r} and {one.reading.column!r}"
                if one.source == other.source:
                    raise PlanError(f"{names}: are one; a question names each column once")
                codec = self.plan.codecs[one.codec]
                if one.codec == other.codec and not codec.apart:
                    tells = hasattr(codec.mechanism, "estimate_table")
                    own = " (its own estimate_table does)" if tells else ""
                    raise PlanError(
                        f"{names}: one report of {codec.settings.mechanism} is about both, or about one "
                        f"of them, and does not tell them together here{own}; a plan with a mechanism for "
                        "each column (GRR, OUE, Piecewise, whose epsilons add up) would"
                    )

    def _counted(
        self, codecs: Iterable[int], kept: Sequence[str], begin: Callable[[], Any]
    ) -> dict[Group, Any]:
        """Return what was begun for each group, after it has seen the reports of some codecs."""
        numbers = list(dict.fromkeys(codecs))
        every = [self.plan.codecs[i] for i in numbers]
        names = [*(name for codec in every for name in codec.names), *kept]
        made: dict[Group, Any] = {} if kept else {(): begin()}
        types: list[pa.DataType] = [pa.null()] * len(kept)
        row, total = 1, 0
        for table in rows_of(self._source, names, self.plan.digest):
            for j, name in enumerate(kept):
                kind = groups.key_type(name, table.schema.field(name).type)
                if pa.null() not in (kind, types[j]) and kind != types[j]:
                    raise PlanError(f"column {name!r}: holds {kind}, where it held {types[j]} before")
                types[j] = kind if types[j] == pa.null() else types[j]
            for group, rows in groups.grouped(table, kept) if kept else [((), table)]:
                reports = dict(zip(numbers, (codec.collect(rows, row) for codec in every), strict=True))
                if group not in made:
                    made[group] = begin()
                made[group].update(reports, rows.num_rows)
            row, total = row + table.num_rows, total + table.num_rows
        if not total:
            raise ValueError("question: the released table has no rows")
        self._types = types
        return made

    def _moments(
        self, reads: Sequence[Read], terms: Sequence[Term], kept: Sequence[str]
    ) -> dict[Group, Moments]:
        """Return the moments of terms of readings, in each group of kept columns."""
        if len(reads) > _MOST_FACTORS:
            raise PlanError(
                f"question: is about {len(reads)} released columns; {_MOST_FACTORS} are answered at once"
            )
        self._apart(reads)
        found = self._counted([each.codec for each in reads], kept, lambda: Terms(reads, terms))
        return {group: each.joint.moments() for group, each in found.items()}

    def _fitted(self, reads: Sequence[Read], terms: Sequence[Term]) -> Moments:
        """Return the moments of products of pairs of readings over all records."""
        found = self._counted([each.codec for each in reads], (), lambda: Terms(reads, terms))
        moments: Moments = found[()].joint.moments()
        return moments

    def _keys(
        self, kept: Sequence[str], found: Iterable[Group], cells: Sequence[tuple[str, Sequence[Any]]]
    ) -> dict[str, pa.Array]:
        """Return what the rows are about: each cell of each group."""
        every = [*product(*(labels for _, labels in cells))]
        order = list(found)
        keys = {
            name: groups.array_of_keys([group[j] for group in order for _ in every], self._types[j])
            for j, name in enumerate(kept)
        }
        for j, (name, _) in enumerate(cells):
            values = [cell[j] for _ in order for cell in every]
            if name:
                keys[name] = pa.array(values, pa.float64() if isinstance(values[0], float) else pa.string())
        return keys

    # -- kinds of answers

    def _alone(self, own: Read, what: str, kept: tuple[str, ...]) -> TableAnswer:
        """Return the answers about one column, with the intervals of its mechanism."""
        size = len(own.reading.labels)
        terms: list[Term] = [((0, j),) for j in range(size)] if size <= _TOGETHER else []
        codec = self.plan.codecs[own.codec]
        found = self._counted([own.codec], kept, lambda: Alone(own, terms, codec))
        estimates = [estimate_of(each.counts, codec, own.reading, size) for each in found.values()]
        limits = [(size, Deviation(1) if each.limits is None else each.limits) for each in estimates]
        covariance = None
        if terms:
            parts = [each.joint.moments() for each in found.values()]
            covariance = diagonal([each.covariance / each.n for each in parts])
        label = own.reading.column if what == "share" else ""
        n = np.repeat([each.joint.n for each in found.values()], size)
        return TableAnswer(
            what,
            own.reading.column,
            self._keys(kept, found, [(label, own.reading.labels)]),
            np.concatenate([each.value for each in estimates]),
            np.concatenate([each.stderr for each in estimates]),
            n,
            [own.reading.note] * len(n),
            limits[0][1] if len(limits) == 1 else Stacked(limits),
            covariance=covariance,
            span=own.reading.span,
            whole=what == "share" and not kept,
            **self._options,
        )

    def _smoothed(
        self, column: str, shares: NDArray[np.float64], kept: tuple[str, ...]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return quantiles by a mechanism that estimates them itself, and their standard errors."""
        own = Read(self._homes[column][1], replace(_ONE, column=column))
        codec = self._codec(column)
        found = self._counted([own.codec], kept, lambda: Alone(own, [], codec))
        place = codec.columns.index(column)
        made = [each.counts.estimate_quantile(shares) for each in found.values()]
        value = np.concatenate([each.value.reshape(-1, len(shares))[place] for each in made])
        return value, np.concatenate([each.stderr.reshape(-1, len(shares))[place] for each in made])

    def _ratios(
        self,
        what: str,
        column: str,
        top: Read,
        bottom: Read | None,
        split: list[Read],
        kept: tuple[str, ...],
        shift: float = 0.0,
        *,
        label: str | None = None,
        everybody: bool = False,
    ) -> TableAnswer:
        """Return the means of what one reading says, less a shift, over those of another, in each cell.

        Where `everybody` is true a mean is over all records, of which those in no cell count as 0.
        """
        upper, size = top.reading.less(shift), len(top.reading.labels)
        top = replace(top, reading=upper)
        cells = [*product(*(range(len(each.reading.labels)) for each in split))]
        factors = [top, *split] if bottom is None else [top, *split, bottom]
        own: list[Term] = [tuple((1 + i, j) for i, j in enumerate(cell)) for cell in cells]
        tops: list[Term] = [((0, t), *cell) for cell in own for t in range(size)]
        last = () if bottom is None else ((1 + len(split), 0),)
        bottoms: list[Term] = [() if everybody else (*cell, *last) for cell in own]
        found = self._moments(factors, [*tops, *bottoms], kept)
        lower = _ONE if bottom is None else bottom.reading
        span = upper.span
        if everybody:
            span = (min(0.0, span[0]), max(0.0, span[1]))
        elif bottom is not None and what == "ratio":
            span = quotients(upper.span, lower.span)
        weights = [each.reading for each in split]
        ends, floor = letters_of(upper, lower, weights, everybody)
        rate = min(each.reading.rate for each in factors)
        which = len(tops) + np.repeat(np.arange(len(cells)), size)
        rows = np.arange(len(tops))
        parts, covariances = [], []
        for each in found.values():
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
        every = [(each.reading.column, each.reading.labels) for each in split]
        name = (upper.column if size > 1 or upper.labels[0] is not None else "") if label is None else label
        return TableAnswer(
            *(what, column, self._keys(kept, found, [*every, (name, upper.labels)]), value),
            *(np.concatenate([each.stderr for each in parts]), np.concatenate([each.n for each in parts])),
            *(["; ".join(filter(None, [base, note])) for each in notes for note in each], Stacked(limits)),
            covariance=diagonal(covariances),
            span=(span[0] + shift, span[1] + shift),
            **self._options,
        )


def named(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
