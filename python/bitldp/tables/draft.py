"""Drafts of plans, from the types of a table and the questions that will be asked of its release."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bitldp.base import checks
from bitldp.base.errors import PlanError
from bitldp.privacy import share
from bitldp.record.cap import RecordCap
from bitldp.record.categorical import CategoricalRecord
from bitldp.record.choice import number_mechanism, oracle
from bitldp.record.mixed import MixedRecord
from bitldp.record.mixed_cap import MixedCap
from bitldp.record.window import JointWindow
from bitldp.tables import together
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.column import Column
from bitldp.tables.frames import plain_type
from bitldp.tables.joint import Read
from bitldp.tables.plan import TablePlan
from bitldp.tables.reading import Of

__all__ = ["ExpectedError", "PlanDraft", "PlannedQuestion", "draft_plan", "needed", "questions_of"]

_QUESTION = re.compile(r"\s*(mean|share|table)\s*\(")
_GROUPS = re.compile(r"\)\s*(?:by\s+(\S.*))?", re.DOTALL)
_ROWS = 64  # inputs over which a variance is averaged
_DRAWS = 1 << 13  # reports of one channel over which what they say of columns together is averaged
_MOST_RECORDS = 2  # of several columns
_FEW = 4  # columns of a record whose shares of epsilon are all compared

#: Columns that are released together: as a record of which some are drawn, or by one channel (None).
_Way = tuple[tuple[str, ...], "type | None"]


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
        Error of a mean in its column's units, or of a share or a table cell as a share. With groups, it
        assumes k groups of equal size, 1/k of the records each.
    records : int
    """

    question: PlannedQuestion
    error: float
    records: int


@dataclass(frozen=True)
class PlanDraft:
    """A drafted plan, and the expected errors of its answers.

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

    A name may have pairs of brackets, as in ``mean(wait (min))``. Put a name in double quotes if it has a
    comma, a semicolon or a single bracket.

    Raises
    ------
    PlanError
        For a text that is not such a question; the message names it.
    """
    result = []
    for part in filter(str.strip, _divided(text, ";")):
        what, inside, groups = _asked(part)
        columns = [*_names(inside), *_names(groups)]
        fits = {"mean": 1, "share": 1, "table": 2}.get(what, 9) <= len(columns) <= 3
        if not fits or not all(columns) or (what == "table" and groups):
            raise PlanError(
                f"questions: {part.strip()!r} is not a question; write mean(NUMBER) or share(COLUMN), either "
                "with 'by' and one or two columns, or table(COLUMN, COLUMN)"
            )
        if len(set(columns)) < len(columns):
            raise PlanError(f"questions: {part.strip()!r} names a column twice")
        result.append(PlannedQuestion(what, tuple(columns)))
    return tuple(result)


def _asked(question: str) -> tuple[str, str, str]:
    """Return what is asked, the text in its brackets, and that after "by"; empty ones of no question."""
    begin = _QUESTION.match(question)
    if begin is None:
        return "", "", ""
    inside = _divided(question[begin.end() :], ")")[0]
    groups = _GROUPS.fullmatch(question[begin.end() + len(inside) :].strip())
    return ("", "", "") if groups is None else (begin[1], inside, groups[1] or "")


def _divided(text: str, at: str) -> list[str]:
    """Return the parts between a character, but for where it stands in quotes or in brackets."""
    parts, depth, quoted = [""], 0, False
    for each in text:
        if each == at and not quoted and not depth:
            parts.append("")
            continue
        quoted ^= each == '"'
        depth = max(0, depth + (0 if quoted else (each == "(") - (each == ")")))
        parts[-1] += each
    return parts


def _names(text: str) -> list[str]:
    return [name.strip().strip('"') for name in _divided(text, ",")] if text.strip() else []


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
        if name not in schema.names:
            raise PlanError(
                f"column {name!r}: the table has no such column; it has {', '.join(schema.names)}"
            )
        if schema.names.count(name) > 1:
            raise PlanError(
                f"column {name!r}: the table has several columns of that name; rename all but one"
            )
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
        Columns to release. Others are not released.
    intervals : mapping of str to (float, float)
        Public range of each column of numbers.
    categories : mapping of str to sequence
        Public list of the values of each other column; not needed for booleans.
    keep : sequence of str
        Columns that are released unchanged, without any privacy.
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
        For columns that the table lacks, or whose range or list is not given. The message names all of them.
    ValueError
        For an epsilon that is not above zero.

    Notes
    -----
    The draft may release columns separately, each with a share of epsilon, or several as one record with
    their combined share. Columns that no question joins may share a record with a public random choice
    (`MixedRecord`, `CategoricalRecord`). Any columns may share one channel that releases them together
    (`MixedCap`, `RecordCap`, `JointWindow`), with an interval for each number. The draft compares these
    options and the division of epsilon between them, and takes the least sum of expected errors, each in
    units of its column's spread. The errors of one channel are simulated on uniform columns with a fixed
    seed.
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

    def second(self, names: tuple[str, ...], kinds: Mapping[str, _Kind]) -> tuple[float, float]:
        """Return the mean squares of what a report says of some columns together, and of the truth.

        A number counts from the middle of its range, in which it is uniform; categories are as frequent.
        """
        squares = [kinds[name].spread ** (1 if kinds[name].interval is None else 2) for name in names]
        truth = math.prod(squares)
        if not set(names) <= set(self.variances):
            return self._drawn.second(names, kinds), truth
        return math.prod(self.variances[name] + own for name, own in zip(names, squares, strict=True)), truth

    @cached_property
    def _drawn(self) -> _Drawn:
        return _Drawn.of(self.column)


@dataclass(frozen=True)
class _Drawn:
    """Reports of uniform columns, of which several together are looked at."""

    codec: ColumnCodec
    reports: Any

    @classmethod
    def of(cls, column: Column) -> _Drawn:
        """Return reports of a column's mechanism, drawn with a fixed seed."""
        (codec,) = column.codecs
        rng, numbers = np.random.default_rng(0), len(codec.numeric)
        spans: Any = codec.public["intervals"] if numbers else []
        x = [rng.uniform(low, high, _DRAWS) for low, high in spans]
        x += [rng.integers(0, len(each), _DRAWS).astype(np.float64) for each in codec.categories]
        table = np.stack(x, axis=1)
        inputs = table if numbers else table.astype(np.uint32)
        return cls(codec, codec.randomize(inputs, rng=np.random.SeedSequence(0)))

    def second(self, names: tuple[str, ...], kinds: Mapping[str, _Kind]) -> float:
        """Return the mean square of what the reports say of columns together; see `_Part.second`."""
        of: list[Of] = ["category" if kinds[name].interval is None else "number" for name in names]
        reads = [Read(0, self.codec.reading(name, each)) for name, each in zip(names, of, strict=True)]
        middles = [sum(kinds[name].interval or (0.0, 0.0)) / 2.0 for name in names]
        reads = [replace(one, reading=one.reading.less(own)) for one, own in zip(reads, middles, strict=True)]
        try:
            values = together.joint(self.codec, [each.reading for each in reads]).read(self.reports)
        except PlanError:  # its law does not tell them together
            return math.inf
        return float(np.square(values).mean())


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
    """Yield ways to release all columns: apart, or some of them as one record."""
    sets = [{*each.columns} - {*keep} for each in questions]
    sets = [each for each in sets if len(each) > 1]
    joined = set().union(*sets)
    alone = _in_order(kinds, [name for name in kinds if name not in joined])
    yield _parts(kinds, {(name,): None for name in kinds}, [1] * len(kinds), epsilon)
    ways: list[tuple[tuple[str, ...], type | None]] = []
    if len(alone) > 1:
        mixed = any(kinds[name].interval is None for name in alone)
        ways += [(alone, MixedRecord)] if mixed else []
        ways.append((alone, None))
    groups = [_in_order(kinds, each) for each in _components(sets)]
    ways += [(group, None) for group in groups]
    ways += [(_in_order(kinds, kinds), None)] if groups and len(kinds) > max(map(len, groups)) else []
    for chosen in _apart(ways):
        rest = [(name,) for name in kinds if not any(name in group for group, _ in chosen)]
        parts: dict[tuple[str, ...], type | None] = {**dict(chosen), **dict.fromkeys(rest, None)}
        for weights in product(*(_weights(len(group)) for group, _ in chosen)):
            yield _parts(kinds, parts, [*weights, *[1] * len(rest)], epsilon)


def _in_order(kinds: Mapping[str, _Kind], group: Iterable[str]) -> tuple[str, ...]:
    """Return columns with the numbers first, as a record has them."""
    return tuple(sorted(group, key=lambda name: (kinds[name].interval is None, list(kinds).index(name))))


def _components(sets: Sequence[set[str]]) -> list[set[str]]:
    """Return the unions of sets that share columns."""
    made: list[set[str]] = []
    for each in sets:
        met = [own for own in made if own & each]
        made = [own for own in made if not own & each] + [each.union(*met)]
    return made


def _apart(ways: Sequence[_Way]) -> Iterator[tuple[_Way, ...]]:
    """Yield one way, or several of which no two are of a column."""
    for count in range(1, min(len(ways), _MOST_RECORDS) + 1):
        for chosen in combinations(ways, count):
            names = [name for group, _ in chosen for name in group]
            if len(set(names)) == len(names):
                yield chosen


def _weights(columns: int) -> list[int]:
    """Return shares of epsilon that a record of so many columns may have, by comparison."""
    return sorted({1, max(1, columns // 2), columns}) if columns > _FEW else list(range(1, columns + 1))


def _parts(
    kinds: Mapping[str, _Kind],
    groups: Mapping[tuple[str, ...], type | None],
    weights: Sequence[int],
    epsilon: float,
) -> list[_Part]:
    each = share(epsilon, sum(weights))
    return [
        _part(kinds, group, how, weight * each)
        for (group, how), weight in zip(groups.items(), weights, strict=True)
    ]


def _part(kinds: Mapping[str, _Kind], group: tuple[str, ...], how: type | None, epsilon: float) -> _Part:
    numbers = [name for name in group if kinds[name].interval is not None]
    lists = [kinds[name].values for name in group if kinds[name].interval is None]
    sizes = [len(values) for values in lists]
    spans = [interval for name in numbers if (interval := kinds[name].interval) is not None]
    mechanism: Any
    if len(group) > 1 and how is None:
        if not lists:
            mechanism = JointWindow(len(numbers), epsilon=epsilon, k=len(numbers))
        elif numbers:
            mechanism = MixedCap(sizes, features=len(numbers), epsilon=epsilon)
        else:
            mechanism = RecordCap(sizes, epsilon=epsilon, m=len(sizes), aim="tables")
        return _Part(Column(mechanism, group, categories=lists or None, interval=spans or None), {})
    if len(group) > 1:
        if numbers:
            mechanism = MixedRecord(sizes, features=len(numbers), epsilon=epsilon)
        else:
            mechanism = CategoricalRecord(sizes, epsilon=epsilon)
        found = mechanism.variance(*_inputs(numbers, sizes))
        scales = [(kinds[name].spread * math.sqrt(12.0) / 2.0) ** 2 for name in numbers] + [1.0] * len(sizes)
        flat = [*(found[0].T if numbers else ()), *found[1 if numbers else 0 :]]
        variances = {
            name: float(np.mean(each)) * scale for name, each, scale in zip(group, flat, scales, strict=True)
        }
        return _Part(Column(mechanism, group, categories=lists, interval=spans or None), variances)
    (name,) = group
    kind = kinds[name]
    if kind.interval is not None:
        mechanism = number_mechanism("best", epsilon, kind.interval, True)
        return _Part(Column(mechanism, name), {name: mechanism.mean_variance()})
    mechanism = oracle("best", len(kind.values), epsilon)
    return _Part(Column(mechanism, name, categories=kind.values), {name: mechanism.mean_variance()})


def _inputs(numbers: Sequence[str], sizes: Sequence[int]) -> tuple[Any, ...]:
    """Return numbers that are evenly spread, and categories in turn."""
    categories = np.stack([np.arange(_ROWS) % size for size in sizes], axis=1)
    if not numbers:
        return (categories,)
    return np.stack([np.linspace(-1.0, 1.0, _ROWS)] * len(numbers), axis=1), categories


def _error(
    question: PlannedQuestion, parts: Sequence[_Part], kinds: Mapping[str, _Kind], records: int
) -> float:
    """Return the standard deviation that the mechanisms add to an answer.

    The product of independent unbiased values of variance V_j about truths of second moment m_j has the
    second moment of the product of V_j + m_j. The share of a group is about 1/k.
    """
    second, truth, groups = 1.0, 1.0, 1.0
    for part in parts:
        own = tuple(name for name in question.columns if name in part.column.columns)
        if own:
            square, true = part.second(own, kinds)
            second, truth = second * square, truth * true
    for position, name in enumerate(question.columns):
        if position and question.what != "table" and name in kinds:  # groups of a kept column are known
            groups *= len(kinds[name].values)
    return math.sqrt(max(0.0, second - truth) / records) * groups
