"""Lock between threads and processes, on a file beside the protected one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        while True:
            try:
                return msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            except OSError:  # tried ten times, once a second
                continue

    def _give(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _give(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


_guard = threading.Lock()
_threads: dict[str, threading.Lock] = {}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file: ``NAME.lock`` beside it, which stays. Wait while another holds it.

    The operating system gives the lock back when the process ends, however it ends.
    """
    place = path.with_name(path.name + ".lock")
    with _guard:
        mine = _threads.setdefault(str(place.absolute()), threading.Lock())
    with mine:
        descriptor = os.open(place, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            _take(descriptor)
            try:
                yield
            finally:
                _give(descriptor)
        finally:
            os.close(descriptor)
