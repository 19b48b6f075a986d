"""Run in an emulated AArch64 Python: the README's ten lines, and the streams that x86-64 gives.

``make wheel-arm`` calls it. It imports what is installed, never the sources beside it.
"""

from __future__ import annotations

import contextlib
import io
import json
import platform
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "families" / "mechanism"


def ten_lines() -> str:
    """Run the README's first block of Python, which prints what it says there, and return that."""
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"^## Ten lines of Python\n\n```python\n(.*?)^```", readme, re.M | re.S)
    assert block is not None, "the README has its ten lines"
    code, printed = block.group(1), io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    said = "".join(f"{line}\n" for line in re.findall(r"^# -> (.*)$", code, re.M))
    assert said.endswith("True\n"), "the README says what is printed"
    assert printed.getvalue() == said, printed.getvalue()
    return said


def streams(isa: str) -> int:
    """Compare every golden stream with what an instruction set gives here; return how many there are."""
    sys.path[:0] = [str(ROOT / "tests"), str(GOLDEN)]
    import bitldp
    import test_golden
    from bitldp import _core

    assert not Path(bitldp.__file__).is_relative_to(ROOT / "python"), "the wheel is tried, not the sources"
    assert _core.isa() == isa, _core.isa()
    found, expected = test_golden.streams(), json.loads((GOLDEN / "golden.json").read_text())
    differ = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    assert not differ, f"{isa}: {differ}"
    return len(found)


if __name__ == "__main__":
    assert platform.machine() == "aarch64", platform.machine()
    print(ten_lines(), end="")
    print(f"neon: {streams('neon')} streams are those of x86-64")
