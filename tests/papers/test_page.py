"""The page of all figures: self-contained, every figure on it, in colours of its own."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="bitldp-papers is not installed")
pytest.importorskip("jax", reason="bitldp-papers is not installed")

from bitldp_papers.figures import Compared, Finding, Formula, Printed, ReadOff
from bitldp_papers.page import write_page
from bitldp_papers.page.buys import bought
from bitldp_papers.page.page import drawing
from bitldp_papers.page.parts import figure_of

SVG = (
    '<?xml version="1.0"?><svg height="288pt" width="648pt" viewBox="0 0 648 288"><metadata>x</metadata>'
    '<defs><path id="m1" style="stroke: #1a1a1b"/></defs><use xlink:href="#m1" style="fill: #dededf"/>'
    '<g clip-path="url(#m1)" style="fill: #ffffff"/></svg>'
)

PRINTED = Printed("0.750", "012345678901")

ATTACKED = {"mechanism": "f-RR", "claimed": 1.0, "exact": 1655.0, "success": 0.99, "ceiling": 1.0}


def document(name: str, **more: object) -> dict[str, object]:
    row = Compared("it", None, 0.25, 0.01, float("inf"), 1.0).document() | {"exact": "infinity"}
    kinds = [Compared("it", each, 0.25).document() for each in (PRINTED, ReadOff(0.26, 0.02), Formula(0.77))]
    found: dict[str, object] = {
        **{"name": name, "paper": name.partition("-")[0], "source": "A <paper>", "title": f"Title of {name}"},
        **{
            "claim": "It is & stays.",
            "form": "quick",
            "status": "done",
            "compared": [*kinds, *[row] * 7],
            "findings": [Finding("A < B", False, "1 against 2").document()],
            "summary": "does not hold",
            "borrowed": 30.0,
            "fewer": {"LDPFL": [1]},
            "honest": "so",
        },
        **{"stand_in": "digits for letters", "verdict": "holds", "seeds": [1, 2], "data": {}, "seconds": 1.0},
    }
    return found | more


@pytest.fixture
def page(tmp_path: Path) -> str:
    for each in (
        document("mvu-2"),
        document("bitrand-10"),
        document("bitrand-3"),
        document("attack-linkage", verdict="found", rows=[ATTACKED]),
        document("honest-updates"),
        document("brr-6", status="skipped", reason="set BITLDP_DATA"),
    ):
        folder = tmp_path / str(each["name"])
        folder.mkdir()
        (folder / "figure.json").write_text(json.dumps(each))
        (folder / "figure.svg").write_text(SVG)
    return write_page(tmp_path).read_text(encoding="utf-8")


def test_every_figure_is_there_in_order(page: str) -> None:
    assert re.findall(r'<article id="([\w-]+)"', page) == [
        "bitrand-3",
        "bitrand-10",
        "mvu-2",
        "brr-6",
        "attack-linkage",
        "honest-updates",
    ]
    assert "skipped: set BITLDP_DATA" in page
    for words in (
        "A &lt;paper&gt;",
        "It is &amp; stays.",
        "A &lt; B",
        '<span class="bad">does not hold</span>',
        "1 s and 30 s of steps that figures share",
        "seeds 1, 2, LDPFL: 1, data none",
        "digits for letters",
        "0.25 ± 0.01",
        "∞",
        "2 more",
    ):
        assert words in page
    assert "What the attacks recover" in page
    assert "linkage, f-RR" in page
    assert "1 in 2,797" in page
    assert "Accuracy at a small exact ε" in page


def test_printed_and_drawn_numbers_are_the_papers_and_formulas_are_not(page: str) -> None:
    first = page[page.index('<article id="mvu-2"') :]
    cells = {
        name: re.findall(rf'data-of="{name}">(.*?)</td>', first)[0:2]
        for name in ("Paper", "Formula", "Agrees")
    }
    assert cells["Paper"] == ["0.750", "0.26 ± 0.02"]
    assert cells["Formula"][0] == "0.77"
    assert cells["Agrees"] == ['<span class="bad">no</span>', "yes"]


def test_a_figure_of_an_earlier_version_is_left_out(tmp_path: Path) -> None:
    old = document("mvu-2")
    del old["form"]
    (tmp_path / "mvu-2").mkdir()
    (tmp_path / "mvu-2" / "figure.json").write_text(json.dumps(old))
    assert "Title of mvu-2" not in write_page(tmp_path).read_text(encoding="utf-8")


def test_it_needs_no_network_and_is_well_formed(page: str) -> None:
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "$" not in page

    class Balanced(HTMLParser):
        open: list[str]

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "path", "use", "g", "br"):
                self.open.append(tag)

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("g",):
                assert self.open.pop() == tag

    parser = Balanced()
    parser.open = []
    parser.feed(page)
    assert parser.open == []


def test_ids_are_unique(page: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_drawing_takes_the_colours_of_the_page() -> None:
    drawn = drawing(SVG, "mvu-2")
    found = drawn["body"]
    assert 'id="mvu-2-0"' in found
    assert 'href="#mvu-2-0"' in found
    assert "url(#mvu-2-0)" in found
    assert "stroke: currentColor" in found
    assert "fill: var(--grid)" in found
    assert "fill: none" in found
    assert (drawn["wide"], drawn["box"], drawn["width"]) == (True, "0 0 648 288", "972")
    assert "metadata" not in found


def test_the_first_table_is_computed() -> None:
    found = {each.setting: each for each in bought()}
    exact = {each.exact for each in found.values()}
    assert any(3310 < each < 3312 for each in exact)
    assert any(34_884 < each < 34_886 for each in exact)
    assert all(each.exact > 0 for each in found.values())


def test_numbers_are_written_for_people() -> None:
    assert figure_of("infinity") == "∞"
    assert figure_of(0.123456, 0.0111) == "0.1235 ± 0.011"
    assert figure_of(".125 / .875") == ".125 / .875"
    assert figure_of(None) == ""
