"""Very many samples of every kernel against the law it says it follows, and whether memory stays flat.

    python benches/soak.py                          # 10^9 samples a kernel
    python benches/soak.py --samples 1e7 --only bits

Inputs come in turn, so that a report's count is compared for each input by itself. Expected counts come
from the integers over 2^64 that the channel compares with. Pearson's chi-square is judged at `ALPHA` a
kernel, by Wilson and Hilferty's approximation. The keys are fixed: a run of as many samples gives the
same statistic anywhere, on any number of threads. The peak of the process's memory may not grow by more
than `GROWTH` after the first few batches. The exit status is 1 where a kernel misses either.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _measure import _cpu_name
from bitldp import _core
from numpy.typing import NDArray

ALPHA = 1e-6
QUANTILE = 4.7534  # of the normal distribution at 1 - ALPHA
GROWTH = 8 << 20
WARM = 4  # batches until the allocator has what it takes
BATCH = 1 << 20
LEAST = 5.0  # an expected count below it says nothing by itself: such cells are put together
ONE = 1 << 64


@dataclass(frozen=True)
class Kernel:
    """A channel, its inputs in turn, and its law.

    Attributes
    ----------
    law : ndarray of float64, shape (inputs, reports)
        The probability of each report.
    draw : callable
        Takes the batch's inputs as numbers below the rows of `law`, a key and the first chunk; gives codes
        below its columns.
    chunk : int
        Reports in a chunk of the key's stream.
    """

    law: NDArray[np.float64]
    draw: Callable[[NDArray[np.intp], bytes, int], NDArray[Any]]
    chunk: int


def kernels() -> Iterator[tuple[str, Kernel]]:
    """Yield one kernel of each kind: the lanes, tables and laws that a channel chooses among."""
    for title, window in {
        "window, flip": _core.Window(2, 1, 0.7),
        "window, GRR of 16": _core.Window(16, 1, 0.4),
        "window, 30 of 300": _core.Window(300, 30, 0.5),
        "matrix, 8 x 8": _core.Matrix(_rows(8, 8)),
        "matrix, 40 x 300": _core.Matrix(_rows(40, 300)),
        "shift, 5 to 9": _core.Shift(5, 9, [ONE // 8, ONE // 4, ONE // 4, ONE // 4, ONE // 8], 2),
    }.items():
        yield title, Kernel(window.probabilities(), _categorical(window), _core.CHUNK)
    for title, rates in {"bits, symmetric": (0.7, 0.3), "bits, two laws a bit": (0.8, 0.35)}.items():
        p, q = (
            np.clip(rate + 0.02 * np.arange(8) * sign, 0, 1)
            for rate, sign in zip(rates, (-1, 1), strict=True)
        )
        bits = _core.Bits([list(p)], [list(q)], 4)
        words = np.array([0, 255, 0b10110100, 0b00001111], np.uint8)
        marginals = np.array([_chances(bits.thresholds()[0], int(word)) for word in words])
        yield title, Kernel(_strings(marginals), _words(bits, words), _core.CHUNK)
    unary = _core.Unary(9, 0.5, 0.25)
    one, zero = unary.thresholds()
    marginals = np.where(np.eye(9, dtype=bool), one / ONE, zero / ONE)
    yield "unary, 9 categories", Kernel(_strings(marginals), _one_hot(unary), unary.chunk)
    cube = _core.Cube(8, 5, 4, ONE // 4 * 3)
    yield "cube, 8 signs", Kernel(_agreements(cube), _signs(cube), cube.chunk)
    select = _core.Select(np.array([3, 2], np.uint32), np.array([2, 7], np.uint64), 5)
    ranks = np.append(select.weights(), select.nothing).astype(np.float64) / select.total
    orders = np.array([np.roll(np.arange(5), turn) for turn in range(5)])
    law = np.column_stack([ranks[:5][orders], np.full(5, ranks[5])])
    yield "select, 5 coordinates", Kernel(law, _selected(select, orders), select.chunk)


def _rows(inputs: int, outputs: int) -> NDArray[np.float64]:
    table = np.random.default_rng(1).uniform(0.2, 1.0, (inputs, outputs))
    scaled: NDArray[np.float64] = table / table.sum(axis=1, keepdims=True)
    return scaled


def _categorical(channel: Any) -> Callable[[NDArray[np.intp], bytes, int], NDArray[Any]]:
    return lambda x, key, first: channel.randomize(
        x.astype(np.uint16), None, None, key, "codes", None, None, first
    )


def _words(
    bits: _core.Bits, words: NDArray[np.uint8]
) -> Callable[[NDArray[np.intp], bytes, int], NDArray[Any]]:
    return lambda x, key, first: bits.randomize(
        words[x].reshape(-1, bits.features), None, key, "codes", None, None, first
    ).ravel()


def _one_hot(unary: _core.Unary) -> Callable[[NDArray[np.intp], bytes, int], NDArray[Any]]:
    def draw(x: NDArray[np.intp], key: bytes, first: int) -> NDArray[Any]:
        strings = unary.randomize(x.astype(np.uint8), key, "bits", None, None, first)
        return _spelled(strings.reshape(len(x), -1))

    return draw


def _signs(cube: _core.Cube) -> Callable[[NDArray[np.intp], bytes, int], NDArray[Any]]:
    def draw(x: NDArray[np.intp], key: bytes, first: int) -> NDArray[Any]:
        records = (x[:, None] >> np.arange(7, -1, -1) & 1).astype(np.uint8)
        return _spelled(cube.randomize(records, None, None, key, "codes", None, None, first))

    return draw


def _selected(
    select: _core.Select, orders: NDArray[np.intp]
) -> Callable[[NDArray[np.intp], bytes, int], NDArray[Any]]:
    vectors = (-1.5 * (orders + 1)).astype(np.float32)  # magnitudes in the order of the ranks
    return lambda x, key, first: select.randomize(vectors[x], key, "codes", None, None, first)


def _spelled(strings: NDArray[np.uint8]) -> NDArray[np.uint16]:
    codes = np.zeros(len(strings), np.uint16)
    for column in strings.T:
        codes = codes << 1 | column
    return codes


def _chances(law: list[tuple[int, int]], word: int) -> list[float]:
    """Return the chance of a 1 at each position of a word, the most significant bit first."""
    places = range(len(law) - 1, -1, -1)
    return [(one if word >> at & 1 else zero) / ONE for (one, zero), at in zip(law, places, strict=True)]


def _strings(ones: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the law of whole strings of independent bits, a row for each row of chances."""
    law = np.ones((len(ones), 1))
    for chance in ones.T:
        law = (law[:, :, None] * np.stack([1.0 - chance, chance], axis=1)[:, None, :]).reshape(len(ones), -1)
    return law


def _agreements(cube: _core.Cube) -> NDArray[np.float64]:
    """Return the law of 8 signs for each of 256 records."""
    near, far = cube.sizes()
    high = cube.high / ONE
    strings = np.arange(256)
    agreements = 8 - np.bitwise_count(strings[:, None] ^ strings)
    law: NDArray[np.float64] = np.where(agreements >= cube.near, high / near, 0.0)
    return law + np.where(agreements <= cube.far, (1.0 - high) / far, 0.0)


def soak(title: str, kernel: Kernel, samples: int) -> dict[str, Any]:
    """Draw samples of one kernel and compare their counts with its law."""
    inputs, reports = kernel.law.shape
    size = BATCH // kernel.chunk * kernel.chunk
    key = hashlib.sha256(title.encode()).digest()
    counts, used = np.zeros(inputs * reports, np.int64), np.zeros(inputs, np.int64)
    start, before, done, chunk = time.perf_counter(), 0, 0, 0
    while done < samples:
        x = np.arange(done, done + min(size, samples - done)) % inputs
        x = x[: len(x) // 4 * 4]  # records of bits have four features
        codes = kernel.draw(x, key, chunk)
        counts += np.bincount(x * reports + codes, minlength=len(counts))
        used += np.bincount(x, minlength=inputs)
        done, chunk = done + len(x), chunk + size // kernel.chunk
        if done <= WARM * size or not before:
            before = _peak()
        if samples - done < 4:
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


def main() -> int:
    """Print a line for each kernel; return 1 where one misses its law or memory grew."""
    parser = argparse.ArgumentParser(description="Very many samples of every kernel against its exact law.")
    parser.add_argument("--samples", type=float, default=1e9, help="of each kernel (default: %(default)g)")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--record", action="store_true", help="keep the figures in benches/records")
    options = parser.parse_args()
    machine = {"cpu": _cpu_name(), "isa": _core.isa(), "bitldp": _core.__version__}
    print(f"{machine['cpu']}, {machine['isa']}; alpha = {ALPHA:g} a kernel")
    results = []
    for title, kernel in kernels():
        if options.only not in title:
            continue
        result = soak(title, kernel, int(options.samples))
        grown = result["peak_after"] - result["peak_before"]
        result["holds"] = result["chi_square"] < result["limit"] and grown <= GROWTH
        results.append(result)
        print(
            f"{title:24}n = {result['samples']:<13,} chi2 = {result['chi_square']:>10.1f} on "
            f"{result['degrees']:>6,}, limit {result['limit']:>9.1f}; peak memory "
            f"{result['peak_before'] >> 20} -> {result['peak_after'] >> 20} MiB; {result['seconds']:.1f} s"
            f"{'' if result['holds'] else '  MISSED'}",
            flush=True,
        )
    if options.record:
        date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        line = {"date": date, "machine": machine, "alpha": ALPHA, "results": results}
        with (Path(__file__).parent / "records" / "soak.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
    return 0 if results and all(result["holds"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
