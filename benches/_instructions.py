"""Calls a case of NumPy's some times, and nothing else: what `instructions.py` counts in an emulated Python.

Its arguments are the name of the case and how many calls. Of the package only the reference in NumPy is
loaded, which needs no extension module.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

package = ModuleType("bitldp")
package.__path__ = [str(Path(__file__).parents[1] / "python" / "bitldp")]
sys.modules["bitldp"] = package

import numpy as np  # noqa: E402
from bitldp import reference  # noqa: E402

VALUES = (128, 768)


def main(name: str, calls: int) -> None:
    """Call it."""
    rng = np.random.default_rng(1)
    numbers = rng.uniform(-9.0, 9.0, VALUES).astype(np.float32)
    of_128, of_1000 = (rng.integers(0, count, VALUES, dtype=np.uint16).ravel() for count in (128, 1000))
    flips = np.linspace(0.29, 0.52, 10)
    cases = {
        "f-RR, codes": lambda: reference.flip_bits(reference.encode(numbers, 10, 5), flips, rng),
        "GRR, k = 128": lambda: reference.grr(of_128, 128, 0.3, rng),
        "BRR, N = 1000": lambda: reference.window(of_1000, 1000, 268, 0.73, rng),
    }
    for _ in range(calls):
        cases[name]()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
