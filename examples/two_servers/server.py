"""One of the two servers of a sum, over HTTP on this machine.

    python examples/two_servers/server.py PLACE PORT PORT_OF_THE_OTHER

The first line of its standard input is the key that both servers share, in hexadecimal digits. A client posts
its half to /report. Whoever collects posts to /total of the server at place 0: it exchanges its messages with
the other server, and both totals come back. Between machines, put TLS in front of every arrow.
"""

import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bitldp.sums import Histogram
from bitldp_prio import TwoServerSum

# Any kind takes the place of the histogram: Count(), Number((0.0, 10.0)), Vector(100, clip=1.0).
SURVEY = TwoServerSum(Histogram(["never", "sometimes", "often"]), epsilon=1.0, task="example survey")


def post(port: int, path: str, body: bytes) -> bytes:
    """Send a message to a server on this machine, and return its answer."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", body, timeout=60) as answer:
        return answer.read()


def handler(place: int, key: bytes, other: int) -> type[BaseHTTPRequestHandler]:
    """Return what answers requests to the server at a place."""
    server, lock, messages = SURVEY.server(place, key), threading.Lock(), []

    def report(body: bytes) -> bytes:
        messages.append(server.receive(body))
        return b""

    def exchange(body: bytes) -> bytes:
        """Take the messages of the other server, and return the own ones."""
        for i, size in lines(body):
            verify(body[i : i + size])
        return joined(messages)

    def verify(message: bytes) -> None:
        try:
            server.verify(message)
        except ValueError as error:  # a proof that does not hold: the report is dropped, the others count
            print(f"server {place}: {error}", file=sys.stderr)

    def total(body: bytes) -> bytes:
        theirs = post(other, "exchange", joined(messages))
        for i, size in lines(theirs):
            verify(theirs[i : i + size])
        return joined([server.total(), post(other, "close", b"")])

    paths = {"/report": report, "/exchange": exchange, "/total": total, "/close": lambda _: server.total()}

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                with lock:
                    status, answer = 200, paths[self.path](body)
            except (KeyError, ValueError) as error:
                status, answer = 400, str(error).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Log nothing: who reports, and when, is nobody's business."""

    return Answers


def joined(parts: list[bytes]) -> bytes:
    """Return messages as one, each after its length."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def lines(body: bytes) -> list[tuple[int, int]]:
    """Return where the messages of `joined` begin, and their lengths."""
    result, i = [], 0
    while i < len(body):
        size = int.from_bytes(body[i : i + 4], "big")
        result.append((i + 4, size))
        i += 4 + size
    return result


def main() -> None:
    """Serve until the process is ended."""
    place, port, other = map(int, sys.argv[1:])
    key = bytes.fromhex(sys.stdin.readline())
    with ThreadingHTTPServer(("127.0.0.1", port), handler(place, key, other)) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
