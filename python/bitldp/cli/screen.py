"""Screen of a command: progress, notes, warnings, and one sentence when it fails."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from bitldp.base.errors import DataError, MissingExtraError, PlanError
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.perturb.outputs import let_go

__all__ = ["Left", "Screen", "print_whole", "sentences", "wide_console"]


def wide_console() -> Console:
    """Return where tables are printed: standard output, 150 columns wide if it is no terminal."""
    return _Console() if sys.stdout.isatty() else _Console(width=150)


class _Console(Console):
    """A console whose reader may stop, which `sentences` takes as a clean end."""

    def on_broken_pipe(self) -> None:
        """Say so, where rich would end the program with 1."""
        raise BrokenPipeError


def print_whole(console: Console, table: Table) -> None:
    """Print a table; a terminal that is too narrow for its words and figures gets a card for each row.

    A table that is cut loses what stands at the end of a cell, such as the mark of a claim that fails.
    """
    if _narrowest(table) <= console.width:
        console.print(table)
        return
    if table.title:
        console.print(str(table.title), style="italic")
    names = [" ".join(str(column.header).split()) for column in table.columns]
    records = zip(*(column.cells for column in table.columns), strict=True)
    for record, row in zip(records, table.rows, strict=True):
        first, *rest = map(str, record)
        console.print(first, style=row.style or "bold", markup=False, highlight=False)
        for name, cell in zip(names[1:], rest, strict=True):
            if cell:
                console.print(Padding(Text(f"{name}: {cell}"), (0, 0, 0, 2)))


def _narrowest(table: Table) -> int:
    """Return how wide a terminal must be for a table: no word is cut, nor a line that must not wrap."""
    needed = 1
    for column in table.columns:
        texts = [str(column.header), *map(str, column.cells)]
        pieces = (
            piece for text in texts for piece in (text.splitlines() if column.no_wrap else text.split())
        )
        needed += max(map(cell_len, pieces), default=0) + 3  # padding, and a line between
    return needed


@dataclass
class Left:
    """Remains of a command that ends early, as the end of a sentence."""

    behind: str = ""


@contextmanager
def sentences() -> Iterator[Left]:
    """Turn what goes wrong into one sentence on standard error and an exit code; never a traceback."""
    code, left = 1, Left()
    try:
        yield left
        sys.stdout.flush()
        return
    except CommandError as error:
        sentence, code = str(error), error.code
    except (MissingExtraError, DataError) as error:
        sentence = str(error)
    except PlanError as error:
        sentence, code = str(error), UsageError.code
    except KeyboardInterrupt as error:
        sentence, code = f"interrupted{left.behind}", 128 + int(getattr(error, "number", signal.SIGINT))
    except BrokenPipeError:  # who reads the answers has enough
        let_go()
        raise typer.Exit from None
    except OSError as error:
        sentence = f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}"
    except MemoryError:
        sentence = f"out of memory{left.behind}"
    except (typer.Exit, typer.BadParameter, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of the extension module is no Exception
        # The text of an unforeseen exception may quote a value of the data; its kind and line do not.
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        line = (
            "" if trace is None else f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        )
        sentence = f"internal failure ({type(error).__name__}{line}){left.behind}, please report it"
    print(f"error: {sentence}", file=sys.stderr)
    raise typer.Exit(code)


class Screen:
    """Shows a run on standard error: warnings always, a progress bar on a terminal."""

    def __init__(self, quiet: bool) -> None:
        console = Console(stderr=True)
        self._quiet = quiet
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task: TaskID = self._bar.add_task("perturbing", total=None)

    def __enter__(self) -> Screen:
        if not self._bar.disable:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if not self._bar.disable:  # some versions of rich end even a disabled bar with an empty line
            self._bar.stop()

    def warn(self, sentence: str) -> None:
        """Print a warning, also where the screen is quiet."""
        print(f"warning: {sentence}", file=sys.stderr)

    def note(self, sentence: str) -> None:
        """Print a note, unless the screen is quiet."""
        if not self._quiet:
            print(f"note: {sentence}", file=sys.stderr)

    def progress(self, position: int, total: int) -> None:
        """Move the bar to a position of a total."""
        self._bar.update(self._task, completed=position, total=total)
