"""The bound of dithered records against brute force; mechanisms that are fitted to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bitldp.accounting import ORDERS, account
from bitldp.accounting.compose import concentration, from_renyi, searched
from bitldp.audit import audit
from bitldp.compression import InterpolatedMVU, VectorMVU
from bitldp.compression.ball import bounds
from bitldp.compression.ball.interpolated_mvu import _base, _tilted

PLACES = np.unique(
    np.concatenate([np.linspace(-1, 1, 161), *(s * np.geomspace(1e-3, 1, 30) for s in (-1, 1))])
)


def response(slope):
    return np.array([[1 + slope, 1 - slope], [1 - slope, 1 + slope]]) / 2


def uneven(points, values, seed):
    rows = np.random.default_rng(seed).uniform(0.3, 1.0, (points, values)).cumsum(axis=0)
    return rows / rows.sum(axis=1, keepdims=True)


ROWS = {
    "response": response(0.5),
    "steep": response(0.95),
    "uneven": uneven(4, 3, 1),
    "odd": uneven(5, 4, 2),
    "tilted": _tilted(np.linspace(-2, 2, 4), _base(np.linspace(-2, 2, 4), 1.5), np.linspace(-1, 1, 8)),
}


def brute(rows, alpha):
    """Return the divergences of every two of many places, by the definition."""
    table = bounds.law(rows, PLACES)
    logs = np.log(table)
    if math.isinf(alpha):
        return (logs[:, None] - logs).max(axis=2)
    sums = np.exp(alpha * logs) @ np.exp((1.0 - alpha) * logs).T
    return np.log(sums) / (alpha - 1.0)


def dual(divergences, power, features):
    """Return the least bound of any price, over the places alone: what `record` must not be below."""
    sizes = np.abs(PLACES) ** power
    costs = sizes[:, None] + sizes
    prices = np.geomspace(1e-3, 300.0, 250)
    return min(2 * price + features * max((divergences - price * costs).max(), 0.0) for price in prices)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("name", ROWS)
def test_the_bound_is_above_brute_force_and_close(name, power):
    for alpha in (1.1, 2.0, 5.0):
        found = brute(ROWS[name], alpha)
        for features in (1, 40):
            bound = bounds.record(ROWS[name], alpha, power, 1.0, features)
            # prices of `dual` are 5 % apart, the least of them at most that above the true one
            least = dual(found, power, features)
            assert 0.95 * least <= bound <= (1.3 if name == "steep" else 1.05) * least


@pytest.mark.parametrize("name", ROWS)
def test_every_pair_is_below_the_price(name, monkeypatch):
    """On a mesh so coarse that what cells add shows: the largest excess at a price, against many places."""
    monkeypatch.setattr(bounds, "_RATIO", 5.0)
    seen = []
    monkeypatch.setattr(bounds, "_dual", lambda gains, costs, *_: seen.append((gains, costs)) or 1.0)
    for power in (1, 2):
        for alpha in (1.5, 4.0, math.inf):
            seen.clear()
            found, sizes = brute(ROWS[name], alpha), np.abs(PLACES) ** power
            costs = sizes[:, None] + sizes
            bounds.record(ROWS[name], alpha, power, 1.0, 2)
            gains, prices = seen[0]
            for price in np.geomspace(0.01, 100.0, 30):
                assert (found - price * costs).max() <= (gains - price * prices).max() + 1e-12


def test_the_search_of_the_price_finds_the_least():
    rng = np.random.default_rng(3)
    for features in (1, 7, 300):
        gains = np.append(rng.uniform(0.0, 1.0, 200), 0.0)
        costs = np.append(rng.uniform(0.0, 2.0, 200), 0.0)
        prices = np.geomspace(1e-3, 1e4, 6000)
        least = min(2 * p + features * (gains - p * costs).max() for p in prices)
        found = bounds._dual(gains, costs, 1.0, features)
        assert 0.99 * least <= found <= least * (1.0 + 2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_no_pair_of_records_exceeds_the_bound(seed):
    """Random records of the sphere, sparse and dense, by the product law."""
    rng = np.random.default_rng(seed)
    d = 6
    for rows in ROWS.values():
        for power in (1, 2):
            bound = bounds.record(rows, 3.0, power, 1.0, d)
            pure = bounds.record(rows, math.inf, power, 1.0, d)
            for _ in range(60):
                one, other = rng.normal(size=(2, d)) * (rng.random((2, d)) < rng.uniform(0.2, 1.0))
                other = -one if rng.random() < 0.5 else other
                x, y = (v / max(np.linalg.norm(v, power), 1e-9) for v in (one, other))
                p, q = bounds.law(rows, x), bounds.law(rows, y)
                assert np.log((p**3 * q**-2.0).sum(axis=1)).sum() / 2.0 <= bound
                assert np.log(p / q).max(axis=1).sum() <= pure


def test_one_bit_costs_what_gaussian_noise_of_its_variance_does():
    """In many dimensions, 2 alpha s^2: the largest pairs are opposite, and their coordinates small."""
    for slope in (0.1, 0.5):
        for alpha in (2.0, 8.0):
            bound = bounds.record(response(slope), alpha, 2, 1.0, 10_000)
            assert 0.99 < bound / (2.0 * alpha * slope**2) < 1.002


def test_more_capacity_order_and_slope_cost_more():
    rows = ROWS["tilted"]
    curve = [bounds.record(rows, alpha, 2, 1.0, 30) for alpha in (1.2, 2.0, 4.0, 8.0, 32.0, math.inf)]
    assert (np.diff(curve) > 0.0).all()
    for values in (
        [bounds.record(rows, 3.0, 2, capacity, 30) for capacity in (0.5, 1.0, 1.5)],
        [bounds.record(response(slope), 3.0, 2, 1.0, 30) for slope in (0.1, 0.3, 0.9)],
        [bounds.record(rows, 3.0, 2, 1.0, d) for d in (1, 4, 64)],
    ):
        assert (np.diff(values) > -1e-3 * values[0]).all()


@pytest.fixture(scope="module")
def mechanism():
    return InterpolatedMVU(24, epsilon=5.0, delta=1e-4, output_bits=2)


@pytest.mark.slow
def test_best_is_the_least_of_the_bounds(mechanism):
    orders = [1.3, 3.0, 20.0]
    each = [mechanism.renyi(orders, bound=name) for name in ("coupled", "steepest", "interpolated")]
    best = mechanism.renyi(orders)
    np.testing.assert_array_equal(best, np.minimum(np.min(each, axis=0), mechanism.pure_epsilon()))
    assert (each[2] < each[0]).all()
    assert (each[2] < each[1]).all()
    assert float(mechanism.renyi(3.0)) == best[1]
    for name in ("greedy", "none"):
        with pytest.raises(ValueError, match="bound"):
            mechanism.renyi(2.0, bound=name)


@pytest.mark.slow
def test_the_guarantee_is_that_of_the_accountant(mechanism):
    guarantee = mechanism.guarantee
    assert guarantee.holds
    assert guarantee.record == from_renyi(mechanism.renyi(ORDERS), ORDERS, 1e-4)
    assert guarantee.record == searched(mechanism.renyi, 1e-4)
    assert 0.98 * 5.0 < guarantee.record <= 5.0
    assert account([(mechanism, 1)], delta=1e-4, method="renyi").epsilon == pytest.approx(guarantee.record)


@pytest.mark.slow
def test_letters_are_right_at_every_point_and_efficient(mechanism):
    rows = mechanism.probabilities()
    means = rows @ mechanism.letters
    np.testing.assert_allclose(means, mechanism.codec.values(), atol=1e-12)
    # at the points, variance times Fisher information of the family is 1: slope of the mean in theta
    logs = np.log(rows / rows[len(rows) // 2])
    theta = (logs[:, -1] - logs[:, 0]) / (mechanism.letters[-1] - mechanism.letters[0])
    at = slice(1, -1)
    slope = (means[2:] - means[:-2]) / (theta[2:] - theta[:-2])
    spread = mechanism.variance(mechanism.codec.values())
    np.testing.assert_allclose(slope, spread[at], rtol=5e-3)


def test_unbiased_by_simulation(mechanism):
    """Of 20,000 records: each coordinate within 5 standard errors, which fails below 2e-5 if right."""
    x = np.random.default_rng(1).normal(size=24)
    x /= np.linalg.norm(x)
    estimate = mechanism.estimate_mean(mechanism.randomize(np.tile(x, (20_000, 1)), rng=5))
    assert (np.abs(estimate.value - x) < 5.0 * estimate.stderr).all()
    np.testing.assert_allclose(np.square(estimate.stderr) * 20_000, mechanism.variance(x), rtol=0.06)


def test_audit_finds_nothing(mechanism):
    result = audit(mechanism, n=8_000, rng=1)
    assert result.passed, result
    assert result.lower > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_variance_is_below_that_of_gaussian_noise(epsilon):
    """Accounted by the same conversion: 2 R^2/rho a coordinate. So it is below that of Skellam, too."""
    gauss = 2.0 / concentration(epsilon, 1e-4)
    one = VectorMVU(128, epsilon=epsilon, delta=1e-4, output_bits=1)
    assert one.guarantee.holds
    assert one.worst_variance() < gauss
    assert InterpolatedMVU(128, epsilon=epsilon, delta=1e-4, output_bits=2).worst_variance() < gauss


@pytest.mark.slow
def test_budgets_that_one_bit_cannot_spend():
    one = VectorMVU(128, epsilon=12.0, delta=1e-4, output_bits=1)
    more = InterpolatedMVU(128, epsilon=12.0, delta=1e-4, output_bits=2)
    assert one.worst_variance() >= 1.0
    assert more.worst_variance() < 0.75


@pytest.mark.parametrize(("norm", "exact"), [("l1", 2.0 * math.atanh(0.5)), ("l2", None)])
def test_pure_privacy_of_one_bit(norm, exact):
    """In the l1 ball the worst pair is two ends: the budget is that of one number."""
    mechanism = VectorMVU(9, epsilon=2.0 * math.atanh(0.5), norm=norm, output_bits=1)
    assert 0.99 * mechanism.epsilon < mechanism.guarantee.record <= mechanism.epsilon
    if exact:
        assert mechanism.channel.epsilon == pytest.approx(exact, rel=0.2)  # one price for both records
    assert InterpolatedMVU(9, epsilon=2.0, norm=norm, output_bits=2).guarantee.holds


def test_large_tables_are_not_looked_at():
    rows = np.full((600, 2), 0.5)
    table = bounds.LossTable(rows, 0.0)
    assert bounds._looked(table, 2.0, 599.0, 2, 3, False) == math.inf
    assert bounds.pure(table, 599.0, 2, 3) == pytest.approx(bounds.steepest(rows) * 599 * math.sqrt(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"output_bits": 1}, "output_bits"),
        ({"output_bits": 6}, "output_bits"),
        ({"input_bits": 1}, "input_bits"),
        ({"norm": "linf"}, "norm"),
        ({"delta": 1.0}, "delta"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"features": 0}, "features"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        InterpolatedMVU(**{"features": 3, "epsilon": 1.0, "delta": 1e-4, **arguments})
