"""Names of Rust: no type twice in a crate, plain words, first lines that say what a thing is."""

import re
from collections import Counter
from pathlib import Path

import pytest

RUST = Path(__file__).parents[2] / "rust"
CRATES = sorted(manifest.parent for manifest in RUST.glob("*/Cargo.toml"))
SOURCES = sorted(RUST.glob("*/src/**/*.rs"))
DEFINED = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|union|trait) (\w+)", re.MULTILINE
)
RIDDLES = re.compile(r"^(?:What|Whether|Of|In what)\b")
# Plain words say the same: result, positions, wrapper, own, shared, useful, random bits.
PICTURES = re.compile(r"\b(?:found|places|face|home|told|worth|coins)\b")


def names(source: str) -> list[str]:
    """Return the names of the types and traits that a file defines."""
    return DEFINED.findall(source)


def first_lines(source: str) -> list[str]:
    """Return the first line of each block of documentation."""
    lines, before = [], ""
    for line in map(str.strip, source.splitlines()):
        start = re.match(r"//[/!]", line)
        if start and not before.startswith(start[0]):
            lines.append(line[3:].strip())
        before = line
    return lines


def pictures(source: str) -> list[str]:
    """Return the words of pictures in code; comments and strings may use them."""
    code = (re.sub(r'"(?:\\.|[^"\\])*"|//.*', "", line) for line in source.splitlines())
    return [name for line in code for name in PICTURES.findall(line)]


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_type_or_trait_has_the_name_of_another_of_its_crate(crate: Path) -> None:
    counted = Counter(name for path in crate.glob("src/**/*.rs") for name in names(path.read_text()))
    assert counted, "nothing was found"
    assert [name for name, count in counted.items() if count > 1] == []


def test_documentation_begins_with_a_plain_sentence() -> None:
    lines = {path: first_lines(path.read_text()) for path in SOURCES}
    assert sum(map(len, lines.values())) > 1000
    riddles = [f"{path.relative_to(RUST)}: {line}" for path in SOURCES for line in lines[path]]
    assert [line for line in riddles if RIDDLES.match(line.partition(": ")[2])] == []


def test_code_names_no_pictures() -> None:
    seen = [f"{path.relative_to(RUST)}: {name}" for path in SOURCES for name in pictures(path.read_text())]
    assert seen == []


def test_every_form_of_a_definition_is_seen() -> None:
    visible = "pub(crate) struct One<'a>;\n    pub enum Two {}\npub(in crate::x) unsafe trait Three {}\n"
    assert names(visible + "// struct No\n") == ["One", "Two", "Three"]


def test_first_lines_and_pictures_are_seen() -> None:
    documented = "//! Sums.\n//! What is no first line.\n\n/// What it is.\nstruct One;\n"
    assert first_lines(documented) == ["Sums.", "What it is."]
    assert pictures('let (found, x) = y; // let home\nf("told", |face| 1);\n') == ["found", "face"]
