"""Least squares, correlations and logistic fits, from unbiased moments of released columns."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.estimate.estimates import project_simplex
from bitldp.estimate.intervals import Deviation
from bitldp.tables.answer import TableAnswer
from bitldp.tables.counting import Counting, Question
from bitldp.tables.joint import Moments, Read, Term

__all__ = ["correlated", "logistic", "regressed"]

_STEPS, _FAR = 100, 40.0  # of a logistic fit, and largest log odds there
_SURE = 3.0  # standard errors by which a category has records of each outcome
_LEAST = 1e-6  # least eigenvalue of second moments whose diagonal is 1


class Asks(Protocol):
    """The part of `bitldp.tables.questions.Questions` that fits are made of."""

    options: dict[str, Any]

    def tells(self, column: str, of: Any) -> bool: ...

    def read(self, column: str, of: Any) -> Read: ...

    def present(self, column: str) -> Read | None: ...

    def fitted(self, reads: Sequence[Read], terms: Sequence[Term]) -> Counting: ...


class Variable(NamedTuple):
    """One variable of a fit.

    Attributes
    ----------
    column, category : str or None
        The column, and the category of one of categories; neither of the number 1.
    factors : Term
        What its value is.
    square : Term
        What its square is.
    """

    column: str | None
    category: str | None
    factors: Term
    square: Term


def _variables(
    questions: Asks, numbers: Sequence[str], names: Sequence[str]
) -> tuple[list[Variable], list[Read]]:
    """Return the number 1 and the variables of some columns, and the readings that they are of."""
    reads: list[Read] = []
    made = [Variable(None, None, (), ())]
    for name in names:
        if name not in numbers and not questions.tells(name, "number"):
            own = questions.read(name, "category")
            reads.append(own)
            terms: list[Term] = [((len(reads) - 1, j),) for j in range(1, len(own.reading.labels))]
            made += [
                Variable(name, text(own.reading.labels[j]), term, term) for j, term in enumerate(terms, 1)
            ]
            continue
        if questions.present(name) is not None:
            raise PlanError(
                f"column {name!r}: has gaps (nulls='report'); a plan that fills them would give the fit"
            )
        own, square = questions.read(name, "number"), questions.read(name, "square")
        reads += [own, square]
        made.append(Variable(name, None, ((len(reads) - 2, 0),), ((len(reads) - 1, 0),)))
    return made, reads


class Second(NamedTuple):
    """Second moments of variables, and how they follow from the terms of a question.

    Attributes
    ----------
    moments : Moments
    matrix : ndarray of float64, shape (v, v)
    which : ndarray of int, shape (v, v)
        The term that each is; -1 where it is 0.
    """

    moments: Moments
    matrix: NDArray[np.float64]
    which: NDArray[np.intp]


def _second(
    questions: Asks, variables: Sequence[Variable], reads: Sequence[Read]
) -> Generator[Counting, Counting, Second]:
    size = len(variables)
    which = np.full((size, size), -1)
    terms: list[Term] = []
    for i, one in enumerate(variables):
        for j, other in enumerate(variables[: i + 1]):
            if i != j and one.column == other.column:  # two categories: nobody is in both
                continue
            term = one.square if i == j else (*one.factors, *other.factors)
            which[i, j] = which[j, i] = len(terms)
            terms.append(term)
    counted = yield questions.fitted(reads, terms)
    (moments,) = counted.moments()
    return Second(moments, np.where(which < 0, 0.0, moments.mean[which]), which)


def regressed(questions: Asks, column: str, on: Sequence[str]) -> Question:
    """Return the coefficients of least squares; see `ReleasedTable.regress`."""
    if not on:
        raise PlanError("on: needs one column or more")
    variables, reads = _variables(questions, [column], [column, *on])
    moments, matrix, which = yield from _second(questions, variables, reads)
    target, *rest = [i for i in range(len(variables)) if i != 0]
    inputs = [0, *rest]
    scale = np.sqrt(np.abs(matrix.diagonal()))
    scale = np.where(scale > 0.0, scale, 1.0)
    scaled = matrix / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(scaled)
    proper = bool(values.min() > 0.0)
    if not proper:
        scaled = (vectors * np.maximum(values, _LEAST)) @ vectors.T
    square, mixed = scaled[np.ix_(inputs, inputs)], scaled[inputs, target]
    inverse = np.linalg.inv(square)
    fitted = inverse @ mixed
    # A coefficient moves by inverse (m - M b) where the second moments move by M and m.
    slopes = np.zeros((len(inputs), len(moments.mean)))
    for i, one in enumerate(inputs):
        for j, other in enumerate([*inputs, target]):
            if which[one, other] >= 0:
                change = (1.0 if other == target else -fitted[j]) / (scale[one] * scale[other])
                slopes[:, which[one, other]] += inverse[:, i] * change
    unit = scale[target] / scale[inputs]
    covariance = slopes @ moments.covariance @ slopes.T / moments.n * np.outer(unit, unit)
    note = ""
    if not proper:
        covariance = np.full_like(covariance, np.nan)
        note = "projected: the second moments were those of no records; biased, more records would help"
    notes = [note or "; ".join(dict.fromkeys(filter(None, [each.reading.note for each in reads])))] * len(
        inputs
    )
    own = [variables[i] for i in inputs]
    keys = {
        "term": pa.array([each.column or "intercept" for each in own], pa.string()),
        "category": pa.array([each.category for each in own], pa.string()),
    }
    stderr = np.sqrt(np.maximum(covariance.diagonal(), 0.0)) if proper else np.full(len(own), np.nan)
    n = np.full(len(own), moments.n)
    return TableAnswer(
        *("coefficient", column, keys, fitted * unit, stderr, n, notes, Deviation(moments.n)),
        covariance=covariance if proper else None,
        **questions.options,
    )


def correlated(questions: Asks, one: str, other: str, *, scaled: bool = True) -> Question:
    """Return a correlation, or a covariance; see `ReleasedTable.correlation`."""
    variables, reads = _variables(questions, [one, other], [one, other])
    moments, matrix, which = yield from _second(questions, variables, reads)
    weight = matrix[0, 0]  # the share of the records that the question is about
    a, b, both = ((weight * matrix[i, j] - matrix[0, i] * matrix[0, j]) for i, j in ((1, 1), (2, 2), (1, 2)))
    slopes = np.zeros((3, len(moments.mean)))  # of a, b and both
    for row, (i, j) in zip(slopes, ((1, 1), (2, 2), (1, 2)), strict=True):
        row[which[i, j]] += weight
        row[which[0, 0]] += matrix[i, j]
        row[which[0, i]] -= matrix[0, j]
        row[which[0, j]] -= matrix[0, i]
    note = "; ".join(dict.fromkeys(filter(None, [each.reading.note for each in reads])))
    value = stderr = np.nan
    if not scaled and weight > 0.0:
        value, slope = both / weight**2, slopes[2] / weight**2
        slope[which[0, 0]] -= 2.0 * value / weight
    elif scaled and a > 0.0 and b > 0.0:
        root = math.sqrt(a * b)
        value = both / root
        slope = slopes[2] / root - value / 2.0 * (slopes[0] / a + slopes[1] / b)
    else:
        note = "the numbers' variance is not above 0: too few records, or too little epsilon"
    if not math.isnan(value):
        variance = float(slope @ moments.covariance @ slope)
        stderr = math.sqrt(max(variance, 0.0) / moments.n)
    figures = np.array([value]), np.array([stderr])
    return TableAnswer(
        *("correlation" if scaled else "covariance", f"{one}, {other}", {}, *figures),
        *(np.array([moments.n]), [note], Deviation(moments.n)),
        span=(-1.0, 1.0) if scaled else (-np.inf, np.inf),
        **questions.options,
    )


def logistic(questions: Asks, column: str, on: Sequence[str], category: str | None) -> Question:
    """Return the coefficients of a logistic fit; see `ReleasedTable.logistic`."""
    if not on:
        raise PlanError("on: needs one column or more")
    outcome, *inputs = reads = [questions.read(name, "category") for name in (column, *on)]
    labels = [text(each) for each in outcome.reading.labels]
    chosen = labels[-1] if category is None else category
    if chosen not in labels:
        raise PlanError(f"category: {chosen!r} is not in column {column!r}; there are {', '.join(labels)}")
    reads[0] = replace(outcome, reading=outcome.reading.among(np.array(labels) == chosen))
    cells = [*product(*(range(len(each.reading.labels)) for each in inputs))]
    rows: list[Term] = [tuple((1 + i, j) for i, j in enumerate(cell)) for cell in cells]
    counted = yield questions.fitted(reads, [*(((0, 0), *row) for row in rows), *rows])
    (moments,) = counted.moments()
    design = np.array([_indicated(cell, inputs) for cell in cells])
    inside, there = np.split(moments.mean, 2)
    fitted, chances = _log_odds(design, inside, there)
    covariance, note = np.full((len(fitted), len(fitted)), np.nan), _scarce(moments, cells, inputs)
    if np.isfinite(fitted).all() and not note:  # some cells may be below 0: the score is a sum of them
        information = (design.T * (there * chances * (1.0 - chances))) @ design
        slopes = np.linalg.inv(information) @ np.concatenate([design.T, -design.T * chances], axis=1)
        covariance = slopes @ moments.covariance @ slopes.T / moments.n
    elif not np.isfinite(fitted).all():
        nearest = project_simplex(np.concatenate([inside, there - inside]) / max(abs(there.sum()), 1e-300))
        inside, there = nearest[: len(cells)], nearest[: len(cells)] + nearest[len(cells) :]
        fitted, _ = _log_odds(design, inside, there)
        note = f"projected: the cells were those of no records, which biases the estimates; {note}"
    notes = [note or "; ".join(dict.fromkeys(filter(None, [each.reading.note for each in reads])))]
    own = [
        (None, None),
        *((each.reading.column, label) for each in inputs for label in each.reading.labels[1:]),
    ]
    keys = {
        "term": pa.array([name or "intercept" for name, _ in own], pa.string()),
        "category": pa.array([None if name is None else text(label) for name, label in own], pa.string()),
    }
    known = bool(np.isfinite(covariance).all())
    stderr = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    return TableAnswer(
        *("log odds", f"{column} = {chosen}", keys, fitted, stderr, np.full(len(own), moments.n)),
        *(notes * len(own), Deviation(moments.n)),
        covariance=covariance if known else None,
        **questions.options,
    )


def _scarce(moments: Moments, cells: Sequence[Sequence[int]], inputs: Sequence[Read]) -> str:
    """Return which categories have too few records, of either outcome, for an interval; empty of none."""
    few = []
    for j, each in enumerate(inputs):
        for i, label in enumerate(each.reading.labels):
            own = np.array([cell[j] == i for cell in cells], float)
            for slope in (np.concatenate([own, 0.0 * own]), np.concatenate([-own, own])):
                error = math.sqrt(max(float(slope @ moments.covariance @ slope), 0.0) / moments.n)
                if not slope @ moments.mean > _SURE * error:
                    few.append(f"{text(label)} ({each.reading.column})")
    if not few:
        return ""
    return f"no interval: too few records of {', '.join(dict.fromkeys(few))}, with the category or without it"


def _indicated(cell: Sequence[int], inputs: Sequence[Read]) -> list[float]:
    """Return a row of the design: 1, and an indicator of each category but the first."""
    row = [1.0]
    for j, each in zip(cell, inputs, strict=True):
        row += [float(j == i) for i in range(1, len(each.reading.labels))]
    return row


def _log_odds(
    design: NDArray[np.float64], inside: NDArray[np.float64], there: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the solution of the score of a logistic fit on cells, and its chances; NaN where there is none.

    Newton's steps from 0, each short enough to stay where the information is positive definite.
    """
    fitted = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chances = 1.0 / (1.0 + np.exp(-np.clip(design @ fitted, -_FAR, _FAR)))
        score = design.T @ (inside - there * chances)
        information = (design.T * (there * chances * (1.0 - chances))) @ design
        scale = np.sqrt(np.abs(information.diagonal()))
        if not scale.min() > 0.0 or np.linalg.eigvalsh(information / np.outer(scale, scale)).min() < _LEAST:
            break
        step = np.linalg.solve(information, score)
        longest = float(np.abs(step).max())
        fitted = fitted + step * min(1.0, 2.0 / max(longest, 1e-300))
        if longest < 1e-10:
            return fitted, chances
    return np.full(design.shape[1], np.nan), chances


def text(label: Any) -> str:
    """Return a category or point as text."""
    return "missing" if label is None else f"{label:g}" if isinstance(label, float) else str(label)
