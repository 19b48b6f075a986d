"""Random codebooks: their exact law, what the nearest directions come to, and how near PrivUnit they are."""

from __future__ import annotations

import importlib
import math
import pickle

import bitldp
import numpy as np
import pytest
from bitldp import RandomCodebook, RotatedReports
from bitldp.letters.directions import best_directions, best_nearest, least_spread, nearest

special = pytest.importorskip("scipy.special")
integrate = pytest.importorskip("scipy.integrate")


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.3, 1.0, 4.0, 12.0, 30.0])
@pytest.mark.parametrize("features", [2, 9])
def test_epsilon_is_the_log_ratio_of_the_two_weights(features, epsilon):
    mechanism = RandomCodebook(features, epsilon=epsilon)
    weights = mechanism.channel.weights().tolist()
    exact = math.log1p((max(weights) - min(weights)) / min(weights))
    assert len(weights) == 2 * mechanism.directions
    assert len(set(weights)) == (2 if epsilon else 1)
    assert exact * (1 - 1e-12) <= mechanism.guarantee.record <= epsilon
    assert mechanism.guarantee.record >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize(
    ("d", "n", "k"), [(2, 16, 1), (2, 16, 9), (5, 64, 63), (16, 1024, 37), (127, 4096, 5), (127, 65536, 14)]
)
def test_the_nearest_directions_by_quadrature(d, n, k):
    """N times the mean, over a Beta(k, n - k) chance, of what lies within the angle of that chance."""
    density = math.exp(special.gammaln(d / 2) - special.gammaln((d - 1) / 2)) / math.sqrt(math.pi)

    def within(chance):
        sine = special.betaincinv((d - 1) / 2, 0.5, chance)
        weight = math.exp(
            (k - 1) * math.log(chance) + (n - k - 1) * math.log1p(-chance) - special.betaln(k, n - k)
        )
        squares = special.betainc((d - 1) / 2, 1.5, sine) / d
        return weight * np.array([2.0 * density / (d - 1) * sine ** ((d - 1) / 2), squares])

    deviation = math.sqrt(k * (n - k) / n**3)
    ends = max(1e-300, k / n - 15 * deviation), min(1 - 1e-16, k / n + 15 * deviation + 20 / n)
    for place, said in enumerate(nearest(d, n, k)):
        found, _ = integrate.quad(lambda b, at=place: within(b)[at], *ends, points=[k / n], limit=400)
        assert said == pytest.approx(n * found, rel=1e-6)


def test_the_nearest_directions_by_drawing():
    """100,000 codebooks; means within 5 standard errors."""
    rng = np.random.default_rng(1)
    for d, n in ((2, 3), (3, 8), (6, 5)):
        v = rng.normal(size=(100_000, n, d))
        sizes = -np.sort(-np.abs(v[:, :, 0] / np.linalg.norm(v, axis=2)), axis=1)
        for k in range(1, n + 1):
            for power, said in enumerate(nearest(d, n, k), 1):
                sums = (sizes[:, :k] ** power).sum(axis=1)
                assert abs(sums.mean() - said) <= 5.0 * sums.std() / math.sqrt(100_000) + 1e-12 * said


def test_the_mean_and_the_square_of_large_codebooks_in_three_dimensions():
    """There projections are uniform: the r-th largest of n is one less a Beta(r, n + 1 - r) number."""
    for n in (4096, 16_384, 65_536):
        for k in (1, 7, 324, n // 3):
            sums = k - k * (k + 1) / (2 * (n + 1))
            ranks = np.arange(1.0, k + 1.0)
            squares = math.fsum(1.0 - 2.0 * ranks / (n + 1) + ranks * (ranks + 1) / ((n + 1) * (n + 2)))
            assert nearest(3, n, k) == pytest.approx((sums, squares), rel=1e-12)
        mechanism = RandomCodebook(3, epsilon=12.0, directions=n)
        k, low, high = mechanism.k, *sorted(set(mechanism.channel.weights().tolist()))
        mean = (high - low) * (k - k * (k + 1) / (2 * (n + 1))) / mechanism.channel.total
        assert mechanism.letters[1] == pytest.approx(1.0 / mean, rel=1e-12)


@pytest.mark.parametrize("d", [2, 3, 8, 16, 50, 100, 127])
def test_codebooks_of_large_budgets_are_large_enough(d):
    """Within 1.9 % of PrivUnit at 8, 10 and 12; above, as many directions as 2**21 coordinates are."""
    for epsilon in (8.0, 10.0, 12.0):
        mechanism = RandomCodebook(d, epsilon=epsilon)
        limit = least_spread(d, epsilon)
        assert limit < mechanism.total_variance() <= 1.019 * limit
        assert mechanism.guarantee.record <= epsilon
        assert mechanism.guarantee.record == pytest.approx(epsilon, rel=1e-9)
    most = best_directions(d, 30.0)
    assert most == min(1 << 16, 1 << int(math.log2((1 << 21) / d)))
    with pytest.raises(ValueError, match="directions"):
        RandomCodebook(d, epsilon=12.0, directions=(1 << 16) + 1)


def test_projections_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    """A codebook that is drawn by parts is the one that is drawn whole, bit by bit."""
    module = importlib.import_module("bitldp.compression.ball.random_codebook")
    codec = RandomCodebook(5, epsilon=3.0, directions=300).codec
    x = np.random.default_rng(1).normal(size=(7, 5))
    numbers = np.arange(7, dtype=np.uint32)
    results = []
    for drawn in (1, 70, 4000, 1 << 20):
        monkeypatch.setattr(module, "_DRAWN", drawn)
        results.append(codec.rotate(x, numbers))
    assert all((each == results[0]).all() for each in results)
    letters = codec.letters(numbers.repeat(300), np.tile(2 * np.arange(300, dtype=np.uint32) + 1, 7), 1.0)
    projected = np.einsum("ijk,ik->ij", letters.reshape(7, 300, 5), x)
    np.testing.assert_allclose(results[0], projected, rtol=1e-6, atol=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize(("d", "n"), [(3, 1000), (8, 400)])
def test_large_codebooks_are_right_on_average_and_spread_as_said(d, n):
    """Epsilon 12, n records: means and mean squared errors within 5 standard errors, alpha = 6e-7 each."""
    x = RECORDS["random"](d)
    mechanism = RandomCodebook(d, epsilon=12.0)
    assert mechanism.directions > 4096
    letters = mechanism.decode(mechanism.randomize(np.tile(x, (n, 1)), rng=8))
    projected = letters @ x  # of mean 1: sensitive to the constant m
    assert abs(projected.mean() - 1.0) < 5.0 * projected.std() / math.sqrt(n) + 1e-12
    assert np.all(np.abs((letters - x).mean(axis=0)) < 5.0 * np.sqrt(mechanism.variance(x) / n))
    errors = np.square(letters - x).sum(axis=1)
    assert abs(errors.mean() - mechanism.total_variance()) < 5.0 * errors.std() / math.sqrt(n) + 1e-12


def test_k_and_the_number_of_directions_are_the_best():
    for d, n, epsilon in ((2, 64, 0.5), (5, 128, 3.0), (40, 256, 6.0)):
        odds = math.expm1(epsilon)
        gains = [odds * nearest(d, n, k).sum / (k * odds + 2 * n) for k in range(1, n + 1)]
        assert best_nearest(d, n, epsilon) == 1 + int(np.argmax(gains))
    for d in (2, 3, 10, 60, 127):
        for epsilon in (0.25, 1.0, 4.0, 8.0):
            limit = least_spread(d, epsilon)
            count = best_directions(d, epsilon)
            chosen = RandomCodebook(d, epsilon=epsilon)
            assert chosen.directions == count
            assert limit < chosen.total_variance() <= 1.019 * limit
            if count > 16:
                fewer = RandomCodebook(d, epsilon=epsilon, directions=count // 2)
                assert fewer.total_variance() > 1.019 * limit
            more = RandomCodebook(d, epsilon=epsilon, directions=4 * count)
            assert limit < more.total_variance() < chosen.total_variance()


RECORDS = {
    "random": lambda d: np.cos(1.0 + np.arange(d) ** 2.0) / np.linalg.norm(np.cos(1.0 + np.arange(d) ** 2.0)),
    "one spike": lambda d: -np.eye(1, d)[0],
    "two spikes": lambda d: np.array([0.5**0.5, -(0.5**0.5)] + [0.0] * (d - 2)),
    "short": lambda d: np.linspace(-1.0, 1.0, d) * 0.3 / np.linalg.norm(np.linspace(-1.0, 1.0, d)),
    "zero": np.zeros,
}


@pytest.mark.statistical
@pytest.mark.parametrize(("d", "epsilon", "n"), [(2, 1.0, 20_000), (3, 4.0, 20_000), (20, 3.0, 6_000)])
@pytest.mark.parametrize("kind", RECORDS)
def test_letters_are_right_on_average_and_spread_as_said(kind, d, epsilon, n):
    """Each coordinate and the sums of squares within 5 standard errors, alpha = 6e-7 each."""
    x, mechanism = RECORDS[kind](d), RandomCodebook(d, epsilon=epsilon)
    letters = mechanism.decode(mechanism.randomize(np.tile(x, (n, 1)), rng=3))
    variance = mechanism.variance(x)
    assert np.all(np.abs((letters - x).mean(axis=0)) < 5.0 * np.sqrt(variance / n))
    squares = np.square(letters - x)
    bound = 5.0 * squares.std(axis=0) / math.sqrt(n) + 1e-12 * variance
    assert np.all(np.abs(squares.mean(axis=0) - variance) < bound)
    said = mechanism.total_variance(float(np.linalg.norm(x)))
    assert variance.sum() == pytest.approx(said, rel=1e-9)
    assert variance.max() <= mechanism.worst_variance() * (1 + 1e-9)
    estimate = mechanism.estimate_mean(mechanism.randomize(np.tile(x, (n, 1)), rng=4))
    assert np.all(np.abs(estimate.value - x) < 5.0 * estimate.stderr)
    np.testing.assert_allclose(estimate.stderr, np.sqrt(variance / n), rtol=0.1)


@pytest.mark.statistical
def test_norms_do_not_leak():
    """Under one codebook the laws of norms 0, R and beyond have the same weights, in other orders."""
    mechanism = RandomCodebook(3, epsilon=2.0, directions=8, radius=5.0)
    numbers = np.zeros(1, np.uint32)
    weights = mechanism.channel.weights() / float(mechanism.channel.total)

    def row(unit):  # by code: 2 j is the opposite of direction j
        projected = mechanism.codec.rotate(unit[None], numbers)[0]
        values = np.stack([-projected, projected], axis=1).ravel()
        found = np.empty(len(values))
        found[np.argsort(values)] = weights
        return found

    first = np.array([1.0, 0.0, 0.0])
    shares = {0.0: 0.5, 2.0: 0.7, 5.0: 1.0}
    laws = {norm: share * row(first) + (1.0 - share) * row(-first) for norm, share in shares.items()}
    far = row(np.array([0.0, 0.6, -0.8]))
    for one in (*laws.values(), far):
        for other in (*laws.values(), far):
            assert np.log(one / other).max() <= mechanism.guarantee.record * (1 + 1e-12)
    n = 200_000  # chi-square of 15 degrees, alpha = 1e-7: 61
    for norm, law in laws.items():
        table = np.tile(first * norm, (n, 1))
        call = mechanism.randomize(table[:1], rng=1)
        assert call.codes.shape == (1,)
        release = mechanism._release
        codes = release.select(
            table,
            np.zeros((n, 1), np.uint32),
            bitldp.release.base.called(5, "codes", None, None, 0, ("codes",), 3),
        )
        expected = law * n
        assert (np.square(np.bincount(codes[:, 0], minlength=16) - expected) / expected).sum() < 61.0


def test_batches_concatenate_and_numbers_may_be_implied():
    mechanism = RandomCodebook(4, epsilon=3.0, public_seed=9)
    n = 5 * mechanism.channel.chunk
    x = np.random.default_rng(1).normal(0.0, 0.3, (n, 4))
    whole = mechanism.randomize(x, rng=4, threads=1)
    halves = [
        mechanism.randomize(x[: n // 5], rng=4, threads=3),
        mechanism.randomize(x[n // 5 :], rng=4, first_chunk=1),
    ]
    for place in range(2):
        assert (np.concatenate([half[place] for half in halves]) == whole[place]).all()
    codes = mechanism.randomize(x, first=77, rng=3)
    pair = mechanism.numbered(codes, 77)
    assert pair.rotations.tolist() == list(range(77, 77 + n))
    assert (mechanism.decode(codes, first=77) == mechanism.decode(pair)).all()
    other = RandomCodebook(4, epsilon=3.0, public_seed=10)
    assert (other.decode(pair) != mechanism.decode(pair)).any()
    packed = mechanism.randomize(x, rng=4, output="packed")
    one, two = mechanism.accumulator(), mechanism.accumulator()
    one.update(whole)
    two.update(packed, output="packed", records=n)
    assert (one.estimate().value == two.estimate().value).all()
    np.testing.assert_allclose(one.estimate().value, mechanism.decode(whole).mean(axis=0))
    np.testing.assert_allclose(np.linalg.norm(mechanism.decode(whole), axis=1), mechanism.letters[1])
    assert (mechanism.randomize(x).rotations != mechanism.randomize(x).rotations).mean() > 0.99


def test_what_does_not_fit_is_refused():
    mechanism = RandomCodebook(4, epsilon=3.0, radius=2.0)
    inside, far = np.full((1, 4), 1.0), np.full((1, 4), 30.0)
    assert (mechanism.outside(inside), mechanism.outside(far)) == (0, 1)
    assert mechanism.randomize(inside, rng=1).codes == mechanism.randomize(far, rng=1).codes
    with pytest.raises(ValueError, match="index 0"):
        RandomCodebook(4, epsilon=3.0, radius=2.0, clip=False).randomize(far)
    with pytest.raises(ValueError, match="finite"):
        mechanism.randomize(np.array([[0.0, np.nan, 0.0, 0.0]]))
    shared = RotatedReports(np.full(5, 7, np.uint32), np.zeros(5, np.uint32))
    with pytest.raises(ValueError, match="all are equal"):
        mechanism.estimate_mean(shared)
    silent = RandomCodebook(5, epsilon=0.0)
    with pytest.raises(ValueError, match="epsilon 0"):
        silent.decode(silent.randomize(np.zeros((3, 5))))
    for parameters in (
        {"features": 1},
        {"features": 128},
        {"directions": 1},
        {"public_seed": -1},
        {"radius": 0.0},
    ):
        with pytest.raises(ValueError, match=next(iter(parameters))):
            RandomCodebook(**{"features": 5, "epsilon": 1.0} | parameters)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert RandomCodebook(4, epsilon=3.0, radius=2.0, directions=mechanism.directions) == mechanism
