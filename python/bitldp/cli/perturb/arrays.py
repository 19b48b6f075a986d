"""NumPy files of the command line: arrays larger than memory, read and written a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bitldp.cli.perturb.files import CommandError

__all__ = ["ArrayReader", "write_header"]

_LARGEST_EMPTY = 1 << 16  # bytes that the header of an empty array may have


class ArrayReader:
    """A ``.npy`` file: a 2-D array of floats, or a 1-D array of integers or floats.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    total : int
        Rows: the end of the progress bar.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        array = self._map()
        self.shape: tuple[int, ...] = array.shape
        self.dtype: np.dtype[Any] = array.dtype
        if (array.ndim, array.dtype.kind) == (2, "f") or (array.ndim == 1 and array.dtype.kind in "fiub"):
            self.total = array.shape[0]
            return
        raise CommandError(
            f"{path}: holds {array.dtype} in {array.ndim} dimensions; what can be perturbed is a 2-D array "
            "of floats (records by features) or a 1-D array of numbers"
        )

    def _map(self) -> NDArray[Any]:
        try:
            array: NDArray[Any] = np.load(self._path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError):
            # NumPy cannot map an empty array, but it can load it: there is nothing in it.
            try:
                if self._path.stat().st_size > _LARGEST_EMPTY:
                    raise ValueError
                array = np.load(self._path, allow_pickle=False)
            except (ValueError, EOFError):
                raise CommandError(f"{self._path}: not a complete .npy file of plain numbers") from None
            if array.size:
                raise CommandError(f"{self._path}: cannot be mapped into memory") from None
        if not isinstance(array, np.ndarray):
            raise CommandError(f"{self._path}: not a .npy file")
        return array

    def position(self) -> int:
        """Return how many rows have been read."""
        return self._position

    def batches(self, rows: int) -> Iterator[NDArray[Any]]:
        """Yield `rows` rows at a time; only the last batch may be shorter."""
        for start in range(0, self.shape[0], rows):
            # A map of its own for every batch, so that the pages of the batch before are let go of.
            # `ascontiguousarray` copies only what is stored column by column or in the other byte order.
            batch = self._map()[start : start + rows]
            self._position = start + len(batch)
            yield np.ascontiguousarray(batch, batch.dtype.newbyteorder("="))


def write_header(file: BinaryIO, shape: tuple[int, ...], dtype: DTypeLike) -> None:
    """Write the header of a C-ordered ``.npy`` array; the rows follow with ``file.write``."""
    descriptor = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": descriptor, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
