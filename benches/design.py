"""How long the designs of least variance take, and how good they are.

    python benches/design.py [--only B_IN,B_OUT]

Every design is solved anew, by `bitldp.design.mvu.design`: neither shipped nor cached ones are looked at.
Exits with 1 if an objective is more than 0.5 % above the best known one.
"""

from __future__ import annotations

import argparse
import sys
import time

from _table import table
from bitldp.design import mvu

SHAPES = ((2, 2), (3, 3), (4, 4), (6, 5), (7, 5))
BUDGETS = (1.0, 3.0, 5.0)
GATE = 1.005

BEST: dict[tuple[tuple[int, int], float], tuple[float, float | None]] = {
    ((2, 2), 1.0): (3.997751, 3.959710),
    ((2, 2), 3.0): (0.257273, None),
    ((2, 2), 5.0): (0.030559, None),
    ((3, 3), 1.0): (7.882174, 7.860610),
    ((3, 3), 3.0): (0.548243, 0.540347),
    ((3, 3), 5.0): (0.095557, 0.094203),
    ((4, 4), 1.0): (15.656462, 15.643413),
    ((4, 4), 3.0): (1.073574, 1.067652),
}
"""The least objective that a long search found, and a lower bound of all of them where one is known.

The objective is the sum over the 2^b_in points of [0, 1] of the letter's variance."""


def main() -> int:
    """Solve and print; return the exit status."""
    parser = argparse.ArgumentParser(description="Time and quality of the designs of least variance.")
    parser.add_argument("--only", default="", metavar="B_IN,B_OUT", help="only this shape")
    only = parser.parse_args().only
    rows = [["design", "epsilon", "exact", "objective", "best known", "over it", "bound", "seconds"]]
    worse = []
    for shape in SHAPES:
        name = f"{shape[0]},{shape[1]}"
        if only not in ("", name):
            continue
        for budget in BUDGETS:
            start = time.perf_counter()
            found = mvu.design(*shape, budget)
            seconds = time.perf_counter() - start
            best, bound = BEST.get((shape, budget), (None, None))
            rows.append(
                [
                    name,
                    f"{budget:g}",
                    f"{found.epsilon:.6f}",
                    f"{found.objective:.6f}",
                    "-" if best is None else f"{best:.6f}",
                    "-" if best is None else f"{found.objective / best - 1.0:+.4%}",
                    "-" if bound is None else f"{bound:.6f}",
                    f"{seconds:.2f}",
                ]
            )
            if best is not None and found.objective > GATE * best:
                worse.append(f"{name} at epsilon {budget:g}")
    print(table(rows))
    if worse:
        print(
            f"\nworse than the best known by more than {GATE - 1.0:.1%}: {'; '.join(worse)}", file=sys.stderr
        )
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
