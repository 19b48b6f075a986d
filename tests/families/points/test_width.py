"""BRR's m: the closed form, Algorithm 2 and the best, and what they cost."""

from __future__ import annotations

import bitldp
import numpy as np
import pytest
from bitldp.points import width
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracle

EPSILONS = [0.01, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0]
POINTS = np.random.default_rng(11).random((24, 2)) * 10.0


def line_losses(count):
    return np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(np.float64)


@pytest.mark.statistical
def test_closed_form_is_algorithm_2():
    """N = 2 to 400, ten epsilons. Candidates k and N - 1 - k have the same sorted losses."""
    for count in range(2, 401):
        rows = np.sort(line_losses(count)[: (count + 1) // 2], axis=1)
        for epsilon in EPSILONS:
            assert width.equidistant_width(count, epsilon) == width.paper_width(rows, epsilon), (
                count,
                epsilon,
            )


def test_algorithm_2_is_that_of_the_paper():
    distances = np.linalg.norm(POINTS[:, None] - POINTS, axis=-1)
    for losses in (line_losses(17), distances, distances**2):
        for epsilon in EPSILONS:
            assert width.paper_width(np.sort(losses, axis=1), epsilon) == oracle.algorithm_2(losses, epsilon)
    for epsilon in EPSILONS:
        assert bitldp.BRR(POINTS, epsilon=epsilon).m == oracle.algorithm_2(distances, epsilon)


def test_width_at_extreme_budgets():
    for count in (2, 3, 100, 101, 60_000):
        assert width.equidistant_width(count, 1e-12) in (count // 2, (count + 1) // 2, (count - 1) // 2)
        assert width.equidistant_width(count, 1e5) == 1
        assert width.best_width(width.equidistant_column_sums(count), 1e5) == 1


def test_column_sums():
    for count in range(2, 60):
        expected = np.sort(line_losses(count), axis=1).sum(axis=0)
        np.testing.assert_array_equal(width.equidistant_column_sums(count), expected)


@pytest.mark.parametrize(
    ("epsilon", "best", "paper"), [(0.5, 187, 175), (1, 162, 151), (2, 117, 107), (3, 81, 73)]
)
def test_best_m_of_400(epsilon, best, paper):
    assert bitldp.BRR(400, epsilon=epsilon).m == paper
    assert bitldp.BRR(400, epsilon=epsilon, m="best").m == best


@pytest.mark.parametrize("candidates", [13, 14, POINTS], ids=["odd", "even", "plane"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_best_m_is_the_least_of_all(candidates, epsilon):
    points = np.arange(candidates)[:, None] if isinstance(candidates, int) else candidates
    losses = np.linalg.norm(points[:, None] - points, axis=-1)
    errors = {}
    for m in range(1, len(points)):
        mechanism = bitldp.BRR(candidates, epsilon=epsilon, m=m)
        law = mechanism.probabilities()
        np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=1e-12)
        errors[m] = float(np.sum(law * losses) / len(points))
        assert mechanism.expected_error() == pytest.approx(errors[m], rel=1e-12)
    best = bitldp.BRR(candidates, epsilon=epsilon, m="best")
    assert errors[best.m] == pytest.approx(min(errors.values()), rel=1e-12)
    assert best.expected_error() <= bitldp.BRR(candidates, epsilon=epsilon).expected_error()


@given(count=st.integers(2, 3000), epsilon=st.floats(0.01, 10.0))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_brr_is_never_worse_than_grr(count, epsilon):
    """Theorem 4 of the paper, and best m at least as good as its m."""
    grr, paper, best = (
        bitldp.BRR(count, epsilon=epsilon, m=m).expected_error() for m in (1, "paper", "best")
    )
    assert best <= paper * (1 + 1e-12)
    assert paper <= grr * (1 + 1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("m", [3, 5, "paper"])
def test_ties_do_not_depend_on_the_last_bits(metric, m):
    """A grid of spacing 0.1, whose distances are rounded, has the windows of the grid of integers."""
    whole = np.stack(np.divmod(np.arange(100), 10), axis=1)
    exact = np.abs(whole[:, None] - whole)
    exact = exact.sum(axis=-1) if metric == "manhattan" else np.square(exact).sum(axis=-1)
    order = np.argsort(exact, axis=1, kind="stable")
    for points in (whole, whole * 0.1, whole * 0.1 + 100.0):
        mechanism = bitldp.BRR(points, epsilon=2.0, m=m, metric=metric)
        law = mechanism.probabilities()
        for row, first in zip(law, order[:, : mechanism.m], strict=True):
            assert np.flatnonzero(row > row.min()).tolist() == sorted(first)
