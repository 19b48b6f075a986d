"""Solve the designs that are shipped: ``python -m bitldp.design [minimax|workload] [FILE]``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bitldp.design import _cache, mvu, sliding, workload_cache
from bitldp.design.questions import gram_of

SHAPES = tuple((inputs, outputs) for inputs in (1, 2, 3) for outputs in (2, 3))
"""Input and output bits. Reports of one bit are designed in closed form."""

BUDGETS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


WORKLOADS = tuple((name, size) for size in (8, 10, 16, 32) for name in ("ranges", "cdf"))
"""Workloads, and how many inputs they are about, for which designs are shipped."""

WORKLOAD_BUDGETS = (0.5, 1.0, 2.0, 4.0)


def main(arguments: list[str]) -> None:
    """Write MVU's designs to a file, by default that of the package; others with their name."""
    if arguments[:1] in (["minimax"], ["workload"]):
        (shapes if arguments[0] == "minimax" else workloads)(arguments[1:])
        return
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


def shapes(arguments: list[str]) -> None:
    """Write the shapes of the minimax release to a file, by default that of the package."""
    path = Path(arguments[0]) if arguments else Path(__file__).parent / "shipped" / sliding.FILE
    lines, near = [], None
    for budget in sliding.SHAPE_BUDGETS:
        shape = sliding.best_shape(budget, near if budget > 1.0 else None)
        near = sliding.LETTERS / shape.width
        lines.append(json.dumps(sliding.encoded_shape(budget, shape), separators=(",", ":")))
        sys.stdout.write(f"epsilon {budget}: {sliding.worst(shape, budget):.6g}\n")
    path.write_text('{"shapes":[\n' + ",\n".join(lines) + "\n]}\n", encoding="ascii")


def workloads(arguments: list[str]) -> None:
    """Write the designs for workloads to a file, by default that of the package."""
    path = Path(arguments[0]) if arguments else Path(__file__).parent / "shipped" / workload_cache.FILE
    lines = []
    start = time.perf_counter()
    for name, size in WORKLOADS:
        for budget in WORKLOAD_BUDGETS:
            record = workload_cache.encoded_columns(gram_of(name, size), budget)
            lines.append(json.dumps(record, separators=(",", ":")))
            sys.stdout.write(f"{name} of {size}, epsilon {budget}: {len(record['sets'])} reports\n")
            sys.stdout.flush()
    path.write_text('{"designs":[\n' + ",\n".join(lines) + "\n]}\n", encoding="ascii")
    sys.stdout.write(f"{len(lines)} designs in {time.perf_counter() - start:.1f} s: {path}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
