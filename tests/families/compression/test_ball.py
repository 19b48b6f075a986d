"""Mechanisms for vectors: bounds against linear programs and enumeration, unbiasedness, refusals."""

from __future__ import annotations

import itertools
import math
import pickle

import bitldp
import numpy as np
import pytest
from bitldp.accounting import ORDERS, account
from bitldp.accounting.compose import from_renyi
from bitldp.audit import audit
from bitldp.compression import CLDP, BallGaussian, SignSGD, Skellam, VectorMVU
from bitldp.compression.ball import bounds
from bitldp.compression.ball.base import conditioned, enlarged
from bitldp.compression.ball.cldp import signs
from scipy import linalg, optimize, special

pytestmark = pytest.mark.slow  # each mechanism takes seconds to build

D = 3
SMALL = {"input_bits": 2, "output_bits": 2}
BUILDS = {
    "l1": lambda: VectorMVU(D, epsilon=2.0, norm="l1", **SMALL),
    "l1-conditional": lambda: VectorMVU(D, epsilon=2.0, norm="l1", dither="conditional", **SMALL),
    "l2": lambda: VectorMVU(D, epsilon=2.0, delta=1e-3, radius=2.0, **SMALL),
    "l2-conditional": lambda: VectorMVU(D, epsilon=2.0, delta=1e-3, dither="conditional", **SMALL),
    "l2-pure": lambda: VectorMVU(D, epsilon=2.0, **SMALL),
    "sign": lambda: SignSGD(D, epsilon=2.0, delta=1e-3),
    "sign-pure": lambda: SignSGD(D, epsilon=2.0),
    "skellam": lambda: Skellam(D, epsilon=2.0, delta=1e-3, output_bits=8),
    "gaussian": lambda: BallGaussian(D, epsilon=2.0, delta=1e-3, output_bits=8),
    "cldp": lambda: CLDP(D, epsilon=2.0, radius=2.0),
}


@pytest.fixture(scope="module", params=BUILDS, ids=list(BUILDS))
def mechanism(request):
    return BUILDS[request.param]()


def records(mechanism, n, seed=0):
    return np.random.default_rng(seed).normal(0.0, mechanism.radius / 2.0, (n, D))


@pytest.mark.slow
def test_the_guarantee_holds(mechanism):
    guarantee = mechanism.guarantee
    assert guarantee.holds
    assert 0.5 * mechanism.epsilon < guarantee.record <= mechanism.epsilon
    assert guarantee.delta == getattr(mechanism, "delta", 0.0)


@pytest.mark.slow
def test_equal_hashable_picklable_and_reproducible(mechanism):
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    x = records(mechanism, 50)
    reports = mechanism.randomize(x, rng=3)
    np.testing.assert_array_equal(reports, again.randomize(x, rng=3, threads=2))
    assert (mechanism.randomize(x) != mechanism.randomize(x)).any()
    packed = mechanism.randomize(x, rng=3, output="packed")
    assert len(packed) == math.ceil(50 * mechanism.report_bits / 8)


def test_float32_and_one_record(mechanism):
    x = records(mechanism, 4)
    assert mechanism.randomize(x.astype(np.float32), rng=1).shape == mechanism.randomize(x, rng=1).shape
    assert mechanism.randomize(x[0], rng=1).shape == mechanism.randomize(x, rng=1).shape[1:]


def test_audit_finds_nothing(mechanism):
    pair = None
    if getattr(mechanism, "dither", "") == "conditional":
        pair = (np.array([mechanism.radius, 0.0, 0.0]), np.array([-mechanism.radius, 0.0, 0.0]))
    result = audit(mechanism, n=8_000, rng=1, pair=pair)
    assert result.passed, result
    assert result.lower > 0.0


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["l1", "l2", "skellam", "cldp"])
def test_unbiased_by_simulation(name):
    """Of 60,000 records: each coordinate within 5 standard errors, which fails below 1e-5 if right."""
    mechanism = BUILDS[name]()
    x = np.array([0.5, -0.3, 0.05]) * mechanism.radius
    estimate = mechanism.estimate_mean(mechanism.randomize(np.tile(x, (60_000, 1)), rng=5))
    assert (np.abs(estimate.value - x) < 5.0 * estimate.stderr).all()
    spread = np.square(estimate.stderr) * 60_000
    np.testing.assert_allclose(spread, mechanism.variance(x), rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["l1", "l2", "l2-conditional"])
def test_letters_are_right_at_every_point(name):
    mechanism = BUILDS[name]()
    means = mechanism.probabilities() @ mechanism.letters
    np.testing.assert_allclose(means, mechanism.codec.values(), atol=3e-9 * mechanism.radius)


def test_skellam_letters_are_right_but_for_the_clamp():
    mechanism = BUILDS["skellam"]()
    means = mechanism.probabilities() @ mechanism.letters
    np.testing.assert_allclose(means, mechanism.codec.values(), atol=1e-7)


def interpolated(mechanism, x):
    """Return the law of a record's codes with unbiased dither, one row a coordinate."""
    rows = mechanism.probabilities()
    place = (x / mechanism.radius + 1.0) * (len(rows) - 1) / 2.0
    low = np.clip(np.floor(place).astype(int), 0, len(rows) - 2)
    share = (place - low)[:, None]
    return (1.0 - share) * rows[low] + share * rows[low + 1]


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["l1", "l2", "l2-pure", "sign", "sign-pure", "skellam"])
def test_no_pair_of_records_exceeds_the_bounds(name):
    """Random and extreme pairs of the ball, by enumeration of the product law."""
    mechanism = BUILDS[name]()
    rng = np.random.default_rng(1)
    norm = 1 if name == "l1" else 2
    pairs = [(np.eye(D)[0], -np.eye(D)[0]), (np.ones(D), -np.ones(D))]
    pairs += [(one, -one) for one in rng.normal(size=(150, D))]
    pairs += [(one, other) for one, other in rng.normal(size=(150, 2, D))]
    alphas = [1.5, 2.0, 8.0, 30.0]
    curve, pure = mechanism.renyi(alphas), mechanism.pure_epsilon()
    largest = 0.0
    for one, other in pairs:
        p, q = (
            interpolated(mechanism, mechanism.radius * each / np.linalg.norm(each, norm))
            for each in (one, other)
        )
        losses = np.log(p / q)  # of a report: of one record against the other, in either order
        assert max(losses.max(axis=1).sum(), -losses.min(axis=1).sum()) <= pure
        for alpha, most in zip(alphas, curve, strict=True):
            logs = alpha * np.log(p) + (1.0 - alpha) * np.log(q)
            found = special.logsumexp(logs, axis=1).sum() / (alpha - 1.0)
            assert found <= most
            largest = max(largest, found / most)
    assert largest > 0.3  # the bounds are not idle


def test_conditional_bounds_hold_for_every_pair_of_grid_records():
    mechanism = BUILDS["l2-conditional"]()
    points = len(mechanism.probabilities())
    bound = enlarged((points - 1) / 2.0, D, 2)
    grid = [
        np.array(places)
        for places in itertools.product(range(points), repeat=D)
        if np.square(np.array(places) - (points - 1) / 2.0).sum() <= bound**2
    ]
    for alpha in (2.0, 10.0):
        table = mechanism._divergences(alpha)
        exact = max(table[a, b].sum() for a, b in itertools.product(grid, grid))
        best = float(mechanism.renyi(alpha))
        assert exact <= best <= float(mechanism.renyi(alpha, bound="greedy"))


@pytest.mark.parametrize(("features", "capacity"), [(1, 4.0), (3, 7.0), (5, 300.0), (4, 0.5)])
@pytest.mark.parametrize("power", [1, 2])
def test_the_hull_is_the_linear_program(features, capacity, power):
    divergences = np.random.default_rng(features).uniform(0.0, 1.0, (4, 4))
    np.fill_diagonal(divergences, 0.0)
    costs = bounds.costs(4, power).ravel()
    block = np.kron(np.eye(features), np.ones((1, 16)))
    solved = optimize.linprog(
        -np.tile(divergences.ravel(), features),
        A_ub=np.vstack([np.tile(costs, features), block]),
        b_ub=np.concatenate([[capacity], np.ones(features)]),
    )
    found = bounds.relaxed(divergences, power, capacity, features)
    assert found == pytest.approx(-solved.fun, rel=1e-8)
    assert found <= bounds.greedy(divergences, power, capacity)


@pytest.mark.slow
def test_conversion_is_that_of_the_curve():
    mechanism = BUILDS["l2"]()
    converted = from_renyi(mechanism.renyi(ORDERS), ORDERS, mechanism.delta)
    assert mechanism.guarantee.record == min(converted, mechanism.pure_epsilon())
    assert account([(mechanism, 1)], delta=mechanism.delta, method="renyi").epsilon <= converted
    several = account([(mechanism, 10)], delta=mechanism.delta, method="renyi")
    assert several.epsilon < 10.0 * converted


@pytest.mark.parametrize("power", [1, 2])
def test_conditional_dither_stays_in_its_ball(power):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3_000, 5))
    x /= np.linalg.norm(x, power, axis=1, keepdims=True)
    points = 8
    bound = enlarged(3.5, 5, power)
    drawn = conditioned((x + 1.0) * 3.5, points, bound, power, bytes(32), 0)
    assert drawn.min() >= 0
    assert drawn.max() < points
    norms = (np.abs(drawn - 3.5) ** power).sum(axis=1)
    assert (norms <= bound**power + 1e-9).all()
    assert (np.abs(drawn - (x + 1.0) * 3.5) <= 1.0).all()


def test_bias_of_conditional_dither_is_within_its_bound():
    mechanism = BUILDS["l2-conditional"]()
    x = np.array([0.9, -0.3, 0.3]) / math.sqrt(0.99)
    estimate = mechanism.estimate_mean(mechanism.randomize(np.tile(x, (60_000, 1)), rng=1))
    assert np.linalg.norm(estimate.value - x) <= mechanism.bias_bound + 5.0 * np.linalg.norm(estimate.stderr)
    assert BUILDS["l2"]().bias_bound == 0.0


@pytest.mark.slow
def test_sign_follows_the_normal_law_and_its_majority():
    mechanism = SignSGD(2, epsilon=8.0, delta=1e-3)
    share = mechanism.probabilities()[-1, 1]
    assert share == pytest.approx(0.5 * math.erfc(-1.0 / (mechanism.sigma * math.sqrt(2.0))), rel=1e-12)
    reports = mechanism.randomize(np.tile([0.6, -0.6], (4_000, 1)), rng=1)
    assert mechanism.majority(reports).tolist() == [1.0, -1.0]
    assert set(np.unique(mechanism.decode(reports))) == {-1.0, 1.0}
    with pytest.raises(ValueError, match="majority"):
        mechanism.estimate_mean(reports)
    with pytest.raises(ValueError, match="not linear"):
        mechanism.variance(0.5)


def test_hadamard_signs_are_those_of_scipy():
    np.testing.assert_array_equal(signs(np.arange(16), 11), linalg.hadamard(16)[:, :11])


def test_cldp_is_unbiased_and_private_by_enumeration():
    mechanism = CLDP(5, epsilon=1.5)
    assert mechanism.report_bits == 4
    for x in (np.array([0.2, -0.3, 0.1, 0.25, -0.15]), np.eye(5)[2]):
        coefficients = signs(np.arange(8), 5) @ x
        ends = mechanism.probabilities()
        upper = (coefficients[:, None] + 1.0) / 2.0
        law = (((1.0 - upper) * ends[0] + upper * ends[1]) / 8.0).ravel()
        np.testing.assert_allclose(law @ mechanism.decode(np.arange(16)), x, atol=1e-12)
        second = law @ np.square(mechanism.decode(np.arange(16)))
        np.testing.assert_allclose(second - x**2, mechanism.variance(x), rtol=1e-12)
    assert mechanism.guarantee.record == pytest.approx(1.5, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "epsilon", "norm", "delta"),
    [
        (19, 8.120809204439489, "l2", 0.0),  # what is spent grows slower than the design's budget
        (20, 12.757385662063013, "l1", 0.0),  # faster
        (19, 13.13, "l2", 0.0),  # and there it jumps
        (5, 12.0, "l2", 1e-5),
        (29, 9.74, "l1", 1e-5),
        (7, 0.3, "l2", 0.0),
        (1, 300.0, "l1", 0.0),  # nothing to gain beyond 2**-64
    ],
)
def test_one_bit_spends_its_budget(features, epsilon, norm, delta):
    mechanism = VectorMVU(features, epsilon=epsilon, norm=norm, delta=delta, input_bits=1, output_bits=1)
    assert (0.98 if epsilon < 27.0 else 0.05) * epsilon <= mechanism.guarantee.record <= epsilon


@pytest.mark.parametrize("kind", [BallGaussian, Skellam])
def test_a_ball_of_few_steps_leaves_no_room_that_the_noise_never_reaches(kind):
    mechanism = kind(14, epsilon=0.04973908750922178, delta=8.887e-05, output_bits=12)
    assert 0.95 * mechanism.epsilon < mechanism.guarantee.record <= mechanism.epsilon
    assert mechanism.report_bits == 14 * mechanism.output_bits


@pytest.mark.slow
def test_clipping_counts_and_refuses():
    mechanism = BUILDS["l2"]()
    x = np.array([[3.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
    assert mechanism.outside(x) == 1
    np.testing.assert_allclose(mechanism._inside(x), [[2.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
    strict = SignSGD(D, epsilon=2.0, delta=1e-3, clip=False)
    with pytest.raises(ValueError, match="record at index 1 is outside"):
        strict.randomize(np.array([[0.5, 0.0, 0.0], [3.0, 0.0, 0.0]]))


def test_bad_records_are_refused(mechanism):
    for bad, error in (
        (np.array([[0.0, math.nan, 0.0]]), ValueError),
        (np.array([[0.0, math.inf, 0.0]]), ValueError),
        (np.zeros((2, D + 1)), ValueError),
        (np.zeros((2, 2, D)), ValueError),
        (np.zeros((2, D), np.longdouble), TypeError),
        (np.ma.masked_array(np.zeros((2, D)), mask=True), TypeError),
    ):
        with pytest.raises(error, match="x:"):
            mechanism.randomize(bad)
    with pytest.raises(ValueError, match="output"):
        mechanism.randomize(np.zeros((2, D)), output="bits")
    with pytest.raises((ValueError, TypeError), match="reports"):
        mechanism.decode(np.full((2, D), 1 << 20))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda **kw: VectorMVU(D, **{"epsilon": 1.0, **kw}), ""),
        (lambda **kw: SignSGD(D, **{"epsilon": 1.0, **kw}), ""),
        (lambda **kw: Skellam(D, **{"epsilon": 1.0, "delta": 1e-3, **kw}), ""),
    ],
)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("radius", 0.0),
        ("radius", -1.0),
        ("radius", math.nan),
        ("delta", 1.0),
        ("delta", -0.1),
        ("epsilon", 0.0),
        ("epsilon", math.inf),
        ("clip", 1),
    ],
)
def test_bad_parameters_are_refused(build, message, name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        build(**{name: value})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: CLDP(0, epsilon=1.0), "features"),
        (lambda: CLDP(3, epsilon=1.0, radius=0.0), "radius"),
        (lambda: CLDP(3, epsilon=0.0).decode([0]), "epsilon 0"),
        (lambda: VectorMVU(3, epsilon=1.0, norm="l3"), "norm"),
        (lambda: VectorMVU(3, epsilon=1.0, dither="none"), "dither"),
        (lambda: VectorMVU(3, epsilon=1.0, input_bits=10), "input_bits"),
        (lambda: Skellam(3, epsilon=1.0, delta=0.0), "delta"),
        (lambda: Skellam(300, epsilon=0.1, delta=1e-6, output_bits=4), "output_bits"),
        (lambda: BUILDS["l2"]().renyi(2.0, bound="greedy"), "conditional"),
        (lambda: BUILDS["l2"]().renyi(1.0), "orders"),
        (lambda: BUILDS["l2-conditional"]().variance(0.0), "conditional"),
    ],
)
def test_what_makes_no_sense_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_no_claim_warning_is_silent():
    assert issubclass(bitldp.PrivacyClaimWarning, UserWarning)
