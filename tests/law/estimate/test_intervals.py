"""Intervals hold the truth as often as they say, at every number of reports, whatever the records are."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace

import bitldp
import numpy as np
import pytest
from bitldp import Estimate
from bitldp.estimate.binomial import share_limits, student
from bitldp.estimate.estimates import frequencies
from bitldp.estimate.means import mean_of
from bitldp.letters.spread import Mixed
from bitldp.numeric import Hybrid, ThreeOutputs
from scipy import special, stats

LEVEL = 0.95
CATEGORIES = 4
SHARES = {
    "uniform": np.full(CATEGORIES, 1.0 / CATEGORIES),
    "two": np.array([0.5, 0.0, 0.0, 0.5]),
    "skewed": np.array([0.9, 0.07, 0.02, 0.01]),
}
CATEGORICAL = {
    "GRR": bitldp.GRR,
    "OUE": bitldp.OUE,
    "OLH": bitldp.OLH,
    "BlockDesign": bitldp.BlockDesign,
    "SubsetSelection": bitldp.SubsetSelection,
    "Hadamard": bitldp.HadamardResponse,
    "Exponential": bitldp.Exponential,
}
NUMERIC = {
    "Duchi": bitldp.Duchi,
    "Piecewise": bitldp.Piecewise,
    "Hybrid": Hybrid,
    "ThreeOutputs": ThreeOutputs,
    "Laplace": bitldp.Laplace,
    "MVU": lambda **rest: bitldp.MVU(input_bits=3, output_bits=3, **rest),
}


def numbers(kind, runs, n, rng):
    """Return records of [-1, 1], shape (n, runs), and the mean of their population."""
    if kind == "uniform":
        return rng.uniform(-1.0, 1.0, (n, runs)), 0.0
    if kind == "two":
        return np.where(rng.random((n, runs)) < 0.5, 1.0, -1.0), 0.0
    if kind == "rare":
        return np.where(rng.random((n, runs)) < 0.05, 1.0, -1.0), -0.9
    return 2.0 * rng.beta(2.0, 5.0, (n, runs)) - 1.0, 4.0 / 7.0 - 1.0


def estimated_mean(name, epsilon, kind, runs, n, rng):
    """Return estimates of so many means of n records each, and the truth."""
    mechanism = NUMERIC[name](epsilon=epsilon, features=runs, unit="feature")
    records, truth = numbers(kind, runs, n, rng)
    return mechanism.estimate_mean(mechanism.randomize(records, rng=int(rng.integers(1 << 31)))), truth


def estimated_shares(name, epsilon, kind, runs, n, rng):
    """Return estimates of frequencies, by run and category, as an accumulator makes them, and the truth."""
    mechanism = CATEGORICAL[name](CATEGORIES, epsilon=epsilon)
    records = rng.choice(CATEGORIES, runs * n, p=SHARES[kind])
    reports = mechanism.randomize(records, rng=int(rng.integers(1 << 31)))
    if name == "Exponential":
        letters = mechanism._inverse.indicators[reports]
        law = mechanism._inverse.law
    elif name == "GRR":
        letters, law = np.eye(CATEGORIES)[reports], None
    else:
        letters, law = mechanism.decode(reports), getattr(mechanism, "_letter_law", None)
    letters = letters.reshape(runs, n, CATEGORIES)
    if law is None:
        counts = (letters > 0.0).sum(axis=1)
        return frequencies(counts, n, *mechanism._check_informative()), SHARES[kind]
    mean, variance = letters.mean(axis=1), letters.var(axis=1, ddof=1)
    if name == "Exponential":
        law = replace(law, mixed=law.mixed.by_entry(mean.shape))
    return mean_of(mean, variance, n, law), SHARES[kind]


def coverage(estimate, truth):
    """Return the share of the runs whose interval holds the truth; of several categories the least one."""
    low, high = estimate.confidence_interval(LEVEL)
    held = (low <= truth) & (truth <= high)
    return float(held.mean(axis=0).min())


def floor(runs):
    """Return the least coverage that so many runs allow: four standard deviations of a right one's."""
    return LEVEL - 4.0 * np.sqrt(LEVEL * (1.0 - LEVEL) / runs)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("n", [2, 5, 10, 29, 30, 100])
def test_coverage(n, epsilon):
    """500 runs of each mechanism and kind of records: the 95 % interval holds in 91.1 % or more (4 s)."""
    rng = np.random.default_rng(int(n + 1000 * epsilon))
    for name, kind in itertools.product(("Duchi", "Piecewise"), ("uniform", "two", "rare", "skewed")):
        assert coverage(*estimated_mean(name, epsilon, kind, 500, n, rng)) >= floor(500), (name, kind)
    for name, kind in itertools.product(("GRR", "OUE", "Hadamard"), SHARES):
        assert coverage(*estimated_shares(name, epsilon, kind, 500, n, rng)) >= floor(500), (name, kind)


@pytest.mark.statistical
def test_the_normal_interval_would_be_seen():
    """The same check with value -+ 1.96 standard errors of the sample: it fails at 2 and 5 reports."""
    rng = np.random.default_rng(1)
    for n in (2, 5):
        mechanism = bitldp.Duchi(epsilon=2.0, features=500, unit="feature")
        records, truth = numbers("skewed", 500, n, rng)
        letters = mechanism.decode(mechanism.randomize(records, rng=n))
        plain = Estimate(letters.mean(axis=0), letters.std(axis=0, ddof=1) / np.sqrt(n), 30)
        assert plain.method.startswith("normal law")
        assert coverage(plain, truth) < floor(500)


@pytest.mark.evidence
@pytest.mark.parametrize("name", [*NUMERIC, *CATEGORICAL])
def test_coverage_of_every_kind(name):
    """5,000 runs, 13 mechanisms, epsilon 1 and 8, 2 to 1,000 reports: 94 %; means from 300 on <= 96.5."""
    rng = np.random.default_rng(1)
    means = name in NUMERIC
    kinds = ("uniform", "two", "rare", "skewed") if means else SHARES
    for epsilon, n, kind in itertools.product((1.0, 8.0), (2, 5, 10, 30, 100, 300, 1000), kinds):
        if not means and n > 300:
            continue
        made = (estimated_mean if means else estimated_shares)(name, epsilon, kind, 5000, n, rng)
        held = coverage(*made)
        print(f"{name} {epsilon:g} {n} {kind} {made[0].method}: {held:.4f}")
        assert held >= 0.94, (epsilon, n, kind, held)
        if means and n >= 300 and name != "Duchi":  # whose counts are whole, so that it is exact
            assert held <= 0.965, (epsilon, n, kind, held)


@pytest.mark.parametrize("tail", [0.25, 0.025, 1e-6])
@pytest.mark.parametrize("n", [1, 2, 7, 100, 10**5, 10**7])
def test_limits_are_those_of_clopper_and_pearson(n, tail):
    k = np.unique(np.array([0, 1, 2, 3, n // 100, n // 3, n // 2, n - n // 7, n - 2, n - 1, n]).clip(0, n))
    low, high = share_limits(k, n, tail)
    least = np.where(k > 0, special.betaincinv(np.maximum(k, 1), n - k + 1.0, tail), 0.0)
    most = np.where(k < n, special.betainccinv(k + 1.0, np.maximum(n - k, 1), tail), 1.0)
    assert (low <= least * (1.0 + 1e-12)).all()  # rounded outward
    assert (high >= most * (1.0 - 1e-12)).all()
    deviation = np.sqrt(np.maximum(least * (1.0 - least), 1.0 / n) / n)
    np.testing.assert_array_less(np.abs(low - least)[k != 1], 1e-7 * deviation[k != 1])
    deviation = np.sqrt(np.maximum(most * (1.0 - most), 1.0 / n) / n)
    np.testing.assert_array_less(np.abs(high - most)[k != n - 1], 1e-7 * deviation[k != n - 1])
    assert (high - low <= 1.05 * (most - least)).all()


def test_limits_of_very_many_reports():
    """Counts up to 2**62: rare events are Poisson's, and half of all is the normal law's, to 1e-3."""
    low, high = share_limits(np.array([0, 3, 1 << 61, 1 << 62]), 1 << 62, 0.025)
    assert low[0] == 0.0
    assert high[3] == 1.0
    gamma = special.gammaincinv(3.0, 0.025) / 2.0**62  # the binomial of rare events is Poisson's
    assert gamma * (1.0 - 1e-5) < low[1] < gamma
    reach = 1.959964 * 0.5 / 2.0**31
    assert low[2] == pytest.approx(0.5 - reach, abs=1e-3 * reach)
    assert high[2] == pytest.approx(0.5 + reach, abs=1e-3 * reach)


def test_thousands_of_counts_with_numbers_of_their_own():
    rng = np.random.default_rng(1)
    n = rng.integers(1, 500, (50, 40))
    k = rng.integers(0, n + 1)
    low, high = share_limits(k, n, 0.025)
    one = [share_limits(np.array([a]), b, 0.025) for a, b in zip(k.flat[:40], n.flat[:40], strict=True)]
    assert low.shape == high.shape == k.shape
    np.testing.assert_allclose(low.flat[:40], [each[0][0] for each in one], rtol=1e-12)
    np.testing.assert_allclose(high.flat[:40], [each[1][0] for each in one], rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_limits_hold_for_unlike_trials(n):
    """Every mixture of chances on a grid of 1/40 near 1: the upper limit is below their mean in 2.5 %."""
    grid = np.concatenate([np.linspace(0.0, 1.0, 11), 1.0 - np.geomspace(0.001, 0.09, 10)])
    high = share_limits(np.arange(n + 1), n, 0.025)[1]
    for chances in itertools.combinations_with_replacement(grid, n):
        law = np.ones(1)
        for each in chances:
            law = np.convolve(law, [1.0 - each, each])
        assert law[high < np.mean(chances)].sum() <= 0.025 + 1e-12, chances


@pytest.mark.parametrize("tail", [0.25, 0.025, 1e-4])
def test_students_quantiles(tail):
    for freedom in (1, 2, 3, 29, 59, 60, 1000, 10**9):
        assert student(freedom, tail) == pytest.approx(stats.t.isf(tail, freedom), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_two_reports_of_a_number(epsilon):
    """Equal letters are no certainty: neither the standard error nor the interval is a point."""
    mechanism = bitldp.Duchi(epsilon=epsilon, interval=(0.0, 1.0))
    estimate = mechanism.estimate_mean(np.array([1, 1]))
    assert estimate.stderr[0] >= np.sqrt(float(mechanism.variance(1.0)) / 2.0) * (1.0 - 1e-12)
    assert estimate.method == "Clopper-Pearson"
    low, high = estimate.confidence_interval(LEVEL)
    assert low[0] < 0.5
    assert high[0] >= 1.0
    (one,) = np.diff(mechanism.estimate_mean(np.array([1])).confidence_interval(LEVEL), axis=0)
    assert one[0] > high[0] - low[0] > 0.5


@pytest.mark.parametrize("name", [*NUMERIC, *CATEGORICAL])
def test_what_an_accumulator_gives_has_these_intervals(name):
    """By name of the method, by entry, by label, in a pickle, and through JSON."""
    if name in NUMERIC:
        mechanism = NUMERIC[name](epsilon=2.0, features=CATEGORIES, unit="feature")
        records = np.random.default_rng(1).uniform(-1.0, 1.0, (12, CATEGORIES))
    else:
        mechanism = CATEGORICAL[name](CATEGORIES, epsilon=2.0)
        records = np.arange(12) % CATEGORIES
    accumulator = mechanism.accumulator()
    accumulator.update(mechanism.randomize(records, rng=1))
    estimate = accumulator.estimate()
    exact = name in ("Duchi", "GRR", "OUE", "OLH", "BlockDesign", "SubsetSelection")
    assert estimate.method == ("Clopper-Pearson" if exact else "Bernstein's bound")
    low, high = estimate.confidence_interval()
    assert low.shape == high.shape == estimate.value.shape
    assert (low <= estimate.value).all()
    assert (estimate.value <= high).all()
    again = type(accumulator).from_json(accumulator.to_json(), mechanism).estimate()
    for part, index in (
        (estimate[1], 1),
        (estimate[1:3], slice(1, 3)),
        (pickle.loads(pickle.dumps(again)), ...),
    ):
        np.testing.assert_allclose(part.confidence_interval()[0], low[index], rtol=1e-9)
        np.testing.assert_allclose(part.confidence_interval()[1], high[index], rtol=1e-9)


def test_fewer_reports_have_wider_intervals():
    """A sample of letters, 2 to 2,000 times over, for three mechanisms: width falls, at 30 reports, too."""
    for name in ("Piecewise", "Laplace", "MVU"):
        mechanism = NUMERIC[name](epsilon=1.0)
        mean, variance = np.array([0.1]), np.array([mechanism.mean_variance()])
        widths = []
        for n in (1, 2, 5, 10, 29, 30, 31, 100, 299, 300, 2000):
            low, high = mean_of(mean, variance, n, mechanism._letter_law).confidence_interval()
            widths.append(float(high[0] - low[0]))
        assert all(a > b for a, b in itertools.pairwise(widths))
        assert widths[-1] == pytest.approx(2 * 1.959964 * np.sqrt(variance[0] / 2000), rel=0.02)


@pytest.mark.statistical
def test_bernsteins_bound_is_above_the_tail():
    """Of 6,000 means of 2 and of 8 letters, three laws: 2.5 % or less beyond either limit."""
    for mechanism in (ThreeOutputs(epsilon=1.0), bitldp.Piecewise(epsilon=4.0), bitldp.Laplace(epsilon=2.0)):
        letters, law, rows = mechanism.letters, mechanism._letter_law, mechanism.probabilities()
        for row, truth in ((rows[0], -1.0), (rows[-1], 1.0), ((rows[0] + rows[-1]) / 2.0, 0.0)):
            rng = np.random.default_rng(3)
            for n in (2, 8):
                sums = rng.choice(letters, (6_000, n), p=row / row.sum()).mean(axis=1)
                low, high = mean_of(sums, np.zeros_like(sums), n, law).confidence_interval(LEVEL)
                assert np.mean(truth > high) <= 0.025
                assert np.mean(truth < low) <= 0.025


def test_variances_of_records_with_a_mean():
    """Bounds of `Mixed` against random mixtures of points, of a law that is neither convex nor concave."""
    rng = np.random.default_rng(4)
    points = np.linspace(-1.0, 1.0, 9)
    moments = 2.0 + np.sin(4.0 * points)
    mixed = Mixed.of_points(points, moments)
    shares = rng.dirichlet(np.full(9, 0.3), 2000)
    mean, spread = shares @ points, shares @ moments - np.square(shares @ points)
    least, most = mixed.bounds(mean)
    assert (least <= spread + 1e-12).all()
    assert (spread <= most + 1e-12).all()
    np.testing.assert_allclose(np.min(spread - least), 0.0, atol=0.02)
    np.testing.assert_allclose(np.min(most - spread), 0.0, atol=0.05)
    assert Mixed.of_range(-2.0, 2.0).bounds(np.array([0.0, 2.0]))[1].tolist() == [4.0, 0.0]


def test_what_knows_no_law():
    plain = Estimate(np.array([1.0]), np.array([0.5]), 29)
    low, _ = plain.confidence_interval(0.75)
    assert plain.method == "Chebyshev's inequality"
    assert low[0] == pytest.approx(0.0)
