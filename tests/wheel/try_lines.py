"""Run the README's six lines with the package that is installed, and compare what they print.

    python tests/wheel/try_lines.py

It needs nothing but that package, and imports no source beside it.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.ten_lines import ten_lines

if __name__ == "__main__":
    warnings.simplefilter("error")
    source, told = ten_lines()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "README.md", "exec"), {})
    if printed.getvalue().splitlines() != told:
        sys.exit(f"the README's lines print\n{printed.getvalue()}")
    import bitldp

    if Path(bitldp.__file__).is_relative_to(Path(__file__).parents[2] / "python"):
        sys.exit(f"{bitldp.__file__}: the sources were run, not what is installed")
    print(f"bitldp {bitldp.__version__}, Python {sys.version.split()[0]}: the README prints what it says")
