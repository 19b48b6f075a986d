"""Run this app under ``flwr run`` on this machine, in Flower's simulation engine, and stop all of it again.

Needs `bitldp[fl]` and `flwr[simulation]` (ray) beside this Python. What the app needs is installed already:
Flower is told not to install it once more.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

APP = Path(__file__).resolve().parent
CONFIG = """[superlink]
default = "here"
[superlink.here]
address = "127.0.0.1:{port}"
insecure = true
"""
ACCURACY = re.compile(r"accuracy (\d\.\d+) after \d+ rounds.*")


def main() -> int:
    """Start a SuperLink with simulated nodes, run the app, and print its last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50, help="simulated clients (default 50)")
    parser.add_argument(
        "--rounds", type=int, default=10, help="rounds (default 10, the clients' whole budget)"
    )
    parser.add_argument("--port", type=int, default=39191, help="of the SuperLink")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds (default 900)")
    given = parser.parse_args()
    scripts = Path(sys.executable).parent
    with tempfile.TemporaryDirectory(prefix="digits-app-") as home:
        log = Path(home) / "superlink.log"
        environment = {
            **os.environ,
            "FLWR_HOME": home,
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}",
        }
        (Path(home) / "config.toml").write_text(CONFIG.format(port=given.port))
        superlink = [
            *(str(scripts / "flower-superlink"), "--insecure", "--simulation"),
            *("--disable-runtime-dependency-installation", "--host", "127.0.0.1", "--port", str(given.port)),
        ]
        with log.open("wb") as out:
            link = subprocess.Popen(superlink, env=environment, stdout=out, stderr=out)
        try:
            return watched(given, link, log, environment)
        finally:
            link.terminate()
            link.wait(30)


def watched(
    given: argparse.Namespace, link: subprocess.Popen[bytes], log: Path, environment: dict[str, str]
) -> int:
    """Submit the run, and show its log until the line that says how good the model is."""
    ask = [
        *(str(Path(sys.executable).parent / "flwr"), "run", str(APP), "here", "--stream"),
        *("--federation-config", f"num-supernodes={given.nodes} client-resources-num-cpus=1"),
        *("--run-config", f"num-server-rounds={given.rounds}"),
    ]
    deadline = time.monotonic() + given.timeout
    said = ""
    while link.poll() is None and time.monotonic() < deadline:
        left = max(1.0, deadline - time.monotonic())
        asked = subprocess.run(
            ask,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=left,
        )
        said = asked.stdout
        found = ACCURACY.search(said)
        if found:
            print(f"{given.nodes} nodes: {found[0]}")
            return 0
        if asked.returncode == 0:
            break
        time.sleep(1.0)  # until the SuperLink listens
    print(said, log.read_text(), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
