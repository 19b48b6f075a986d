"""Private files of releases: what was seen of which record, by keyed hashes; kept with the key."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp._core import text_digests
from bitldp.base.errors import PlanError
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.types import refuse_other, types_of

__all__ = ["keep_types", "keyed_digests", "opened_store"]

_OWN = (
    "CREATE TABLE IF NOT EXISTS release (id TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS types (name TEXT PRIMARY KEY, kind TEXT NOT NULL) WITHOUT ROWID",
)


@contextmanager
def opened_store(path: Path, owner: str, tables: Sequence[str]) -> Iterator[sqlite3.Connection]:
    """Hold the private file of a release: what the block writes is there after it, or nothing of it is.

    Parameters
    ----------
    path : pathlib.Path
        The file, which is made where there is none, for its owner alone.
    owner : str
        Name of the release that it belongs to.
    tables : sequence of str
        Statements of SQL that make the tables of this kind of file, where they are not there.

    Raises
    ------
    PlanError
        For a file of another release, and for one that is none.
    """
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    try:
        with closing(sqlite3.connect(path, timeout=60.0, isolation_level=None)) as store:
            store.execute("PRAGMA cache_size = -65536")  # 64 MB: ids are in no order
            store.execute("BEGIN IMMEDIATE")
            try:
                for statement in (*_OWN, *tables):
                    store.execute(statement)
                found = store.execute("SELECT id FROM release").fetchone()
                if found is None:
                    store.execute("INSERT INTO release VALUES (?)", (owner,))
                elif found[0] != owner:
                    raise PlanError(f"{path}: holds the records of another release")
                yield store
                store.execute("COMMIT")
            except BaseException:
                store.execute("ROLLBACK")
                raise
    except sqlite3.Error as error:
        raise PlanError(f"{path}: is not a store of records ({error})") from None


def keep_types(
    store: sqlite3.Connection,
    schema: pa.Schema,
    stated: Mapping[str, str],
    codecs: Sequence[ColumnCodec],
    record: str | None,
) -> None:
    """Keep the types of the first tables, where the plan states none; refuse others.

    Raises
    ------
    PlanError
        For a table of other types: its records would get other reports.
    """
    if stated:
        return
    found = types_of(schema, codecs, record, exact=True)
    before = dict(store.execute("SELECT name, kind FROM types").fetchall())
    refuse_other(before, found, record, "the first batch held")
    shown = [(name, kind) for name, kind in found.items() if kind]
    store.executemany("INSERT OR IGNORE INTO types VALUES (?, ?)", shown)


def keyed_digests(
    key: bytes, arrays: Sequence[NDArray[Any]], threads: int | None = None
) -> NDArray[np.uint8]:
    """Return a digest of each row of some arrays together, which tells nothing of it without the key.

    Parameters
    ----------
    key : bytes
        32 of them. One key serves rows of one length.
    arrays : sequence of ndarray
        Each with the rows on its first axis.
    threads : int, optional

    Returns
    -------
    ndarray of uint8, shape (n, 32)
        SHA-256 of the key and the row, and of the key and that.
    """
    rows = [np.ascontiguousarray(each.reshape(len(each), -1)).view(np.uint8) for each in arrays]
    for _ in range(2):
        keys = np.broadcast_to(np.frombuffer(key, np.uint8), (len(rows[0]), len(key)))
        texts = np.concatenate([keys, *rows], axis=1)
        starts = np.arange(len(texts) + 1, dtype=np.int64) * texts.shape[1]
        rows = [text_digests(starts, texts.reshape(-1), threads=threads)]
    return rows[0]
