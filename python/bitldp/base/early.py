"""Ctrl-C while the ``bitldp`` command is still being imported: it ends at once, without a traceback.

The package imports this file before any other, since most of a short command's time goes into imports.
"""

from __future__ import annotations

# What `signal` stands on: that one imports enum first, which takes milliseconds.
import _signal as signal  # type: ignore[import-not-found]
import os
import sys
from types import FrameType

__all__ = ["is_importing", "leave"]


def is_command() -> bool:
    """Tell whether this process is the command: its script, or ``python -m bitldp``."""
    program = sys.argv[0] if sys.argv else ""
    if program == "-m":  # as long as the package is being imported
        given = sys.orig_argv
        return "-mbitldp" in given or ("-m" in given and given[given.index("-m") + 1 :][:1] == ["bitldp"])
    # Without pathlib, which takes longer to import than all else here.
    return os.path.splitext(os.path.basename(program))[0] == "bitldp"  # noqa: PTH119, PTH122


def leave(number: int, frame: object) -> None:
    """End the process on the spot: nothing was begun yet that would have to be undone.

    An exception would be lost, or become another one, in modules that are half imported.
    """
    os.write(2, b"error: interrupted\n")
    os._exit(128 + number)


def is_importing(frame: FrameType | None) -> bool:
    """Tell whether a module is being imported where a signal came."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    try:  # noqa: SIM105 - contextlib takes longer to import than all else here
        signal.signal(signal.SIGINT, leave)
    except ValueError:  # only the main thread may
        pass
