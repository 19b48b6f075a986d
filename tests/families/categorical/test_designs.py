"""Subset selection and block designs: laws, exact epsilons, variances and estimates."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp._core import Design, Subset, count_progressions
from bitldp.audit import audit
from bitldp.categorical.blocks import correlated
from bitldp.release.window import high_share
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
N = 1 << 19


def closed_form(k: int, epsilon: float) -> float:
    """Return the least mean variance of subset selection, over all sizes of subsets, written out anew."""
    best = math.inf
    for w in range(1, k):
        p = w * math.exp(epsilon) / (w * math.exp(epsilon) + k - w)
        q = (p * (w - 1) + (1.0 - p) * w) / (k - 1)
        on, off = p * (1.0 - p), q * (1.0 - q)
        best = min(best, (on + (k - 1) * off) / (k * (p - q) ** 2))
    return best


def law_of_blocks(mechanism: bitldp.BlockDesign) -> list[list[Fraction]]:
    """Return P(report | category) from the integer of the channel and the blocks' definitions."""
    channel, blocks = mechanism.channel, mechanism.blocks
    v, b = blocks.cells, blocks.width
    high = Fraction(channel.high, oracle.ONE)
    rows = []
    for x in range(mechanism.categories):
        if blocks.family == "steps":
            steps = (v - 1) // 2
            row = []
            for a in range(1, steps + 1):
                inside = {(x + a * j) % v for j in range(b)}
                assert len(inside) == b
                row += [high / b / steps if y in inside else (1 - high) / (v - b) / steps for y in range(v)]
        else:
            inside = {(x + int(d)) % v for d in channel.order[:b]}
            row = [high / b if y in inside else (1 - high) / (v - b) for y in range(v)]
        assert sum(row) == 1
        rows.append(row)
    return rows


SMALL = [(7, 1.0), (11, 1.5), (9, 0.5), (13, 1.1), (8, 3.0), (2, 1.0), (3, 0.2)]
SHARED = [(9, 1.0), (15, 1.5), (21, 2.2), (25, 1.5)]  # moduli with divisors, that some steps have, too


@pytest.mark.parametrize(("k", "epsilon"), SMALL + SHARED)
def test_epsilon_and_chances_of_blocks_by_enumeration(k: int, epsilon: float) -> None:
    """The worst ratio of any report; how often one counts for its own category, and for another."""
    mechanism = bitldp.BlockDesign(k, epsilon=epsilon)
    rows = law_of_blocks(mechanism)
    exact = oracle.epsilon_of(rows)
    assert mechanism.guarantee.record == pytest.approx(exact, rel=1e-14)
    assert mechanism.guarantee.record >= exact
    assert mechanism.guarantee.record == pytest.approx(epsilon, rel=1e-9)
    reports = np.arange(mechanism.channel.outputs)
    supported = mechanism._support(reports, np.arange(k))
    p, q = mechanism.probabilities()
    for x, y in itertools.product(range(k), repeat=2):
        counted = float(sum(chance for chance, hit in zip(rows[x], supported[:, y], strict=True) if hit))
        assert counted == pytest.approx(p if x == y else q, rel=1e-12)


def test_the_law_of_progressions_is_that_of_subsets() -> None:
    """Of 11 cells and blocks of 3, p and q are those of subsets of 3 of 11, to 12 digits."""
    mechanism = bitldp.BlockDesign(11, epsilon=1.0)
    assert (mechanism.blocks.family, mechanism.blocks.cells, mechanism.blocks.width) == ("steps", 11, 3)
    subsets = bitldp.SubsetSelection(11, epsilon=1.0)
    assert subsets.size == 3
    assert mechanism.probabilities() == pytest.approx(subsets.probabilities(), rel=1e-12)
    assert mechanism.mean_variance() == pytest.approx(subsets.mean_variance(), rel=1e-12)


@pytest.mark.parametrize(("k", "epsilon"), [(7, 1.0), (6, 0.4), (5, 3.0), (2, 1.0)])
def test_epsilon_and_chances_of_subsets_by_enumeration(k: int, epsilon: float) -> None:
    mechanism = bitldp.SubsetSelection(k, epsilon=epsilon)
    w, high = mechanism.size, Fraction(mechanism.channel.high, oracle.ONE)
    subsets = list(itertools.combinations(range(k), w))
    own, others = math.comb(k - 1, w - 1), math.comb(k - 1, w)
    rows = [[high / own if x in each else (1 - high) / others for each in subsets] for x in range(k)]
    assert all(sum(row) == 1 for row in rows)
    exact = oracle.epsilon_of(rows)
    assert exact <= mechanism.guarantee.record <= epsilon
    assert mechanism.guarantee.record == pytest.approx(exact, rel=1e-14)
    p, q = mechanism.probabilities()
    assert p == pytest.approx(float(sum(c for c, each in zip(rows[0], subsets, strict=True) if 0 in each)))
    assert q == pytest.approx(float(sum(c for c, each in zip(rows[0], subsets, strict=True) if 1 in each)))


@pytest.mark.parametrize(("k", "epsilon"), [(7, 1.0), (11, 1.0), (91, 2.0), (15, 1.0), *SHARED])
def test_blocks_fit_their_law(k: int, epsilon: float) -> None:
    """Chi-squared over all reports of a category, n = 2^19, alpha = 1e-6."""
    mechanism = bitldp.BlockDesign(k, epsilon=epsilon)
    if (k, epsilon) in SHARED:
        assert mechanism.blocks.family == "steps"
        assert any(mechanism.blocks.cells % divisor == 0 for divisor in (3, 5))
    rows = law_of_blocks(mechanism)
    for x in (0, k - 1):
        counts = np.bincount(mechanism.randomize(np.full(N, x), rng=7 + x), minlength=len(rows[0]))
        assert oracle.p_value(counts, [float(chance) for chance in rows[x]]) > ALPHA


def test_subsets_fit_their_law() -> None:
    """Chi-squared over the 15 subsets of two of six, n = 2^19, alpha = 1e-6."""
    mechanism = bitldp.SubsetSelection(6, epsilon=1.0)
    assert mechanism.size == 2
    high = mechanism.channel.high / 2.0**64
    for x in (0, 3, 5):
        bits = mechanism.randomize(np.full(N, x), rng=3 + x).astype(np.int64)
        assert np.all(bits.sum(axis=1) == 2)
        counts = np.bincount(bits @ 2 ** np.arange(6), minlength=64)
        law = [
            0.0 if code.bit_count() != 2 else high / 5 if code >> x & 1 else (1.0 - high) / 10
            for code in range(64)
        ]
        assert counts[[chance == 0.0 for chance in law]].sum() == 0
        likely = np.array(law) > 0.0
        assert oracle.p_value(counts[likely], np.array(law)[likely]) > ALPHA


GRID = [2, 3, 4, 6, 10, 16, 31, 64, 100, 128, 129, 140, 200, 300, 512, 1024, 1500, 2048]


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 4.0, 4.5, 8.0])
def test_one_of_both_is_within_one_percent_of_the_closed_form(epsilon: float) -> None:
    for k in GRID:
        least = closed_form(k, epsilon)
        subsets = bitldp.SubsetSelection(k, epsilon=epsilon)
        assert subsets.mean_variance() == pytest.approx(least, rel=1e-9)
        if k > 128:
            design = bitldp.BlockDesign(k, epsilon=epsilon)
            assert design.mean_variance() <= 1.01 * least
            assert design.report_bits <= 2.0 * math.log2(k) + 4.0


@pytest.mark.parametrize("kind", [bitldp.SubsetSelection, bitldp.BlockDesign, bitldp.OLH, bitldp.OUE])
def test_the_variance_of_a_frequency_is_between_both(kind) -> None:
    mechanism = kind(20, epsilon=1.0)
    on, off = mechanism.variance([0])[0, :2]
    assert mechanism.frequency_variance() == pytest.approx(off, rel=1e-12)
    assert mechanism.frequency_variance(1.0) == pytest.approx(on, rel=1e-12)
    assert mechanism.frequency_variance(0.25) == pytest.approx(0.25 * on + 0.75 * off, rel=1e-12)
    with pytest.raises(ValueError, match="frequency"):
        mechanism.frequency_variance(1.5)


def test_few_bits_for_many_categories() -> None:
    mechanism = bitldp.BlockDesign(65_536, epsilon=2.0)
    assert (mechanism.report_bits, mechanism.blocks.cells) == (17, 66_430)
    assert mechanism.mean_variance() == pytest.approx(0.72517, abs=5e-6)
    assert mechanism.guarantee.record == pytest.approx(2.0, rel=1e-9)
    assert bitldp.BlockDesign(1_000_000, epsilon=1.0).report_bits == 21


@pytest.mark.parametrize(
    "mechanism",
    [
        bitldp.SubsetSelection(50, epsilon=1.0),
        bitldp.BlockDesign(50, epsilon=1.0),
        bitldp.BlockDesign(85, epsilon=1.0),
        bitldp.BlockDesign(5000, epsilon=2.0),
        bitldp.BlockDesign(40_000, epsilon=7.0),
        bitldp.BlockDesign(9, epsilon=3.0),
        bitldp.OLH(50, epsilon=1.0),
        bitldp.HadamardResponse(50, epsilon=2.0),
        bitldp.HadamardResponse(50, epsilon=0.5),
    ],
    ids=["subsets", "steps", "space", "large", "many steps", "single", "OLH", "halves", "half"],
)
def test_estimates_are_unbiased_and_spread_as_said(mechanism) -> None:
    """Each entry within 5.5 standard errors, n = 300,000.

    The mean square error of 60 estimates of n = 3,000 is within 5 standard errors of the closed form.
    """
    k = mechanism.categories
    x = np.random.default_rng(5).choice(k, 300_000, p=np.arange(k) * 2.0 / (k * (k - 1)))
    truth = np.bincount(x, minlength=k) / len(x)
    estimate = mechanism.estimate_frequencies(mechanism.randomize(x, rng=9))
    assert np.all(np.abs(estimate.value - truth) < 5.5 * estimate.stderr)
    few = np.arange(3_000) % min(k, 100)
    truth = np.bincount(few, minlength=k) / len(few)
    rng = np.random.default_rng(2)
    squares = [
        np.square(mechanism.estimate_frequencies(mechanism.randomize(few, rng=rng)).value - truth).mean()
        for _ in range(60)
    ]
    expected = mechanism.variance(np.arange(min(k, 100))).mean() / len(few)
    assert abs(np.mean(squares) - expected) < 5.0 * np.std(squares, ddof=1) / math.sqrt(60) + 1e-12


def test_a_large_report_is_estimated_in_pieces() -> None:
    """Correlations are exact integers however many reports there are."""
    rng = np.random.default_rng(1)
    block = np.array([0, 1, 3, 9], np.uint32)
    for most in (5, 1 << 21, 1 << 50):
        counts = rng.integers(0, most, 13)
        expected = [sum(int(counts[(x + d) % 13]) for d in block.tolist()) for x in range(13)]
        assert correlated(counts, block).tolist() == expected


def test_forms_and_merges_count_alike() -> None:
    for k, epsilon in ((50, 1.0), (85, 1.0), (3000, 1.0), (9, 3.0)):
        mechanism = bitldp.BlockDesign(k, epsilon=epsilon)
        x = np.random.default_rng(0).integers(0, k, 1000)
        whole, parts, packed = (mechanism.accumulator() for _ in range(3))
        reports = mechanism.randomize(x, rng=4)
        whole.update(reports)
        packed.update(mechanism.randomize(x, rng=4, output="packed"), output="packed", records=1000)
        parts.update(reports[:300])
        other = mechanism.accumulator()
        other.update(reports[300:])
        parts.merge(type(other).from_json(other.to_json(), mechanism))
        expected = mechanism.decode(reports).mean(axis=0)
        for each in (whole, parts, packed):
            np.testing.assert_allclose(each.estimate().value, expected, atol=1e-10)
            np.testing.assert_array_equal(each.estimate().value, whole.estimate().value)


def test_what_is_no_report_is_refused() -> None:
    steps, space = bitldp.BlockDesign(50, epsilon=1.0), bitldp.BlockDesign(85, epsilon=1.0)
    for mechanism in (steps, space):
        for wrong in ([mechanism.channel.outputs], [-1], [0.5]):
            with pytest.raises((ValueError, TypeError), match="reports"):
                mechanism.estimate_frequencies(wrong)
    with pytest.raises(ValueError, match="reports: shape"):
        bitldp.SubsetSelection(5, epsilon=1.0).estimate_frequencies(np.zeros((2, 4), np.uint8))
    for wrong in (np.zeros((2, 2)), [[0, 1, 1]], [[1, 53, 1]], [[1, 1, 9]]):
        with pytest.raises((ValueError, TypeError), match="reports"):
            bitldp.OLH(50, epsilon=1.0).estimate_frequencies(wrong)
    for kind, most in ((bitldp.SubsetSelection, 4096), (bitldp.BlockDesign, 1_000_000)):
        with pytest.raises(ValueError, match="categories"):
            kind(most + 1, epsilon=1.0)
    with pytest.raises(ValueError, match="categories"):
        bitldp.SubsetSelection([str(each) for each in range(4097)], epsilon=1.0)


@pytest.mark.parametrize(
    "kind", [bitldp.SubsetSelection, bitldp.BlockDesign, bitldp.OLH, bitldp.HadamardResponse]
)
def test_budgets_near_the_ends(kind) -> None:
    """At epsilon 0 nothing is estimated and the input does not count; a large budget is kept."""
    nothing = kind(9, epsilon=0.0)
    assert nothing.guarantee.record == 0.0
    one, other = (nothing.randomize(np.full(300, x), rng=1) for x in (0, 8))
    if kind is bitldp.OLH:  # the functions are random, and public
        one, other = one[:, 2], other[:, 2]
    np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="no unbiased decode exists at epsilon 0"):
        nothing.estimate_frequencies(nothing.randomize([1, 2], rng=1))
    assert "unbiased" in nothing._facts()["errors"]
    for epsilon in (1e-9, 30.0, 700.0):
        mechanism = kind(9, epsilon=epsilon)
        assert 0.0 <= mechanism.guarantee.record <= epsilon
        mechanism.randomize([1, 2], rng=1)


def test_labels_are_estimated() -> None:
    names = [f"n{each}" for each in range(20)]
    for kind in (bitldp.SubsetSelection, bitldp.BlockDesign, bitldp.OLH, bitldp.HadamardResponse):
        mechanism = kind(names, epsilon=3.0)
        estimate = mechanism.estimate_frequencies(mechanism.randomize(["n7"] * 5000, rng=1))
        assert estimate.labels.tolist() == names
        assert abs(estimate.value[7] - 1.0) < 0.2


# -- planted faults: a law other than the one that is promised


class StepFromData(bitldp.BlockDesign):
    """Categories of the upper half are given small steps."""

    def randomize(self, x, **options):
        codes = super().randomize(x, **options)
        v = self.blocks.cells
        small = np.where(codes // v >= v // 4, codes % v, codes)
        return np.where(np.asarray(x) >= self.categories // 2, small, codes).astype(codes.dtype)


class BlockTooLikely(bitldp.BlockDesign):
    """The block has the weight of a budget half as large again."""

    def randomize(self, x, *, rng=None, output="codes"):
        key = None if rng is None else rng.bytes(32)
        v, b = self.blocks.cells, self.blocks.width
        channel = Design.translates(
            self.categories, b, high_share(v, b, 1.5 * self.epsilon), self.channel.order
        )
        return channel.randomize(x, key, output, None, None, 0)


class OwnAlways(bitldp.SubsetSelection):
    """The true category is in every subset."""

    def randomize(self, x, *, rng=None, output="bits"):
        key = None if rng is None else rng.bytes(32)
        return Subset(self.categories, self.size, 1.0).randomize(x, key, output, None, None, 0)


class NoisyHash(bitldp.OLH):
    """The hash of the largest category leaves as it is."""

    def randomize(self, x, **options):
        reports = super().randomize(x, **options).astype(np.int64)
        x = np.asarray(x)
        true = (reports[:, 0] * x + reports[:, 1]) % self.prime * self.values // self.prime
        reports[:, 2] = np.where(x == self.categories - 1, true, reports[:, 2])
        return reports.astype(np.uint32)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", [BlockTooLikely, OwnAlways, NoisyHash])
def test_faults_are_caught(kind, seed: int) -> None:
    result = audit(kind(13, epsilon=1.0), n=40_000, rng=seed)
    assert not result.passed
    assert result.lower > result.exact
    assert audit(kind.__mro__[1](13, epsilon=1.0), n=40_000, rng=seed).passed


def test_a_step_drawn_from_the_data_is_seen_in_the_counts() -> None:
    """What an audit of two categories' hits does not see, the law of whole reports does; alpha = 1e-6."""
    mechanism = StepFromData(11, epsilon=1.0)
    law = [float(chance) for chance in law_of_blocks(mechanism)[10]]
    counts = np.bincount(mechanism.randomize(np.full(N, 10), rng=1), minlength=len(law))
    assert oracle.p_value(counts, law) < ALPHA


def test_progressions_refuse_other_moduli() -> None:
    for modulus, width in ((12, 2), (15, 4), (9, 4), (65_537, 3), (2, 1)):
        with pytest.raises(ValueError, match="modulus"):
            Design.progressions(2, modulus, width, 0.7)
    with pytest.raises(ValueError, match="inputs"):
        count_progressions(np.zeros(3, np.uint8), 12, 11, 3)
