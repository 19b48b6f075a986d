"""Inputs of the command line: files, compressed ones, and pipes, all of which can be read more than once."""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import pyarrow as pa

from bitldp.cli.perturb.files import CommandError
from bitldp.cli.perturb.forms import PIPE, Form, is_pipe

__all__ = ["DAMAGED", "Source", "opened"]

_BLOCK = 1 << 20
_OPEN = Path("/proc/self/fd")  # where Linux shows files that are open, also those without a name

#: What reading a damaged gzip file raises.
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)


@dataclass(frozen=True)
class Source:
    """An input and its form.

    Attributes
    ----------
    path : pathlib.Path
        Where its bytes are.
    form : Form
    name : str
        What errors call it.
    """

    path: Path
    form: Form
    name: str

    def __str__(self) -> str:
        """Return the name that errors call it by."""
        return self.name

    def open(self) -> BinaryIO:
        """Open its contents, uncompressed, for Python."""
        return cast("BinaryIO", gzip.open(self.path) if self.form.gzip else self.path.open("rb"))

    def text(self, encoding: str, errors: str = "strict") -> TextIO:
        """Open its contents as text whose ends of lines stay as they are."""
        return io.TextIOWrapper(self.open(), encoding=encoding, errors=errors, newline="")

    def arrow(self, raw: Any) -> Any:
        """Return a stream of its contents of the file that Arrow opened: nothing of it is Python's.

        Arrow reads ahead in threads of its own, and one that asks for the interpreter while it shuts down
        aborts the process.
        """
        return pa.CompressedInputStream(raw, "gzip") if self.form.gzip else raw

    def blocks(self) -> Iterator[bytes]:
        """Yield its contents, uncompressed.

        Raises
        ------
        CommandError
            For a compressed file that is damaged or too short.
        """
        try:
            with self.open() as file:
                while block := file.read(_BLOCK):
                    yield block
        except DAMAGED:
            raise CommandError(f"{self}: compressed data that are damaged, or end too early") from None


@contextmanager
def opened(path: Path, form: Form) -> Iterator[Source]:
    """Open an input; what can be read only once is read first, into a file without a name.

    So a pipe is refused by its row, like a file, and its digest can be charged before anything is released.
    The file is in the folder for temporary files (`TMPDIR`), its owner's alone, and goes with the process.
    """
    if not is_pipe(path):
        yield Source(path, form, str(path))
        return
    if path == PIPE:
        name, stream = "standard input", sys.stdin.buffer
        with _spool(stream) as place:
            yield Source(place, form, name)
        return
    with path.open("rb") as pipe, _spool(pipe) as place:
        yield Source(place, form, str(path))


@contextmanager
def _spool(stream: BinaryIO) -> Iterator[Path]:
    with tempfile.TemporaryFile() if _OPEN.is_dir() else tempfile.NamedTemporaryFile() as file:
        shutil.copyfileobj(stream, file, _BLOCK)
        file.flush()
        yield _OPEN / str(file.fileno()) if _OPEN.is_dir() else Path(file.name)
