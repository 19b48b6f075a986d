"""Every figure that needs no data from elsewhere and no long learning is made in its short form."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")
pytest.importorskip("scipy", reason='needs pip install "bitldp[design]"')

from bitldp_papers.figures import figures, make
from bitldp_papers.page import write_page

#: Minutes on two cores: all of these together take less than three.
SHORT = 0.2
LIST = [each for each in figures().values() if each.minutes[0] <= SHORT]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


@pytest.mark.parametrize("entry", LIST, ids=[each.name for each in LIST])
def test_it_is_made(entry, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BITLDP_DATA", raising=False)
    found = make(entry, folder, form="quick")
    if found["status"] == "skipped":
        assert "BITLDP_DATA" in found["reason"] or "needs FILE" in found["reason"]
        return
    assert found["status"] == "done", found["reason"]
    assert found["rows"]
    assert found["compared"]
    assert found["findings"]
    names = {path.name for path in (folder / entry.name).iterdir()} - {"steps"}
    assert names == {"figure.json", "figure.csv", "figure.svg", "figure.png"}


def test_the_page_holds_them(folder: Path) -> None:
    page = write_page(folder).read_text(encoding="utf-8")
    for path in folder.glob("*/figure.json"):
        assert f'<article id="{path.parent.name}"' in page


def test_there_are_many() -> None:
    assert len(LIST) >= 20
