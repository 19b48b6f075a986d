"""Standard output as a pipe, whose reader may stop."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import BinaryIO

__all__ = ["hand_out", "let_go"]

_BLOCK = 1 << 20


def hand_out(file: BinaryIO) -> None:
    """Write a whole file to standard output; who stops reading has enough."""
    file.seek(0)
    try:
        shutil.copyfileobj(file, sys.stdout.buffer, _BLOCK)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        let_go()


def let_go() -> None:
    """Forget what standard output still holds: nobody reads it, and Python would complain at its end."""
    with suppress(OSError, ValueError):  # no file of the system behind it
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
