"""The site's live form in Chromium, from a folder: it makes reports, estimates rightly, fetches nothing.

It needs Chromium with its driver, selenium, and the module that `make wasm` or `make test-wasm` builds.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bitldp.client import client_reports, open_document
from support.browsers import headless

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILT = ROOT / "target" / "wasm-golden" / "wasm32-unknown-unknown" / "client" / "bitldp_client.wasm"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="the site is not beside this package")


@pytest.fixture(scope="module")
def live() -> Any:
    """Return the module that makes the page's data."""
    sys.path.insert(0, str(DOCS / "site"))
    try:
        import live
    finally:
        sys.path.pop(0)
    return live


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a browser without a window."""
    yield from headless("--window-size=1000,1400")


def written(folder: Path, live: Any, module: Path) -> Path:
    """Return the page in a folder as the site has it."""
    for name in ("assets", "guides"):
        (folder / name).mkdir()
    (folder / "assets" / "form-data.js").write_text(live.script(module), encoding="utf-8")
    for name in ("form.js", "site.css"):
        shutil.copy(DOCS / "assets" / name, folder / "assets")
    head = "<!doctype html><meta charset='utf-8'><link rel='stylesheet' href='../assets/site.css'>"
    text = (DOCS / "guides" / "try-form.md").read_text(encoding="utf-8")
    page = folder / "guides" / "try-form.html"
    page.write_text(f"{head}{text}", encoding="utf-8")
    return page


def waited(browser: Any, script: str) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 60).until(lambda page: page.execute_script(script))


def test_a_site_without_the_module_says_why(live: Any, tmp_path: Path) -> None:
    absent = tmp_path / "bitldp.wasm"
    assert live.said(absent).startswith("!!! warning")
    assert "`make wasm` builds the module" in live.said(absent)
    assert '"module"' not in live.script(absent)
    absent.write_bytes(b"\0asm")
    assert "warning" not in live.said(absent)
    assert '"module": "AGFzbQ=="' in live.script(absent)


def test_the_page_has_the_document_of_the_package(live: Any, tmp_path: Path) -> None:
    made = json.loads(live.script(tmp_path / "none").removeprefix("window.BITLDP_FORM = ").rstrip(";\n"))
    assert made["document"] == live.plan().client_document()
    assert open_document(made["document"]).sentence() in live.said(tmp_path / "none")
    transport, minutes = (codec.mechanism for codec in live.plan().codecs)
    assert made["estimates"][0][1] == pytest.approx(transport.estimate_frequencies([1]).value.tolist())
    assert made["estimates"][1][7] == pytest.approx(minutes.estimate_mean([7]).value.tolist())


@pytest.mark.browser
def test_the_form_is_off_without_the_module(browser: Any, live: Any, tmp_path: Path) -> None:
    browser.get(written(tmp_path, live, tmp_path / "bitldp.wasm").as_uri())
    assert "without bitldp.wasm" in waited(
        browser, "return document.querySelector('[data-said]').textContent"
    )
    assert not browser.find_element("css selector", "#private-form form").is_displayed()


@pytest.mark.browser
def test_reports_are_made_in_the_browser(browser: Any, live: Any, tmp_path: Path) -> None:
    """Estimates of 3 shares and a mean over 100,000 people: 6.5 standard errors, alpha 8e-11 each."""
    module = live.MODULE if live.MODULE.is_file() else BUILT
    if not module.is_file():
        pytest.skip("the module is not built; make wasm or make test-wasm builds it")
    browser.get(written(tmp_path, live, module).as_uri())
    assert waited(browser, "return document.getElementById('private-form').dataset.ready") == "yes"
    assert "ε = 2 " in browser.find_element("css selector", "[data-said]").text
    options = browser.find_elements("css selector", "select option")
    assert [each.text for each in options] == ["foot", "bicycle", "car"]
    minutes = browser.find_element("name", "minutes")
    assert (minutes.get_attribute("min"), minutes.get_attribute("max")) == ("0", "120")

    plan, reports = live.plan(), []
    for count in range(1, 7):
        browser.find_element("css selector", "#private-form button").click()
        row = "document.querySelector('#private-form tbody tr')"
        cells = waited(browser, f"return {row} && {row}.cells[0].textContent == '{count}' && {row}.innerText")
        _, hexadecimal, bits = cells.split("\t")
        reports.append(bytes.fromhex(hexadecimal))
        assert int(bits.replace(" ", ""), 2) == int(hexadecimal.replace(" ", ""), 16)
    assert plan.from_clients(reports).num_rows == 6  # the collector's check of length and codes
    assert len({*reports}) > 1  # all six are alike with a chance below 3e-13
    assert client_reports(plan.codecs[0].mechanism, [each[:1] for each in reports]).max() < 3
    promise = browser.find_element("css selector", "[data-promise]").text
    assert "these 2 bytes" in promise
    assert "at most 7.4 times" in promise

    slide = "const range = document.querySelector('[name=people]'); range.value = 5;"
    browser.execute_script(f"{slide} range.dispatchEvent(new Event('input'));")
    shown = waited(
        browser,
        "const shown = JSON.parse(document.getElementById('private-form').dataset.shown);"
        "return shown.people === 100000 && shown",
    )
    assert shown["bytes"] == 125_000
    for each in [*shown["rows"], shown["mean"]]:
        assert 0.0 < each["error"] < 0.01 * (1.0 if "label" in each else 120.0)
        assert abs(each["mean"] - each["truth"]) < 6.5 * each["error"]
    # Nothing but the page's own three files was asked for: no module, no script, no word elsewhere.
    asked = browser.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)")
    names = {name.rpartition("/")[2] for name in asked if not name.startswith("data:")}
    assert names <= {"form-data.js", "form.js", "site.css"}
