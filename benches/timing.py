"""Whether time tells one value from another: prints a table, and exits 1 where it does.

    python benches/timing.py
    python benches/timing.py --record               # keep the figures

Each case randomizes 1,024 numbers that are all alike, of one kind and of another in turn, and Welch's t
compares the fastest 80 % of the two. What a machine does by itself is measured in the same turns by control
pairs, which cannot differ: 0 against 0 again, and 1.0 against 0.5, two normal numbers. A pair is
told where its |t| passes those of its controls and `LIMIT`, and the difference is more than `SMALLEST` of the
time: below that, t grows with the number of calls, and nobody learns a value from it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle

import bitldp
import numpy as np
from bitldp import _core
from keep import cpu_name, keep
from numpy.typing import NDArray

NUMBERS = 1_024
LIMIT = 4.5  # two-sided, 1e-5 a pair: once in a thousand tables of a hundred pairs
SMALLEST = 0.005
KEPT = 0.8
KEY = bytes(32)

# The arrays of a case, by the number that fills them; the smallest ones are subnormal in both precisions.
ARRAYS = {"zero": 0.0, "tiny": 1e-40, "again": 0.0, "one": 1.0, "half": 0.5}
PAIRS = {"0 : subnormal": ("zero", "tiny"), "0 : 0": ("zero", "again"), "1 : 0.5": ("one", "half")}
SUSPECT, *CONTROLS = PAIRS
TINY = {np.float32: 1e-40, np.float64: 1e-310}
CAPS = {
    "box": ([(17, 4)] * 8, [], 0),
    "lists": ([], [(8, 1)] * 8, 5),
    "w = 3": ([], [(8, 3)] * 4, 2),
    "both": ([(17, 4)] * 4, [(8, 1)] * 4, 2),
}


@dataclass(frozen=True)
class Measured:
    """Two kinds of numbers in one case.

    Attributes
    ----------
    ratio : float
        Mean time of the second kind over that of the first, less 1.
    t : float
        Welch's statistic.
    """

    ratio: float
    t: float


def cases() -> dict[str, tuple[type, Callable[[NDArray[np.floating]], object]]]:
    """Return what is timed: the type of its numbers and a call."""
    fields = [bitldp.FixedPoint(bits, integer_bits=5) for bits in (10, 20)]
    frr = bitldp.FRR(features=NUMBERS, bits=10, integer_bits=5, epsilon=1e4)
    wide = bitldp.FRR(features=NUMBERS, bits=20, integer_bits=5, epsilon=1e4)
    numeric = {
        "Duchi": bitldp.numeric.Duchi(epsilon=1.0),
        "Duchi, cube": bitldp.numeric.Duchi(epsilon=1.0, features=16, spend="cube"),
        "Piecewise": bitldp.numeric.Piecewise(epsilon=1.0),
        "MVU": bitldp.MVU(epsilon=1.0, input_bits=4, output_bits=4),
    }
    zero_end = _core.Grid(300, low=0.0, high=1e6)
    window = _core.Window(300, 30, 0.5)
    box = _core.Cap([(300, 30)] * 16, [], 0, 1 << 62)
    found: dict[str, tuple[type, Callable[[NDArray[np.floating]], object]]] = {}
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        for codec in fields:
            found[f"encode l={codec.bits} {name}"] = (dtype, codec.encode)
        for mechanism in (frr, wide):
            record = (1, NUMBERS)
            call = _release(mechanism.channel, mechanism.codec, record)
            found[f"FRR l={mechanism.bits} {name}"] = (dtype, call)
        for title, one in numeric.items():
            shape = (-1, 16) if title == "Duchi, cube" else (-1,)
            found[f"{title} {name}"] = (dtype, _mechanism(one, shape))
        found[f"grid from 0 {name}"] = (
            dtype,
            lambda x: window.randomize(x, zero_end, None, KEY, "codes", None, 1, 0),
        )
        found[f"cap, 16 numbers {name}"] = (
            dtype,
            lambda x: box.randomize(x.reshape(-1, 16), zero_end, None, KEY, "codes", None, 1, 0),
        )
    # A subnormal number stands for reports that are all about their record, zero for reports at random.
    for title, shape in CAPS.items():
        found[f"cap, never : always {title}"] = (np.float64, _about(*shape))
    return found


def _release(channel: _core.Bits, codec: _core.FixedPoint, shape: tuple[int, ...]) -> Callable[..., object]:
    out = channel.randomize(np.zeros(shape, np.float32), codec, KEY, "codes", None, 1, 0)
    return lambda x: channel.randomize(x.reshape(shape), codec, KEY, "codes", out, 1, 0)


def _about(
    windows: list[tuple[int, int]], subsets: list[tuple[int, int]], hits: int
) -> Callable[..., object]:
    # A channel for each array, all used as often: where a channel lies takes time, too.
    never = [_core.Cap(windows, subsets, hits, 0) for _ in range(4)]
    always, zeros = _core.Cap(windows, subsets, hits, 1 << 64), cycle(never[:2])
    rows = [points for points, _ in windows] + [size for size, _ in subsets]
    codes = (np.arange(NUMBERS // len(rows))[:, None] * 5 % np.array(rows)).astype(np.uint8)
    out = always.randomize(codes, None, None, KEY, "codes", None, 1, 0)

    def call(x: NDArray[np.floating]) -> object:
        channel = {0.0: next(zeros), 1.0: never[2], 0.5: never[3]}.get(float(x[0]), always)
        return channel.randomize(codes, None, None, KEY, "codes", out, 1, 0)

    return call


def _mechanism(mechanism: bitldp.Mechanism, shape: tuple[int, ...]) -> Callable[..., object]:
    return lambda x: mechanism.randomize(x.reshape(shape), rng=1, threads=1)


def measure(call: Callable[[NDArray[np.floating]], object], dtype: type, rounds: int) -> dict[str, Measured]:
    """Time all arrays in turn and compare each of `PAIRS`.

    Parameters
    ----------
    call : callable
        Takes an array of `NUMBERS` numbers.
    dtype : type
        float32 or float64.
    rounds : int
        Calls with each array.

    Returns
    -------
    dict
        By pair, of the fastest 80 % of the calls of each kind.
    """
    values = [TINY[dtype] if name == "tiny" else value for name, value in ARRAYS.items()]
    arrays = [np.full(NUMBERS, value, dtype) for value in values]
    times = np.empty((len(arrays), rounds))
    orders = np.random.default_rng(1).permuted(np.tile(np.arange(len(arrays)), (rounds, 1)), axis=1).tolist()
    clock = time.perf_counter_ns
    for array in arrays * 20:
        call(array)
    given = np.empty(NUMBERS, dtype)  # all lie in one place: where an array lies takes time, too
    for i, order in enumerate(orders):  # whoever comes later finds a warmer cache
        for kind in order:
            given[:] = arrays[kind]
            start = clock()
            call(given)
            times[kind, i] = clock() - start
    fastest = np.sort(times, axis=1)[:, : int(KEPT * rounds)]
    kept = dict(zip(ARRAYS, fastest, strict=True))
    return {name: _welch(kept[first], kept[second]) for name, (first, second) in PAIRS.items()}


def _welch(first: NDArray[np.float64], second: NDArray[np.float64]) -> Measured:
    spread = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    difference = second.mean() - first.mean()
    return Measured(float(difference / first.mean()), float(difference / max(spread, 1e-9)))


def main() -> int:
    """Print the table; return 1 where a pair is outside its control band."""
    parser = argparse.ArgumentParser(description="Whether time tells one value from another.")
    parser.add_argument("--rounds", type=int, default=4_000, help="calls of each kind (default: %(default)s)")
    parser.add_argument("--record", action="store_true", help="keep the figures in benches/records")
    options = parser.parse_args()
    rounds = options.rounds
    print(f"{_core.isa()}, {NUMBERS:,} numbers a call, {rounds:,} calls of each kind, fastest {KEPT:.0%}")
    print(f"{'':24}" + "".join(f"{name:>22}" for name in PAIRS) + f"{'band':>10}")
    failed, results = 0, []
    for title, (dtype, call) in cases().items():
        found = measure(call, dtype, rounds)
        band = max(LIMIT, *(abs(found[name].t) for name in CONTROLS))
        told = abs(found[SUSPECT].t) > band and abs(found[SUSPECT].ratio) > SMALLEST
        failed += told
        pairs = {name: {"ratio": each.ratio, "t": each.t} for name, each in found.items()}
        results.append({"name": title, "pairs": pairs, "band": band, "told": told})
        cells = "".join(f"{each.ratio:+10.2%} (t {each.t:+7.1f})" for each in found.values())
        print(f"{title:24}{cells}{band:10.1f}{'  TOLD' if told else ''}", flush=True)
    if options.record:
        machine = {"cpu": cpu_name(), "isa": _core.isa(), "bitldp": _core.__version__}
        keep("timing.jsonl", {"machine": machine, "rounds": rounds, "limit": LIMIT, "results": results})
    print(f"{failed} of {len(cases())} cases are told by time" if failed else "time tells nothing")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
