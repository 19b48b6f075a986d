"""Days: one report for each value of a record over all snapshots, and a cap on how many values have one.

What repeated collection costs is a fact about *histories*: the values that a record's columns take, snapshot
by snapshot. A memoized report is a function of key, plan, record id and value. All reports about a history
are therefore as many independent ones as there are different values in it, put down in an order that its
*pattern* says: at which snapshots a column has which of its values, the first, the second, or one of before.
The pattern is public. Between two histories of one pattern, v values of a column cost v times its epsilon.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.base.errors import PlanError
from bitldp.base.files import locked, resolved
from bitldp.privacy import Guarantee, composed
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.store import keep_types, keyed_digests, opened_store
from bitldp.tables.stream import refuse_stream

__all__ = ["GIVEN_MOST", "GIVEN_ONE", "Days", "MemoizedStream"]

#: What the epsilon of one report takes as public, and of all reports under a cap.
GIVEN_ONE = (
    "reports of one value of each column: each further value that a column takes costs its epsilon once "
    "more, and the reports show when it changes"
)
GIVEN_MOST = (
    "all reports of two histories whose columns change, and return to values of before, at the same times: "
    "the reports show when, for which no epsilon is claimed"
)

_BYTES = 16  # of a keyed hash: two of 10^9 are alike once in 10^20 stores
_SOME = 500  # names in a question to the store
_TABLES = (
    "CREATE TABLE IF NOT EXISTS store (name TEXT NOT NULL, snapshots INTEGER NOT NULL)",
    *(
        f"CREATE TABLE IF NOT EXISTS {table} (part INTEGER NOT NULL, id BLOB NOT NULL, known BLOB NOT NULL, "
        "last BLOB NOT NULL, PRIMARY KEY (part, id)) WITHOUT ROWID"
        for table in ("sent", "early")  # early: of a run that has not ended, beside what runs before it sent
    ),
    "CREATE TABLE IF NOT EXISTS run (digest TEXT NOT NULL, name TEXT NOT NULL)",
)


class _Plan(Protocol):
    """The part of `bitldp.tables.TablePlan` that a store depends on."""

    @property
    def types(self) -> Mapping[str, str]: ...

    @property
    def codecs(self) -> Sequence[ColumnCodec]: ...


class Days:
    """Memoization of a release over snapshots, perhaps with a cap that a private store counts for.

    Parameters
    ----------
    most : int, optional
        Values of a record, in the columns of each mechanism, that have a report of their own. For further
        ones the last of these reports is sent again, always. None: all values have one.
    store : str or os.PathLike, optional
        The private file that counts; goes with `most`.

    Raises
    ------
    PlanError, ValueError, TypeError
        For one of the two without the other, and a `most` below 1.
    """

    def __init__(self, most: int | None, store: str | os.PathLike[str] | None) -> None:
        if (most is None) != (store is None):
            raise PlanError("most and store need each other: a private file counts the values of each record")
        self.most = None if most is None else checks.integer("most", most, 1)
        self.path = None if store is None else resolved(store)
        self._open: sqlite3.Connection | None = None
        self._holder: int | None = None  # thread that holds the store
        self._resumable = False  # whether what is sent is kept before the run ends

    @property
    def _held(self) -> sqlite3.Connection | None:
        """The open store, in the thread that holds it."""
        return self._open if self._holder == threading.get_ident() else None

    def guarantee(self, one: Guarantee) -> Guarantee:
        """Return the guarantee over all snapshots, of that of one report about each column."""
        given = GIVEN_ONE if self.most is None else GIVEN_MOST
        given = f"{one.given}; {given}" if one.given else given
        if self.most is None:
            return replace(one, given=given)
        claimed, bit, feature, record, delta = (
            composed(each, self.most) for each in (one.claimed, one.bit, one.feature, one.record, one.delta)
        )
        return Guarantee(claimed, bit, feature, record, min(1.0, delta), one.holds, one.unit, given)

    # -- the store

    @contextmanager
    def held(self, owner: str, run: str = "") -> Iterator[str]:
        """Hold the store: what the block sends is kept when it ends, all of it, or nothing where it raises.

        Everybody else waits. What is kept is on disk when the block ends, before anything that was released
        in it can be handed out; so a run that failed later is made again with the same reports.

        Parameters
        ----------
        owner : str
            Name of the series.
        run : str, optional
            Digest of what the block releases. A block that ended early, after `keep`, is gone on with by one
            of the same digest; for every other it never was.

        Yields
        ------
        str
            Random name of the run: the same where it is gone on with, and no run was kept since.

        Raises
        ------
        PlanError
            For a file that belongs to another release, or to others than its owner, or is no store.
        """
        if self.path is None or self._held is not None:
            yield ""
            return
        with self._opened(owner) as store:
            self._open, self._holder, self._resumable = store, threading.get_ident(), bool(run)
            try:
                yield _begun(store, run)
                store.execute("INSERT OR REPLACE INTO sent SELECT * FROM early")
                store.execute("DELETE FROM early")
                store.execute("UPDATE store SET snapshots = snapshots + 1")
            finally:
                self._open = self._holder = None

    def keep(self) -> None:
        """Keep what a run with a digest has sent so far, for one that goes on with it; it is on disk then."""
        if self._resumable and (store := self._held) is not None:
            store.execute("COMMIT")
            store.execute("BEGIN IMMEDIATE")

    @contextmanager
    def _opened(self, owner: str) -> Iterator[sqlite3.Connection]:
        if self.path is None:
            raise PlanError("store: this release has no store")
        with locked(self.path):
            if os.name == "posix" and self.path.exists() and self.path.stat().st_mode & 0o077:
                raise PlanError(f"{self.path}: others may read it; a store is its owner's alone (chmod 600)")
            with opened_store(self.path, owner, _TABLES) as store:
                if store.execute("SELECT name FROM store").fetchone() is None:
                    store.execute("INSERT INTO store VALUES (?, 0)", (secrets.token_hex(8),))
                yield store

    def state(self, owner: str) -> tuple[str, int]:
        """Return the store's random name, and how many times reports were kept in it."""
        with self._opened(owner) as store:
            name, snapshots = store.execute("SELECT name, snapshots FROM store").fetchone()
            return str(name), int(snapshots)

    def check_types(self, schema: pa.Schema, plan: _Plan, record: str | None) -> None:
        """Keep the types of the first table, where the plan states none; refuse others."""
        if (store := self._held) is not None:
            keep_types(store, schema, plan.types, plan.codecs, record)

    def sent(
        self, part: int, ids: NDArray[Any], x: NDArray[Any], reports: Any, derived: Callable[[str], bytes]
    ) -> Any:
        """Return what is sent: of each row its own report, or beyond the cap the last one that was new.

        What is sent for a record and value is settled when they come up first, and stays: whatever is
        released again, late or in another order, has the reports that it had.

        Parameters
        ----------
        part : int
            Number of the mechanism in the plan.
        ids, x : ndarray
            Of the rows, and what the mechanism takes of them. An id that comes again is a later value.
        reports : ndarray or tuple of ndarray
            A report for each row, drawn for its value.
        derived : callable
            Returns the key of a purpose.
        """
        if self.most is None or not len(ids):
            return reports
        if (store := self._held) is None:
            raise PlanError("store: is not held; release a whole table, or hold it with remembering()")
        number = np.full((len(ids), 1), part, np.uint32)
        names = _blobs(keyed_digests(derived("record"), [number, ids])[:, :_BYTES])
        values = _blobs(keyed_digests(derived("value"), [number, ids, x])[:, :_BYTES])
        arrays = reports if isinstance(reports, tuple) else (reports,)
        rows = np.concatenate([_bytes_of(each) for each in arrays], axis=1)
        before, changed = _before(store, part, names), dict[bytes, tuple[bytes, bytes]]()
        for row, (name, value) in enumerate(zip(names, values, strict=True)):
            known, last = before.get(name, (b"", b""))
            if known.find(value) % _BYTES == 0:  # -1 is no multiple, and nor is a chance match
                continue
            if len(known) < self.most * _BYTES:
                before[name] = changed[name] = known + value, rows[row].tobytes()
            else:
                rows[row] = np.frombuffer(last, np.uint8)
        # In a run that may be gone on with, a record comes up once: nothing of `early` is asked for.
        store.executemany(
            f"INSERT OR REPLACE INTO {'early' if self._resumable else 'sent'} VALUES (?, ?, ?, ?)",
            [(part, name, *kept) for name, kept in sorted(changed.items())],
        )
        ends = np.cumsum([_bytes_of(each).shape[1] for each in arrays])[:-1]
        cut = [np.ascontiguousarray(piece) for piece in np.split(rows, ends, axis=1)]
        made = [piece.view(each.dtype).reshape(each.shape) for piece, each in zip(cut, arrays, strict=True)]
        if not isinstance(reports, tuple):
            return made[0]
        return type(reports)(*made) if hasattr(reports, "_fields") else tuple(made)

    def __repr__(self) -> str:
        """Return the cap and where the store is."""
        return f"Days(most={self.most}, store={None if self.path is None else str(self.path)!r})"

    def __reduce__(self) -> Any:
        """Pickle without a store; one file cannot count in several processes."""
        if self.path is not None:
            raise PlanError(
                "store: counts in one process; an engine's workers cannot share it. Release whole tables, or "
                "micro-batches by release.stream(), where the store is"
            )
        return Days, (None, None)


def _begun(store: sqlite3.Connection, run: str) -> str:
    """Return the name of a run, after all is dropped that another one kept early."""
    found = store.execute("SELECT name FROM run WHERE digest = ?", (run,)).fetchone()
    if found is not None:
        return str(found[0])
    store.execute("DELETE FROM early")
    store.execute("DELETE FROM run")
    name = secrets.token_hex(16)
    store.execute("INSERT INTO run VALUES (?, ?)", (run, name))
    return name


def _before(store: sqlite3.Connection, part: int, names: Sequence[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
    """Return the hashes of the values that have a report, and the last such report, by record."""
    found: dict[bytes, tuple[bytes, bytes]] = {}
    ordered = sorted(names)  # as they are in the file: neighbours share a page
    for start in range(0, len(ordered), _SOME):
        some = ordered[start : start + _SOME]
        marks = ", ".join("?" * len(some))
        asked = f"SELECT id, known, last FROM sent WHERE part = ? AND id IN ({marks})"
        found.update((name, (known, last)) for name, known, last in store.execute(asked, (part, *some)))
    return found


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of each row of an array."""
    return np.ascontiguousarray(array).reshape(len(array), -1).view(np.uint8)


def _blobs(rows: NDArray[np.uint8]) -> list[bytes]:
    """Return rows of bytes as bytes."""
    blobs: list[bytes] = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").reshape(-1).tolist()
    return blobs


class _Release(Protocol):
    """The part of `bitldp.tables.TableRelease` that a stream depends on."""

    def released(self, frame: Any, *, again: bool = False) -> Any: ...


class MemoizedStream:
    """Release of micro-batches by a store that counts; `TableRelease.stream` makes it.

    A record may come late, again, or with another value, also twice in a micro-batch. What is sent for a
    record and value stays, so that a batch that is tried again gives the same rows.
    """

    def __init__(self, release: _Release) -> None:
        self.release = release

    def __call__(self, frame: Any) -> Any:
        """Release a micro-batch, as `TableRelease` does.

        Raises
        ------
        PlanError
            As of a release, and in a task of a streaming query of Spark, where each would have a store.
        """
        refuse_stream(looked=True)
        return self.release.released(frame, again=True)
