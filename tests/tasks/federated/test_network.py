"""The same app over the network: SuperLink and two SuperNodes on 127.0.0.1, each a process."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import run_in_process
from support import federated_app

PROGRAMS = ("flower-superlink", "flower-supernode", "flwr")
HERE = Path(sys.executable).parent

pytestmark = [
    pytest.mark.skipif(
        not all(shutil.which(name, path=str(HERE)) for name in PROGRAMS),
        reason="needs the commands that flwr installs beside Python",
    ),
    pytest.mark.skipif(os.name != "posix", reason="processes are stopped by their group"),
]

APP = """
[project]
name = "netapp"
version = "1.0.0"
description = "an app of the tests"
license = "MIT"
dependencies = []

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["netapp"]

[tool.flwr.app]
publisher = "tests"

[tool.flwr.app.components]
serverapp = "netapp.app:server_app"
clientapp = "netapp.app:client_app"

[tool.flwr.app.config]
num-server-rounds = 2
save-to = ""
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Processes:
    """Programs in sessions of their own, with a log each."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{len(self.running)}-{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(HERE / name), *arguments],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self.running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in reversed(self.running):
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            with suppress(ProcessLookupError):  # what it left behind
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def logs(self) -> str:
        return "\n".join(f"== {path.name}\n{path.read_text()}" for path in sorted(self.folder.glob("*.log")))


@pytest.fixture
def processes(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = dict(os.environ)
    environment |= {
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "PATH": f"{HERE}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(bitldp.__file__).parent.parent),
    }
    found = Processes(tmp_path, environment)
    try:
        yield found
    finally:
        found.stop()


@pytest.mark.slow
def test_the_model_is_the_one_of_the_run_in_process(tmp_path, processes):
    rounds, link = 2, free_port()
    app = tmp_path / "app" / "netapp"
    app.mkdir(parents=True)
    (app.parent / "pyproject.toml").write_text(APP)
    (app / "__init__.py").touch()
    shutil.copy(federated_app.__file__, app / "app.py")
    (tmp_path / "home" / "config.toml").write_text(
        f'[superlink]\ndefault = "loop"\n[superlink.loop]\naddress = "127.0.0.1:{link}"\ninsecure = true\n'
    )
    network, alone = tmp_path / "network.npz", tmp_path / "alone.npz"

    here = ("--host", "127.0.0.1", "--port", str(link))
    offline = "--disable-runtime-dependency-installation"
    superlink = processes.start("flower-superlink", "--insecure", offline, *here)
    deadline = time.monotonic() + 60
    while True:
        assert superlink.poll() is None, processes.logs()
        assert time.monotonic() < deadline, processes.logs()
        with suppress(OSError), socket.create_connection(("127.0.0.1", link), 1):
            break
        time.sleep(0.1)
    for client in range(2):
        where = ("--superlink", f"127.0.0.1:{link}", "--host", "127.0.0.1", "--port", str(free_port()))
        mine = f"partition-id={client} num-partitions=2 seed=7"
        processes.start("flower-supernode", "--insecure", *where, "--node-config", mine)
    config = f"num-server-rounds={rounds} save-to='{network}'"
    processes.start("flwr", "run", str(app.parent), "loop", "--run-config", config)
    deadline = time.monotonic() + 150
    while not network.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.2)
    processes.stop()
    assert network.exists(), processes.logs()

    run_in_process(
        federated_app.server_app,
        federated_app.client_app,
        2,
        run_config={"num-server-rounds": rounds, "save-to": str(alone)},
        node_config={"seed": 7},
    )
    with np.load(network) as theirs, np.load(alone) as ours:
        assert list(theirs) == list(ours) == list(federated_app.initial())
        assert any(np.any(ours[name] != 0.0) for name in ours)
        for name in ours:
            assert theirs[name].dtype == ours[name].dtype
            np.testing.assert_array_equal(theirs[name], ours[name])
    deadline = time.monotonic() + 20
    while any(_alive(process.pid) for process in processes.running):  # until init has collected them
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
