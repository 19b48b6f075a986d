"""Every name in the documents exists: classes, modules, arguments, files, commands and their options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.vocabulary import Vocabulary

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')
pytest.importorskip("flwr", reason="the extra fl is not installed")

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

# In a table of equivalents, what stands in the first column is another library's.
FOREIGN_COLUMN = (
    r"(?<=\n\n)\| (pure-ldp|multi-freq-ldpy|OpenDP|diffprivlib|Flower) \|.*\n\|---\|---\|\n"
    r"(\| .*\n)+"
)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(ROOT)


def unknown(text: str, folder: Path, vocabulary: Vocabulary) -> list[str]:
    """Return what a document names and nothing stands for: code in its sentences, commands, links."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(FOREIGN_COLUMN, lambda table: re.sub(r"^\|.*?\|", "|", table[0], flags=re.M), prose)
    codes = re.findall(r"`([^`]+)`", prose)
    codes += [line[2:] for block in fenced for line in block.splitlines() if line.startswith("$ bitldp ")]
    wrong = [code for code in codes if not vocabulary.knows(" ".join(code.split()))]
    headings = {re.sub(r"\W+", "-", line.lower()) for line in re.findall(r"^#+ (.*)", text, re.MULTILINE)}
    for link in re.findall(r"\]\(([^)]+)\)", prose):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        if not (folder / path).exists() or (anchor and not path and anchor not in headings):
            wrong.append(link)
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_name_exists(document: Path, vocabulary: Vocabulary) -> None:
    assert unknown(document.read_text(encoding="utf-8"), document.parent, vocabulary) == []


GOOD = """
# A heading
`GRR`, `bitldp.GRR`, `bitldp.federated`, `guarantee.record`, `estimate_mean`, `FRR(calibration="paper")`,
`spend="sample"`, `rng=`, `TwoStage(selection, release)`, `python/bitldp`, `Cargo.toml`, `make test`,
`BITLDP_CACHE`, `bitldp explain --all --epsilon 1`, `bitldp[fl]`, `--json`, [here](#a-heading) and
[there](docs/bits.md).
```console
$ bitldp explain frr --epsilon 4
```
"""


@pytest.mark.slow
def test_good_names_are_known(vocabulary: Vocabulary) -> None:
    assert unknown(GOOD, ROOT, vocabulary) == []


@pytest.mark.parametrize(
    "code",
    [
        "MinimaxMatrix",
        "XRR",
        "bitldp.MinimaxMatrix",
        "bitldp.entries",
        "guarantee.recorded_for_nothing",
        "estimate_nothing",
        'FRR(calibrated="paper")',
        'Nothing(calibration="paper")',
        "TwoStage(selections, values)",
        'spend="nowhere"',
        "spending_nothing=",
        "python/bitldp/_cli",
        "bitldp/_cli/entries_*.py",
        "nothing.py",
        "make nothing",
        "bitldp[nothing]",
        'pip install "bitldp[nothing]"',
        "bitldp nothing",
        "bitldp explain --nothing",
        "bitldp --nothing",
        "--nothing",
        "a → b",
    ],
)
@pytest.mark.slow
def test_a_planted_name_is_found(code: str, vocabulary: Vocabulary) -> None:
    assert unknown(f"{GOOD}\n`{code}`\n", ROOT, vocabulary) == [code]


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ("[x](docs/nothing.md)", "docs/nothing.md"),
        ("[x](#nothing)", "#nothing"),
        ("```console\n$ bitldp explain frr --nothing\n```\n", "bitldp explain frr --nothing"),
    ],
)
def test_a_planted_link_or_command_is_found(planted: str, found: str, vocabulary: Vocabulary) -> None:
    assert unknown(f"{GOOD}\n{planted}", ROOT, vocabulary) == [found]
