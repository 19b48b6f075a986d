"""Filters of a question: conditions on kept columns, on released ones, and periods of dates."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.errors import DataError, PlanError
from bitldp.tables.frames import plain_column, worded
from bitldp.tables.labels import text_of

__all__ = ["PERIODS", "Condition", "Where", "conditions_of", "in_periods", "kept_rows"]

#: What a question is restricted to: a value or a list of values for each column, or conditions as
#: ``("date", ">=", "2026-01-01")``, all of which must hold.
Where: TypeAlias = "Mapping[str, Any] | Sequence[tuple[str, str, Any]]"

#: Periods that dates are grouped by.
PERIODS = ("day", "week", "month", "quarter", "year")

_LISTED = ("in", "not in")
_COMPARED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "==": (pc.equal, operator.eq),
    "!=": (pc.not_equal, operator.ne),
    "<": (pc.less, operator.lt),
    "<=": (pc.less_equal, operator.le),
    ">": (pc.greater, operator.gt),
    ">=": (pc.greater_equal, operator.ge),
}


class Condition(NamedTuple):
    """A condition on one column.

    Attributes
    ----------
    column : str
    relation : str
        "==", "!=", "<", "<=", ">", ">=", "in" or "not in".
    value : object
        A number, text, truth value, date or None; a tuple of such for the last two.
    """

    column: str
    relation: str
    value: Any

    @property
    def values(self) -> tuple[Any, ...]:
        """The values that are named."""
        return self.value if self.relation in _LISTED else (self.value,)

    def chosen(self, labels: Sequence[Any]) -> NDArray[np.bool_]:
        """Return which categories or points of a released column meet the condition.

        Raises
        ------
        PlanError
            For a value that is no category, and for an order that categories do not have.
        """
        numbers = all(isinstance(each, float) for each in labels)
        if numbers:
            values: tuple[Any, ...] = tuple(_number(self.column, each) for each in self.values)
        else:
            values = tuple(None if each is None else text_of(each) for each in self.values)
        if self.relation not in ("==", "!=", *_LISTED):
            if not numbers:
                raise PlanError(f"where: the categories of column {self.column!r} have no order")
            compare = _COMPARED[self.relation][1]
            return np.array([compare(each, values[0]) for each in labels])
        for each in values:
            if each not in labels:
                known = ", ".join("missing" if label is None else f"{label}" for label in labels[:20])
                raise PlanError(
                    f"where: {'missing' if each is None else each!r} is not in column {self.column!r}; "
                    f"there are {known}"
                )
        inside = np.array([each in values for each in labels])
        return ~inside if self.relation in ("!=", "not in") else inside

    def rows(self, column: Any, first_row: int) -> Any:
        """Return which rows of a kept column meet the condition, as an Arrow mask without nulls."""
        found = _plain(column)
        known = [each for each in self.values if each is not None]
        if pa.types.is_string(found.type) and any(isinstance(each, (int, float)) for each in known):
            found = _cast(found, pa.float64(), self.column, first_row)
        try:
            values = [text_of(each) for each in known] if pa.types.is_string(found.type) else known
            wanted = pa.array(values).cast(found.type)
        except (pa.ArrowException, OverflowError, TypeError):
            raise PlanError(
                f"where: column {self.column!r} holds {found.type}, and the value is not one"
            ) from None
        if self.relation in ("==", "!=", *_LISTED):
            inside = pc.is_in(found, value_set=wanted)
            if len(known) < len(self.values) or self.relation in ("!=", "not in"):  # no comparison tells
                inside = pc.or_(inside, pc.is_null(found))
            return pc.invert(inside) if self.relation in ("!=", "not in") else inside
        return pc.fill_null(_COMPARED[self.relation][0](found, wanted[0]), fill_value=False)


def conditions_of(where: Where | None) -> tuple[Condition, ...]:
    """Return the conditions of a filter.

    Raises
    ------
    PlanError
        For what is none.
    """
    if where is None:
        return ()
    if isinstance(where, Mapping):
        listed = (list, tuple, set, frozenset)
        where = [(name, "in" if isinstance(each, listed) else "==", each) for name, each in where.items()]
    return tuple(_condition(each) for each in where)


def _condition(given: Any) -> Condition:
    if isinstance(given, str) or not isinstance(given, Iterable) or len(parts := tuple(given)) != 3:
        raise PlanError('where: must be {"column": value}, or conditions as ("column", "<=", value)')
    column, relation, value = parts
    if not isinstance(column, str) or relation not in (*_COMPARED, *_LISTED):
        relations = ", ".join((*_COMPARED, *_LISTED))
        raise PlanError(f"where: a condition is a column, one of {relations}, and a value")
    if relation in _LISTED:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise PlanError(f"where: {relation!r} needs a list of values")
        made = tuple(value)
        return Condition(column, relation, tuple(_checked(each) for each in made))
    if value is None and relation not in ("==", "!="):
        raise PlanError(f"where: {relation!r} needs a value")
    return Condition(column, relation, _checked(value))


def _checked(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int, float, date)):
        return value
    raise PlanError("where: a value is a text, a number, a truth value, a date or None")


def _number(column: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise PlanError(f"where: column {column!r} holds numbers, and the value is not one") from None


def _plain(column: Any) -> Any:
    found = plain_column(column)
    return found.cast(pa.string()) if pa.types.is_large_string(found.type) else found


def _cast(column: Any, kind: pa.DataType, name: str, first_row: int) -> Any:
    try:
        return column.cast(kind)
    except pa.ArrowException:
        raise DataError(
            f"column {name!r}, from row {first_row} on: holds texts that are not of type {kind}"
        ) from None


def kept_rows(table: pa.Table, conditions: Sequence[Condition], first_row: int) -> Any:
    """Return which rows of a table meet conditions on kept columns, as an Arrow mask."""
    mask = None
    for each in conditions:
        with worded([each.column]):
            own = each.rows(table.column(each.column), first_row)
        mask = own if mask is None else pc.and_(mask, own)
    return mask


def in_periods(table: pa.Table, names: Sequence[str], every: str, first_row: int) -> pa.Table:
    """Return a table in which dates and times are the first days of the periods that they are in.

    Raises
    ------
    PlanError
        If no column holds dates.
    DataError
        For a text that is no date as 2026-01-31.
    """
    checks.choice("every", every, PERIODS)
    dated = False
    for place, name in enumerate(table.column_names):
        if name not in names:
            continue
        column = _plain(table.column(name))
        if column.null_count == len(column):  # of no type yet
            table, dated = table.set_column(place, name, pa.nulls(len(column))), True
            continue
        if pa.types.is_string(column.type) and _is_date(column):
            column = _cast(column, pa.timestamp("s"), name, first_row)
        if not (pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
            continue
        with worded([name]):
            starts = pc.floor_temporal(column, unit=every).cast(pa.date32())
        table, dated = table.set_column(place, name, starts), True
    if not dated:
        raise PlanError(f"every: none of {', '.join(map(repr, names)) or 'no columns'} holds dates")
    return table


def _is_date(column: Any) -> bool:
    """Return whether the first text of a column is a date."""
    try:
        column.drop_null().slice(0, 1).cast(pa.timestamp("s"))
    except pa.ArrowException:
        return False
    return True
