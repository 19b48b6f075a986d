"""``bitldp estimate``: means and shares, with intervals, from a file that ``bitldp perturb`` wrote."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from bitldp.base.errors import PlanError
from bitldp.base.files import replacing
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
    from bitldp.cli.perturb.inputs import Inputs
    from bitldp.cli.perturb.table_files import InputSource, TableReader
    from bitldp.tables.question_counts import QuestionCounts


__all__ = ["estimate"]

_SHOWN = ("table", "csv", "json")
_TOGETHER = ("bonferroni", "sidak")
_PERIODS = ("day", "week", "month", "quarter", "year")
_ROWS, _CELLS = 1 << 16, 1 << 21  # of a batch


def _question(form: str, text: str) -> Any:
    """Return the option of one question."""
    return typer.Option(metavar=form, help=text, rich_help_panel="Questions, one at a time")


def estimate(
    released: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASED", help="A table or a folder that perturb wrote, or - for standard input."
        ),
    ],
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Its privacy report; RELEASED.privacy.json by default, and in a folder."
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="PLAN",
            help="Instead of a report: the TOML plan of the form whose answers RELEASED holds.",
        ),
    ] = None,
    group_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,...",
            help="Kept columns to group by: one answer for each of their values. Repeatable.",
        ),
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
    covariance: Annotated[str | None, _question("A,B", "Covariance of two columns of numbers.")] = None,
    difference: Annotated[
        str | None, _question("COLUMN", "Means or shares of the groups of --by, less those of --base.")
    ] = None,
    histogram: Annotated[str | None, _question("COLUMN", "Shares between edges; see --bins.")] = None,
    regress: Annotated[str | None, _question("COLUMN", "Least squares of a column on those of --on.")] = None,
    logistic: Annotated[
        str | None, _question("COLUMN", "Logistic fit of --category on the categories of --on.")
    ] = None,
    top: Annotated[
        str | None, _question("COLUMN", "Most frequent words of a column without a list; see --most.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="With a question: columns of categories to group by, released or kept.",
        ),
    ] = None,
    q: Annotated[
        str, typer.Option(metavar="Q,...", help="Probabilities of the quantiles.")
    ] = "0.1,0.25,0.5,0.75,0.9",
    at: Annotated[str | None, typer.Option(metavar="X,...", help="With --cdf: thresholds.")] = None,
    on: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="With --regress and --logistic: the explaining columns."),
    ] = None,
    most: Annotated[str | None, typer.Option(metavar="N", help="With --top: how many words (10).")] = None,
    bins: Annotated[
        str | None,
        typer.Option(metavar="K|X,...", help="With --histogram: how many bins (10), or their edges."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="With --difference: the group that the others are compared with."),
    ] = None,
    category: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE", help="With --logistic: the category to predict; by default the last one."
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Condition of a question, such as income=high,low or date>=2026-01-31, on kept or "
            "released columns. Repeatable: all must hold.",
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="day|week|month|quarter|year",
            autocompletion=one_of(*_PERIODS),
            help="With a question: group the dates of --by into periods.",
        ),
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With a question: add the counts of this table to the file, and answer from all of them.",
        ),
    ] = None,
    join: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With a question: another released table of the same people, joined by pseudonym (keep_as).",
        ),
    ] = None,
    simultaneous: Annotated[
        str | None,
        typer.Option(
            metavar="bonferroni|sidak",
            autocompletion=one_of(*_TOGETHER),
            help="With a question: intervals that cover all answers together at --level.",
        ),
    ] = None,
    project: Annotated[
        bool,
        typer.Option(
            "--project",
            help="With a question: also project the estimates to possible values.",
        ),
    ] = False,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="table|csv|json",
            autocompletion=one_of(*_SHOWN),
            help="Output format.",
        ),
    ] = "table",
    delimiter: Delimiter = None,
    source_form: Annotated[str | None, source_format("RELEASED")] = None,
    unchecked: Annotated[
        bool,
        typer.Option("--unchecked", help="Answer even if the file does not match its report."),
    ] = False,
) -> None:
    """Answer questions from a released table, with confidence intervals.

    The report beside the table says which mechanisms made it; nothing else is needed. A table whose bytes are
    not those that the report is about is refused.

    A question asks one thing: --mean hours --by income, --table sex,income, --quantile age. Columns of --by
    and of --where may be released ones: what is known of a category comes from the reports of all records,
    as a ratio.

    Example: bitldp estimate released.parquet --group-by survey
    """
    with sentences():
        _check(form, level, simultaneous)
        asked = {
            "mean": mean, "total": total, "share": share, "table": table, "quantile": quantile, "cdf": cdf,
            "ratio": ratio, "correlation": correlation, "covariance": covariance, "difference": difference,
            "histogram": histogram, "regress": regress, "logistic": logistic,
            "top": top,
        }  # fmt: skip
        options = {
            "by": by, "every": every, "q": q, "at": at, "on": on, "bins": bins, "base": base,
            "category": category, "most": most,
        }  # fmt: skip
        question = TableQuestion.of(asked, options, where or [])
        given = {
            "--simultaneous": simultaneous, "--project": project, "--where": where, "--counts": counts,
            "--join": join,
        }  # fmt: skip
        _check_question(question, given, group_by)
        groups = tuple(name for text in group_by or [] for name in names(text, "--group-by"))
        separator(delimiter)
        if plan is not None:
            if report is not None or plan.suffix != ".toml":
                raise UsageError("--plan: is for a TOML file, in place of --report")
            report, unchecked = plan, True
        if released == PIPE and report is None:
            raise UsageError("--report: is required when the table comes from standard input")
        if not is_pipe(released) and not released.exists():
            raise UsageError(f"{released}: no such file")
        with ExitStack() as stack:
            beside = report or report_path(released)
            tables = [(stack.enter_context(_opened(released, source_form, delimiter)), beside)]
            if join is not None:
                other = stack.enter_context(_opened(join, None, delimiter))
                tables.append((other, report_path(join)))
            for file, beside in [] if unchecked else tables:
                stack.enter_context(_is_that_of(beside, file))
            answers = _answers(*tables[0], groups, level) if question is None else []
            name = str(released) if unchecked else _stated(tables[0][1], "output_sha256")
            made = None if question is None else _counted(tables, question, counts, name)
        # Now that the file is known to be the report's:
        capped = "; ".join(dict.fromkeys(filter(None, (_capped(each[1]) for each in tables))))
        if question is None or made is None:
            _show_noted(answers, form, groups, capped)
            return
        with question.refused():
            answer = made.answer(level=level, simultaneous=simultaneous, project=project)
        if counts is not None:
            _write(counts, made.to_json())
        if form != "table":
            _show_noted(answer.table.to_pylist(), form, groups, capped)
            return
        show(answer)
        print(f"{capped}." if capped else "", end="\n" if capped else "")


@contextmanager
def _opened(released: Path, named: str | None, delimiter: str | None) -> Iterator[InputSource | Inputs]:
    """Open a released table, or the files of a folder."""
    from bitldp.cli.perturb.inputs import Inputs
    from bitldp.cli.perturb.table_files import opened

    if released.is_dir():
        yield Inputs((str(released),), named, delimiter)
        return
    with opened(released, form_of(released, named, "--from", delimiter)) as file:
        yield file


def _check(form: str, level: float, simultaneous: str | None) -> None:
    """Refuse values that an option does not have."""
    if form not in _SHOWN:
        raise UsageError(f"--format {form}: must be one of {', '.join(_SHOWN)}")
    if not 0.0 < level < 1.0:
        raise UsageError("--level: must be above 0 and below 1")
    if simultaneous not in (None, *_TOGETHER):
        raise UsageError(f"--simultaneous {simultaneous}: must be one of {', '.join(_TOGETHER)}")


def _check_question(
    question: TableQuestion | None, given: dict[str, Any], group_by: Sequence[str] | None
) -> None:
    """Refuse options that do not go with a question, or go with one alone."""
    for option, value in given.items():
        if question is None and value:
            raise UsageError(f"{option}: needs a question, such as --mean COLUMN")
    if given["--join"] is not None and given["--counts"] is not None:
        raise UsageError("--counts: works with one table, not with --join")
    if question is not None and group_by:
        raise UsageError(
            "--group-by: cannot be combined with a question; use --by, which takes kept columns, too"
        )


def _counted(
    tables: Sequence[tuple[InputSource | Inputs, Path]],
    question: TableQuestion,
    saved: Path | None,
    source: str,
) -> QuestionCounts:
    """Return what one file, or two that are joined, count for a question, with what was saved before."""
    from bitldp.tables.ask import ReleasedTable
    from bitldp.tables.question_counts import QuestionCounts

    released, *others = [ReleasedTable(_plan(each[1]), _batches(*each)) for each in tables]
    with question.refused():
        whole = released.join(*others) if others else released
    counts = question.counts(whole.plan)
    with question.refused():
        counts.update(whole.source, source=source)
    if saved is None or not saved.exists():
        return counts
    try:
        return counts.merge(QuestionCounts.from_json(saved.read_text(encoding="utf-8"), whole.plan))
    except PlanError as error:
        raise CommandError(f"--counts {saved}: {error}") from None


def _batches(released: InputSource | Inputs, report: Path) -> Callable[[Sequence[str]], Iterator[Any]]:
    """Return what reads some columns of a file; its tables say which snapshot the report is about."""
    days = _days(report)
    snapshot = None if days is None else {"bitldp.series": days["series"], "bitldp.release": days["release"]}

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        reader = _reader(released, columns, f"{report.name} or a question")
        for table in reader.batches(list(columns), max(1, min(_ROWS, _CELLS // len(columns)))):
            yield table.replace_schema_metadata(snapshot)

    return batches


def _write(path: Path, text: str) -> None:
    """Write a file all at once."""
    try:
        with replacing(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise CommandError(f"--counts {path}: cannot be written ({error.strerror})") from None


def _answers(
    released: InputSource | Inputs, report: Path, groups: tuple[str, ...], level: float
) -> list[dict[str, Any]]:
    if released.form.kind == "npy":
        raise UsageError("an array has no column names: use the mechanism's estimate_mean")
    plan = _plan(report)
    try:
        aggregate = plan.aggregate(groups)
    except PlanError as error:
        raise UsageError(f"--{str(error).replace('group_by', 'group-by', 1)}") from None
    columns = [*(name for codec in plan.codecs for name in codec.names), *groups]
    reader = _reader(released, columns, report.name)
    row, rows = 1, max(1, min(_ROWS, _CELLS // len(columns)))
    for batch in reader.batches(columns, rows):
        aggregate.update(batch, first_row=row)
        row += batch.num_rows
    if not len(aggregate):
        raise CommandError(f"{released}: has no rows")
    answers: list[dict[str, Any]] = aggregate.estimate(level).to_pylist()
    return answers


def _reader(released: InputSource | Inputs, columns: Sequence[str], naming: str) -> TableReader:
    """Return the reader of a released table that has each of some columns once."""
    from bitldp.cli.perturb.inputs import Inputs, reader_of

    reader = reader_of(released)
    times = Counter(reader.names)
    for name in columns:
        if times[name] != 1:
            raise CommandError(f"{released}: has no column {name!r}, which {naming} names")
    if isinstance(released, Inputs):
        released.survey(columns)
    return reader


@contextmanager
def _is_that_of(report: Path, released: InputSource | Inputs) -> Iterator[None]:
    """Compare a table with the digest in its report while the block reads it; refuse another one.

    Whatever the block said of another table's bytes is not said: they are not those of the report.
    """
    from bitldp.cli.perturb.inputs import Inputs
    from bitldp.cli.perturb.outputs import digest
    from bitldp.cli.perturb.staging import is_listed

    expected, unchanged = _stated(report, "output_sha256"), released.unchanged()

    def check() -> None:
        if isinstance(released, Inputs):
            same = is_listed(report, expected, released.folder)
        else:
            with released.path.open("rb") as file:
                same = digest(file) == expected
        if not same:
            kind = "folder" if isinstance(released, Inputs) else "file"
            raise CommandError(
                f"{released}: does not match {report.name}: the {kind} was changed, or the report is "
                "of another one; --unchecked answers anyway"
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
        raise UsageError(f"{report}: no such report; name it with --report") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{report}: is not a privacy report that states its {name}") from None


def _days(report: Path) -> dict[str, Any] | None:
    """Return series, release and cap that the report of a memoized release states; None of any other."""
    stated = json.loads(report.read_text(encoding="utf-8"))
    days = stated.get("memoized")
    if not isinstance(days, dict):
        return None
    return {"series": str(days.get("series")), "release": str(stated["release"]), "most": days.get("most")}


def _capped(report: Path) -> str:
    """Return what answers about a memoized release with a cap are off by; empty of any other."""
    if report.suffix == ".toml":
        return ""
    days = _days(report)
    if days is None or days["most"] is None:
        return ""
    return (
        f"columns of records that had more than {days['most']} values are answered by one that they had "
        "before: an answer is off by at most their share of its range, which no interval covers"
    )


def _noting(row: dict[str, Any], said: str) -> dict[str, Any]:
    """Return an answer with one more remark in its note."""
    return row if not said else {**row, "note": "; ".join(filter(None, (row.get("note"), said)))}


def _show_noted(rows: list[dict[str, Any]], form: str, groups: tuple[str, ...], said: str) -> None:
    """Show answers with one more remark: in each row's note, or below a table."""
    _show(rows if form == "table" else [_noting(row, said) for row in rows], form, groups)
    print(f"{said}." if said and form == "table" else "", end="\n" if said and form == "table" else "")


def _plan(report: Path) -> Any:
    from bitldp.tables.plan import TablePlan

    try:
        if report.suffix == ".toml":
            return TablePlan.read(report)
        return TablePlan.from_document(_stated(report, "plan"))
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
        what = row["what"]
        if what != "mean":
            what = f"{what} of {row['category'] or 'missing values'}"
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
