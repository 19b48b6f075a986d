"""Shuffled reports of blocks, subsets and bits, and sums of clamped noise: never below enumeration."""

from __future__ import annotations

import itertools
import math
import time

import bitldp
import numpy as np
import pytest
from bitldp.accounting.laws import overlap
from bitldp.amplification import (
    shuffled_central_epsilon,
    shuffled_histogram_central_delta,
    shuffled_histogram_central_epsilon,
    summed_central_delta,
    summed_central_epsilon,
)
from bitldp.amplification.blankets import blanketed, of_blocks, of_rows, pairs
from bitldp.amplification.sums import clamped, summed
from bitldp.channels import Shift
from bitldp.channels.noise import gaussian_weights, skellam_weights
from bitldp.channels.normal import epsilon_of
from bitldp.compression import Skellam

ONE = 2.0**64


def rows_of_blocks(mechanism):
    """Return P(report | category); where there are steps, a report is a step and a cell."""
    channel, design = mechanism.channel, mechanism.blocks
    v, b, high = design.cells, design.width, channel.high / ONE
    if design.family == "steps":
        steps = range(1, (v - 1) // 2 + 1)
        sets = [[{(x + a * j) % v for j in range(b)} for a in steps] for x in range(mechanism.categories)]
    else:
        sets = [[{(x + int(d)) % v for d in channel.order[:b]}] for x in range(mechanism.categories)]
    return np.array(
        [
            [(high / b if y in each else (1.0 - high) / (v - b)) / len(own) for each in own for y in range(v)]
            for own in sets
        ]
    )


def rows_of_subsets(mechanism):
    channel = mechanism.channel
    k, w, high = channel.elements, channel.size, channel.high / ONE
    subsets = list(itertools.combinations(range(k), w))
    own, rest = math.comb(k - 1, w - 1), math.comb(k - 1, w)
    return np.array(
        [[high / own if x in each else (1.0 - high) / rest for each in subsets] for x in range(k)]
    )


def rows_of_bits(mechanism):
    p, q = mechanism.probabilities()
    count = mechanism.categories
    return np.array(
        [
            [
                math.prod(
                    (p if i == x else q) if bit else 1.0 - (p if i == x else q) for i, bit in enumerate(bits)
                )
                for bits in itertools.product((0, 1), repeat=count)
            ]
            for x in range(count)
        ]
    )


def rows_of_hashes(mechanism):
    """Return P(a, b, value | category) of local hashing."""
    prime, g, law = mechanism.prime, mechanism.values, mechanism.channel
    high, low = law.high / ONE, (1.0 - law.high / ONE) / (g - 1)
    functions = [(a, b) for a in range(1, prime) for b in range(prime)]
    return np.array(
        [
            [
                (high if (a * x + b) % prime * g // prime == value else low) / len(functions)
                for a, b in functions
                for value in range(g)
            ]
            for x in range(mechanism.categories)
        ]
    )


LAWS = {
    "GRR": (bitldp.GRR(4, epsilon=1.0), lambda m: m.probabilities()),
    "window": (bitldp.BRR(5, epsilon=1.0, m=2), lambda m: m.probabilities()),
    "steps": (bitldp.BlockDesign(9, epsilon=1.0), rows_of_blocks),
    "translates": (bitldp.BlockDesign(7, epsilon=1.0), rows_of_blocks),
    "subsets": (bitldp.SubsetSelection(4, epsilon=1.0), rows_of_subsets),
    "OUE": (bitldp.OUE(3, epsilon=1.0), rows_of_bits),
    "SUE": (bitldp.SUE(3, epsilon=2.0), rows_of_bits),
    "OLH": (bitldp.OLH(3, epsilon=1.0), rows_of_hashes),
}


def seen(laws, summed_up):
    """Return the law of what is seen of some reports: all orders of them, or their sum."""
    chances = laws[0]
    for law in laws[1:]:
        chances = np.multiply.outer(chances, law)
    places = np.indices(chances.shape).reshape(len(laws), -1)
    keys = places.sum(axis=0) if summed_up else np.ravel_multi_index(np.sort(places, axis=0), chances.shape)
    return np.bincount(keys, weights=chances.ravel(), minlength=math.prod(chances.shape))


def enumerated(rows, n, epsilon, summed_up=False):
    """Return delta over all neighbouring data sets, by all their reports."""
    worst = 0.0
    for others in itertools.combinations_with_replacement(range(len(rows)), n - 1):
        laws = [seen([rows[x], *(rows[other] for other in others)], summed_up) for x in range(len(rows))]
        for one, other in itertools.permutations(laws, 2):
            worst = max(worst, float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum()))
    return worst


@pytest.mark.parametrize("name", LAWS)
def test_a_blanket_is_a_bound(name):
    mechanism, rows_of = LAWS[name]
    rows = np.asarray(rows_of(mechanism))
    assert rows.sum(axis=1) == pytest.approx(1.0)
    for n in (1, 2, 3) if rows.shape[1] < 12 else (1, 2):
        for epsilon in (0.0, 0.3, 0.8):
            exact = enumerated(rows, n, epsilon)
            found = blanketed(pairs(mechanism.channel), n, epsilon)
            assert exact <= found * (1.0 + 1e-12)
            assert found <= 1.7 * exact + 0.02
            # the kinds of reports are those of all pairs of rows, or an end of them
            every = blanketed(of_rows(rows), n, epsilon)
            assert every <= found * (1.0 + 1e-6) + 1e-12
            assert found <= every * 1.2 + 1e-9
            assert exact <= shuffled_histogram_central_delta(mechanism, n, epsilon) * (1.0 + 1e-12)


@pytest.mark.parametrize("k", [9, 15, 21, 25])
def test_blocks_of_steps_have_at_least_so_much_in_common(k):
    rows = rows_of_blocks(bitldp.BlockDesign(k, epsilon=1.0))
    law = overlap(bitldp.BlockDesign(k, epsilon=1.0).channel)
    inside = rows > rows.min() * (1.0 + 1e-9)
    steps = rows.shape[1] // law.cells
    shared = [int((one & other).sum()) for one, other in itertools.combinations(inside, 2)]
    assert min(shared) >= law.shared * steps


def test_a_blanket_of_blocks_that_share_too_much_is_found():
    """Planted: one cell more in common is below the truth."""
    mechanism = bitldp.BRR(5, epsilon=1.0, m=2)
    law = overlap(mechanism.channel)
    wrong = of_blocks(law._replace(shared=law.shared + 1))
    exact = enumerated(mechanism.probabilities(), 1, 0.3)
    assert blanketed([wrong], 1, 0.3) < exact


LARGE = [
    (bitldp.GRR(100, epsilon=1.0), 0.00201),
    (bitldp.Piecewise(epsilon=1.0), 0.0114),
    (bitldp.BRR(100, epsilon=1.0), 0.01132),
    (bitldp.BlockDesign(100, epsilon=1.0), 0.00856),
    (bitldp.SubsetSelection(100, epsilon=1.0), 0.00857),
    (bitldp.OUE(100, epsilon=1.0), 0.00852),
    (bitldp.OLH(100, epsilon=1.0), 0.00984),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "most"), LARGE)
def test_many_users_of_many_categories(mechanism, most):
    """There are more outcomes than any double: a number, and far below what epsilon alone says."""
    found = shuffled_histogram_central_epsilon(mechanism, 100_000, 1e-6)
    assert 0.99 * most < found <= most < 0.2 * shuffled_central_epsilon(1.0, 100_000, 1e-6)


NOISE = {
    "gaussian": gaussian_weights(2.0, 6, lumped=True),
    "skellam": skellam_weights(1.5, 6, lumped=True),
    "narrow": gaussian_weights(0.8, 6, lumped=True),
}


@pytest.mark.parametrize("name", NOISE)
def test_sums_of_clamped_noise_are_bounded(name):
    channel = Shift(3, 11, NOISE[name], 4)
    law = clamped(channel)
    assert law is not None
    assert 0.0 <= law.lost < 1e-15
    rows = channel.probabilities()
    for n in (1, 2, 3):
        for epsilon in (0.0, 0.3, 1.0):
            exact = enumerated(rows, n, epsilon, summed_up=True)
            found = summed(law, n, epsilon)
            assert exact <= found * (1.0 + 1e-12)
            assert found <= 1.3 * exact + 2.0 * (n - 1) * law.told + 1e-12
            assert exact <= summed_central_delta(channel, n, epsilon) * (1.0 + 1e-9) + 1e-15


def test_noise_with_another_shape_is_no_clamped_noise():
    assert clamped(Shift(3, 9, NOISE["gaussian"], 4)) is not None  # clamped nearer
    assert clamped(Shift(3, 15, NOISE["gaussian"], 6)) is None  # its ends are no ends of reports
    unlike = list(NOISE["gaussian"])
    unlike[3], unlike[4] = unlike[4], unlike[3]
    assert clamped(Shift(3, 11, unlike, 4)) is None


@pytest.mark.slow
def test_sums_of_skellam_noise():
    """As one over the root of n, since noise adds up: delta of one is that of the mechanism."""
    started = time.process_time()
    mechanism = Skellam(1, epsilon=20.0, delta=1e-6, output_bits=9)
    found = [summed_central_epsilon(mechanism, n, 1e-6) for n in (1, 10, 1000)]
    assert found[0] <= 20.0 * (1.0 + 1e-3)
    assert found[0] > 3.0 * found[1] > 9.0 * found[2]
    # normal noise of the same variance, n-fold
    sigma = mechanism.sigma * math.sqrt(1000.0)
    assert found[2] == pytest.approx(epsilon_of(2.0 / sigma, 1e-6), rel=0.02)
    assert time.process_time() - started < 60.0


@pytest.mark.parametrize(
    ("mechanism", "error", "message"),
    [
        (bitldp.LabelLaplace(3, epsilon=1.0), ValueError, "several columns"),
        (bitldp.BRR(12, epsilon=0.7, regions=np.arange(12) % 2), ValueError, "one law"),
        (bitldp.HypercubePrivUnit(3, epsilon=1.0), ValueError, "several columns"),
        (bitldp.Hybrid(epsilon=1.0), TypeError, "its law must be"),
    ],
)
def test_what_has_no_one_law_is_refused(mechanism, error, message):
    for function in (summed_central_epsilon, shuffled_histogram_central_epsilon):
        with pytest.raises(error, match=message):
            function(mechanism, 10, 1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [bitldp.OLH(10, epsilon=1.0), bitldp.OUE(3, epsilon=1.0), bitldp.BlockDesign(20, epsilon=1.0)],
)
def test_codes_that_are_no_numbers_are_not_added_up(mechanism):
    with pytest.raises(TypeError, match="mechanism"):
        summed_central_epsilon(mechanism, 10, 1e-6)
