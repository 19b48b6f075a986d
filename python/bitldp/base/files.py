"""Files that appear whole or not at all, and locks on them between threads and processes."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

__all__ = [
    "fleeting",
    "give_back",
    "locked",
    "replacing",
    "resolved",
    "sweep",
    "sync_folder",
    "take",
    "take_file",
    "temporaries",
]

_durable: ContextVar[bool] = ContextVar("durable", default=True)


@contextmanager
def fleeting() -> Iterator[None]:
    """Let files that the block replaces appear whole, but not wait until they are on disk.

    For what is simulated: a power cut takes files back that were written last, which a person's ledger must
    never know. It holds for this thread, and for others that run in a copy of its context.
    """
    token = _durable.set(False)
    try:
        yield
    finally:
        _durable.reset(token)


def resolved(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path that a path leads to through symbolic links, whether or not a file is there.

    What locks or replaces a file by name must begin with this: two links to one file are one file.
    """
    return Path(os.path.realpath(path))


@contextmanager
def replacing(path: Path, *, new: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file that takes the name `path` when the block succeeds.

    The bytes are on disk (fsync) before the name is given, but for the block of a `fleeting`, and the name is
    given in one step (rename), so that nobody ever sees half a file. When the block raises, also through an
    interrupt, the temporary file is removed and an older file of that name stays as it was. A file that is
    replaced hands on its permissions; where the name is a symbolic link, the file that it leads to is
    replaced.

    Parameters
    ----------
    path : pathlib.Path
        The final name.
    new : bool
        Whether no file of that name may be replaced, not even one that appears meanwhile.

    Yields
    ------
    file object
        Binary, for writing and seeking.

    Raises
    ------
    FileExistsError
        With `new`, if there is a file of that name when the block ends.
    """
    path = resolved(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        kept: int | None = stat.S_IMODE(path.stat().st_mode) & 0o777
    except FileNotFoundError:
        kept = None
    # O_EXCL: never follow or reuse what another process put there; 0o666: the user's umask decides on a new
    # file. Who may not read the older file may not read this one either, from the first moment.
    mode = 0o666 if kept is None else kept | stat.S_IRUSR | stat.S_IWUSR
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            if _durable.get():
                os.fsync(file.fileno())
        if kept is not None:
            temporary.chmod(kept)
        if new:
            _give_new_name(temporary, path)
        else:
            temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if _durable.get():
        sync_folder(path.parent)


def _give_new_name(temporary: Path, path: Path) -> None:
    """Name a file, in one step that fails where another has the name."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: a look, then a step
        if path.exists():
            raise FileExistsError(errno.EEXIST, "exists", os.fspath(path)) from None
        temporary.replace(path)
    else:
        temporary.unlink()


def temporaries(path: Path) -> list[Path]:
    """Return the temporary files of `replacing` beside a file, which are being written or were left."""
    path = resolved(path)
    return list(path.parent.glob(f".{glob.escape(path.name)}.*.tmp"))


def sweep(path: Path) -> None:
    """Remove the temporary files of `replacing` that killed processes left beside a file.

    Only for who holds the lock that every writer of the file takes: others may be writing theirs.
    """
    for left in temporaries(path):
        with suppress(OSError):
            left.unlink()


def sync_folder(folder: Path) -> None:
    """Ask the file system to keep the rename through a power cut; systems that cannot are left alone."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# -- locks, each on a file beside the protected one

if sys.platform == "win32":
    import msvcrt

    def take(descriptor: int, *, wait: bool = True) -> bool:
        """Take the lock of an open file, which goes with the process; return whether it could be had."""
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:  # tried ten times, once a second
                if wait:
                    continue
                return False
            return True

    def give_back(descriptor: int) -> None:
        """Give back the lock of an open file."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def take(descriptor: int, *, wait: bool = True) -> bool:
        """Take the lock of an open file, which goes with the process; return whether it could be had.

        Raises
        ------
        OSError
            With `wait`, where the file system has no locks.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if wait:
                raise
            return False  # another holds it
        return True

    def give_back(descriptor: int) -> None:
        """Give back the lock of an open file."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class _Turn:
    """Lock between the threads of this process that knows its holder."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holder: int | None = None


_guard = threading.Lock()
_turns: dict[str, _Turn] = {}


def _forget() -> None:
    """Begin anew in a forked child, where no thread is left that would give back what was taken."""
    global _guard  # noqa: PLW0603
    _guard = threading.Lock()
    _turns.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file: ``NAME.lock`` beside it, which stays. Wait while another holds it.

    Links are followed first, so that all names of a file have one lock. The operating system gives the lock
    back when the process ends, however it ends.

    Raises
    ------
    RuntimeError
        If this thread holds it already: it would wait for itself.
    OSError
        If the folder does not exist, or the lock cannot be opened.
    """
    path = resolved(path)
    lock = path.with_name(path.name + ".lock")
    with _guard:
        turn = _turns.setdefault(str(lock), _Turn())
    if turn.holder == threading.get_ident():
        raise RuntimeError(f"{path}: is in use by this thread already")
    with turn.lock:
        turn.holder = threading.get_ident()
        process = os.getpid()
        descriptor = take_file(lock, os.O_CREAT | os.O_RDWR)
        try:
            yield
        finally:
            turn.holder = None
            if os.getpid() == process:  # a forked child shares the lock, and must not give back its parent's
                give_back(descriptor)
            os.close(descriptor)


def take_file(path: Path, flags: int = os.O_RDWR) -> int:
    """Open a file and take its lock; again, where the name went to another file while this one waited.

    Raises
    ------
    FileNotFoundError
        If there is none, and `flags` do not create it.
    """
    while True:
        descriptor = os.open(path, flags, 0o600)
        try:
            take(descriptor)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
