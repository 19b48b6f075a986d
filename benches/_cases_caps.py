"""What is timed of caps: boxes of cells, lists of elements, and both."""

from __future__ import annotations

from itertools import product

import numpy as np
from _cases import SEED, Array, Case
from _checks import near
from _measure import require
from bitldp import _core

RECORDS = 1 << 16
HIGH = 1 << 62
_SHARE = HIGH / 2.0**64
_POINTS, _REACH, _ELEMENTS = 17, 4, 8
_KEY = bytes(32)


def cases() -> list[Case]:
    """Return the cases of caps, with inputs and outputs allocated and touched."""
    rng = np.random.default_rng(SEED + 5)
    return [
        _case("cap, box of 3 numbers", rng, 3, 0, 0),
        _case("cap, box of 16 numbers", rng, 16, 0, 0),
        _case("cap, lists of 5 attributes", rng, 0, 5, 3),
        _case("cap, 3 numbers and 3 attributes", rng, 3, 3, 2),
    ]


def _case(name: str, rng: np.random.Generator, windows: int, subsets: int, hits: int) -> Case:
    channel = _core.Cap([(_POINTS, _REACH)] * windows, [(_ELEMENTS, 1)] * subsets, hits, HIGH)
    sizes = [_POINTS] * windows + [_ELEMENTS] * subsets
    x = rng.integers(0, sizes, (RECORDS, len(sizes)), dtype=np.uint8)
    out = np.ones_like(_ours(channel, x))
    return Case(
        name,
        ours=lambda threads: channel.randomize(x, None, None, _KEY, "codes", out, threads, 0),
        reference=lambda: _plain(channel, x, rng),
        tuned=None,
        check=lambda: _check(channel, x, rng),
        keystream=4 * RECORDS * (1 + 2 * len(sizes)),  # a draw for the record, and two for each column
        read=x.nbytes,
        written=out.nbytes,
    )


def _ours(channel: _core.Cap, x: Array, threads: int = 1) -> Array:
    return channel.randomize(x, None, None, _KEY, "codes", None, threads, 0)


def _plain(channel: _core.Cap, x: Array, rng: np.random.Generator) -> Array:
    """Return reports of the same law: uniform ones, of which some are replaced by ones about the record."""
    windows = len(channel.windows)
    is_near = rng.random((len(x), 1), dtype=np.float32) < _SHARE
    about = x[:, :windows] + rng.integers(0, 2 * _REACH + 1, (len(x), windows), dtype=np.uint8)
    anywhere = rng.integers(0, _POINTS + 2 * _REACH, about.shape, dtype=np.uint8)
    patterns, chances = _patterns(channel)
    drawn = patterns[rng.choice(len(patterns), len(x), p=chances)]
    shape = (len(x), len(channel.subsets))
    others = rng.integers(0, _ELEMENTS - 1, shape, dtype=np.uint8)
    others += others >= x[:, windows:]
    hits = np.where(is_near, drawn, rng.random(shape, dtype=np.float32) < 1.0 / _ELEMENTS)
    return np.hstack([np.where(is_near, about, anywhere), np.where(hits, x[:, windows:], others)])


def _patterns(channel: _core.Cap) -> tuple[Array, Array]:
    """Return which attributes may be hits in a report about its record, and the chance of each pattern."""
    patterns = np.array(list(product((False, True), repeat=len(channel.subsets))))
    counts = patterns.sum(axis=1)
    chances = np.where(counts >= channel.hits, (_ELEMENTS - 1.0) ** -counts, 0.0)
    return patterns, chances / chances.sum()


def _check(channel: _core.Cap, x: Array, rng: np.random.Generator) -> None:
    """Check how many reports are about their record, and how often each column is."""
    ours, windows = _ours(channel, x), len(channel.windows)
    require(np.array_equal(ours, _ours(channel, x, 2)), "the reports depend on the number of threads")
    part, whole = channel.share
    law = _SHARE + (1.0 - _SHARE) * part / whole
    patterns, chances = _patterns(channel)
    own = np.hstack([np.ones(windows), chances @ patterns])
    by_chance = np.array(
        [(2 * _REACH + 1) / (_POINTS + 2 * _REACH)] * windows + [1.0 / _ELEMENTS] * len(channel.subsets)
    )
    columns = _SHARE * own + (1.0 - _SHARE) * by_chance
    for name, reports in {"ours": ours, "reference": _plain(channel, x, rng)}.items():
        offsets = reports[:, :windows].astype(np.int16) - x[:, :windows]
        about = np.hstack([(offsets >= 0) & (offsets <= 2 * _REACH), reports[:, windows:] == x[:, windows:]])
        inside = about[:, :windows].all(axis=1) & (about[:, windows:].sum(axis=1) >= channel.hits)
        near(f"{name}, reports about the record", float(np.mean(inside)), law, len(x))
        for column, (found, chance) in enumerate(zip(about.mean(axis=0), columns, strict=True)):
            near(f"{name}, column {column}", float(found), float(chance), len(x))
