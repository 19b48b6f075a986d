"""The Gaussian mechanism: exact delta, least noise, exact means, refusals."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import bitldp
import bitldp.audit
import numpy as np
import pytest
from bitldp._core import CHUNK
from bitldp.numeric import Gaussian
from bitldp.numeric.gaussian import continuous_sigma

ONE = 1 << 64


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.02), (0.1, 1e-6), (1.0, 1e-6), (4.0, 1e-9), (20.0, 1e-5)]
)
def test_delta_of_one_number_is_exact_and_used_up(epsilon, delta):
    mechanism = Gaussian(epsilon=epsilon, delta=delta)
    guarantee = mechanism.guarantee
    assert guarantee.holds
    assert guarantee.record == epsilon
    assert guarantee.delta == delta
    weights, steps = mechanism.channels[0].weights(), len(mechanism.points) - 1
    # The definition, for the two ends of the interval: no other inputs are told apart better.
    factor = Fraction(math.exp(epsilon))
    apart = list(zip([*weights, *[0] * steps], [*[0] * steps, *weights], strict=True))
    exact = sum(max(Fraction(0), a - factor * b) for a, b in apart) / ONE
    assert mechanism.delta_at(epsilon) == pytest.approx(float(exact), rel=1e-9)
    assert exact <= delta * (1 + 1e-12)
    assert exact >= 0.999 * delta
    assert mechanism.channels[0].epsilon == math.inf


@pytest.mark.parametrize(
    ("epsilon", "delta", "features"),
    [(1.0, 1e-6, 1), (1.0, 1e-5, 2), (0.5, 1e-9, 10), (8.0, 1e-6, 768), (2.0, 0.01, 30)],
)
def test_noise_is_about_that_of_the_continuous_mechanism(epsilon, delta, features):
    mechanism = Gaussian(epsilon=epsilon, delta=delta, features=features)
    continuous = 2.0 * continuous_sigma(epsilon, delta) * math.sqrt(features)
    assert mechanism.sigma == pytest.approx(continuous, rel=1e-3)
    assert 0.999 * delta <= mechanism.delta_at(epsilon) <= delta
    assert mechanism.guarantee.feature < epsilon or features == 1
    dither = 4.0 / (len(mechanism.points) - 1) ** 2 / 4.0
    assert mechanism.worst_variance() <= mechanism.sigma**2 + dither * (1 + 1e-9)
    assert mechanism.mean_variance() >= mechanism.sigma**2


def test_delta_falls_with_epsilon_and_rises_with_the_numbers():
    mechanism = Gaussian(epsilon=1.0, delta=1e-5, features=5)
    deltas = [mechanism.delta_at(epsilon) for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[2] <= 1e-5
    single = Gaussian(epsilon=1.0, delta=1e-5, features=5, unit="feature")
    assert single.guarantee.feature == 1.0 < single.guarantee.record < 5.0
    assert single.delta_at(single.guarantee.record) <= 1e-5
    # d numbers at the epsilon of one need a larger delta.
    assert single.delta_at(1.0) > 1e-5
    assert single.sigma < mechanism.sigma


def test_letters_are_unbiased_and_the_variance_is_that_of_the_law():
    for epsilon, interval in [(1.0, (-1.0, 1.0)), (6.0, (3.0, 7.0)), (30.0, (0.0, 1.0))]:
        mechanism = Gaussian(epsilon=epsilon, delta=1e-6, interval=interval)
        law, letters, points = mechanism.probabilities(), mechanism.letters, mechanism.points
        assert np.abs(law @ letters - points).max() <= 1e-12 * np.abs(letters).max()
        variance = law @ np.square(letters) - np.square(law @ letters)
        assert mechanism.variance(points) == pytest.approx(variance, rel=1e-7)


def test_simulation():
    """With n = 400,000; five standard errors, fixed key."""
    for options in ({}, {"spend": "sample", "k": 2}):
        mechanism = Gaussian(epsilon=2.0, delta=1e-4, features=3, **options)
        x = np.array([-0.9, 0.1, 0.7])
        values = mechanism.decode(mechanism.randomize(np.tile(x, (400_000, 1)), rng=5))
        variance = mechanism.variance(x)
        assert np.all(np.abs(values.mean(axis=0) - x) < 5 * np.sqrt(variance / 400_000))
        assert values.var(axis=0) == pytest.approx(variance, rel=0.03)


def test_threads_and_chunks_change_nothing():
    mechanism = Gaussian(epsilon=1.0, delta=1e-5)
    x = np.linspace(-1.0, 1.0, 2 * CHUNK + 5)
    whole = mechanism.randomize(x, rng=3)
    assert np.array_equal(mechanism.randomize(x, rng=3, threads=2), whole)
    assert np.array_equal(mechanism.randomize(x[CHUNK:], rng=3, first_chunk=1), whole[CHUNK:])
    packed = mechanism.randomize(x, rng=3, output="packed")
    assert np.array_equal(bitldp._core.unpack(packed, mechanism.report_bits, x.size), whole)


def test_pickle_hash_repr():
    mechanism = Gaussian(epsilon=1.0, delta=1e-5, features=3, interval=(0.0, 2.0))
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert repr(again) == repr(mechanism)
    assert again != Gaussian(epsilon=1.0, delta=2e-5, features=3, interval=(0.0, 2.0))


@pytest.mark.parametrize(
    ("error", "name", "arguments"),
    [
        (ValueError, "delta", (1.0, 0.0)),
        (ValueError, "delta", (1.0, 1.0)),
        (ValueError, "delta", (1.0, -1e-6)),
        (ValueError, "delta", (1.0, 2.0)),
        (ValueError, "delta", (1.0, math.nan)),
        (TypeError, "delta", (1.0, "1e-6")),
        (TypeError, "delta", (1.0, None)),
        (ValueError, "delta", (1.0, 1e-30)),
        (ValueError, "epsilon", (-1.0, 1e-6)),
        (ValueError, "epsilon", (math.nan, 1e-6)),
        (ValueError, "epsilon", (0.0, 1e-6)),  # needs more noise than a report holds
    ],
)
def test_bad_parameters_are_refused(error, name, arguments):
    with pytest.raises(error, match=f"^{name}"):
        Gaussian(epsilon=arguments[0], delta=arguments[1])


def test_bad_inputs_are_refused():
    with pytest.raises(ValueError, match=r"^interval"):
        Gaussian(epsilon=1.0, delta=1e-6, interval=(1.0, 1.0))
    mechanism = Gaussian(epsilon=1.0, delta=1e-6, clip=False)
    for x in (np.array([0.0, np.nan]), np.array([0.0, 1.0001])):
        with pytest.raises(ValueError, match=r"^x"):
            mechanism.randomize(x)
    with pytest.raises(ValueError, match=r"^epsilon"):
        mechanism.delta_at(-1.0)
    with pytest.raises(ValueError, match=r"^reports"):
        mechanism.decode([mechanism.alphabet])


def test_audit_agrees():
    found = bitldp.audit.audit(Gaussian(epsilon=2.0, delta=1e-3), n=20_000, rng=1, pair=(-1.0, 1.0))
    assert found.passed
