"""NumPy files of the command line: arrays larger than memory, some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bitldp.cli.errors import CommandError
from bitldp.cli.perturb.outputs import Digested
from bitldp.cli.perturb.table_files import InputSource
from bitldp.tables.codec import ColumnCodec

__all__ = ["ArrayReader", "perturb_array"]


class ArrayReader:
    """A ``.npy`` file: a 2-D array of floats, or a 1-D array of integers or floats.

    Rows are read, and never mapped: a map of a file that somebody cuts short meanwhile ends the process.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    total : int
        Rows: the end of the progress bar.
    """

    def __init__(self, source: InputSource) -> None:
        self._source, self._path = source, source.path
        self._position = 0
        with self._path.open("rb") as file:
            self.shape, self._by_column, self.dtype = self._header(file)
            self._start = file.tell()
            held = os.fstat(file.fileno()).st_size - self._start
        if min(self.shape, default=0) < 0:
            raise CommandError(f"{source}: its header states a negative length")
        if self.dtype.hasobject or prod(self.shape) * self.dtype.itemsize > held:
            raise CommandError(f"{source}: not a complete .npy file of plain numbers")
        kind = (len(self.shape), self.dtype.kind)
        if kind != (2, "f") and not (kind[0] == 1 and kind[1] in "fiub"):
            raise CommandError(
                f"{source}: holds {self.dtype} in {len(self.shape)} dimensions; needs a 2-D array of "
                f"floats (records by features) or a 1-D array of numbers"
            )
        self.total = self.shape[0]

    def _header(self, file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        """Return shape, whether the array is stored column by column, and its dtype."""
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        try:
            version = np.lib.format.read_magic(file)
            shape, by_column, dtype = readers[version](file)
        except (ValueError, KeyError, EOFError, SyntaxError, TypeError, OverflowError, RecursionError):
            raise CommandError(f"{self._source}: not a complete .npy file of plain numbers") from None
        return shape, by_column and len(shape) > 1, dtype

    def position(self) -> int:
        """Return how many rows have been read."""
        return self._position

    def batches(self, rows: int) -> Iterator[NDArray[Any]]:
        """Yield `rows` rows at a time, in the machine's byte order; only the last batch may be shorter."""
        with self._path.open("rb") as file:
            for start in range(0, self.shape[0], rows):
                count = min(rows, self.shape[0] - start)
                if self._by_column:
                    columns = [
                        self._numbers(file, column * self.shape[0] + start, count)
                        for column in range(self.shape[1])
                    ]
                    batch = np.stack(columns, axis=1)
                else:
                    width = prod(self.shape[1:])
                    batch = self._numbers(file, start * width, count * width).reshape(count, *self.shape[1:])
                self._position = start + count
                yield batch

    def chosen(self, batch: NDArray[Any], codec: ColumnCodec) -> NDArray[Any]:
        """Return what a codec takes of a batch: the columns that it names, by their numbers."""
        indices = [int(name) for name in codec.columns]
        every = len(self.shape) == 1 or indices == list(range(self.shape[1]))
        return batch if every else np.ascontiguousarray(batch[:, indices])

    def _numbers(self, file: BinaryIO, first: int, count: int) -> NDArray[Any]:
        """Return numbers of the file, by their index in it."""
        file.seek(self._start + first * self.dtype.itemsize)
        held = file.read(count * self.dtype.itemsize)
        if len(held) < count * self.dtype.itemsize:
            raise CommandError(f"{self._source}: was cut off while it was being read")
        return np.frombuffer(held, self.dtype).astype(self.dtype.newbyteorder("="), copy=False)


def _write_header(file: Digested, shape: tuple[int, ...], dtype: DTypeLike) -> None:
    """Write the header of a C-ordered ``.npy`` array; the rows follow with ``file.write``."""
    descriptor = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": descriptor, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def perturb_array(
    reader: ArrayReader,
    codec: ColumnCodec,
    rows: int,
    seed: np.random.SeedSequence | None,
    threads: int | None,
    file: Digested,
    progress: Callable[[int, int], None],
    moved: list[int],
) -> int:
    """Stream an array through the only codec of a plan, `rows` rows at a time; return its rows."""
    flat = len(reader.shape) == 1

    def released(batch: NDArray[Any], first: int) -> NDArray[Any]:
        x = codec.read(reader.chosen(batch, codec), first + 1)
        moved[0] += codec.outside(x)
        reports = codec.randomize(x, rng=seed, first=first, threads=threads)
        made = codec.written_array(reports, batch.dtype)
        return made[:, 0] if flat and made.shape[1:] == (1,) else made

    example = released(np.empty((0, *reader.shape[1:]), reader.dtype.newbyteorder("=")), 0)
    _write_header(file, (reader.shape[0], *example.shape[1:]), example.dtype)
    done = 0
    for batch in reader.batches(rows):
        file.write(np.ascontiguousarray(released(batch, done)).data.cast("B"))
        done += len(batch)
        progress(done, reader.shape[0])
    return done
