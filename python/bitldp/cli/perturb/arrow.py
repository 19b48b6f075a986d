"""Arrow files of the command line: the file format, also called Feather 2, and the stream format."""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from bitldp.cli.perturb.files import CommandError
from bitldp.cli.perturb.rebatch import rebatch

__all__ = ["HELD", "ArrowReader"]

#: Bytes of a record batch that is read as a whole.
HELD = 1 << 25


class ArrowReader:
    """Arrow IPC: the file format (also called Feather 2) and the stream format."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self.total = path.stat().st_size
        with pa.OSFile(str(path)) as source:
            self._stream = source.read(6) != b"ARROW1"
            source.seek(0)
            reader = pa.ipc.open_stream(source) if self._stream else pa.ipc.open_file(source)
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
        except (pa.ArrowException, OSError):
            raise CommandError(f"{self._path}: damaged Arrow data, or not readable") from None

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
        sizes = batch_sizes(self._path)
        for number, size in enumerate(sizes):
            if size <= HELD:
                yield pa.Table.from_batches([reader.get_batch(number)]).select(list(columns))
            else:
                yield from self._mapped(number, columns, rows)
            self._position = self.total * (number + 1) // len(sizes)

    def _mapped(self, number: int, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
        """Yield a record batch that may be larger than memory, some rows at a time.

        A map reads only the pages that are touched, and a new map for every piece lets go of those of the
        piece before. To touch a page that the file has no more would end the process: so a piece is copied as
        soon as the file is seen to have its length still.
        """
        offset, count = 0, rows
        while count == rows:
            self._check_length()
            with pa.memory_map(str(self._path)) as source:
                # Without a choice of fields the batch is a view of the map; with one, Arrow would copy it.
                part = pa.ipc.open_file(source).get_batch(number).select(list(columns)).slice(offset, rows)
                offset, count = offset + part.num_rows, part.num_rows
                self._check_length()
                part = part.take(pa.array(range(count), pa.int64()))
            yield pa.Table.from_batches([part])

    def _check_length(self) -> None:
        if self._path.stat().st_size != self.total:
            raise CommandError(f"{self._path}: was changed while it was read")


def batch_sizes(path: Path) -> list[int]:
    """Return the bytes of each record batch of an Arrow file, from its footer.

    The footer is a flatbuffer, whose fourth field is a vector of blocks: offset, length of the metadata, and
    length of the body, 8 bytes each.
    """
    with path.open("rb") as file:
        file.seek(-10, 2)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-10 - length, 2)
        footer = file.read(length)
    try:
        (root,) = struct.unpack_from("<I", footer)
        (back,) = struct.unpack_from("<i", footer, root)
        (slot,) = struct.unpack_from("<H", footer, root - back + 4 + 2 * 3)
        (there,) = struct.unpack_from("<I", footer, root + slot)
        (count,) = struct.unpack_from("<I", footer, root + slot + there)
        first = root + slot + there + 4
        return [struct.unpack_from("<q", footer, first + 24 * each + 16)[0] for each in range(count)]
    except struct.error:
        raise CommandError(f"{path}: damaged Arrow data, or not readable") from None
