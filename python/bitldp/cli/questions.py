"""Questions of ``bitldp estimate``: which one was asked, and its answer as rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from bitldp.base.errors import DataError, PlanError
from bitldp.cli.commands import names
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.screen import print_whole, wide_console
from bitldp.privacy import number

if TYPE_CHECKING:
    from bitldp.tables.answer import TableAnswer
    from bitldp.tables.plan import TablePlan
    from bitldp.tables.question_counts import QuestionCounts

__all__ = ["TableQuestion", "show"]

_PAIRS = ("ratio", "correlation", "covariance")
_FITS = ("regress", "correlation", "covariance", "logistic")

#: Options, the questions that they go with, and whether those need them.
_WITH: dict[str, tuple[tuple[str, ...], bool]] = {
    "at": (("cdf",), True),
    "on": (("regress", "logistic"), True),
    "bins": (("histogram",), False),
    "base": (("difference",), False),
    "category": (("logistic",), False),
    "most": (("top",), False),
}

_CONDITION = re.compile(r"\s*([^=<>!]+?)\s*(==|!=|<=|>=|=|<|>)\s*(.*?)\s*")


@dataclass(frozen=True)
class TableQuestion:
    """One question.

    Attributes
    ----------
    kind : str
        Name of a method of `ReleasedTable`.
    arguments : tuple
        As that method takes them.
    named : mapping
        Arguments by name.
    """

    kind: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]

    @classmethod
    def of(
        cls, asked: Mapping[str, str | None], options: Mapping[str, str | None], where: Sequence[str]
    ) -> TableQuestion | None:
        """Return the one question that options ask; None where there is none.

        Parameters
        ----------
        asked : mapping of str to str
            Each question and its columns.
        options : mapping of str to str
            by, every, q, at, on, bins, base, category and most.
        where : sequence of str
            Conditions, as ``income=high``.

        Raises
        ------
        UsageError
            For several, and for options that do not go with it.
        """
        given = {kind: text for kind, text in asked.items() if text is not None}
        if not given:
            for option in ("by", "every", *_WITH):
                if options[option] is not None:
                    raise UsageError(f"--{option}: needs a question, such as --mean COLUMN")
            return None
        if len(given) > 1:
            first, second, *_ = given
            raise UsageError(f"--{first}, --{second}: ask one question at a time")
        ((kind, text),) = given.items()
        columns = names(text or "", f"--{kind}")
        if kind != "table" and len(columns) != 1 + (kind in _PAIRS):
            wanted = "two columns, A,B" if kind in _PAIRS else "one column"
            raise UsageError(f"--{kind}: takes {wanted}")
        _refuse_others(kind, options)
        by = options["by"]
        arguments: list[Any] = [*columns]
        if kind in ("quantile", "cdf"):
            option = "q" if kind == "quantile" else "at"
            arguments.append(_floats(options[option] or "", f"--{option}"))
        elif options["on"] is not None:
            arguments.append(names(options["on"], "--on"))
        elif options["most"] is not None:
            if not options["most"].isdecimal():
                raise UsageError("--most: must be a whole number")
            arguments.append(int(options["most"]))
        elif options["bins"] is not None:
            edges = _floats(options["bins"], "--bins")
            arguments.append(int(edges[0]) if len(edges) == 1 and edges[0].is_integer() else edges)
        named: dict[str, Any] = {"by": names(by, "--by")} if by else {}
        named |= {name: options[name] for name in ("base", "category", "every") if options[name] is not None}
        if where:
            named["where"] = [_condition(each) for each in where]
        return cls(kind, tuple(arguments), named)

    def counts(self, plan: TablePlan) -> QuestionCounts:
        """Return empty counts of the question.

        Raises
        ------
        CommandError
            For what the released columns do not tell.
        """
        from bitldp.tables.question_counts import QuestionCounts

        with self.refused():
            return QuestionCounts(plan, self.kind, *self.arguments, **self.named)

    @contextmanager
    def refused(self) -> Iterator[None]:
        """Name the question's option in what is refused.

        Raises
        ------
        CommandError
            In place of what a question raises.
        """
        try:
            yield
        except (PlanError, DataError, ValueError, TypeError) as error:
            raise CommandError(f"--{self.kind}: {error}") from None


def _refuse_others(kind: str, options: Mapping[str, str | None]) -> None:
    """Refuse options that do not go with a question."""
    for option, (owners, needed) in _WITH.items():
        if (options[option] is not None and kind not in owners) or (
            needed and kind in owners and options[option] is None
        ):
            alike = ", and that with " + f"--{option}" if needed else ""
            raise UsageError(f"--{option}: goes with {' or '.join(f'--{each}' for each in owners)}{alike}")
    if options["by"] is not None and kind in ("table", *_FITS):
        raise UsageError(f"--by: cannot be combined with --{kind}")
    if options["by"] is None and kind == "difference":
        raise UsageError("--difference: needs --by, to name the groups to compare")


def _floats(text: str, option: str) -> list[float]:
    try:
        return [float(each) for each in text.split(",")]
    except ValueError:
        raise UsageError(f"{option}: must be numbers, separated by commas") from None


def _condition(text: str) -> tuple[str, str, Any]:
    """Return a condition of a text such as ``income=high,low`` or ``date>=2026-01-31``."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UsageError(f"--where {text}: must be a column, one of = != < <= > >=, and a value")
    column, relation, value = found.groups()
    values: list[str | None] = [
        each or None for each in next(csv.reader([value], skipinitialspace=True), [""])
    ]
    relation = {"=": "=="}.get(relation, relation)
    if len(values) == 1:
        return column, relation, values[0]
    if relation not in ("==", "!="):
        raise UsageError(f"--where {text}: {relation} takes one value")
    return column, "in" if relation == "==" else "not in", values


def show(answer: TableAnswer) -> None:
    """Print an answer as a table for a person."""
    rows = answer.table.to_pylist()
    figures = ["estimate", "stderr", "low", "high", *(["unprojected"] if answer.projected else [])]
    table = Table(
        title=f"{answer.what} of {answer.column}, with intervals of {answer.level:.4g}"
        + (f" for all at once ({answer.together})" if answer.together else ""),
        caption="errors and intervals are about the population that the records are drawn from",
    )
    for name in (*answer.keys, *figures, "n"):
        table.add_column(
            "± stderr" if name == "stderr" else name, justify="left" if name in answer.keys else "right"
        )
    absent = "" if answer.what in ("coefficient", "log odds") else "missing"
    for row in rows:
        table.add_row(
            *(absent if row[name] is None else _text(row[name]) for name in answer.keys),
            *("" if row[name] is None else number(row[name], 5) for name in figures),
            f"{row['n']:,}",
        )
    console = wide_console()
    print_whole(console, table)
    for note in _notes(rows):
        console.print(note)


def _notes(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each note once, with how many rows it is about where it is not about all."""
    every = [row["note"] for row in rows]
    for note in dict.fromkeys(filter(None, every)):
        times = every.count(note)
        yield note if times == len(rows) else f"{times} of {len(rows)}: {note}"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
