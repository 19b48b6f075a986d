"""Noise for records of a ball: closed forms, laws by enumeration, and any budget, dimension and width."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from bitldp.channels.noise import gaussian_weights, skellam_weights
from bitldp.channels.normal import (
    continuous_sigma,
    delta_of,
    epsilon_of,
    largest_mu,
    slope_of_noise,
    slope_of_rows,
)
from bitldp.compression import BallGaussian, LaplaceBall, Skellam
from bitldp.compression.ball.steps import distances
from bitldp.privacy import ONE
from bitldp.release.shift import row_of
from scipy import stats

KINDS = (BallGaussian, Skellam)


def law(mechanism, x):
    """Return the law of the codes of numbers of one coordinate, one row each."""
    steps = mechanism.codec.points - 1
    places = (np.asarray(x) / mechanism.radius + 1.0) * steps / 2.0
    low = np.clip(np.floor(places).astype(int), 0, steps - 1)
    return np.stack(
        [
            (1.0 - f) * row_of(mechanism.channel, n) + f * row_of(mechanism.channel, n + 1)
            for n, f in zip(low.tolist(), (places - low).tolist(), strict=True)
        ]
    )


def stick(one, other, epsilon):
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0, 8.0, 20.0])
def test_laplace_has_the_variance_of_its_closed_form(epsilon):
    mechanism = LaplaceBall(128, epsilon=epsilon, radius=3.0)
    assert mechanism.mean_variance() == pytest.approx(2.0 * (2.0 * 3.0 / epsilon) ** 2, rel=0.01)
    assert mechanism.worst_variance() == pytest.approx(2.0 * (2.0 * 3.0 / epsilon) ** 2, rel=0.01)
    assert 0.999 * epsilon < mechanism.guarantee.record <= epsilon


def test_laplace_at_the_setting_of_the_paper():
    """10,000 records of the l1 ball in 128 dimensions at epsilon 1: a mean squared error of 8.0e-4."""
    mechanism = LaplaceBall(128, epsilon=1.0)
    assert mechanism.mean_variance() / 10_000 == pytest.approx(8.0e-4, rel=0.01)
    x = np.random.default_rng(1).dirichlet(np.ones(128), 10_000)
    error = mechanism.estimate_mean(mechanism.randomize(x, rng=2)).value - x.mean(axis=0)
    # of 128 squares the mean is within 5 deviations of a chi-square's, but for 1 in 10^6
    assert np.square(error).mean() == pytest.approx(8.0e-4, rel=5.0 * math.sqrt(2.0 / 128))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 12.0, 28.0])
def test_laplace_letters_are_unbiased_at_every_point(epsilon):
    mechanism = LaplaceBall(3, epsilon=epsilon, radius=2.0)
    means = mechanism.probabilities() @ mechanism.letters
    np.testing.assert_allclose(means, mechanism.points, atol=1e-11 / min(epsilon, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 28.0, 33.0])
def test_no_pair_of_records_exceeds_laplace(epsilon):
    """Random pairs of the l1 ball, corners, and the worst: one long coordinate against many short ones."""
    d = 200
    mechanism = LaplaceBall(d, epsilon=epsilon)
    rng = np.random.default_rng(1)
    pairs = [(-np.eye(d)[0], np.append(0.0, np.full(d - 1, 1.0 / (d - 1)))), (np.eye(d)[0], -np.eye(d)[0])]
    pairs += [(rng.laplace(size=d), rng.laplace(size=d)) for _ in range(4)]
    largest = 0.0
    for one, other in pairs:
        rows = [law(mechanism, each / np.abs(each).sum() * (1.0 - 1e-12)) for each in (one, other)]
        with np.errstate(divide="ignore"):
            losses = np.log(rows[0]) - np.log(rows[1])
        largest = max(largest, losses.max(axis=1).sum(), (-losses).max(axis=1).sum())
    assert 0.97 * epsilon < largest <= mechanism.guarantee.record


def test_normal_laws_are_told_apart_as_the_formula_says():
    for mu in (1e-3, 0.3, 2.0, 9.0):
        for epsilon in (0.0, 0.1, 3.0):
            exact = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(
                -mu / 2 - epsilon / mu
            )
            assert exact <= delta_of(mu, epsilon) <= exact * (1.0 + 1e-9) + 1e-12
    assert delta_of(0.0, 1.0) == epsilon_of(0.0, 1e-9) == 0.0
    assert delta_of(1e9, 1.0) == 1.0
    assert math.isinf(epsilon_of(1e9, 1e-9))
    for epsilon, delta in ((0.01, 1e-3), (1.0, 1e-9), (30.0, 1e-6)):
        mu = largest_mu(epsilon, delta)
        assert epsilon * (1.0 - 1e-6) < epsilon_of(mu, delta) <= epsilon
        assert delta_of(mu, epsilon_of(mu, delta)) <= delta


@pytest.mark.parametrize("weights", [gaussian_weights, skellam_weights])
def test_lumped_tails_are_those_of_the_law(weights):
    own = weights(30.0 if weights is gaussian_weights else 450.0, 120, lumped=True)
    assert sum(own) == ONE
    if weights is gaussian_weights:
        points = np.arange(-600, 601)
        whole = np.exp(-np.square(points) / 1800.0)
        whole /= whole.sum()
    else:
        points = np.arange(-600, 601)
        whole = stats.skellam(450.0, 450.0).pmf(points)
    inside = whole[600 - 119 : 600 + 120]
    np.testing.assert_allclose([each / ONE for each in own[1:-1]], inside, rtol=1e-9)
    assert own[0] / ONE == pytest.approx(whole[: 600 - 119].sum(), rel=1e-9)


def test_the_slope_of_noise_is_near_that_of_the_normal_law_and_never_below():
    for sigma in (40.0, 400.0):
        reach = int(6 * sigma)
        slope = slope_of_noise(gaussian_weights(sigma, reach, lumped=True)) * sigma
        assert 1.0 < slope < math.exp((reach + 1) / (2.0 * sigma**2)) + 1e-3
    # one bit of randomized response: between p and 1 - p, dithered
    p = 0.2
    found = slope_of_rows(np.array([[1.0 - p, p], [p, 1.0 - p]]))
    assert found == pytest.approx((1.0 - 2.0 * p) / stats.norm.pdf(stats.norm.ppf(p)), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "bits"), [(0.7, 8), (2.0, 12), (3.0, 7), (9.0, 9), (22.0, 8)])
def test_no_two_inputs_of_a_coordinate_exceed_the_curve(kind, epsilon, bits):
    """All divergences of near and far pairs, at and between the points, by enumeration."""
    mechanism = kind(1, epsilon=epsilon, delta=1e-4, output_bits=bits)
    step = 2.0 / (mechanism.codec.points - 1)
    inputs = np.array([-1.0, -1.0 + step / 3, -step, -step / 7, 0.0, step / 2, 1.0 - step, 1.0])
    rows = law(mechanism, inputs)
    weights, points = mechanism.channel.weights(), mechanism.codec.points
    known = distances(weights, slope_of_noise(weights), points - 1)
    assert known is not None
    largest = 0.0
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            mu = float(known.at(abs(inputs[i] - inputs[j]) / step))
            assert mu <= mechanism.gdp_mu
            for e in np.linspace(0.0, 1.5 * epsilon, 7).tolist():
                found = stick(one, other, e)
                assert found <= delta_of(mu, e) + 1e-15
                if i == 0 and j == len(rows) - 1:
                    assert found <= mechanism.delta_at(e)
                    largest = max(largest, found / mechanism.delta_at(e))
    assert largest > (0.97 if bits == 12 else 0.7)


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_records_exceed_the_curve_in_two_dimensions(kind):
    mechanism = kind(2, epsilon=2.0, delta=1e-4, output_bits=7, radius=2.0)
    rng = np.random.default_rng(3)
    turns = rng.uniform(0.0, 2.0 * math.pi, (12, 2))
    turns[:4, 1] = turns[:4, 0] + math.pi
    largest = 0.0
    for pair in turns:
        rows = [law(mechanism, 2.0 * np.array([math.cos(t), math.sin(t)])) for t in pair]
        one, other = (np.outer(*each).ravel() for each in rows)
        for epsilon in (0.0, 0.5, 2.0, 3.0):
            found = stick(one, other, epsilon)
            assert found <= mechanism.delta_at(epsilon)
            largest = max(largest, found / mechanism.delta_at(epsilon))
    assert largest > 0.7


def squares_of_pairs(rows):
    """Return the exact squares of mu, from grid point to grid point, by all events of both laws."""
    found = np.zeros((len(rows), len(rows)))
    for (i, one), (j, other) in itertools.permutations(enumerate(rows), 2):
        order = np.argsort(-(other / one), kind="stable")
        size, power = np.cumsum(one[order])[:-1], np.cumsum(other[order])[:-1]
        kept = (size < 0.5) & (
            power < 0.5
        )  # above, a sum loses what is left to 1; by symmetry it is the same
        found[i, j] = (stats.norm.ppf(power[kept]) - stats.norm.ppf(size[kept])).max(initial=0.0) ** 2
    return np.maximum(found, found.T)


def largest_sum(squares, features):
    """Return the largest sum over coordinates, each grid record in the ball by itself, by enumeration."""
    radius = (len(squares) - 1) // 2
    costs = np.square(np.arange(-radius, radius + 1))
    best = {(0, 0): 0.0}  # by what both records have spent
    for _ in range(features):
        longer = {}
        for (a, b), total in best.items():
            for i, j in itertools.product(range(len(squares)), repeat=2):
                key = (a + costs[i], b + costs[j])
                if max(key) <= radius * radius:
                    longer[key] = max(longer.get(key, 0.0), total + squares[i, j])
        best = longer
    return max(best.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("bits", "features"),
    [
        (5, 1),
        (5, 2),
        (5, 4),
        (6, 2),
        (6, 4),
        (7, 1),
        pytest.param(7, 2, marks=pytest.mark.slow),
        pytest.param(8, 1, marks=pytest.mark.slow),
    ],
)
def test_the_bound_of_records_is_that_of_all_pairs_of_grid_records(kind, bits, features):
    """Never below, and near above: what is above is for records between the points."""
    mechanism = kind(features, epsilon=14.0, delta=1e-6, output_bits=bits)
    points = mechanism.codec.points
    rows = np.array([row_of(mechanism.channel, each) for each in range(points)])
    true = math.sqrt(largest_sum(squares_of_pairs(rows), features))
    assert true <= mechanism.gdp_mu
    assert mechanism.gdp_mu <= true * {5: 1.5, 6: 1.15, 7: 1.02, 8: 1.005}[bits]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "bits"), [(8.0, 6), (1.0, 7), (4.0, 7), (14.0, 7)])
def test_records_between_the_points_are_within_the_bound_of_their_distance(kind, epsilon, bits):
    """The quantiles of all thresholds, on a fine mesh; without what the dither adds it fails."""
    mechanism = kind(1, epsilon=epsilon, delta=1e-6, output_bits=bits)
    weights, last = mechanism.channel.weights(), mechanism.codec.points - 1
    known = distances(weights, slope_of_noise(weights), last)
    assert known is not None
    places = np.linspace(0.0, last, 10 * last + 1)
    tails = np.cumsum(law(mechanism, (2.0 * places / last - 1.0) * mechanism.radius)[:, ::-1], axis=1)[:, :-1]
    quantiles = stats.norm.ppf(np.where(tails < 0.5, tails, np.nan))
    bare = known._replace(between=0.0)
    above = False
    for i in range(len(places)):
        apart = np.nanmax(quantiles[i:] - quantiles[i], axis=1)
        assert np.all(apart <= known.at(places[i:] - places[i]) + 1e-9)
        above |= bool(np.any(apart > bare.at(places[i:] - places[i]) + 1e-9))
    assert above


@pytest.mark.parametrize("kind", KINDS)
def test_a_coarse_grid_costs_no_more_than_a_fine_one_by_much(kind):
    """At 8 bits: within 1 % of the variance of the analytic Gaussian; by its slope alone it is 57 % above."""
    mechanism = kind(2, epsilon=8.0, delta=1e-6, output_bits=8)
    analytic = (2.0 * continuous_sigma(8.0, 1e-6)) ** 2
    assert mechanism.mean_variance() < 1.01 * analytic
    assert 7.99 < mechanism.guarantee.record <= 8.0
    slope = slope_of_noise(mechanism.channel.weights())
    assert mechanism.gdp_mu < 0.87 * slope * (mechanism.codec.points - 1)


def test_weights_whose_best_tests_are_no_thresholds_have_no_bound_by_distance():
    weights = gaussian_weights(3.0, 20, lumped=True)
    assert distances(weights, slope_of_noise(weights), 6) is not None
    uneven = list(weights)
    for k in (3, -4):  # two bumps, as far from either end
        uneven[k], uneven[k + (1 if k > 0 else -1)] = uneven[k + (1 if k > 0 else -1)], uneven[k]
    assert uneven == uneven[::-1]
    assert distances(uneven, 1.0, 6) is None
    heavy = [weights[0] + 2**40, *weights[1:-1], weights[-1] + 2**40]
    heavy[20] -= 2**41
    assert distances(heavy, 1.0, 6) is None
    assert distances(weights, 1.0, 21) is None


@pytest.mark.parametrize("features", [1, 2, 4, 64, 5_000])
def test_the_price_of_a_distance_bounds_every_split(features):
    weights = gaussian_weights(9.0, 65, lumped=True)
    known = distances(weights, slope_of_noise(weights), 14)
    found = known.record(14.0, features)
    assert found <= 14.0 * known.slope * (1.0 + 1e-9)
    largest = 0.0
    for used in (1, 2, 3, 4, 20, 64, 200, 1_000, 5_000):
        if used <= features:
            largest = max(largest, math.sqrt(used) * float(known.at(np.array(14.0 / math.sqrt(used)))))
    assert largest <= found <= 1.02 * largest


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("features", [1, 7_850, 100_000])
@pytest.mark.parametrize(("epsilon", "loss"), [(0.1, 0.01), (1.0, 0.01), (8.0, 0.01), (20.0, 0.03)])
def test_noise_is_that_of_the_analytic_gaussian_in_any_dimension(kind, features, epsilon, loss):
    mechanism = kind(features, epsilon=epsilon, delta=1e-6, radius=0.5)
    analytic = continuous_sigma(epsilon, 1e-6) ** 2  # of the diameter, 1
    assert mechanism.mean_variance() == pytest.approx(analytic, rel=loss)
    assert 0.99 * epsilon < mechanism.guarantee.record <= epsilon
    assert mechanism.report_bits <= 14 * features
    assert mechanism.bias_bound <= 1e-7 * math.sqrt(features) * mechanism.sigma
    assert float(mechanism.renyi(2.0)) == pytest.approx(mechanism.gdp_mu**2, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_bits_that_were_refused(kind):
    """12 bits at 8 and 14 at 5, and any at 7,850 dimensions below 1: more bits, less variance."""
    for features, epsilon in ((128, 5.0), (128, 8.0), (7_850, 0.5)):
        found = [
            kind(features, epsilon=epsilon, delta=1e-5, output_bits=bits).mean_variance()
            for bits in (9, 10, 12, 14)
        ]
        # a grid of more than 512 steps is accounted by its slope alone, which may cost a little
        assert all(more < 1.025 * fewer for fewer, more in itertools.pairwise(found))
        assert found[-1] == pytest.approx((2.0 * continuous_sigma(epsilon, 1e-5)) ** 2, rel=0.006)
    with pytest.raises(ValueError, match="output_bits: 5 are too few"):
        kind(128, epsilon=0.1, delta=1e-5, output_bits=5)
