"""The built site: what stands on its pages; in a real browser how tall, wide and legible they are.

`make site-check` builds the site and runs this file. Elsewhere a site that `make docs` left is looked at.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.browsers import headless

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("BITLDP_BUILT_SITE", ROOT / "target" / "site"))
PHONE, DESK = 390, 1280
TALLEST = 8_000  # pixels of a page on a phone
#: Pages that are read from top to bottom as one text, and may be as tall as this.
WHOLE = {
    "compression.html": 10_500,
    "guides/days.html": 8_500,
    "guides/flower.html": 10_000,
    "guides/speed.html": 12_000,
    "guides/sums.html": 9_500,
    "notebooks/federated.html": 11_000,
    "papers/headlines-that-are-checked.html": 10_600,
    "reference/recommend/recommend.html": 10_500,
}
#: Lists that nobody reads through: of releases, of a paper's 24 figures, of the 48 statements of a table.
LISTS = {"changelog.html", "papers/bitrand.html", "papers/fedsel/fedsel-table-3.html"}
#: One page of each kind.
KINDS = (
    "index.html",
    "start.html",
    "guides/releasing.html",
    "guides/choosing.html",
    "guides/try-form.html",
    "guides/choosing/mean.html",
    "concepts/threat-model.html",
    "categorical.html",
    "categorical/grr.html",
    "explore.html",
    "papers.html",
    "papers/bitrand.html",
    "papers/bitrand/bitrand-3.html",
    "reference/categorical.html",
    "reference/categorical/GRR.html",
    "reference/tables/ReleasedTable/mean.html",
    "reference/commands/bitldp-explain.html",
    "notebooks/comparing.html",
    "examples/flower.html",
    "changelog.html",
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="no site is built; make site-check does"),
]


@cache
def pages() -> tuple[Path, ...]:
    """Return every page, by its address."""
    found = (path.relative_to(SITE) for path in sorted(SITE.rglob("*.html")))
    return tuple(
        path for path in found if path.parts[0] not in ("rust", "assets") and path.name != "404.html"
    )


@cache
def text(page: Path) -> str:
    return (SITE / page).read_text(encoding="utf-8")


class Content(HTMLParser):
    """Headings, pictures and links of a page's content."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.silent: list[str] = []
        self._links: list[list[str]] = []
        begin = page.index("<article")
        self.feed(page[begin : page.index("</article>", begin)])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if re.fullmatch(r"h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag == "img" and "alt" not in given:
            self.silent.append(f"img {given.get('src')}")
        if tag == "svg" and "plot" in (given.get("class") or "") and not given.get("aria-label"):
            self.silent.append("svg without aria-label")
        if tag == "a" and "href" in given:
            self._links.append([given.get("aria-label") or given.get("title") or "", str(given["href"])])
        elif self._links and (given.get("alt") or given.get("aria-label")):
            self._links[-1][0] += given.get("alt") or given.get("aria-label") or ""

    def handle_data(self, data: str) -> None:
        if self._links:
            self._links[-1][0] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._links:
            words, target = self._links.pop()
            if not words.strip():
                self.silent.append(f"a {target}")


# -- what stands there


def test_there_are_pages_of_every_kind() -> None:
    assert [kind for kind in KINDS if not (SITE / kind).exists()] == []
    assert len(pages()) > 400


def test_every_public_class_and_function_shows_its_signature() -> None:
    """What takes arguments of its own; an error or a warning is raised, and not called by users."""
    import inspect
    import sys

    sys.path.insert(0, str(ROOT / "docs" / "site"))
    try:
        import reference
    finally:
        sys.path.pop(0)
    by_address = {page.as_posix().lower(): page for page in pages()}
    missing = []
    for room in reference.ROOMS:
        for name in reference.names(room):
            value, short = reference.object_of(name), name.rpartition(".")[2]
            made = inspect.getmodule(getattr(value, "__init__", None))
            if inspect.isclass(value) and (
                issubclass(value, BaseException) or made is None or not made.__name__.startswith("bitldp")
            ):
                continue
            if not (inspect.isclass(value) or inspect.isroutine(value)):
                continue
            page = by_address.get(f"reference/{room}/{short}.html".lower())
            if page is None or f"{short}(" not in unescape(re.sub(r"<[^>]+>", "", text(page))):
                missing.append(name)
    assert missing == []


def test_no_page_of_the_reference_leads_to_the_parameters_of_another() -> None:
    reference = [page for page in pages() if page.parts[0] == "reference"]
    found = [str(page) for page in reference if re.search(r"<p>As of <", text(page))]
    assert [page for page in found if "Select" not in page] == []  # of the compiled core


def test_each_page_has_a_description_of_its_own() -> None:
    found = {page: re.search(r'<meta name="description" content="([^"]*)"', text(page)) for page in pages()}
    assert [str(page) for page, each in found.items() if each is None or len(each[1]) < 20] == []
    counted = Counter(each[1] for each in found.values() if each)
    assert [each for each, count in counted.items() if count > 1] == []


def test_headings_do_not_jump_and_everything_has_words() -> None:
    faults = []
    for page in pages():
        if page.parts[0] == "notebooks":
            continue  # the headings of a notebook are its own
        content = Content(text(page))
        steps = zip([0, *content.levels], content.levels, strict=False)
        if content.levels[:1] != [1] or content.levels.count(1) > 2 or any(b > a + 1 for a, b in steps):
            faults.append(f"{page}: {content.levels[:12]}")
        faults += [f"{page}: {each}" for each in content.silent]
    assert faults == []


def test_addresses_elsewhere_are_there_only_when_they_are_known() -> None:
    page = text(Path("start.html"))
    known = re.search(r'^repository = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    assert ('rel="canonical"' in page) == ('rel="edit"' in page) == bool(known)
    assert re.search(r"md-copyright__highlight\">\s*bitldp \d+\.\d+", page)
    assert "pip install bitldp" in unescape(re.sub(r"<[^>]+>", "", text(Path("index.html"))))


def test_the_page_of_an_unknown_address_leads_home() -> None:
    assert "There is no such page. Search for it above" in text(Path("404.html"))


def test_pages_lead_to_the_next_and_the_one_before() -> None:
    for page in ("reference/categorical/LOLOHA.html", "categorical/oue.html", "guides/epsilon.html"):
        assert "md-footer__link--prev" in text(Path(page))
        assert "md-footer__link--next" in text(Path(page))


# -- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return one browser for the file."""
    yield from headless("--window-size=1280,900")


def sized(browser: Any, width: int, scheme: str = "light") -> None:
    """Let the browser be as wide as a device that prefers light or dark."""
    screen = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    liked = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", liked)


#: Height and width of the page, and what in it is scrolled sideways: code may be.
MEASURE = """
const sideways = [...document.querySelectorAll('.md-content *')].filter((each) =>
  each.clientWidth && each.scrollWidth > each.clientWidth + 1
  && /auto|scroll/.test(getComputedStyle(each).overflowX)
  && !each.closest('pre, .highlight, .jp-Cell, .jp-OutputArea'));
const root = document.documentElement;
return [root.scrollHeight, root.scrollWidth, sideways.map((each) => each.tagName + '.' + each.className)];
"""


@pytest.mark.slow
def test_pages_are_short_and_narrow_on_a_phone(browser: Any) -> None:
    sized(browser, PHONE)
    faults = []
    for page in pages():
        browser.get((SITE / page).as_uri())
        height, width, sideways = browser.execute_script(MEASURE)
        most = WHOLE.get(page.as_posix(), TALLEST)
        if height > most and page.as_posix() not in LISTS:
            faults.append(f"{page}: {height:,} pixels")
        if width > PHONE or sideways:
            faults.append(f"{page}: {width} wide, sideways {sideways}")
    assert faults == []


#: Words whose contrast is below what WCAG 2.1 AA asks for, with their colours.
CONTRAST = """
const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const over = (top, below) => { const a = top.length > 3 ? top[3] : 1;
  return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)); };
const behind = (each) => { const found = [];
  for (let e = each; e; e = e.parentElement) found.unshift(getComputedStyle(e).backgroundColor);
  return found.reduce((below, text) => over(parse(text), below), [255, 255, 255]); };
const light = (rgb) => { const [r, g, b] = rgb.map((v) => { v /= 255;
  return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const faults = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const each = walker.currentNode.parentElement;
  const words = walker.currentNode.textContent.trim().slice(0, 20);
  if (!words || !each.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})
      || each.closest('svg, .headerlink, .md-search, .md-top, script, style, .md-skip, .md-source')) continue;
  const style = getComputedStyle(each), below = behind(each), colour = over(parse(style.color), below);
  const [one, other] = [light(colour), light(below)].sort((a, b) => b - a);
  const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
  const ratio = (one + 0.05) / (other + 0.05);
  if (ratio < (large ? 3 : 4.5)) faults.add(
    `${each.tagName}.${each.className} ${style.color} ${ratio.toFixed(2)}: ${words}`);
}
return [...faults].slice(0, 8);
"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_are_legible(browser: Any, scheme: str) -> None:
    sized(browser, DESK, scheme)
    faults = {}
    for kind in KINDS:
        browser.get((SITE / kind).as_uri())
        assert browser.execute_script("return document.body.dataset.mdColorScheme") == (
            "slate" if scheme == "dark" else "default"
        )
        if found := browser.execute_script(CONTRAST):
            faults[kind] = found
    assert faults == {}


#: Words of drawings that stand beside their drawing, where a page or an image does not show them.
CUT = """
const cut = [];
for (const svg of document.querySelectorAll('.md-content svg')) {
  const around = svg.getBoundingClientRect();
  for (const word of svg.querySelectorAll('text')) {
    const box = word.getBoundingClientRect();
    if (box.width && (box.left < around.left - 1 || box.right > around.right + 1)) cut.push(word.textContent);
  }
}
return cut;
"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_no_word_of_a_drawing_is_cut_off(browser: Any, width: int) -> None:
    sized(browser, width)
    faults = {}
    drawn = [page for page in pages() if "<svg" in text(page) and "<text" in text(page)]
    assert drawn
    for page in [*drawn, Path("explore.html"), Path("guides/try-form.html")]:
        browser.get((SITE / page).as_uri())
        if cut := browser.execute_script(CUT):
            faults[page.as_posix()] = cut
    assert faults == {}


#: What has the focus, and whether it, or the button that stands for a hidden choice, is outlined.
OUTLINED = """
const outlined = (each) => { const style = each && getComputedStyle(each);
  return style && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0; };
const each = document.activeElement;
const around = [...each.parentElement.children];
return [each.className, each.type === 'text' /* a caret */ || around.some(outlined)];
"""


def test_who_has_no_mouse_sees_where_they_are(browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    sized(browser, DESK)
    browser.get((SITE / "start.html").as_uri())
    passed = []
    for _ in range(12):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        name, shown = browser.execute_script(OUTLINED)
        passed.append(name)
        assert shown, name
    assert "md-skip" in passed[0]
    assert len(set(passed)) > 3
