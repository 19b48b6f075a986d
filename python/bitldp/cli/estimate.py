"""``bitldp estimate``: means and shares, with intervals, from a file that ``bitldp perturb`` wrote."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from bitldp.base.errors import PlanError
from bitldp.cli.commands import (
    PIPE,
    Delimiter,
    form_of,
    is_pipe,
    names,
    one_of,
    report_path,
    separator,
    source_format,
)
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.questions import TableQuestion, show
from bitldp.cli.screen import print_whole, sentences, wide_console
from bitldp.privacy import number

if TYPE_CHECKING:
    from bitldp.cli.perturb.table_files import InputSource


__all__ = ["estimate"]

_SHOWN = ("table", "csv", "json")
_TOGETHER = ("bonferroni", "sidak")
_ROWS, _CELLS = 1 << 16, 1 << 21  # of a batch


def _question(form: str, text: str) -> Any:
    """Return the option of one question."""
    return typer.Option(metavar=form, help=text, rich_help_panel="Questions, one at a time")


def estimate(
    released: Annotated[
        Path, typer.Argument(metavar="RELEASED", help="A table that perturb wrote, or - for standard input.")
    ],
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Its privacy report; RELEASED.privacy.json by default."),
    ] = None,
    group_by: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,...", help="Kept columns: an answer for each of their values. Repeatable."),
    ] = None,
    mean: Annotated[str | None, _question("COLUMN", "Mean of a column of numbers.")] = None,
    total: Annotated[
        str | None, _question("COLUMN", "Sum of a column of numbers; counts of categories.")
    ] = None,
    share: Annotated[str | None, _question("COLUMN", "Share of each category or point.")] = None,
    table: Annotated[str | None, _question("A,B,...", "Shares of the cells of up to three columns.")] = None,
    quantile: Annotated[str | None, _question("COLUMN", "Quantiles of a column of points; see --q.")] = None,
    cdf: Annotated[str | None, _question("COLUMN", "Share of the records with at most --at.")] = None,
    ratio: Annotated[str | None, _question("A,B", "Mean of A over the mean of B.")] = None,
    correlation: Annotated[str | None, _question("A,B", "Correlation of two columns of numbers.")] = None,
    regress: Annotated[str | None, _question("COLUMN", "Least squares of a column on those of --on.")] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Of a question: columns of categories, released or kept; an answer for each of them.",
        ),
    ] = None,
    q: Annotated[str, typer.Option(metavar="Q,...", help="What quantiles are of.")] = "0.1,0.25,0.5,0.75,0.9",
    at: Annotated[str | None, typer.Option(metavar="X,...", help="Numbers, for --cdf.")] = None,
    on: Annotated[str | None, typer.Option(metavar="A,B,...", help="Columns, for --regress.")] = None,
    simultaneous: Annotated[
        str | None,
        typer.Option(
            metavar="bonferroni|sidak",
            autocompletion=one_of(*_TOGETHER),
            help="Of a question: intervals that hold all at once, as often as --level says.",
        ),
    ] = None,
    project: Annotated[
        bool,
        typer.Option(
            "--project",
            help="Of a question: move estimates to where the truth can be, the unbiased ones beside.",
        ),
    ] = False,
    level: Annotated[float, typer.Option(help="How often an interval holds the truth.")] = 0.95,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="table|csv|json",
            autocompletion=one_of(*_SHOWN),
            help="How the answers are written.",
        ),
    ] = "table",
    delimiter: Delimiter = None,
    source_form: Annotated[str | None, source_format("RELEASED")] = None,
    unchecked: Annotated[
        bool,
        typer.Option("--unchecked", help="Answer from a file that is not the one that the report is about."),
    ] = False,
) -> None:
    """Estimate means of numbers and shares of categories from a released table.

    The report beside the table says which mechanisms made it; nothing else is needed. A table whose bytes are
    not those that the report is about is refused.

    A question asks one thing: --mean hours --by income, --table sex,income, --quantile age. Columns of --by
    may be released ones: what is known of a category comes from the reports of all records, as a ratio.

    Example: bitldp estimate released.parquet --group-by survey
    """
    with sentences():
        from bitldp.cli.perturb.table_files import opened

        if form not in _SHOWN:
            raise UsageError(f"--format {form}: must be one of {', '.join(_SHOWN)}")
        if not 0.0 < level < 1.0:
            raise UsageError("--level: must be above 0 and below 1")
        if simultaneous not in (None, *_TOGETHER):
            raise UsageError(f"--simultaneous {simultaneous}: must be one of {', '.join(_TOGETHER)}")
        asked = {
            "mean": mean, "total": total, "share": share, "table": table, "quantile": quantile, "cdf": cdf,
            "ratio": ratio, "correlation": correlation, "regress": regress,
        }  # fmt: skip
        question = TableQuestion.of(asked, by, q, at, on)
        if question is None and (simultaneous or project):
            raise UsageError("--simultaneous and --project: go with a question, such as --mean COLUMN")
        if question is not None and group_by:
            raise UsageError("--group-by: does not go with a question; --by takes kept columns, too")
        groups = tuple(name for text in group_by or [] for name in names(text, "--group-by"))
        separator(delimiter)
        source = form_of(released, source_form, "--from", delimiter)
        if released == PIPE and report is None:
            raise UsageError("--report: is needed where the table comes from standard input")
        if not is_pipe(released) and not released.is_file():
            raise UsageError(f"{released}: no such file")
        with opened(released, source) as file:
            beside = report or report_path(released)
            with nullcontext() if unchecked else _is_that_of(beside, file):
                if question is not None:
                    options = {"level": level, "simultaneous": simultaneous, "project": project}
                    answer = _answer(file, beside, question, options)
                else:
                    answers = _answers(file, beside, groups, level)
        capped = _capped(beside)
        if form != "table":
            rows = answers if question is None else answer.table.to_pylist()
            _show([_noting(row, capped) for row in rows], form, groups)
        else:
            _show(answers, form, groups) if question is None else show(answer)
            print(f"{capped}." if capped else "", end="\n" if capped else "")


def _answer(released: InputSource, report: Path, question: TableQuestion, options: dict[str, Any]) -> Any:
    """Return the answer to a question, for which the file is read once."""
    from bitldp.cli.perturb.table_files import open_reader
    from bitldp.tables.ask import ReleasedTable

    plan = _plan(report)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        reader = open_reader(released)
        times = Counter(reader.names)
        for name in columns:
            if times[name] != 1:
                raise CommandError(
                    f"{released}: has no column {name!r}, which {report.name} or a question names"
                )
        return reader.batches(list(columns), max(1, min(_ROWS, _CELLS // len(columns))))

    return question.ask(ReleasedTable(plan, batches, **options))


def _answers(
    released: InputSource, report: Path, groups: tuple[str, ...], level: float
) -> list[dict[str, Any]]:
    from bitldp.cli.perturb.table_files import open_reader

    if released.form.kind == "npy":
        raise UsageError("an array has no names of columns: use the mechanism's estimate_mean")
    plan = _plan(report)
    reader = open_reader(released)
    try:
        aggregate = plan.aggregate(groups)
    except PlanError as error:
        raise UsageError(f"--{str(error).replace('group_by', 'group-by', 1)}") from None
    columns = [*(name for codec in plan.codecs for name in codec.names), *groups]
    times = Counter(reader.names)
    for name in columns:
        if times[name] != 1:
            raise CommandError(f"{released}: has no column {name!r}, which {report.name} names")
    row, rows = 1, max(1, min(_ROWS, _CELLS // len(columns)))
    for batch in reader.batches(columns, rows):
        aggregate.update(batch, first_row=row)
        row += batch.num_rows
    if not len(aggregate):
        raise CommandError(f"{released}: has no rows")
    answers: list[dict[str, Any]] = aggregate.estimate(level).to_pylist()
    return answers


@contextmanager
def _is_that_of(report: Path, released: InputSource) -> Iterator[None]:
    """Compare a table with the digest in its report while the block reads it; refuse another one.

    Whatever the block said of another table's bytes is not said: they are not those of the report.
    """
    from bitldp.cli.perturb.outputs import Unchanged, digest

    expected, unchanged = _stated(report, "output_sha256"), Unchanged(released.path)

    def check() -> None:
        with released.path.open("rb") as file:
            if digest(file) != expected:
                raise CommandError(
                    f"{released}: is not the file that {report.name} is about: its bytes were changed, or it "
                    "is another's report; --unchecked answers all the same"
                )

    with ThreadPoolExecutor(1, thread_name_prefix="bitldp-digest") as pool:
        checked = pool.submit(check)
        try:
            with unchanged:
                yield
        except Exception:
            checked.result()
            raise
        checked.result()


def _stated(report: Path, name: str) -> Any:
    """Return what a report says under a name."""
    try:
        return json.loads(report.read_text(encoding="utf-8"))[name]
    except FileNotFoundError:
        raise UsageError(f"{report}: no such report; name it by --report") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{report}: is no privacy report that says its {name}") from None


def _capped(report: Path) -> str:
    """Return what answers about a memoized release with a cap are off by; empty of any other."""
    days = json.loads(report.read_text(encoding="utf-8")).get("memoized")
    if not isinstance(days, dict) or days.get("most") is None:
        return ""
    return (
        f"columns of records that had more than {days['most']} values are answered by one that they had "
        "before: an answer is off by at most their share of its range, which no interval covers"
    )


def _noting(row: dict[str, Any], said: str) -> dict[str, Any]:
    """Return an answer with one more remark in its note."""
    return row if not said else {**row, "note": "; ".join(filter(None, (row.get("note"), said)))}


def _plan(report: Path) -> Any:
    from bitldp.tables.plan import TablePlan

    document = _stated(report, "plan")
    try:
        return TablePlan.from_document(document)
    except PlanError as error:
        raise UsageError(f"{report}: {error}") from None


def _show(rows: list[dict[str, Any]], form: str, groups: tuple[str, ...]) -> None:
    if form == "json":
        print(json.dumps(rows, indent=2, default=str))
        return
    if form == "csv":
        writer = csv.DictWriter(sys.stdout, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        return
    biased = any("biased" in (row["note"] or "") for row in rows)
    table = Table(
        title="estimates, each with its interval; notes say which are biased"
        if biased
        else "estimates without bias, each with its interval",
        caption="errors and intervals are about the population that the records are drawn from",
    )
    for name in (*groups, "column", "of", "estimate", "± stderr", "low", "high", "1 % of liars", "records"):
        table.add_column(
            name, justify="left" if name in (*groups, "column", "of") else "right", no_wrap=False
        )
    for row in rows:
        figures = [
            "" if row[name] is None else number(row[name], 5)
            for name in ("estimate", "stderr", "low", "high", "influence")
        ]
        what = "mean" if row["what"] == "mean" else f"share of {row['category'] or 'missing values'}"
        table.add_row(
            *(str(row[name]) for name in groups),
            row["column"],
            what if row["note"] is None else f"{what}, {row['note']}",
            *figures,
            f"{row['records']:,}",
        )
    console = wide_console()
    print_whole(console, table)
    console.print("1 % of liars: how far one in a hundred lying clients could move an estimate, at most.")
