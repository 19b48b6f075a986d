"""Windows in a ball: the law by enumeration, variances against goals, what dither reaches, refusals."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from bitldp.audit import audit
from bitldp.compression import BallWindow, CrossPolytope, RandomCodebook
from bitldp.compression.ball.window import _far_squares
from bitldp.numeric import PiecewiseSub
from support import oracle

ALPHA = 1e-6  # of the goodness-of-fit test; its seed is fixed
ONE = 1 << 64


def total(mechanism: Any) -> float:
    """Return the largest total variance of the vectors that a recommendation looks at."""
    even = np.full(mechanism.features, mechanism.features**-0.5)
    vectors = [even, np.eye(mechanism.features)[0], 0.0 * even, 0.5 * even]
    return max(float(mechanism.variance(vector).sum()) for vector in vectors)


def chances(mechanism: BallWindow) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return P(report | vector) from the integers, the reports and the vectors that dither reaches."""
    law, d = mechanism.channel, mechanism.features
    reached = [y for y in itertools.product(range(-law.steps, law.steps + 1), repeat=d)
               if sum(max(abs(each) - 1, 0) ** 2 for each in y) <= law.steps**2]  # fmt: skip
    most = law.farthest
    reports = [z for z in itertools.product(range(-most, most + 1), repeat=d)
               if sum(each * each for each in z) <= law.square]  # fmt: skip
    y, z = np.array(reached), np.array(reports)
    near = np.square(z[None] - y[:, None]).sum(axis=2) <= law.reach**2
    assert (near.sum(axis=1) == law.near).all()  # no window leaves the reports
    assert len(z) == law.everything
    share = law.high / ONE
    return share * near / law.near + (1.0 - share) / law.everything, z, y


@pytest.mark.parametrize("shape", [(1, 6, 2), (2, 5, 2), (2, 4, 0), (3, 2, 1)])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 9.0])
def test_epsilon_and_letters_by_enumeration(shape, epsilon):
    d, steps, reach = shape
    mechanism = BallWindow(d, epsilon=epsilon, radius=3.0, steps=steps, reach=reach)
    law, reports, vectors = chances(mechanism)
    exact = np.log((law.max(axis=0) / law.min(axis=0)).max())
    assert exact * (1 - 1e-12) <= mechanism.guarantee.record <= epsilon
    assert math.isclose(mechanism.guarantee.record, epsilon, rel_tol=1e-9)
    letters = mechanism.decode(reports + mechanism.channel.farthest)
    step = 3.0 / steps
    np.testing.assert_allclose(law @ letters, vectors * step, atol=1e-11)
    variance = law @ np.square(letters) - np.square(vectors * step)
    np.testing.assert_allclose(variance, mechanism.variance(vectors * step), rtol=1e-9)
    rows = mechanism.probabilities()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(rows @ mechanism.letters, mechanism.points, atol=1e-11)


@pytest.mark.parametrize(
    ("features", "epsilon", "goal"), [(2, 8.0, 0.0499), (2, 4.0, 0.56), (3, 8.0, 0.12), (3, 12.0, 0.0186)]
)
def test_goals_are_reached(features, epsilon, goal):
    assert total(BallWindow(features, epsilon=epsilon)) <= goal


@pytest.mark.parametrize(("features", "epsilon", "gain"), [(2, 8.0, 5.7), (3, 8.0, 4.0), (3, 12.0, 17.0)])
def test_the_worst_vector_gains(features, epsilon, gain):
    """Against the least of a sampled coordinate, codes of the sphere, and polytopes with a lift."""
    before = [
        PiecewiseSub(epsilon=epsilon, features=features, spend="sample", k=k) for k in range(1, features + 1)
    ]
    lifted = CrossPolytope(features, epsilon=epsilon, public_seed=1)
    sphere = RandomCodebook(features, epsilon=epsilon, public_seed=1)
    mechanism = BallWindow(features, epsilon=epsilon)
    assert gain * total(mechanism) <= min(map(total, [*before, sphere, lifted]))
    assert total(mechanism) > sphere.total_variance()  # of the sphere, codes are best


@pytest.mark.parametrize("features", [1, 2, 3])
def test_dither_reaches_no_further(features):
    """Against all corners of the cubes that meet a ball of up to 6 steps."""
    for steps in range(1, 7):
        line = np.arange(-steps - 1, steps + 2)
        y = np.stack(np.meshgrid(*[line] * features), axis=-1).reshape(-1, features)
        nearest = np.square(np.maximum(np.abs(y) - 1, 0)).sum(axis=1)
        assert np.square(y[nearest <= steps**2]).sum(axis=1).max() <= _far_squares(features)[steps]


@pytest.mark.statistical
def test_goodness_of_fit():
    """Chi-squared of whole reports, n = 2^17, alpha = 1e-6."""
    mechanism, n = BallWindow(2, epsilon=3.0, steps=3, reach=1), 1 << 17
    law, reports, vectors = chances(mechanism)
    codes = mechanism.randomize(np.tile([2 / 3, -1 / 3], (n, 1)), rng=4).astype(np.int64)
    places = {
        tuple(each): place for place, each in enumerate((reports + mechanism.channel.farthest).tolist())
    }
    found = np.bincount([places[tuple(code)] for code in codes.tolist()], minlength=len(reports))
    row = int(np.flatnonzero((vectors == [2, -1]).all(axis=1))[0])
    assert oracle.p_value(found, law[row]) > ALPHA


@pytest.mark.statistical
def test_mean_and_variance():
    """Within 5 standard errors; vectors outside the ball are scaled to it. n = 2^17."""
    mechanism, n = BallWindow(3, epsilon=6.0, radius=2.0), 1 << 17
    records = np.random.default_rng(3).normal(0.0, 1.0, (n, 3))
    lengths = np.linalg.norm(records, axis=1, keepdims=True)
    inside = records * np.minimum(1.0, 2.0 / lengths)
    assert mechanism.outside(records) == np.count_nonzero(lengths > 2.0)
    reports = mechanism.randomize(records, rng=5)
    estimate = mechanism.estimate_mean(reports)
    assert np.all(np.abs(estimate.value - inside.mean(axis=0)) < 5 * estimate.stderr)
    errors, said = np.square(mechanism.decode(reports) - inside), mechanism.variance(inside)
    assert np.all(
        np.abs((errors - said).mean(axis=0)) < 5 * (errors - said).std(axis=0) / math.sqrt(n) + 1e-9
    )


def test_audits_know_the_law():
    mechanism = BallWindow(2, epsilon=2.0)
    law = mechanism.extremes()
    table = law.blocks[0].table[:, 0]
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
    assert math.isclose(np.log(table[0, 0] / table[1, 0]), mechanism.guarantee.record, rel_tol=1e-9)
    assert audit(mechanism, n=10_000, rng=1).passed
    coarse = BallWindow(2, epsilon=2.0, steps=4, reach=2)
    near = coarse.extremes(([0.5, 0.0], [0.75, 0.0])).blocks[0].table[:, 0]
    whole, _, vectors = chances(coarse)
    one, other = (whole[np.flatnonzero((vectors == [x, 0]).all(axis=1))[0]] for x in (2, 3))
    assert math.isclose(near[0, 0], one[(one > other * 1.5)].sum(), rel_tol=1e-12)
    assert coarse.extremes(([0.3, 0.0], [0.5, 0.0])) is None  # between the points


def test_what_is_given_is_held():
    held = BallWindow(3, epsilon=6.0, reach=4)
    assert held.reach == 4
    assert held == BallWindow(3, epsilon=6.0, steps=held.steps, reach=4) == pickle.loads(pickle.dumps(held))
    assert BallWindow(2, epsilon=6.0, steps=7).steps == 7


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"features": 5}, "features"),
        ({"features": 0}, "features"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"radius": -1.0}, "radius"),
        ({"steps": 0}, "steps"),
        ({"steps": 65}, "steps"),
        ({"reach": -1}, "reach"),
        ({"features": 4, "steps": 60, "reach": 9}, "reach"),
        ({"features": 4, "reach": 64}, "reach"),
    ],
)
def test_refusals(parameters, name):
    with pytest.raises((ValueError, TypeError), match=f"^{name}"):
        BallWindow(**{"features": 2, "epsilon": 1.0, **parameters})


def test_refused_records():
    mechanism = BallWindow(2, epsilon=2.0, clip=False)
    out = np.ones((2, 2), np.uint8)
    with pytest.raises(ValueError, match=r"^x"):
        mechanism.randomize(np.full((2, 2), 0.9), out=out)
    assert not out.any()
    with pytest.raises(ValueError, match=r"^x"):
        mechanism.randomize(np.array([[0.0, np.nan]]))
    with pytest.raises(ValueError, match=r"^x"):
        mechanism.randomize(np.zeros((2, 3)))
