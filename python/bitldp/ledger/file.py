"""File of a ledger, which is never written over contents that nobody has read."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

from bitldp.base.files import replacing, sweep

__all__ = ["LedgerChangedError", "NoLedgerError", "read", "write"]


class LedgerChangedError(RuntimeError):
    """Error for a save over a file that is not the one that was read: another may have charged it."""


class NoLedgerError(FileNotFoundError):
    """Error for a ledger that does not exist, where nobody asked to begin one."""

    def __init__(self, path: os.PathLike[str] | str) -> None:
        text = (
            "there is no ledger; Ledger.open(..., budget=..., create=True) begins one. A folder that was "
            "emptied, or is not mounted, looks the same: what was spent there stays spent"
        )
        super().__init__(errno.ENOENT, text, os.fspath(path))

    def __reduce__(self) -> tuple[type[NoLedgerError], tuple[str]]:
        """Pickle the path; the text follows from it."""
        return type(self), (str(self.filename),)


def read(path: Path) -> tuple[bytes, str] | None:
    """Return the bytes of a ledger's file, and their checksum; None where there is no file.

    Raises
    ------
    ValueError
        If the file has a second name (a hard link): the two would part when one is saved.
    OSError
        If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            names = os.fstat(file.fileno()).st_nlink
            data = file.read()
    except FileNotFoundError:
        return None
    if names > 1:
        raise ValueError(
            f"{path}: has {names} names (hard links), each of which would become a ledger with the whole "
            "budget; use a symbolic link"
        )
    return data, hashlib.sha256(data).hexdigest()


def write(path: Path, text: str, seen: str | None) -> str:
    """Replace a ledger's file, which must be the one that was seen last; return the new checksum.

    Parameters
    ----------
    path : pathlib.Path
        The file, with links followed; its lock is held.
    text : str
        The ledger.
    seen : str, optional
        Checksum of the file as it was read or written last; None for a file that is to be begun.

    Raises
    ------
    LedgerChangedError
        If the file is another, or is gone. Nothing was written.
    """
    present = read(path)
    if (None if present is None else present[1]) != seen:
        if present is None:
            problem = "is gone since it was read; its folder was emptied, or is not mounted"
        elif seen is None:
            problem = "is there already, and is not where this ledger comes from; Ledger.open reads it"
        else:
            problem = "was changed since it was read; read it again (Ledger.open keeps others out)"
        raise LedgerChangedError(f"{path}: {problem}. Nothing was saved, and nothing may be released")
    data = text.encode()
    sweep(path)
    with replacing(path) as file:
        file.write(data)
    return hashlib.sha256(data).hexdigest()
