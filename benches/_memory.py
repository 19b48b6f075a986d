"""How much memory one call takes besides its input and output, measured in a process of its own.

Run as a program it prints, as JSON, for one and two threads: how many bytes of memory that no page stood
behind were touched during the call (minor page faults times the page size), by how much the process'
peak (VmHWM) rose, and the peak of what Python allocated (tracemalloc; NumPy's arrays are part of it).
The input and the output are touched beforehand, and so is the code, by a call on little data in another
Python thread, whose stack the measured call does not share.
"""

from __future__ import annotations

import functools
import json
import resource
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

RECORDS, FEATURES, BITS = 10_000, 768, 10


def extra_memory() -> dict[str, dict[str, int]]:
    """Measure in a fresh process.

    Returns
    -------
    dict
        For "1" and "2" threads: `touched`, `peak` and `python`, bytes.
    """
    done = subprocess.run([sys.executable, __file__], check=True, capture_output=True, text=True)
    measured: dict[str, dict[str, int]] = json.loads(done.stdout)
    return measured


def _peak() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _measured(call: Callable[[], object]) -> dict[str, int]:
    peak, faults = _peak(), _faults()
    call()
    faults = _faults() - faults
    return {"touched": faults * resource.getpagesize(), "peak": _peak() - peak}


def _in_a_thread(call: Callable[[], object], keep: threading.Event) -> dict[str, int]:
    """Measure a call in a thread that lives on until `keep` is set, so that nobody inherits its stack."""
    done = threading.Event()
    found: dict[str, int] = {}

    def work() -> None:
        found.update(_measured(call))
        done.set()
        keep.wait()

    threading.Thread(target=work, daemon=True).start()
    done.wait()
    return found


def _main() -> None:
    import bitldp

    x = np.random.default_rng(1).uniform(-9.0, 9.0, (RECORDS, FEATURES)).astype(np.float32)
    out = np.ones(x.shape, np.uint16)
    flip = np.linspace(0.29, 0.52, BITS)
    codec = bitldp.FixedPoint(BITS, integer_bits=5)
    channel = bitldp.Bits([list(1.0 - flip)], [list(flip)], FEATURES)
    keep = threading.Event()

    def call(threads: int, records: int = RECORDS) -> object:
        return channel.randomize(x[:records], codec, None, "codes", out[:records], threads, 0)

    _in_a_thread(lambda: None, keep)
    _in_a_thread(lambda: call(1, 16), keep)
    measured = {str(threads): _in_a_thread(functools.partial(call, threads), keep) for threads in (1, 2)}
    for threads in (1, 2):
        tracemalloc.start()
        call(threads)
        measured[str(threads)]["python"] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    keep.set()
    print(json.dumps(measured))


if __name__ == "__main__":
    _main()
