"""Joint windows: the law by enumeration, variances against goals, the search, estimates, refusals."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from bitldp import JointWindow, SampledSigns
from bitldp.accounting import account
from bitldp.amplification import shuffled_central_epsilon, shuffled_histogram_central_epsilon
from bitldp.audit import audit
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
ONE = 1 << 64

# Least mean variance of the law without a grid, and a grid that is fine enough for it: k, levels, reach.
GOALS = {
    (2, 4): (0.3000, (2, 243, 62)),
    (2, 8): (0.02245, (2, 253, 21)),
    (2, 10): (0.0074, (2, 248, 12)),
    (3, 4): (0.6077, (3, 253, 99)),
    (3, 8): (0.05558, (3, 253, 36)),
    (3, 12): (0.00859, (3, 242, 14)),
    (6, 4): (1.549, (3, 253, 99)),
    (6, 8): (0.2683, (6, 251, 86)),
    (6, 12): (0.0610, (6, 255, 44)),
    (16, 4): (4.685, (3, 253, 99)),
    (16, 8): (1.271, (6, 251, 86)),
    (16, 12): (0.567, (10, 249, 87)),
    (100, 4): (31.03, (3, 253, 99)),
    (100, 8): (9.69, (6, 251, 86)),
    (100, 12): (5.29, (10, 249, 87)),
}


def chances(mechanism: JointWindow) -> np.ndarray:
    """Return P(report | record) of all reports and all records of points, from the integers."""
    cells, width = mechanism.alphabet, 2 * mechanism.reach + 1
    high, k = mechanism.channel.high, mechanism.k
    records = np.array(list(itertools.product(range(mechanism.levels), repeat=k)))
    reports = np.array(list(itertools.product(range(cells), repeat=k)))
    apart = reports[None] - records[:, None]
    near = ((apart >= 0) & (apart < width)).all(axis=2)
    return high / ONE * near / width**k + (ONE - high) / ONE / cells**k


@pytest.mark.parametrize(("features", "epsilon"), GOALS)
def test_variances_of_the_law_without_a_grid_are_reached(features, epsilon):
    """Within 1 % on a fine grid, within 2 % (and the rounding of the goal) in few bits."""
    goal, (k, levels, reach) = GOALS[features, epsilon]
    fine = JointWindow(features, epsilon=float(epsilon), k=k, levels=levels, reach=reach)
    few = JointWindow(features, epsilon=float(epsilon))
    assert fine.mean_variance() <= 1.01 * goal
    assert few.mean_variance() <= 1.02 * min(1.0005 * goal, fine.mean_variance())
    assert few.report_bits < fine.report_bits
    assert few.guarantee.holds
    assert math.isclose(few.guarantee.record, epsilon, rel_tol=1e-9)


@pytest.mark.parametrize(("features", "epsilon", "bits"), [(2, 8.0, 12.5), (3, 8.0, 19.1), (6, 8.0, 38.0)])
def test_reports_are_short(features, epsilon, bits):
    assert JointWindow(features, epsilon=epsilon).report_bits <= bits


@pytest.mark.parametrize(("features", "epsilon"), [(2, 4.0), (3, 8.0), (6, 8.0), (16, 12.0)])
def test_the_worst_variance_is_made_least_where_that_counts(features, epsilon):
    mean, worst = (JointWindow(features, epsilon=epsilon, criterion=each) for each in ("mean", "worst"))
    assert worst.worst_variance() < mean.worst_variance()
    assert mean.mean_variance() < worst.mean_variance()
    x = np.linspace(-1.0, 1.0, 20_001)
    for each in (mean, worst):
        assert math.isclose(each.variance(x).max(), each.worst_variance(), rel_tol=1e-6)
        assert math.isclose(np.trapezoid(each.variance(x), x) / 2.0, each.mean_variance(), rel_tol=1e-4)


@pytest.mark.parametrize("shape", [(1, 4, 2), (2, 5, 1), (2, 2, 0), (3, 3, 1)])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 9.0])
def test_epsilon_and_letters_by_enumeration(shape, epsilon):
    k, levels, reach = shape
    mechanism = JointWindow(k, epsilon=epsilon, k=k, levels=levels, reach=reach, interval=(2.0, 5.0))
    law = chances(mechanism)
    exact = np.log((law.max(axis=0) / law.min(axis=0)).max())
    assert exact * (1 - 1e-12) <= mechanism.guarantee.record <= epsilon
    assert math.isclose(mechanism.guarantee.record, epsilon, rel_tol=1e-9)
    codes = np.array(list(itertools.product(range(mechanism.alphabet), repeat=k)))
    records = np.array(list(itertools.product(mechanism.points, repeat=k)))
    letters = mechanism.decode(codes)
    np.testing.assert_allclose(law @ letters, records, atol=1e-11)
    second = law @ np.square(letters - 3.5)
    np.testing.assert_allclose(second - np.square(records - 3.5), mechanism.variance(records), rtol=1e-9)
    numbers = law.reshape(levels, -1, *[mechanism.alphabet] * k).mean(axis=1)
    numbers = numbers.sum(axis=tuple(range(2, k + 1)))
    np.testing.assert_allclose(mechanism.probabilities(), numbers, atol=1e-15)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_signs_are_windows_of_two_points(k):
    signs = SampledSigns(7, epsilon=3.0, k=k)
    joint = JointWindow(7, epsilon=3.0, k=k, levels=2, reach=0)
    assert math.isclose(signs.worst_variance(), joint.worst_variance(), rel_tol=1e-9)
    assert joint.report_bits == signs.report_bits


@pytest.mark.parametrize("criterion", ["mean", "worst"])
@pytest.mark.parametrize(("features", "epsilon"), [(1, 1.0), (2, 5.0), (4, 3.0), (5, 0.3)])
def test_the_search_finds_the_fewest_bits(features, epsilon, criterion):
    """Against every grid of up to 24 cells, built one by one, where the best is as good as any."""
    best = JointWindow(features, epsilon=epsilon, criterion=criterion)
    of = JointWindow.mean_variance if criterion == "mean" else JointWindow.worst_variance
    for k, levels in itertools.product(range(1, features + 1), range(2, 25, 3)):
        for reach in range((24 - levels) // 2 + 1):
            other = JointWindow(
                features, epsilon=epsilon, criterion=criterion, k=k, levels=levels, reach=reach
            )
            assert of(best) <= 1.02 * of(other) * (1 + 1e-9)
            if other.report_bits < best.report_bits:  # it is more than 2 % above the least
                assert of(other) > of(best) * (1 - 1e-9)


def test_what_is_given_is_held():
    held = JointWindow(5, epsilon=6.0, k=2, reach=4)
    assert (held.k, held.reach) == (2, 4)
    assert JointWindow(5, epsilon=6.0, levels=9).levels == 9
    again = JointWindow(5, epsilon=6.0, k=2, levels=held.levels, reach=4)
    assert again == held == pickle.loads(pickle.dumps(held))
    assert held.mean_variance() <= JointWindow(5, epsilon=6.0, k=2, levels=9, reach=4).mean_variance()


@pytest.mark.statistical
def test_goodness_of_fit():
    """Chi-squared of whole reports and of drawn coordinates, n = 2^17, alpha = 1e-6."""
    n = 1 << 17
    mechanism = JointWindow(2, epsilon=3.0, levels=4, reach=1)
    codes = mechanism.randomize(np.tile(mechanism.points[[0, 2]], (n, 1)), rng=8).astype(np.int64)
    found = np.bincount(codes @ [mechanism.alphabet, 1], minlength=mechanism.alphabet**2)
    assert oracle.p_value(found, chances(mechanism)[2]) > ALPHA
    drawn = JointWindow(5, epsilon=3.0, k=2, levels=4, reach=1)
    indices, codes = drawn.randomize(np.tile(drawn.points[[0, 2, 0, 2, 0]], (n, 1)), rng=9)
    assert oracle.p_value(np.bincount(indices.ravel(), minlength=5), [0.2] * 5) > ALPHA
    both = (indices % 2 == 0).all(axis=1)  # two coordinates at the lowest point
    found = np.bincount(codes[both].astype(np.int64) @ [drawn.alphabet, 1], minlength=drawn.alphabet**2)
    assert oracle.p_value(found, chances(drawn)[0]) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "epsilon", "dtype"),
    [(2, 8.0, np.float64), (3, 4.0, np.float32), (16, 8.0, np.float32)],
)
def test_mean_and_variance(features, epsilon, dtype):
    """Within 5 standard errors, n = 2^20; a fourth moment bounds that of the variance."""
    mechanism, n = JointWindow(features, epsilon=epsilon, interval=(-1.0, 3.0)), 1 << 20
    records = np.random.default_rng(11).uniform(-1.0, 3.0, (n, features)).astype(dtype)
    reports = mechanism.randomize(records, rng=21)
    estimate = mechanism.estimate_mean(reports)
    assert np.all(np.abs(estimate.value - records.mean(axis=0)) < 5 * estimate.stderr)
    errors = np.square(mechanism.decode(reports) - records)
    said = mechanism.variance(records)
    assert np.all(
        np.abs(errors.mean(axis=0) - said.mean(axis=0)) < 5 * errors.std(axis=0) / math.sqrt(n) + 1e-9
    )
    share = math.sqrt(np.square(said - said.mean()).mean() / n) + 5 * errors.std() / math.sqrt(errors.size)
    assert abs(errors.mean() - mechanism.mean_variance()) < share + 0.001 * said.mean()


@pytest.mark.statistical
@pytest.mark.parametrize(("features", "k"), [(3, 3), (5, 3)])
def test_products(features, k):
    """Of numbers that depend on each other, within 5 standard errors; n = 2^16. These are as the sample's."""
    mechanism, n = JointWindow(features, epsilon=6.0, k=k, interval=(0.0, 4.0)), 1 << 16
    rng = np.random.default_rng(7)
    records = np.clip(rng.uniform(1.0, 4.0, (n, 1)) + rng.uniform(-1.0, 1.0, (n, features)), 0.0, 4.0)
    found = mechanism.estimate_products(mechanism.randomize(records, rng=8))
    truth = (records - 2.0).T @ (records - 2.0) / n
    apart = ~np.eye(features, dtype=bool)
    assert np.isnan(found.value[~apart]).all()
    assert (np.abs(found.value - truth)[apart] < 5 * found.stderr[apart]).all()
    assert (found.value[apart] > 3 * found.stderr[apart]).all()
    repeated = [
        mechanism.estimate_products(mechanism.randomize(records[:4_000], rng=seed)) for seed in range(60)
    ]
    spread = np.std([each.value[0, 1] for each in repeated])
    assert 0.7 < spread / repeated[0].stderr[0, 1] < 1.3


def test_products_need_two_numbers():
    with pytest.raises(ValueError, match=r"^k: products"):
        JointWindow(4, epsilon=1.0, k=1).estimate_products(np.zeros((2, 4), np.uint8))
    with pytest.raises(ValueError, match=r"^reports: at least two"):
        JointWindow(2, epsilon=5.0).estimate_products(np.zeros((1, 2), np.uint8))


@pytest.mark.statistical
@pytest.mark.parametrize("n", [12, 60])
def test_intervals_cover(n):
    """Of 200 estimates of 3 means, 95 % or nearly: 30 misses, and 3 standard deviations (of 18) more."""
    mechanism = JointWindow(3, epsilon=4.0)
    rng = np.random.default_rng(5)
    missed = 0
    for seed in range(200):
        x = rng.uniform(-1.0, 0.2, (n, 3))
        low, high = mechanism.estimate_mean(mechanism.randomize(x, rng=seed)).confidence_interval(0.95)
        missed += int(((low > x.mean(axis=0)) | (high < x.mean(axis=0))).sum())
    assert missed <= 30 + 18


@pytest.mark.parametrize(
    "mechanism",
    [
        JointWindow(2, epsilon=1.0, levels=3, reach=3),  # windows of all records have cells in common
        JointWindow(3, epsilon=4.0),
        JointWindow(6, epsilon=3.0, k=2),
        JointWindow(1, epsilon=2.0),
    ],
    ids=["wide", "3", "drawn", "1"],
)
def test_audits_know_the_law(mechanism):
    """Where a report lies is as likely as the law says: n = 40,000, 5 standard errors."""
    law, n = mechanism.extremes(), 40_000
    (block,) = law.blocks
    np.testing.assert_allclose(block.table.sum(axis=2), 1.0, rtol=1e-12)
    seen = block.table[0, 0] > 0
    losses = np.log(block.table[0, 0, seen] / block.table[1, 0, seen])
    assert math.isclose(losses.max(), mechanism.guarantee.record, rel_tol=1e-9)
    for one, row in zip(law.inputs, block.table[:, 0], strict=True):
        x = np.repeat(np.asarray(one)[None], n, axis=0)
        (symbols,) = law.split(mechanism.randomize(x, rng=3))
        found = np.bincount(symbols[:, 0], minlength=4) / n
        assert (np.abs(found - row) <= 5 * np.sqrt(row * (1 - row) / n)).all()


def test_audits_of_given_pairs():
    mechanism = JointWindow(2, epsilon=4.0, levels=5, reach=1)
    p = mechanism.points
    law = mechanism.extremes((p[[0, 1]], p[[1, 1]])).blocks[0].table[:, 0]
    whole = chances(mechanism)[[1, 6]]
    near = whole > whole.min() * 1.5
    each = [near[0] & ~near[1], near[1] & ~near[0], near.all(axis=0), ~near.any(axis=0)]
    np.testing.assert_allclose(law, [[row[cells].sum() for cells in each] for row in whole], rtol=1e-12)
    assert mechanism.extremes(([0.3, 0.0], [0.0, 0.0])) is None  # between the points
    drawn = JointWindow(3, epsilon=4.0, k=2, levels=5, reach=1)
    assert drawn.extremes((p[[0, 1, 1]], p[[1, 1, 1]])) is None  # a matter of what was drawn
    assert drawn.extremes((0.0, 0.5)) is not None
    assert audit(mechanism, n=20_000, rng=1, pair=(p[[0, 0]], p[[4, 0]])).passed


@pytest.mark.slow
def test_a_composition_and_a_shuffle_know_the_law():
    """Wide windows have cells in common, which costs less than the guarantee says."""
    pytest.importorskip("dp_accounting")
    wide = JointWindow(2, epsilon=1.0, levels=3, reach=3)
    apart = JointWindow(2, epsilon=1.0, levels=9, reach=2)
    known, other, plain = (
        account([(each, 20)], delta=1e-6, method="pld").epsilon for each in (wide, apart, apart.guarantee)
    )
    assert known < other <= plain * (1 + 1e-9)
    bound = shuffled_histogram_central_epsilon(apart, 10_000, delta=1e-6)
    assert bound < shuffled_central_epsilon(1.0, 10_000, delta=1e-6)


def test_at_epsilon_zero_nothing_is_told():
    mechanism = JointWindow(6, epsilon=0.0, k=3)
    assert mechanism.channel.mute
    assert mechanism.guarantee.record == 0.0
    one, other = (mechanism.randomize(np.full((50, 6), x), rng=1) for x in (-1.0, 1.0))
    np.testing.assert_array_equal(one.codes, other.codes)
    for call in (mechanism.decode, mechanism.estimate_mean):
        with pytest.raises(ValueError, match="epsilon 0"):
            call(one)
    with pytest.raises(ValueError, match="epsilon 0"):
        mechanism.worst_variance()


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"k": 0}, "k"),
        ({"k": 6}, "k"),
        ({"k": 2.5}, "k"),
        ({"features": 300, "k": 257}, "k"),
        ({"levels": 1}, "levels"),
        ({"levels": 65_537}, "levels"),
        ({"reach": -1}, "reach"),
        ({"levels": 65_000, "reach": 269}, "reach"),
        ({"criterion": "least"}, "criterion"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"features": 0}, "features"),
        ({"interval": (1e17, 1e17 + 64), "levels": 9, "reach": 1}, "interval"),
    ],
)
def test_refusals(parameters, name):
    with pytest.raises((ValueError, TypeError), match=f"^{name}"):
        JointWindow(**{"features": 5, "epsilon": 1.0, **parameters})


def test_refused_records():
    mechanism = JointWindow(5, epsilon=2.0, k=2)
    hidden = np.zeros((4, 5))
    hidden[2, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):  # whether it is drawn or not
        mechanism.randomize(hidden, rng=1)
    with pytest.raises(ValueError, match=r"^out"):
        mechanism.randomize(np.zeros((4, 5)), out=np.zeros((4, 5), np.uint8))
    with pytest.raises(ValueError, match=r"^x"):
        JointWindow(5, epsilon=9.0, clip=False).randomize(np.full((1, 5), 1.5))
    with pytest.raises(ValueError, match=r"^probabilities"):
        JointWindow(1, epsilon=9.0, levels=10_000, reach=9).probabilities()
