"""``bitldp paper``: make the papers' figures and tables again, each beside its exact epsilon."""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bitldp.base.errors import require
from bitldp.cli.plugin import CommandError, UsageError, print_whole, sentences, wide_console
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from bitldp_papers.cli.given import Held, Label, Public, opened

if TYPE_CHECKING:
    from bitldp_papers.data import Dataset
    from bitldp_papers.figures import FigureEntry
    from bitldp_papers.figures.remaining import Remaining

__all__ = ["paper"]

_MODULES = ("flwr", "jax", "sklearn", "matplotlib")
#: Of each figure with --json.
_SHOWN = ("name", "status", "reason", "form", "seeds", "seconds", "summary", "findings")
#: Seconds after which the page is written again while figures are made.
_PAGE_EVERY = 20.0


def paper(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Figures, or papers for all of their figures. `list`, or nothing: the list of them. "
            "`compare FOLDER FOLDER` compares the verdicts of two runs with other seeds.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Make every figure and table.")] = False,
    form: Annotated[
        str | None,
        typer.Option(help="quick, medium or full [default: full]: `list` shows the minutes of each."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Short for --form quick.")] = False,
    seed: Annotated[int, typer.Option(min=1, help="First seed; the others follow it.")] = 1,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds [default: 3 in the quick form, else 5].")
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FOLDER", help="Output: a folder for each figure, and report.html."),
    ] = Path("paper-output"),
    data: Annotated[
        str | None,
        typer.Option(
            metavar="[NAME=]FILE", help="Your .csv, .parquet or .npz in place of the data set NAME."
        ),
    ] = None,
    label: Label = None,
    ranges: Public = None,
    test: Held = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip finished figures, and continue unfinished ones.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes, each for the figures of one paper [default: one per core]."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Add each finished figure to a record: one JSON file without data."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the list, or how each figure ended.")
    ] = False,
) -> None:
    """Reproduce figures and tables of the papers as CSV, JSON, SVG and PNG, and on one page.

    Data that scikit-learn does not bundle lie in the folder BITLDP_DATA; a figure whose data are missing is
    left out, with the reason.

    Every figure and the page are there as soon as the figure ends; on a terminal a bar shows the time left.

    Example: bitldp paper bitrand-3 --quick
    """
    with sentences() as left:
        require("bitldp paper", _MODULES, "papers")
        from bitldp_papers.data import DatasetError
        from bitldp_papers.figures import FORMS, chosen, figures

        logging.getLogger("flwr").setLevel(logging.ERROR)
        given = list(names or [])
        if given == ["list"] or not (given or every):
            _print_list(list(figures().values()), as_json=as_json)
            return
        if given[:1] == ["compare"]:
            _compare(given[1:], as_json=as_json)
            return
        if given and every:
            raise UsageError("--all makes every figure: give names or --all")
        try:
            entries = chosen(given) if given else list(figures().values())
        except ValueError as error:
            raise UsageError(str(error)) from None
        try:
            mine = _given(data, label, ranges, test)
        except (ValueError, DatasetError) as error:
            raise CommandError(str(error)) from None
        if mine and record:
            raise UsageError("--record is for the papers' data: it does not go with --data")
        left.behind = f"; --resume goes on, in {out}"
        chosen_form = _form(form, quick=quick)
        seeds = range(seed, seed + (repeats or FORMS[chosen_form]))
        words: dict[str, Any] = {"form": chosen_form, "seeds": seeds, "resume": resume, "given": mine}
        jobs = min(jobs or _cores(), len({each.paper for each in entries}))
        documents = _made(entries, out, record, jobs=jobs, quiet=as_json, **words)
        page = _page(out)
        if as_json:
            print(json.dumps([{key: each.get(key) for key in _SHOWN} for each in documents]))
        else:
            _print_ended(documents, page)
        failed = [each["name"] for each in documents if each["status"] == "failed"]
        if failed:
            raise CommandError(
                f"{', '.join(failed)}: failed; figure.json and the lines above have the reason"
            )


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _form(form: str | None, *, quick: bool) -> str:
    """Return the form that is asked for."""
    from bitldp_papers.figures import FORMS

    if quick and form not in (None, "quick"):
        raise UsageError(f"--quick is --form quick: give one of --quick and --form {form}")
    if form is not None and form not in FORMS:
        raise UsageError(f"--form: must be one of {', '.join(FORMS)}; got {form!r}")
    return "quick" if quick else form or "full"


def _given(
    data: str | None, label: str | None, ranges: Path | None, test: Path | None
) -> tuple[str, Dataset] | None:
    """Return a file's data set, and the name that it stands for: empty for a figure's only one."""
    from bitldp_papers.data import NEEDED
    from bitldp_papers.data import names as loaded

    name, is_named, file = (data or "").rpartition("=")
    known = (*loaded(), *NEEDED)
    if is_named and name not in known:
        raise UsageError(f"--data {name}=...: no data set {name!r}; there are {', '.join(known)}")
    mine = opened(file or None, label, ranges, test)
    if mine is None and data is not None:
        raise UsageError(f"--data {data}: must name a data file; each figure has its own sets")
    return None if mine is None else (name, mine)


def _made(
    entries: Sequence[FigureEntry],
    out: Path,
    record: Path | None,
    *,
    jobs: int,
    quiet: bool,
    form: str,
    seeds: Sequence[int],
    resume: bool,
    given: tuple[str, Dataset] | None,
) -> list[dict[str, Any]]:
    """Make figures; show which, how far it is, and the time left."""
    from bitldp_papers.figures import SHARED
    from bitldp_papers.figures.record import add
    from bitldp_papers.figures.remaining import Remaining, planned
    from bitldp_papers.figures.together import Begun, each_made

    if not resume:
        shutil.rmtree(out / SHARED, ignore_errors=True)
    seconds = planned(entries, form)
    remaining = Remaining(seconds, jobs=jobs)
    documents: dict[str, dict[str, Any]] = {}
    paged = time.monotonic()
    with _progress(remaining, sum(seconds.values()), quiet=quiet) as show:

        def notice(entry: FigureEntry, text: str) -> None:
            show(f"[{len(documents) + 1}/{len(entries)}] {entry.name} {text}".rstrip())

        words: dict[str, Any] = {"form": form, "seeds": seeds, "resume": resume, "given": given}
        for event in each_made(entries, out, jobs=jobs, planned=seconds, notice=notice, **words):
            name = event.entry.name
            if isinstance(event, Begun):
                remaining.begins(name)
                notice(event.entry, "")
                continue
            document = documents[name] = event.document
            remaining.ended(name, made=not event.was_there and document["status"] == "done")
            if record is not None:
                add(record, document)
            if time.monotonic() - paged > _PAGE_EVERY:
                _page(out)
                paged = time.monotonic()
            if not quiet:
                reason = f": {document['reason']}" if "reason" in document else ""
                took = "was there" if event.was_there else f"{event.seconds:.1f} s"
                head = f"[{len(documents)}/{len(entries)}] {name}"
                print(f"{head} {document['status']}, {took}{reason}", file=sys.stderr)
    return [documents[each.name] for each in entries]


@contextmanager
def _progress(remaining: Remaining, total: float, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield what shows a line of progress and the time left, drawn on a terminal only."""
    console = Console(stderr=True)
    columns = (BarColumn(20), _Left(remaining), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("", total=max(total, 1.0))

        def show(text: str) -> None:
            spent = bar.tasks[task].elapsed or 0.0
            share = spent / max(spent + remaining.seconds(), 1e-9)
            bar.update(task, completed=max(total, 1.0) * share, description=text)

        yield show


class _Left(ProgressColumn):
    """Column of the time left, computed whenever it is drawn."""

    def __init__(self, remaining: Remaining) -> None:
        super().__init__()
        self._remaining = remaining

    def render(self, task: Task) -> Text:
        """Return the time left of the run."""
        return Text(f"{_time(self._remaining.seconds())} left")


def _time(seconds: float) -> str:
    """Write a time that is left, as exactly as it is known."""
    if seconds < 90.0:
        return f"{5 * math.ceil(seconds / 5.0)} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def _compare(folders: Sequence[str], *, as_json: bool) -> None:
    """Print which statements two runs decide in other ways; fail where they contradict each other."""
    from bitldp_papers.figures.comparing import pairs

    if len(folders) != 2:
        raise UsageError(f"compare: give two folders that `bitldp paper --out` filled; got {len(folders)}")
    for folder in folders:
        if not Path(folder).is_dir():
            raise UsageError(f"compare: {folder} is not a folder")
    try:
        found = list(pairs(Path(folders[0]), Path(folders[1])))
    except ValueError as error:
        raise CommandError(f"compare: {error}") from None
    flipped = [each for each in found if each.flipped]
    if as_json:
        shown = [asdict(each) | {"flipped": each.flipped} for each in found if not each.alike]
        print(json.dumps({"statements": len(found), "others": shown}))
    else:
        for pair in found:
            if not pair.alike:
                print(f"{pair.figure}: {pair.says}: {' / '.join(pair.words)}")
                print("".join(f"    {because}\n" for because in pair.because), end="")
        alike = sum(pair.alike for pair in found)
        open_now = len(found) - alike - len(flipped)
        print(
            f"{len(found)} statements: {alike} alike, {open_now} decided in one run, {len(flipped)} flipped"
        )
    if flipped:
        names = ", ".join(dict.fromkeys(each.figure for each in flipped))
        raise CommandError(f"compare: verdicts flip with the seeds: {names}")


def _page(out: Path) -> Path:
    from bitldp_papers.page import write_page

    return write_page(out)


def _print_list(entries: Sequence[FigureEntry], *, as_json: bool) -> None:
    from bitldp_papers.figures import FORMS
    from bitldp_papers.figures.remaining import Remaining, minutes, planned

    takes = {each.name: {form: round(minutes(each, form), 2) for form in FORMS} for each in entries}
    if as_json:
        keys = ("name", "source", "title", "claim")
        rows = [{key: getattr(each, key) for key in keys} for each in entries]
        print(json.dumps([row | {"minutes": takes[row["name"]]} for row in rows], indent=2))
        return
    table = Table(box=None)
    for name in ("Figure", "Source", "What it shows", "Minutes, quick", "medium", "in full"):
        table.add_column(name, no_wrap=name == "Figure", justify="right" if name[0] in "Mmi" else "left")
    for each in entries:
        table.add_row(
            each.name, each.source, each.title, *(f"{value:.1f}" for value in takes[each.name].values())
        )
    console = wide_console()
    print_whole(console, table)
    quick, medium, full = (Remaining(planned(entries, form), jobs=2).seconds() / 60.0 for form in FORMS)
    console.print(
        f"{len(entries)} figures; on two cores `bitldp paper --all --quick` takes about {quick:.0f} minutes, "
        f"`--form medium` {medium:.0f} minutes, in full about {full / 60:.1f} hours"
    )
    _print_needed(console)


def _print_needed(console: Console) -> None:
    """Print the sets that a user has to bring, each with its source and the form of its file."""
    from bitldp_papers.data import NEEDED

    table = Table(title="Data sets that a figure needs from you: --data NAME=FILE --label COLUMN", box=None)
    for name in ("Needs FILE", "Records", "Source", "File"):
        table.add_column(name, no_wrap=name == "Needs FILE")
    for each in NEEDED.values():
        table.add_row(each.name, each.what, each.source, each.form)
    print_whole(console, table)


def _print_ended(documents: Sequence[dict[str, Any]], page: Path) -> None:
    for each in documents:
        print(f"{each['name']}: {each.get('summary') or each.get('verdict') or each['status']}")
        for one in each.get("findings", ()):
            print(f"    {one['word']}: {one['says']} ({one['because']})")
    counts = {
        status: sum(each["status"] == status for each in documents)
        for status in ("done", "skipped", "failed")
    }
    print(f"{', '.join(f'{count} {status}' for status, count in counts.items() if count)}; {page}")
