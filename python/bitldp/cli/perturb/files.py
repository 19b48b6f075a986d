"""Files of the command line: which may be read and written, and what is wrong with them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, BinaryIO

__all__ = [
    "CommandError",
    "Unchanged",
    "UsageError",
    "check_paths",
    "digest",
    "is_report_of",
    "report_path",
]

_BLOCK = 1 << 20


class CommandError(Exception):
    """The command failed while it ran. The message is one sentence without a private value.

    Parameters
    ----------
    sentence : str
    code : int, optional
        The exit code: 1, or 128 and the number of a signal.
    """

    code = 1

    def __init__(self, sentence: str, code: int | None = None) -> None:
        super().__init__(sentence)
        self.code = self.code if code is None else code


class UsageError(CommandError):
    """The command line asks for something that cannot be (exit code 2)."""

    code = 2


class Unchanged:
    """Whether a file is still the one that it was: its place on the disk, its size and its time.

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
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def __bool__(self) -> bool:
        """Whether it is."""
        return self._look() == self._found

    def check(self) -> None:
        """Refuse what was read of a file that changed meanwhile."""
        if not self:
            raise CommandError(f"{self._path}: was changed while it was read")


def report_path(output: Path) -> Path:
    """Return where the privacy report of `output` is written: its name with ``.privacy.json`` added."""
    return output.with_name(output.name + ".privacy.json")


def check_paths(source: Path | None, output: Path | None, report: Path, *, force: bool) -> None:
    """Refuse, before anything is read, an input or output that cannot be used.

    Parameters
    ----------
    source, output : pathlib.Path or None
        The input file and the file to write; None: a pipe.
    report : pathlib.Path
        Where the privacy report goes.
    force : bool
        Whether an existing output may be replaced.

    Raises
    ------
    UsageError
        If the input is no file, the two are the same file, the output's folder does not exist, or the output
        or its report exists and `force` is false.
    """
    if source is not None and not source.is_file():
        raise UsageError(f"{source}: no such file")
    written = report if output is None else output
    if source is not None and output is not None and _same(source, output):
        raise UsageError("the input and the output are the same file; give the output another name")
    if not written.parent.is_dir():
        raise UsageError(f"{written}: the folder {written.parent} does not exist")
    if source is not None and report.exists() and report.samefile(source):
        raise UsageError(
            "the input is where the privacy report would be written; give the output another name"
        )
    for path in (report,) if output is None else (output, report):
        if path.is_dir():
            raise UsageError(f"{path}: is a folder, not a file")
        if not force and (path.exists() or path.is_symlink()):
            unlike = "" if output is None else _unlike(output, report)
            raise UsageError(f"{path}: exists{unlike}; give another name, or --force to replace it")


def _same(source: Path, output: Path) -> bool:
    return (output.exists() and output.samefile(source)) or output.resolve() == source.resolve()


def digest(file: BinaryIO) -> str:
    """Return the SHA-256 of a file that is open for reading."""
    found = hashlib.sha256()
    file.flush()
    file.seek(0)
    while block := file.read(_BLOCK):
        found.update(block)
    return found.hexdigest()


def is_report_of(report: Path, output: Path) -> bool:
    """Whether a file is the privacy report of just this output, by the digest that it has of it."""
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
