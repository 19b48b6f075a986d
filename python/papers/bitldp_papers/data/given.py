"""Data sets that are given by an object instead of by a name, for as long as a run needs them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from bitldp_papers.data.dataset import Dataset

__all__ = ["given", "reserve", "using"]

_lock = threading.Lock()
_given: dict[str, Dataset] = {}
_uses: dict[str, int] = {}
#: What each name stood for in this process: results that are kept by name are of these records.
_known: dict[str, str] = {}


def reserve(names: Iterable[str]) -> None:
    """Keep names for the data sets that have them already: another of the same name gets a number."""
    _known.update(dict.fromkeys(names, ""))


@contextmanager
def using(data: Dataset, instead_of: str = "") -> Iterator[str]:
    """Let a name stand for a data set while the block runs, in all threads of this process.

    Parameters
    ----------
    data : Dataset
    instead_of : str
        A name to stand for, whichever set has it; empty: the data set's own. Results that a process keeps by
        that name must be of these records, too: for a process that reads no other set of the name.

    Yields
    ------
    str
        The name: that of the data set, with a number behind it where this process had other records of that
        name before, or has a bundled one. `load` returns the data set for it.
    """
    own = _fingerprint(data)
    with _lock:
        number, name = 1, instead_of or data.name
        while not instead_of and _known.setdefault(name, own) != own:
            number += 1
            name = f"{data.name} ({number})"
        _given[name] = data
        _uses[name] = _uses.get(name, 0) + 1
    try:
        yield name
    finally:
        with _lock:
            _uses[name] -= 1
            if not _uses[name]:
                del _given[name], _uses[name]


def given(name: str) -> Dataset | None:
    """Return the data set that a name stands for now, or None."""
    return _given.get(name)


def _fingerprint(data: Dataset) -> str:
    """Return the SHA-256 of the records and their labels; of private ones it is private, too."""
    digest = hashlib.sha256()
    for each in (data.train, data.train_labels, data.test, data.test_labels, data.low, data.high):
        digest.update(f"{each.dtype} {each.shape}".encode())
        digest.update(each.tobytes())
    return digest.hexdigest()
