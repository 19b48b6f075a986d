"""The survey in Chromium: what crosses the socket is reports alone, and the ledger outlasts a reload.

It needs Chromium with its driver, selenium, and the module that `make test-wasm` builds.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bitldp.tables import TablePlan
from support.browsers import headless
from support.ports import free_port

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "survey"
WEB = ROOT / "python" / "bitldp" / "client" / "web"
MODULE = ROOT / "target" / "wasm-golden" / "wasm32-unknown-unknown" / "client" / "bitldp_client.wasm"
WAYS, SHARES = ("foot", "bicycle", "car"), (0.5, 0.3, 0.2)


class Wire:
    """A port that hands everything on to another, and keeps what clients send."""

    def __init__(self, target: int) -> None:
        self.sent, self._target = bytearray(), target
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            back = threading.Thread(target=self._copy, args=(server, client, False), daemon=True)
            back.start()
            self._copy(client, server, True)
            back.join()

    def _copy(self, source: socket.socket, goal: socket.socket, kept: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                if kept:
                    self.sent += data
                goal.sendall(data)
            goal.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        """Take no more connections."""
        self._socket.close()


@pytest.fixture
def survey(tmp_path: Path) -> Iterator[tuple[Path, Wire]]:
    """Return the survey's folder and the wire to its collector."""
    if not MODULE.is_file():
        pytest.skip("the module is not built; make test-wasm builds it")
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "survey"))
    web = folder / "web"
    web.mkdir()
    for path in (WEB / "bitldp.js", folder / "index.html", folder / "survey.js"):
        shutil.copy(path, web)
    shutil.copy(MODULE, web / "bitldp.wasm")
    plan = TablePlan.read(folder / "plan.toml")
    (web / "client.json").write_text(
        plan.client_document(spends=("travel survey", 1)) + "\n", encoding="utf-8"
    )
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(folder / "collector.py"), "serve", str(port)]
    collector = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert collector.stdout is not None
    assert collector.stdout.readline().startswith("http://127.0.0.1")
    wire = Wire(port)
    yield folder, wire
    wire.close()
    collector.terminate()
    collector.wait()
    collector.stdout.close()


@pytest.fixture
def browser() -> Iterator[Any]:
    """Return a browser without a window."""
    yield from headless("--disable-background-networking")


def answered(browser: Any, way: str, minutes: int) -> str:
    """Fill the form in, and return what the page says."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.execute_script("document.getElementById('said').textContent = ''")
    form = "document.getElementById('form')"
    browser.execute_script(
        f"{form}.transport.value = arguments[0]; {form}.minutes.value = arguments[1];", way, minutes
    )
    browser.execute_script(f"{form}.requestSubmit()")
    said = "return document.getElementById('said').textContent"
    return str(WebDriverWait(browser, 60, poll_frequency=0.02).until(lambda page: page.execute_script(said)))


def opened(browser: Any, wire: Wire) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"http://127.0.0.1:{wire.port}/")
    WebDriverWait(browser, 60).until(lambda page: page.execute_script("return document.body.dataset.ready"))


FORGET = """
const done = arguments[0], asked = indexedDB.deleteDatabase("travel survey");
asked.onsuccess = asked.onerror = asked.onblocked = () => done();
"""


def test_only_reports_leave_and_a_reload_renews_nothing(browser: Any, survey: tuple[Path, Wire]) -> None:
    """Of n = 40 people's answers, 6.5 standard errors: 4 answers, alpha 8e-11 each by the normal law."""
    filled(browser, survey, 40, 6.5)


@pytest.mark.evidence
def test_a_thousand_people_fill_the_form_in(browser: Any, survey: tuple[Path, Wire]) -> None:
    """1,000 people: each share and the mean within 5 standard errors, and reports of 2 bytes alone cross."""
    filled(browser, survey, 1000, 5.0)


def filled(browser: Any, survey: tuple[Path, Wire], people: int, far: float) -> None:
    """Fill the form in for so many people; compare the socket, the file and the estimates."""
    folder, wire = survey
    opened(browser, wire)
    assert "factor of at most 7.4" in browser.find_element("id", "promise").text
    ways = np.random.default_rng(1).choice(WAYS, people, p=SHARES)
    for index, way in enumerate(ways):
        if index:
            browser.execute_async_script(FORGET)  # the next person
        assert answered(browser, str(way), 5 + index % 50) == "Sent 2 random bytes. Thank you."
    assert "budget is spent" in answered(browser, "car", 10)
    opened(browser, wire)
    assert "budget is spent" in answered(browser, "car", 10)

    bodies = re.findall(
        rb"POST /report HTTP/1.1\r\n.*?Content-Length: (\d+)\r\n.*?\r\n\r\n(.{2})", wire.sent, re.DOTALL
    )
    assert len(bodies) == people
    assert {length for length, _ in bodies} == {b"2"}
    assert (folder / "reports.bin").read_bytes() == b"".join(body for _, body in bodies)
    said = bytes(wire.sent).lower()
    assert not any(word in said for word in (b"bicycle", b"transport", b"minutes", b"foot\r", b"cookie"))
    paths = set(re.findall(rb"(?:GET|POST) (\S+) HTTP", wire.sent))
    allowed = {
        b"/",
        b"/survey.js",
        b"/bitldp.js",
        b"/bitldp.wasm",
        b"/client.json",
        b"/report",
        b"/favicon.ico",
    }
    assert paths <= allowed

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    made = subprocess.run(
        [sys.executable, str(folder / "collector.py"), "table"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert made.stdout == f"reports.parquet: {people} reports\n"
    import pyarrow.parquet

    plan = TablePlan.read(folder / "plan.toml")
    answers = plan.aggregate().update(pyarrow.parquet.read_table(folder / "reports.parquet")).estimate()
    truth: dict[str | None, float] = {way: float(np.mean(ways == way)) for way in WAYS}
    truth[None] = float(np.mean([5 + index % 50 for index in range(people)]))
    rows = answers.to_pylist()
    assert [row["category"] for row in rows] == [*WAYS, None]
    for row in rows:
        assert abs(row["estimate"] - truth[row["category"]]) < far * row["stderr"]
