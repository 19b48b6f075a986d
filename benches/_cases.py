"""What is timed: the calls of each case, their cost at the least, and the goals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import _checks
import _tuned
import bitldp
import numpy as np
from bitldp import reference

Array = np.ndarray[Any, np.dtype[Any]]
Blocked = Callable[[Array, int, Array, np.random.Generator, Array], Array]

SEED = 20260101
BITS = 10
INTEGER_BITS = 5
RECORDS, FEATURES = 10_000, 768
SAMPLES = 1 << 20
FLIP = np.linspace(0.29, 0.52, BITS)


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes
    ----------
    name : str
        What is computed.
    ours : callable
        Takes the number of threads.
    reference, tuned : callable
        The same law in `bitldp.reference`, and in the fastest plain NumPy known (None: not written).
    check : callable
        Raises `WrongResultError` unless the law and the encoding are right.
    keystream : int
        Bytes of keystream that one call takes.
    read, written : int
        Bytes of input and output of one call.
    goal : float or None
        How many times faster than the reference one thread should be on AVX-512.
    most : float or None
        Seconds that a call of one thread may take on AVX-512.
    inner : int
        Calls in one timing: more for short ones.
    batch : bool
        Whether a second thread is worth its while.
    """

    name: str
    ours: Callable[[int], object]
    reference: Callable[[], object]
    tuned: Callable[[], object] | None
    check: Callable[[], None]
    keystream: int
    read: int
    written: int
    goal: float | None = None
    most: float | None = None
    inner: int = 1
    batch: bool = True


def cases() -> list[Case]:
    """Return every case, with inputs and outputs allocated and touched."""
    return [*_fixed_point(), *_categorical(), _record()]


def _fixed_point() -> list[Case]:
    rng = np.random.default_rng(SEED)
    x = rng.uniform(-9.0, 9.0, (RECORDS, FEATURES)).astype(np.float32)
    codec = bitldp.FixedPoint(BITS, integer_bits=INTEGER_BITS)
    channel = bitldp.Bits([list(1.0 - FLIP)], [list(FLIP)], FEATURES)
    moue = bitldp.MOUE(
        FEATURES, bits=BITS, integer_bits=INTEGER_BITS, epsilon=7680.0, alpha=2.0, sign="bitrand"
    )
    words = np.ones(x.shape, np.uint16)
    values = np.ones(x.shape, np.float32)
    planes = np.ones((RECORDS, FEATURES * BITS), np.uint8)
    p, q = _checks.probabilities(moue.channel)

    def flipped() -> Array:
        return reference.flip_bits(reference.encode(x, BITS, INTEGER_BITS), FLIP, rng)

    def case(output: str, out: Array, goal: float, plain: Callable[[], Array], tuned: Blocked) -> Case:
        return Case(
            f"float32 to {output}",
            ours=lambda threads: channel.randomize(x, codec, None, output, out, threads, 0),
            reference=plain,
            tuned=lambda: tuned(x, INTEGER_BITS, FLIP, rng, out),
            check=lambda: _checks.flips(channel, codec, x, output, flipped),
            keystream=4 * x.size,
            read=x.nbytes,
            written=out.nbytes,
            goal=goal,
        )

    return [
        case("codes", words, 40, flipped, _tuned.codes),
        case("values", values, 40, lambda: reference.decode(flipped(), BITS, INTEGER_BITS), _tuned.values),
        case("bits", planes, 42, lambda: reference.bits_of(flipped(), BITS), _tuned.planes),
        Case(
            "MOUE, float32 to codes",
            ours=lambda threads: moue.randomize(x, out=words, threads=threads),
            reference=lambda: reference.randomize_bits(reference.encode(x, BITS, INTEGER_BITS), p, q, rng),
            tuned=None,
            check=lambda: _checks.asymmetric(moue, x, p, q, rng),
            keystream=8 * x.size,
            read=x.nbytes,
            written=words.nbytes,
        ),
    ]


def _categorical() -> list[Case]:
    rng = np.random.default_rng(SEED + 1)
    return [_grr(rng), _brr(rng), _matrix(rng), _oue(rng)]


def _grr(rng: np.random.Generator) -> Case:
    count = 128
    mechanism = bitldp.GRR(count, epsilon=4.0)
    x = rng.integers(0, count, SAMPLES, dtype=np.uint16)
    out = np.ones_like(mechanism.randomize(x))
    p = float(mechanism.probabilities()[0, 0])
    return Case(
        "GRR, k = 128",
        ours=lambda threads: mechanism.randomize(x, out=out, threads=threads),
        reference=lambda: reference.grr(x, count, p, rng),
        tuned=lambda: _tuned.grr(x, count, p, rng),
        check=lambda: _checks.rows(
            lambda **options: mechanism.randomize(x, **options),
            [lambda: reference.grr(x, count, p, rng), lambda: _tuned.grr(x, count, p, rng)],
            _checks.expected(np.bincount(x, minlength=count), mechanism.probabilities()),
            own=(x, p),
        ),
        keystream=4 * SAMPLES,
        read=x.nbytes,
        written=out.nbytes,
        goal=11,
    )


def _brr(rng: np.random.Generator) -> Case:
    count = 1000
    mechanism = bitldp.BRR(count, epsilon=2.0)
    width = int(mechanism.m)
    law = mechanism.probabilities()
    high = float(law[0].max()) * width
    x = rng.integers(0, count, SAMPLES, dtype=np.uint16)
    starts = reference.window_starts(np.arange(count), count, width).astype(np.uint16)
    out = np.ones_like(mechanism.randomize(x))
    return Case(
        "BRR, N = 1000",
        ours=lambda threads: mechanism.randomize(x, out=out, threads=threads),
        reference=lambda: reference.window(x, count, width, high, rng),
        tuned=lambda: _tuned.window(x, starts, width, high, rng),
        check=lambda: _checks.rows(
            lambda **options: mechanism.randomize(x, **options),
            [
                lambda: reference.window(x, count, width, high, rng),
                lambda: _tuned.window(x, starts, width, high, rng),
            ],
            _checks.expected(np.bincount(x, minlength=count), law),
            own=(x, float(law[0, 0])),
        ),
        keystream=4 * SAMPLES,
        read=x.nbytes,
        written=out.nbytes,
        goal=25,
    )


def _matrix(rng: np.random.Generator) -> Case:
    count = 256
    law = rng.random((count, count))
    law /= law.sum(axis=1, keepdims=True)
    channel = bitldp.Matrix(law)
    grid = bitldp.Grid(count, low=0.0, high=1.0)
    x = rng.random(SAMPLES, dtype=np.float32)
    out = np.ones_like(channel.randomize(x, grid, None, None, "codes", None, None, 0))
    table = reference.alias_table(law)
    threshold, alias = table[0].astype(np.float32), table[1]

    def plain() -> Array:
        return reference.matrix_alias(reference.dither(x, count, 0.0, 1.0, rng), table, rng)

    def tuned() -> Array:
        return _tuned.dithered_matrix(x, threshold, alias, rng)

    return Case(
        "matrix 256 x 256, dithered",
        ours=lambda threads: channel.randomize(x, grid, None, None, "codes", out, threads, 0),
        reference=plain,
        tuned=tuned,
        check=lambda: _checks.rows(
            lambda rng, threads: channel.randomize(
                x, grid, None, _checks.key(rng), "codes", None, threads, 0
            ),
            [plain, tuned],
            _checks.expected(_checks.dithered_counts(x, count), channel.probabilities()),
        ),
        keystream=3 * SAMPLES,  # 8 bits of dither, 16 of the draw
        read=x.nbytes,
        written=out.nbytes,
        goal=11,
    )


def _oue(rng: np.random.Generator) -> Case:
    count, records = 128, 1 << 16
    mechanism = bitldp.OUE(count, epsilon=4.0)
    p, q = _checks.unary_probabilities(mechanism)
    x = rng.integers(0, count, records, dtype=np.uint16)
    out = np.ones((records, count), np.uint8)
    return Case(
        "OUE, k = 128, to bits",
        ours=lambda threads: mechanism.randomize(x, out=out, threads=threads),
        reference=lambda: reference.unary(x, count, p, q, rng),
        tuned=None,
        check=lambda: _checks.one_hot(mechanism, x, p, q, rng),
        keystream=(2 * count // 8 + 2) * records,
        read=x.nbytes,
        written=out.nbytes,
    )


def _record() -> Case:
    rng = np.random.default_rng(SEED + 2)
    mechanism = bitldp.FRR(FEATURES, bits=BITS, integer_bits=INTEGER_BITS, epsilon=400.0)
    x = rng.uniform(-9.0, 9.0, FEATURES).astype(np.float32)
    _, flip = _checks.probabilities(mechanism.channel)
    return Case(
        "one record of 768, FRR",
        ours=lambda threads: mechanism.randomize(x),
        reference=lambda: reference.flip_bits(reference.encode(x, BITS, INTEGER_BITS), flip, rng),
        tuned=None,
        check=lambda: _checks.one_record(mechanism, x, flip),
        keystream=4 * FEATURES,
        read=x.nbytes,
        written=2 * FEATURES,
        goal=40,
        most=2e-6,
        inner=2000,
        batch=False,
    )
