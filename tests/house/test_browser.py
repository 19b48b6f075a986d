"""The interactive page in a real browser: curves are drawn, and a slider moves them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

MOVED = """
<script>
for (const [name, value] of [["epsilon", "0.7"], ["dimension", "2"]]) {
  const input = document.querySelector(`input[name="${name}"]`);
  input.value = value;
  input.dispatchEvent(new Event("input"));
}
</script>
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the page's scripts, as the site has them."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    sys.path.insert(0, str(DOCS / "site"))
    try:
        import explore
    finally:
        sys.path.pop(0)
    place = tmp_path_factory.mktemp("site")
    (place / "assets").mkdir()
    (place / "assets" / "explore-data.js").write_text(explore.script(), encoding="utf-8")
    shutil.copy(DOCS / "assets" / "explore.js", place / "assets")
    return place


def shown(folder: Path, more: str = "") -> str:
    """Return what the browser makes of the page, without a network."""
    page = folder / "explore.html"
    page.write_text(
        f"<meta charset='utf-8'>{(DOCS / 'explore.md').read_text('utf-8')}{more}", encoding="utf-8"
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=2000"]
    run = subprocess.run(
        [str(CHROMIUM), *options, f"--user-data-dir={folder / 'profile'}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return run.stdout


def keys(text: str) -> dict[str, float]:
    """Return the numbers beside the curves, by mechanism."""
    entries = re.findall(r"<span style=\"[^\"]*\">([^<]+): ([\d.,e-]+)</span>", text)
    return {name: float(value.replace(",", "")) for name, value in entries}


def test_the_curves_are_those_of_the_mechanisms(folder: Path) -> None:
    import bitldp

    text = shown(folder)
    assert len(re.findall(r"<path d=\"M[\d., L-]+\"", text)) == 10
    found = keys(text)
    assert found["Duchi"] == pytest.approx((bitldp.Duchi(1.0).mean_variance() / 10_000) ** 0.5, rel=0.02)
    assert found["what is claimed"] == 1.0
    assert found["BitRand's f-RR"] > 1.0


def test_a_slider_moves_them(folder: Path) -> None:
    before, after = keys(shown(folder)), keys(shown(folder, MOVED))
    assert after["what is claimed"] == pytest.approx(10**0.7, rel=0.01)
    assert after["BitRand's f-RR"] > 100.0 * before["what is claimed"]
    assert after["Duchi"] != before["Duchi"]
