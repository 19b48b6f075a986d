"""Golden streams: the reports of a seed never change, on any instruction set, platform or version.

``PYTHONPATH=tests python tests/families/mechanism/test_golden.py`` prints the file anew. A change of it
breaks the promise of reproducible experiments, and needs a reason in the commit that makes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bitldp._core import available_isas
from support.cases import CASES, FAMILIES, MIXED, ORDERED, reports_of

TESTS = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden.json"
SEED = 20_260_101
RECORDS = 9_000  # past the end of a chunk


def streams() -> dict[str, dict[str, object]]:
    """Return digest and head of the reports of every mechanism in each of their forms, under one seed."""
    found = {}
    for case in CASES + FAMILIES + MIXED + ORDERED:
        mechanism, inputs = case.make(), _inputs(case)
        for form in case.outputs:
            reports = reports_of(mechanism, inputs, rng=SEED, output=form)
            found[f"{case.name} {form}"] = {
                "sha256": hashlib.sha256(reports.tobytes()).hexdigest(),
                "head": reports[:8].tolist(),
            }
    return found


def _inputs(case) -> tuple[np.ndarray, ...]:
    """Make inputs by integer arithmetic alone: NumPy may change its random streams between versions."""
    shapes = [each.shape[1:] for each in case.inputs(np.random.default_rng(0), 1)]
    kinds = [each.dtype for each in case.inputs(np.random.default_rng(0), 1)]
    made = []
    for shape, kind in zip(shapes, kinds, strict=True):
        steps = np.arange(RECORDS * int(np.prod(shape)), dtype=np.int64).reshape(RECORDS, *shape)
        if kind.kind == "f":
            made.append(((steps * 7919 % 2003 - 1001) / 256.0).astype(kind))
        else:
            made.append(steps * 7919 % _categories(case))
    return tuple(made)


def _categories(case) -> int:
    mechanism = case.make()
    if "Record" in case.name or "ItemSet" in case.name or case.name in ("HDG", "MixedCap"):
        return {"ItemSet": 2, "HDG": 16}.get(case.name.split("-")[0]) or min(mechanism.attributes)
    if case in ORDERED:
        if case.name == "BlockDesign-public":
            return mechanism.categories
        return mechanism.categories if case.name == "Hierarchy" else 1 << mechanism.bits
    if case in FAMILIES:
        return mechanism.categories if case.name == "LabelLaplace" else len(mechanism.points)
    if case.name == "BitRand":
        return mechanism.categories
    return (
        len(mechanism.points)
        if case.name.startswith("BRR")
        else mechanism.channel.cells
        if "RR" in case.name
        else mechanism.categories
    )


@pytest.mark.slow
def test_streams_are_those_of_old():
    assert streams() == json.loads(GOLDEN.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("isa", available_isas())
def test_every_instruction_set_gives_the_same_streams(isa):
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "BITLDP_ISA": isa, "PYTHONPATH": path}
    printed = subprocess.run(
        [sys.executable, __file__], env=environment, check=True, capture_output=True, text=True, timeout=120
    )
    assert json.loads(printed.stdout) == json.loads(GOLDEN.read_text())


if __name__ == "__main__":
    sys.stdout.write(json.dumps(streams(), indent=1) + "\n")
