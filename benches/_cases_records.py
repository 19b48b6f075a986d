"""What is timed of the mechanisms for whole vectors: a coordinate that is selected, and records as signs."""

from __future__ import annotations

from collections.abc import Callable

import _checks_records as _checks
import bitldp
import numpy as np
from _cases import FEATURES, SEED, Array, Case
from bitldp import reference

CLIENTS, DIMENSIONS, LARGEST = 200, 10_000, 1_000
RECORDS = 2_000
SIGN_EPSILON = 8.0
CAP_EPSILON, _ATTRIBUTES, _QUARTERS = 8.0, 64, 4
_DRAWS = 16  # bytes of keystream that a selection takes
_ONE = 2.0**64


def cases() -> list[Case]:
    """Return the cases of vectors, with inputs and outputs allocated and touched."""
    rng = np.random.default_rng(SEED + 4)
    joint = (_joint(rng, 3, 1 << 18), _joint(rng, 16, 1 << 16))
    return [*_selections(rng), _cube(rng), _sampled(rng), *joint, _categories(rng), _both(rng)]


def _selections(rng: np.random.Generator) -> list[Case]:
    """Return PS against a partition, and EXP against a sort."""
    x = rng.normal(size=(CLIENTS, DIMENSIONS)).astype(np.float32)
    largest, ranked = bitldp.PS(DIMENSIONS, k=LARGEST, epsilon=1.0), bitldp.EXP(DIMENSIONS, epsilon=1.0)
    share, law = float(largest.probabilities()[-LARGEST:].sum()), ranked.probabilities()

    def case(mechanism: bitldp.PS | bitldp.EXP, plain: Callable[[], Array]) -> Case:
        out = np.ones_like(mechanism.randomize(x))
        return Case(
            f"{type(mechanism).__name__}, d = 10,000, float32",
            ours=lambda threads: mechanism.randomize(x, out=out, threads=threads),
            reference=plain,
            tuned=None,
            check=lambda: _checks.ranks(mechanism, x, plain),
            keystream=_DRAWS * CLIENTS,
            read=x.nbytes,
            written=out.nbytes,
        )

    return [
        case(largest, lambda: reference.select_top(x, LARGEST, share, rng)),
        case(ranked, lambda: reference.select_by_rank(x, law, rng)),
    ]


def _cube(rng: np.random.Generator) -> Case:
    """Return PrivUnit on the hypercube: dither to signs, then a report near them or far from them."""
    mechanism = bitldp.HypercubePrivUnit(FEATURES, epsilon=SIGN_EPSILON)
    near, share = mechanism.threshold, mechanism.channel.high / _ONE
    assert near is not None
    x = rng.uniform(-1.0, 1.0, (RECORDS, FEATURES)).astype(np.float32)
    out = np.ones_like(mechanism.randomize(x))

    def plain(records: Array) -> Array:
        return reference.cap(_dithered(records, rng), near, share, rng)

    return Case(
        "HypercubePrivUnit, r = 768",
        ours=lambda threads: mechanism.randomize(x, out=out, threads=threads),
        reference=lambda: plain(x),
        tuned=None,
        check=lambda: _checks.cap(mechanism, x, plain),
        keystream=x.size + x.size // 8,  # a byte of dither for a number, and a random bit
        read=x.nbytes,
        written=out.nbytes,
    )


def _categories(rng: np.random.Generator) -> Case:
    """Return records of categories as one report, of which enough are true."""
    mechanism = bitldp.RecordCap([_QUARTERS] * _ATTRIBUTES, epsilon=CAP_EPSILON, m=_ATTRIBUTES)
    (channel,), hits = mechanism.channels, mechanism.hits
    assert hits is not None
    x = rng.integers(0, _QUARTERS, (RECORDS, _ATTRIBUTES), dtype=np.uint8)
    share = channel.high / _ONE

    def plain(records: Array) -> Array:
        return reference.categories_cap(records, _QUARTERS, hits, share, rng)

    return Case(
        "RecordCap, 64 attributes of 4",
        ours=lambda threads: mechanism.randomize(x, threads=threads),
        reference=lambda: plain(x),
        tuned=None,
        check=lambda: _checks.categories(mechanism, x, plain),
        keystream=x.size + x.size // 8,  # a byte for a category, and a hit
        read=x.nbytes,
        written=x.nbytes,
    )


def _sampled(rng: np.random.Generator) -> Case:
    """Return the signs of a few sampled numbers as one symbol of randomized response."""
    mechanism = bitldp.SampledSigns(FEATURES, epsilon=SIGN_EPSILON)
    k, share = mechanism.k, mechanism.channel.high / _ONE
    assert k is not None
    x = rng.uniform(-1.0, 1.0, (RECORDS, FEATURES)).astype(np.float32)
    places = 1 << np.arange(k - 1, -1, -1)

    def plain(records: Array) -> tuple[Array, Array]:
        drawn = np.argpartition(rng.random(records.shape, dtype=np.float32), k, axis=1)[:, :k]
        symbols = _dithered(np.take_along_axis(records, drawn, axis=1), rng) @ places
        return drawn, reference.grr(symbols, 1 << k, share, rng)

    indices, symbols = mechanism.randomize(x)
    return Case(
        "SampledSigns, r = 768",
        ours=lambda threads: mechanism.randomize(x, threads=threads),
        reference=lambda: plain(x),
        tuned=None,
        check=lambda: _checks.symbols(mechanism, x.shape, share, plain),
        keystream=(13 * k + 4) * RECORDS,  # 8 for a coordinate, 5 for its sign, 4 for the symbol
        read=x.nbytes,
        written=indices.nbytes + symbols.nbytes,
        batch=False,  # coordinates are drawn on one thread
    )


def _joint(rng: np.random.Generator, features: int, records: int) -> Case:
    """Return windows around several numbers at once: all of a record, or those that are drawn."""
    mechanism = bitldp.JointWindow(features, epsilon=SIGN_EPSILON)
    k, levels, reach = mechanism.k, mechanism.levels, mechanism.reach
    assert k is not None
    assert levels is not None
    assert reach is not None
    share = mechanism.channel.high / _ONE
    x = rng.uniform(-1.0, 1.0, (records, features)).astype(np.float32)

    def plain(records: Array) -> Array | tuple[Array, Array]:
        drawn = None
        if k < features:
            drawn = np.argpartition(rng.random(records.shape, dtype=np.float32), k, axis=1)[:, :k]
            records = np.take_along_axis(records, drawn, axis=1)
        steps = (records + 1.0) * ((levels - 1) / 2.0)
        points = np.minimum((steps + rng.random(steps.shape, dtype=np.float32)).astype(np.int64), levels - 1)
        cells = reference.joint_window(points, levels, reach, share, rng)
        return cells if drawn is None else (drawn, cells)

    written = mechanism.randomize(x)
    return Case(
        f"JointWindow, d = {features}",
        ours=lambda threads: mechanism.randomize(x, threads=threads),
        reference=lambda: plain(x),
        tuned=None,
        check=lambda: _checks.joint(mechanism, x, plain),
        keystream=(9 * k + 8) * records + (8 * k * records if k < features else 0),
        read=x.nbytes,
        written=sum(part.nbytes for part in written) if isinstance(written, tuple) else written.nbytes,
        batch=k == features,  # coordinates are drawn on one thread
    )


def _both(rng: np.random.Generator) -> Case:
    """Return numbers and categories by one channel: all of a record is near, or anything."""
    sizes, features, records = (3, 5), 2, 1 << 16
    mechanism = bitldp.MixedCap(sizes, features=features, epsilon=SIGN_EPSILON, levels=12, reach=2, subset=1,
                                hits=len(sizes))  # fmt: skip
    share, levels, cells = mechanism.channel.high / _ONE, 12, 16
    x = rng.uniform(-1.0, 1.0, (records, features)).astype(np.float32)
    y = np.stack([rng.integers(0, size, records) for size in sizes], axis=1)

    def plain(numbers: Array, categories: Array) -> tuple[Array, ...]:
        steps = (numbers + 1.0) * ((levels - 1) / 2.0)
        points = np.minimum((steps + rng.random(steps.shape, dtype=np.float32)).astype(np.int64), levels - 1)
        inside = rng.random((len(numbers), 1)) < share
        near = points + rng.integers(0, 5, points.shape)
        codes = np.where(inside, near, rng.integers(0, cells, points.shape))
        anything = np.stack([rng.integers(0, size, len(numbers)) for size in sizes], axis=1)
        answers = np.where(inside, categories, anything)
        return codes.astype(np.uint8), *(answers[:, [each]].astype(np.uint8) for each in range(len(sizes)))

    return Case(
        "MixedCap, 2 numbers and 2 attributes",
        ours=lambda threads: mechanism.randomize(x, y, threads=threads),
        reference=lambda: plain(x, y),
        tuned=None,
        check=lambda: _checks.both(mechanism, x, y, plain),
        keystream=(9 * features + 8 * len(sizes) + 8) * records,
        read=x.nbytes + y.nbytes,
        written=sum(part.nbytes for part in mechanism.randomize(x, y)),
    )


def _dithered(x: Array, rng: np.random.Generator) -> Array:
    """Return 1 with probability (1 + x)/2, as bytes."""
    ones: Array = rng.random(x.shape, dtype=np.float32) * 2.0 - 1.0 < x
    return ones.view(np.uint8)
