"""Questions of ``bitldp estimate``: which one was asked, and its answer as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    from bitldp.tables.ask import ReleasedTable

__all__ = ["TableQuestion", "show"]

_PAIRS = ("ratio", "correlation")


@dataclass(frozen=True)
class TableQuestion:
    """One question.

    Attributes
    ----------
    kind : str
        Name of a method of `ReleasedTable`.
    columns : tuple of str
        What it is asked about.
    by : tuple of str
        Categories and groups.
    numbers : tuple of float
        Shares of quantiles, or what a share of records is below.
    on : tuple of str
        What a number is regressed on.
    most : int or None
        How many words.
    """

    kind: str
    columns: tuple[str, ...]
    by: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    on: tuple[str, ...] = ()
    most: int | None = None

    @classmethod
    def of(
        cls,
        asked: Mapping[str, str | None],
        by: str | None,
        q: str,
        at: str | None,
        on: str | None,
        most: int | None = None,
    ) -> TableQuestion | None:
        """Return the one question that options ask; None where there is none.

        Raises
        ------
        UsageError
            For several, and for options that do not go with it.
        """
        given = {kind: text for kind, text in asked.items() if text is not None}
        if not given:
            for option, text in (("--by", by), ("--at", at), ("--on", on)):
                if text is not None:
                    raise UsageError(f"{option}: goes with a question, such as --mean COLUMN")
            return None
        if len(given) > 1:
            first, second, *_ = given
            raise UsageError(f"--{first}, --{second}: ask one question at a time")
        ((kind, text),) = given.items()
        columns = names(text or "", f"--{kind}")
        if kind != "table" and len(columns) != 1 + (kind in _PAIRS):
            wanted = "two columns, A,B" if kind in _PAIRS else "one column"
            raise UsageError(f"--{kind}: takes {wanted}")
        for option, value, owner in (("--at", at, "cdf"), ("--on", on, "regress")):
            if (value is not None) != (kind == owner):
                raise UsageError(f"{option}: goes with --{owner}, and that with {option}")
        if most is not None and kind != "top":
            raise UsageError("--most: goes with --top")
        if by is not None and kind in ("table", "regress", "correlation"):
            raise UsageError(f"--by: does not go with --{kind}")
        listed = q if kind == "quantile" else at or ""
        return cls(
            kind,
            tuple(columns),
            tuple(names(by, "--by")) if by else (),
            _floats(listed, "--q" if kind == "quantile" else "--at") if kind in ("quantile", "cdf") else (),
            tuple(names(on, "--on")) if on else (),
            most,
        )

    def ask(self, released: ReleasedTable) -> TableAnswer:
        """Return the answer of a released table.

        Raises
        ------
        CommandError
            For what it does not tell, and for a damaged table.
        """
        arguments: list[Any] = [*self.columns]
        if self.kind == "regress":
            arguments.append(self.on)
        elif self.kind == "top" and self.most is not None:
            arguments.append(self.most)
        elif self.kind in ("quantile", "cdf"):
            arguments.append(self.numbers)
        options = {"by": self.by} if self.by else {}
        method: Callable[..., TableAnswer] = getattr(released, self.kind)
        try:
            return method(*arguments, **options)
        except (PlanError, DataError, ValueError) as error:
            raise CommandError(f"--{self.kind}: {error}") from None


def _floats(text: str, option: str) -> tuple[float, ...]:
    try:
        return tuple(float(each) for each in text.split(","))
    except ValueError:
        raise UsageError(f"{option}: must be numbers, separated by commas") from None


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
    absent = "" if answer.what == "coefficient" else "missing"
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
