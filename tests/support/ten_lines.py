"""The README's first block, for environments that have the package and nothing to test it with."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def ten_lines() -> tuple[str, list[str]]:
    """Return the code, and the lines that it says it prints."""
    text = README.read_text(encoding="utf-8")
    block = re.search(r"^## Six lines\n\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert block is not None, "the README has its six lines"
    printed = re.findall(r"^# -> (.*)$", block[1], re.MULTILINE)
    assert printed, "the README says what is printed"
    return block[1], printed
