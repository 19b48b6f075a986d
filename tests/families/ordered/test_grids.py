"""Grids of two axes: the cells of values, estimates without bias, their errors, and the guideline."""

from __future__ import annotations

import math

import bitldp
import numpy as np
import pytest
from bitldp.ordered.grids import finest


def pairs(n: int, seed: int = 0, sizes: tuple[int, int] = (16, 40)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    first = rng.binomial(sizes[0] - 1, 0.4, n)
    return np.column_stack([first, (first * 2 + rng.integers(0, sizes[1] // 3, n)) % sizes[1]])


def test_cells_are_those_of_the_edges() -> None:
    mechanism = bitldp.HDG((17, 40), epsilon=1.0, cells=(8, 4))
    for axis, size in enumerate((17, 40)):
        for grid, cells in ((axis, 8), (2, 4)):
            values = np.zeros((size, 2), np.int64)
            values[:, axis] = np.arange(size)
            codes = mechanism._codes(values)[:, grid]
            codes = codes // 4 if grid == 2 and axis == 0 else codes % 4 if grid == 2 else codes
            bounds = mechanism._bounds(axis, cells)
            assert (codes == np.searchsorted(bounds, np.arange(size), side="right") - 1).all()
    assert mechanism.edges[1].tolist() == [0, 10, 20, 30, 40]


def test_the_exact_epsilon_is_that_of_the_worst_grid() -> None:
    """Which grid is public: of every two pairs all symbols are those of one block design."""
    for epsilon in (0.5, 2.0, 6.0):
        mechanism = bitldp.HDG((16, 40), epsilon=epsilon, cells=(8, 4))
        exact = max(each.guarantee.record for each in mechanism.mechanisms)
        assert mechanism.guarantee.record == exact <= epsilon
        experiment = mechanism.extremes()
        assert experiment is not None
        (block,) = experiment.blocks
        one, other = block.table[:, 0]
        assert one.sum() == pytest.approx(1.0)
        assert math.log((one[other > 0] / other[other > 0]).max()) == pytest.approx(exact, rel=1e-9)


def test_exact_answers_where_reports_are() -> None:
    """At a huge budget reports are the truth: ranges at edges are those of the records of their grid."""
    mechanism, x = bitldp.HDG((16, 40), epsilon=60.0, cells=(8, 4)), pairs(4000)
    reports = mechanism.randomize(x, rng=1)
    drawn = np.asarray(reports.indices)[:, 0]
    for first, second, grid in (((0, 8), (10, 30), 2), ((2, 10), (0, 40), 0), ((0, 16), (5, 25), 1)):
        own = x[drawn == grid]
        inside = (own >= [first[0], second[0]]) & (own < [first[1], second[1]])
        found = mechanism.estimate_range(reports, first, second)
        assert found.value == pytest.approx(inside.all(axis=1).mean(), abs=1e-6)
    assert mechanism.estimate_range(reports, (0, 16), (0, 40)).value == pytest.approx(1.0, abs=1e-6)
    half = mechanism.estimate_range(reports, (0, 4), (0, 5))  # half of a cell counts half
    assert half.value == pytest.approx(mechanism.estimate_range(reports, (0, 4), (0, 10)).value / 2.0)


@pytest.mark.slow
def test_intervals_cover_and_errors_are_as_stated() -> None:
    """200 runs of 3,000 pairs, 4 ranges at edges, seeds 0 to 199; stated coverage 95 %.

    Of 200 intervals 190 hold the share on average, with a deviation of 3.1: 174 at least (alpha 1e-6 each);
    the mean of the estimates is within five of its standard deviations of the share.
    """
    mechanism = bitldp.HDG((16, 40), epsilon=2.0, cells=(8, 4))
    many = pairs(1_000_000, 99)
    first = np.array([[0, 4, 2, 0], [8, 16, 10, 16]])
    second = np.array([[10, 0, 0, 5], [30, 20, 40, 25]])
    inside = (many[:, :1] >= first[0]) & (many[:, :1] < first[1])
    inside &= (many[:, 1:] >= second[0]) & (many[:, 1:] < second[1])
    truth = inside.mean(axis=0)
    values, held = [], np.zeros(4, np.int64)
    for seed in range(200):
        reports = mechanism.randomize(pairs(3000, seed), rng=seed)
        found = mechanism.estimate_range(reports, (first[0], first[1]), (second[0], second[1]))
        low, high = found.confidence_interval()
        held += (low <= truth) & (truth <= high)
        values.append(found.value)
    assert (held >= 174).all(), held
    spread = np.std(values, axis=0)
    assert (np.abs(np.mean(values, axis=0) - truth) < 5.0 * spread / math.sqrt(200)).all()
    stated = np.sqrt(mechanism.range_variance((first[0], first[1]), (second[0], second[1])) / 3000)
    assert (np.abs(spread / stated - 1.0) < 0.35).all()


def test_consistency_is_said_and_helps() -> None:
    mechanism, errors = bitldp.HDG((16, 40), epsilon=1.0, cells=(16, 8)), np.zeros(2)
    edges = [each[::2] for each in mechanism.edges]
    (a, b), (c, d) = ((each[:-1], each[1:]) for each in edges)
    for seed in range(5):
        x = pairs(5000, seed)
        reports = mechanism.randomize(x, rng=seed)
        truth = np.histogram2d(x[:, 0], x[:, 1], bins=edges)[0] / len(x)
        for row, consistent in enumerate((False, True)):
            found = mechanism.estimate_range(reports, (a[:, None], b[:, None]), (c, d), consistent=consistent)
            errors[row] += np.square(found.value - truth).sum()
    assert errors[1] < 0.7 * errors[0]
    assert found.post
    with pytest.raises(ValueError, match="post"):
        found.confidence_interval()


def test_the_guideline_is_the_least_of_its_errors() -> None:
    for epsilon in (0.5, 1.0, 2.0):
        for users in (10**4, 10**6):
            noise = 3.0 / users * math.exp(epsilon) / math.expm1(epsilon) ** 2
            line, square = finest(epsilon, users, 1 << 20)
            best = min(range(2, 129), key=lambda g: noise * g * g + (0.06 / g) ** 2)
            assert abs(square - best) <= 1
            finest_line = min(range(2, 1025), key=lambda g: 2.0 * noise * g + (0.7 / g) ** 2)
            assert abs(line - finest_line) <= square
            assert line % square == 0


def test_saved_counts_and_refusals() -> None:
    mechanism = bitldp.HDG((16, 40), epsilon=2.0, cells=(8, 4))
    total = mechanism.accumulator()
    for seed in range(2):
        total.update(mechanism.randomize(pairs(500, seed), rng=seed))
    again = type(total).from_json(total.to_json(), mechanism)
    assert again.n == 1000
    ranges: tuple[tuple[int, int], tuple[int, int]] = ((0, 8), (0, 10))
    assert again.estimate_range(*ranges).value == total.estimate_range(*ranges).value
    line, _, both = total.estimate()
    assert (line.value.shape, both.value.shape) == ((8,), (16,))
    with pytest.raises(ValueError, match="first, second: a stop"):
        total.estimate_range((8, 0), (0, 10))
    with pytest.raises(ValueError, match="x: integers must be below"):
        mechanism.randomize([[0, 40]])
    for cells in ((8, 3), (32, 4), (8, 256)):
        with pytest.raises(ValueError, match="cells: "):
            bitldp.HDG((16, 40), epsilon=1.0, cells=cells)
    with pytest.raises(TypeError, match="categories: "):
        bitldp.HDG(16, epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no unbiased decode"):
        bitldp.HDG((16, 40), epsilon=0.0).accumulator()
