"""File of a ledger: each charge holds the digest of all before it; locks, and the only way to write it.

It is never written over contents that nobody has read.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from bitldp.base import checks
from bitldp.base.documents import document
from bitldp.base.files import give_back, locked, replacing, sweep, take, take_file, temporaries
from bitldp.ledger.entry import Entry, from_json, of_fields, to_json

__all__ = [
    "HeldFile",
    "LedgerChangedError",
    "LedgerContents",
    "LedgerState",
    "NoLedgerError",
    "held",
    "read",
    "read_text",
    "state_of",
    "written",
]


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


# -- its text

_FORMAT = "bitldp.ledger"
_VERSION = 2  # 1 had no digests of charges, and nothing of a charge but mechanism, guarantee, count and note


class LedgerContents(NamedTuple):
    """Budget, delta and charges of a text. Each charge is checked by itself, their sum is not."""

    budget: float
    delta: float
    entries: list[Entry]


class LedgerState(NamedTuple):
    """How far a ledger has come: what `Ledger.open` can be asked not to fall behind.

    Attributes
    ----------
    entries : int
        Number of charges.
    sha256 : str
        Checksum of the budget, the delta and these charges, in hexadecimal digits.
    """

    entries: int
    sha256: str

    @classmethod
    def checked(cls, value: Any) -> LedgerState:
        """Return a checked state; its two fields may come as a tuple, as of JSON."""
        try:
            entries, sha256 = value
        except (TypeError, ValueError):
            raise TypeError("at_least: must be a LedgerState, of entries and sha256") from None
        if not isinstance(sha256, str):
            raise TypeError("at_least: its sha256 must be a string")
        return cls(checks.integer("at_least", entries, 0), sha256)


def state_of(budget: float, delta: float, entries: Sequence[Entry]) -> LedgerState:
    """Return the state after some charges."""
    return LedgerState(len(entries), _digest(_contents(budget, delta, [to_json(each) for each in entries])))


def written(budget: float, delta: float, entries: Iterable[Entry]) -> str:
    """Return the text of a ledger."""
    contents = _contents(budget, delta, _chained(budget, delta, [to_json(each) for each in entries]))
    whole = {"format": _FORMAT, "version": _VERSION, "sha256": _digest(contents), "ledger": contents}
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def read_text(text: str) -> LedgerContents:
    """Return the budget and the charges in a text.

    Raises
    ------
    TypeError
        If it is no str.
    ValueError
        If it is not a ledger, is of another version, was damaged or changed by hand, or holds what no ledger
        would: the message names it.
    """
    whole = document(text)
    if not isinstance(whole, dict) or whole.get("format") != _FORMAT:
        raise ValueError(f"is not a ledger (its format must be {_FORMAT!r})")
    version = whole.get("version")
    if type(version) is not int or not 1 <= version <= _VERSION:
        shown = f", got {version}" if type(version) is int and 0 <= version < 1 << 32 else ""
        raise ValueError(f"version must be 1 or {_VERSION}{shown}")
    if whole.get("sha256") != _digest(whole.get("ledger")):
        raise ValueError("the contents do not match their checksum; damaged or changed by hand")
    try:
        contents = of_fields("ledger", whole["ledger"], LedgerContents._fields)
        budget, delta = _amount("budget", contents["budget"]), _amount("delta", contents["delta"])
        if not isinstance(contents["entries"], list):
            raise ValueError("entries: must be a list")
        records = contents["entries"]
        if version > 1:
            records = _unchained(contents["budget"], contents["delta"], records)
        entries = []
        for index, each in enumerate(records):
            try:
                entries.append(from_json(each))
            except (TypeError, ValueError) as error:
                raise ValueError(f"entry {index}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the contents are damaged: {error}") from None
    return LedgerContents(budget, delta, entries)


def _contents(budget: float, delta: float, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"budget": budget, "delta": delta, "entries": entries}


def _chained(budget: float, delta: float, records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return charges, each with the digest of itself and of the one before."""
    result, last = [], _digest([budget, delta])
    for each in records:
        last = _digest([last, each])
        result.append({**each, "chain": last})
    return result


def _unchained(budget: float, delta: float, records: list[Any]) -> list[Any]:
    """Return charges without their digests, or refuse the first that does not follow the one before."""
    last = _digest([budget, delta])
    result: list[Any] = []
    for index, each in enumerate(records):
        plain = (
            {name: value for name, value in each.items() if name != "chain"}
            if isinstance(each, dict)
            else each
        )
        last = _digest([last, plain])
        if not isinstance(each, dict) or each.get("chain") != last:
            raise ValueError(
                f"entry {index}: does not follow from the one before it; the chain of hashes is broken"
            )
        result.append(plain)
    return result


def _amount(name: str, value: Any) -> float:
    """Return a budget or a delta, which JSON holds as a number and as nothing else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}: must be a number")
    return checks.budget(name, value)


def _digest(contents: Any) -> str:
    """Return the checksum of JSON values, whatever the white space of the file."""
    try:
        text = json.dumps(contents, sort_keys=True)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    return hashlib.sha256(text.encode()).hexdigest()
