"""Ports of this machine that stay free until a test's program takes them."""

from __future__ import annotations

import os
import random
import socket

_FIRST, _END = 10_000, 32_768  # below those that systems give to connections and to port 0
_WORKERS = 16
_given: set[int] = set()


def free_port() -> int:
    """Return a free port of 127.0.0.1 that this process has not returned before.

    The system gives a port that it named as free to the next one who asks, as long as nobody listens there,
    and to outgoing connections. So this one is of another range, and of those that belong to this worker.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    own = [port for port in range(_FIRST, _END) if port % _WORKERS == worker and port not in _given]
    for port in random.SystemRandom().sample(own, len(own)):
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise OSError("no port is free")
