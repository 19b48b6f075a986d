"""Streams of EXP, PS and PE: the same for any threads, chunks and instruction set, and for ever."""

from __future__ import annotations

import os
import subprocess
import sys

import bitldp
import numpy as np
import pytest
from bitldp import EXP, PE, PS
from bitldp._core import available_isas

KINDS = {
    "EXP": lambda d, epsilon: EXP(d, epsilon=epsilon),
    "PS": lambda d, epsilon: PS(d, k=max(1, d // 3), epsilon=epsilon),
    "PE": lambda d, epsilon: PE(d, k=max(1, d // 3), epsilon=epsilon),
}


@pytest.fixture(params=KINDS)
def kind(request):
    """Return a maker of each kind of selection in turn."""
    return KINDS[request.param]


def test_threads_chunks_and_forms_change_nothing(kind):
    mechanism = kind(300, epsilon=2.0)
    x = np.random.default_rng(3).normal(size=(300, 300)).astype(np.float32)
    chunk = mechanism.channel.chunk
    whole = mechanism.randomize(x, rng=9)
    for threads in (1, 2, 5):
        np.testing.assert_array_equal(mechanism.randomize(x, rng=9, threads=threads), whole)
    parts = [mechanism.randomize(x[:chunk], rng=9), mechanism.randomize(x[chunk:], rng=9, first_chunk=1)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    changed = x.copy()
    changed[:150] = 0.0  # a vector's draws do not depend on the others
    np.testing.assert_array_equal(mechanism.randomize(changed, rng=9)[150:], whole[150:])
    np.testing.assert_array_equal(mechanism.randomize(np.asfortranarray(x), rng=9), whole)
    np.testing.assert_array_equal(mechanism.randomize(x.astype(np.float64), rng=9), whole)
    packed = mechanism.randomize(x, rng=9, output="packed")
    np.testing.assert_array_equal(bitldp.unpack(packed, mechanism.report_bits, len(x)), whole)
    out = np.empty_like(whole)
    assert mechanism.randomize(x, rng=9, out=out) is out
    np.testing.assert_array_equal(out, whole)
    assert (mechanism.randomize(x) != mechanism.randomize(x)).any()


STREAM = """
import numpy as np, bitldp
for d in (5, 300, 9000):
    for dtype in (np.float32, np.float64):
        x = ((np.arange(8 * d) * 7919 % 20011 - 10005) / 256.0).astype(dtype).reshape(8, d)
        for kind in (bitldp.EXP(d, epsilon=3.0), bitldp.PE(d, k=2, epsilon=3.0)):
            print(*kind.randomize(x, rng=1))
"""


@pytest.mark.slow
def test_every_instruction_set_gives_the_same_stream():
    streams = {
        subprocess.run(
            [sys.executable, "-c", STREAM],
            env={**os.environ, "BITLDP_ISA": isa},
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout
        for isa in available_isas()
    }
    assert len(streams) == 1


# fmt: off
GOLDEN = [
    [39, 34, 31, 26, 39, 5, 23, 17, 48, 2, 20, 32, 48, 14, 10, 45, 39, 11, 36, 0],
    [46, 34, 31, 20, 39, 11, 23, 15, 34, 45, 41, 32, 23, 42, 12, 2, 39, 34, 38, 43],
    [46, 34, 31, 20, 39, 11, 23, 15, 34, 45, 41, 32, 23, 42, 12, 2, 39, 34, 38, 43],
]
# fmt: on


def test_golden_stream():
    """The reports of a seed never change."""
    x = ((np.arange(20 * 50) * 7919 % 2003 - 1001) / 256.0).reshape(20, 50)
    found = [kind(50, epsilon=4.0).randomize(x, rng=20_260_101).tolist() for kind in KINDS.values()]
    assert found == GOLDEN
