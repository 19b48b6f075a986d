"""Run in an emulated AArch64 Python: the README's six lines, and the streams that x86-64 gives.

``make wheel-arm`` calls it. It imports what is installed, never the sources beside it.
"""

from __future__ import annotations

import contextlib
import io
import json
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.ten_lines import ten_lines

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "families" / "mechanism"


def lines() -> str:
    """Run the README's six lines, which print what they say there, and return that."""
    code, said = ten_lines()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == said, printed.getvalue()
    return printed.getvalue()


def streams(isa: str) -> int:
    """Compare every golden stream with what an instruction set gives here; return how many there are."""
    sys.path.insert(0, str(GOLDEN))
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
    print(lines(), end="")
    print(f"neon: {streams('neon')} streams are those of x86-64")
