"""A port for a program that is started with its number."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

_CHOICES = random.SystemRandom()


def free_port() -> int:
    """Return a free port of 127.0.0.1, below those that systems give away by themselves.

    Nothing holds it until the program does. A port that the system chose may meanwhile be the own end of
    anybody's connection; one of these is only taken by whoever asks for it by number.
    """
    for _ in range(1000):
        port = _CHOICES.randrange(10_000, 32_768)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("no port from 10000 to 32767 is free")
