"""Difference sets over finite fields, and the choice among block designs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bitldp.design.blocks import best, subset_size, variances
from bitldp.design.difference import is_prime, powers, primitive, singer, singer_shape


def overlaps(block: np.ndarray, cells: int) -> np.ndarray:
    """Return how many cells a block shares with each of its translates, the block itself first."""
    inside = np.zeros(cells)
    inside[block] = 1.0
    return np.rint(np.fft.irfft(np.abs(np.fft.rfft(inside)) ** 2, cells)).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "e", "dimension"),
    [
        (2, 1, 2),
        (2, 1, 3),
        (3, 1, 2),
        (2, 2, 2),
        (2, 2, 3),
        (11, 1, 2),
        (3, 2, 2),
        (2, 3, 3),
        (5, 1, 4),
        (3, 2, 5),
        (2, 3, 6),
        (2, 1, 17),
        (2, 4, 4),
        (5, 2, 2),
        (1009, 1, 2),
    ],
)
def test_translates_of_a_hyperplane_share_equally_many(p: int, e: int, dimension: int) -> None:
    v, b, shared = singer_shape(p**e, dimension)
    found = overlaps(singer(p, e, dimension), v)
    assert found[0] == b
    assert np.all(found[1:] == shared)
    assert shared * (v - 1) == b * (b - 1)


def test_a_polynomial_is_primitive() -> None:
    """The first ones by hand: x^4 = x + 1 over GF(2), x^2 = x + 1 over GF(3) (its square is 2x + 1)."""
    assert primitive(2, 4) == (1, 1, 0, 0)
    assert primitive(3, 2) == (1, 1)
    for p, n in ((2, 9), (3, 5), (7, 3), (101, 2)):
        c = primitive(p, n)
        state, steps = [1, *[0] * (n - 1)], 0
        start = list(state)
        while True:  # multiply by x until it is 1 again
            last = state[-1]
            state = [(before + last * term) % p for before, term in zip([0, *state[:-1]], c, strict=True)]
            steps += 1
            if state == start:
                break
        assert steps == p**n - 1


def test_prime_powers() -> None:
    assert [q for q, _, _ in powers(33)] == [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]
    assert [n for n in range(20) if is_prime(n)] == [2, 3, 5, 7, 11, 13, 17, 19]


def variance(cells: int, width: int, epsilon: float, categories: int) -> float:
    return float(variances(cells, np.array(float(width)), epsilon, categories))


@pytest.mark.parametrize("k", [2, 3, 5, 16, 100, 777])
@pytest.mark.parametrize("epsilon", [0.01, 0.25, 1.0, 3.0, 6.0, 12.0, 40.0])
def test_the_size_of_a_subset_is_the_best_of_all(k: int, epsilon: float) -> None:
    found = variance(k, subset_size(k, epsilon, k), epsilon, k)
    assert found == min(variance(k, w, epsilon, k) for w in range(1, k))


GRID = sorted({*range(129, 140), *np.geomspace(129, 2048, 24).astype(int).tolist(), 1327, 2048})


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
def test_a_design_is_within_one_percent_of_subsets(epsilon: float) -> None:
    """Of k = 129 to 2048, in at most 2 log2(k) + 4 bits; up to 128, subsets themselves take no more."""
    for k in GRID:
        blocks = best(k, epsilon)
        least = variance(k, subset_size(k, epsilon, k), epsilon, k)
        assert variance(blocks.cells, blocks.width, epsilon, k) <= 1.01 * least, (k, blocks)
        assert blocks.bits <= 2.0 * math.log2(k) + 4.0, (k, blocks)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_spaces_serve_many_categories(epsilon: float) -> None:
    blocks = best(65_536, epsilon)
    limit = 4.0 * math.exp(epsilon) / math.expm1(epsilon) ** 2  # of subset selection for ever more categories
    assert variance(blocks.cells, blocks.width, epsilon, 65_536) <= 1.01 * limit
    assert blocks.bits <= 19


def test_the_figures_of_two_spaces() -> None:
    """Of 65,536 categories at epsilon 2: q = 9 in 17 bits at .72517, q = 8 in 19 bits at .72459."""
    blocks = best(65_536, 2.0)
    assert (blocks.field, blocks.cells, blocks.bits) == ((3, 2, 5), 66_430, 17)
    assert variance(blocks.cells, blocks.width, 2.0, 65_536) == pytest.approx(0.72517, abs=5e-6)
    assert variance(*singer_shape(8, 6)[:2], 2.0, 65_536) == pytest.approx(0.72459, abs=5e-6)


def test_at_epsilon_zero_there_is_a_design_all_the_same() -> None:
    assert best(10, 0.0).bits == 4
