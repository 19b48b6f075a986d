"""The guide for C shows the example that is built and run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.documents import blocks

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "rust" / "client" / "examples" / "c" / "report.c"


@pytest.mark.skipif(not EXAMPLE.is_file(), reason="the crate of clients is not beside this package")
def test_the_guide_shows_the_example_in_c() -> None:
    (shown,) = blocks((ROOT / "docs" / "guides" / "native.md").read_text(encoding="utf-8"), "c")
    assert shown.strip() == EXAMPLE.read_text(encoding="utf-8").strip()
