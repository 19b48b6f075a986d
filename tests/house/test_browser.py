"""The interactive page in a real browser: its curves are those of the mechanisms, and sliders move them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bitldp
import pytest
from support.browsers import headless

pytestmark = pytest.mark.browser

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page with its scripts in a folder, as the site has them: without a server."""
    sys.path.insert(0, str(DOCS / "site"))
    try:
        import explore
    finally:
        sys.path.pop(0)
    folder = tmp_path_factory.mktemp("site")
    (folder / "assets").mkdir()
    (folder / "assets" / "explore-data.js").write_text(explore.script(), encoding="utf-8")
    for name in ("explore.js", "site.css"):
        shutil.copy(DOCS / "assets" / name, folder / "assets")
    head = "<!doctype html><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
    style = "<link rel='stylesheet' href='assets/site.css'>"
    text = (DOCS / "explore.md").read_text(encoding="utf-8")
    (folder / "explore.html").write_text(f"{head}{style}{text}", encoding="utf-8")
    return folder / "explore.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a browser without a window."""
    yield from headless("--window-size=1280,1000")


@pytest.fixture
def opened(browser: Any, page: Path) -> Any:
    """Return the browser at the page, with every slider where it begins."""
    browser.get(page.as_uri())
    return browser


def press(browser: Any, slider: str, key: str, times: int) -> None:
    """Move a slider as a person does, key by key."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.find_element(By.CSS_SELECTOR, f'input[name="{slider}"]').send_keys(getattr(Keys, key) * times)


def number(browser: Any, slider: str) -> float:
    """Return what stands beside a slider."""
    text = browser.execute_script(f"return document.querySelector('output[data-of={slider}]').textContent")
    return float(text.replace(",", ""))


def keys(browser: Any, plot: str) -> dict[str, float]:
    """Return the numbers of a plot's legend, by mechanism."""
    entries = browser.execute_script(
        f"return [...document.querySelectorAll('.key[data-plot={plot}] span')]"
        ".map((each) => each.textContent)"
    )
    return {name: float(value.replace(",", "")) for name, value in (each.rsplit(": ", 1) for each in entries)}


def curves(browser: Any, plot: str) -> dict[str, str]:
    """Return colour and course of each curve."""
    found: dict[str, str] = browser.execute_script(
        f"return Object.fromEntries([...document.querySelectorAll('svg[data-plot={plot}] path')]"
        ".map((each) => [each.style.stroke, each.getAttribute('d')]))"
    )
    return found


def test_the_curves_are_those_of_the_mechanisms(opened: Any) -> None:
    found = keys(opened, "error")
    assert len(curves(opened, "error")) == len(found) == 6
    assert found["Duchi"] == pytest.approx(
        (bitldp.Duchi(epsilon=1.0).mean_variance() / 10_000) ** 0.5, rel=0.02
    )
    assert keys(opened, "claims")["what is claimed"] == 1.0
    assert keys(opened, "claims")["BitRand's f-RR"] > 1.0


def test_epsilon_moves_the_errors(opened: Any) -> None:
    before = keys(opened, "error")
    press(opened, "epsilon", "ARROW_RIGHT", 15)  # steps of 0.02 of a power of ten
    epsilon = 10.0**0.3
    assert number(opened, "epsilon") == pytest.approx(epsilon, rel=0.01)
    after = keys(opened, "error")
    assert all(after[name] < before[name] for name in before)
    true = (bitldp.Piecewise(epsilon=epsilon).mean_variance() / 10_000) ** 0.5
    assert after["Piecewise (PM)"] == pytest.approx(true, rel=0.02)


def test_clients_move_the_errors_by_their_root(opened: Any) -> None:
    before, course = keys(opened, "error"), curves(opened, "error")
    press(opened, "clients", "ARROW_RIGHT", 20)  # steps of 0.1: a hundred times as many
    after = keys(opened, "error")
    assert number(opened, "clients") == 1_000_000
    assert all(after[name] == pytest.approx(before[name] / 10.0, rel=0.02) for name in before)
    assert curves(opened, "error").keys() == course.keys()  # a mechanism keeps its colour


def test_dimension_moves_the_claims_and_the_words(opened: Any) -> None:
    before = keys(opened, "claims")
    press(opened, "dimension", "END", 1)
    assert number(opened, "dimension") == 1000
    after = keys(opened, "claims")
    assert after["what is claimed"] == 1.0
    with pytest.warns(bitldp.PrivacyClaimWarning):
        true = bitldp.FRR(features=1000, bits=10, integer_bits=5, epsilon=1.0, calibration="paper")
    assert after["BitRand's f-RR"] == pytest.approx(true.guarantee.record, rel=0.01)
    assert after["BitRand's f-RR"] > before["BitRand's f-RR"]


def test_bits_move_the_words(opened: Any) -> None:
    press(opened, "bits", "HOME", 1)
    assert number(opened, "bits") == 2
    true = bitldp.FRR(features=1, bits=2, integer_bits=0, epsilon=1.0).mean_variance()
    assert keys(opened, "error")["f-RR, 2 bits"] == pytest.approx((true / 10_000) ** 0.5, rel=0.02)


def test_a_phone_shows_it_whole(browser: Any, page: Path) -> None:
    """At 390 points nothing stands beside the page, and words keep their size."""
    screen = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        browser.get(page.as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        shown = browser.execute_script(
            "const svg = document.querySelector('svg[data-plot=error]');"
            "return svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
        )
        assert shown > 0.9
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_worker_begins_in_a_folder(browser: Any, tmp_path: Path) -> None:
    """Search needs one, and browsers let none begin in a page that was opened from a folder."""
    shutil.copy(DOCS / "assets" / "worker.js", tmp_path)
    (tmp_path / "twice.js").write_text("addEventListener('message', (e) => postMessage(2 * e.data));")
    script = "const w = new Worker('twice.js'); w.onmessage = (e) => { document.title = e.data; };"
    body = f"<body><script src='worker.js'></script><script>{script} w.postMessage(21);</script></body>"
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset='utf-8'>{body}")
    browser.get((tmp_path / "page.html").as_uri())
    wait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait
    wait(browser, 10).until(lambda found: found.title == "42")
