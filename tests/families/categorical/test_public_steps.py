"""Block designs whose steps are public coins: drawn beside a cell, or implied by a record's number."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp._core import CHUNK
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
N = 1 << 19

SMALL = [(11, 1.0), (9, 0.5), (7, 0.8), (21, 2.2), (15, 1.5), (25, 1.5)]


def public(k: int, epsilon: float, **options) -> bitldp.BlockDesign:
    return bitldp.BlockDesign(k, epsilon=epsilon, public=True, **options)


def law(mechanism: bitldp.BlockDesign, x: int, step: int) -> list[Fraction]:
    """Return P(cell | category, step), from the integer of the channel and the progression's definition."""
    v, b = mechanism.blocks.cells, mechanism.blocks.width
    high = Fraction(mechanism.channel.high, oracle.ONE)
    inside = {(x + step * j) % v for j in range(b)}
    assert len(inside) == b
    return [high / b if y in inside else (1 - high) / (v - b) for y in range(v)]


@pytest.mark.slow
@pytest.mark.parametrize(("k", "epsilon"), SMALL)
def test_epsilon_holds_given_the_step_and_chances_over_the_steps(k: int, epsilon: float) -> None:
    """By enumeration: the worst ratio under every single step; p, and the mean of q over all steps."""
    mechanism = public(k, epsilon)
    assert mechanism.blocks.family == "steps"
    v, steps = mechanism.blocks.cells, range(1, mechanism.blocks.steps + 1)
    rows = {step: [law(mechanism, x, step) for x in range(k)] for step in steps}
    for step in steps:
        exact = oracle.epsilon_of(rows[step])
        assert exact <= mechanism.guarantee.record <= epsilon
        assert mechanism.guarantee.record == pytest.approx(exact, rel=1e-14)
    every = [(step - 1, cell) for step in steps for cell in range(v)]
    supported = mechanism._support(tuple(np.array(every).T), np.arange(k))
    p, q = mechanism.probabilities()
    for x, y in itertools.product(range(k), repeat=2):
        hits = zip(every, supported[:, y], strict=True)
        counted = sum(rows[step + 1][x][cell] for (step, cell), hit in hits if hit) / len(steps)
        assert float(counted) == pytest.approx(p if x == y else q, rel=1e-12)
    assert (p, q) == pytest.approx(bitldp.SubsetSelection(v, epsilon=epsilon).probabilities(), rel=0.2)


@pytest.mark.parametrize("implied", [False, True])
@pytest.mark.parametrize(("k", "epsilon"), [(11, 1.0), (21, 2.2), (15, 1.5)])
def test_reports_fit_their_law(k: int, epsilon: float, implied: bool) -> None:
    """Chi-squared over steps and cells of a category, n = 2^19, alpha = 1e-6."""
    mechanism = public(k, epsilon)
    v, steps = mechanism.blocks.cells, mechanism.blocks.steps
    for x in (0, k - 1):
        if implied:
            cells = mechanism.randomize(np.full(N, x), rng=5, first=3)
            reports = mechanism.numbered(cells, 3)
        else:
            reports = mechanism.randomize(np.full(N, x), rng=5)
        counts = np.bincount(reports.steps.astype(int) * v + reports.cells, minlength=steps * v)
        expected = [float(each) / steps for step in range(1, steps + 1) for each in law(mechanism, x, step)]
        assert oracle.p_value(counts, expected) > ALPHA


def test_a_cell_alone_is_half_the_bits() -> None:
    """2 log2(v) - 1 bits of a design with a step, log2(v) of a cell; the variance of both is the same."""
    for k, epsilon in ((1024, 4.0), (50, 1.0), (140, 3.0)):
        mechanism, plain = public(k, epsilon), bitldp.BlockDesign(k, epsilon=epsilon)
        assert mechanism.blocks == plain.blocks
        assert mechanism.mean_variance() == plain.mean_variance()
        assert mechanism.guarantee == plain.guarantee
        x = np.arange(800) % k
        packed = mechanism.randomize(x, rng=1, first=0, output="packed")
        assert packed.nbytes == 100 * mechanism.blocks.cell_bits
        assert mechanism.blocks.cell_bits == math.ceil(math.log2(mechanism.blocks.cells))
        assert mechanism.report_bits - plain.report_bits in (0, 1)
    # where a step costs nothing, fewer cells are needed
    assert bitldp.BlockDesign(1024, epsilon=2.0).report_bits == 13
    assert public(1024, 2.0).blocks.cell_bits == 11


def test_estimates_are_unbiased_and_spread_as_said() -> None:
    """Each entry within 5.5 standard errors, n = 300,000.

    The mean square error of 60 estimates of n = 3,000 is within 5 standard errors of the closed form.
    """
    k, mechanism = 50, public(50, 1.0, public_seed=9)
    x = np.random.default_rng(5).choice(k, 300_000, p=np.arange(k) * 2.0 / (k * (k - 1)))
    truth = np.bincount(x, minlength=k) / len(x)
    estimate = mechanism.estimate_frequencies(mechanism.randomize(x, rng=9, first=7), first=7)
    assert np.all(np.abs(estimate.value - truth) < 5.5 * estimate.stderr)
    few = np.arange(3_000) % k
    rng = np.random.default_rng(2)
    squares = []
    for first in range(0, 60 * 3_000, 3_000):
        cells = mechanism.randomize(few, rng=rng, first=first)
        squares.append(np.square(mechanism.estimate_frequencies(cells, first=first).value - 1.0 / k).mean())
    expected = mechanism.variance(np.arange(k)).mean() / len(few)
    assert abs(np.mean(squares) - expected) < 5.0 * np.std(squares, ddof=1) / math.sqrt(60) + 1e-12


@pytest.mark.parametrize(("k", "epsilon"), [(50, 1.0), (3000, 1.0), (85, 1.0), (9, 3.0)])
def test_every_form_is_estimated_alike(k: int, epsilon: float) -> None:
    """Pairs, cells with their numbers, packed ones, merged and saved accumulators, and letters."""
    mechanism = public(k, epsilon)
    x = np.random.default_rng(0).integers(0, k, 1000)
    reports = mechanism.randomize(x, rng=4)
    pair = mechanism.numbered(mechanism.randomize(x, rng=4, first=11), 11)
    for given, options in ((reports, {}), (pair, {"first": 11})):
        whole, parts, packed = (mechanism.accumulator() for _ in range(3))
        whole.update(given)
        if options and mechanism.blocks.family == "steps":
            cells = mechanism.randomize(x, rng=4, output="packed", **options)
            bits = mechanism.blocks.cell_bits
            packed.update(mechanism.numbered(bitldp.unpack(cells, bits, 1000), 11))
        else:
            packed.update(mechanism.randomize(x, rng=4, output="packed"), output="packed", records=1000)
        arrays = given if isinstance(given, tuple) else (given,)
        other = mechanism.accumulator()
        for accumulator, part in ((parts, slice(0, 300)), (other, slice(300, None))):
            cut = [each[part] for each in arrays]
            accumulator.update(type(given)(*cut) if isinstance(given, tuple) else cut[0])
        parts.merge(type(other).from_json(other.to_json(), mechanism))
        expected = mechanism.decode(given).mean(axis=0)
        for each in (whole, parts, packed):
            np.testing.assert_allclose(each.estimate().value, expected, atol=1e-10)
            np.testing.assert_array_equal(each.estimate().value, whole.estimate().value)
        np.testing.assert_array_equal(mechanism.estimate_frequencies(given).value, whole.estimate().value)
    cells = mechanism.randomize(x, rng=4, first=11)
    np.testing.assert_array_equal(mechanism.decode(cells, first=11), mechanism.decode(pair))


def test_numbers_are_the_records_own() -> None:
    """Record i has the step of number first + i, in any batch; another seed gives other steps."""
    mechanism = public(37, 1.0)
    cells = np.zeros(3 * CHUNK, np.uint8)
    whole = mechanism.numbered(cells, 5).steps
    for start, stop in ((0, 7), (CHUNK - 6, CHUNK + 9), (2 * CHUNK, 3 * CHUNK)):
        part = mechanism.numbered(cells[start:stop], 5 + start).steps
        np.testing.assert_array_equal(part, whole[start:stop])
    other = public(37, 1.0, public_seed=1).numbered(cells, 5).steps
    assert np.mean(whole == other) < 0.1
    one = mechanism.randomize(7, rng=1, first=12)
    assert np.ndim(one) == 0
    assert mechanism.estimate_frequencies([one], first=12).n == 1
    assert np.ndim(mechanism.randomize(7, rng=1).cells) == 0
    labelled = public([f"n{each}" for each in range(20)], 3.0)
    estimate = labelled.estimate_frequencies(labelled.randomize(["n7"] * 5000, rng=1, first=0), first=0)
    assert abs(estimate.value[7] - 1.0) < 0.2
    assert estimate.labels.tolist()[7] == "n7"


def test_steps_do_not_depend_on_the_records() -> None:
    """Neither drawn nor implied ones: the same key gives two records the same steps."""
    mechanism = public(37, 1.0)
    one, other = (mechanism.randomize(np.full(500, x), rng=6) for x in (0, 36))
    np.testing.assert_array_equal(one.steps, other.steps)
    assert not np.array_equal(one.cells, other.cells)
    nothing = public(37, 0.0)
    one, other = (nothing.randomize(np.full(500, x), rng=6, first=0) for x in (0, 36))
    np.testing.assert_array_equal(one, other)


def test_what_does_not_fit_is_refused() -> None:
    mechanism, plain = public(50, 1.0), bitldp.BlockDesign(50, epsilon=1.0)
    with pytest.raises(ValueError, match="first: is for public=True"):
        plain.randomize([1], first=0)
    with pytest.raises(ValueError, match="seed: is for public=True"):
        bitldp.BlockDesign(50, epsilon=1.0, public_seed=3)
    with pytest.raises(ValueError, match="first"):
        mechanism.randomize([1], first=-1)
    with pytest.raises(ValueError, match="x: "):
        mechanism.randomize([50], first=0)
    with pytest.raises(ValueError, match="out: not supported"):
        mechanism.randomize([1], out=np.zeros(1, np.uint8))
    with pytest.raises(TypeError, match="reports: must be a pair"):
        mechanism.estimate_frequencies([1, 2, 3])
    steps, cells = mechanism.blocks.steps, mechanism.blocks.cells
    for wrong in (([steps], [0]), ([0], [cells]), ([0, 1], [0]), ([-1], [0])):
        with pytest.raises(ValueError, match="reports"):
            mechanism.estimate_frequencies(wrong)
    with pytest.raises(ValueError, match="reports"):
        mechanism.estimate_frequencies([cells], first=0)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism != plain
