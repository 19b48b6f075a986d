"""The gate over TLS: three nodes play an app that tries every way out, two of them behind a gate."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import BUDGET_SENTENCE
from bitldp.federated.gate import ConfinementError, confined
from bitldp.federated.gate.confine import missing
from support import evil_app
from support.network import (
    Processes,
    assert_all_gone,
    begin_network,
    certificates,
    environment,
    free_port,
    needs_programs,
    order_run,
)

needs_root = pytest.mark.skipif(bool(missing()), reason=f"to confine an app takes {missing()}")
pytestmark = [*needs_programs, needs_root, pytest.mark.slow]

EPSILON = 2.0
POLICY = """
[update]
mechanism = "duchi"
epsilon = {epsilon}
clip = 1.0

[ledger]
file = "{ledger}"
budget = {budget}

[replies]
every = 20.0
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
        listening.settimeout(20.0)
        one, _ = listening.accept()
        with one:
            assert one.recv(10) == b"in\n"
    assert found == []
    assert not guarded.read_bytes()
    left = {path.name: path.read_text().strip() for path in home.iterdir()}
    assert left == {"run": "", "user": "65534", "networks": "1"}


def test_an_app_is_not_started_where_it_cannot_be_confined(open_folder) -> None:
    for user, sentence in (("root", "must not run as root"), ("nobody-of-this-name", "there is no user")):
        with pytest.raises(ConfinementError, match=sentence), confined(user, open_folder, ["true"]):
            pass


def own(policy: Path, folder: Path, client: int) -> None:
    """Write a node's policy, its ledger of three rounds, and the folder of its app."""
    home_of(folder / f"home-{client}")
    ledger = folder / f"ledger-{client}.json"
    policy.write_text(POLICY.format(ledger=ledger, epsilon=EPSILON, budget=3 * EPSILON))
    with bitldp.Ledger.open(ledger, budget=3 * EPSILON, create=True):
        pass
    ledger.chmod(0o600)


def test_nothing_passes_the_gates_of_two_nodes_and_all_leaves_the_third(tmp_path, open_folder, collector):
    port, collected = collector
    lists, first = shown()
    for client in (1, 2):
        own(tmp_path / f"policy-{client}.toml", open_folder, client)
    key = open_folder / "secret.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    tls, seen = certificates(tmp_path), []
    surroundings = {**environment(tmp_path), **lists}
    surroundings["PYTHONPATH"] += os.pathsep + str(Path(__file__).parents[2])
    for run in (0, 1):  # every process is another one in the second run
        processes, result = Processes(tmp_path, surroundings), tmp_path / f"result-{run}.json"
        try:
            source = tmp_path / "source.py"
            mine = {"first": 1 + 2 * run, "collector": port, "folder": str(open_folder)}
            source.write_text(f"{Path(evil_app.__file__).read_text()}\nSETTINGS.update({mine!r})\n")
            app, link, asked = begin_network(processes, source, tls)
            for client in range(3):
                api = free_port()
                where = ("--superlink", f"127.0.0.1:{link}", "--host", "127.0.0.1", "--port", str(api))
                more = ("--node-config", f"partition-id={client}")
                if client == 0:
                    processes.start("flower-supernode", *asked, *where, *more)
                    continue
                alone = ("--isolation", "process", "--superexec-auth-secret-file", str(key))
                processes.start("flower-supernode", *asked, *where, *more, *alone)
                gate = [sys.executable, "-m", "bitldp", "gate", str(tmp_path / f"policy-{client}.toml")]
                gate += ["--supernode", f"127.0.0.1:{api}", "--secret", str(key), "--app-user", "nobody"]
                processes.start(*first, *gate, "--app-home", str(open_folder / f"home-{client}"))
            order_run(processes, app, result, f"save-to='{result}'")
        finally:
            processes.stop()
        assert result.exists(), processes.logs()
        assert_all_gone(processes)
        seen += json.loads(result.read_text())

    wire = b"\n".join(bytes.fromhex(reply["data"]) for reply in seen)
    for client in range(3):
        data, said = evil_app.secret(client).tobytes(), evil_app.text(client).encode()
        plain = client == 0
        assert (data in wire) is plain, processes.logs()
        assert (said in wire) is plain
        assert (data.hex().encode() in wire) is plain
        assert any(f"client {client}: ".encode() in each for each in collected) is plain
    for client in (1, 2):
        tries = [json.loads(path.read_text()) for path in open_folder.glob(f"home-{client}/flwr/tried-*")]
        assert tries, processes.logs()  # it ran, and nothing led out
        assert all(each == {"led": [], "user": 65534} for each in tries)
        ledger = bitldp.Ledger.load(open_folder / f"ledger-{client}.json")
        np.testing.assert_allclose(ledger.spent, 3 * EPSILON)
    assert [each["reason"] for each in seen].count(BUDGET_SENTENCE) == 2  # of the fourth round
    assert all(each["turn"] == 4 for each in seen if each["reason"] == BUDGET_SENTENCE)
