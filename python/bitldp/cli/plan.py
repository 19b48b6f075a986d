"""``bitldp plan``: a plan from the types of a file and the questions about it, with the errors to expect."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from bitldp.cli.commands import AsJson, Delimiter, form_of, names, separator
from bitldp.cli.commands import categories as read_categories
from bitldp.cli.errors import UsageError
from bitldp.cli.screen import print_whole, sentences, wide_console
from bitldp.privacy import number

if TYPE_CHECKING:
    import pyarrow as pa

    from bitldp.tables.draft import PlanDraft

__all__ = ["plan"]


def plan(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="IN...",
            help="Table whose types are read (.csv, .tsv, .parquet, .arrow, .feather), or many: files, "
            "folders, globs, URIs.",
        ),
    ],
    epsilon: Annotated[
        float, typer.Option("--epsilon", metavar="E", help="Privacy budget of one row over all columns.")
    ],
    columns: Annotated[
        list[str],
        typer.Option(metavar="A,B,...", help="Columns to release; all others are dropped. Repeatable."),
    ],
    interval: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=LOW,HIGH", help="Public range of a column of numbers. Repeatable."),
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=A,B,...", help="Public list of a column's values; 0..9 for a range. Repeatable."
        ),
    ] = None,
    categories_file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=FILE", help="The same, from a text file with one value a line. Repeatable."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,...", help="Columns to copy unchanged, WITHOUT privacy."),
    ] = None,
    questions: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help='Questions to ask later, such as "mean(age) by sex; table(sex, income); share(city)".',
        ),
    ] = "",
    users: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of rows for the expected errors.")
    ] = 10_000,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="PLAN", help="File to write; standard output by default."),
    ] = None,
    delimiter: Delimiter = None,
    as_json: AsJson = False,
) -> None:
    """Draft a plan from the types of a table, and print the expected errors of its answers.

    No value of the table is read, and nothing is spent. Ranges and lists are public: what is not given is
    asked for on a terminal, and named in an error elsewhere. Columns share one record where that lowers the
    errors; those that one question joins only by a law that tells them together.

    Example: bitldp plan people.parquet --epsilon 4 --columns age,sex --interval age=0,120 --categories
    sex=f,m --questions "mean(age) by sex" -o plan.toml
    """
    with sentences():
        from bitldp.tables.draft import draft_plan, needed, questions_of

        separator(delimiter)
        chosen = tuple(name for text in columns for name in names(text))
        kept = tuple(name for text in keep or [] for name in names(text, "--keep"))
        if out is not None and out.exists():
            raise UsageError(f"{out}: exists already; remove it, or name another file")
        schema = _schema(sources, delimiter)
        spans = dict(_interval(text, chosen) for text in interval or [])
        lists: dict[str, Any] = {}
        for name, values in read_categories(categories or [], categories_file or [], chosen).items():
            if name is None:
                raise UsageError("--categories: name the column, COLUMN=A,B,C")
            lists[name] = values
        lacking = needed(schema, chosen, intervals=spans, categories=lists)
        if lacking and sys.stdin.isatty():
            _ask(lacking, spans, lists)
        elif lacking:
            options = "; ".join(_option(name, what) for name, what in lacking.items())
            raise UsageError(f"give public ranges and lists, which are never read from the data: {options}")
        draft = draft_plan(
            schema,
            epsilon=epsilon,
            columns=chosen,
            intervals=spans,
            categories=lists,
            keep=kept,
            questions=questions_of(questions),
            records=users,
        )
        text = draft.plan.to_toml()
        if out is not None:
            out.write_text(text, encoding="utf-8")
        elif not as_json:
            print(text)
        if as_json:
            print(json.dumps(_document(draft), indent=2))
        else:
            _show(draft, out)


def _option(name: str, what: str) -> str:
    both = {"range": f"--interval {name}=LOW,HIGH", "list of values": f"--categories {name}=A,B,..."}
    return both.get(what, " or ".join(both.values()))


def _schema(sources: Sequence[str], delimiter: str | None) -> pa.Schema:
    """Return names and types of a table's columns; those of a text have no types."""
    import pyarrow as pa

    from bitldp.cli.perturb.inputs import Inputs
    from bitldp.cli.perturb.table_files import open_reader, opened
    from bitldp.tables.dataset import dataset_of, is_many

    if len(sources) > 1 or is_many(sources[0]):
        inputs = Inputs(sources, None, delimiter)
        if inputs.form.kind != "csv":
            return dataset_of(sources).schema
        return pa.schema([(name, inputs.keys.get(name, pa.null())) for name in inputs.names])
    source = Path(sources[0])

    if not source.is_file():
        raise UsageError(f"{source}: no such file")
    form = form_of(source, None, "--from", delimiter)
    if form.kind == "npy":
        raise UsageError(f"{source}: an array has no column names; perturb takes it by --mechanism")
    if form.kind == "parquet":
        import pyarrow.parquet

        return pyarrow.parquet.read_schema(source)
    if form.kind == "arrow":
        import pyarrow.ipc

        with source.open("rb") as file:
            reader = pyarrow.ipc.open_stream if form.stream else pyarrow.ipc.open_file
            return reader(file).schema
    with opened(source, form) as table:
        return pa.schema([(name, pa.null()) for name in open_reader(table).names])


def _interval(text: str, columns: tuple[str, ...]) -> tuple[str, tuple[float, float]]:
    name, _, ends = text.rpartition("=")
    try:
        low, high = map(float, ends.split(","))
    except ValueError:
        raise UsageError(f"--interval {text}: must be COLUMN=LOW,HIGH") from None
    if name not in columns:
        raise UsageError(f"--interval {text}: no column {name!r} among --columns")
    if not low < high:
        raise UsageError(f"--interval {text}: LOW must be below HIGH")
    return name, (low, high)


def _ask(lacking: dict[str, str], spans: dict[str, Any], lists: dict[str, Any]) -> None:
    """Ask for ranges and lists, one after the other."""
    for name, what in lacking.items():
        if what != "list of values":
            only = what == "range"
            asked = f"{name}: its public range, LOW,HIGH" + ("" if only else " (empty: it has a list)")
            said = typer.prompt(asked, default=None if only else "", show_default=False)
            if said.strip():
                spans[name] = _interval(f"{name}={said}", (name,))[1]
                continue
        said = typer.prompt(f"{name}: its public values, A,B,...")
        lists |= {
            key: value for key, value in read_categories([f"{name}={said}"], [], (name,)).items() if key
        }


def _document(draft: PlanDraft) -> dict[str, Any]:
    return {
        "plan": draft.plan.fingerprint(),
        "errors": [
            {"question": str(each.question), "error": each.error, "records": each.records}
            for each in draft.errors
        ],
    }


def _show(draft: PlanDraft, out: Path | None) -> None:
    epsilon = number(draft.plan.guarantee.record, 6)
    table = Table(
        title=f"expected errors at {draft.errors[0].records:,} rows, exact epsilon {epsilon} a row",
        caption="standard deviation that the mechanisms add; that of the rows themselves comes on top",
    )
    table.add_column("question")
    table.add_column("± error", justify="right")
    for each in draft.errors:
        table.add_row(str(each.question), number(each.error, 3))
    # The plan itself may go to a file by way of standard output.
    console = wide_console()
    if out is None:
        console.file = sys.stderr
    print_whole(console, table)
    if out is not None:
        console.print(f"{out} was written; look at it, then: bitldp perturb IN -o OUT --plan {out}")
