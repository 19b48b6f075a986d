"""Writing of files that appear whole or not at all."""

from __future__ import annotations

import glob
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

__all__ = ["fleeting", "replacing", "resolved", "sweep", "sync_folder"]

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
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that takes the place of `path` when the block succeeds.

    The bytes are on disk (fsync) before the name is given, but for the block of a `fleeting`, and the name is
    given in one step (rename), so that nobody ever sees half a file. When the block raises, also through an
    interrupt, the temporary file is removed and an older file of that name stays as it was. A file that is
    replaced hands on its permissions; where the name is a symbolic link, the file that it leads to is
    replaced.

    Parameters
    ----------
    path : pathlib.Path
        The final name.

    Yields
    ------
    file object
        Binary, for writing and seeking.
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
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if _durable.get():
        sync_folder(path.parent)


def sweep(path: Path) -> None:
    """Remove the temporary files of `replacing` that killed processes left beside a file.

    Only for who holds the lock that every writer of the file takes: others may be writing theirs.
    """
    path = resolved(path)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
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
