"""WebAssembly in Chromium against Python: the same bytes under the same keys.

It needs Chromium with its driver, selenium, and the module that `make test-wasm` builds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.browsers import headless
from support.clients import replays

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
SAME = Path(__file__).parent / "js" / "same.mjs"
MODULE = ROOT / "target" / "wasm-golden" / "wasm32-unknown-unknown" / "client" / "bitldp_client.wasm"

# A module has to be loaded as one, and a page of a folder may not: so it comes from a server.
REPLAY = """
const done = arguments[0];
(async () => {
  const { replay } = await import("/same.mjs");
  globalThis.compiled ??= await WebAssembly.compile(await (await fetch("/bitldp.wasm")).arrayBuffer());
  return replay(globalThis.compiled, await (await fetch("/case.json")).text());
})().then(done, (error) => done({ reports: 0, wrong: [String(error)] }));
"""


class Quiet(SimpleHTTPRequestHandler):
    """A folder over HTTP, kept by no cache."""

    def end_headers(self) -> None:
        """Send the headers."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Return a folder with the module and its script, and its address."""
    if not MODULE.is_file():
        pytest.skip("the module is not built; make test-wasm builds it")
    (tmp_path / "index.html").write_text("<!doctype html><title>Reports</title>")
    (tmp_path / "same.mjs").write_bytes(SAME.read_bytes())
    (tmp_path / "bitldp.wasm").write_bytes(MODULE.read_bytes())
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def browser() -> Iterator[Any]:
    """Return a browser without a window."""
    yield from headless()


def test_a_page_makes_the_reports_of_python(browser: Any, served: tuple[Path, str]) -> None:
    """A thousand records of every mechanism with a document, a key for each."""
    folder, address = served
    browser.set_script_timeout(120)
    browser.get(address)
    for case in replays(1000):
        (folder / "case.json").write_text(case)
        assert browser.execute_async_script(REPLAY) == {"reports": 1000, "wrong": []}
