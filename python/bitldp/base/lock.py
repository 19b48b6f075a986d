"""Lock between threads and processes, on a file beside the protected one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bitldp.base.files import resolved

__all__ = ["locked", "take"]

if sys.platform == "win32":
    import msvcrt

    def take(descriptor: int, *, wait: bool = True) -> bool:
        """Take the lock of an open file, which goes with the process; return whether it could be had."""
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:  # tried ten times, once a second
                if wait:
                    continue
                return False
            return True

    def _give(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def take(descriptor: int, *, wait: bool = True) -> bool:
        """Take the lock of an open file, which goes with the process; return whether it could be had.

        Raises
        ------
        OSError
            With `wait`, where the file system has no locks.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if wait:
                raise
            return False  # another holds it
        return True

    def _give(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class _Turn:
    """Lock between the threads of this process that knows its holder."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holder: int | None = None


_guard = threading.Lock()
_turns: dict[str, _Turn] = {}


def _forget() -> None:
    """Begin anew in a forked child, where no thread is left that would give back what was taken."""
    global _guard  # noqa: PLW0603
    _guard = threading.Lock()
    _turns.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file: ``NAME.lock`` beside it, which stays. Wait while another holds it.

    Links are followed first, so that all names of a file have one lock. The operating system gives the lock
    back when the process ends, however it ends.

    Raises
    ------
    RuntimeError
        If this thread holds it already: it would wait for itself.
    OSError
        If the folder does not exist, or the lock cannot be opened.
    """
    path = resolved(path)
    lock = path.with_name(path.name + ".lock")
    with _guard:
        turn = _turns.setdefault(str(lock), _Turn())
    if turn.holder == threading.get_ident():
        raise RuntimeError(f"{path}: is in use by this thread already")
    with turn.lock:
        turn.holder = threading.get_ident()
        process = os.getpid()
        descriptor = _locked_descriptor(lock)
        try:
            yield
        finally:
            turn.holder = None
            if os.getpid() == process:  # a forked child shares the lock, and must not give back its parent's
                _give(descriptor)
            os.close(descriptor)


def _locked_descriptor(lock: Path) -> int:
    """Open the lock and take it; again, where the file was deleted while this one waited."""
    while True:
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            take(descriptor)
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
