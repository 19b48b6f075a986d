"""Least squares and correlations from unbiased second moments of released columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.estimate.intervals import Deviation
from bitldp.tables.answer import TableAnswer
from bitldp.tables.joint import Moments, Term

__all__ = ["correlated", "regressed"]

_LEAST = 1e-6  # least eigenvalue of second moments whose diagonal is 1


class Asked(Protocol):
    """The part of `bitldp.tables.ReleasedTable` that fits are made of."""

    _options: dict[str, Any]

    def _tells(self, column: str, of: Any) -> bool: ...

    def _read(self, column: str, of: Any) -> Any: ...

    def _present(self, column: str) -> Any: ...

    def _fitted(self, reads: Sequence[Any], terms: Sequence[Term]) -> Moments: ...


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
    released: Asked, numbers: Sequence[str], names: Sequence[str]
) -> tuple[list[Variable], list[Any]]:
    """Return the number 1 and the variables of some columns, and the readings that they are of."""
    reads: list[Any] = []
    made = [Variable(None, None, (), ())]
    for name in names:
        if name not in numbers and not released._tells(name, "number"):
            own = released._read(name, "category")
            reads.append(own)
            terms: list[Term] = [((len(reads) - 1, j),) for j in range(1, len(own.reading.labels))]
            made += [
                Variable(name, str(own.reading.labels[j]), term, term) for j, term in enumerate(terms, 1)
            ]
            continue
        if released._present(name) is not None:
            raise PlanError(
                f"column {name!r}: has gaps (nulls='report'); a plan that fills them would give the fit"
            )
        own, square = released._read(name, "number"), released._read(name, "square")
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


def _second(released: Asked, variables: Sequence[Variable], reads: Sequence[Any]) -> Second:
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
    moments = released._fitted(reads, terms)
    return Second(moments, np.where(which < 0, 0.0, moments.mean[which]), which)


def regressed(released: Asked, column: str, on: Sequence[str]) -> TableAnswer:
    """Return the coefficients of least squares; see `ReleasedTable.regress`."""
    if not on:
        raise PlanError("on: needs one column or more")
    variables, reads = _variables(released, [column], [column, *on])
    moments, matrix, which = _second(released, variables, reads)
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
        **released._options,
    )


def correlated(released: Asked, one: str, other: str) -> TableAnswer:
    """Return a correlation; see `ReleasedTable.correlation`."""
    variables, reads = _variables(released, [one, other], [one, other])
    moments, matrix, which = _second(released, variables, reads)
    means = matrix[0]
    centred = matrix - np.outer(means, means)
    a, b, both = float(centred[1, 1]), float(centred[2, 2]), float(centred[1, 2])
    note = "; ".join(dict.fromkeys(filter(None, [each.reading.note for each in reads])))
    value = stderr = np.nan
    if a > 0.0 and b > 0.0:
        value = both / math.sqrt(a * b)
        slope = np.zeros(len(moments.mean))
        for i, own, mean, across in ((1, a, means[1], means[2]), (2, b, means[2], means[1])):
            slope[which[i, i]] -= value / (2.0 * own)
            slope[which[0, i]] += value * mean / own - across / math.sqrt(a * b)
        slope[which[1, 2]] += 1.0 / math.sqrt(a * b)
        variance = float(slope @ moments.covariance @ slope)
        stderr = math.sqrt(max(variance, 0.0) / moments.n)
    else:
        note = "the numbers' variance is not above 0: too few records, or too little epsilon"
    figures = np.array([value]), np.array([stderr])
    return TableAnswer(
        *(
            "correlation",
            f"{one}, {other}",
            {},
            *figures,
            np.array([moments.n]),
            [note],
            Deviation(moments.n),
        ),
        span=(-1.0, 1.0),
        **released._options,
    )
