"""Confinement of an app: another user, in namespaces of its own, with one port and no other network.

This file is also run by itself, as root and with the standard library alone, as the first process of the
new namespaces. It opens the port there, hands the socket to the gate, and starts the app's program without
rights. It ends when the program or the gate does; the kernel then kills all that is left in the namespaces.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["HIDDEN", "PORT", "ConfinementError", "confined", "missing"]

PORT = 9094
"""Port of the runtime API in the app's network, as Flower's own programs expect it."""

HIDDEN = ("/run",)
"""Folders that the app finds empty: the sockets of services that would resolve names or send for it."""

_PROGRAMS = ("unshare", "setpriv", "mount")
_PASSED = ("LANG", "PATH", "PYTHONPATH", "VIRTUAL_ENV")
_SECONDS = 20.0


class ConfinementError(OSError):
    """Error for an app that could not be confined; it was not started."""


def missing() -> str:
    """Return what an app cannot be confined without, on this machine; empty where nothing is missing."""
    if not sys.platform.startswith("linux"):
        return "namespaces, which Linux alone has"
    if os.geteuid() != 0:
        return "root, to make namespaces and to become another user"
    lost = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"the programs {', '.join(lost)} (of the package util-linux)" if lost else ""


@contextmanager
def confined(
    user: str, home: str | os.PathLike[str], command: Sequence[str], *, hidden: Sequence[str] = HIDDEN
) -> Iterator[socket.socket]:
    """Run an app's program confined while the block runs, and yield the socket that it can reach.

    When the block ends, or the gate's process does, every process of the app is killed.

    Parameters
    ----------
    user : str
        Who the program runs as; not root.
    home : path-like
        A folder of that user, who writes into it.
    command : sequence of str
        Of the program, and its arguments.
    hidden : sequence of str
        Folders that it finds empty.

    Raises
    ------
    ConfinementError
        If this machine cannot confine it.
    """
    lost = missing()
    if lost:
        raise ConfinementError(f"to confine an app takes {lost}")
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise ConfinementError(f"there is no user {user!r}") from None
    if account.pw_uid == 0:
        raise ConfinementError("the app must not run as root")
    ours, theirs = socket.socketpair()
    told = {
        "socket": theirs.fileno(),
        "uid": account.pw_uid,
        "gid": account.pw_gid,
        "hidden": [each for each in hidden if Path(each).is_dir()],
        "home": os.fspath(home),
        "command": list(command),
    }
    environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
    environment |= {"HOME": os.fspath(home), "FLWR_HOME": str(Path(home) / "flwr"), "USER": user}
    environment |= {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    process = subprocess.Popen(
        [
            *("setpriv", "--pdeathsig", "KILL"),  # the app does not outlive the gate
            *(
                "unshare",
                "--net",
                "--ipc",
                "--pid",
                "--mount",
                "--uts",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ),
            *(sys.executable, "-I", __file__, json.dumps(told)),
        ],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,  # no terminal of its owner
    )
    theirs.close()
    try:
        with ours, _received(ours) as listening:
            yield listening
    finally:
        ours.close()  # the first process of the namespaces ends; `unshare` waits until all the others have
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()  # and with it, by --kill-child, the first process
            process.wait()


def _received(channel: socket.socket) -> socket.socket:
    """Return the socket that the other side opened in its network."""
    channel.settimeout(_SECONDS)
    try:
        _, found, _, _ = socket.recv_fds(channel, 1, 1)
    except TimeoutError:
        found = []
    if not found:
        raise ConfinementError("the app's namespaces could not be made; its standard error says why")
    return socket.socket(fileno=found[0])


def _begin(told: dict[str, object]) -> None:
    """Open the port, hand it over, start the app's program, and end when it or the gate does."""
    _raise_loopback()
    for each in told["hidden"]:  # type: ignore[attr-defined]
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=4k,mode=755", "tmpfs", str(each)], check=True)
    channel = socket.socket(fileno=told["socket"])  # type: ignore[arg-type]
    channel.set_inheritable(False)  # the app gets none of it
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", PORT))
        listening.listen(128)
        socket.send_fds(channel, [b"."], [listening.fileno()])
    app = os.fork()
    if app == 0:
        _become(told)
    # Root stays here: who becomes another user is no longer killed with its parent, and may ask not to be.
    threading.Thread(target=_end_with, args=(channel,), daemon=True).start()
    while os.wait()[0] != app:  # what the program began and left
        pass


def _end_with(channel: socket.socket) -> None:
    """End this process when the other end of a channel is closed."""
    channel.recv(1)
    os._exit(0)


def _become(told: dict[str, object]) -> None:
    """Give all rights away, and become the app's program."""
    os.chdir(str(told["home"]))
    os.execvp(
        "setpriv",
        [
            *("setpriv", "--reuid", str(told["uid"]), "--regid", str(told["gid"]), "--clear-groups"),
            *("--no-new-privs", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--"),
            *told["command"],  # type: ignore[misc]
        ],
    )


def _raise_loopback() -> None:
    """Set the one interface of a new network up."""
    get, put, up = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP of <linux/if.h>
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, get, asked))[1]
        fcntl.ioctl(any_socket, put, struct.pack("16sH14x", b"lo", flags | up))


if __name__ == "__main__":
    _begin(json.loads(sys.argv[1]))
