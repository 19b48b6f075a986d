"""Run the README's six lines with the package that is installed, then every golden stream.

    python tests/wheel/try_streams.py [ISA]

The streams must be those that x86-64 on Linux gives, whatever the system and the instruction set. With ISA
(neon, avx2, ...) the package must have chosen that one. It imports what is installed, never the sources
beside it, and needs pytest.
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


def streams() -> int:
    """Compare every golden stream with what this system gives; return how many there are."""
    sys.path.insert(0, str(GOLDEN))
    import bitldp
    import test_golden

    assert not Path(bitldp.__file__).is_relative_to(ROOT / "python"), "the wheel is tried, not the sources"
    found, expected = test_golden.streams(), json.loads((GOLDEN / "golden.json").read_text())
    differ = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    assert not differ, f"error: {differ}"
    return len(found)


if __name__ == "__main__":
    from bitldp import _core

    asked, isa = sys.argv[1:], _core.isa()
    assert asked in ([], [isa]), f"error: it is {isa}"
    print(lines(), end="")
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {isa}"
    print(
        f"{system}: the README prints what it says, {streams()} golden streams are those of x86-64 on Linux"
    )
