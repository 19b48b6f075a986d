"""Laws of shares: their integers, their samples, and the law of their sum, each by a second way."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from bitldp.amplification.sums import noised
from bitldp.privacy import ONE
from bitldp.sums import Count, Histogram, Number, laws
from bitldp.sums.convolution import SumLaw, exact_sum
from bitldp.sums.divergence import delta_of_moves, delta_of_two
from bitldp.sums.laws import PolyaShare, ShareLaw, SignShare, SkellamShare
from scipy import stats

DELTA = 1e-6


def polya(rate: float, honest: int) -> PolyaShare:
    return PolyaShare(Decimal(rate), honest, 1e-15)


LAWS = {
    "polya": polya(0.5, 5),
    "polya of one": polya(1.0, 1),
    "skellam": SkellamShare(Decimal("0.7"), 5),
    "skellam that is thin": SkellamShare(Decimal("0.001"), 5),
    "signs": SignShare(ONE // 7, 5),
}


@pytest.fixture(params=LAWS)
def law(request: pytest.FixtureRequest) -> ShareLaw:
    return LAWS[request.param]


@lru_cache
def exact_share(law: ShareLaw) -> tuple[int, tuple[int, ...], int]:
    """Return the first value, the weights and their sum of a share, as whole numbers."""
    weights, scale = list(law.table.weights), 1 << law.table.bits
    if not law.mirrored:
        return law.table.first, tuple(weights), scale
    both = np.convolve(np.array(weights, dtype=object), np.array(weights[::-1], dtype=object))
    return 1 - len(weights), tuple(both.tolist()), scale * scale


@lru_cache
def enumerated(law: ShareLaw, shares: int) -> tuple[int, tuple[int, ...], int]:
    """Return the same of the sum of shares: nothing is rounded."""
    first, weights, scale = exact_share(law)
    total = np.array([1], dtype=object)
    for _ in range(shares):
        total = np.convolve(total, np.array(weights, dtype=object))
    return first * shares, tuple(total.tolist()), scale**shares


def true_delta(law: ShareLaw, shares: int, steps: int, epsilon: float) -> float:
    """Return the largest delta of a move by 1 to `steps`, from whole numbers."""
    _, weights, scale = enumerated(law, shares)
    chances = [float(Fraction(each, scale)) for each in weights]
    worst = 0.0
    for step in range(1, steps + 1):
        moved = [0.0] * step + chances[:-step]
        pairs = zip(chances, moved, strict=True)
        gains = [max(0.0, one - math.exp(epsilon) * other) for one, other in pairs]
        worst = max(worst, math.fsum(gains))
    return worst


def true_delta_of_two(law: ShareLaw, shares: int, epsilon: float) -> float:
    """Return the delta of a record that leaves one sum and joins another, over all pairs of sums."""
    _, weights, scale = enumerated(law, shares)
    chances = np.array([float(Fraction(each, scale)) for each in weights])
    before, after = np.append(0.0, chances[:-1]), np.append(chances[1:], 0.0)
    gains = np.outer(chances, chances) - math.exp(epsilon) * np.outer(before, after)
    return float(np.maximum(gains, 0.0).sum())


def test_weights_are_whole(law: ShareLaw) -> None:
    assert sum(law.table.weights) == 1 << law.table.bits
    assert min(law.table.weights) >= 0


def test_polya_weights_are_negative_binomial() -> None:
    for rate, honest in ((0.5, 5), (1.0, 1), (0.05, 1000)):
        law = polya(rate, honest)
        weights = np.array([each / ONE for each in law.table.weights])
        expected = stats.nbinom.pmf(np.arange(len(weights)), 1.0 / honest, -math.expm1(-rate))
        # within half a unit of 2^-64 but for the doubles of the comparison; the mode takes the rest
        assert np.abs(weights - expected)[1:].max() < 1e-13 * expected.max() + 2.0**-64
        assert np.allclose(weights[:40], expected[:40], rtol=1e-10, atol=2.0**-64)


def test_skellam_weights_are_a_difference_of_poissons() -> None:
    law = SkellamShare(Decimal("0.7"), 5)
    places = law.table.first + np.arange(len(law.table.weights))
    expected = stats.skellam.pmf(places, 0.7, 0.7)
    assert np.allclose([each / ONE for each in law.table.weights], expected, rtol=1e-9, atol=2.0**-63)


def test_wide_table_is_the_same_law() -> None:
    law = polya(1.0, 3)
    chances = [Decimal(each) / ONE for each in law.table.weights]
    wide, distance = laws._wide(chances)
    assert (wide.bits, sum(wide.weights), distance < 2.0**-60) == (128, 1 << 128, True)
    drawn = wide.sample((20_000, 1), [bytes([1]) * 32, bytes([2]) * 32]).ravel()
    counts = np.bincount(drawn, minlength=6)[:6]
    expected = 20_000 * np.array([float(each) for each in chances[:6]])
    assert ((counts - expected) ** 2 / expected).sum() < 25.7  # chi-square of 6 at 1e-4 is 27.9


def test_ideal_sum_agrees_with_the_enumerated_one(law: ShareLaw) -> None:
    for shares in (1, 2, 5, 6):
        first, weights, scale = enumerated(law, shares)
        half = [float(Fraction(each, scale)) for each in weights[-first:]][:30]
        ideal = [float(each) for each in law.ideal(shares, len(half) - 1)]
        assert np.abs(np.array(half) - ideal).max() < 2.0 * shares * law.distance + 1e-15


def test_variance_is_that_of_the_integers(law: ShareLaw) -> None:
    first, weights, scale = exact_share(law)
    places = [first + k for k in range(len(weights))]
    exact = Fraction(sum(k * k * w for k, w in zip(places, weights, strict=True)), scale)
    assert law.variance == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("steps", [1, 3])
def test_delta_by_enumeration(law: ShareLaw, steps: int) -> None:
    for shares, epsilon in itertools.product((1, 2, 3, 6), (0.0, 0.3, 1.0, 3.0)):
        found = delta_of_moves(exact_sum(law, shares, DELTA), steps)(epsilon)
        truth = true_delta(law, shares, steps, epsilon)
        assert truth * (1.0 - 1e-12) <= found <= truth * (1.0 + 1e-6) + 1e-3 * DELTA


def test_delta_of_two_sums_by_enumeration(law: ShareLaw) -> None:
    for shares, epsilon in itertools.product((1, 3, 6), (0.0, 0.5, 1.0, 4.0)):
        found = delta_of_two(exact_sum(law, shares, DELTA))(epsilon)
        truth = true_delta_of_two(law, shares, epsilon)
        assert truth * (1.0 - 1e-12) <= found <= truth * (1.0 + 1e-6) + 1e-3 * DELTA


def test_delta_bounds_every_move_of_a_law_without_order() -> None:
    # A law of three modes, of which a move by 1 tells more than one by 2.
    chances = np.array([11.0, 1.0, 7.0, 1.0, 11.0]) / 31.0
    found = delta_of_moves(SumLaw(chances, 0.0, 0.0, True), 2)
    padded = np.concatenate([np.zeros(4), chances, np.zeros(4)])
    for epsilon in (0.0, 0.5, 1.5):
        one, two = (np.maximum(padded - math.exp(epsilon) * np.roll(padded, t), 0.0).sum() for t in (1, 2))
        assert one > two
        assert found(epsilon) >= one


def test_certificate_counts_the_total_variation() -> None:
    law = polya(1.0, 10)
    before = Count().central(law, 10, DELTA, "certificate").epsilon
    law.distance = 0.1 * DELTA / 10
    assert Count().central(law, 10, DELTA, "certificate").epsilon > before
    law.distance = DELTA / 10
    assert Count().central(law, 10, DELTA, "certificate").epsilon == math.inf


@pytest.mark.parametrize("kind", [Count(), Histogram(3), Number((0, 1), 9)], ids=lambda each: each.name)
@pytest.mark.parametrize("noise", ["polya", "skellam"])
def test_epsilon_by_two_independent_ways(kind: Count, noise: str) -> None:
    # Beyond enumeration: the convolution of the integers, and the ideal law with the total variation.
    for shares in (500, 1000, 1430):
        law = kind.fit(1.0, DELTA, 1000, noise)
        exact = kind.central(law, shares, DELTA, "exact")
        bound = kind.central(law, shares, DELTA, "certificate")
        assert exact.exact
        assert not bound.exact
        assert exact.epsilon == pytest.approx(bound.epsilon, rel=1e-4)


def test_delta_agrees_with_the_accountant_of_log_concave_noise() -> None:
    law = SkellamShare(Decimal("0.02"), 1000)
    weights = np.array([each / ONE for each in law.table.weights])
    reached = delta_of_moves(exact_sum(law, 1000, DELTA), 3)
    for epsilon in (0.5, 1.0, 2.0):
        assert reached(epsilon) == pytest.approx(noised(weights, 3, 1000, epsilon), rel=1e-3, abs=1e-8)


def test_delta_of_polya_sums_agrees_with_a_transform() -> None:
    # A way of its own: the 700th power of the transform of a share's law, in doubles.
    law, shares, size = polya(0.5, 1000), 700, 1 << 10
    draw = np.fft.fft(np.array([each / ONE for each in law.table.weights]), size)
    chances = np.fft.ifft((draw * draw.conj()) ** shares).real.clip(0.0)
    for steps, epsilon in itertools.product((1, 4), (0.5, 1.0, 2.0)):
        gains = np.maximum(chances - math.exp(epsilon) * np.roll(chances, steps), 0.0).sum()
        found = delta_of_moves(exact_sum(law, shares, DELTA), steps)(epsilon)
        assert found == pytest.approx(gains, rel=1e-6, abs=1e-9)


def test_sum_of_a_million_shares_is_geometric() -> None:
    law = polya(1.0, 10**6)
    lower = exact_sum(law, 10**6, DELTA).lower
    reach = len(lower) // 2
    a = math.exp(-1.0)
    expected = (1.0 - a) / (1.0 + a) * a ** np.abs(np.arange(-reach, reach + 1))
    assert np.abs(lower - expected).max() < 10**6 * law.distance
    assert 1.0 - lower.sum() < 1e-9


def test_samples_have_the_law(law: ShareLaw) -> None:
    # n = 100,000; alpha = 1e-5 a law, seeded
    n = 100_000
    keys = [bytes([7 + each]) * 32 for each in range(law.streams)]
    drawn = law.sample((n, 1), keys).ravel()
    first, weights, scale = exact_share(law)
    _fits(drawn - first, np.array([float(Fraction(each, scale)) for each in weights]), n)


def test_sums_of_samples_have_the_law_of_the_sum(law: ShareLaw) -> None:
    # 20,000 sums of 5 shares; alpha = 1e-5 a law, seeded
    n, shares = 20_000, 5
    keys = [bytes([90 + each]) * 32 for each in range(law.streams)]
    drawn = law.sample((n, shares), keys).sum(axis=1)
    total = exact_sum(law, shares, DELTA).lower
    _fits(drawn + len(total) // 2, total, n)


def _fits(drawn: np.ndarray, chances: np.ndarray, n: int) -> None:
    _fits_counts(np.bincount(drawn, minlength=len(chances)), chances, n)


def _fits_counts(counts: np.ndarray, chances: np.ndarray, n: int) -> None:
    """Compare counts of 0, 1, ... with their chances by chi-square; the rare ones count as one."""
    often = n * chances >= 10.0
    seen = np.append(counts[often], counts.sum() - counts[often].sum())
    expected = n * np.append(chances[often], max(1.0 - chances[often].sum(), 1e-12))
    keep = expected >= 1.0
    assert not seen[~keep].any() or expected[~keep].sum() > 0.01
    distance = ((seen - expected)[keep] ** 2 / expected[keep]).sum()
    assert distance < stats.chi2.isf(1e-5, keep.sum() - 1 or 1)


def test_convolution_is_never_above_the_truth(law: ShareLaw) -> None:
    first, weights, scale = enumerated(law, 6)
    found = exact_sum(law, 6, DELTA)
    reach = len(found.lower) // 2
    for place in range(-reach, reach + 1):
        index = place - first
        truth = float(Fraction(weights[index], scale)) if 0 <= index < len(weights) else 0.0
        assert found.lower[place + reach] <= truth * (1.0 + found.slack)
    assert found.missing >= 1.0 - math.fsum(found.lower) - 1e-15
    assert found.missing < DELTA / 1000.0


@pytest.mark.evidence
@pytest.mark.parametrize("name", LAWS)
def test_ten_million_samples_have_the_law(name: str) -> None:
    """Samples of each law of a share, 12,000,000 each: chi-square within 1e-5, and sums of 5 as convolved."""
    law, n, each = LAWS[name], 12_000_000, 2_000_000
    first, weights, scale = exact_share(law)
    chances = np.array([float(Fraction(weight, scale)) for weight in weights])
    total = exact_sum(law, 5, DELTA).lower
    counts, sums = np.zeros(len(chances), np.int64), np.zeros(len(total), np.int64)
    for part in range(n // each):
        keys = [bytes([part + 1, stream + 1]) * 16 for stream in range(law.streams)]
        drawn = law.sample((each // 5, 5), keys)
        counts += np.bincount(drawn.ravel() - first, minlength=len(chances))
        sums += np.bincount(drawn.sum(axis=1) + len(total) // 2, minlength=len(total))
    _fits_counts(counts, chances, n)
    _fits_counts(sums, total, n // 5)
