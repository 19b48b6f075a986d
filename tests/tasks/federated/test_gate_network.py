"""The gate over TLS: three nodes play an app that tries every way out, two of them behind a gate."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.cli.gate import policy_of
from bitldp.federated import BUDGET_SENTENCE, SUM_SENTENCE
from bitldp.federated.gate import ConfinementError, confined
from bitldp.federated.gate.confine import missing
from support import evil_app
from support.network import (
    Processes,
    assert_all_gone,
    begin_network,
    certificates,
    environment,
    needs_programs,
    order_run,
)
from support.ports import free_port
from support.summed_app import key_pair

needs_root = pytest.mark.skipif(bool(missing()), reason=f"to confine an app takes {missing()}")
pytestmark = [*needs_programs, needs_root, pytest.mark.slow]

EPSILON = 2.0
POLICY = """
[update]
mechanism = "duchi"
epsilon = {epsilon}
clip = 1.0

[sum]
epsilon = 14
delta = 1e-5
floor = 2
categories = 4
keys = ["{folder}/node-0.key.pub", "{folder}/node-1.key.pub", "{folder}/node-2.key.pub"]
key = "{folder}/node-{client}.key"
value = "arrays"

[ledger]
file = "{ledger}"
budget = {budget}
sums = 14
sums_delta = 1e-5

[replies]
every = 5
deadline = 90
short = 0.5
"""

# An interpreter in a folder of root's alone is shown to the app's user, and nothing else of that folder.
SHOWN = """
set -e
aside=$(mktemp -d)
n=0
for each in $NEEDED; do n=$((n+1)); mkdir $aside/$n; mount --bind "$each" $aside/$n; done
for each in $CLOSED; do mount -t tmpfs -o mode=755 tmpfs "$each"; done
n=0
for each in $NEEDED; do n=$((n+1)); mkdir -p "$each"; mount --bind $aside/$n "$each"; done
exec "$@"
"""


def shown() -> tuple[dict[str, str], list[str]]:
    """Return what makes a program's files readable by any user: an environment, and words before it."""
    needed = {
        Path(each).resolve() for each in (sys.base_prefix, sys.prefix, Path(bitldp.__file__).parents[1])
    }
    closed = {
        top
        for path in needed
        for top in (*path.parents, path)
        if not top.stat().st_mode & 0o001 and top.stat().st_mode & 0o700
    }
    closed = {each for each in closed if not closed & set(each.parents)}
    within = [path for path in needed if closed & {*path.parents, path}]
    lists = {"NEEDED": " ".join(map(str, within)), "CLOSED": " ".join(map(str, closed))}
    return lists, [str(shutil.which("unshare")), "--mount", "sh", "-c", SHOWN, "sh"]


@pytest.fixture
def open_folder():
    """Yield a folder that any user may pass through."""
    path = Path(mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def home_of(path: Path) -> Path:
    path.mkdir()
    os.chown(path, 65534, 65534)
    return path


@pytest.fixture
def collector():
    """Yield a port, and the list of what anybody sends to it by TCP, UDP or an abstract Unix socket."""
    port, found, stop = free_port(), [], threading.Event()
    ways = [socket.create_server(("127.0.0.1", port)), socket.socket(socket.AF_UNIX)]
    ways[1].bind(f"\0evil-{port}")
    ways[1].listen()
    letters = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    letters.bind(("127.0.0.1", port))

    def collect(way: socket.socket) -> None:
        way.settimeout(0.2)
        while not stop.is_set():
            with suppress(TimeoutError):
                if way is letters:
                    found.append(way.recv(1000))
                    continue
                one, _ = way.accept()
                with one:
                    one.settimeout(2.0)
                    found.append(one.recv(1000))

    threads = [threading.Thread(target=collect, args=(way,)) for way in (*ways, letters)]
    for thread in threads:
        thread.start()
    yield port, found
    stop.set()
    for thread in threads:
        thread.join()
    for way in (*ways, letters):
        way.close()


def test_a_confined_program_reaches_one_port_and_no_file_of_others(open_folder, collector) -> None:
    port, found = collector
    guarded = open_folder / "ledger.json"
    guarded.touch(mode=0o600)
    script = (
        f"(echo out > /dev/tcp/127.0.0.1/{port}) 2>/dev/null; (echo out > /dev/udp/127.0.0.1/{port});"
        f"cat {guarded} && touch read; echo x >> {guarded} && touch written; ls -A /run > run; id -u > user;"
        "cat /proc/net/dev | tail -n +3 | wc -l > networks; echo in > /dev/tcp/127.0.0.1/9094; sleep 60"
    )
    home = home_of(open_folder / "home")
    with confined("nobody", home, ["bash", "-c", script]) as listening:
        begun(listening)
    assert found == []
    assert not guarded.read_bytes()
    left = {path.name: path.read_text().strip() for path in home.iterdir()}
    assert left == {"run": "", "user": "65534", "networks": "1"}


LASTING = (
    "trap '' TERM HUP INT; sleep 600 & setsid sleep 600 & echo in > /dev/tcp/127.0.0.1/9094; sleep 600; exit"
)


def in_home(home: Path) -> list[int]:
    """Return the processes that work in a folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (each / "cwd").readlink() == home:
                found.append(int(each.name))
    return found


def begun(listening: socket.socket) -> None:
    """Wait until the program in the namespaces has come to its port."""
    listening.settimeout(60.0)
    one, _ = listening.accept()
    with one:
        assert one.recv(10) == b"in\n"


def test_all_that_a_confined_program_began_ends_with_the_gate(open_folder) -> None:
    """A program that is another user is not killed with its parent: the first process has to see to it."""
    home = home_of(open_folder / "home")
    with confined("nobody", home, ["bash", "-c", LASTING]) as listening:
        begun(listening)
        assert len(in_home(home)) >= 3
    assert in_home(home) == []


def test_all_that_a_confined_program_began_ends_when_its_gate_is_killed(open_folder) -> None:
    home = home_of(open_folder / "home")
    script = (
        "import sys; from bitldp.federated.gate import confined\n"
        "with confined('nobody', sys.argv[1], ['bash', '-c', sys.argv[2]]) as listening:\n"
        "    listening.settimeout(60.0)\n"
        "    one, _ = listening.accept()\n"
        "    print(one.recv(10).decode().strip(), flush=True)\n"
        "    sys.stdin.read()"
    )
    gate = subprocess.Popen(
        [sys.executable, "-c", script, str(home), LASTING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with gate:
        assert gate.stdout is not None
        assert gate.stdout.readline() == b"in\n"
        assert len(in_home(home)) >= 3
        gate.kill()
    deadline = time.monotonic() + 60
    while in_home(home):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_app_is_not_started_where_it_cannot_be_confined(open_folder) -> None:
    for user, sentence in (("root", "must not run as root"), ("nobody-of-this-name", "there is no user")):
        with pytest.raises(ConfinementError, match=sentence), confined(user, open_folder, ["true"]):
            pass


def own(policy: Path, folder: Path, client: int) -> None:
    """Write a node's policy, its ledger of two rounds and one sum, and the folder of its app."""
    home_of(folder / f"home-{client}")
    ledger = folder / f"ledger-{client}.json"
    settings = {"folder": folder, "client": client, "ledger": ledger}
    policy.write_text(POLICY.format(**settings, epsilon=EPSILON, budget=2 * EPSILON))
    policy_of(policy, begin=True)
    ledger.chmod(0o600)


@contextmanager
def between_stages(folder: Path, renew: Callable[[], None]) -> Iterator[None]:
    """Do something when the server waits within a round; the block runs meanwhile."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            if (folder / "within").exists():
                renew()
                (folder / "go-on").touch()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class Network:
    """A SuperLink and nodes, all but the first one behind a gate; what lasts is in two folders."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder, self.shared = folder, shared
        self.key = shared / "secret.key"
        self.key.write_bytes(os.urandom(32))
        self.key.chmod(0o600)
        for client in range(3):
            key_pair(shared / f"node-{client}.key")
        for client in (1, 2):
            own(folder / f"policy-{client}.toml", shared, client)
        lists, self.first = shown()
        self.tls, self.surroundings = certificates(folder), {**environment(folder), **lists}
        self.surroundings["PYTHONPATH"] += os.pathsep + str(Path(__file__).parents[2])
        self.processes = Processes(folder, self.surroundings)
        self.ports: dict[int, int] = {}
        self.gates: dict[int, subprocess.Popen[bytes]] = {}

    def run(self, clients: tuple[int, ...], **settings) -> dict[str, list]:
        """Start everything, play the app, stop everything; return what the server was sent."""
        self.processes, result = Processes(self.folder, self.surroundings), self.folder / "result.json"
        result.unlink(missing_ok=True)
        try:
            source = self.folder / "source.py"
            mine = {**settings, "nodes": len(clients), "folder": str(self.shared)}
            source.write_text(f"{Path(evil_app.__file__).read_text()}\nSETTINGS.update({mine!r})\n")
            app, link, asked = begin_network(self.processes, source, self.tls)
            for client in clients:
                self.ports[client] = free_port()
                where = ("--superlink", f"127.0.0.1:{link}", "--host", "127.0.0.1")
                more = ("--port", str(self.ports[client]), "--node-config", f"partition-id={client}")
                alone = ("--isolation", "process", "--superexec-auth-secret-file", str(self.key))
                gated = alone if client else ()
                self.processes.start("flower-supernode", *asked, *where, *more, *gated)
                if client:
                    self.open(client)
            with between_stages(self.shared, self.renew):
                order_run(self.processes, app, result, f"save-to='{result}'")
        finally:
            self.processes.stop()
        assert result.exists(), self.processes.logs()
        assert_all_gone(self.processes)
        return json.loads(result.read_text())

    def open(self, client: int) -> None:
        """Start a node's gate, which starts the node's app."""
        words = [sys.executable, "-m", "bitldp", "gate", str(self.folder / f"policy-{client}.toml")]
        words += ["--supernode", f"127.0.0.1:{self.ports[client]}", "--secret", str(self.key)]
        words += ["--app-user", "nobody", "--app-home", str(self.shared / f"home-{client}")]
        self.gates[client] = self.processes.start(*self.first, *words)

    def renew(self) -> None:
        """Stop a gate, and start another one."""
        self.gates[1].terminate()
        self.gates[1].wait(30)
        self.open(1)


def test_nothing_passes_the_gates_of_two_nodes_and_all_leaves_the_third(tmp_path, open_folder, collector):
    """Updates, a sum in which a gate is started anew, then all is: each ledger has what it allowed."""
    port, collected = collector
    network = Network(tmp_path, open_folder)
    first = network.run((0, 1, 2), turns=[1, 2], sum=True, collector=port)
    second = network.run((1,), turns=[3], collector=port)

    seen, logs = [*first["seen"], *second["seen"]], network.processes.logs()
    wire = b"\n".join(bytes.fromhex(reply["data"]) for reply in seen)
    for client in range(3):
        data, said = evil_app.secret(client).tobytes(), evil_app.text(client).encode()
        plain = client == 0
        assert (data in wire) is plain, logs
        assert (said in wire) is plain
        assert (data.hex().encode() in wire) is plain
        assert any(f"client {client}: ".encode() in each for each in collected) is plain
    for client in (1, 2):
        tries = [json.loads(path.read_text()) for path in open_folder.glob(f"home-{client}/flwr/tried-*")]
        assert len(tries) == 3, logs  # it ran, and nothing led out
        assert all(each == {"led": [], "user": 65534} for each in tries)
        (given,) = open_folder.glob(f"home-{client}/flwr/seen.json")
        assert json.loads(given.read_text()) == ["arrays", "config"]  # and nothing of the protocol
        ledger = bitldp.Ledger.load(open_folder / f"ledger-{client}.json")
        np.testing.assert_allclose(ledger.spent, 2 * EPSILON)
        assert 13.0 < ledger.sums.spent <= 14.0
        assert not (open_folder / f"ledger-{client}.json.secrets").exists()
    assert [each["turn"] for each in seen if each["reason"] == BUDGET_SENTENCE] == [3]
    sums = [each for each in seen if each["turn"] == evil_app.SUM_TURN]
    assert [each["kinds"] for each in sums] == [["bitldp.sum"]] * 10 + [[]] * 2, logs
    assert {each["reason"] for each in sums[10:]} == {SUM_SENTENCE}  # to a second asking
    # One category each, and noise that moves a count with a chance of 2e-3. Those of the apps are there: both
    # counts are off by one, or one by two, with a chance below 1e-5.
    assert np.abs(np.subtract(first["sum"], [1.0, 1.0, 1.0, 0.0])).sum() <= 3.0
    assert first["sum"][1] + first["sum"][2] >= 1.0
