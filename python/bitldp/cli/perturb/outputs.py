"""Outputs of a run: paths that are checked first, and files that appear together or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from bitldp.base.files import sync_folder, take
from bitldp.cli.errors import CommandError, UsageError

__all__ = [
    "Digested",
    "Interrupted",
    "Signals",
    "Unchanged",
    "check_paths",
    "digest",
    "finish",
    "hand_out",
    "interruptible",
    "is_report_of",
    "let_go",
    "outputs",
]

_BLOCK = 1 << 20


class Unchanged:
    """State of a file, to tell later whether it changed: its inode, its size and its time.

    Parameters
    ----------
    path : pathlib.Path
        The file, before the first look at it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = self._look()

    def _look(self) -> tuple[int, ...] | None:
        try:
            result = self._path.stat()
        except FileNotFoundError:
            return None
        return result.st_dev, result.st_ino, result.st_size, result.st_mtime_ns

    def __bool__(self) -> bool:
        """Return whether it is still the same."""
        return self._look() == self._found

    def __enter__(self) -> None:
        """Begin to read."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Refuse what was read of a file that changed meanwhile.

        Any other error of the reading is then about bytes that no file ever held, and is not said. An
        interruption remains one.

        Raises
        ------
        CommandError
            If the file is not as it was.
        """
        if (kind is None or issubclass(kind, Exception)) and not self:
            raise CommandError(f"{self._path}: changed while it was being read") from None


def check_paths(
    source: Path | None, output: Path | None, report: Path, *, force: bool, kept: Mapping[str, Path | None]
) -> None:
    """Refuse, before anything is read, an input or output that cannot be used.

    Parameters
    ----------
    source, output : pathlib.Path or None
        The input file and the file to write; None: a pipe.
    report : pathlib.Path
        Where the privacy report goes.
    force : bool
        Whether an existing output may be replaced.
    kept : mapping of str to pathlib.Path or None
        By option, the other files of the run, which it must not replace.

    Raises
    ------
    UsageError
        If the input is no file, the two are the same file, the output's folder does not exist, the output or
        its report is another file of the run, or exists and `force` is false.
    """
    if source is not None and not source.is_file():
        raise UsageError(f"{source}: no such file")
    written = report if output is None else output
    if source is not None and output is not None and _same(source, output):
        raise UsageError("the input and the output are the same file; give the output another name")
    if not written.parent.is_dir():
        raise UsageError(f"{written}: the folder {written.parent} does not exist")
    if source is not None and report.exists() and report.samefile(source):
        raise UsageError("the privacy report would overwrite the input; give the output another name")
    for path in (report,) if output is None else (output, report):
        for option, other in kept.items():
            if other is not None and _same(other, path):
                raise UsageError(f"{path}: is the run's own {option}; give the output another name")
        if path.is_dir():
            raise UsageError(f"{path}: is a folder, not a file")
        if not force and (path.exists() or path.is_symlink()):
            unlike = "" if output is None else _unlike(output, report)
            raise UsageError(f"{path}: exists{unlike}; give another name, or --force to replace it")


def _same(source: Path, output: Path) -> bool:
    both = output.exists() and source.exists()
    return (both and output.samefile(source)) or output.resolve() == source.resolve()


def digest(file: BinaryIO) -> str:
    """Return the SHA-256 of a file that is open for reading."""
    sha256 = hashlib.sha256()
    file.flush()
    file.seek(0)
    while block := file.read(_BLOCK):
        sha256.update(block)
    return sha256.hexdigest()


def is_report_of(report: Path, output: Path) -> bool:
    """Return whether a file is the privacy report of just this output, by the digest that it has of it."""
    try:
        said: Any = json.loads(report.read_bytes())
        with output.open("rb") as file:
            return isinstance(said, dict) and said.get("output_sha256") == digest(file)
    except (OSError, ValueError, RecursionError):
        return False


def _unlike(output: Path, report: Path) -> str:
    """Return what is wrong with an output that is there already, to be said behind "exists"."""
    if not report.exists():
        return ", without a privacy report beside it: no run of `bitldp perturb` was finished there"
    if not output.exists():
        return ", a privacy report without its output"
    return "" if is_report_of(report, output) else ", and the privacy report is not of this output"


_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupted(KeyboardInterrupt):
    """A signal that ends the run.

    Parameters
    ----------
    number : int
        Of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """Signals that came while a run went on.

    An exception that a handler raises is lost where Python ignores exceptions, as in a destructor, and is a
    panic where the extension module imports something. So a signal is remembered, and the next `check`
    raises. The second one raises at once, for a run that waits for a slow disk.
    """

    def __init__(self) -> None:
        self._came: list[int] = []
        self._held = False

    def handle(self, number: int, frame: object) -> None:
        """Remember a signal; end the run at the second one."""
        self._came.append(number)
        if len(self._came) > 1:
            self.check()

    def check(self) -> None:
        """Raise if a signal came, unless signals are held."""
        if self._came and not self._held:
            raise Interrupted(self._came[0])

    def hold(self) -> None:
        """Let signals wait from now on, to the end of the run: what begins now is not left half done."""
        self.check()
        self._held = True

    def release(self) -> None:
        """Let signals end the run again: what was begun has failed, and was undone."""
        self._held = False


@contextmanager
def interruptible() -> Iterator[Signals]:
    """Let SIGINT, SIGTERM and SIGHUP end a run in order, so that the temporary files go.

    Those that are ignored, as under nohup, stay so.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, signals.handle) for number in heeded}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def hand_out(file: BinaryIO) -> None:
    """Write a whole file to standard output; who stops reading has enough."""
    file.seek(0)
    try:
        shutil.copyfileobj(file, sys.stdout.buffer, _BLOCK)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        let_go()


def let_go() -> None:
    """Forget what standard output still holds: nobody reads it, and Python would complain at its end."""
    with suppress(OSError, ValueError):  # no file of the system behind it
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


_SPREAD = 1 << 25  # bytes that wait to reach the disk


class Digested:
    """A file that is written from its start to its end, and its SHA-256 on the way.

    What is written goes to the disk meanwhile: who asks for all of it at the end waits for little.
    To close it is nothing: Arrow closes what it writes to, and the file is its owner's.

    Parameters
    ----------
    file : file object
        Binary, with a descriptor.
    """

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._waiting = self._size = 0

    def write(self, data: Any) -> int:
        """Append bytes."""
        with memoryview(data) as view:
            self._digest.update(view)
            self._file.write(view)
            count = view.nbytes
        self._size += count
        self._waiting += count
        if self._waiting >= _SPREAD:
            self._waiting = 0
            self._file.flush()
            os.fsync(self._file.fileno())
        return count

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._size

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._file.flush()

    def writable(self) -> bool:
        """Return whether it can be written to."""
        return True

    def readable(self) -> bool:
        """Return whether it can be read."""
        return False

    def seekable(self) -> bool:
        """Return whether another position can be written to."""
        return False

    def close(self) -> None:
        """Leave it open."""

    def hexdigest(self) -> str:
        """Return the digest of all that was written."""
        return self._digest.hexdigest()


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
                        f"{target or report}: another run has written it meanwhile; nothing was replaced"
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
