"""Arrow files of the command line: the file format, also called Feather 2, and the stream format."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from bitldp.cli.perturb.arrow_parts import DamagedError, blocks, rows_of
from bitldp.cli.perturb.files import CommandError
from bitldp.cli.perturb.rebatch import rebatch
from bitldp.cli.perturb.sources import Source

__all__ = ["HELD", "ArrowReader"]

#: Bytes of a record batch that is read as a whole; a larger one is read some rows at a time, where it can be.
HELD = 1 << 25


class ArrowReader:
    """Arrow IPC: the file format (also called Feather 2) and the stream format."""

    def __init__(self, source: Source) -> None:
        self._source, self._path = source, source.path
        self._position = 0
        self.total = self._path.stat().st_size
        with pa.OSFile(str(self._path)) as file:
            self._stream = file.read(6) != b"ARROW1"
            file.seek(0)
            reader = pa.ipc.open_stream(file) if self._stream else pa.ipc.open_file(file)
            self._schema = reader.schema
            self.names = list(self._schema.names)
            self._batches = 0 if self._stream else reader.num_record_batches

    def position(self) -> int:
        """Return how much of `total` has been read."""
        return self._position

    def batches(self, columns: Sequence[str], rows: int) -> Generator[pa.Table, None, None]:
        """Yield an empty table that shows the types, then the chosen columns in pieces of `rows` rows."""
        yield pa.schema([self._schema.field(name) for name in columns]).empty_table()
        try:
            yield from self._from_stream(columns, rows) if self._stream else self._from_file(columns, rows)
        except (pa.ArrowException, DamagedError, OSError):
            if self._path.stat().st_size != self.total:
                raise CommandError(f"{self._source}: was changed while it was read") from None
            raise CommandError(f"{self._source}: damaged Arrow data, or not readable") from None

    def _options(self, columns: Sequence[str]) -> Any:
        fields = [self.names.index(name) for name in columns]
        return pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)

    def _from_stream(self, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
        with pa.OSFile(str(self._path)) as source:
            reader = pa.ipc.open_stream(source, options=self._options(columns))
            tables = (pa.Table.from_batches([batch]).select(list(columns)) for batch in reader)
            for table in rebatch(tables, rows):
                self._position = source.tell()
                yield table

    def _from_file(self, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
        with pa.OSFile(str(self._path)) as source:
            reader = pa.ipc.open_file(source, options=self._options(columns))
            yield from rebatch(self._pieces(reader, columns, rows), rows)

    def _pieces(self, reader: Any, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
        batches = blocks(self._path).batches
        for number, block in enumerate(batches):
            parts = None if block.body <= HELD else rows_of(self._path, number, list(columns), rows)
            for part in [reader.get_batch(number)] if parts is None else parts:
                yield pa.Table.from_batches([part]).select(list(columns))
            self._position = self.total * (number + 1) // len(batches)
