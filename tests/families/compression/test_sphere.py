"""CLDP for the l2 ball: directions, unbiased estimates with their closed form, one exact bit."""

from __future__ import annotations

import math
import pickle

import bitldp
import numpy as np
import pytest
from bitldp._core import CHUNK, unpack
from bitldp.compression import CLDP
from bitldp.compression.ball.cldp import blocks, coordinate, directions, second_moment
from scipy import stats


def build(features, epsilon=2.0, **words):
    return CLDP(features, epsilon=epsilon, norm="l2", **words)


@pytest.mark.parametrize("features", [2, 3, 40])
def test_directions_are_uniform(features):
    """Of 20,000: a coordinate follows its law (Kolmogorov, Smirnov), which fails in 1 of 10^4 if right."""
    found = directions(bytes(32), slice(0, 20_000), features, 0)
    np.testing.assert_allclose(np.square(found).sum(axis=1), 1.0, rtol=1e-12)
    shape = (features - 1) / 2.0
    for column in found.T[:3]:
        assert stats.kstest((column + 1.0) / 2.0, stats.beta(shape, shape).cdf).pvalue > 1e-4
    # one number says nothing of another
    assert abs(np.mean(found[:, 0] * found[:, 1])) < 5.0 / features / math.sqrt(20_000)


@pytest.mark.parametrize("features", [1, 2, 5, 63, 64, 1000])
def test_moments_are_those_of_the_sphere(features):
    shape = (features - 1) / 2.0
    points = 2 << (features - 1).bit_length()
    if features == 1:
        assert coordinate(1) == pytest.approx(1.0)
        assert second_moment(1, 2) == 1.0
        return
    law = stats.beta(shape, shape)
    places = np.linspace(0.0, 1.0, 400_001)
    mass = np.diff(law.cdf(places))
    numbers = places[1:] + places[:-1] - 1.0  # the middles, on [-1, 1]
    assert coordinate(features) == pytest.approx(mass @ np.abs(numbers), rel=1e-4)
    step = 2.0 / (points - 1)
    share = np.modf((numbers + 1.0) / step)[0]
    dithered = np.square(numbers) + step * step * share * (1.0 - share)
    assert second_moment(features, points) == pytest.approx(mass @ dithered, rel=1e-4)


@pytest.mark.parametrize(("features", "epsilon"), [(1, 1.0), (2, 3.0), (3, 2.0), (7, 0.5), (100, 4.0)])
def test_unbiased_with_its_variance(features, epsilon):
    """Of 40,000 records: each coordinate within 5 standard errors, which fails below 1e-5 if right."""
    mechanism = build(features, epsilon, radius=2.0)
    x = np.random.default_rng(1).normal(size=features)
    x *= 1.2 / np.linalg.norm(x)
    estimate = mechanism.estimate_mean(mechanism.randomize(np.tile(x, (40_000, 1)), rng=3))
    assert (np.abs(estimate.value - x) < 5.0 * estimate.stderr).all()
    np.testing.assert_allclose(np.square(estimate.stderr) * 40_000, mechanism.variance(x), rtol=0.06)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 8.0])
def test_the_variance_is_that_of_the_closed_form(epsilon):
    """Duchi, Jordan and Wainwright's scale: (sqrt(pi)/2) d Gamma((d + 1)/2)/Gamma(d/2 + 1), by odds."""
    mechanism = build(128, epsilon)
    scale = math.sqrt(math.pi) / 2.0 * 128 * math.exp(math.lgamma(64.5) - math.lgamma(65.0))
    total = (scale / math.tanh(epsilon / 2.0)) ** 2
    assert 128 * float(mechanism.variance(0.0)) == pytest.approx(total, rel=0.01)
    assert mechanism.guarantee.record == pytest.approx(epsilon, rel=1e-9)
    assert mechanism.guarantee.record <= epsilon
    assert mechanism.report_bits == 128 * 8  # log2(d) + 1 bits a coordinate, as the paper has it


def test_the_sign_is_randomized_response_and_nothing_else_depends_on_the_record():
    """Both records get the same directions up to a sign; the far half has the chance 1/(e^eps + 1)."""
    mechanism = build(3, math.log(3.0))
    one, other = (np.tile(each, (40_000, 1)) for each in ([1.0, 0.0, 0.0], [0.0, -0.6, 0.8]))
    sides = []
    for x in (one, other):
        vectors = mechanism.decode(mechanism.randomize(x, rng=7)) / np.abs(mechanism.letters).max()
        true = np.concatenate([directions_of(7, mechanism, part, 3) for part in blocks(len(x), 3)])
        assert (np.abs(vectors - true).max(axis=1).clip(0.0) < 0.3).mean() > 0.4
        near = np.where((np.abs(vectors - true) < 0.3).all(axis=1), 1.0, -1.0)
        sides.append(np.sign((true * x).sum(axis=1)) * near)
        # of 40,000, 5 deviations of a binomial
        assert abs((sides[-1] > 0).mean() - 0.75) < 5.0 * math.sqrt(0.75 * 0.25 / 40_000)


def directions_of(seed, mechanism, part, features):
    return directions(bitldp.base.keys.keys(seed, 3)[1], part, features, 0)


def test_streams_concatenate_and_pack():
    mechanism = build(5)
    x = np.random.default_rng(2).normal(size=(CHUNK + 100, 5))
    whole = mechanism.randomize(x, rng=3)
    np.testing.assert_array_equal(whole[CHUNK:], mechanism.randomize(x[CHUNK:], rng=3, first_chunk=1))
    np.testing.assert_array_equal(whole, pickle.loads(pickle.dumps(mechanism)).randomize(x, rng=3))
    packed = mechanism.randomize(x, rng=3, output="packed")
    np.testing.assert_array_equal(unpack(packed, 4, whole.size).reshape(whole.shape), whole)
    assert mechanism.randomize(x[0], rng=3).shape == (5,)
    assert (mechanism.randomize(x) != mechanism.randomize(x)).any()
    out = np.ones_like(whole)
    mechanism.randomize(x, rng=3, out=out)
    np.testing.assert_array_equal(out, whole)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="features: must be at most 32768"):
        build(40_000)
    with pytest.raises(ValueError, match="norm"):
        CLDP(3, epsilon=1.0, norm="l3")
    with pytest.raises(ValueError, match="epsilon 0"):
        build(3, 0.0).decode([[0, 1, 2]])
    with pytest.raises(ValueError, match="outside the ball"):
        build(2, clip=False).randomize([[0.8, 0.8]])
    assert build(2).outside([[0.8, 0.8], [0.6, 0.6]]) == 1
