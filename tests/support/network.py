"""Flower over the network of this machine: SuperLink, SuperNodes and `flwr run`, each a process."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path

import bitldp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.ports import free_port

PROGRAMS = ("flower-superlink", "flower-supernode", "flwr")
HERE = Path(sys.executable).parent

needs_programs = [
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


class Processes:
    """Programs in sessions of their own, with a log each."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{len(self.running)}-{Path(name).name}.log").open("wb") as log:
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


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of programs that keep all their files in a folder."""
    home = folder / "home"
    home.mkdir()
    return {
        **os.environ,
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "PATH": f"{HERE}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(bitldp.__file__).parent.parent),
    }


def run_on_network(
    processes: Processes,
    source: Path,
    result: Path,
    *,
    config: str,
    nodes: Sequence[str],
    tls: tuple[Path, Path, Path] | None = None,
) -> None:
    """Run an app of one file over the network, until it has written its result.

    Parameters
    ----------
    processes : Processes
        In whose folder all is.
    source : pathlib.Path
        File of the app.
    result : pathlib.Path
        File that the app writes.
    config : str
        For ``flwr run --run-config``.
    nodes : sequence of str
        For ``--node-config`` of each SuperNode.
    tls : (Path, Path, Path), optional
        Certificate of the authority, certificate and key of the SuperLink; without them nothing is encrypted.
    """
    app, link, asked = begin_network(processes, source, tls)
    for mine in nodes:
        where = ("--superlink", f"127.0.0.1:{link}", "--host", "127.0.0.1", "--port", str(free_port()))
        processes.start("flower-supernode", *asked, *where, "--node-config", mine)
    order_run(processes, app, result, config)
    processes.stop()
    assert result.exists(), processes.logs()


def begin_network(
    processes: Processes, source: Path, tls: tuple[Path, Path, Path] | None
) -> tuple[Path, int, list[str]]:
    """Start a SuperLink; return the app's folder, the link's port, and how a SuperNode trusts it."""
    folder, link = processes.folder, free_port()
    app = folder / "app" / "netapp"
    app.mkdir(parents=True, exist_ok=True)
    (app.parent / "pyproject.toml").write_text(APP)
    (app / "__init__.py").touch()
    shutil.copy(source, app / "app.py")
    trusted = "insecure = true" if tls is None else f'root-certificates = "{tls[0]}"'
    (folder / "home" / "config.toml").write_text(
        f'[superlink]\ndefault = "loop"\n[superlink.loop]\naddress = "127.0.0.1:{link}"\n{trusted}\n'
    )
    served, asked = ["--insecure"], ["--insecure"]
    if tls is not None:
        names = ("--ssl-ca-certfile", "--ssl-certfile", "--ssl-keyfile")
        served = [each for name, path in zip(names, tls, strict=True) for each in (name, str(path))]
        asked = ["--root-certificates", str(tls[0])]

    here = ("--host", "127.0.0.1", "--port", str(link))
    offline = "--disable-runtime-dependency-installation"
    superlink = processes.start("flower-superlink", *served, offline, *here)
    deadline = time.monotonic() + 60
    while True:
        assert superlink.poll() is None, processes.logs()
        assert time.monotonic() < deadline, processes.logs()
        with suppress(OSError), socket.create_connection(("127.0.0.1", link), 1):
            break
        time.sleep(0.1)
    return app.parent, link, asked


def order_run(processes: Processes, app: Path, result: Path, config: str) -> None:
    """Run an app of a SuperLink that was begun, until it has written its result."""
    order = processes.start("flwr", "run", str(app), "loop", "--run-config", config)
    deadline = time.monotonic() + 150
    while not result.exists() and time.monotonic() < deadline:
        assert order.poll() in (None, 0), processes.logs()
        time.sleep(0.1)
    time.sleep(0.2)


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Write an authority's certificate, and one of 127.0.0.1 with its key; return the three files."""
    now = datetime.now(timezone.utc)
    authority, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    files = tuple(folder / name for name in ("ca.pem", "link.pem", "link.key"))
    for file, name, key in ((files[0], issuer, authority), (files[1], subject, own)):
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=key is authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False
            )
        )
        if key is own:
            names = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
            certificate = certificate.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signed = certificate.sign(authority, hashes.SHA256())
        file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    files[2].write_bytes(
        own.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return files[0], files[1], files[2]


def assert_all_gone(processes: Processes) -> None:
    """Hold that no process of a group is left."""
    deadline = time.monotonic() + 60
    while any(_alive(process.pid) for process in processes.running):  # until init has collected them
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
