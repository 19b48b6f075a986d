"""Every number that the source calls printed stands in its paper, after the words that it names.

The papers' texts are not in this repository: BITLDP_PAPERS names a folder of them, as ``PAPER*.txt``
("brr.txt", "mvu-privacy-aware-compression.txt"). Without it the search is tested on a text of its own.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import bitldp_papers
from bitldp_papers.figures.numbers import main, passages, stands

ROOT = Path(bitldp_papers.__file__).parent
PAPERS = ("bitrand", "ldpfl", "mvu", "fedsel", "brr")
NAMES = ("Printed", "printed_row")

TEXT = """In the exp-
eriments on AG, BitRand achieves an im-
provement of 46.03% and -0.157, of 4,311 records and
0.250.25 to 3.53.5, (.5).
Table\t78.73\t82.21 | 83.25
"""


class Said(NamedTuple):
    """A call of `Printed` or `printed_row` in the source."""

    where: str
    paper: str
    numbers: tuple[str, ...]
    passage: str


def said(source: str, where: str, paper: str) -> Iterator[Said]:
    """Yield the printed numbers of a module; their arguments must be literals."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES):
            continue
        values = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
        named = {each.arg for each in node.keywords}
        line = f"{where}:{node.lineno}"
        assert len(values) == 2, f"{line}: text and passage must be literals"
        assert not named & {"text", "texts", "passage"}, f"{line}: give text and passage by position"
        numbers = tuple(values[0].split()) if node.func.id == "printed_row" else (values[0],)
        yield Said(line, paper, numbers, values[1])


def every() -> Iterator[Said]:
    for path in sorted(ROOT.rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if not name.startswith("figures/"):
            yield from said(path.read_text(encoding="utf-8"), name, name.partition("/")[0])


def missing(some: Said, texts: dict[str, str]) -> bool:
    """Tell whether numbers are in no text of their paper; of a page on all papers, in none."""
    own = [text for paper, text in texts.items() if paper == some.paper or some.paper not in PAPERS]
    return not any(stands(text, some.numbers, some.passage) for text in own)


def test_every_printed_number_is_in_its_paper() -> None:
    folder = os.environ.get("BITLDP_PAPERS")
    if not folder:
        pytest.skip("BITLDP_PAPERS names no folder of the papers' texts")
    found = {paper: sorted(Path(folder).glob(f"{paper}*.txt")) for paper in PAPERS}
    texts = {paper: path[0].read_text(encoding="utf-8") for paper, path in found.items() if path}
    assert len(texts) == len(PAPERS), "BITLDP_PAPERS: a text is missing"
    wrong = [f"{each.where}: {' '.join(each.numbers)}" for each in every() if missing(each, texts)]
    assert wrong == []


def test_passages_are_digests() -> None:
    for each in every():
        assert len(each.passage) == 12, each.where
        assert set(each.passage) <= set("0123456789abcdef"), each.where


def digest(*numbers: str) -> str:
    (found,) = passages(TEXT, numbers)
    return found.digest


def test_numbers_are_found_with_their_words() -> None:
    for numbers in (("46.03",), ("-0.157",), ("4,311",), ("0.25",), (".5",), ("78.73", "82.21", "83.25")):
        assert stands(TEXT, numbers, digest(*numbers))
        assert stands(TEXT.replace("\n", " \n").upper(), numbers, digest(*numbers))
    (found,) = passages(TEXT, ("46.03",))
    assert found.line == 3
    # Other line breaks, the same words.
    flat = TEXT.replace("-\n", "").replace("\n", " ")
    assert stands(flat, ("46.03",), digest("46.03"))


def test_a_wrong_number_or_passage_is_seen() -> None:
    right = digest("46.03")
    texts = {"brr": TEXT, "mvu": ""}

    def source(call: str) -> Said:
        (found,) = said(call, "brr/figures.py", "brr")
        return found

    assert not missing(source(f'Printed("46.03", "{right}", 0.01)'), texts)
    assert missing(source(f'Printed("46.04", "{right}")'), texts)  # another number
    assert missing(source(f'Printed("46.03", "{right[:-1]}x")'), texts)  # another passage
    assert missing(source(f'Printed("4,311", "{right}")'), texts)  # a number that stands elsewhere
    assert missing(source(f'Printed("-46.03", "{right}")'), texts)  # no minus there
    assert missing(Said("", "mvu", ("46.03",), right), texts)  # another paper
    row = digest("78.73", "82.21")
    assert not missing(source(f'printed_row("78.73 82.21", "{row}")'), texts)
    assert missing(source(f'printed_row("78.73 83.25", "{row}")'), texts)
    # The words before it count.
    assert not stands(TEXT.replace("achieves", "misses"), ("46.03",), right)
    for call in ("Printed(text, passage)", f'Printed("46.03", passage="{right}")'):
        with pytest.raises(AssertionError):
            source(call)


def test_the_command_prints_the_passages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text(TEXT)
    assert main([str(tmp_path / "text"), "46.03"]) == 0
    assert capsys.readouterr().out.startswith(f"{digest('46.03')}  line 3: ... ")
    assert main([str(tmp_path / "text"), "46.04"]) == 1
    assert main([]) == 2
