"""Readings: what the reports of one column say of a record, as numbers whose mean is right.

A record that is in a category has the indicator 1, any other 0; a number is itself. A reading is a number for
each of them, whose mean over the random bits is that. Columns that are released independently have readings
whose product is one of the product: what questions about several columns are answered by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitldp.base.errors import PlanError

__all__ = ["Of", "Reading", "by_code", "indicators", "refused", "squares", "steps"]

#: What is read: a number, its square, or the category (or point) that a record is in.
Of: TypeAlias = Literal["number", "square", "category"]

_BITS = 10  # of a report whose values are listed
_MOST = 4096  # categories that are told apart
_GRID = 36  # bits of an entry that is summed with others
_POINTS = 16  # from which on the dither of a number says little of its square

_WOULD = {
    "number": "a plan that releases it as a number (Piecewise, or GRR with interval=) would give means",
    "square": "a plan with Piecewise, SquareWave or Laplace, or with GRR on the points of an interval, "
    "would give squares, too",
    "category": "a plan with GRR and interval=, or with SquareWave, would give the shares of its points",
}


@dataclass(frozen=True)
class Reading:
    """Numbers that each report of a column stands for, of the right mean.

    Attributes
    ----------
    column : str
    labels : tuple
        A category or point for each number of a record; one None of a number.
    read : callable
        Returns the numbers of reports, shape (n, entries).
    ends : ndarray of float64, shape (2, entries)
        Their least and largest.
    span : (float, float)
        Where the truth lies.
    floor : float
        Least variance of a number, given the record.
    moments : ndarray of float64, shape (3, entries), or None
        Of categories: second moments of an entry for records in it, and least and largest for others.
    rate : float
        Share of the records whose report is about the column.
    table : ndarray of float64, shape (codes, entries), or None
        The numbers by code, where a report is one of few codes.
    codes : callable or None
        Returns the codes of reports, shape (n,).
    note : str
        What the numbers are of, where that is not the column's values.
    dithered : bool
        Whether a number between two points counts as either, at random, and not as the nearest.
    """

    column: str
    labels: tuple[Any, ...]
    read: Callable[[Any], NDArray[np.float64]]
    ends: NDArray[np.float64]
    span: tuple[float, float]
    floor: float
    moments: NDArray[np.float64] | None = None
    rate: float = 1.0
    table: NDArray[np.float64] | None = None
    codes: Callable[[Any], NDArray[np.int64]] | None = None
    note: str = ""
    dithered: bool = False

    def summed(self, sets: NDArray[np.float64]) -> Reading:
        """Return the reading of sums of entries; `sets` has a column of 0 and 1 for each."""
        table = None if self.table is None else self.table @ sets
        ends = self.ends @ sets if table is None else _ends(table)
        unit = 2.0 ** (np.ceil(np.log2(max(float(np.abs(self.ends).max()), 1e-300))) - _GRID)

        def read(reports: Any) -> NDArray[np.float64]:
            if table is not None and self.codes is not None:
                return table[self.codes(reports)]
            # Multiples of one number sum to the same in any order, of any batch.
            made: NDArray[np.float64] = np.rint(self.read(reports) / unit) @ sets * unit
            return made

        return replace(self, read=read, ends=ends, moments=None, table=table)

    def among(self, chosen: NDArray[np.bool_]) -> Reading:
        """Return the reading of whether a record is in one of some categories."""
        made = replace(self.summed(chosen[:, None].astype(np.float64)), labels=(None,))
        if self.moments is not None and chosen.sum() == 1:
            return replace(made, moments=self.moments[:, chosen])
        return replace(made, moments=np.array([[1.0], [0.0], [np.inf]]), floor=0.0)

    def less(self, number: float) -> Reading:
        """Return the reading of the differences from a number."""
        if not number:
            return self
        read, table = self.read, None if self.table is None else self.table - number
        span = (self.span[0] - number, self.span[1] - number)
        return replace(
            self, read=lambda reports: read(reports) - number, ends=self.ends - number, span=span, table=table
        )


def _ends(table: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([table.min(axis=0), table.max(axis=0)])


def refused(title: str, mechanism: str, of: Of, because: str = "") -> PlanError:
    """Return the refusal of what a column does not tell, with the plan that would."""
    what = {"number": "numbers", "square": "squares of numbers", "category": "shares"}[of]
    reason = f" ({because})" if because else ""
    return PlanError(f"{title}: reports of {mechanism} do not give {what}{reason}; {_WOULD[of]}")


def by_code(
    column: str,
    table: NDArray[np.float64],
    codes: Callable[[Any], NDArray[Any]],
    span: tuple[float, float],
    floor: float,
    note: str = "",
) -> Reading:
    """Return the reading of a number of which each report is a code."""
    values = table.reshape(-1, 1)
    return Reading(
        *(column, (None,), lambda reports: values[codes(reports)], _ends(values), span, max(floor, 0.0)),
        table=values,
        codes=codes,
        note=note,
    )


def indicators(column: str, labels: tuple[Any, ...], mechanism: Any, rate: float = 1.0) -> Reading:
    """Return the reading of categories, by a mechanism of them, of those that it answers for.

    Parameters
    ----------
    column : str
    labels : tuple
        The first ones of them are the mechanism's categories.
    mechanism : Mechanism
    rate : float
        Share of the records that it answers for.

    Raises
    ------
    ValueError
        If no unbiased decode exists.
    PlanError
        For more categories than are told apart.
    """
    size = len(labels)
    if size > _MOST:
        raise PlanError(
            f"column {column!r}: has {size:,} categories; {_MOST:,} can be distinguished in a question"
        )
    of_answers = hasattr(mechanism, "_indicator_variances")  # its `variance` is that of other questions
    variance = mechanism._indicator_variances() if of_answers else mechanism.variance(np.arange(size))
    own = variance.diagonal() + 1.0
    others = variance.copy()
    np.fill_diagonal(others, np.inf)
    least = others.min(axis=0)
    np.fill_diagonal(others, -np.inf)
    moments = np.stack([own, least, others.max(axis=0)]) / rate
    floor = min(float(moments[0].min()) - 1.0, float(moments[1].min()))

    def read(reports: Any) -> NDArray[np.float64]:
        values: NDArray[np.float64] = mechanism._indicators(reports)
        return values

    codes = _codes_of(mechanism)
    if codes is None:
        values = mechanism._reach()[0].values
        ends = np.repeat(np.array([[values.min()], [values.max()]]), size, axis=1)
        return Reading(column, labels, read, ends, (0.0, 1.0), floor, moments, rate)
    number, every = codes
    table = mechanism._indicators(every)
    return Reading(
        *(column, labels, read, _ends(table), (0.0, 1.0), floor, moments, rate), table=table, codes=number
    )


def _codes_of(mechanism: Any) -> tuple[Callable[[Any], NDArray[np.int64]], NDArray[Any]] | None:
    """Return a function that numbers reports, and all reports in order; None where there are too many."""
    (columns, bits), *more = mechanism._report_parts
    if more:
        return None
    if columns == 1 and "codes" in mechanism.outputs:
        channel = getattr(mechanism, "channel", None)  # an answer of a joint report has none of its own
        cells = getattr(channel, "outputs", None) or mechanism._cells
        if cells > _MOST:
            return None
        return lambda reports: np.asarray(reports, np.int64).reshape(-1), np.arange(cells)
    if bits == 1 and columns <= _BITS and "codes" not in mechanism.outputs:
        powers = 1 << np.arange(columns)
        every = np.arange(1 << columns)[:, None] >> np.arange(columns) & 1
        try:
            mechanism._indicators(every.astype(np.uint8))
        except ValueError:  # not every word of bits is a report
            return None
        return lambda reports: np.asarray(reports, np.int64) @ powers, every.astype(np.uint8)
    return None


def squares(spread: Any, letters: NDArray[np.float64]) -> tuple[NDArray[np.float64], float] | None:
    """Return the unbiased square of the number of each code, and the largest bias of the dither.

    Parameters
    ----------
    spread : Spread
        Second moments of the letters at the points.
    letters : ndarray of float64, shape (codes,)

    Returns
    -------
    ndarray and float, or None
        None where letters are too few to tell a square from another.

    Notes
    -----
    Where E[(letter - middle)^2 | x] = a (x - middle)^2 + b at all points, the square of x is
    ((letter - middle)^2 - b)/a + 2 middle letter - middle^2. A number between two points h apart is dithered
    to one of them, which adds h^2/4 to its square at most.
    """
    points, moments, middle = spread.points, spread.moments, spread.middle
    if len(points) < _POINTS:
        return None
    about = np.square(points - middle)
    system = np.stack([about, np.ones_like(about)], axis=1)
    (slope, rest), *_ = np.linalg.lstsq(system, moments, rcond=None)
    missing = np.abs(system @ [slope, rest] - moments).max()
    if not (slope > 0.0 and missing <= 1e-9 * max(slope * about.max(), 1e-300)):
        return None
    values = (np.square(letters - middle) - rest) / slope + 2.0 * middle * letters - middle**2
    return values, float(points[1] - points[0]) ** 2 / 4.0


def steps(
    column: str, law: NDArray[np.float64], points: NDArray[np.float64], codes: Any, note: str
) -> Reading:
    """Return the reading of the points of a number by a law of sliding windows.

    Parameters
    ----------
    column : str
    law : ndarray of float64, shape (points, codes)
        P(code | point): of window i the codes i to i + m - 1, with one chance, and all others, with another.
    points : ndarray of float64, shape (points,)
    codes : callable
        Returns the codes of reports, shape (n,).
    note : str

    Notes
    -----
    Of the codes t, t - m, t - 2 m, ... window i holds one where i <= t, and none otherwise. So with chances a
    inside a window and b outside, (1 for such a code and 0 for others, less b times their number)/(a - b) is
    1 on average for the points up to t, and 0 for others; differences of these are the indicators.
    """
    size, alphabet = law.shape
    width = alphabet - size + 1
    inside, outside = law[0, 0], law[0, -1]
    number, last = np.arange(alphabet)[:, None], np.arange(size - 1)
    counted = ((number % width == last % width) & (number <= last)).astype(np.float64)
    below = (counted - outside * counted.sum(axis=0)) / (inside - outside)
    table = np.diff(below, axis=1, prepend=0.0, append=1.0)
    squares = law @ np.square(table)
    own = squares.diagonal().copy()
    np.fill_diagonal(squares, np.inf)
    least = squares.min(axis=0)
    np.fill_diagonal(squares, -np.inf)
    moments = np.stack([own, least, squares.max(axis=0)])
    floor = min(float(own.min()) - 1.0, float(least.min()))
    return Reading(
        *(
            column,
            tuple(points.tolist()),
            lambda reports: table[codes(reports)],
            _ends(table),
            (0.0, 1.0),
            floor,
        ),
        *(moments, 1.0, table, codes, note),
        dithered=True,
    )


def squared(span: tuple[float, float]) -> tuple[float, float]:
    """Return the least and the largest square of numbers between two."""
    low, high = span
    return 0.0 if low <= 0.0 <= high else min(low**2, high**2), max(low**2, high**2)
