"""Record batches of an Arrow file that may be larger than memory, read some rows at a time.

A map of the file would read no more than what is touched, but to touch what the file has no more ends the
process (SIGBUS). So the batch gets addresses in memory of its own, into which the bytes of the rows are read:
a file that was cut meanwhile is a short read.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc

__all__ = ["ArrowBlock", "ArrowBlocks", "DamagedError", "blocks", "rows_of"]

_PAGE = mmap.PAGESIZE


class DamagedError(Exception):
    """The file is not as its footer says, or was changed meanwhile."""


class ArrowBlock(NamedTuple):
    """Position of a message in a file: its first byte, and the bytes of its metadata and of its body."""

    offset: int
    metadata: int
    body: int


class ArrowBlocks(NamedTuple):
    """Where the parts of an Arrow file lie."""

    footer: int
    dictionaries: list[ArrowBlock]
    batches: list[ArrowBlock]


class _Table(NamedTuple):
    """A table of a flatbuffer, by its offset."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, struct.unpack_from("<I", data)[0])

    def field(self, number: int) -> int:
        """Return the offset of a field, 0 where there is none."""
        (back,) = struct.unpack_from("<i", self.data, self.at)
        (size,) = struct.unpack_from("<H", self.data, self.at - back)
        slot = 4 + 2 * number
        if slot >= size:
            return 0
        (there,) = struct.unpack_from("<H", self.data, self.at - back + slot)
        return self.at + there if there else 0

    def follow(self, number: int) -> int:
        """Return the offset that a field refers to."""
        start = self.field(number)
        return start + int(struct.unpack_from("<I", self.data, start)[0])

    def blocks(self, number: int) -> list[ArrowBlock]:
        """Return a vector of blocks: offset, length of the metadata, length of the body, 8 bytes each."""
        if not self.field(number):
            return []
        start = self.follow(number)
        (count,) = struct.unpack_from("<I", self.data, start)
        starts = (start + 4 + 24 * i for i in range(count))
        return [ArrowBlock(*struct.unpack_from("<qi4xq", self.data, each)) for each in starts]


def blocks(path: Path) -> ArrowBlocks:
    """Return where the parts of an Arrow file lie, from its footer.

    Raises
    ------
    DamagedError
        If there is no such footer.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(-10, 2)
        length = int.from_bytes(file.read(4), "little")
        if length > size - 10:
            raise DamagedError
        file.seek(-10 - length, 2)
        footer = file.read(length)
    try:
        table = _Table.root(footer)
        parts = ArrowBlocks(size - 10 - length, table.blocks(2), table.blocks(3))
    except struct.error:
        raise DamagedError from None
    for block in (*parts.dictionaries, *parts.batches):
        if min(block) < 0 or sum(block) > parts.footer:
            raise DamagedError
    return parts


class _Memory:
    """Addresses for every byte of a file, and bytes for those that were read."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        # No room is set aside: most of it is never touched.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        self._map = mmap.mmap(-1, size, flags=flags)
        self.buffer = pa.py_buffer(self._map)
        self._view = memoryview(self._map)

    def read(self, start: int, end: int) -> None:
        """Read bytes of the file to their addresses."""
        while start < end:
            count = os.preadv(self._descriptor, [self._view[start:end]], start)
            if count == 0:
                raise DamagedError
            start += count

    def let_go(self, start: int, end: int) -> None:
        """Give whole pages back."""
        if end > start:
            self._map.madvise(mmap.MADV_DONTNEED, start, end - start)


def rows_of(path: Path, number: int, columns: list[str], rows: int) -> Iterator[pa.RecordBatch] | None:
    """Return an iterator over a record batch, `rows` rows at a time; None where it must be read as a whole.

    That is for compressed batches, for columns of other types than numbers, times, texts and categories,
    and where the system has no calls for it (Windows).

    Parameters
    ----------
    path : pathlib.Path
        An Arrow file.
    number : int
        Of the record batch.
    columns : list of str
    rows : int

    Raises
    ------
    DamagedError
        While it is iterated over, too.
    """
    if sys.platform == "win32" or not hasattr(os, "preadv"):
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        memory = _Memory(descriptor, os.fstat(descriptor).st_size)
        batch = _batch(path, memory, number).select(columns) if _is_plain(path, number) else None
        if batch is None or not all(_is_known(field.type) for field in batch.schema):
            os.close(descriptor)
            return None
    except BaseException:
        os.close(descriptor)
        raise
    return _iterated(descriptor, memory, batch, rows)


def _is_plain(path: Path, number: int) -> bool:
    """Return whether the bodies of a batch are as they are in memory: compressed ones are not."""
    block = blocks(path).batches[number]
    with path.open("rb") as file:
        file.seek(block.offset)
        metadata = file.read(block.metadata)
    try:
        message = _Table.root(metadata[8 if metadata[:4] == b"\xff\xff\xff\xff" else 4 :])
        return not _Table(message.data, message.follow(2)).field(3)
    except struct.error:
        raise DamagedError from None


def _batch(path: Path, memory: _Memory, number: int) -> pa.RecordBatch:
    """Return a record batch whose columns have addresses, and no contents yet."""
    parts = blocks(path)
    memory.read(0, 8)
    memory.read(parts.footer, len(memory.buffer))
    for block in parts.dictionaries:
        memory.read(block.offset, sum(block))
    block = parts.batches[number]
    memory.read(block.offset, block.offset + block.metadata)
    return pa.ipc.open_file(memory.buffer).get_batch(number)


def _is_known(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return _is_text(kind) or pa.types.is_primitive(kind) or pa.types.is_fixed_size_binary(kind)


def _is_text(kind: Any) -> bool:
    tests = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def _iterated(descriptor: int, memory: _Memory, batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    try:
        for start in range(0, batch.num_rows, rows):
            stop = min(start + rows, batch.num_rows)
            read = [span for column in batch.columns for span in _read(memory, column, start, stop)]
            part = batch.slice(start, stop - start)
            part.validate(full=True)  # offsets that lie would be followed
            yield part.take(pa.array(range(stop - start), pa.int64()))  # a copy
            for begin, first, end in read:
                # The page that a buffer begins in may be another's, too; the last one is read on.
                page = max(-(-begin // _PAGE), first // _PAGE)
                memory.let_go(page * _PAGE, end // _PAGE * _PAGE)
    finally:
        os.close(descriptor)


def _read(memory: _Memory, column: Any, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Read what some rows of a column are; yield where their buffers begin, and what was read of each."""
    base = memory.buffer.address
    kind = column.type.index_type if pa.types.is_dictionary(column.type) else column.type
    marks, numbers, *texts = column.buffers()

    def part(buffer: Any, first: int, end: int) -> tuple[int, int, int]:
        begin = buffer.address - base
        if not 0 <= first <= end <= buffer.size:
            raise DamagedError
        memory.read(begin + first, begin + end)
        return begin, begin + first, begin + end

    if marks is not None:
        yield part(marks, start // 8, -(-stop // 8))
    if not _is_text(kind):
        yield part(numbers, start * kind.bit_width // 8, -(-stop * kind.bit_width // 8))
        return
    width = 8 if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) else 4
    yield part(numbers, start * width, (stop + 1) * width)
    offsets = np.frombuffer(numbers, f"<i{width}", stop + 1)
    if texts and texts[0] is not None:
        yield part(texts[0], int(offsets[start]), int(offsets[stop]))
