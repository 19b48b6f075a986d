"""Vectors of a ball by one channel a coordinate: intervals, positive numbers, signs of Gaussian noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bitldp.channels.normal import continuous_sigma
from bitldp.compression import SignSGD, VectorMVU

pytestmark = pytest.mark.slow  # each mechanism takes seconds to build

pytest.importorskip("dp_accounting")

D = 3
BUILDS = {
    "limit": lambda **kw: VectorMVU(D, epsilon=2.0, delta=1e-3, limit=0.7, radius=2.0, **kw),
    "positive": lambda **kw: VectorMVU(D, epsilon=2.0, delta=1e-3, positive=True, radius=2.0, **kw),
    "both": lambda **kw: VectorMVU(D, epsilon=2.0, delta=1e-3, limit=0.7, positive=True, **kw),
    "pure": lambda **kw: VectorMVU(D, epsilon=2.0, limit=0.5, positive=True, **kw),
    "l1": lambda **kw: VectorMVU(D, epsilon=2.0, norm="l1", limit=0.4, radius=2.0, **kw),
    "l1-positive": lambda **kw: VectorMVU(D, epsilon=2.0, norm="l1", positive=True, **kw),
}
SHAPES = ({"input_bits": 9, "output_bits": 1}, {"input_bits": 2, "output_bits": 2})


def law(mechanism, x):
    """Return the law of a record's codes, one row a coordinate."""
    rows, (low, high) = mechanism.probabilities(), mechanism._span
    place = (x - low) / (high - low) * (len(rows) - 1)
    first = np.clip(np.floor(place).astype(int), 0, len(rows) - 2)
    share = (place - first)[:, None]
    return (1.0 - share) * rows[first] + share * rows[first + 1]


@pytest.mark.statistical
@pytest.mark.parametrize("shape", SHAPES, ids=["9-1", "2-2"])
@pytest.mark.parametrize("name", BUILDS)
def test_no_pair_of_records_exceeds_the_bounds(name, shape):
    """Random and extreme records of the ball and the box, by enumeration of the product law."""
    mechanism = BUILDS[name](**shape)
    rng = np.random.default_rng(1)
    eye = 9.0 * np.eye(D)
    corners = [
        (np.full(D, 9.0), np.full(D, -9.0)),
        (eye[0], eye[1]),
        (eye[0] + eye[1], eye[2]),
        (eye[0], -eye[0]),
    ]
    pairs = [*corners, *(tuple(5.0 * each) for each in rng.normal(size=(200, 2, D)))]
    pure, curve = mechanism.pure_epsilon(), mechanism.renyi([2.0, 9.0])
    largest = np.zeros(3)
    for pair in pairs:
        p, q = (law(mechanism, mechanism._inside(each)) for each in pair)
        found = [np.abs(np.log(p / q)).max(axis=1).sum()]
        for alpha in (2.0, 9.0):
            sums = (p**alpha * q ** (1.0 - alpha)).sum(axis=1)
            found.append(np.log(sums).sum() / (alpha - 1.0))
        largest = np.maximum(largest, np.array(found) / [pure, *curve])
    assert (largest <= 1.0).all()
    assert (largest > 0.5).all()
    assert 0.9 * mechanism.epsilon < mechanism.guarantee.record <= mechanism.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", ["limit", "positive", "l1-positive"])
def test_unbiased_on_its_interval(name):
    """Of 60,000 records: each coordinate within 5 standard errors, which fails below 1e-5 if right."""
    mechanism = BUILDS[name](input_bits=2, output_bits=2)
    x = np.array([0.5, 0.1, 0.05])
    estimate = mechanism.estimate_mean(mechanism.randomize(np.tile(x, (60_000, 1)), rng=5))
    assert (np.abs(estimate.value - x) < 5.0 * estimate.stderr).all()
    np.testing.assert_allclose(np.square(estimate.stderr) * 60_000, mechanism.variance(x), rtol=0.05)


def test_a_shorter_interval_and_positive_numbers_have_less_variance():
    words = {"epsilon": 3.0, "norm": "l1", "output_bits": 1, "input_bits": 2}
    plain = VectorMVU(128, **words).mean_variance()
    assert VectorMVU(128, limit=0.25, **words).mean_variance() < 0.6 * plain
    words = {"epsilon": 3.0, "delta": 1e-4, "output_bits": 1}
    plain = VectorMVU(128, **words).variance(0.0)
    assert VectorMVU(128, positive=True, **words).variance(0.0) == pytest.approx(plain / 2.0, rel=0.05)


def test_what_is_outside_is_moved_counted_or_refused():
    x = np.array([[0.1, 0.2, 0.3], [0.1, 0.1, 0.9], [0.1, -0.1, 0.2], [3.0, 0.0, 0.0]])
    mechanism = BUILDS["both"](input_bits=2, output_bits=1)
    assert mechanism.outside(x) == 3
    expected = [[0.1, 0.2, 0.3], [0.1, 0.1, 0.7], [0.1, 0.0, 0.2], [0.7, 0.0, 0.0]]
    np.testing.assert_allclose(mechanism._inside(x), expected)
    strict = BUILDS["both"](input_bits=2, output_bits=1, clip=False)
    assert strict.randomize(x[:1], rng=1).shape == (1, 3)
    for place in (1, 2, 3):
        with pytest.raises(ValueError, match="clip=False refuses"):
            strict.randomize(x[place], rng=1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"limit": 1.5}, "limit: must be at most the radius"),
        ({"limit": 0.0}, "limit"),
        ({"positive": True, "dither": "conditional"}, "positive"),
        ({"input_bits": 10}, "input_bits"),
        ({"output_bits": 7}, "output_bits"),
    ],
)
def test_what_makes_no_sense_is_refused(words, message):
    with pytest.raises(ValueError, match=message):
        VectorMVU(D, epsilon=1.0, **words)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 20.0])
def test_signs_by_the_paper_s_accounting(epsilon):
    """The noise keeps epsilon by itself, as the analytic Gaussian's; signs of it cost less."""
    mechanism = SignSGD(64, epsilon=epsilon, delta=1e-5, radius=0.5, calibration="paper")
    assert mechanism.sigma == pytest.approx(continuous_sigma(epsilon, 1e-5), rel=1e-6)
    for place, x in ((0, -0.5), (96, 0.25), (128, 0.5)):
        share = 0.5 * math.erfc(-x / (mechanism.sigma * math.sqrt(2.0)))
        assert mechanism.probabilities()[place, 1] == pytest.approx(share, rel=1e-9)
    guarantee = mechanism.guarantee
    assert guarantee.claimed == epsilon
    assert guarantee.holds
    assert guarantee.record < 0.9 * epsilon
    assert SignSGD(64, epsilon=epsilon, delta=1e-5, radius=0.5).sigma < mechanism.sigma


def test_signs_of_the_paper_need_a_delta():
    with pytest.raises(ValueError, match="delta"):
        SignSGD(D, epsilon=1.0, calibration="paper")
