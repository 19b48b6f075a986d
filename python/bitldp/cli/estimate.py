"""``bitldp estimate``: means and shares, with intervals, from a file that ``bitldp perturb`` wrote."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from bitldp.base.refused import PlanError
from bitldp.cli.options import names
from bitldp.cli.perturb.files import CommandError, UsageError, file_format, report_path
from bitldp.cli.screen import print_whole, sentences, wide_console
from bitldp.report.totals import number

__all__ = ["estimate"]

_FORMS = ("table", "csv", "json")
_ROWS = 1 << 18


def estimate(
    released: Annotated[Path, typer.Argument(metavar="RELEASED", help="A table that perturb wrote.")],
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Its privacy report; RELEASED.privacy.json by default."),
    ] = None,
    group_by: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,...", help="Kept columns: an answer for each of their values. Repeatable."),
    ] = None,
    level: Annotated[float, typer.Option(help="How often an interval holds the truth.")] = 0.95,
    form: Annotated[
        str, typer.Option("--format", metavar="table|csv|json", help="How the answers are written.")
    ] = "table",
    delimiter: Annotated[str, typer.Option(help="Separator of CSV files.")] = ",",
) -> None:
    """Estimate means of numbers and shares of categories from a released table.

    The report beside the table says which mechanisms made it; nothing else is needed.

    Example: bitldp estimate released.parquet --group-by survey
    """
    with sentences():
        if form not in _FORMS:
            raise UsageError(f"--format {form}: must be one of {', '.join(_FORMS)}")
        if not 0.0 < level < 1.0:
            raise UsageError("--level: must be above 0 and below 1")
        groups = tuple(name for text in group_by or [] for name in names(text, "--group-by"))
        answers = _answers(released, report or report_path(released), groups, level, delimiter)
        _show(answers, form, groups)


def _answers(
    released: Path, report: Path, groups: tuple[str, ...], level: float, delimiter: str
) -> list[dict[str, Any]]:
    from bitldp.cli.perturb.tables import open_reader
    from bitldp.tables.collect import released_names

    if not released.is_file():
        raise UsageError(f"{released}: no such file")
    if file_format(released) == "npy":
        raise UsageError("an array has no names of columns: use the mechanism's estimate_mean")
    plan = _plan(report)
    reader = open_reader(released, file_format(released), delimiter=delimiter)
    try:
        aggregate = plan.aggregate(groups)
    except PlanError as error:
        raise UsageError(f"--{str(error).replace('group_by', 'group-by', 1)}") from None
    columns = [*(name for part in plan.parts for name in released_names(part)), *groups]
    for name in columns:
        if reader.names.count(name) != 1:
            raise CommandError(f"{released}: has no column {name!r}, which {report.name} names")
    row = 1
    for batch in reader.batches(columns, _ROWS):
        aggregate.update(batch, first_row=row)
        row += batch.num_rows
    if not len(aggregate):
        raise CommandError(f"{released}: has no rows")
    rows: list[dict[str, Any]] = aggregate.estimate(level).to_pylist()
    return rows


def _plan(report: Path) -> Any:
    from bitldp.tables.plan import TablePlan

    try:
        document = json.loads(report.read_text(encoding="utf-8"))["plan"]
    except FileNotFoundError:
        raise UsageError(f"{report}: no such report; name it by --report") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{report}: is no privacy report that says its plan") from None
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
    table = Table(title="estimates without bias, each with its interval")
    for name in (*groups, "column", "of", "estimate", "± stderr", "low", "high", "records"):
        table.add_column(
            name, justify="left" if name in (*groups, "column", "of") else "right", no_wrap=False
        )
    for row in rows:
        figures = [
            "" if row[name] is None else number(row[name], 5)
            for name in ("estimate", "stderr", "low", "high")
        ]
        what = "mean" if row["what"] == "mean" else f"share of {row['category'] or 'missing values'}"
        table.add_row(
            *(str(row[name]) for name in groups),
            row["column"],
            what if row["note"] is None else f"{what}, {row['note']}",
            *figures,
            f"{row['records']:,}",
        )
    print_whole(wide_console(), table)
