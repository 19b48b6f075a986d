"""An output as it is written: its digest is made on the way, and what is written goes to the disk."""

from __future__ import annotations

import hashlib
import os
from typing import Any, BinaryIO

__all__ = ["Digested"]

_SPREAD = 1 << 25  # bytes that wait to reach the disk


class Digested:
    """A file that is written from its start to its end, and its SHA-256 on the way.

    What is written goes to the disk meanwhile: who asks for all of it at the end waits for little.
    To close it is nothing: Arrow closes what it writes to, and the file is its owner's.

    Parameters
    ----------
    file : file object
        Binary, with a descriptor.
    """

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._waiting = self._size = 0

    def write(self, data: Any) -> int:
        """Append bytes."""
        with memoryview(data) as view:
            self._digest.update(view)
            self._file.write(view)
            count = view.nbytes
        self._size += count
        self._waiting += count
        if self._waiting >= _SPREAD:
            self._waiting = 0
            self._file.flush()
            os.fsync(self._file.fileno())
        return count

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._size

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._file.flush()

    def writable(self) -> bool:
        """Whether it can be written to."""
        return True

    def readable(self) -> bool:
        """Whether it can be read."""
        return False

    def seekable(self) -> bool:
        """Whether another place can be written to."""
        return False

    def close(self) -> None:
        """Leave it open."""

    def hexdigest(self) -> str:
        """Return the digest of all that was written."""
        return self._digest.hexdigest()
