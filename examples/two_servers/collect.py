"""Two servers, 300 clients of whom one lies, and the estimate: all on this machine.

pip install "bitldp[prio]"
python examples/two_servers/collect.py
"""

import secrets
import socket
import subprocess
import sys
from pathlib import Path

from server import SURVEY, lines, post


def free_ports() -> list[int]:
    """Return two ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def main() -> None:
    """Run the survey, and print what it says."""
    ports, key = free_ports(), secrets.token_hex(32)
    command = [sys.executable, str(Path(__file__).with_name("server.py"))]
    servers = []
    try:
        for place, (own, other) in enumerate((ports, ports[::-1])):
            options = [str(place), str(own), str(other)]
            server = subprocess.Popen(
                [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            servers.append(server)
            server.stdin.write(key + "\n")
            server.stdin.flush()
            server.stdout.readline()  # it listens
        for client in range(300):
            halves = list(SURVEY.report(["never", "sometimes", "often"][client % 3]))
            if client == 0:  # a liar, whose halves do not fit
                halves[1] = halves[1][:-1] + bytes([halves[1][-1] ^ 1])
            for port, half in zip(ports, halves, strict=True):
                post(port, "report", half)
        totals = post(ports[0], "total", b"")
        first, second = (totals[i : i + size] for i, size in lines(totals))
        print(SURVEY.collect(first, second))
        print(SURVEY.guarantee)
    finally:
        for server in servers:
            server.terminate()
            server.communicate()


if __name__ == "__main__":
    main()
