"""What the site computes or keeps: figures, sheets of mechanisms, the papers' record, the decision page."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import bitldp
import pytest
from bitldp.mechanism.base import Mechanism
from bitldp.recommend.question import TASKS

pytest.importorskip("matplotlib", reason='needs pip install "bitldp[plot]"')
pytest.importorskip("scipy", reason='needs pip install "bitldp[design]"')
pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')
pytest.importorskip("flwr", reason="Flower needs Python 3.11")

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("bits", "categorical", "numeric", "ordered", "compression", "record", "selection")
MECHANISMS = [
    name
    for name in bitldp.__all__
    if inspect.isclass(getattr(bitldp, name)) and issubclass(getattr(bitldp, name), Mechanism)
]
#: Figures without data that take a second or less.
QUICK = ("bitrand-3", "bitrand-5", "bitrand-9", "brr-4", "mvu-b1", "mvu-b2")


@pytest.fixture(scope="module", autouse=True)
def path() -> Iterator[None]:
    """Let the scripts of the site be imported, as mkdocs does."""
    places = [str(DOCS), str(DOCS / "site")]
    sys.path[:0] = places
    yield
    for place in places:
        sys.path.remove(place)


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    import figures

    return figures


@pytest.fixture(scope="module")
def record() -> ModuleType:
    import record

    return record


@pytest.fixture(scope="module")
def kept(record: ModuleType) -> Any:
    return json.loads(record.RECORD.read_text(encoding="utf-8"))


def sections() -> dict[str, str]:
    """Return what the pages of the families say of each mechanism."""
    found: dict[str, str] = {}
    for page in PAGES:
        parts = re.split(r"^### `(\w+)`$", (DOCS / f"{page}.md").read_text(encoding="utf-8"), flags=re.M)
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            assert name not in found, f"{name} has two sections"
            found[name] = text
    return found


# -- figures


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bitldp.PrivacyClaimWarning")
def test_the_figures_are_what_is_computed(figures: ModuleType) -> None:
    assert figures.main(["--check"]) == 0


def test_a_changed_figure_is_seen(figures: ModuleType) -> None:
    picture = (figures.HERE / "selection.svg").read_text(encoding="utf-8")
    assert figures.alike(picture, picture)
    x = re.search(r'd="M [\d.]+ ([\d.]+)(?=[^>]*var\(--c0\))', picture)
    assert x is not None
    assert not figures.alike(picture, picture[: x.start(1)] + f"{float(x[1]) + 1:.2f}" + picture[x.end(1) :])
    assert not figures.alike(picture, picture.replace("PS", "PT"))


@pytest.mark.slow
def test_the_answers_of_the_guide_are_those_that_were_kept(figures: ModuleType) -> None:
    pytest.importorskip("statsmodels", reason="the guide's data come with it; pip install statsmodels")
    assert figures.asked.main(["--check"]) == 0


def test_every_picture_of_the_pages_is_drawn(figures: ModuleType) -> None:
    shown = {
        name
        for page in DOCS.rglob("*.md")
        for name in re.findall(r"\((?:\.\./)*figures/(\w+)\.svg\)", page.read_text(encoding="utf-8"))
    }
    assert shown == {*figures.FIGURES, *figures.ASKED, "honest", "pool"}


# -- mechanisms


def test_every_mechanism_has_a_section() -> None:
    assert sorted(sections()) == sorted(MECHANISMS)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_section_says_law_source_epsilon_and_use(name: str) -> None:
    text = sections()[name]
    for part in ("Law", "Source", "Exact ε", "When to use it"):
        assert re.search(rf"^- \*\*{part}\.\*\* \S.{{4,}}", text, re.MULTILINE), part


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bitldp.PrivacyClaimWarning")
def test_the_sheets_are_what_is_computed(capsys: pytest.CaptureFixture[str]) -> None:
    import sheets

    assert sheets.main(["--check"]) == 0, capsys.readouterr().out
    assert sorted(json.loads(sheets.KEPT.read_text(encoding="utf-8"))) == sorted(MECHANISMS)


@pytest.mark.slow
def test_a_sheet_has_numbers_and_figures() -> None:
    import mechanisms

    page = mechanisms.filled((DOCS / "selection.md").read_text(encoding="utf-8"))
    assert page.count("<svg") == 2 * 3 + 1  # of TwoStage there is no law
    assert "[`PS`](#ps)" in page
    assert "exact 1 a record" in page


# -- papers


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_figure_made_again_is_what_was_kept(name: str, record: ModuleType, kept: Any) -> None:
    from bitldp_papers.figures import figures

    assert record.differences(name, figures()[name], kept) == []


@pytest.mark.slow
def test_another_number_is_seen(record: ModuleType, kept: Any) -> None:
    from bitldp_papers.figures import figures

    other = json.loads(json.dumps(kept))
    other["figures"]["bitrand-3"]["compared"][1]["ours"] *= 1.01
    found = record.differences("bitrand-3", figures()["bitrand-3"], other)
    assert len(found) == 1
    assert found[0].startswith("bitrand-3.compared[1].ours")


@pytest.mark.slow
def test_every_figure_of_the_papers_is_on_its_page(kept: Any) -> None:
    import papers
    from bitldp_papers.figures import figures

    assert sorted(kept["figures"]) == sorted(figures())
    text = "\n".join(papers.pages().values())
    for name, one in kept["figures"].items():
        assert f"{{#{name}}}" in text
        assert f"#{name})" in papers.overview()
        if "reason" in one:  # it takes a set that a user has to bring
            assert "needs FILE" in one["reason"]
            continue
        assert one["verdict"]
        assert one["panels"] or one.get("rows") or name in ("brr-6",)


def test_no_record_of_a_data_set_is_kept(record: ModuleType, kept: Any) -> None:
    """Places where people have been are drawn nowhere; all else is at most some hundred numbers a line."""
    for name in record.OF_RECORDS:
        assert kept["figures"][name]["panels"] == []
    panels = [panel for one in kept["figures"].values() for panel in one.get("panels", ())]
    assert max(len(line["x"]) for panel in panels for line in panel.get("lines", ())) <= 300


# -- choosing


@pytest.mark.slow
def test_the_decision_page_is_what_recommend_answers() -> None:
    import choosing
    import mechanisms

    links = mechanisms.sections()
    text = "\n".join(choosing.table(each.task, links, (2.0,)) for each in choosing.TASKS)
    assert all(f"<!-- site:choosing {each.task} -->" in choosing.sections() for each in choosing.TASKS)
    assert {each.task for each in choosing.TASKS} == set(TASKS)
    best = bitldp.recommend("frequency", epsilon=2.0, categories=1000)
    assert f">{type(best.mechanism).__name__}</a>" in text
    for call in re.findall(r"`bitldp\.recommend\((.*)\)`", text):
        assert eval(f"recommend({call})", {"recommend": bitldp.recommend}).rows


# -- reference


def test_the_reference_has_every_public_name() -> None:
    import reference

    text = "\n".join(reference.pages().values())
    listed = set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    short = {name.rpartition(".")[2] for name in listed}
    assert set(bitldp.__all__) - short <= {"__version__", "recommend"}
    assert "bitldp.recommend.recommend" in listed
    for room in reference.ROOMS:
        assert set(getattr(import_module(f"bitldp.{room}"), "__all__", ())) <= short, room


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_reference_leads_to_what_a_mechanism_inherits(name: str) -> None:
    """Every documented attribute of a mechanism is in its own entry, or named there with where it stands."""
    import reference

    kind = getattr(bitldp, name)
    named = {each for own in reference.inherited(kind).values() for each in own}
    assert {"randomize", "guarantee"} <= named | set(vars(kind))
    for base in reference.inherited(kind):
        assert base in reference.bases() or base.__name__ in bitldp.__all__


def test_a_room_lists_its_names_and_each_has_a_page() -> None:
    import reference

    made = reference.pages()
    assert "- [`GRR`](categorical/GRR.md#bitldp.categorical.GRR): k-ary" in made["reference/categorical.md"]
    assert "::: bitldp.categorical.GRR\n" in made["reference/categorical/GRR.md"]
    assert "::: bitldp.ledger.Ledger.charge\n" in made["reference/ledger/Ledger/charge.md"]  # of a long class
    grr = made["reference/categorical/GRR.md"]
    assert "(../mechanism/Mechanism/fingerprint.md#bitldp.mechanism.base.Mechanism.fingerprint)" in grr
    assert not any(f"[`{name}`]" in grr for name in reference.PLUMBING)
    assert len({address.lower() for address in made}) == len(made)  # also where capitals are not told apart


# -- pages


LONG = """# All

First. See [two](#two), [below](#deep) and [other](other.md#x).

## One {#one}

It begins [here](#two). Then more.

```python
## no heading
```

### Deep

## Two

![a](figures/a.svg) and [up](../up.md).
"""


def test_a_long_page_is_cut_and_its_links_lead_on() -> None:
    pytest.importorskip("markdown", reason='needs pip install "bitldp[docs]"')
    import splitting

    parts = splitting.split(LONG, 2)
    assert [(each.name, each.anchors) for each in parts.sections] == [
        ("one", ["one", "deep"]),
        ("two", ["two"]),
    ]
    places = splitting.moved({"guides/all.md": parts})
    page = splitting.linked(splitting.part(parts.sections[0]), "guides/all.md", "guides/all/one.md", places)
    assert page.startswith("# One\n\nIt begins [here](two.md#two). Then more.")
    assert "\n## no heading\n" in page
    assert page.endswith("\n## Deep\n")
    listed = splitting.linked(
        splitting.index("guides/all.md", parts), "guides/all.md", "guides/all.md", places
    )
    assert "[below](all/one.md#deep) and [other](other.md#x)" in listed
    assert "- [One](all/one.md): It begins here." in listed
    last = splitting.linked(splitting.part(parts.sections[1]), "guides/all.md", "guides/all/two.md", places)
    assert "[up](../../up.md)" in last


def test_a_wide_table_names_its_cells_and_a_page_is_described() -> None:
    pytest.importorskip("mkdocs", reason='needs pip install "bitldp[docs]"')
    import hooks

    head = "<thead><tr><th>what</th><th>why</th></tr></thead>"
    wide = f"<table>{head}<tbody><tr><td>a</td><td>%s</td></tr></tbody></table>"
    word = "incomprehensibilities_in_one_word_of_this_length"
    assert '<td data-label="">' in hooks._labelled(wide % word)  # below the first cell, the title of its card
    third = wide.replace("</tr>", "<th>when</th></tr>", 1).replace("</tr></tbody>", "<td>c</td></tr></tbody>")
    assert '<td data-label="when">' in hooks._labelled(third % word)
    assert "data-label" not in hooks._labelled(wide % "b")
    said = hooks.describing(
        "<h1>T</h1><pre>no</pre><p>A <b>first</b> sentence. And a second one &amp; more.</p>"
    )
    assert said == "A first sentence. And a second one & more."


def test_the_front_page_counts_the_mechanisms() -> None:
    assert f"{len(MECHANISMS)} mechanisms" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_a_page_takes_nothing_from_elsewhere() -> None:
    pytest.importorskip("mkdocs", reason='needs pip install "bitldp[docs]"')
    import hooks

    shim = '<script src="https://unpkg.com/iframe-worker/shim"></script>'
    assert hooks._at_home(shim, "../") == '<script src="../assets/worker.js"></script>'
    assert hooks._at_home('<a href="https://example.org">x</a>', "") == '<a href="https://example.org">x</a>'
    for taken in (
        '<script src="https://example.org/x.js"></script>',
        '<img alt="" src="//example.org/x.png">',
        '<link rel="stylesheet" href="https://example.org/x.css">',
    ):
        with pytest.raises(ValueError, match="takes something from elsewhere"):
            hooks._at_home(taken, "")
