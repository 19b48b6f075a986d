"""Laws of the numeric mechanisms, from their integers: exact epsilon, exact mean, variance; no simulation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from bitldp.numeric import Duchi, Hybrid, LDPFLDuchi, Piecewise, PiecewiseSub, ThreeOutputs
from support import oracle

WINDOWS = [Duchi, Piecewise, PiecewiseSub]
KINDS = [Duchi, Piecewise, PiecewiseSub, Hybrid, ThreeOutputs]

# Mean over uniform inputs, and worst; on [-1, 1].
TABLE = {
    Duchi: {0.5: (16.34, 16.67), 1: (4.349, 4.683), 2: (1.391, 1.724), 4: (0.743, 1.076), 8: (0.668, 1.001)},
    Piecewise: {
        0.5: (18.88, 21.22),
        1: (4.196, 5.224),
        2: (0.840, 1.228),
        4: (0.137, 0.241),
        8: (0.0129, 0.0253),
    },
    Hybrid: {
        0.5: (16.34, 16.67),
        1: (4.289, 4.289),
        2: (1.042, 1.042),
        4: (0.219, 0.219),
        8: (0.0249, 0.0249),
    },
}


def starts(channel):
    """Return the first cells of the different windows of a channel."""
    return range(channel.cells - channel.width + 1)


def window_rows(channel):
    """Return the law of a window channel for each window, from its integer."""
    inside = Fraction(channel.high, oracle.ONE) / channel.width
    outside = (1 - Fraction(channel.high, oracle.ONE)) / (channel.cells - channel.width)
    return [
        [inside if start <= y < start + channel.width else outside for y in range(channel.cells)]
        for start in starts(channel)
    ]


def exact_letters(channel, low, high):
    """Return the letters of a window channel as fractions: the formula with its integer."""
    excess = Fraction(channel.high * channel.cells, oracle.ONE) - channel.width
    middle = (Fraction(low) + Fraction(high)) / 2
    half = Fraction(channel.cells - 1, 2)
    return [middle + (y - half) * (Fraction(high) - Fraction(low)) / excess for y in range(channel.cells)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 7.0])
def test_the_mean_of_the_letters_is_the_point_exactly(kind, epsilon):
    mechanism = kind(epsilon=epsilon, interval=(-0.5, 3.0))
    (channel,) = mechanism.channels
    letters = exact_letters(channel, -0.5, 3.0)
    slides = channel.cells - channel.width
    for place in {0, 1, slides // 2, slides}:
        row = window_rows(channel)[place]
        assert sum(row) == 1
        mean = sum(chance * letter for chance, letter in zip(row, letters, strict=True))
        assert mean == Fraction(-0.5) + Fraction(place, slides) * Fraction(3.5)
    np.testing.assert_allclose(mechanism.letters, np.array(letters, float), rtol=0, atol=2e-15 * 2**6)


@pytest.mark.parametrize("epsilon", [0.3, 0.8, 1.0, 3.0, 5.0, 6.0, 9.0, 30.0])
def test_the_mean_of_three_outputs_is_the_point_exactly(epsilon):
    mechanism = ThreeOutputs(epsilon=epsilon)
    weights = mechanism.channels[0].weights()
    assert all(sum(row) == oracle.ONE for row in weights)
    letter = Fraction(oracle.ONE, weights[2][2] - weights[2][0])
    means = [Fraction(row[2] - row[0], oracle.ONE) * letter for row in weights]
    assert means == [-1, 0, 1]
    np.testing.assert_allclose(mechanism.letters, [-float(letter), 0.0, float(letter)], rtol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 2.0, 9.0])
@pytest.mark.parametrize("interval", [(-1.0, 1.0), (0.0, 255.0), (-7.0, -6.5)])
def test_unbiased_by_the_table(kind, epsilon, interval):
    mechanism = kind(epsilon=epsilon, interval=interval)
    law = mechanism.probabilities()
    assert law.shape == (len(mechanism.points), mechanism.alphabet)
    np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(law @ mechanism.letters, mechanism.points, rtol=1e-12, atol=1e-12)
    assert (mechanism.points[0], mechanism.points[-1]) == interval


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 2.0, 9.0])
def test_variance_is_that_of_the_table(kind, epsilon):
    """Also between the points, where the law is the dither's mixture of two rows."""
    mechanism = kind(epsilon=epsilon, interval=(2.0, 6.0))
    points, law = mechanism.points, mechanism.probabilities()
    x = np.concatenate([points, np.linspace(2.0, 6.0, 57)])
    place = np.minimum(np.searchsorted(points, x, side="right") - 1, len(points) - 2)
    share = (x - points[place]) / (points[place + 1] - points[place])
    rows = (1.0 - share)[:, None] * law[place] + share[:, None] * law[place + 1]
    expected = rows @ np.square(mechanism.letters - 4.0) - np.square(rows @ (mechanism.letters - 4.0))
    np.testing.assert_allclose(mechanism.variance(x), expected, rtol=1e-9)
    assert mechanism.worst_variance() >= expected.max() * (1 - 1e-12)
    fine = mechanism.variance(np.linspace(2.0, 6.0, 100_001))
    assert mechanism.worst_variance() == pytest.approx(fine.max(), rel=1e-6)
    assert mechanism.mean_variance() == pytest.approx((fine[1:] + fine[:-1]).mean() / 2.0, rel=1e-6)


@pytest.mark.parametrize("kind", TABLE)
@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 8])
def test_table_of_mean_squared_errors(kind, epsilon):
    """Mean over uniform inputs, and worst, within 1 % of the continuous mechanisms'."""
    mean, worst = TABLE[kind][epsilon]
    mechanism = kind(epsilon=epsilon)
    assert mechanism.mean_variance() == pytest.approx(mean, rel=0.01)
    assert mechanism.worst_variance() == pytest.approx(worst, rel=0.01)


def test_vector_24(vectors):
    """Duchi's to the tolerance of the case; the grid of the others costs less than 0.2 %."""
    case = vectors[24]
    epsilon, x = case["inputs"]["eps"], case["inputs"]["x"]
    expected = case["expected"]
    assert float(Duchi(epsilon=epsilon).variance(x)) == pytest.approx(
        expected["duchi"], abs=case["tolerance"]
    )
    assert float(Piecewise(epsilon=epsilon).variance(x)) == pytest.approx(expected["pm"], rel=2e-3)
    assert float(Hybrid(epsilon=epsilon).variance(x)) == pytest.approx(expected["hm"], rel=2e-3)


def continuous(x, epsilon, root):
    """Variance of the continuous piecewise mechanism: the second moment of its density less x^2."""
    t, e = math.exp(epsilon / root), math.exp(epsilon)
    unit = (e + t) / (t * (e - 1))
    reach, low, high = unit * (t + 1), unit * (x * t - 1), unit * (x * t + 1)
    mass = e * (high - low) + 2 * reach - (high - low)
    return (e * (high**3 - low**3) + (low**3 + reach**3) + (reach**3 - high**3)) / (3 * mass) - x**2


@pytest.mark.parametrize(("kind", "root"), [(Piecewise, 2), (PiecewiseSub, 3)])
@pytest.mark.parametrize("epsilon", [0.01, 0.2, 0.9, 1.7, 3.3, 5.0, 7.5, 10.0, 13.0, 16.0, 18.0, 20.0])
def test_piecewise_is_near_the_continuous_one(kind, root, epsilon):
    """Within 1 % at every x, at most 16 bits."""
    mechanism = kind(epsilon=epsilon)
    x = np.linspace(-1.0, 1.0, 101)
    np.testing.assert_allclose(mechanism.variance(x), continuous(x, epsilon, root), rtol=0.01)
    assert mechanism.alphabet <= 1 << 16
    assert mechanism.randomize(np.zeros(3)).dtype == (np.uint8 if mechanism.alphabet <= 256 else np.uint16)


def test_the_closed_form_of_pm():
    x, t = np.linspace(-1.0, 1.0, 11), math.exp(0.75)
    np.testing.assert_allclose(continuous(x, 1.5, 2), x**2 / (t - 1) + (t + 3) / (3 * (t - 1) ** 2))


def test_hybrid_has_one_variance_for_all():
    for epsilon in (0.7, 1.0, 3.0, 6.0):
        variances = Hybrid(epsilon=epsilon).variance(np.linspace(-1.0, 1.0, 301))
        assert variances.max() / variances.min() < 1.01
    assert Hybrid(epsilon=0.61).channels == Duchi(epsilon=0.61).channels
    assert len(Hybrid(epsilon=0.62).channels) == 2


@pytest.mark.parametrize("epsilon", [0.2, 0.69, 0.7, 1.0, 2.0, 3.5, 5.0, 5.5, 5.6, 7.0])
def test_three_outputs_minimise_the_worst_case(epsilon):
    """No other a, of 4001, has a smaller worst-case variance by the formulas."""
    e = math.exp(epsilon)
    a = np.linspace(0.0, e / (e + 2), 4001)
    letter = e * (e + 1) / ((e - 1) * (e - a))
    x = np.minimum(letter**2 * a * (1 - 1 / e) / 2, 1.0)  # the vertex of the parabola in x, or the end
    worst = letter**2 * (1 - a + a * (1 - 1 / e) * x) - x**2
    mechanism = ThreeOutputs(epsilon=epsilon)
    assert mechanism.worst_variance() <= worst.min() * (1 + 1e-9)
    assert mechanism.worst_variance() == pytest.approx(worst.min(), rel=1e-4)
    middle = mechanism.probabilities()[1, 1]
    assert (middle == 0.0) == (epsilon < math.log(2))
    found = e * (e + 1) / ((e - 1) * (e - middle))
    assert mechanism.letters[2] == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.61, 0.62, 1.0, 5.0, 12.0, 17.0])
def test_exact_epsilon_is_the_budget(kind, epsilon):
    guarantee = kind(epsilon=epsilon).guarantee
    assert guarantee.holds
    assert guarantee.record <= epsilon
    assert guarantee.record == pytest.approx(epsilon, rel=1e-9)
    assert guarantee.bit == guarantee.feature == guarantee.record


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [30.0, 40.0, 100.0, 1e4])
def test_large_budgets_are_kept(kind, epsilon):
    mechanism = kind(epsilon=epsilon)
    assert 25.0 < mechanism.guarantee.record <= epsilon
    assert 0.0 < mechanism.worst_variance() <= 1.001


def rows_of(mechanism):
    """Return the law at every point as fractions."""
    if isinstance(mechanism, ThreeOutputs):
        return [[Fraction(w, oracle.ONE) for w in row] for row in mechanism.channels[0].weights()]
    if len(mechanism.channels) == 1:
        return window_rows(mechanism.channels[0])
    window, coin = mechanism.channels
    piecewise = window_rows(window)
    (chance, *low), (same, *high) = [[Fraction(w, oracle.ONE) for w in row] for row in coin.weights()]
    assert (chance, low) == (same, high[::-1])
    last = len(piecewise) - 1
    rows = []
    for place in (0, 1, last // 2, last):
        up = Fraction(place, last)
        ends = [(1 - up) * first + up * second for first, second in zip(low, high, strict=True)]
        rows.append([chance * p for p in piecewise[place]] + ends)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.4, 2.0, 6.0])
def test_exact_epsilon_by_enumeration(kind, epsilon):
    mechanism = kind(epsilon=epsilon)
    assert mechanism.guarantee.record == pytest.approx(oracle.epsilon_of(rows_of(mechanism)), rel=1e-14)


@pytest.mark.parametrize(("features", "k"), [(3, 1), (3, 2), (2, 2)])
def test_exact_epsilon_of_sampled_coordinates_by_enumeration(features, k):
    """Over all records at the corners, all choices of coordinates and all codes."""
    mechanism = Duchi(epsilon=2.0, features=features, spend="sample", k=k)
    law = window_rows(mechanism.channels[0])
    subsets = list(itertools.combinations(range(features), k))
    rows = []
    for record in itertools.product((0, 1), repeat=features):
        row = []
        for subset in subsets:
            for codes in itertools.product((0, 1), repeat=k):
                chances = [law[record[j]][code] for j, code in zip(subset, codes, strict=True)]
                row.append(math.prod(chances, start=Fraction(1, len(subsets))))
        assert sum(row) == 1
        rows.append(row)
    assert mechanism.guarantee.record == pytest.approx(oracle.epsilon_of(rows), rel=1e-14)
    alike = [row for row, record in zip(rows, itertools.product((0, 1), repeat=features), strict=True)
             if record[1:] == (0,) * (features - 1)]  # fmt: skip
    assert mechanism.guarantee.feature == pytest.approx(oracle.epsilon_of(alike), rel=1e-14)


def test_sampling_beats_splitting():
    """768 features, epsilon 4: mean variance of a coordinate 2.0e5 split, 361 sampled, within 1 %."""
    split, sampled = (Piecewise(epsilon=4.0, features=768, spend=spend) for spend in ("split", "sample"))
    assert sampled.k == 1
    assert split.k is None
    assert split.mean_variance() == pytest.approx(2.0e5, rel=0.02)
    assert sampled.mean_variance() == pytest.approx(361, rel=0.01)
    for kind in KINDS:
        for epsilon in (1.0, 4.0, 16.0):
            split, sampled = (
                kind(epsilon=epsilon, features=768, spend=spend) for spend in ("split", "sample")
            )
            assert sampled.k == max(1, math.floor(epsilon / 2.5))
            assert sampled.worst_variance() < split.worst_variance() / 40
            assert split.guarantee.record == pytest.approx(epsilon, rel=1e-9)
            assert sampled.guarantee.record == pytest.approx(epsilon, rel=1e-9)
            assert sampled.guarantee.record <= epsilon


@pytest.mark.parametrize(("epsilon", "features", "k"), [(1.0, 9, 1), (4.9, 9, 1), (5.0, 9, 2), (100.0, 9, 9)])
def test_how_many_coordinates_are_sampled(epsilon, features, k):
    assert Hybrid(epsilon=epsilon, features=features, spend="sample").k == k


def test_what_a_budget_covers():
    for spend, k, parts in (("split", None, 6), ("sample", 2, 2)):
        record = Piecewise(epsilon=3.0, features=6, spend=spend, k=k).guarantee
        assert record.record == pytest.approx(3.0, rel=1e-9)
        assert record.feature == pytest.approx(3.0 / parts, rel=1e-9)
        feature = Piecewise(epsilon=3.0, features=6, spend=spend, k=k, unit="feature").guarantee
        assert feature.feature == pytest.approx(3.0, rel=1e-9)
        assert feature.record == pytest.approx(3.0 * parts, rel=1e-9)
        assert feature.holds


def test_ldpfl_is_duchi_on_another_interval():
    mechanism = LDPFLDuchi(epsilon=1.5, center=0.25, radius=0.5)
    reach = 0.5 * (math.exp(1.5) + 1) / (math.exp(1.5) - 1)
    np.testing.assert_allclose(mechanism.letters, [0.25 - reach, 0.25 + reach], rtol=1e-12)
    same = Duchi(epsilon=1.5, interval=(-0.25, 0.75))
    np.testing.assert_array_equal(mechanism.letters, same.letters)
    x = np.linspace(-0.5, 1.0, 1000)
    np.testing.assert_array_equal(mechanism.randomize(x, rng=1), same.randomize(x, rng=1))
    assert mechanism.guarantee == same.guarantee
