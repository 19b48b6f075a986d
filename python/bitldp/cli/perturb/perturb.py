"""``bitldp perturb``: a file in, a randomized file and its privacy report out, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.cli.perturb.arrays import ArrayReader, write_header
from bitldp.cli.perturb.files import Unchanged, UsageError, check_paths, digest, file_format, report_path
from bitldp.cli.perturb.outputs import finish, outputs
from bitldp.cli.perturb.plan import Part, Plan, Request, build_plan
from bitldp.cli.perturb.planned import charge, planned
from bitldp.cli.perturb.privacy_report import privacy_report
from bitldp.cli.perturb.signals import interruptible
from bitldp.cli.perturb.tables import TableReader, TableWriter, open_reader, open_writer
from bitldp.tables.attributes import Attributes
from bitldp.tables.cells import Labels, Numbers, Reals
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
    formats = file_format(request.source), file_format(request.target)
    if (formats[0] == "npy") != (formats[1] == "npy"):
        raise UsageError(
            "a .npy array is written as a .npy array, and a table as a table (CSV, Parquet or Arrow)"
        )
    beside = report_path(request.target)
    if finish(request.target, beside):
        watcher.note(
            f"{request.target}: a run was killed before its privacy report had its name; it has it now"
        )
    check_paths(request.source, request.target, force=request.force)
    unchanged = Unchanged(request.source)
    if request.plan is not None and formats[0] == "npy":
        raise UsageError("--plan is for tables; an array has no names of columns")
    if formats[0] == "npy":
        array = ArrayReader(request.source)
        plan = _array_plan(request, array)
    else:
        table = open_reader(request.source, formats[0], delimiter=request.delimiter)
        plan = build_plan(request, table.names) if request.plan is None else planned(request, table.names)
    for sentence in _warnings(request, plan):
        watcher.warn(sentence)
    for sentence in _notes(plan):
        watcher.note(sentence)
    charge(request, plan)
    moved = [0] * len(plan.parts)
    with interruptible() as signals, outputs(request.target, beside, signals) as (file, report_file):
        checked = _Checked(watcher, signals.check)
        if formats[0] == "npy":
            rows = _perturb_array(array, plan, file, checked, moved)
        else:
            rows = _perturb_table(table, plan, formats[1], request.delimiter, file, checked, moved)
        signals.check()
        unchanged.check()
        report = privacy_report(request, plan, rows, digest(file))
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
        yield f"released as they are, without any privacy: {', '.join(plan.keep)} (--keep)"
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
    form: str,
    delimiter: str,
    file: BinaryIO,
    watcher: Watcher,
    moved: list[int],
) -> int:
    """Stream a table through the plan; return its rows."""
    rows = 0
    ids = SeenIds("" if plan.release is None else plan.release.record or "")
    writer: TableWriter | None = None
    batches = reader.batches(plan.columns, plan.rows)
    try:
        for batch in batches:
            if plan.release is None:
                table = _perturb_batch(batch, plan, reader.names, rows, moved)
            else:
                table = plan.release.piece(batch, rows + 1, moved=moved, seen=ids)
            if writer is None:
                # The first batch is empty and shows the types: a file without rows has its columns, too.
                writer = open_writer(file, form, table.schema, delimiter=delimiter)
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


def _array_plan(request: Request, reader: ArrayReader) -> Plan:
    if request.label is not None or request.keep:
        raise UsageError(
            "--label and --keep are for tables; perturb the labels of a .npy array in a file of their own"
        )
    width = 1 if len(reader.shape) == 1 else reader.shape[1]
    if width == 0:
        raise UsageError("the array has no columns")
    columns = tuple(str(j) for j in range(width))
    plan = build_plan(request, columns, width)
    if len(plan.parts) > 1:
        raise UsageError(
            f"{request.mechanism} perturbs the columns of an array one by one: give an array of one "
            "dimension, or a table"
        )
    if isinstance(plan.parts[0].codec, Numbers) and reader.dtype.kind != "f":
        raise UsageError(f"{request.mechanism} takes floats, the array holds {reader.dtype}")
    return plan


def _perturb_array(
    reader: ArrayReader, plan: Plan, file: BinaryIO, watcher: Watcher, moved: list[int]
) -> int:
    """Stream an array through the only part of a plan; return its rows."""
    (part,) = plan.parts
    rows = reader.shape[0]
    flat = len(reader.shape) == 1
    places = [int(name) for name in part.codec.columns]
    every = flat or places == list(range(reader.shape[1]))

    def reports(batch: NDArray[Any], first: int) -> NDArray[Any]:
        chosen = batch if every else np.ascontiguousarray(batch[:, places])
        if isinstance(part.codec, Numbers):
            chosen = chosen.reshape(len(chosen), len(places))
        x = part.codec.encode(chosen, first + 1)
        moved[0] += part.outside(x)
        answers = part.randomize(x, first)
        if not isinstance(part.codec, Numbers) and part.output == "values" and answers.ndim == 1:
            ((_, values),) = part.codec.decode(answers, part.output, _arrow_type(part, batch))
            answers = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values
        return answers[:, 0] if flat and answers.shape[1:] == (1,) else answers

    example = reports(np.empty((0, *reader.shape[1:]), reader.dtype.newbyteorder("=")), 0)
    write_header(file, (rows, *example.shape[1:]), example.dtype)
    done = 0
    for batch in reader.batches(plan.rows):
        file.write(np.ascontiguousarray(reports(batch, done)).data.cast("B"))
        done += len(batch)
        watcher.progress(done, rows)
    return rows


def _arrow_type(part: Part, batch: NDArray[Any]) -> pa.DataType:
    return pa.from_numpy_dtype(batch.dtype) if isinstance(part.codec, Labels) else pa.float64()
