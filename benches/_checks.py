"""Checks of what is about to be timed: one key gives one answer in every form, and the law is right.

Every tolerance is six standard errors: a right law fails one comparison in half a billion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import bitldp
import numpy as np
from _measure import require
from bitldp import reference
from bitldp.mechanism.numeric import Numeric

Array = np.ndarray[Any, np.dtype[Any]]

SIGMAS = 6.0
_SEED = 7
_ONE = 2**64


def key(rng: int | None) -> bytes | None:
    """Return 32 bytes for a seed, or None for none."""
    return None if rng is None else np.random.default_rng(rng).bytes(32)


def probabilities(channel: bitldp.Bits) -> tuple[Array, Array]:
    """Return p and q of a channel with one law, most significant position first."""
    p, q = np.array(channel.thresholds()[0], dtype=object).T / _ONE
    return p.astype(np.float64), q.astype(np.float64)


def unary_probabilities(mechanism: bitldp.OUE) -> tuple[float, float]:
    """Return p and q of one-hot strings."""
    p, q = mechanism.channel.thresholds()
    return p / _ONE, q / _ONE


def dithered_counts(x: Array, points: int) -> Array:
    """Return how many values of [0, 1] are expected at each point of a dithering grid."""
    position = x.astype(np.float64) * (points - 1)
    below = np.floor(position).astype(np.intp)
    up = position - below
    counts = np.bincount(below, 1.0 - up, minlength=points)
    counts[1:] += np.bincount(below, up, minlength=points)[: points - 1]
    return counts


def expected(counts: Array, law: Array) -> Array:
    """Return how often each report is expected. Not as a matrix product, which would wake BLAS' threads."""
    times: Array = (counts[:, None] * law).sum(axis=0)
    return times


def flips(
    channel: bitldp.Bits,
    codec: bitldp.FixedPoint,
    x: Array,
    output: str,
    plain: Callable[[], Array],
) -> None:
    """Check the symmetric channel in one form of output, and the reference."""
    bits, integer_bits = codec.bits, codec.integer_bits
    _, flip = probabilities(channel)
    secret = key(_SEED)
    codes = channel.randomize(x, codec, secret, "codes", None, 1, 0)
    as_asked = codes
    if output == "values":
        as_asked = reference.decode(codes, bits, integer_bits)
    elif output == "bits":
        as_asked = reference.bits_of(codes, bits)
    elif output == "packed":
        as_asked = np.packbits(reference.bits_of(codes, bits))
    for threads in (1, 2):
        reports = channel.randomize(x, codec, secret, output, None, threads, 0)
        require(np.array_equal(reports, as_asked), f"{output}: another answer on {threads} threads")
    truth = reference.encode(x, bits, integer_bits)
    require(np.array_equal(codec.encode(x), truth), "codes: encoded in another way than the reference")
    for name, reports in (("ours", codes), ("reference", plain())):
        for shift, expected in enumerate(flip[::-1]):
            rate = np.mean((reports ^ truth) >> shift & 1, dtype=np.float64)
            near(f"{name}, flips of bit {bits - 1 - shift}", rate, float(expected), x.size)


def asymmetric(
    mechanism: bitldp.MOUE | bitldp.UER, x: Array, p: Array, q: Array, rng: np.random.Generator
) -> None:
    """Check a channel with p other than 1 - q, and the reference."""
    truth = reference.encode(x, mechanism.bits, mechanism.integer_bits)
    codes = mechanism.randomize(x, rng=_SEED, threads=1)
    require(
        np.array_equal(codes, mechanism.randomize(x, rng=_SEED, threads=2)),
        f"{mechanism}: depends on the threads",
    )
    for name, reports in (("ours", codes), ("reference", reference.randomize_bits(truth, p, q, rng))):
        for shift in range(mechanism.bits):
            was_one = (truth >> shift & 1).astype(bool)
            is_one = reports >> shift & 1
            for chance, of in ((p, was_one), (q, ~was_one)):
                expected = float(chance[mechanism.bits - 1 - shift])
                if of.any():
                    rate = np.mean(is_one[of], dtype=np.float64)
                    near(f"{mechanism}, {name}, bit {shift}", rate, expected, int(of.sum()))


def rows(
    ours: Callable[..., Array],
    others: Sequence[Callable[[], Array]],
    times: Array,
    own: tuple[Array, float] | None = None,
) -> None:
    """Check a categorical channel: how often each report occurs and, with `own`, is the truth."""
    reports = ours(rng=_SEED, threads=1)
    require(np.array_equal(reports, ours(rng=_SEED, threads=2)), "reports depend on the number of threads")
    total = times.sum()
    for name, drawn in [("ours", reports), *((f"NumPy {i}", each()) for i, each in enumerate(others))]:
        counts = np.bincount(drawn.ravel(), minlength=len(times))
        require(len(counts) == len(times), f"{name}: a report outside the range")
        error = np.abs(counts - times) / np.sqrt(times * (1.0 - times / total))
        require(bool((error < SIGMAS).all()), f"{name}: the reports do not follow the law")
        if own is not None:
            truth, chance = own
            near(f"{name}, true reports", float(np.mean(drawn == truth)), chance, truth.size)


def one_hot(mechanism: bitldp.OUE, x: Array, p: float, q: float, rng: np.random.Generator) -> None:
    """Check a unary encoding, and the reference."""
    reports = mechanism.randomize(x, rng=_SEED, threads=1)
    require(
        np.array_equal(reports, mechanism.randomize(x, rng=_SEED, threads=2)), "OUE: depends on the threads"
    )
    for name, drawn in (
        ("ours", reports),
        ("reference", reference.unary(x, mechanism.categories, p, q, rng)),
    ):
        own = int(drawn[np.arange(len(x)), x].sum(dtype=np.int64))
        others = int(drawn.sum(dtype=np.int64)) - own
        near(f"OUE, {name}, own position", own / len(x), p, len(x))
        count = drawn.size - len(x)
        near(f"OUE, {name}, other positions", others / count, q, count)


def one_record(mechanism: bitldp.FRR, x: Array, flip: Array) -> None:
    """Check single records: fresh randomness for each, and the law over many."""
    require(not np.array_equal(mechanism.randomize(x), mechanism.randomize(x)), "two calls gave one answer")
    many = np.stack([mechanism.randomize(x) for _ in range(2000)])
    wrong: Any = many ^ reference.encode(x, mechanism.bits, mechanism.integer_bits)
    for shift, expected in enumerate(flip[::-1]):
        rate = np.mean(wrong >> shift & 1, dtype=np.float64)
        near(f"records, flips of bit {mechanism.bits - 1 - shift}", rate, float(expected), many.size)


def letters(
    mechanism: Numeric, x: Array, output: str, others: Sequence[tuple[Callable[[], Array], float]]
) -> None:
    """Check a numeric mechanism and laws in NumPy: mean and variance of the letters, in parts of [-1, 1].

    Each of `others` comes with what its variance may differ by, as a share: grids are a little wider than the
    continuous laws, and a law that is reported as bits is brought here as letters.
    """
    codes = mechanism.randomize(x, rng=_SEED, threads=1)
    reports = mechanism.randomize(x, rng=_SEED, threads=1, output=output)
    as_asked = codes if output == "codes" else mechanism.decode(codes).astype(x.dtype)
    require(np.array_equal(reports, as_asked), f"{output}: another answer than the codes")
    again = mechanism.randomize(x, rng=_SEED, threads=2, output=output)
    require(np.array_equal(reports, again), "reports depend on the number of threads")
    true, drawn = x.astype(np.float64), [("ours", mechanism.decode(codes), 0.0)]
    drawn += [(f"NumPy {i}", each().astype(np.float64), share) for i, (each, share) in enumerate(others)]
    variance = mechanism.variance(x)
    parts = np.minimum(((true + 1.0) * 4.0).astype(np.intp), 7)
    for name, values, share in drawn:
        for part in range(8):
            of = parts == part
            noise, spread = (values - true)[of], float(variance[of].mean())
            error = abs(float(noise.mean())) / math.sqrt(spread / noise.size)
            require(error < SIGMAS, f"{name}: biased in part {part} of the interval")
            squares = np.square(noise)
            error = float(squares.std()) / math.sqrt(noise.size)
            near = abs(float(squares.mean()) - spread) <= SIGMAS * error + share * spread
            require(near, f"{name}: another variance in part {part} of the interval")


def near(name: str, rate: float, expected: float, count: int) -> None:
    """Check a rate of `count` events against its probability."""
    error = math.sqrt(expected * (1.0 - expected) / count)
    require(abs(rate - expected) <= SIGMAS * error, f"{name}: rate {rate:.6f}, expected {expected:.6f}")


def fresh(mechanism: Any, x: Array) -> None:
    """Check that calls without a key differ from each other, and follow the law of a value."""
    drawn = np.array([mechanism.randomize(x)[0] for _ in range(4000)])
    law = mechanism.probabilities()
    many = mechanism.randomize(np.repeat(x, 1 << 18), rng=_SEED)
    share = np.bincount(many, minlength=law.shape[1]) / many.size
    times = np.bincount(drawn, minlength=law.shape[1])
    require(len(np.unique(drawn)) > 1, f"{mechanism}: fresh calls are all alike")
    bound = SIGMAS * np.sqrt(np.maximum(share, 1e-3) * len(drawn)) + 1.0
    require(bool((np.abs(times - share * len(drawn)) <= bound).all()), f"{mechanism}: one value's law")


def keyed(ours: Callable[[int], Array], x: Array, high: float) -> None:
    """Check that keyed reports do not depend on the threads, and are true as often as they should."""
    reports = ours(1)
    require(np.array_equal(reports, ours(2)), "keyed randomness depends on the number of threads")
    true = np.count_nonzero(reports == x) / x.size
    require(abs(true - high) <= SIGMAS * math.sqrt(high * (1.0 - high) / x.size), "keyed randomness: the law")
