"""A struct, enum or trait of Rust has a name of its own within its crate."""

import re
from collections import Counter
from pathlib import Path

import pytest

RUST = Path(__file__).parents[2] / "rust"
CRATES = sorted(manifest.parent for manifest in RUST.glob("*/Cargo.toml"))
DEFINED = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|union|trait) (\w+)", re.MULTILINE
)


def names(source: str) -> list[str]:
    """Return the names of the types and traits that a file defines."""
    return DEFINED.findall(source)


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_type_or_trait_has_the_name_of_another_of_its_crate(crate: Path) -> None:
    counted = Counter(name for path in crate.glob("src/**/*.rs") for name in names(path.read_text()))
    assert counted, "nothing was found"
    assert [name for name, count in counted.items() if count > 1] == []


def test_every_form_of_a_definition_is_seen() -> None:
    visible = "pub(crate) struct One<'a>;\n    pub enum Two {}\npub(in crate::x) unsafe trait Three {}\n"
    assert names(visible + "// struct No\n") == ["One", "Two", "Three"]
