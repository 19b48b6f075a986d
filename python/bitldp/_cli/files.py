"""Files of the command line: formats by suffix, and outputs that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = [
    "FORMATS",
    "CommandError",
    "UsageError",
    "check_paths",
    "file_format",
    "replacing",
    "report_path",
]

#: File format of each suffix.
FORMATS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
}


class CommandError(Exception):
    """The command failed while it ran (exit code 1). The message is one sentence without a private value."""


class UsageError(CommandError):
    """The command line asks for something that cannot be (exit code 2)."""


def file_format(path: Path) -> str:
    """Return ``"csv"``, ``"parquet"``, ``"arrow"`` or ``"npy"`` by the suffix of `path`."""
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        raise UsageError(
            f"{path}: cannot tell the format from the suffix; use one of {', '.join(FORMATS)}"
        ) from None


def report_path(output: Path) -> Path:
    """Return where the privacy report of `output` is written: its name with ``.privacy.json`` added."""
    return output.with_name(output.name + ".privacy.json")


def check_paths(source: Path, output: Path, *, force: bool) -> None:
    """Refuse, before anything is read, an input or output that cannot be used.

    Parameters
    ----------
    source, output : pathlib.Path
        The input file and the file to write.
    force : bool
        Whether an existing output may be replaced.

    Raises
    ------
    UsageError
        If the input is no file, the two are the same file, the output's folder does not exist, or the output
        or its report exists and `force` is false.
    """
    if not source.is_file():
        raise UsageError(f"{source}: no such file")
    if (output.exists() and output.samefile(source)) or output.resolve() == source.resolve():
        raise UsageError("the input and the output are the same file; give the output another name")
    if not output.parent.is_dir():
        raise UsageError(f"{output}: the folder {output.parent} does not exist")
    report = report_path(output)
    if report.exists() and report.samefile(source):
        raise UsageError(
            "the input is where the privacy report would be written; give the output another name"
        )
    for path in (output, report):
        if path.is_dir():
            raise UsageError(f"{path}: is a folder, not a file")
        if not force and (path.exists() or path.is_symlink()):
            raise UsageError(f"{path}: exists; give another name, or --force to replace it")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file in the folder of `path` that takes its name when the block succeeds.

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
