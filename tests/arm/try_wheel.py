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

# PE's law is an integral in floating point: the nodes come from LAPACK and exp from NumPy, whose last digits
# differ between platforms, and so do those of its integers. Of these streams the first reports are compared.
BY_QUADRATURE = ("PE", "TwoStage")


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
    assert found.keys() == expected.keys()
    differ = {name for name in found if found[name] != expected[name]}
    allowed = {name for name in found if name.split()[0] in BY_QUADRATURE}
    assert differ <= allowed, f"{isa}: {sorted(differ - allowed)}"
    for name in sorted(differ):
        assert found[name]["head"] == expected[name]["head"], f"{isa}: {name}"
        print(f"{isa}: {name} is that of x86-64 in its first reports alone")
    return len(found) - len(differ)


if __name__ == "__main__":
    assert platform.machine() == "aarch64", platform.machine()
    print(ten_lines(), end="")
    print(f"neon: {streams('neon')} streams are those of x86-64")
