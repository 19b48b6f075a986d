"""``bitldp perturb``: a file in, a randomized file and its privacy report out, in bounded memory."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bitldp import _core
from bitldp.base.errors import PlanError
from bitldp.base.files import resolved
from bitldp.cli.commands import PIPE, FileFormat, delimiter_hint, form_of, is_pipe, report_path
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.perturb.arrays import ArrayReader, perturb_array
from bitldp.cli.perturb.inputs import Inputs, ManyReader
from bitldp.cli.perturb.looked import look_through, look_through_array, look_through_files
from bitldp.cli.perturb.options_plan import plan_of_options
from bitldp.cli.perturb.outputs import (
    Digested,
    check_paths,
    finish,
    interruptible,
    outputs,
)
from bitldp.cli.perturb.privacy_report import Charged, Watcher, moved_note, privacy_report, said_before
from bitldp.cli.perturb.request import Request
from bitldp.cli.perturb.table_files import Behind, InputSource, TableReader, open_reader, open_writer, opened
from bitldp.cli.sign import Signer
from bitldp.ledger.budget import BudgetExceededError, Ledger, LedgerChangedError, LedgerState, NoLedgerError
from bitldp.ledger.entry import Entry, named
from bitldp.privacy import Guarantee
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.frames import is_text
from bitldp.tables.ids import SeenIds
from bitldp.tables.key import ReleaseKey
from bitldp.tables.plan import TablePlan, TableRelease

__all__ = [
    "Checked",
    "batch_rows",
    "charged",
    "check_keys",
    "commas_of",
    "enter_output",
    "looking",
    "perturb",
    "release_of_file",
    "released_batch",
    "stream",
]

#: Bytes of input and output that one batch should hold.
BATCH_BYTES = 1 << 25
_MOST_ROWS = 1 << 16
_FREE = Guarantee(0.0, 0.0, 0.0, 0.0)


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
    inputs = None
    if request.sources:
        inputs = Inputs(
            request.sources, request.source_form, request.delimiter, skip_blanks=request.skip_blanks
        )
    forms = _forms(request, None if inputs is None else inputs.form)
    if (forms[0].kind == "npy") != (forms[1].kind == "npy"):
        raise UsageError(
            "a .npy array is written as a .npy array, and a table as a table (CSV, Parquet or Arrow)"
        )
    target = None if request.target == PIPE else request.target
    beside = _report_path(request, target)
    if target is not None and finish(target, beside):
        watcher.note(
            f"{request.target}: a run was killed before its privacy report had its name; it has it now"
        )
    source_path = None if request.sources or is_pipe(request.source) else request.source
    kept = {
        "--plan": request.plan,
        "--ledger": request.ledger,
        "--key-file": request.release.file,
        "--store": request.release.store,
    }
    check_paths(source_path, target, beside, force=request.force, kept=kept)
    _keep_apart(request.release.store, beside)
    if request.plan is not None and forms[0].kind == "npy":
        raise UsageError("--plan is for tables; an array has no column names")
    signer = None if request.sign is None else Signer(request.sign)
    if inputs is not None:
        if request.seed is not None:
            raise UsageError("--seed: works with one file; make several repeatable with a plan and a key")
        return _perturb(request, inputs, forms[1], target, beside, watcher, signer)
    with opened(request.source, replace(forms[0], skip_blanks=request.skip_blanks)) as source:
        return _perturb(request, source, forms[1], target, beside, watcher, signer)


def _forms(request: Request, found: FileFormat | None) -> tuple[FileFormat, FileFormat]:
    """Return the forms of input and output; what goes to a pipe is of the input's, unless it is named."""
    read = found or form_of(request.source, request.source_form, "--from", request.delimiter)
    if request.target == PIPE and request.target_form is None:
        return read, read
    written = form_of(request.target, request.target_form, "--to", request.delimiter)
    if request.delimiter is not None and "\t" in (read.delimiter, written.delimiter):
        raise UsageError("--delimiter: a .tsv file has tabs; name it .csv, or leave the option out")
    return read, written


def _keep_apart(store: Path | None, output: Path) -> None:
    """Refuse a store beside the output, with which it would leave."""
    if store is not None and resolved(store).parent == resolved(output).parent:
        raise UsageError("--store: is in the folder of the output; keep it where the key is, apart from both")


def _report_path(request: Request, target: Path | None) -> Path:
    if target is None:
        if request.report is None:
            raise UsageError("--report: is required when the output goes to standard output")
        return request.report
    if request.report is not None:
        raise UsageError("--report: is for -o -; the report of a file is written next to it")
    return report_path(target)


def _perturb(
    request: Request,
    source: InputSource | Inputs,
    form: FileFormat,
    target: Path | None,
    beside: Path,
    watcher: Watcher,
    signer: Signer | None,
) -> dict[str, Any]:
    """Randomize an input that is open, or the files of one table."""
    unchanged = source.unchanged()
    array = ArrayReader(source) if source.form.kind == "npy" and isinstance(source, InputSource) else None
    table = (
        None
        if array is not None
        else ManyReader(source)
        if isinstance(source, Inputs)
        else open_reader(source)
    )
    release: TableRelease | None = None
    warnings: tuple[str, ...] = ()
    if array is not None:
        plan, warnings = _array_plan(request, array)
    elif table is not None and request.plan is not None:
        release = release_of_file(request, source, table.names)
        plan = release.plan
    elif table is not None:
        plan, warnings = plan_of_options(request, table.names, listed=source.form.kind != "csv")
    said_before(request, plan, warnings, watcher)
    reads = plan.reads if release is None else release.reads
    commas = commas_of(request, plan)
    look = looking(request, source if array is None else array, plan, release)
    if isinstance(source, Inputs):
        check_keys(plan, source, whole=True)
        source.survey(reads, release.digest if release is not None and release.repeatable else None)
        known = source.digest(release.digest) if release is not None and release.repeatable else ""
        charge = charged(request, plan, release, None, known, look=look)
    else:
        charge = charged(request, plan, release, source, look=look)
    seeds: Sequence[np.random.SeedSequence | None] = [None] * len(plan.codecs)
    if request.seed is not None:
        seeds = np.random.SeedSequence(request.seed).spawn(len(plan.codecs))
    batch, moved = batch_rows(plan.codecs, request.seed is not None), [0] * len(plan.codecs)
    with interruptible() as signals, outputs(target, beside, signals) as (file, report_file):
        checked, written = Checked(watcher, signals.check), Digested(file)
        with unchanged:
            if array is not None:
                (codec,) = plan.codecs
                rows = perturb_array(
                    array, codec, batch, seeds[0], request.threads, written, checked.progress, moved
                )
            elif table is not None:
                ids = None if release is None or release.record is None else SeenIds(release.record)

                def released(rows: pa.Table, first: int) -> pa.Table:
                    if release is not None:
                        return release.piece(rows, first + 1, moved=moved, seen=ids)
                    return released_batch(rows, plan, table.names, first, seeds, request.threads, moved)

                own = table.released(released) if isinstance(table, ManyReader) else released
                # What was sent is kept in mind before the output has its name.
                with nullcontext() if release is None else release.remembering():
                    rows = stream(table, reads, batch, own, form, written, checked, commas)
                    if ids is not None:
                        ids.check()
            signals.check()
        report = privacy_report(
            request, plan, release, rows, written.hexdigest(), array=array is not None, charge=charge
        )
        report = report if signer is None else signer.signed(report)
        report_file.write((json.dumps(report, indent=2, allow_nan=False) + "\n").encode())
    enter_output(request, release, report["output_sha256"], watcher)
    moved_note(plan, moved, watcher)
    return report


def check_keys(plan: TablePlan, inputs: Inputs, *, whole: bool) -> None:
    """Refuse files whose folders say of their records what the plan does not keep.

    Records of one folder stay together in what is released, as a file or (`whole`) as rows that follow each
    other, and so tell each other's value.

    Raises
    ------
    UsageError
    """
    for name in inputs.keys:
        if name in plan.keep or (whole and name not in plan.inputs):
            continue
        problem = "releases it" if name in plan.inputs else "does not keep it"
        raise UsageError(
            f"column {name!r}: the files are partitioned by it, and the plan {problem}; the partition would "
            "reveal which records share its value. Keep the column, or store its values in the files, with "
            "the rows in random order"
        )


# -- what is released


def _array_plan(request: Request, reader: ArrayReader) -> tuple[TablePlan, tuple[str, ...]]:
    """Return the plan of an array, whose columns are "0", "1" and so on, and warnings."""
    if request.label is not None or request.keep:
        raise UsageError(
            "--label and --keep are for tables; perturb the labels of a .npy array in a file of their own"
        )
    width = 1 if len(reader.shape) == 1 else reader.shape[1]
    if width == 0:
        raise UsageError("the array has no columns")
    plan, warnings = plan_of_options(request, [str(j) for j in range(width)], array=True)
    if len(plan.codecs) > 1:
        raise UsageError(
            f"{request.mechanism} perturbs the columns of an array one by one: give an array of one "
            "dimension, or a table"
        )
    if plan.codecs[0].floats and reader.dtype.kind != "f":
        raise UsageError(f"{request.mechanism} takes floats, the array holds {reader.dtype}")
    return plan, warnings


def release_of_file(request: Request, source: InputSource | Inputs, names: Sequence[str]) -> TableRelease:
    """Return the release by a plan's file; refuse a plan that cannot be read, or does not fit the table."""
    if request.plan is None:
        raise UsageError("--plan: is needed")
    if request.seed is not None:
        raise UsageError("--seed does not work with --plan; a key makes a release repeatable")
    try:
        plan = TablePlan.read(request.plan)
    except PlanError as error:
        raise UsageError(f"{request.plan}: {error}") from None
    except FileNotFoundError:
        raise UsageError(f"--plan: {request.plan}: no such file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{request.plan}: is not UTF-8 text") from None
    asked = request.release
    if asked.record is None and (asked.snapshot or asked.variable or asked.file or asked.memoize):
        raise UsageError("--record: a key needs the column of the records' ids")
    if (asked.most is not None or asked.store is not None) and not asked.memoize:
        raise UsageError("--most, --store: go with --memoize")
    if (asked.most is None) != (asked.store is None):
        raise UsageError("--most, --store: need each other: a private file counts the values of each record")
    release = plan.release(
        _key(request),
        record=asked.record,
        snapshot=asked.snapshot,
        threads=request.threads,
        memoize=asked.memoize,
        most=asked.most,
        store=asked.store,
    )
    times = Counter(names)
    for name in release.reads:
        if times[name] != 1:
            problem = "has several columns of that name" if times[name] else "has no such column"
            hint = delimiter_hint(names)
            raise UsageError(f"column {name!r} of {request.plan}: {source} {problem}{hint}")
    return release


def _key(request: Request) -> ReleaseKey | None:
    asked = request.release
    if asked.variable is not None and asked.file is not None:
        raise UsageError("--key-env, --key-file: give one of the two")
    if asked.record is not None and asked.variable is None and asked.file is None:
        raise UsageError("--record needs the release key: --key-env NAME or --key-file FILE")
    try:
        if asked.variable is not None:
            return ReleaseKey.from_env(asked.variable)
        return None if asked.file is None else ReleaseKey.from_file(asked.file)
    except FileNotFoundError:
        raise UsageError(f"--key-file: {asked.file}: no such file") from None
    except ValueError as error:
        raise UsageError(f"--key-{'env' if asked.variable else 'file'}: {error}") from None


def batch_rows(codecs: Sequence[ColumnCodec], seeded: bool) -> int:
    """Return the rows of a batch: constant for a run, so that memory does not grow with the file.

    A seeded run takes whole chunks of the keystream for every codec, so that its output does not depend on
    the size of the batches.
    """
    rows = min(_MOST_ROWS, max(1, BATCH_BYTES // sum(codec.width for codec in codecs)))
    if not seeded:
        return rows
    unit = max(_core.CHUNK // math.gcd(_core.CHUNK, codec.per_row) for codec in codecs)
    return max(unit, rows // unit * unit)


# -- its ledger


def charged(
    request: Request,
    plan: TablePlan,
    release: TableRelease | None,
    source: InputSource | None,
    data: str = "",
    *,
    look: Callable[[], None],
) -> Charged | None:
    """Charge a run to its ledger before anything is released; a repeatable one once, by its data's digest.

    For one file, `source`, the digest is that of its records. For several files it is given as `data`. `look`
    refuses data that cannot be released: they cost nothing.
    """
    if request.ledger is None:
        if request.budget is not None:
            raise UsageError("--budget: creates a ledger; give its file with --ledger")
        if request.after is not None:
            raise UsageError("--after: needs --ledger FILE")
        if request.reservation:
            raise UsageError("--reserve: needs --ledger FILE")
        return None
    _check_budget(request, request.ledger)
    if request.budget is not None or request.ledger.exists():
        look()
    state = None if request.after is None else _state_of(request.after)
    if release is not None and source is not None:
        data = _records_digest(request, release, source)
    try:
        with Ledger.open(
            request.ledger, budget=request.budget, create=request.budget is not None, at_least=state
        ) as ledger:
            if release is None:
                first = len(ledger.entries)
                for codec in plan.codecs:
                    entry = Entry(
                        *named(codec.mechanism),
                        1,
                        plan=plan.digest,
                        columns=tuple(codec.columns),
                        reservation=request.reservation,
                    )
                    ledger._charge(entry)
                return Charged(dict(enumerate(ledger.entries[first:], first + 1)), ledger.state())
            return _charged_release(request, release, ledger, source, data)
    except NoLedgerError:
        begins = "; --budget E creates one" if state is None else ""
        raise UsageError(f"{request.ledger}: no such ledger{begins}") from None
    except LedgerChangedError as error:
        raise CommandError(str(error).replace("at_least=", f"--after {request.after}")) from None
    except (BudgetExceededError, PlanError) as error:
        sentence = str(error).removeprefix("Guarantee: ")  # of a plan, which is no one mechanism
        raise CommandError(f"{request.ledger}: {sentence}") from None
    except ValueError as error:
        raise UsageError(f"{request.ledger}: {error}") from None


def looking(
    request: Request,
    source: InputSource | Inputs | ArrayReader,
    plan: TablePlan,
    release: TableRelease | None,
) -> Callable[[], None]:
    """Return what reads an input through, and refuses what its release would refuse."""
    rows = batch_rows(plan.codecs, seeded=False)
    points = partial(_with_points, columns=commas_of(request, plan))
    reads = plan.reads if release is None else release.reads
    if isinstance(source, ArrayReader):
        return partial(look_through_array, source, plan.codecs[0], rows)
    if isinstance(source, Inputs):
        return partial(look_through_files, source, reads, rows, plan.codecs, release, points)
    return partial(look_through, source, reads, rows, plan.codecs, release, points)


def _check_budget(request: Request, ledger: Path) -> None:
    """Refuse to begin a ledger that is there, or that would have an earlier report."""
    if request.budget is not None and ledger.exists():
        raise UsageError(f"{ledger}: exists already; leave --budget out to charge it")
    if request.budget is not None and request.after is not None:
        raise UsageError("--after, --budget: a new ledger has no earlier report; give only one of them")


def _records_digest(request: Request, release: TableRelease, source: InputSource) -> str:
    """Return the digest of a file's records, for which it is read once more, before the ledger is held.

    Empty where a charge does not depend on the records: without a key, and under a cap.
    """
    if not release.repeatable or release.counting:
        return ""
    rows, commas = batch_rows(release.plan.codecs, seeded=False), commas_of(request, release.plan)
    with closing(open_reader(source).batches(release.reads, rows)) as batches:
        return release.records_digest(_with_points(each, commas) for each in batches)


def _charged_release(
    request: Request, release: TableRelease, ledger: Ledger, source: InputSource | None, data: str
) -> Charged:
    """Charge a release to an open ledger, and return what it was ever charged there."""
    if data and source is not None:
        data = release.data_digest(ledger, source.blocks(), data)
    plan_name = "" if request.plan is None else request.plan.name
    release.charge(ledger, data=data, name=plan_name, reservation=request.reservation)
    name = f"{release.charged_as} "
    own = {
        key: each
        for key, each in enumerate(ledger.entries, 1)
        if f"{each.note} ".startswith(name) and not each.output
    }
    return Charged(own, ledger.state())


def enter_output(request: Request, release: TableRelease | None, sha256: str, watcher: Watcher) -> None:
    """Enter the digest of an output that was written into the ledger; it costs nothing."""
    if request.ledger is None:
        return
    entry = Entry(
        "output",
        _FREE,
        1,
        "" if release is None else release.counted_as,
        release="" if release is None else release.id,
        name=request.target.name,
        output=sha256,
    )
    try:
        with Ledger.open(request.ledger) as ledger:
            if not release or not release.repeatable or entry not in ledger.entries:
                ledger._charge(entry)
    except (OSError, ValueError, RuntimeError):  # the output is there, and is charged
        watcher.warn(
            f"{request.ledger}: the ledger could not store the digest of the output; it is in the report"
        )


def _state_of(report: Path) -> LedgerState:
    """Return how far a ledger had come by the privacy report of an earlier run."""
    try:
        state = json.loads(report.read_text(encoding="utf-8"))["ledger_state"]
        entries, sha256 = state["entries"], state["sha256"]
    except OSError as error:
        raise UsageError(f"--after: {report}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        entries, sha256 = None, None
    if type(entries) is not int or entries < 0 or not isinstance(sha256, str):
        raise UsageError(f"--after: {report}: is not a privacy report of a run that charged a ledger")
    return LedgerState(entries, sha256)


# -- how it goes on


@dataclass(frozen=True)
class Checked:
    """A watcher that first looks whether the run was interrupted."""

    watcher: Watcher
    check: Callable[[], None]

    def warn(self, sentence: str) -> None:
        """Show a warning."""
        self.watcher.warn(sentence)

    def note(self, sentence: str) -> None:
        """Show a note."""
        self.watcher.note(sentence)

    def progress(self, position: int, total: int) -> None:
        """Show how much was read, unless the run was interrupted."""
        self.check()
        self.watcher.progress(position, total)


def stream(
    reader: TableReader,
    columns: Sequence[str],
    batch: int,
    release: Callable[[pa.Table, int], pa.Table],
    form: FileFormat,
    file: Digested,
    watcher: Watcher,
    commas: Sequence[str] = (),
) -> int:
    """Stream a table through a release, `batch` rows at a time; return its rows.

    Texts of the columns `commas` are numbers with a decimal comma.
    """
    rows = 0
    writer: Behind | None = None
    batches = reader.batches(columns, batch)
    try:
        for each in batches:
            table = release(_with_points(each, commas), rows)
            if writer is None:
                # The first batch is empty and shows the types: a file without rows has its columns, too.
                writer = Behind(open_writer(file, form, table.schema))
            if table.num_rows:
                writer.write(table)
            rows += table.num_rows
            watcher.progress(reader.position(), reader.total)
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


def commas_of(request: Request, plan: TablePlan) -> list[str]:
    """Return the columns whose texts are numbers with a decimal comma."""
    if request.decimal is None:
        return []
    return [name for codec in plan.codecs for name in codec.numeric]


def _with_points(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return a table whose numbers have points for commas; a text that has a point is made no number."""
    for name in columns:
        column = table.column(name)
        if is_text(column.type):
            place = table.column_names.index(name)
            apart = pc.replace_substring(column, ".", "..")
            table = table.set_column(place, name, pc.replace_substring(apart, ",", "."))
    return table


def released_batch(
    batch: pa.Table,
    plan: TablePlan,
    names: Sequence[str],
    first: int,
    seeds: Sequence[np.random.SeedSequence | None],
    threads: int | None,
    moved: list[int],
) -> pa.Table:
    """Return the output of a batch from row `first` on, its columns in the order of the file.

    In `moved`, the numbers of each codec are counted that were outside its range.
    """
    columns: dict[str, list[tuple[str, Any]]] = {name: [(name, batch.column(name))] for name in plan.keep}
    for number, (codec, seed) in enumerate(zip(plan.codecs, seeds, strict=True)):
        x = codec.read(batch, first + 1)
        moved[number] += codec.outside(x)
        reports = codec.randomize(x, rng=seed, first=first, threads=threads)
        columns |= codec.by_column(codec.written(reports, batch.schema.field(codec.inputs[0]).type))
    output = [pair for name in names for pair in columns.get(name, [])]
    return pa.table([values for _, values in output], names=[name for name, _ in output])
