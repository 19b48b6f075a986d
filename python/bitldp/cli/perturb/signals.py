"""Signals that end a run in order, and that wait while an output takes its name."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Interrupted", "Signals", "interruptible"]

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupted(KeyboardInterrupt):
    """A signal that ends the run.

    Parameters
    ----------
    number : int
        Of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """Signals that came while a run went on.

    An exception that a handler raises is lost where Python ignores exceptions, as in a destructor, and is a
    panic where the extension module imports something. So a signal is remembered, and the next `check`
    raises. The second one raises at once, for a run that waits for a slow disk.
    """

    def __init__(self) -> None:
        self._came: list[int] = []
        self._held = False

    def handle(self, number: int, frame: object) -> None:
        """Remember a signal; end the run at the second one."""
        self._came.append(number)
        if len(self._came) > 1:
            self.check()

    def check(self) -> None:
        """Raise if a signal came, unless signals are held."""
        if self._came and not self._held:
            raise Interrupted(self._came[0])

    def hold(self) -> None:
        """Let signals wait from now on, to the end of the run: what begins now is not left half done."""
        self.check()
        self._held = True

    def release(self) -> None:
        """Let signals end the run again: what was begun has failed, and was undone."""
        self._held = False


@contextmanager
def interruptible() -> Iterator[Signals]:
    """Let SIGINT, SIGTERM and SIGHUP end a run in order, so that the temporary files go.

    Those that are ignored, as under nohup, stay so.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, signals.handle) for number in heeded}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
