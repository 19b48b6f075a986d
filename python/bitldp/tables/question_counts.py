"""Counts of a question over parts of a released table: saved, resumed on another day, merged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import numpy as np

from bitldp.base import checks
from bitldp.base.errors import PlanError
from bitldp.tables.answer import TableAnswer
from bitldp.tables.counting import Counting, Question
from bitldp.tables.parts import Parts, saved_counts
from bitldp.tables.plan import TablePlan
from bitldp.tables.questions import Questions, answered
from bitldp.tables.streamed import rows_of

__all__ = ["QuestionCounts"]

_FORMAT, _VERSION = "bitldp.question", 1
_KINDS = (
    *("mean", "share", "table", "total", "ratio", "difference", "histogram", "cdf", "quantile", "regress"),
    *("correlation", "covariance", "logistic", "top"),
)


class QuestionCounts:
    """Counts that one question is answered from, which add up over parts of a released table.

    The answer is exactly that of `ReleasedTable` for the same rows, however they are divided, ordered, saved,
    read again or merged. Each counted part has a name, which is saved with the counts, so that no part is
    counted twice.

    Parameters
    ----------
    plan : TablePlan
    kind : str
        Name of a method of `ReleasedTable`: "mean", "table", "quantile", ...
    *arguments, **named
        The arguments of that method, ``where=`` and ``every=`` among them.

    Raises
    ------
    PlanError
        For a question that the released columns do not answer.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.tables import Column, QuestionCounts, TablePlan
    >>> plan = TablePlan([Column(bitldp.GRR(2, epsilon=2.0), "sex", categories=["f", "m"])], keep=["day"])
    >>> days = QuestionCounts(plan, "share", "sex", by="day", every="week")
    >>> monday = plan.release()({"sex": ["f", "m", "f"], "day": ["2026-11-23"] * 3})
    >>> saved = days.update(monday, source="monday").to_json()
    >>> len(QuestionCounts.from_json(saved, plan))
    3
    """

    def __init__(self, plan: TablePlan, kind: str, *arguments: Any, **named: Any) -> None:
        self.plan = plan
        self._asked: dict[str, Any] = {
            "kind": checks.choice("kind", kind, _KINDS),
            "arguments": [_plain(each) for each in arguments],
            "named": {name: _plain(each) for name, each in sorted(named.items())},
        }
        self._counting = self._begun()
        self._parts = Parts()

    def _question(self, **options: Any) -> Question:
        named = dict(self._asked["named"])
        about = {name: named.pop(name, None) for name in ("where", "every")}
        questions = Questions(self.plan, options, **about)
        question: Question = getattr(questions, self._asked["kind"])(*self._asked["arguments"], **named)
        return question

    def _begun(self) -> Counting:
        return next(self._question())

    def __len__(self) -> int:
        """Return how many records were counted."""
        return self._counting.n

    @property
    def names(self) -> list[str]:
        """Columns of a released table that are counted."""
        return self._counting.names

    def update(self, frame: Any, *, first_row: int = 1, source: str | None = None) -> QuestionCounts:
        """Count a released table.

        Parameters
        ----------
        frame : frame, sequence of frames, path, pyarrow.dataset.Dataset, or callable
            As `ReleasedTable` takes it.
        first_row : int
            Number of its first row, for errors.
        source : str, optional
            Public name of the table, such as its file name. A table of that name is not counted again,
            neither here nor in counts that these are merged with.

        Returns
        -------
        QuestionCounts
            This one.

        Raises
        ------
        PlanError
            For a table of another plan, without its columns, or with a name that was counted before. Without
            kept columns in `by`, also for another snapshot of a memoized release, whose reports are not new.
        DataError
            For a value that is not a report of the plan. Nothing is counted in that case.
        """
        self._parts.refuse(source, set())
        part, row = self._begun(), first_row
        for table in rows_of(frame, part.names, self.plan.digest):
            part.update(table, row)
            row += table.num_rows
        self._parts.refuse(None, part.snapshots)
        self._counting.merge(part)
        if row > first_row:
            self._parts.add(source, part.snapshots)
        return self

    def merge(self, other: QuestionCounts) -> QuestionCounts:
        """Add what another has counted for the same question; return this one.

        Raises
        ------
        PlanError, TypeError
            For counts of another plan or question, and for counts of parts that were counted here before.
            Nothing is added in that case.
        """
        if not isinstance(other, QuestionCounts):
            raise TypeError(f"other: must be QuestionCounts, not {type(other).__name__}")
        if other.plan.digest != self.plan.digest or other._asked != self._asked:
            raise PlanError("other: is of another plan, or of another question")
        self._parts.refuse_merged(other._parts)
        self._counting.merge(other._counting)
        self._parts.merge(other._parts)
        return self

    def answer(
        self, *, level: float = 0.95, simultaneous: str | None = None, project: bool = False
    ) -> TableAnswer:
        """Return the answer of all that was counted; the arguments are those of `ReleasedTable`.

        Raises
        ------
        ValueError
            If nothing was counted.
        """
        question = self._question(
            level=checks.chance("level", level),
            together=simultaneous,
            projected=checks.flag("project", project),
        )
        next(question)
        return answered(question, self._counting)

    def to_json(self) -> str:
        """Return the counts as a JSON text, with the question and the names of what was counted."""
        head = {"format": _FORMAT, "version": _VERSION, "plan": self.plan.digest, "question": self._asked}
        body = {**self._counting.to_json(), **self._parts.to_json()}
        return json.dumps({**head, **body}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str, plan: TablePlan) -> QuestionCounts:
        """Return the counts of a JSON text.

        Raises
        ------
        PlanError, TypeError
            For a text that is none, or of another plan.
        """
        saved = saved_counts(text, _FORMAT, (_VERSION,), plan.digest)
        try:
            asked = saved["question"]
            made = cls(plan, asked["kind"], *asked["arguments"], **asked["named"])
            made._counting.restore(saved)
            made._parts.restore(saved)
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
            raise PlanError(f"text: is not a {_FORMAT} document") from None
        return made


def _plain(value: Any) -> Any:
    """Return an argument as JSON values."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(each) for each in value), key=repr)
    if isinstance(value, Iterable):
        return [_plain(each) for each in value]
    raise TypeError(f"arguments: a {type(value).__name__} is not an argument of a question")
