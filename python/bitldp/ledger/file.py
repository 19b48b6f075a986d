"""File of a ledger, which is never written over contents that nobody has read."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bitldp.base.files import give_back, locked, replacing, sweep, take, take_file, temporaries

__all__ = ["HeldFile", "LedgerChangedError", "NoLedgerError", "held", "read"]


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
            state = os.fstat(file.fileno())
            data = file.read()
    except FileNotFoundError:
        return None
    names = state.st_nlink
    if names > 1 and (names := names - _being_named(path, state)) > 1:
        raise ValueError(
            f"{path}: has {names} names (hard links), each of which would become a ledger with the whole "
            "budget; use a symbolic link"
        )
    return data, hashlib.sha256(data).hexdigest()


def _being_named(path: Path, state: os.stat_result) -> int:
    """Return how many names of a file are those of its writer, who is about to remove them."""
    count = 0
    for each in temporaries(path):
        with suppress(FileNotFoundError):
            count += os.path.samestat(state, each.stat())
    return count


@contextmanager
def held(path: Path) -> Iterator[HeldFile]:
    """Keep everybody else from changing a ledger's file.

    The lock is ``NAME.lock``, and on POSIX the file itself, too: who removes the first lets nobody in.

    Parameters
    ----------
    path : pathlib.Path
        The file, with links followed; it need not exist.

    Yields
    ------
    HeldFile

    Raises
    ------
    RuntimeError
        If this thread holds it already.
    OSError
        If the folder does not exist, or a lock cannot be opened.
    """
    with locked(path):
        file, process = HeldFile(path), os.getpid()
        try:
            yield file
        finally:
            file.let_go(give=os.getpid() == process)  # a forked child must not give back its parent's


class HeldFile:
    """Ledger's file that one process alone may change, and the only way to write it.

    Parameters
    ----------
    path : pathlib.Path
        The file, with links followed; its ``NAME.lock`` is held.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        if os.name == "posix":  # elsewhere an open file, such as NAME.lock, cannot be removed
            with suppress(FileNotFoundError):
                self._descriptor = take_file(path, os.O_RDONLY)

    def let_go(self, *, give: bool = True) -> None:
        """Let others change the file."""
        if self._descriptor is not None:
            if give:
                give_back(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def write(self, text: str, seen: str | None) -> str:
        """Replace the file, which must be the one that was seen last; return the new checksum.

        Parameters
        ----------
        text : str
            The ledger.
        seen : str, optional
            Checksum of the file as it was read or written last; None for a file that is to be begun.

        Raises
        ------
        LedgerChangedError
            If the file is another, or is gone. Nothing was written.
        """
        present = read(self.path)
        if (None if present is None else present[1]) != seen:
            raise _changed(self.path, gone=present is None, seen=seen is not None)
        data = text.encode()
        sweep(self.path)
        descriptor: int | None = None
        try:
            with replacing(self.path, new=seen is None) as file:
                file.write(data)
                if os.name == "posix":  # before it has the name: there is no moment without a lock
                    descriptor = os.dup(file.fileno())
                    take(descriptor)
        except FileExistsError:
            _close(descriptor)
            raise _changed(self.path, gone=False, seen=False) from None
        except BaseException:
            _close(descriptor)
            raise
        self.let_go()
        self._descriptor = descriptor
        return hashlib.sha256(data).hexdigest()


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


def _changed(path: Path, *, gone: bool, seen: bool) -> LedgerChangedError:
    if gone:
        problem = "is gone since it was read; its folder was emptied, or is not mounted"
    elif not seen:
        problem = "is there already, and is not where this ledger comes from; Ledger.open reads it"
    else:
        problem = "was changed since it was read; read it again (Ledger.open keeps others out)"
    return LedgerChangedError(f"{path}: {problem}. Nothing was saved, and nothing may be released")
