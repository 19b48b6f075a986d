"""``bitldp perturb`` of many files to a folder: a file each, one report, and no file made twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

import bitldp
from bitldp.base.files import resolved
from bitldp.cli.commands import FORMS, FileFormat, form_of
from bitldp.cli.errors import UsageError
from bitldp.cli.perturb.inputs import Inputs, located
from bitldp.cli.perturb.options_plan import plan_of_options
from bitldp.cli.perturb.outputs import Digested, Interrupted, interruptible
from bitldp.cli.perturb.perturb import (
    Checked,
    batch_rows,
    charged,
    check_keys,
    commas_of,
    enter_output,
    looking,
    release_of_file,
    released_batch,
    stream,
)
from bitldp.cli.perturb.privacy_report import Watcher, moved_note, privacy_report, said_before
from bitldp.cli.perturb.request import Request
from bitldp.cli.perturb.staging import Part, Staging, check_folder, digest_of, staged
from bitldp.cli.sign import Signer
from bitldp.tables.column import canonical_digest
from bitldp.tables.dataset import DatasetFile, is_remote
from bitldp.tables.ids import SeenIds
from bitldp.tables.plan import TablePlan, TableRelease

__all__ = ["perturb_folder"]

_DIGITS = 5  # of the number of a file, or more


def perturb_folder(request: Request, watcher: Watcher) -> dict[str, Any]:
    """Randomize files to a folder, which appears when all of it is there.

    With a key, a run that was killed is gone on with: the finished files are kept under another name, and the
    release, its plan and a keyed digest of all input beside them. Only where these are the same again are
    they taken over, so that the folder is the one that a single run would have made. A private store that
    counts keeps what the finished files sent apart, until the folder is whole.

    Parameters
    ----------
    request : Request
        Its target is the folder.
    watcher : Watcher

    Returns
    -------
    dict
        The privacy report that was written into the folder, as JSON values.

    Raises
    ------
    UsageError, CommandError
        As `bitldp.cli.perturb.perturb.perturb`.
    """
    _refuse_options(request)
    inputs = Inputs(request.sources, request.source_form, request.delimiter, skip_blanks=request.skip_blanks)
    form, suffix = _form(request, inputs)
    folders = [Path(each) for each in request.sources if not is_remote(each) and Path(each).is_dir()]
    sources = [file.local for file in inputs.files if file.local is not None]
    check_folder(request.target, sources, folders, force=request.force)
    signer = None if request.sign is None else Signer(request.sign)
    release, warnings, names = None, tuple[str, ...](), inputs.names
    if request.plan is not None:
        release = release_of_file(request, inputs, names)
        plan = release.plan
    else:
        plan, warnings = plan_of_options(request, names, listed=inputs.form.kind != "csv")
    check_keys(plan, inputs, whole=False)
    said_before(request, plan, warnings, watcher)
    reads = plan.reads if release is None else release.reads
    keyed = release if release is not None and release.repeatable else None
    inputs.survey(reads, None if keyed is None else keyed.digest)
    data = "" if keyed is None else inputs.digest(keyed.digest)
    unchanged = inputs.unchanged()
    charge = charged(request, plan, release, None, data, look=looking(request, inputs, plan, release))
    state = None
    run = _Run(request, inputs, plan, release, form, names, watcher)
    with ExitStack() as remembering:
        if keyed is not None:
            state = {"release": keyed.id, "data": data, "form": suffix, "version": bitldp.__version__}
            state |= {"run": remembering.enter_context(keyed.remembering(canonical_digest(state)))}
        with staged(request.target, state) as staging:
            if staging.finished:
                there = f"{len(staging.finished)} of {len(inputs)} files are there"
                watcher.note(f"continues: {there}, from a run that ended early")
            try:
                with interruptible() as signals:
                    checked = Checked(watcher, signals.check)
                    with unchanged:
                        parts = [
                            run.part(
                                file, f"{_folder(file)}part-{number:0{_DIGITS}}{suffix}", staging, checked
                            )
                            for number, file in enumerate(inputs.files)
                        ]
                        if run.seen is not None:
                            run.seen.check()
                    signals.check()
                    remembering.close()  # what was sent is kept in mind before the folder has its name
                    report = privacy_report(
                        *(request, plan, release, sum(each.rows for each in parts), digest_of(parts)),
                        array=False,
                        charge=charge,
                        files=[each._asdict() for each in parts],
                    )
                    report = report if signer is None else signer.signed(report)
                    staging.finish((json.dumps(report, indent=2, allow_nan=False) + "\n").encode(), signals)
            except BaseException as error:
                if keyed is None or not isinstance(error, (Interrupted, OSError, MemoryError)):
                    staging.discard()
                raise
    enter_output(request, release, report["output_sha256"], watcher)
    moved_note(plan, run.moved, watcher, "" if run.whole else ", in the files of this run")
    return report


def _refuse_options(request: Request) -> None:
    """Refuse options that a folder has no use for."""
    if request.report is not None:
        raise UsageError("--report: is for -o -; the report of a folder is written into it")
    store = request.release.store
    if store is not None and resolved(store).is_relative_to(resolved(request.target)):
        raise UsageError("--store: is in the output's folder; keep it where the key is, apart from it")
    if request.seed is not None:
        raise UsageError("--seed: works with one file; make a folder repeatable with a plan and a key")


def _form(request: Request, inputs: Inputs) -> tuple[FileFormat, str]:
    """Return the form of the files to write, and the end of their names."""
    if request.target_form is not None:
        form = form_of(request.target, request.target_form, "--to", request.delimiter)
    else:
        form = replace(inputs.form, skip_blanks=False)
    if form.kind == "npy":
        raise UsageError("--to npy: a folder holds tables")
    plain = {"csv": ".csv", "parquet": ".parquet", "arrow": ".arrow"}
    named = next((end for end, each in FORMS.items() if each == form), plain[form.kind])
    return form, named


def _folder(file: DatasetFile) -> str:
    """Return the folders of a released file: those of columns that are kept, and no others."""
    absent = "__HIVE_DEFAULT_PARTITION__"
    names = (
        f"{quote(name, safe='')}={absent if value is None else quote(value, safe='')}/"
        for name, value in file.keys.items()
    )
    return "".join(names)


class _Run:
    """Files that are made one after the other."""

    def __init__(
        self,
        request: Request,
        inputs: Inputs,
        plan: TablePlan,
        release: TableRelease | None,
        form: FileFormat,
        names: Sequence[str],
        watcher: Watcher,
    ) -> None:
        self._request, self._inputs, self._plan = request, inputs, plan
        self._release, self._form, self._names = release, form, names
        self._batch = batch_rows(plan.codecs, seeded=False)
        self._commas = commas_of(request, plan)
        self._done = 0  # bytes of input
        self.moved = [0] * len(plan.codecs)
        self.whole = True  # whether all files are of this run
        record = None if release is None else release.record
        self.seen = None if record is None else SeenIds(record)

    def part(self, file: DatasetFile, name: str, staging: Staging, watcher: Watcher) -> Part:
        """Make one file, or take over the one that is there; return what is said of it."""
        release, inputs = self._release, self._inputs
        known = staging.finished.get(name)
        with inputs.opened(file) as source, inputs.of(file) or nullcontext():
            if release is not None and release.repeatable:
                inputs.check(source, file, release.digest)
            reader = inputs.open(source, file)
            at = _At(watcher, self._done, file.size, max(1, inputs.size))
            if known is not None and release is not None and self.seen is not None:
                self.whole = False
                for rows in reader.batches([self.seen.name], self._batch):
                    ids = located(file, partial(release.ids, rows))
                    self.seen.merge(SeenIds.from_bytes(self.seen.name, ids.column("ids")[0].as_py()))
                    at.progress(reader.position(), max(1, reader.total))
            else:
                with staging.part(name) as output:
                    written = Digested(output)
                    reads = self._plan.reads if release is None else release.reads
                    rows = stream(
                        reader, reads, self._batch, self._of(file), self._form, written, at, self._commas
                    )
                known = Part(name, rows, written.hexdigest())
                if release is not None and release.days is not None:
                    release.days.keep()  # before the file is known to be finished
        if name not in staging.finished:
            staging.keep(known)
        self._done += file.size
        return known

    def _of(self, file: DatasetFile) -> Callable[[pa.Table, int], pa.Table]:
        """Return the release of rows of one file, without the columns that names of folders say."""

        def released(rows: pa.Table, first: int) -> pa.Table:
            if self._release is not None:
                return self._release.piece(rows, first + 1, moved=self.moved, seen=self.seen)
            seeds = [None] * len(self._plan.codecs)
            return released_batch(
                rows, self._plan, self._names, first, seeds, self._request.threads, self.moved
            )

        keys = set(self._inputs.keys)

        def own(rows: pa.Table, first: int) -> pa.Table:
            made = located(file, lambda: released(rows, first))
            return made.drop_columns([name for name in made.column_names if name in keys]) if keys else made

        return own


class _At:
    """A watcher of one file among several."""

    def __init__(self, watcher: Watcher, done: int, size: int, total: int) -> None:
        self._watcher, self._done, self._size, self._total = watcher, done, size, total

    def warn(self, sentence: str) -> None:
        """Show a warning."""
        self._watcher.warn(sentence)

    def note(self, sentence: str) -> None:
        """Show a note."""
        self._watcher.note(sentence)

    def progress(self, position: int, total: int) -> None:
        """Show how much of all files has been read."""
        part = self._size * position // total if total else self._size
        self._watcher.progress(self._done + part, self._total)
