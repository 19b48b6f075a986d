"""Ctrl-C while the ``bitldp`` command is still being imported: it ends at once, without a traceback.

The package imports this file before any other, since most of a short command's time goes into imports.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

__all__ = ["leave"]


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


if (
    is_command()
    and threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, leave)
