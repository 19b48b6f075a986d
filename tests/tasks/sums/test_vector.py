"""Vectors in a secure sum: the slope against enumeration, bits and error, intervals, survivors, refusals."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from bitldp.accounting import account
from bitldp.channels.normal import continuous_sigma, delta_of, largest_mu
from bitldp.privacy import ONE
from bitldp.sums import Count, SecureSum, Vector
from bitldp.sums.laws import ShareLaw, SignShare, SkellamShare
from bitldp.sums.normal import slope_of_sum
from bitldp.sums.vector import NormalBound

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0)

#: (features, epsilon, clients): bits that are enough for 5 % over the central Gaussian mechanism's error.
BITS = {
    (1000, 1.0, 100): 12,
    (1000, 1.0, 1000): 14,
    (1000, 1.0, 10_000): 18,
    (1000, 4.0, 100): 13,
    (1000, 4.0, 1000): 16,
    (1000, 4.0, 10_000): 20,
    (100_000, 1.0, 100): 12,
    (100_000, 1.0, 1000): 13,
    (100_000, 1.0, 10_000): 14,
    (100_000, 4.0, 100): 12,
    (100_000, 4.0, 1000): 13,
    (100_000, 4.0, 10_000): 16,
}


def summed(law: ShareLaw, shares: int) -> np.ndarray:
    """Return the law of the sum in doubles, by plain convolution: the other way than the library's."""
    one = np.array([weight / ONE for weight in law.table.weights])
    result = np.ones(1)
    for _ in range(shares):
        result = np.convolve(result, one)
    return result


def reports(law: np.ndarray, x: float, reach: int) -> np.ndarray:
    """Return the chances of -reach to reach, of the dithered input x and noise."""
    whole = math.floor(x)
    result = np.zeros(2 * reach + 1)
    for place, chance in ((whole, whole + 1.0 - x), (whole + 1, x - whole)):
        start = place - len(law) // 2 + reach
        result[start : start + len(law)] += chance * law
    return result


@pytest.mark.parametrize("tail", [1e-5, 1e-9, 1e-12])
@pytest.mark.parametrize(
    ("law", "shares"),
    [
        (SkellamShare(Decimal("0.5"), 3), 3),
        (SkellamShare(Decimal(2), 4), 4),
        (SkellamShare(Decimal("0.05"), 20), 20),
        (SkellamShare(Decimal(4), 1), 1),
        (SignShare(ONE // 5, 6), 6),
        (SignShare(ONE // 5, 40), 40),
        (SignShare(ONE // 3, 20), 20),  # even and odd sums differ, so that the law is not log-concave
    ],
)
def test_no_two_inputs_are_told_apart_better_than_the_slope_says(
    law: ShareLaw, shares: int, tail: float
) -> None:
    """Enumeration in one and two dimensions: every pair, also dithered ones, at every epsilon."""
    slope = slope_of_sum(law, shares, tail)
    noise = summed(law, shares)
    reach = len(noise) // 2 + 8
    rng = np.random.default_rng(shares)
    for trial in range(12):
        d = 1 if trial < 8 else 2
        start = np.floor(rng.uniform(-1.0, 1.0, d)) if trial % 3 == 0 else rng.uniform(-1.0, 1.0, d)
        way = rng.normal(size=d)
        apart = (0.05, 0.5, 1.0, 4.0)[trial % 4]
        other = start + apart * way / np.linalg.norm(way)
        first, second = ([reports(noise, x, reach) for x in each] for each in (start, other))
        p, q = (laws[0] if d == 1 else np.outer(*laws).ravel() for laws in (first, second))
        distance = float(np.linalg.norm(other - start))
        for epsilon in EPSILONS:
            true = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
            bound = NormalBound(slope.per_step * distance, d * slope.lost).delta(epsilon)
            assert true <= bound * (1.0 + 1e-9) + 1e-14


def test_slope_is_near_that_of_normal_noise() -> None:
    """Slopes times sigma at 10, 30 and 100 steps, alike for every way to share."""
    for sigma, most in ((10.0, 1.37), (30.0, 1.13), (100.0, 1.037)):
        found = []
        for shares in (1, 30):
            law = SkellamShare(Decimal(sigma * sigma) / (2 * shares), shares)
            slope = slope_of_sum(law, shares, 1e-14)
            assert slope.lost < 3e-14
            found.append(slope.per_step * sigma)
        assert 1.0 < found[1] <= most
        assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_a_law_that_tells_even_from_odd_hides_nothing() -> None:
    assert slope_of_sum(SignShare(ONE // 2, 6), 6, 1e-9).per_step == math.inf
    wide = SkellamShare(Decimal(50), 1)
    assert slope_of_sum(wide, 1, 1e-9).per_step < math.inf


@pytest.mark.slow
@pytest.mark.parametrize("setting", BITS, ids=str)
def test_error_is_within_five_percent_of_the_central_mechanism(setting: tuple[int, float, int]) -> None:
    features, epsilon, clients = setting
    secure = SecureSum(Vector(features), epsilon=epsilon, clients=clients)
    assert secure.bits <= BITS[setting]
    assert 1.0 < secure.overhead**2 <= 1.05
    assert secure.wrap_bound <= 1e-9
    assert 0.9998 * epsilon <= secure.guarantee.central().epsilon <= epsilon


@pytest.mark.slow
@pytest.mark.parametrize(("features", "clients"), [(1000, 100), (1000, 1000)])
def test_sums_of_integers_have_the_error_that_is_said(features: int, clients: int) -> None:
    """Mean squared error over the bound: 10,000 coordinates, so a standard error of 1.5 %."""
    secure = SecureSum(Vector(features, 2.0), epsilon=4.0, clients=clients)
    rng = np.random.default_rng(clients)
    errors = []
    for seed in range(10):
        if seed % 2:  # all send the same vector, which has one coordinate
            x = np.zeros((clients, features))
            x[:, seed] = 2.0
        else:  # some are outside of the ball
            x = rng.normal(size=(clients, features))
            x *= (rng.uniform(0.2, 4.0, clients) / np.linalg.norm(x, axis=1))[:, None]
        lengths = np.linalg.norm(x, axis=1, keepdims=True)
        truth = (x * np.minimum(1.0, 2.0 / np.maximum(lengths, 1e-9))).mean(axis=0)
        estimate = secure.decode(secure.add(secure.share(x.astype(np.float32), rng=seed)), clients)
        errors.append(np.square(estimate.value - truth).mean() / estimate.stderr[0] ** 2)
    assert 0.93 < np.mean(errors) < 1.06


@pytest.mark.slow
def test_sums_of_many_coordinates_do_not_wrap() -> None:
    """100,000 coordinates, 100 and 1,000 clients that all send the same vector."""
    for clients in (100, 1000):
        secure = SecureSum(Vector(100_000), epsilon=1.0, clients=clients)
        x = np.zeros((50, 100_000), np.float32)
        x[:, 7] = 1.0
        total = secure.add(*(secure.share(x, rng=seed) for seed in range(clients // 50)))
        estimate = secure.decode(total, clients)
        errors = (estimate.value - x[0]) / estimate.stderr
        assert np.abs(errors).max() < 6.0
        assert np.square(errors).mean() == pytest.approx(1.0, abs=0.03)


@pytest.mark.statistical
def test_intervals_hold_the_mean_of_the_records() -> None:
    """2,000 sums of 24 coordinates, of which 8 are looked at; .95 within four standard errors, and dither."""
    secure = SecureSum(Vector(24), epsilon=2.0, clients=40, floor=30, colluding=4)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(36, 24))
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)
    shares = secure.share(np.tile(x, (2000, 1)), rng=4).reshape(2000, 36, -1)
    held = []
    for each in shares:
        low, high = secure.decode(secure.add(each), 36).confidence_interval(0.95)
        held.append((low <= x.mean(axis=0)) & (x.mean(axis=0) <= high))
    assert 0.94 <= np.mean(held) <= 0.97


@pytest.mark.slow
def test_survivors_and_colluders_decide_epsilon() -> None:
    secure = SecureSum(Vector(50), epsilon=1.0, clients=40, floor=30, colluding=4)
    assert secure.least_survivors == 34
    found = [secure.guarantee.central(survivors).epsilon for survivors in (14, 24, 34, 40)]
    assert found == sorted(found, reverse=True)
    assert found[2] <= 1.0 < found[1]
    # normal laws: epsilon at the floor's noise times the root of the shares
    bound = secure.kind.gdp(secure.law, 10, 1e-6)  # type: ignore[attr-defined]
    assert bound.mu == pytest.approx(largest_mu(1.0, 1e-6) * math.sqrt(3.0), rel=0.05)
    assert secure.guarantee.local.epsilon > 3.0
    total = secure.add(secure.share(np.zeros((33, 50))))
    with pytest.raises(ValueError, match=r"survivors: 33 are below the floor of 34"):
        secure.decode(total, 33)


@pytest.mark.slow
def test_thinned_signs_have_no_tail_and_cost_no_more() -> None:
    budget = {"epsilon": 4.0, "delta": 1e-5, "clients": 2_000}
    signs = SecureSum(Vector(20, steps=6.0), noise="signs", **budget)
    skellam = SecureSum(Vector(20, steps=6.0), **budget)
    edge = signs.law.table.weights[0]
    assert signs.law.table.weights == (edge, ONE - 2 * edge, edge)
    assert signs.law.variance == pytest.approx(skellam.law.variance, rel=0.02)
    assert signs.guarantee.central().epsilon <= 4.0
    with pytest.raises(ValueError, match=r"noise: the variance of a thinned sign is at most 0\.5"):
        SecureSum(Vector(20), epsilon=1.0, clients=10, noise="signs")


@pytest.mark.slow
def test_terms_describe_the_sum_and_shares_are_those_of_the_seed() -> None:
    secure = SecureSum(Vector(40, 3.0, public_seed=7), epsilon=2.0, clients=25)
    assert SecureSum.from_terms(secure.terms()) == secure
    x = np.linspace(-1.0, 1.0, 200).reshape(5, 40)
    many, one = secure.share(x, rng=1), secure.share(x[0], rng=1)
    assert many.shape == (5, 64)
    assert one.shape == (64,)
    assert (many == secure.share(x, rng=1, threads=2)).all()
    assert int(many.max()) < secure.modulus
    keyed = [
        secure.share_keyed(x[order], key=bytes(range(32)), ids=np.arange(5)[order])
        for order in ([0, 1, 2, 3, 4], [3])
    ]
    assert (keyed[0][3] == keyed[1][0]).all()
    other = SecureSum(Vector(40, 3.0, public_seed=8), epsilon=2.0, clients=25)
    assert other.digest != secure.digest


@pytest.mark.slow
@pytest.mark.parametrize("clients", [1, 2, 10])
def test_few_clients_are_hidden_as_well(clients: int) -> None:
    secure = SecureSum(Vector(3), epsilon=1.0, clients=clients)
    assert secure.overhead**2 < 1.06
    assert secure.kind.gaussian(1.0, 1e-6) == pytest.approx(
        2.0 * secure.kind.steps * continuous_sigma(1.0, 1e-6)  # type: ignore[attr-defined]
    )


@pytest.mark.slow
@pytest.mark.parametrize("features", [3, 100])
@pytest.mark.parametrize("steps", [20.0, 40.0, None])
def test_one_share_that_is_all_the_noise_of_a_large_epsilon(features: int, steps: float | None) -> None:
    """Weights of its tails are few units: not all of epsilon is spent, and most of it."""
    secure = SecureSum(Vector(features, steps=steps), epsilon=8.0, clients=2, colluding=1)
    assert 6.0 < secure.guarantee.central().epsilon <= 8.0
    assert secure.overhead < 1.35


@pytest.mark.parametrize(
    ("given", "fragment"),
    [
        ({"features": 0}, "features: must be between 1 and"),
        ({"features": 3, "clip": 0.0}, "clip: must be above zero"),
        ({"features": 3, "clip": 1e101}, "clip: must be between"),
        ({"features": 3, "steps": 1e6}, "steps: must be at most"),
        ({"features": 3, "public_seed": -1}, "public_seed: must be between"),
    ],
)
def test_parameters_are_checked(given: dict[str, float], fragment: str) -> None:
    with pytest.raises(ValueError, match=fragment):
        Vector(**given)  # type: ignore[arg-type]


def test_bad_vectors_are_refused_without_their_values() -> None:
    secure = SecureSum(Vector(3), epsilon=1.0, clients=4)
    with pytest.raises(ValueError, match=r"x: shape must be \(records, 3\) or \(3,\), got \(2, 4\)"):
        secure.share(np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"x: element 4 .* finite"):
        secure.share(np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]]))
    with pytest.raises(TypeError, match="x: dtype"):
        secure.share(np.array([["a", "b", "c"]]))
    with pytest.raises(ValueError, match="noise: Pólya shares are for counts"):
        SecureSum(Vector(3), epsilon=1.0, clients=4, noise="polya")
    with pytest.raises(ValueError, match="steps: not chosen"):
        _ = Vector(3).step


# -- over rounds


@pytest.mark.slow
def test_rounds_of_vectors_compose_by_the_root_of_their_squares() -> None:
    secure = SecureSum(Vector(100), epsilon=1.0, clients=50)
    one = secure.kind.gdp(secure.law, 50, 1e-6)  # type: ignore[attr-defined]
    for rounds in (1, 4, 100):
        found = account([(secure, rounds)], delta=1e-6)
        assert found.central
        assert "central epsilon" in str(found)
        least = NormalBound(one.mu * math.sqrt(rounds), 0.0).epsilon(1e-6)
        assert 0.99 * least <= found.epsilon <= 1.03 * least
        assert delta_of(one.mu * 0.98 * math.sqrt(rounds), found.epsilon) <= 1e-6
        back = account([(secure, rounds)], epsilon=found.epsilon)
        assert back.delta <= 1.001e-6


@pytest.mark.slow
def test_rounds_of_counts_compose_by_their_curve() -> None:
    """Of 5 counts whose noise is two-sided geometric, against the convolution of their losses."""
    count = SecureSum(Count(), epsilon=0.3, clients=20)
    found = account([(count, 5)], delta=1e-3)
    fading = math.exp(-0.3)
    # losses of +-0.3 for noise beyond a step: P(loss = 0.3) = 1/(1 + fading), and the mirror
    high = 1.0 / (1.0 + fading)
    true = [
        sum(
            math.comb(5, k) * high**k * (1 - high) ** (5 - k) * max(0.0, 1 - math.exp(e - 0.3 * (2 * k - 5)))
            for k in range(6)
        )
        for e in (found.epsilon * 0.99, found.epsilon)
    ]
    assert true[1] <= 1e-3 < true[0] * 1.1
    assert found.central
    vector = SecureSum(Vector(30), epsilon=0.5, clients=20)
    both = account([(count, 5), (vector, 2)], delta=1e-3)
    assert found.epsilon < both.epsilon < 5 * 0.3 + 2 * 0.5


def test_central_epsilons_are_not_added_to_local_ones() -> None:
    count = SecureSum(Count(), epsilon=0.3, clients=20)
    with pytest.raises(ValueError, match="the epsilon of a secure sum is central"):
        account([(count, 1), (_warner(), 1)], delta=1e-6)
    with pytest.raises(ValueError, match="method: secure sums"):
        account([(count, 1)], delta=1e-6, method="renyi")
    basic = account([(count, 3)], delta=1e-5, method="basic")
    assert basic.central
    assert basic.epsilon == pytest.approx(0.9, rel=1e-5)


def _warner() -> object:
    from bitldp import WarnerRR

    return WarnerRR(epsilon=1.0)
