"""Caps: the exact epsilon by enumeration and by fractions, the sampled law, golden streams, and audits."""

from __future__ import annotations

import hashlib
import itertools
import math
import pickle
from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp._core import Cap, Grid, KeyedRandomness
from bitldp.audit import audit
from bitldp.verify import laws

ONE = 1 << 64
KEY = bytes(range(32))

# A channel, a record of it, and the digest of its reports (`_digest`).
SMALL = {
    "box": (([(5, 1), (3, 2)], [], 0, ONE // 3), (4, 0), "230d481b0f79445c"),
    "lists of one": (([], [(5, 1), (3, 1)], 1, ONE // 2), (4, 1), "ec5257df914951a3"),
    "lists of several": (([], [(3, 1), (4, 2), (2, 1)], 2, ONE // 4), (2, 1, 0), "b23a75fcb548c4ad"),
    "product": (([(4, 1)], [(3, 1), (3, 2)], 1, ONE // 2), (3, 2, 0), "dfccd981caae2b7e"),
}


def run(channel, x, *, grid=None, letters=None, key=KEY, output="codes", threads=None, first_chunk=0):
    return channel.randomize(x, grid, letters, key, output, None, threads, first_chunk)


def near_reports(channel, x):
    """Return whether each of all reports is in N(x), one after the other."""
    cells = [range(points + 2 * reach) for points, reach in channel.windows]
    sets = [list(itertools.combinations(range(k), w)) for k, w in channel.subsets]
    count = len(cells)
    found = {}
    for report in itertools.product(*cells, *sets):
        inside = all(0 <= report[j] - x[j] <= 2 * reach for j, (_, reach) in enumerate(channel.windows))
        hits = sum(x[count + j] in report[count + j] for j in range(len(sets)))
        found[report] = inside and hits >= channel.hits
    return found


def law_of(channel, x):
    near = near_reports(channel, x)
    high, inside = Fraction(channel.high, ONE), sum(near.values())
    return {
        each: (high / inside if is_near else 0) + (1 - high) / len(near) for each, is_near in near.items()
    }


def parsed(channel, row):
    report, at = [int(cell) for cell in row[: len(channel.windows)]], len(channel.windows)
    for k, w in channel.subsets:
        width = 1 if w == 1 else k
        own = row[at : at + width]
        report.append((int(own[0]),) if w == 1 else tuple(np.flatnonzero(own).tolist()))
        at += width
    return tuple(report)


def share_of(windows, subsets, hits):
    """Return t by dynamic programming in fractions, written anew."""
    chances = [Fraction(1)]  # of each number of hits
    for k, w in subsets:
        hit = Fraction(w, k)
        chances = [
            (chances[h] * (1 - hit) if h < len(chances) else 0) + (chances[h - 1] * hit if h else 0)
            for h in range(len(chances) + 1)
        ]
    return math.prod(
        (Fraction(2 * b + 1, p + 2 * b) for p, b in windows), start=sum(chances[hits:], Fraction(0))
    )


def exact(high, share):
    """Return ln(1 + A / ((1 - A) t)), to 60 digits."""
    ratio = 1 + Fraction(high, ONE - high) / share
    with localcontext(Context(prec=90)):
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


@pytest.mark.parametrize("name", SMALL)
def test_epsilon_is_the_largest_log_ratio_of_the_whole_matrix(name):
    channel = Cap(*SMALL[name][0])
    rows = [range(points) for points, _ in channel.windows] + [range(k) for k, _ in channel.subsets]
    table = [law_of(channel, x) for x in itertools.product(*rows)]
    assert all(sum(row.values()) == 1 for row in table)
    worst = max(max(row[each] for row in table) / min(row[each] for row in table) for each in table[0])
    share = Fraction(*channel.share)
    assert worst == 1 + Fraction(channel.high, ONE - channel.high) / share
    assert math.log(worst) * (1 - 1e-15) <= channel.epsilon <= math.log(worst) * (1 + 1e-12)


def _drawn(rng):
    windows = [(int(rng.integers(2, 400)), int(rng.integers(0, 60))) for _ in range(rng.integers(0, 6))]
    sizes = [int(2 ** rng.uniform(1, 9)) for _ in range(rng.integers(0 if windows else 1, 9))]
    subsets = [(k, int(rng.integers(1, k))) for k in sizes]
    high = int(rng.integers(1, ONE, dtype=np.uint64, endpoint=False)) >> int(rng.integers(0, 60))
    return windows, subsets, int(rng.integers(0, len(subsets) + 1)), max(high, 1)


@pytest.mark.slow
def test_a_thousand_constructions_are_never_below_the_exact_epsilon():
    rng = np.random.default_rng(24)
    for _ in range(1_000):
        windows, subsets, hits, high = _drawn(rng)
        channel, share = Cap(windows, subsets, hits, high), share_of(windows, subsets, hits)
        assert Fraction(*channel.share) == share
        assert math.gcd(*channel.share) == 1
        if share == 1:
            assert channel.epsilon == 0.0
            continue
        truth = exact(high, share)
        with localcontext(Context(prec=90)):
            assert truth <= Decimal(channel.epsilon) <= truth * (1 + Decimal("1e-9")), channel


def test_the_ends_of_the_probability():
    box = [(5, 1)], [], 0
    assert Cap(*box, 0).epsilon == 0.0
    assert Cap(*box, ONE).epsilon == math.inf
    assert set(run(Cap(*box, ONE), np.full((500, 1), 4)).ravel().tolist()) == {4, 5, 6}
    assert Cap([], [(3, 1)], 0, ONE // 2).epsilon == 0.0  # N(x) is everything


@pytest.mark.statistical
@pytest.mark.parametrize("name", SMALL)
def test_reports_follow_the_law(name):
    """With n = 40,000: chi-square at alpha = 1e-6 (Wilson and Hilferty), fixed key."""
    n = 40_000
    arguments, x, _ = SMALL[name]
    channel = Cap(*arguments)
    counts = Counter(parsed(channel, row) for row in run(channel, np.tile(x, (n, 1))))
    law = law_of(channel, x)
    assert set(counts) <= set(law)
    chi = sum((counts[each] - n * float(p)) ** 2 / (n * float(p)) for each, p in law.items())
    freedom = len(law) - 1
    assert chi < freedom * (1 - 2 / (9 * freedom) + 4.7534 * math.sqrt(2 / (9 * freedom))) ** 3


def _digest(channel):
    rows = [points for points, _ in channel.windows] + [k for k, _ in channel.subsets]
    x = np.arange(3_000)[:, None] * 7 // 3 % np.array(rows)
    keyed = KeyedRandomness(KEY, b"golden", np.arange(3_000, dtype=np.uint64))
    reports = [run(channel, x, output=form) for form in ("codes", "packed")] + [run(channel, x, key=keyed)]
    return hashlib.sha256(b"".join(each.astype("<u4").tobytes() for each in reports)).hexdigest()[:16]


@pytest.mark.parametrize("name", SMALL)
def test_streams_are_those_of_before(name):
    arguments, _, golden = SMALL[name]
    assert _digest(Cap(*arguments)) == golden


@pytest.mark.parametrize("name", SMALL)
def test_forms_threads_pickles_and_chunks(name):
    channel = Cap(*SMALL[name][0])
    rows = [points for points, _ in channel.windows] + [k for k, _ in channel.subsets]
    x = (np.arange(2 * channel.chunk + 5)[:, None] * 5 // 2 % np.array(rows)).astype(np.uint16)
    codes, bits = run(channel, x), run(channel, x, output="bits")
    assert codes.shape == (len(x), channel.codes)
    assert bits.shape == (len(x), channel.report_bits)
    np.testing.assert_array_equal(run(channel, x, output="packed"), np.packbits(bits.ravel()))
    for again in (run(channel, x, threads=3), run(pickle.loads(pickle.dumps(channel)), x.astype(np.int64))):
        np.testing.assert_array_equal(again, codes)
    np.testing.assert_array_equal(run(channel, x[channel.chunk :], first_chunk=1), codes[channel.chunk :])
    np.testing.assert_array_equal(run(channel, x[0]), codes[0])
    mute = Cap(*SMALL[name][0], mute=True)
    assert (mute.epsilon, mute.mute, pickle.loads(pickle.dumps(mute)).mute) == (0.0, True, True)
    np.testing.assert_array_equal(run(mute, x), run(channel, np.zeros_like(x)))


def test_numbers_are_placed_and_cells_have_letters():
    channel, grid = Cap([(5, 2)] * 3, [], 0, ONE // 2), Grid(5, low=-1.0, high=1.0)
    points = np.arange(300).reshape(100, 3) % 5
    letters, x = np.arange(9.0) - 4.0, grid.values()[points]
    codes = run(channel, points)
    np.testing.assert_array_equal(run(channel, x, grid=grid), codes)
    np.testing.assert_array_equal(
        run(channel, x, grid=grid, letters=letters, output="values"), letters[codes]
    )
    single = run(channel, x.astype(np.float32), grid=grid, letters=letters, output="values")
    assert single.dtype == np.float32
    keyed = KeyedRandomness(KEY, b"", np.arange(100, dtype=np.uint64))
    np.testing.assert_array_equal(
        run(channel, x, grid=grid, key=keyed), run(channel, x, grid=grid, key=keyed, threads=2)
    )


MIXED = Cap([(3, 1)], [(4, 1)], 1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Cap([], [], 0, 1), "windows: a window or a subset is needed"),
        (lambda: Cap([(3, 1)], [], 0, ONE + 1), "high: "),
        (lambda: Cap([(3, 1)], [], 1, 1), "hits: 1 is not allowed"),
        (lambda: Cap([], [(3, 3)], 1, 1), r"subsets: \(3, 3\) is not allowed"),
        (lambda: Cap([(0, 1)], [], 0, 1), r"windows: \(0, 1\) is not allowed"),
        (
            lambda: run(MIXED, np.zeros((2, 3), int)),
            r"x: shape \(2, 3\) is not allowed",
        ),
        (
            lambda: run(MIXED, np.array([[2, 3], [0, 4]])),
            "x: element 3 .* from 0 to 3 are",
        ),
        (
            lambda: run(MIXED, np.array([[2, 3], [3, 0]])),
            "x: element 2 .* from 0 to 2 are",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


class Paired:
    """A cap of two attributes as a mechanism, which an audit takes like any other."""

    def __init__(self, channel, epsilon):
        self.channel, self.guarantee = channel, bitldp.Guarantee(epsilon, epsilon, epsilon, epsilon)

    def randomize(self, x, *, rng=None):
        key = None if rng is None else np.random.default_rng(rng).bytes(32)
        return run(self.channel, np.stack([x, x], axis=1), key=key)


@pytest.mark.statistical
def test_an_audit_finds_a_cap_of_a_larger_epsilon_than_it_says():
    """With n = 20,000 of each input and confidence 0.9999; fixed seed."""
    pytest.importorskip("scipy")
    channel, pair = Cap([], [(4, 1), (4, 1)], 2, ONE // 4), (0, 3)
    honest = audit(Paired(channel, channel.epsilon), n=20_000, confidence=0.9999, rng=1, pair=pair)
    assert honest.passed
    assert 0.0 < honest.lower <= channel.epsilon
    assert not audit(
        Paired(channel, channel.epsilon / 2), n=20_000, confidence=0.9999, rng=1, pair=pair
    ).passed


@pytest.mark.parametrize("name", SMALL)
def test_a_report_of_the_law_is_recomputed_to_the_same_epsilon(name):
    for high in (0, 1, ONE // 3, ONE):
        channel = Cap(*SMALL[name][0][:3], high)
        law = {
            "law": "cap",
            "windows": channel.windows,
            "subsets": channel.subsets,
            "hits": channel.hits,
            "high": str(channel.high),
        }
        assert laws.agrees(laws.decimal(min(channel.epsilon, 1e9)), laws.of_law(law)) == (high < ONE), high
        assert laws.of_law(law | {"mute": True}) == 0
