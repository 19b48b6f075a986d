"""Writing of files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing"]


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that takes the place of `path` when the block succeeds.

    The bytes are on disk (fsync) before the name is given, and the name is given in one step (rename), so
    that nobody ever sees half a file. When the block raises, also through an interrupt, the temporary file is
    removed and an older file of that name stays as it was.

    Parameters
    ----------
    path : pathlib.Path
        The final name.

    Yields
    ------
    file object
        Binary, for writing and seeking.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    # O_EXCL: never follow or reuse what another process put there; 0o666: the user's umask decides, as for
    # any file.
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Ask the file system to keep the rename through a power cut; systems that cannot are left alone."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
