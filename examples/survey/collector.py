"""Serves the form, appends the reports that come in, and makes a released table of them.

python collector.py serve [PORT]     the page and its collector, on this machine alone
python collector.py try COUNT        reports of made-up people, as that many browsers would send them
python collector.py table            reports.bin -> reports.parquet, for `bitldp estimate`
"""

from __future__ import annotations

import random
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

import pyarrow.parquet
from bitldp.client import open_document
from bitldp.tables import TablePlan

HERE = Path(__file__).parent
WEB, REPORTS = HERE / "web", HERE / "reports.bin"
FORM = open_document((WEB / "client.json").read_text(encoding="utf-8"))
LENGTH = FORM.report_bytes()
LOCK = Lock()


class Collector(SimpleHTTPRequestHandler):
    """The folder `web`, and POST /report with the bytes of one report."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments, directory=str(WEB))  # type: ignore[arg-type]

    def do_POST(self) -> None:
        """Append a report; one of another length is refused before it is read."""
        if self.path != "/report" or self.headers.get("Content-Length") != str(LENGTH):
            self.send_error(400)
            return
        report = self.rfile.read(LENGTH)
        with LOCK, REPORTS.open("ab") as file:
            file.write(report)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep no addresses and no times."""


def made_up(count: int) -> None:
    """Append reports of people who come on foot (half of them), by bicycle or by car."""
    with REPORTS.open("ab") as file:
        for _ in range(count):
            (way,) = random.choices(["foot", "bicycle", "car"], [5, 3, 2])
            file.write(FORM.randomize(way, random.uniform(10.0, 40.0)))


def table() -> None:
    """Write the reports so far as a table that the plan released."""
    raw = REPORTS.read_bytes()
    reports = [raw[start : start + LENGTH] for start in range(0, len(raw), LENGTH)]
    made = TablePlan.read(HERE / "plan.toml").from_clients(reports)
    pyarrow.parquet.write_table(made, HERE / "reports.parquet")
    print(f"reports.parquet: {made.num_rows} reports")


if __name__ == "__main__":
    if sys.argv[1:] == ["table"]:
        table()
    elif sys.argv[1:2] == ["try"]:
        made_up(int(sys.argv[2]))
    else:
        port = int(sys.argv[2]) if len(sys.argv) > 2 else 8000
        server = ThreadingHTTPServer(("127.0.0.1", port), Collector)
        print(f"http://127.0.0.1:{port}/", flush=True)
        server.serve_forever()
