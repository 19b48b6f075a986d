"""A look through the input before a ledger is charged: data that are refused cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from bitldp.cli.perturb.arrays import ArrayReader
from bitldp.cli.perturb.inputs import Inputs, located
from bitldp.cli.perturb.table_files import InputSource, TableReader, open_reader
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.ids import SeenIds
from bitldp.tables.plan import TableRelease

__all__ = ["look_through", "look_through_array", "look_through_files"]


class _Look:
    """A check of rows that draws nothing."""

    def __init__(
        self,
        codecs: Sequence[ColumnCodec],
        release: TableRelease | None,
        changed: Callable[[pa.Table], pa.Table],
    ) -> None:
        self._codecs, self._release, self._changed = codecs, release, changed
        self._seen = None if release is None or release.record is None else SeenIds(release.record)

    def table(self, table: pa.Table, first: int) -> None:
        """Refuse rows of a table; `first` come before them."""
        table = self._changed(table)
        if self._release is None:
            for codec in self._codecs:
                codec.read(table, first + 1)
            return
        ids, _ = self._release.looked_at(table, first + 1)
        if self._seen is not None and ids is not None:
            self._seen.add(ids)

    def end(self) -> None:
        """Refuse an id that came up twice."""
        if self._seen is not None:
            self._seen.check()


def look_through(
    source: InputSource,
    columns: Sequence[str],
    rows: int,
    codecs: Sequence[ColumnCodec],
    release: TableRelease | None,
    changed: Callable[[pa.Table], pa.Table],
) -> None:
    """Read a table once, `rows` rows at a time, and refuse what its release would refuse.

    Parameters
    ----------
    source : InputSource
    columns : sequence of str
        Those that the release reads.
    rows : int
        Of a batch.
    codecs : sequence of ColumnCodec
    release : TableRelease or None
        None without a plan.
    changed : callable
        What is done with a batch before it is read.

    Raises
    ------
    DataError, PlanError, CommandError
        As the run itself raises them.
    """
    look = _Look(codecs, release, changed)
    _each(open_reader(source), columns, rows, look.table)
    look.end()


def look_through_files(
    inputs: Inputs,
    columns: Sequence[str],
    rows: int,
    codecs: Sequence[ColumnCodec],
    release: TableRelease | None,
    changed: Callable[[pa.Table], pa.Table],
) -> None:
    """Read several files once, as `look_through` does; errors name a file, and the row in it."""
    look = _Look(codecs, release, changed)
    for file in inputs.files:
        with inputs.opened(file) as source:

            def own(table: pa.Table, first: int, file: Any = file) -> None:
                located(file, lambda: look.table(table, first))

            _each(inputs.open(source, file), columns, rows, own)
    look.end()


def look_through_array(reader: ArrayReader, codec: ColumnCodec, rows: int) -> None:
    """Read an array once, `rows` rows at a time, and refuse what its release would refuse."""
    done = 0
    for batch in reader.batches(rows):
        codec.read(reader.chosen(batch, codec), done + 1)
        done += len(batch)


def _each(
    reader: TableReader, columns: Sequence[str], rows: int, look: Callable[[pa.Table, int], None]
) -> None:
    done = 0
    with closing(reader.batches(columns, rows)) as batches:
        for table in batches:
            look(table, done)
            done += table.num_rows
