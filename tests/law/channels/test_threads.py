"""`BITLDP_THREADS`: the most threads of every call, those that a call asks for too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = """
import os, numpy as np, bitldp
x = np.arange(20_000) % 128
mechanism = bitldp.OUE(128, epsilon=1.0)
before = len(os.listdir("/proc/self/task"))
reports = mechanism.randomize(x, rng=1, threads=6)
print(len(os.listdir("/proc/self/task")) - before, int(reports.sum()))
"""


def _run(threads: str | None, code: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "BITLDP_THREADS"}
    if threads is not None:
        environment["BITLDP_THREADS"] = threads
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted by Linux")
def test_the_variable_caps_the_threads_and_changes_nothing():
    found = {threads: _run(threads, COUNT).stdout.split() for threads in (None, "", "1", "2", "6", "99")}
    # the caller works too, so a pool has one thread less
    started = {threads: int(each[0]) for threads, each in found.items()}
    assert started == {None: 5, "": 5, "1": 0, "2": 1, "6": 5, "99": 5}
    assert len({each[1] for each in found.values()}) == 1


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1.5"])
def test_what_is_no_number_of_threads_is_refused_by_name(wrong):
    failed = _run(wrong, "import bitldp")
    assert failed.returncode == 1
    assert "BITLDP_THREADS" in failed.stderr
    assert wrong in failed.stderr
