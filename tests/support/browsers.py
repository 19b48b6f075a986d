"""A browser without a window, where one is installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


def headless(*options: str) -> Iterator[Any]:
    """Yield a browser, and end it; skip where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium with its driver on this machine; Debian: apt-get install chromium-driver")
    chosen = webdriver.ChromeOptions()
    chosen.binary_location = CHROMIUM
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", *options):
        chosen.add_argument(option)
    found = webdriver.Chrome(options=chosen, service=webdriver.ChromeService(DRIVER))
    yield found
    found.quit()
