"""``bitldp perturb``: a file in, a randomized file and its privacy report out, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from bitldp.cli.perturb.array_runs import array_plan, perturb_array
from bitldp.cli.perturb.arrays import ArrayReader
from bitldp.cli.perturb.behind import Behind
from bitldp.cli.perturb.digested import Digested
from bitldp.cli.perturb.files import Unchanged, UsageError, check_paths, report_path
from bitldp.cli.perturb.forms import PIPE, Form, form_of, is_pipe
from bitldp.cli.perturb.outputs import finish, outputs
from bitldp.cli.perturb.plan import Part, Plan, build_plan
from bitldp.cli.perturb.planned import charge, planned
from bitldp.cli.perturb.privacy_report import privacy_report
from bitldp.cli.perturb.request import Request
from bitldp.cli.perturb.signals import interruptible
from bitldp.cli.perturb.sources import Source, opened
from bitldp.cli.perturb.tables import TableReader, open_reader, open_writer
from bitldp.tables.attributes import Attributes
from bitldp.tables.cells import Numbers, Reals
from bitldp.tables.records import SeenIds

__all__ = ["Watcher", "perturb"]


class Watcher(Protocol):
    """Where a run reports to while it goes on."""

    def warn(self, sentence: str) -> None:
        """Show a warning before the run starts."""
        ...

    def note(self, sentence: str) -> None:
        """Show what the user may not expect of the run."""
        ...

    def progress(self, position: int, total: int) -> None:
        """Show how much of the input has been read."""
        ...


def perturb(request: Request, watcher: Watcher) -> dict[str, Any]:
    """Randomize a file.

    Parameters
    ----------
    request : Request
    watcher : Watcher

    Returns
    -------
    dict
        The privacy report that was written beside the output, as JSON values.

    Raises
    ------
    UsageError
        Before anything is written, for what the command line asks wrongly.
    CommandError
        For data that cannot be perturbed. Neither the output nor its report exists then, and an older one
        stays.
    """
    forms = _forms(request)
    if (forms[0].kind == "npy") != (forms[1].kind == "npy"):
        raise UsageError(
            "a .npy array is written as a .npy array, and a table as a table (CSV, Parquet or Arrow)"
        )
    target = None if request.target == PIPE else request.target
    beside = _report_place(request, target)
    if target is not None and finish(target, beside):
        watcher.note(
            f"{request.target}: a run was killed before its privacy report had its name; it has it now"
        )
    check_paths(None if is_pipe(request.source) else request.source, target, beside, force=request.force)
    if request.plan is not None and forms[0].kind == "npy":
        raise UsageError("--plan is for tables; an array has no names of columns")
    with opened(request.source, forms[0]) as source:
        return _perturb(request, source, forms[1], target, beside, watcher)


def _forms(request: Request) -> tuple[Form, Form]:
    """Return the forms of input and output; what goes to a pipe is of the input's, unless it is named."""
    found = form_of(request.source, request.source_form, "--from", request.delimiter)
    if request.target == PIPE and request.target_form is None:
        return found, found
    written = form_of(request.target, request.target_form, "--to", request.delimiter)
    if request.delimiter is not None and "\t" in (found.delimiter, written.delimiter):
        raise UsageError("--delimiter: a .tsv file has tabs; name it .csv, or leave the option out")
    return found, written


def _report_place(request: Request, target: Path | None) -> Path:
    if target is None:
        if request.report is None:
            raise UsageError("--report: is needed where the output goes to standard output")
        return request.report
    if request.report is not None:
        raise UsageError("--report: is for -o -; a file has its report beside it")
    return report_path(target)


def _perturb(
    request: Request, source: Source, form: Form, target: Path | None, beside: Path, watcher: Watcher
) -> dict[str, Any]:
    """Randomize an input that is open."""
    unchanged = Unchanged(source.path)
    array = ArrayReader(source) if form.kind == "npy" else None
    table = None if array is not None else open_reader(source)
    if array is not None:
        plan = array_plan(request, array)
    elif table is not None and request.plan is not None:
        plan = planned(request, source, table.names)
    elif table is not None:
        plan = build_plan(request, table.names, listed=source.form.kind != "csv")
    for sentence in _warnings(request, plan):
        watcher.warn(sentence)
    for sentence in _notes(plan):
        watcher.note(sentence)
    charge(request, plan, source)
    moved = [0] * len(plan.parts)
    with interruptible() as signals, outputs(target, beside, signals) as (file, report_file):
        checked, written = _Checked(watcher, signals.check), Digested(file)
        if array is not None:
            rows = perturb_array(array, plan, written, checked.progress, moved)
        elif table is not None:
            rows = _perturb_table(table, plan, form, written, checked, moved)
        signals.check()
        unchanged.check()
        report = privacy_report(request, plan, rows, written.hexdigest())
        report_file.write((json.dumps(report, indent=2, allow_nan=False) + "\n").encode())
    for part, count in zip(plan.parts, moved, strict=True):
        if count:  # said to whoever has the data, and in no file that leaves
            columns = ", ".join(part.codec.columns)
            watcher.note(f"{count:,} numbers of {columns} were outside the range, and moved to its ends")
    return report


def _warnings(request: Request, plan: Plan) -> Iterator[str]:
    yield from plan.warnings
    yield from dict.fromkeys(part.worth.sentence for part in plan.parts if part.worth.alarming)
    if plan.keep:
        where = "--keep" if request.plan is None else "keep"
        yield f"released as they are, without any privacy: {', '.join(plan.keep)} ({where})"
    if request.seed is not None:
        yield (
            "--seed is for tests: two outputs under one seed reveal where their inputs differ, and whoever "
            "knows the seed can undo the noise"
        )


def _notes(plan: Plan) -> Iterator[str]:
    for part in plan.parts:
        if isinstance(part.codec, Reals):
            ends = f"{part.codec.low:g} .. {part.codec.high:g}"
            yield f"numbers outside {ends} move to the ends before they are randomized"
        elif isinstance(part.codec, Numbers):
            codec = part.mechanism.codec
            yield (
                f"numbers are cut to {-codec.limit:g} .. {codec.limit:g} and to multiples of {codec.step:g} "
                "before they are randomized; --bits and --integer-bits change that"
            )
    yield from dict.fromkeys(
        part.worth.sentence for part in plan.parts if part.worth.sentence and not part.worth.alarming
    )


@dataclass(frozen=True)
class _Checked:
    """A watcher that first looks whether the run was interrupted."""

    watcher: Watcher
    check: Callable[[], None]

    def warn(self, sentence: str) -> None:
        self.watcher.warn(sentence)

    def note(self, sentence: str) -> None:
        self.watcher.note(sentence)

    def progress(self, position: int, total: int) -> None:
        self.check()
        self.watcher.progress(position, total)


def _perturb_table(
    reader: TableReader,
    plan: Plan,
    form: Form,
    file: Digested,
    watcher: Watcher,
    moved: list[int],
) -> int:
    """Stream a table through the plan; return its rows."""
    rows = 0
    ids = SeenIds("" if plan.release is None else plan.release.record or "")
    writer: Behind | None = None
    batches = reader.batches(plan.columns, plan.rows)
    try:
        for batch in batches:
            if plan.release is None:
                table = _perturb_batch(batch, plan, reader.names, rows, moved)
            else:
                table = plan.release.piece(batch, rows + 1, moved=moved, seen=ids)
            if writer is None:
                # The first batch is empty and shows the types: a file without rows has its columns, too.
                writer = Behind(open_writer(file, form, table.schema))
            if table.num_rows:
                writer.write(table)
            rows += table.num_rows
            watcher.progress(reader.position(), reader.total)
        ids.check()
    except BaseException:
        # A writer that is left open writes its end when it is collected, after its file is gone.
        if writer is not None:
            with suppress(Exception):
                writer.close()
        raise
    finally:
        # Now, and not whenever it is collected: its file and the threads behind it must not outlive the run.
        batches.close()
    if writer is not None:
        writer.close()
    return rows


def _perturb_batch(
    batch: pa.Table, plan: Plan, names: Sequence[str], first: int, moved: list[int]
) -> pa.Table:
    """Return the output of a batch from row `first` on, its columns in the order of the file.

    In `moved`, the numbers of each part are counted that were outside its range.
    """
    columns: dict[str, list[tuple[str, Any]]] = {name: [(name, batch.column(name))] for name in plan.keep}
    for place, part in enumerate(plan.parts):
        x = part.codec.encode(batch, first + 1)
        moved[place] += part.outside(x)
        reports = part.randomize(x, first)
        arrow_type = batch.schema.field(part.codec.columns[0]).type
        columns |= _by_input(part, part.codec.decode(reports, part.output, arrow_type))
    output = [pair for name in names for pair in columns.get(name, [])]
    made = [name for name, _ in output]
    if len(set(made)) != len(made):
        raise UsageError("--output bits: a column made for a bit has the name of another column")
    return pa.table([values for _, values in output], names=made)


def _by_input(part: Part, pairs: list[tuple[str, Any]]) -> dict[str, list[tuple[str, Any]]]:
    """Group output columns by the input column that each comes from."""
    if isinstance(part.codec, Attributes):  # a report is about all of them together
        return {part.codec.columns[0]: pairs}
    each = len(pairs) // len(part.codec.columns)
    return {name: pairs[i * each : (i + 1) * each] for i, name in enumerate(part.codec.columns)}
