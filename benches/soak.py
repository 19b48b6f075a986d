"""Very many samples of every kernel against the law it says it follows, and whether memory stays flat.

    python benches/soak.py                          # 10^9 samples a kernel
    python benches/soak.py --samples 1e7 --only bits
    python benches/soak.py --record --resume        # keep the figures; leave out what they have already

Inputs come in turn, so that a report's count is compared for each input by itself. Expected counts come
from the integers over 2^64 that the channel compares with (`_soak_kernels.py`). Pearson's chi-square is
judged at `ALPHA` a kernel, by Wilson and Hilferty's approximation. The keys are fixed: a run of as many
samples gives the same statistic anywhere, on any number of threads. The peak of the process's memory may
not grow by more than `GROWTH` after the first few batches. The exit status is 1 where a kernel misses either.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _soak_kernels import Kernel, kernels
from bitldp import _core
from keep import cpu_name, keep
from numpy.typing import NDArray

ALPHA = 1e-6
QUANTILE = 4.7534  # of the normal distribution at 1 - ALPHA
GROWTH = 8 << 20
WARM = 4  # batches until the allocator has what it takes
BATCH = 1 << 20
RECORDS = Path(__file__).parent / "records" / "soak.jsonl"
LEAST = 5.0  # an expected count below it says nothing by itself: such cells are put together


def soak(title: str, kernel: Kernel, samples: int) -> dict[str, Any]:
    """Draw samples of one kernel and compare their counts with its law."""
    inputs, reports = kernel.law.shape
    size = BATCH // kernel.chunk * kernel.chunk
    key = hashlib.sha256(title.encode()).digest()
    counts, used = np.zeros(inputs * reports, np.int64), np.zeros(inputs, np.int64)
    start, before, done, chunk = time.perf_counter(), 0, 0, 0
    while done < samples:
        x = np.arange(done, done + min(size, samples - done)) % inputs
        x = x[: len(x) // kernel.record * kernel.record]
        codes = kernel.draw(x, key, chunk)
        counts += np.bincount(x * reports + codes, minlength=len(counts))
        used += np.bincount(x, minlength=inputs)
        done, chunk = done + len(x), chunk + size // kernel.chunk
        if done <= WARM * size or not before:
            before = _peak()
        if samples - done < kernel.record:
            break
    expected = (used[:, None] * kernel.law).ravel()
    statistic, degrees = chi_square(counts, expected, inputs)
    limit = degrees * (1 - 2 / (9 * degrees) + QUANTILE * (2 / (9 * degrees)) ** 0.5) ** 3
    seconds = time.perf_counter() - start
    return {
        "name": title, "samples": done, "chi_square": statistic, "degrees": degrees, "limit": limit,
        "seconds": seconds, "peak_before": before, "peak_after": _peak(),
    }  # fmt: skip


def chi_square(counts: NDArray[np.int64], expected: NDArray[np.float64], inputs: int) -> tuple[float, int]:
    """Return Pearson's statistic and its degrees of freedom; infinite where an impossible report came."""
    if counts[expected == 0.0].any():
        return float("inf"), 1
    rare = (expected < LEAST) & (expected > 0.0)
    kept = expected >= LEAST
    found, mean = counts[kept].astype(np.float64), expected[kept]
    if rare.any():
        found, mean = np.append(found, counts[rare].sum()), np.append(mean, expected[rare].sum())
    return float(((found - mean) ** 2 / mean).sum()), max(1, len(mean) - inputs)


def _peak() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


def recorded(machine: dict[str, str]) -> dict[str, int]:
    """Return the samples for which each kernel held on this machine and version, by the records."""
    lines = map(json.loads, RECORDS.read_text().splitlines() if RECORDS.exists() else ())
    found = (result for line in lines if line["machine"] == machine for result in line["results"])
    held = [(each["name"], each["samples"]) for each in found if each["holds"]]
    return dict(sorted(held, key=lambda one: one[1]))


def main() -> int:
    """Print a line for each kernel; return 1 where one misses its law or memory grew."""
    parser = argparse.ArgumentParser(description="Very many samples of every kernel against its exact law.")
    parser.add_argument("--samples", type=float, default=1e9, help="of each kernel (default: %(default)g)")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--record", action="store_true", help="keep the figures in benches/records")
    parser.add_argument("--resume", action="store_true", help="leave out what the records have already")
    options = parser.parse_args()
    samples = int(options.samples)
    machine = {"cpu": cpu_name(), "isa": _core.isa(), "bitldp": _core.__version__}
    print(f"{machine['cpu']}, {machine['isa']}; alpha = {ALPHA:g} a kernel")
    # Records of bits are whole, so a kernel may have stopped a few samples short.
    done = recorded(machine) if options.resume else {}
    verdicts = []
    for title, kernel in kernels():
        if options.only not in title:
            continue
        wanted = samples // kernel.dear
        if done.get(title, 0) > wanted - 64:
            print(f"{title:32}in the records")
            continue
        result = soak(title, kernel, wanted)
        grown = result["peak_after"] - result["peak_before"]
        result["holds"] = result["chi_square"] < result["limit"] and grown <= GROWTH
        verdicts.append(result["holds"])
        print(
            f"{title:32}n = {result['samples']:<13,} chi2 = {result['chi_square']:>10.1f} on "
            f"{result['degrees']:>6,}, limit {result['limit']:>9.1f}; peak memory "
            f"{result['peak_before'] >> 20} -> {result['peak_after'] >> 20} MiB; {result['seconds']:.1f} s"
            f"{'' if result['holds'] else '  MISSED'}",
            flush=True,
        )
        if options.record:  # one by one: hours of samples outlive a stop
            keep(RECORDS.name, {"machine": machine, "alpha": ALPHA, "results": [result]})
    return 0 if (verdicts or done) and all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
