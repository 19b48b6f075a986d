"""Central privacy of sums of bits for any number of users: never below the truth, and near it."""

from __future__ import annotations

import math
import time

import bitldp
import numpy as np
import pytest
from bitldp.amplification import (
    shuffled_central_epsilon,
    shuffled_histogram_central_epsilon,
    summed_central_delta,
    summed_central_epsilon,
)
from bitldp.amplification.binary import Binary, binomial
from bitldp.amplification.datasets import Datasets
from bitldp.channels import Matrix

stats = pytest.importorskip("scipy.stats")

CHANCES = [(0.73, 0.27), (0.5, 0.2), (0.95, 0.05), (0.9, 0.3), (0.3, 0.9), (0.999, 0.4)]


def rows_of(p, q):
    return np.array([[1.0 - q, q], [1.0 - p, p]])


def local(p, q):
    return max(abs(math.log(p / q)), abs(math.log((1.0 - p) / (1.0 - q))))


def of_data(p, q, ones, zeros, epsilon):
    """Return delta for so many others of each record, from SciPy's tails, in the direction from 1 to 0.

    The sum of others of one record is binomial; of both it is convolved here, entry by entry.
    """
    reach = np.arange(ones + zeros + 1)
    law = np.convolve(
        stats.binom.pmf(np.arange(ones + 1), ones, p), stats.binom.pmf(np.arange(zeros + 1), zeros, q)
    )
    assert len(law) == len(reach)
    law = np.concatenate([[0.0], law, [0.0]])
    mine, theirs = p * law[:-1] + (1 - p) * law[1:], q * law[:-1] + (1 - q) * law[1:]
    return max(
        float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())
        for one, other in ((mine, theirs), (theirs, mine))
    )


@pytest.mark.slow
@pytest.mark.parametrize(("p", "q"), CHANCES)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 40, 200])
def test_it_is_that_of_all_data_sets(p, q, n):
    """Never below enumeration of all data sets by transforms, and at most 2 % of epsilon above."""
    rows = rows_of(p, q)
    exact, bound = Datasets(rows, n, True), Binary(rows, n)
    for delta in (1e-2, 1e-4):
        true = exact.epsilon(delta, local(p, q))
        found = bound.epsilon(delta, local(p, q))
        assert true * (1.0 - 1e-4) <= found <= 1.02 * true + 1e-12  # the exact one, too, is rounded up
    for epsilon in (0.0, 0.02, 0.3):
        least = max(of_data(p, q, c, n - 1 - c, epsilon) for c in range(0, n, max(1, n // 10)))
        assert bound.delta(epsilon) >= least * (1.0 - 1e-12)
        assert bound.delta(epsilon) <= exact.delta(epsilon) * 1.05 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("p", "q"), CHANCES[:4])
def test_many_users_by_the_tails_of_scipy(p, q):
    """Of 20,000: above the data sets of all one record or half of each, within 1 % of epsilon of them."""
    n, rows = 20_000, rows_of(p, q)
    bound = Binary(rows, n)
    found = bound.epsilon(1e-6, local(p, q))
    sets = [0, n // 2, n - 1]
    assert max(of_data(p, q, c, n - 1 - c, found) for c in sets) <= 1e-6 * (1.0 + 1e-9)
    assert max(of_data(p, q, c, n - 1 - c, 0.99 * found) for c in sets) > 1e-6


@pytest.mark.slow
def test_a_million_users_take_seconds():
    start = time.process_time()
    found = [
        summed_central_epsilon(bitldp.WarnerRR(epsilon=1.0), n, 1e-6) for n in (5_000, 100_000, 1_000_000)
    ]
    assert time.process_time() - start < 60.0
    assert found[0] > 4.0 * found[1] > 12.0 * found[2] > 0.0
    # The sum is near a normal one of variance n p (1 - p), which two inputs move by p - q.
    p = 1.0 / (1.0 + math.exp(-1.0))
    mu = (2.0 * p - 1.0) / math.sqrt(1e6 * p * (1.0 - p))
    normal = stats.norm.cdf(mu / 2 - found[2] / mu) - math.exp(found[2]) * stats.norm.cdf(
        -mu / 2 - found[2] / mu
    )
    assert normal == pytest.approx(1e-6, rel=0.05)
    assert summed_central_delta(bitldp.WarnerRR(epsilon=1.0), 1_000_000, found[2]) <= 1e-6 * (1.0 + 1e-6)


@pytest.mark.slow
def test_what_it_joins_on_to():
    """The step from all data sets to some at a time is not seen; both are far below the shuffled bound."""
    warner = bitldp.WarnerRR(epsilon=1.0)
    less, more = (summed_central_epsilon(warner, n, 1e-5) for n in (1000, 1001))
    assert more == pytest.approx(less, rel=5e-3)
    assert shuffled_histogram_central_epsilon(warner, 1001, 1e-5) == pytest.approx(more, rel=1e-6)
    assert more < 0.5 * shuffled_central_epsilon(1.0, 1001, 1e-5)


@pytest.mark.slow
def test_certain_and_impossible_reports():
    """A report that one input never gives, or always: an infinite local epsilon, a finite central one."""
    for rows in ([[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]):
        channel = Matrix(np.array(rows))
        for n in (2, 1200):
            found, exact = Binary(np.array(rows), n), Datasets(np.array(rows), n, True)
            assert exact.delta(0.5) * (1.0 - 1e-6) - 1e-9 <= found.delta(0.5) <= 1.0
        assert summed_central_delta(channel, 1200, 0.5) <= 1.0
    assert Binary(np.array([[0.5, 0.5], [0.5, 0.5]]), 9).epsilon(1e-9, 0.0) == 0.0


def test_binomial_windows():
    for users, chance in ((0, 0.3), (5, 0.0), (5, 1.0), (9, 0.4), (10**6, 0.01), (10**6, 0.5)):
        law, low = binomial(users, chance)
        assert law.sum() == pytest.approx(1.0)
        places = low + np.arange(len(law))
        assert law == pytest.approx(stats.binom.pmf(places, users, chance), rel=1e-7, abs=1e-30)
        assert stats.binom.cdf(low - 1, users, chance) + stats.binom.sf(places[-1], users, chance) < 1e-15
