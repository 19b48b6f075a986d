"""What is timed: the calls of each case and their cost at the least; `_goals.py` has the goals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import _checks
import _tuned
import bitldp
import numpy as np
from bitldp import _core, reference

Array = np.ndarray[Any, np.dtype[Any]]
Blocked = Callable[[Array, int, Array, np.random.Generator, Array], Array]

SEED = 20260101
BITS = 10
INTEGER_BITS = 5
RECORDS, FEATURES = 10_000, 768
SAMPLES = 1 << 20
FLIP = np.linspace(0.29, 0.52, BITS)


@dataclass(frozen=True)
class Beside:
    """A call of one thread, and how many times its time another may take."""

    name: str
    call: Callable[[], object]
    times: float


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
        The same law in `bitldp.reference`, and in the fastest plain NumPy known (None: there is none).
    check : callable
        Raises `WrongResultError` unless the law and the encoding are right.
    keystream : int
        Bytes of keystream that one call takes.
    read, written : int
        Bytes of input and output of one call.
    beside : Beside, optional
        Another call that this one is measured by.
    inner : int
        Calls in one timing: more for short ones.
    batch : bool
        Whether a second thread is worth its while.
    """

    name: str
    ours: Callable[[int], object]
    reference: Callable[[], object] | None
    tuned: Callable[[], object] | None
    check: Callable[[], None]
    keystream: int
    read: int
    written: int
    beside: Beside | None = None
    inner: int = 1
    batch: bool = True


def cases() -> list[Case]:
    """Return every case, with inputs and outputs allocated and touched."""
    return [*_fixed_point(), *_categorical(), _record(), *_values(), *_keyed()]


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
    packed = np.ones(planes.size // 8, np.uint8)
    p, q = _checks.probabilities(moue.channel)

    def flipped() -> Array:
        return reference.flip_bits(reference.encode(x, BITS, INTEGER_BITS), FLIP, rng)

    def randomized(output: str, out: Array, threads: int) -> object:
        return channel.randomize(x, codec, None, output, out, threads, 0)

    def case(output: str, out: Array, plain: Callable[[], Array], tuned: Blocked | None) -> Case:
        return Case(
            f"float32 to {output}",
            ours=lambda threads: randomized(output, out, threads),
            reference=plain,
            tuned=None if tuned is None else lambda: tuned(x, INTEGER_BITS, FLIP, rng, out),
            check=lambda: _checks.flips(channel, codec, x, output, flipped),
            keystream=4 * x.size,
            read=x.nbytes,
            written=out.nbytes,
            beside=Beside("codes", lambda: randomized("codes", words, 1), 1.3)
            if output == "packed"
            else None,
        )

    return [
        case("codes", words, flipped, _tuned.codes),
        case("values", values, lambda: reference.decode(flipped(), BITS, INTEGER_BITS), _tuned.values),
        case("bits", planes, lambda: reference.bits_of(flipped(), BITS), _tuned.planes),
        case("packed", packed, lambda: np.packbits(reference.bits_of(flipped(), BITS)), None),
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
        *_uer(x, words, rng),
    ]


def _uer(x: Array, words: Array, rng: np.random.Generator) -> list[Case]:
    """Return UER of 9 to 11 bits, whose time should hardly depend on how many there are."""
    found = {
        bits: bitldp.UER(
            FEATURES, bits=bits, integer_bits=INTEGER_BITS, epsilon=7680.0, alpha=1.0, sign="bitrand"
        )
        for bits in (9, 10, 11)
    }

    def case(bits: int, other: int) -> Case:
        mechanism = found[bits]
        p, q = _checks.probabilities(mechanism.channel)
        return Case(
            f"UER, l = {bits}, float32 to codes",
            ours=lambda threads: mechanism.randomize(x, out=words, threads=threads),
            reference=lambda: reference.randomize_bits(reference.encode(x, bits, INTEGER_BITS), p, q, rng),
            tuned=None,
            check=lambda: _checks.asymmetric(mechanism, x, p, q, rng),
            keystream=(4 if mechanism.channel.symmetric else 8) * x.size,
            read=x.nbytes,
            written=words.nbytes,
            beside=Beside(f"l = {other}", lambda: found[other].randomize(x, out=words, threads=1), 1.3),
        )

    return [case(9, 10), case(10, 11), case(11, 9)]


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
        inner=2000,
        batch=False,
    )


def _values() -> list[Case]:
    """Return calls with one value, as a client makes them."""
    rng = np.random.default_rng(SEED + 5)
    number, category = np.array([0.25], np.float32), np.array([3], np.uint8)
    grr, duchi, piecewise = (
        bitldp.GRR(128, epsilon=4.0),
        bitldp.Duchi(epsilon=2.0),
        bitldp.Piecewise(epsilon=2.0),
    )
    p = float(grr.probabilities()[0, 0])

    def case(mechanism: Any, x: Array, plain: Callable[[], object]) -> Case:
        return Case(
            f"one value, {type(mechanism).__name__}",
            ours=lambda threads: mechanism.randomize(x),
            reference=plain,
            tuned=None,
            check=lambda: _checks.fresh(mechanism, x),
            keystream=0,
            read=x.nbytes,
            written=x.nbytes,
            inner=2000,
            batch=False,
        )

    return [
        case(grr, category, lambda: reference.grr(category, 128, p, rng)),
        case(duchi, number, lambda: reference.duchi(number, 2.0, rng)),
        case(piecewise, number, lambda: reference.piecewise(number, 2.0, rng)),
    ]


def _keyed() -> list[Case]:
    """Return random bits that are a function of key, id, column and value: a call for a record and column."""
    rng = np.random.default_rng(SEED + 6)
    count, columns = 128, 4
    channel = bitldp.Window(count, 1, 0.3)
    x = rng.integers(0, count, (1 << 14, columns), dtype=np.uint8)
    ids = np.arange(len(x), dtype=np.uint64)
    key = bytes(range(32))

    def ours(threads: int) -> Array:
        found: Array = channel.randomize(
            x, None, None, _core.KeyedRandomness(key, b"bench", ids), "codes", None, threads, 0
        )
        return found

    return [
        Case(
            "keyed coins, GRR, 65,536 cells",
            ours=ours,
            reference=None,
            tuned=None,
            check=lambda: _checks.keyed(ours, x, channel.high / 2.0**64),
            keystream=64 * x.size,
            read=x.nbytes,
            written=x.nbytes,
        )
    ]
