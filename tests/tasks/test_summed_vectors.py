"""Central epsilon of sums of vectors: against enumeration, a secure sum's own account, and the local law."""

from __future__ import annotations

import functools
import itertools
import math

import bitldp
import numpy as np
import pytest
from bitldp.amplification import summed_central_delta, summed_central_epsilon
from bitldp.amplification.vectors import SummedVectors
from bitldp.channels import Shift
from bitldp.channels.noise import gaussian_weights, skellam_weights
from bitldp.channels.normal import epsilon_of
from bitldp.compression import BallGaussian, Skellam
from bitldp.mechanism.law import Coordinates
from bitldp.sums import SecureSum, Vector

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)

NOISE = {
    "clamped beyond 5 deviations": Shift(4, 18, gaussian_weights(1.4, 10, lumped=True), 7),
    "clamped beyond 3": Shift(4, 12, skellam_weights(0.9, 7, lumped=True), 4),
    "never clamped": Shift(4, 24, gaussian_weights(1.8, 10), 10),
    "wide": Shift(4, 94, gaussian_weights(8.0, 48, lumped=True), 45),
}


def dithered(rows: np.ndarray, x: float) -> np.ndarray:
    low = min(int(x), len(rows) - 2)
    return (1.0 - (x - low)) * rows[low] + (x - low) * rows[low + 1]


@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_two_records_are_told_apart_better(name: str, n: int) -> None:
    """Enumeration in one and two coordinates, dithered records, others at the ends and in the middle."""
    channel = NOISE[name]
    rows, rng = channel.probabilities(), np.random.default_rng(n)
    near = math.inf
    for trial in range(20):
        d = 1 + trial % 2
        one, other = np.round(rng.uniform(0.0, 3.0, (2, d)), 0 if trial < 10 else 3)
        if trial < 4:
            one, other = np.zeros(d), np.full(d, 3.0)
        distance = float(np.linalg.norm(one - other))
        if distance == 0.0:
            continue
        others = rng.choice([0.0, 1.5, 3.0], (n - 1, d))
        first, second = (
            functools.reduce(
                np.multiply.outer,
                [
                    functools.reduce(
                        np.convolve, [dithered(rows, x[i]), *(dithered(rows, y[i]) for y in others)]
                    )
                    for i in range(d)
                ],
            )
            for x in (one, other)
        )
        law = SummedVectors(Coordinates(channel, d, distance), n)
        for epsilon in EPSILONS:
            true = max(
                float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
                for p, q in ((first, second), (second, first))
            )
            bound = law.delta(epsilon)
            assert true <= bound * (1.0 + 1e-9) + 1e-14
            if true > 1e-3:
                near = min(near, bound / true)
    assert near < 3.0 or name != "wide"  # a slope is as loose as noise is coarse


def test_a_sum_of_users_that_are_not_there_is_below_the_truth() -> None:
    """Planted: a sum of two reports that is accounted as one of six."""
    channel = NOISE["wide"]
    rows = channel.probabilities()
    law = np.convolve(rows[0], rows[0]), np.convolve(rows[0], rows[3])
    true = float(np.maximum(law[1] - law[0], 0.0).sum())
    assert SummedVectors(Coordinates(channel, 1, 3.0), 6).delta(0.0) < true
    assert true <= SummedVectors(Coordinates(channel, 1, 3.0), 2).delta(0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("features", "epsilon", "clients"), [(24, 1.0, 40), (100, 4.0, 10)])
def test_it_is_what_a_secure_sum_of_vectors_says(features: int, epsilon: float, clients: int) -> None:
    """The shares of a secure sum as reports: noise that is never clamped, records of its ball."""
    secure = SecureSum(Vector(features), epsilon=epsilon, clients=clients)
    kind, weights = secure.kind, secure.law.table.weights
    reach, most = len(weights) // 2, kind.bounds[1]
    channel = Shift(2 * most + 1, 2 * most + 1 + 2 * reach, list(weights), reach)
    diameter = 2.0 * kind.steps  # type: ignore[attr-defined]
    for survivors in (clients // 2, clients):
        found = SummedVectors(Coordinates(channel, kind.coordinates, diameter), survivors).epsilon(1e-6)
        assert found == pytest.approx(secure.guarantee.central(survivors).epsilon, rel=1e-4)


@pytest.mark.slow
def test_it_falls_as_one_over_the_root_of_the_users() -> None:
    mechanism = BallGaussian(500, epsilon=8.0, delta=1e-6, output_bits=8)
    found = [summed_central_epsilon(mechanism, n, 1e-6) for n in (1, 100, 2000)]
    assert found[0] == pytest.approx(epsilon_of(mechanism.gdp_mu, 1e-6))
    for n, each in zip((100, 2000), found[1:], strict=True):
        least = epsilon_of(2.0 * mechanism.radius / (mechanism.sigma * math.sqrt(n)), 1e-6)
        assert least < each < 1.03 * least
        assert summed_central_delta(mechanism, n, each) == pytest.approx(1e-6, rel=0.15)
    assert summed_central_delta(mechanism, 1, 8.0) <= 1e-6


@pytest.mark.parametrize(
    "mechanism",
    [
        bitldp.Gaussian(epsilon=2.0, delta=1e-6, features=5),
        bitldp.Laplace(epsilon=2.0, features=5),
        Skellam(5, epsilon=4.0, delta=1e-6, output_bits=8),
    ],
    ids=lambda each: type(each).__name__,
)
def test_several_numbers_are_never_above_the_local_guarantee(mechanism) -> None:
    local = mechanism.guarantee
    one, many = (summed_central_epsilon(mechanism, n, 1e-6) for n in (1, 100))
    assert many < 0.3 * one <= 0.3 * local.record * (1.0 + 1e-9)
    assert summed_central_delta(mechanism, 100, many) <= 2e-6
    if not local.delta:
        assert summed_central_delta(mechanism, 1, local.record) == 0.0


def test_epsilons_beyond_all_doubles_are_no_overflow() -> None:
    """Two records that share no report, and a delta at an epsilon whose exponential is no double."""
    channel = Shift(200, 210, gaussian_weights(1.0, 5), 5)
    law = SummedVectors(Coordinates(channel, 3, 1e5), 2)
    assert law.epsilon(1e-6) > 1e6
    for epsilon in (600.0, 800.0, 1e300):
        assert 0.0 <= law.delta(epsilon) <= 1.0
    assert 0.0 <= summed_central_delta(bitldp.Gaussian(epsilon=2.0, delta=1e-6, features=5), 9, 1e4) <= 1e-6


@pytest.mark.slow
def test_what_no_sum_of_vectors_is_computed_of_is_refused() -> None:
    mechanism = Skellam(64, epsilon=8.0, delta=1e-6, output_bits=12)
    with pytest.raises(ValueError, match=r"n: at most about \d+ for noise of \d+ steps, got 100000; fewer"):
        summed_central_epsilon(mechanism, 100_000, 1e-6)
    for n, delta, name in ((0, 1e-6, "n: "), (10, 0.0, "delta")):
        with pytest.raises(ValueError, match=name):
            summed_central_epsilon(mechanism, n, delta)
    for each in (
        bitldp.Duchi(epsilon=1.0, features=3),
        bitldp.Laplace(epsilon=1.0, features=3, spend="sample"),
        bitldp.HypercubePrivUnit(3, epsilon=1.0),
    ):
        with pytest.raises(ValueError, match="several columns"):
            summed_central_epsilon(each, 10, 1e-6)
    unlike = list(gaussian_weights(1.0, 5))
    unlike[3], unlike[4] = unlike[4], unlike[3]
    with pytest.raises(TypeError, match="symmetric"):
        SummedVectors(Coordinates(Shift(3, 13, unlike, 5), 2, 1.0), 4)


def test_others_who_are_told_are_allowed_for() -> None:
    """Of 3 users each clamped with chance 0.02: more than j of them by enumeration are as rare as is said."""
    from bitldp.amplification.vectors import _told

    for rare in (1e-1, 1e-3, 1e-5):
        told, chance = _told(3, 0.02, rare)
        true = sum(
            math.prod(0.02 if each else 0.98 for each in users)
            for users in itertools.product((0, 1), repeat=3)
            if sum(users) > told
        )
        assert true <= chance <= rare
