"""The minimax mechanism: its table of errors, exact epsilon, unbiased letters, refusals."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp import Hybrid, MinimaxVariance, Piecewise, ThreeOutputs
from bitldp.audit import audit
from bitldp.design import DesignError, minimax, sliding
from support import oracle

N = 1 << 18
# Worst variance on [-1, 1], dither included, of the linear program with 65 points and 161 letters (HiGHS).
LP = {
    **{0.25: 64.00410, 0.5: 16.003756, 1.0: 3.990975, 1.5: 1.691683, 2.0: 0.865652, 3.0: 0.304264},
    **{4.0: 0.127297, 5.0: 0.0575864, 6.0: 0.0273511, 7.0: 0.0133809, 8.0: 0.00672899},
    **{9.0: 0.00346670, 10.0: 0.00186885},
}
GOALS = {4.0: 0.1273, 6.0: 0.02733, 8.0: 0.00671}
# The same over all numbers, of the program with 16 points.
OF_SIXTEEN = {1.0: 3.9925, 2.0: 0.8682, 4.0: 0.1304}


@pytest.mark.parametrize("epsilon", LP)
def test_it_is_minimax(epsilon):
    """Within 1 % of the program, at the budgets for which it was solved."""
    mechanism = MinimaxVariance(epsilon=epsilon)
    assert mechanism.worst_variance() <= 1.01 * min(LP[epsilon], GOALS.get(epsilon, math.inf))
    assert mechanism.mean_variance() <= mechanism.worst_variance()
    assert epsilon * (1 - 1e-8) <= mechanism.guarantee.record <= epsilon


@pytest.mark.parametrize("epsilon", [0.06, 0.17, 0.45, 0.93, 1.19, 2.93, 4.07, 5.81, 7.57, 9.94, 11.69])
def test_between_the_budgets_that_are_shipped(epsilon):
    """The worst case falls like a smooth function: that of a budget between two is between theirs, about.

    ln V is convex or nearly straight over so short a way, so that what interpolation costs shows.
    """
    budgets, shapes = sliding._shipped()
    place = int(np.searchsorted(budgets, epsilon))
    low, high = (float(each) for each in budgets[place - 1 : place + 1])
    ends = [math.log(sliding.worst(shapes[i], b)) for i, b in ((place - 1, low), (place, high))]
    share = (math.log(epsilon) - math.log(low)) / (math.log(high) - math.log(low))
    line = math.exp(ends[0] * (1.0 - share) + ends[1] * share)
    assert sliding.worst(sliding.shape(epsilon), epsilon) <= 1.01 * line


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", OF_SIXTEEN)
def test_table_of_mean_squared_errors(epsilon):
    """The program itself, with few points: at epsilon 4 the dither is 3 % of the worst case."""
    mechanism = MinimaxVariance(epsilon=epsilon, grid_points=16)
    assert mechanism.worst_variance() == pytest.approx(OF_SIXTEEN[epsilon], rel=1e-3)
    fine = mechanism.variance(np.linspace(-1.0, 1.0, 20_001))
    assert mechanism.worst_variance() == pytest.approx(fine.max(), rel=1e-5)
    for other in (Hybrid, ThreeOutputs, Piecewise):
        assert mechanism.worst_variance() < other(epsilon=epsilon).worst_variance()


def test_more_points_cost_less_dither():
    counts = (2, 3, 8, 16, 40, 65, 257, 513)
    worst = [MinimaxVariance(epsilon=4.0, grid_points=count).worst_variance() for count in counts]
    assert worst == sorted(worst, reverse=True)
    assert worst[0] == pytest.approx(bitldp.Duchi(epsilon=4.0).worst_variance(), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0, 8.0, 12.0])
@pytest.mark.parametrize("points", [3, 8, 65])
def test_exact_epsilon_and_means_by_enumeration(epsilon, points):
    mechanism = MinimaxVariance(epsilon=epsilon, grid_points=points, interval=(-1.0, 3.0))
    (channel,) = mechanism.channels
    law = [[Fraction(weight, oracle.ONE) for weight in row] for row in channel.weights()]
    assert all(sum(row) == 1 for row in law)
    assert mechanism.guarantee.record == pytest.approx(oracle.epsilon_of(law), rel=1e-14)
    assert epsilon * (1 - 1e-5) <= mechanism.guarantee.record <= epsilon
    letters = [Fraction(float(letter)) for letter in mechanism.letters]
    for row, point in zip(law, mechanism.points, strict=True):
        mean = sum(chance * letter for chance, letter in zip(row, letters, strict=True))
        assert abs(float(mean - Fraction(float(point)))) < 1e-9
    table = mechanism.probabilities()
    expected = table @ np.square(mechanism.letters) - np.square(mechanism.points)
    np.testing.assert_allclose(mechanism.variance(mechanism.points), expected, rtol=1e-6)


@pytest.mark.parametrize("x", [-1.0, -0.31, 0.5])
def test_mean_and_variance_by_simulation(x):
    """Both within 5 standard errors, the variance's by the fourth moment of the sample; n = 2^18."""
    mechanism = MinimaxVariance(epsilon=2.0, grid_points=8)
    letters = mechanism.decode(mechanism.randomize(np.full(N, x), rng=5))
    variance = float(mechanism.variance(x))
    assert abs(letters.mean() - x) < 5 * np.sqrt(variance / N)
    fourth = np.mean((letters - x) ** 4)
    assert abs(np.square(letters - x).mean() - variance) < 5 * np.sqrt((fourth - variance**2) / N)


def test_records():
    mechanism = MinimaxVariance(epsilon=6.0, features=4, spend="sample", grid_points=8)
    assert mechanism.k == 2
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (20_000, 4))
    estimate = mechanism.estimate_mean(mechanism.randomize(x, rng=2))
    assert np.all(np.abs(estimate.value - x.mean(axis=0)) < 5 * estimate.stderr)
    assert mechanism.guarantee.record <= 6.0
    assert mechanism.report_bits == 2 * (2 + (mechanism.alphabet - 1).bit_length())


def test_pickles_carry_the_table(monkeypatch):
    mechanism = MinimaxVariance(epsilon=2.0, grid_points=8, interval=(0.0, 5.0))
    data = pickle.dumps(mechanism)
    monkeypatch.setattr(minimax, "least_worst", lambda *_: pytest.fail("the table was designed anew"))
    again = pickle.loads(data)
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert again.fingerprint() == mechanism.fingerprint()
    np.testing.assert_array_equal(again.letters, mechanism.letters)
    np.testing.assert_array_equal(again.probabilities(), mechanism.probabilities())
    assert pickle.loads(pickle.dumps(again)).fingerprint() == mechanism.fingerprint()


def test_another_table_has_another_fingerprint():
    mechanism = MinimaxVariance(epsilon=2.0, grid_points=3)
    other = pickle.loads(pickle.dumps(mechanism))
    other._made[0] = other._made[0]._replace(letters=other._made[0].letters * 1.5)
    assert other.fingerprint() != mechanism.fingerprint()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0.01,), {}, "epsilon: 0.05 to 12"),
        ((13.0,), {}, "epsilon: 0.05 to 12"),
        ((-1.0,), {}, "epsilon: must be zero or more"),
        ((1.0,), {"grid_points": 1}, "grid_points: must be between 2 and 513"),
        ((1.0,), {"grid_points": 514}, "grid_points: must be between 2 and 513"),
        ((1.0,), {"grid_points": 3.0}, "grid_points: must be an integer"),
        ((1.0,), {"interval": (1.0, 1.0)}, "interval"),
        ((1.0,), {"features": 0}, "features"),
        ((1.0,), {"k": 2}, "k: is for spend='sample'"),
    ],
)
def test_bad_parameters(arguments, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MinimaxVariance(epsilon=arguments[0], **options)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 9.0])
def test_the_law_is_a_window_that_slides(epsilon):
    """Every letter has one of two chances, e^epsilon apart, but for two at the ends of the window."""
    table, letters = sliding.law(33, epsilon)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(table @ letters, np.linspace(-1.0, 1.0, 33), atol=1e-12)
    shares = (table / table.min(axis=0) - 1.0) / math.expm1(epsilon)
    assert ((shares > 1e-6) & (shares < 1.0 - 1e-6)).sum(axis=1).max() <= 2
    high = shares > 0.5
    assert (np.abs(np.diff(high.astype(int), axis=1)).sum(axis=1) <= 2).all()
    np.testing.assert_allclose(table, table[::-1, ::-1], atol=1e-12)


@pytest.mark.slow
def test_the_shapes_are_those_of_the_solver():
    """One of them anew, without what the one below it says: as good within 0.1 %."""
    budgets, shapes = sliding._shipped()
    assert budgets.tolist() == list(sliding.SHAPE_BUDGETS)
    place = budgets.tolist().index(2.0)
    again = sliding.best_shape(2.0, sliding.LETTERS / shapes[place].width / 1.05)
    assert sliding.worst(again, 2.0) == pytest.approx(sliding.worst(shapes[place], 2.0), rel=1e-3)


def test_a_failed_solve_raises(monkeypatch):
    from scipy import optimize

    def fails(*arguments, **options):
        return optimize.OptimizeResult(status=2, message="infeasible", x=None)

    monkeypatch.setattr(optimize, "linprog", fails)
    with pytest.raises(DesignError, match="failed: infeasible"):
        MinimaxVariance(epsilon=2.345, grid_points=4)


def test_audit_finds_the_budget():
    result = audit(MinimaxVariance(epsilon=2.0, grid_points=4), n=40_000, rng=1)
    assert result.passed
    assert 0.8 < result.lower <= 2.0
