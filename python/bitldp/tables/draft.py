"""Drafts of plans, from the types of a table and the questions that will be asked of its release."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bitldp.base import checks
from bitldp.base.errors import PlanError
from bitldp.privacy import share
from bitldp.record.categorical import CategoricalRecord
from bitldp.record.choice import number_mechanism, oracle
from bitldp.record.mixed import MixedRecord
from bitldp.tables.column import Column
from bitldp.tables.frames import plain_type
from bitldp.tables.plan import TablePlan

__all__ = ["ExpectedError", "PlanDraft", "PlannedQuestion", "draft_plan", "needed", "questions_of"]

_QUESTION = re.compile(r"\s*(mean|share|table)\s*\(([^()]*)\)\s*(?:by\s+([^;()]+?))?\s*")
_ROWS = 64  # inputs over which a variance is averaged


class PlannedQuestion(NamedTuple):
    """A question that will be asked of the released table.

    Attributes
    ----------
    what : {"mean", "share", "table"}
        The mean of a number, the shares of categories, or a table of two or three columns.
    columns : tuple of str
        Its columns; the last one or two of a mean or a share with ``by`` are the groups.
    """

    what: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        """Return the question as it is written."""
        if self.what == "table":
            return f"table({', '.join(self.columns)})"
        by = f" by {', '.join(self.columns[1:])}" if len(self.columns) > 1 else ""
        return f"{self.what}({self.columns[0]}){by}"


class ExpectedError(NamedTuple):
    """Expected error of an answer: the standard deviation that the mechanisms add, at a number of records.

    Attributes
    ----------
    question : PlannedQuestion
    error : float
        Of a mean in its column's units; of a share or a cell of a table, as a share. The worst group counts
        1/k of the records, where k groups are equally large.
    records : int
    """

    question: PlannedQuestion
    error: float
    records: int


@dataclass(frozen=True)
class PlanDraft:
    """A drafted plan, and what its answers are expected to be off by.

    Attributes
    ----------
    plan : TablePlan
    errors : tuple of ExpectedError
        One for each question.
    """

    plan: TablePlan
    errors: tuple[ExpectedError, ...]


def questions_of(text: str) -> tuple[PlannedQuestion, ...]:
    """Return the questions in a text: ``mean(age) by sex; table(sex, income); share(city)``.

    Raises
    ------
    PlanError
        For what is no such question; the message names it.
    """
    result = []
    for part in filter(str.strip, text.split(";")):
        match = _QUESTION.fullmatch(part)
        columns = [] if match is None else [*_names(match[2]), *_names(match[3] or "")]
        what = "" if match is None else match[1]
        fits = {"mean": 1, "share": 1, "table": 2}.get(what, 9) <= len(columns) <= 3
        if match is None or not fits or not all(columns) or (what == "table" and match[3]):
            raise PlanError(
                f"questions: {part.strip()!r} is no question; write mean(NUMBER) or share(COLUMN), either "
                "with 'by' and one or two columns, or table(COLUMN, COLUMN)"
            )
        if len(set(columns)) < len(columns):
            raise PlanError(f"questions: {part.strip()!r} names a column twice")
        result.append(PlannedQuestion(what, tuple(columns)))
    return tuple(result)


def _names(text: str) -> list[str]:
    return [name.strip().strip('"') for name in text.split(",")] if text.strip() else []


def needed(
    schema: pa.Schema,
    columns: Sequence[str],
    *,
    intervals: Mapping[str, Any],
    categories: Mapping[str, Any],
) -> dict[str, str]:
    """Return what must still be given of each column: "range", "list of values", or either.

    Raises
    ------
    PlanError
        For a column that the table has not once.
    """
    result = {}
    for name in columns:
        if schema.names.count(name) != 1:
            raise PlanError(f"column {name!r}: the table must have exactly one column of that name")
        kind = plain_type(schema.field(name).type)
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if name in categories or name in intervals or pa.types.is_boolean(kind):
            continue
        untyped = pa.types.is_null(kind)
        result[name] = "range or list of values" if untyped else "range" if numeric else "list of values"
    return result


def draft_plan(
    schema: pa.Schema,
    *,
    epsilon: float,
    columns: Sequence[str],
    intervals: Mapping[str, tuple[float, float]] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    keep: Sequence[str] = (),
    questions: Iterable[PlannedQuestion] = (),
    records: int = 10_000,
) -> PlanDraft:
    """Draft a plan from the types of a table: which mechanism releases which columns, and at which budget.

    Parameters
    ----------
    schema : pyarrow.Schema
        Types of the table. No value of it is read.
    epsilon : float
        Exact epsilon of a record over all columns, above zero; neighbouring records differ in any way.
    columns : sequence of str
        Columns to release. Others do not leave.
    intervals : mapping of str to (float, float)
        Public range of each column of numbers.
    categories : mapping of str to sequence
        Public list of the values of each other column; of booleans it is known.
    keep : sequence of str
        Columns that leave as they are, without any privacy.
    questions : iterable of PlannedQuestion
        Questions that will be asked. None: the mean or the shares of each column.
    records : int
        Number of records that the expected errors are for.

    Returns
    -------
    PlanDraft

    Raises
    ------
    PlanError
        For a column that the table lacks, or whose range or list is not given: all of them are named.
    ValueError
        For an epsilon that is not above zero.

    Notes
    -----
    Columns that a question joins are released apart, each with a share of epsilon: only then is a product of
    their decoded values unbiased. The others may be one record, of which a public random choice picks the
    column that gets their whole share. The draft compares both, and how epsilon is divided between them, and
    takes the least sum of expected errors, each in units of its column's spread. Numbers share a record where
    their ranges are the same.
    """
    epsilon, count = checks.positive("epsilon", epsilon), checks.integer("records", records, 1)
    spans, lists = dict(intervals or {}), dict(categories or {})
    kinds = _kinds(schema, tuple(columns), spans, lists)
    asked = tuple(questions) or tuple(PlannedQuestion(_what(kinds[name]), (name,)) for name in columns)
    _check(asked, kinds, keep)
    best: tuple[float, list[_Part], list[float]] | None = None
    for parts in _divisions(kinds, asked, keep, epsilon):
        off = [_error(question, parts, kinds, count) for question in asked]
        cost = sum(error / kinds[q.columns[0]].spread for error, q in zip(off, asked, strict=True))
        if best is None or cost < best[0]:
            best = cost, parts, off
    if best is None:
        raise PlanError("columns: at least one is needed")
    _, parts, off = best
    plan = TablePlan([part.column for part in parts], keep=keep)
    errors = (ExpectedError(question, error, count) for question, error in zip(asked, off, strict=True))
    return PlanDraft(plan, tuple(errors))


class _Kind(NamedTuple):
    """Range of a column of numbers, or the public values of one of categories."""

    interval: tuple[float, float] | None
    values: tuple[Any, ...] = ()

    @property
    def spread(self) -> float:
        """Standard deviation of a uniform number, or the share of one of the categories."""
        if self.interval is None:
            return 1.0 / len(self.values)
        return (self.interval[1] - self.interval[0]) / math.sqrt(12.0)


@dataclass(frozen=True)
class _Part:
    """Columns that one mechanism releases, and the variance of a record's decoded value in each."""

    column: Column
    variances: Mapping[str, float]


def _what(kind: _Kind) -> str:
    return "share" if kind.interval is None else "mean"


def _kinds(
    schema: pa.Schema, columns: tuple[str, ...], intervals: dict[str, Any], categories: dict[str, Any]
) -> dict[str, _Kind]:
    """Return what is known of each column; refuse together all whose range or list is not given."""
    for given in (intervals, categories):
        for name in given:
            if name not in columns:
                raise PlanError(f"column {name!r}: is not among those to release")
    lacking = needed(schema, columns, intervals=intervals, categories=categories)
    if lacking:
        named = ", ".join(f"{name!r} its {what}" for name, what in lacking.items())
        raise PlanError(
            f"columns: each needs its public range or list, which is never read from the data: {named}"
        )
    result = {}
    for name in columns:
        if name in intervals:
            result[name] = _Kind(checks.interval("interval", intervals[name]))
        else:
            result[name] = _Kind(None, tuple(categories.get(name, (False, True))))
    return result


def _check(questions: Sequence[PlannedQuestion], kinds: Mapping[str, _Kind], keep: Sequence[str]) -> None:
    for question in questions:
        for position, name in enumerate(question.columns):
            if name in keep and position > 0:
                continue
            if name not in kinds:
                raise PlanError(f"questions: {question}: column {name!r} is not released")
            number = question.what == "mean" and position == 0
            if number != (kinds[name].interval is not None):
                kind = "numbers" if number else "categories"
                raise PlanError(f"questions: {question}: column {name!r} must be of {kind}")


def _divisions(
    kinds: Mapping[str, _Kind], questions: Sequence[PlannedQuestion], keep: Sequence[str], epsilon: float
) -> Iterator[list[_Part]]:
    """Yield ways to release all columns: apart, or those that no question joins as one record."""
    joined = {name for each in questions for name in each.columns if len({*each.columns} - {*keep}) > 1}
    joined -= set(keep)
    yield _parts(kinds, [(name,) for name in kinds], [1] * len(kinds), epsilon)
    alone = [name for name in kinds if name not in joined]
    spans = {kinds[name].interval for name in alone} - {None}
    for span in spans or {None}:
        group = [name for name in alone if kinds[name].interval in (None, span)]
        if len(group) < 2 or not any(kinds[name].interval is None for name in group):
            continue
        group.sort(key=lambda name: kinds[name].interval is None)  # numbers come first in a record
        rest = [(name,) for name in kinds if name not in group]
        for weight in range(1, len(group) + 1):
            yield _parts(kinds, [tuple(group), *rest], [weight, *[1] * len(rest)], epsilon)


def _parts(
    kinds: Mapping[str, _Kind], groups: Sequence[tuple[str, ...]], weights: Sequence[int], epsilon: float
) -> list[_Part]:
    each = share(epsilon, sum(weights))
    return [_part(kinds, group, weight * each) for group, weight in zip(groups, weights, strict=True)]


def _part(kinds: Mapping[str, _Kind], group: tuple[str, ...], epsilon: float) -> _Part:
    numbers = [name for name in group if kinds[name].interval is not None]
    lists = [kinds[name].values for name in group if kinds[name].interval is None]
    sizes = [len(values) for values in lists]
    mechanism: Any
    if len(group) > 1:
        if numbers:
            interval = kinds[numbers[0]].interval or (-1.0, 1.0)
            mechanism = MixedRecord(sizes, features=len(numbers), epsilon=epsilon, interval=interval)
        else:
            mechanism = CategoricalRecord(sizes, epsilon=epsilon)
        found = mechanism.variance(*_inputs(kinds, numbers, sizes))
        flat = [*(found[0].T if numbers else ()), *found[1 if numbers else 0 :]]
        variances = {name: float(np.mean(each)) for name, each in zip(group, flat, strict=True)}
        return _Part(Column(mechanism, group, categories=lists), variances)
    (name,) = group
    kind = kinds[name]
    if kind.interval is not None:
        mechanism = number_mechanism("best", epsilon, kind.interval, True)
        return _Part(Column(mechanism, name), {name: mechanism.mean_variance()})
    mechanism = oracle("best", len(kind.values), epsilon)
    return _Part(Column(mechanism, name, categories=kind.values), {name: mechanism.mean_variance()})


def _inputs(kinds: Mapping[str, _Kind], numbers: Sequence[str], sizes: Sequence[int]) -> tuple[Any, ...]:
    """Return numbers that are evenly spread, and categories in turn."""
    categories = np.stack([np.arange(_ROWS) % size for size in sizes], axis=1)
    if not numbers:
        return (categories,)
    columns = [np.linspace(*(kinds[name].interval or (0.0, 1.0)), _ROWS) for name in numbers]
    return np.stack(columns, axis=1), categories


def _error(
    question: PlannedQuestion, parts: Sequence[_Part], kinds: Mapping[str, _Kind], records: int
) -> float:
    """Return the standard deviation that the mechanisms add to an answer.

    The product of independent unbiased values of variance V_j about truths of second moment m_j has the
    second moment of the product of V_j + m_j. The share of a group is about 1/k.
    """
    known = {name: value for part in parts for name, value in part.variances.items()}
    second, truth, groups = 1.0, 1.0, 1.0
    for position, name in enumerate(question.columns):
        kind = kinds.get(name)
        if kind is None:  # a kept column: its groups are known, and not how many
            continue
        square = kind.spread**2 if kind.interval is not None else kind.spread
        second *= known[name] + square
        truth *= square
        if position and question.what != "table":
            groups *= len(kind.values)
    return math.sqrt(max(0.0, second - truth) / records) * groups
