"""Answers to a question: estimates with intervals, as an Arrow table or as text, and what follows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.errors import PlanError
from bitldp.estimate.estimates import project_simplex
from bitldp.estimate.intervals import Both, Deviation, Limits
from bitldp.estimate.ratio import Ratio, fieller
from bitldp.privacy import number

__all__ = ["Crossing", "Moved", "Stacked", "TableAnswer", "crossed"]

_TOGETHER = ("bonferroni", "sidak")


@dataclass(frozen=True, eq=False)
class Moved(Limits):
    """Limits of other estimates, scaled by a factor and shifted by a number.

    Attributes
    ----------
    limited : Limits
    scale : ndarray of float64, shape (entries,)
        Above 0.
    shift : float or ndarray of float64, shape (entries,)
    """

    limited: Limits
    scale: NDArray[np.float64]
    shift: float | NDArray[np.float64] = 0.0

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.limited.method

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return lower and upper limits, each wrong with probability `tail`."""
        low, high = self.limited.limits((value - self.shift) / self.scale, stderr / self.scale, tail)
        return self.scale * low + self.shift, self.scale * high + self.shift

    def at(self, index: Any) -> Moved:
        """Return those of some entries."""
        shift = np.broadcast_to(self.shift, self.scale.shape)[index]
        return Moved(self.limited.at(index), self.scale[index], shift)


@dataclass(frozen=True, eq=False)
class Stacked(Limits):
    """Limits of groups of entries, one after the other.

    Attributes
    ----------
    parts : sequence of (int, Limits)
        How many entries each has.
    """

    parts: Sequence[tuple[int, Limits]]

    @property
    def method(self) -> str:
        """Names of the methods."""
        return ", ".join(dict.fromkeys(each.method for _, each in self.parts))

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return lower and upper limits, each wrong with probability `tail`."""
        low, high, start = np.empty_like(value), np.empty_like(value), 0
        for size, each in self.parts:
            own = slice(start, start + size)
            low[own], high[own] = each.limits(value[own], stderr[own], tail)
            start += size
        return low, high

    def at(self, index: Any) -> Limits:
        """Refuse: entries of several groups have no limits of one kind."""
        raise TypeError("index: is of entries of several groups")


@dataclass(frozen=True, eq=False)
class Crossing(Limits):
    """Limits of quantiles: the numbers at which a test of the share of records below is not rejected.

    Attributes
    ----------
    below : Stacked
        Of `Ratio`: shares of records up to each threshold, in each cell.
    edges : ndarray of float64, shape (thresholds + 2,)
        The thresholds between the ends of the interval.
    shares : ndarray of float64
        What quantiles are of, as often as there are cells.
    slack : float
        How far a number may be from the side of a threshold that it counts for.
    """

    below: Stacked
    edges: NDArray[np.float64]
    shares: NDArray[np.float64]
    slack: float = 0.0

    @property
    def method(self) -> str:
        """Name of the method."""
        return "Woodruff, by Fieller's test"

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return lower and upper limits, each wrong with probability `tail`."""
        signs = {}
        for share in np.unique(self.shares).tolist():
            every = [each.refuted(share, tail) for _, each in self.below.parts if isinstance(each, Ratio)]
            signs[share] = np.concatenate(every).reshape(-1, len(self.edges) - 2)
        low, high = np.empty(len(self.shares)), np.empty(len(self.shares))
        each_cell = len(self.shares) // len(next(iter(signs.values())))
        for i, share in enumerate(self.shares.tolist()):
            own = signs[share][i // each_cell]  # 1: the share below is larger
            from_here, up_to = np.flatnonzero(own >= 0), np.flatnonzero(own <= 0)
            low[i] = self.edges[from_here[0] if len(from_here) else -2]
            high[i] = self.edges[up_to[-1] + 2 if len(up_to) else 1]
        return np.maximum(low - self.slack, self.edges[0]), np.minimum(high + self.slack, self.edges[-1])

    def at(self, index: Any) -> Limits:
        """Refuse: entries of several cells are not looked at one by one."""
        raise TypeError("index: is of entries of several cells")


def crossed(
    below: NDArray[np.float64], shares: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return where shares of records below thresholds reach some shares; NaN where they are not known."""
    if not np.isfinite(below).all():
        return np.full(len(shares), np.nan)
    rising = np.clip(np.maximum.accumulate(np.concatenate([[0.0], below, [1.0]])), 0.0, 1.0)
    return np.interp(shares, rising, edges)


@dataclass(frozen=True, eq=False)
class TableAnswer:
    """Estimates that answer a question, each with its interval; a `ReleasedTable` returns them.

    Attributes
    ----------
    what : str
        Kind of the estimates: "mean", "share", "quantile", ...
    column : str
        The column, or columns, that they are about.
    keys : mapping of str to pyarrow.Array
        Subject of each estimate: the categories, the groups, the share of a quantile.
    value, stderr : ndarray of float64, shape (rows,)
        Unbiased estimates (of ratios: unbiased to first order) and their standard errors; NaN if there is
        none.
    n : ndarray of int, shape (rows,)
        Records behind each estimate.
    notes : sequence of str
        Qualification of each estimate, or an empty text.
    limits : Limits
        Method of the intervals.
    covariance : ndarray of float64, shape (rows, rows), or None
        Covariance of the estimates; None if it is unknown.
    span : (float, float)
        Range of possible true values.
    level : float
        Coverage of an interval.
    together : {None, "bonferroni", "sidak"}
        Correction by which the level covers all intervals at once; None: each interval by itself.
    projected : bool
        Whether estimates and intervals are projected to the range of possible values.
    whole : bool
        Whether the estimates are all shares of one whole.
    """

    what: str
    column: str
    keys: Mapping[str, pa.Array]
    value: NDArray[np.float64]
    stderr: NDArray[np.float64]
    n: NDArray[np.int64]
    notes: Sequence[str]
    limits: Limits
    covariance: NDArray[np.float64] | None = None
    span: tuple[float, float] = (-np.inf, np.inf)
    level: float = 0.95
    together: str | None = None
    projected: bool = False
    whole: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        checks.chance("level", self.level)
        if self.together is not None:
            checks.choice("simultaneous", self.together, _TOGETHER)

    def __len__(self) -> int:
        """Return how many answers there are."""
        return len(self.value)

    @property
    def interval(self) -> Both:
        """Lower and upper limits of each answer, at the level that was asked for."""
        wrong, rows = 1.0 - self.level, max(1, len(self))
        if self.together == "bonferroni":
            wrong = wrong / rows
        elif self.together == "sidak":
            wrong = -np.expm1(np.log1p(-wrong) / rows)
        low, high = self.limits.limits(self.value, self.stderr, wrong / 2.0)
        if self.projected:
            low, high = np.clip(low, *self.span), np.clip(high, *self.span)
        return low, high

    @property
    def estimate(self) -> NDArray[np.float64]:
        """The estimates, projected to the range of possible values if you asked for it."""
        if not self.projected:
            return self.value
        if self.whole and np.isfinite(self.value).all():
            return project_simplex(self.value)
        return np.clip(self.value, *self.span)

    @property
    def table(self) -> pa.Table:
        """The answers as an Arrow table.

        The columns are the keys of each answer, ``column``, ``what``, ``estimate``, ``stderr``, ``low``,
        ``high``, ``n``, ``note``, and ``unprojected`` where estimates were projected.
        """
        low, high = self.interval
        figures = {"estimate": self.estimate, "stderr": self.stderr, "low": low, "high": high}
        rows = len(self)
        raw = {"unprojected": pa.array(self.value, from_pandas=True)} if self.projected else {}
        return pa.table(
            {
                **self.keys,
                "column": pa.array([self.column] * rows, pa.string()),
                "what": pa.array([self.what] * rows, pa.string()),
                **{name: pa.array(each, pa.float64(), from_pandas=True) for name, each in figures.items()},
                "n": pa.array(self.n, pa.int64()),
                "note": pa.array([note or None for note in self.notes], pa.string()),
                **raw,
            }
        )

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the table as a stream, for pandas, polars, DuckDB and others that take Arrow."""
        return self.table.__arrow_c_stream__(requested_schema)

    def times_records(self) -> TableAnswer:
        """Return sums over the records in place of means: each answer times its `n`."""
        n = self.n.astype(np.float64)
        most = float(n.max(initial=0.0))
        return replace(
            self,
            what="total",
            value=self.value * n,
            stderr=self.stderr * n,
            limits=Moved(self.limits, n),
            covariance=None if self.covariance is None else self.covariance * np.outer(n, n),
            span=(self.span[0] * most, self.span[1] * most),
            whole=False,
        )

    def row(self, which: int | Mapping[str, Any]) -> int:
        """Return the number of one answer, by its number or by what it is about.

        Raises
        ------
        PlanError
            For none, or for several.
        """
        if not isinstance(which, Mapping):
            place = checks.integer("row", which, 0)
            if place >= len(self):
                raise PlanError(f"row: there are {len(self)}, numbered from 0")
            return place
        if unknown := [name for name in which if name not in self.keys]:
            raise PlanError(f"row: no key {unknown[0]!r}; there are {', '.join(self.keys) or 'none'}")
        keys = {name: self.keys[name].to_pylist() for name in which}
        rows = [i for i in range(len(self)) if all(keys[name][i] == value for name, value in which.items())]
        if len(rows) != 1:
            raise PlanError(f"row: {len(rows)} answers match, and exactly one must")
        return rows[0]

    def difference(self, one: int | Mapping[str, Any], other: int | Mapping[str, Any]) -> TableAnswer:
        """Return one answer minus another, with the standard error of the difference.

        Parameters
        ----------
        one, other : int or mapping of str
            Their rows, or what they are about: ``{"income": "high"}``.

        Raises
        ------
        PlanError
            For a row that is none, and where the covariance of answers is not known.
        """
        i, j, between = self._pair(one, other)
        variance = max(between[0] - 2.0 * between[1] + between[2], 0.0)
        n = int(min(self.n[i], self.n[j]))
        return self._one("difference", i, j, self.value[i] - self.value[j], variance**0.5, Deviation(n))

    def differences(self, by: Sequence[str], base: Any = None) -> TableAnswer:
        """Return all answers minus one of them, with the standard errors of the differences.

        Parameters
        ----------
        by : sequence of str
            Keys that tell groups apart.
        base : object, optional
            What the last of them is in the answers that are subtracted; by default as in the first answer.
            The other keys are the same on both sides.

        Raises
        ------
        PlanError
            For a key or a group that is none, and where the covariance of answers is not known.
        """
        if not by or any(name not in self.keys for name in by):
            raise PlanError(f"by: must be some of {', '.join(self.keys) or 'no keys'}")
        if self.covariance is None:
            raise PlanError(f"{self.what}: the errors of these answers together are not known")
        last = self.keys[by[-1]].to_pylist()
        alike = [each for each in last if base is None or each == base or _text(each) == str(base)]
        if not alike:
            raise PlanError(f"base: no group of {by[-1]!r} is that")
        base = alike[0]
        others = [
            [each[i].as_py() for name, each in self.keys.items() if name != by[-1]] for i in range(len(self))
        ]
        bases = {repr(others[i]): i for i in range(len(self)) if last[i] == base}
        pairs = [
            (i, bases[repr(others[i])])
            for i in range(len(self))
            if last[i] != base and repr(others[i]) in bases
        ]
        slopes = np.zeros((len(pairs), len(self)))
        for row, (i, j) in zip(slopes, pairs, strict=True):
            row[i], row[j] = 1.0, -1.0
        known = np.isfinite(self.value)
        with np.errstate(invalid="ignore"):
            value = np.array([self.value[i] - self.value[j] for i, j in pairs])
        square = slopes @ np.where(np.isfinite(self.covariance), self.covariance, 0.0) @ slopes.T
        untold = np.array([not (known[i] and known[j]) for i, j in pairs], bool)
        square[untold] = square[:, untold] = np.nan
        rows = pa.array([i for i, _ in pairs], pa.int64())
        n = np.array([min(self.n[i], self.n[j]) for i, j in pairs], np.int64)
        keys = {name: each.take(rows) for name, each in self.keys.items()}
        texts = [f"{_text(each)} - {_text(base)}" for each in keys[by[-1]].to_pylist()]
        notes = ["; ".join(dict.fromkeys(filter(None, (self.notes[i], self.notes[j])))) for i, j in pairs]
        width = self.span[1] - self.span[0]
        return replace(
            self,
            what=f"difference of {self.what}s",
            keys={**keys, by[-1]: pa.array(texts, pa.string())},
            value=value,
            stderr=np.sqrt(np.maximum(square.diagonal(), 0.0)),
            n=n,
            notes=notes,
            limits=Deviation(int(n.min(initial=1 << 62))),
            covariance=square,
            span=(-width, width),
            whole=False,
        )

    def ratio(self, one: int | Mapping[str, Any], other: int | Mapping[str, Any]) -> TableAnswer:
        """Return one answer divided by another, with Fieller's interval; no interval if the other may be 0.

        The arguments are those of `difference`.
        """
        i, j, between = self._pair(one, other)
        tail = (1.0 - self.level) / 2.0
        made = fieller(float(self.value[i]), float(self.value[j]), between, tail)
        if made is None:
            answer = self._one("ratio", i, j, np.nan, np.nan, Deviation(0))
            return replace(answer, notes=["the lower one may be 0, or below"])
        value, stderr, low, high = made
        return self._one("ratio", i, j, value, stderr, _Given(low, high, tail))

    def _pair(self, one: Any, other: Any) -> tuple[int, int, tuple[float, float, float]]:
        i, j = self.row(one), self.row(other)
        if self.covariance is None:
            raise PlanError(f"{self.what}: the errors of these answers together are not known")
        square = self.covariance
        return i, j, (float(square[i, i]), float(square[i, j]), float(square[j, j]))

    def _one(self, what: str, i: int, j: int, value: float, stderr: float, limits: Limits) -> TableAnswer:
        texts = {name: f"{each[i]} - {each[j]}" for name, each in self.keys.items() if each[i] != each[j]}
        keys = {name: pa.array([text]) for name, text in texts.items()}
        n = self.n[[i]] if i == j else np.array([min(self.n[i], self.n[j])])
        note = [self.notes[i]]
        figures = np.array([value]), np.array([stderr])
        return TableAnswer(
            f"{what} of {self.what}s", self.column, keys, *figures, n, note, limits, level=self.level
        )

    def __str__(self) -> str:
        """Return the answers as a table of text."""
        table = self.table
        names = [name for name in table.column_names if table[name].null_count < len(table) or name == "low"]
        rows = [
            [_text(value) for value in row]
            for row in zip(*(table[n].to_pylist() for n in names), strict=True)
        ]
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = [names, *rows]
        return "\n".join(
            "  ".join(each.ljust(width) for each, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class _Given(Limits):
    """Limits that were made for one level."""

    low: float
    high: float
    tail: float

    @property
    def method(self) -> str:
        """Name of the method."""
        return "Fieller"

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return the two limits."""
        return np.full_like(value, self.low), np.full_like(value, self.high)

    def at(self, index: Any) -> _Given:
        """Return those of some entries."""
        return self


def _text(value: Any) -> str:
    if value is None:
        return ""
    return number(value, 5) if isinstance(value, float) else str(value)
