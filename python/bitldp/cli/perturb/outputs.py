"""An output and its report, which take their names together or not at all."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bitldp.base.files import sync_folder
from bitldp.base.lock import take
from bitldp.cli.perturb.files import CommandError, Unchanged, is_report_of
from bitldp.cli.perturb.pipes import hand_out
from bitldp.cli.perturb.signals import Signals

__all__ = ["finish", "outputs"]

_RANDOM = 6  # bytes of the name of a temporary file


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Take the lock of a file, which goes with the process; return whether it could be had."""
    if sys.platform == "win32":
        return True  # a file that is open cannot be removed or renamed there
    try:
        return take(descriptor, wait=wait)
    except OSError:  # the file system has no locks: then nothing is removed
        return False


@contextmanager
def outputs(target: Path | None, report: Path, signals: Signals) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open temporary files for an output and its report; they take their names when the block succeeds.

    Both are on disk (fsync) before the first name is given. Then an older report goes, the output takes its
    name, and the report its own, with signals held: no output is ever beside another's report, and one is
    without a report only where the machine stops, or the run is killed, in between: see `finish`. When the
    block raises, the temporary files are removed, and older files stay.

    Temporary files that a killed run left behind are removed first; those of a run that still goes on are
    locked.

    Parameters
    ----------
    target, report : pathlib.Path
        The final names, in one folder. Without a target the output goes to standard output once the report
        has its name: a run that fails hands out nothing there, either, and what reads the pipe finds the
        report.
    signals : Signals
        Held while the names are given, and from then on.

    Yields
    ------
    (file object, file object)
        Of the output and of the report, binary, for reading, writing and seeking.

    Raises
    ------
    CommandError
        If another run gave one of the names meanwhile.
    """
    finals = (report.with_name(f"{report.name}.output") if target is None else target, report)
    before = [Unchanged(path) for path in finals]
    with ExitStack() as stack:
        with _alone(report.parent):
            for path in finals:
                _remove_left(path)
            made = [_temporary(path, stack) for path in finals]
        files = [file for file, _ in made]
        yield files[0], files[1]
        for file in files:
            file.flush()
            os.fsync(file.fileno())
        signals.hold()
        try:
            with _alone(report.parent):
                if not all(before):
                    raise CommandError(
                        f"{target or report}: another run wrote it meanwhile; nothing was replaced"
                    )
                if sys.platform == "win32":
                    for file in files:
                        file.close()
                report.unlink(missing_ok=True)
                for path, (_, temporary) in list(zip(finals, made, strict=True))[target is None :]:
                    temporary.replace(path)
        except BaseException:
            signals.release()
            raise
        sync_folder(report.parent)
        if target is None:
            signals.release()
            hand_out(files[0])


def finish(target: Path, report: Path) -> bool:
    """Give a report its name where a run was killed after its output had taken its own; say whether.

    The report still has its temporary name then; the digest in it says that it is of this output.
    """
    if report.exists() or not target.is_file():
        return False
    with suppress(OSError), _alone(target.parent):
        for left in _left(report):
            if not report.exists() and is_report_of(left, target):
                left.replace(report)
                sync_folder(report.parent)
                return True
    return False


def _temporary(path: Path, stack: ExitStack) -> tuple[BinaryIO, Path]:
    """Create and lock a temporary file for a final name; it is removed at the end, if it is still there."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(_RANDOM)}.tmp")
    # O_EXCL: never follow or reuse what another process put there; 0o666: the user's umask decides, as for
    # any file.
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    stack.callback(_remove, temporary)
    _lock(descriptor, wait=False)
    return stack.enter_context(os.fdopen(descriptor, "w+b")), temporary


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _left(path: Path) -> Iterator[Path]:
    """Yield the temporary files of a final name that no run holds any more, each locked for as long."""
    left = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{{2 * _RANDOM}}}\.tmp")
    for other in list(path.parent.iterdir()):
        if left.fullmatch(other.name):
            with suppress(OSError), other.open("rb") as file:
                if _lock(file.fileno(), wait=False):
                    yield other


def _remove_left(path: Path) -> None:
    """Remove temporary files of a final name that no run holds any more."""
    for left in _left(path):
        _remove(left)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one run at a time give names in a folder, where it can be locked."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows has no such thing
        yield
        return
    try:
        _lock(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)
