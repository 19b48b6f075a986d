"""Solve the designs that are shipped with the package: ``python -m bitldp.design [FILE]``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bitldp.design import _cache, mvu

SHAPES = tuple((inputs, outputs) for inputs in (1, 2, 3) for outputs in (2, 3))
"""Input and output bits. Reports of one bit are designed in closed form."""

BUDGETS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def main(arguments: list[str]) -> None:
    """Write the designs to a file, by default that of the package."""
    default = Path(__file__).parent / "shipped" / "mvu.json"
    path = Path(arguments[0]) if arguments else default
    lines = []
    start = time.perf_counter()
    for shape in SHAPES:
        for budget in BUDGETS:
            design = mvu.design(*shape, budget)
            key = _cache.Key(shape, budget, None, "mean")
            lines.append(json.dumps(_cache.encoded(key, design)))
            sys.stdout.write(f"{shape} epsilon {budget}: {design.objective:.6g}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"designs": [\n' + ",\n".join(lines) + "\n]}\n", encoding="ascii")
    sys.stdout.write(f"{len(lines)} designs in {time.perf_counter() - start:.1f} s: {path}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
