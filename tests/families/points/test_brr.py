"""BRR: the law in each of its settings, its losses, and estimates where m is 1."""

from __future__ import annotations

import math
import pickle

import bitldp
import numpy as np
import pytest
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
N = 1 << 20
POINTS = np.random.default_rng(11).random((24, 2)) * 10.0


@pytest.mark.parametrize(
    "mechanism",
    [
        bitldp.BRR(40, epsilon=1.0),
        bitldp.BRR(41, epsilon=1.0, m=6),
        bitldp.BRR(40, epsilon=1.0, m=1),
        bitldp.BRR(POINTS, epsilon=2.0),
        bitldp.BRR(POINTS, epsilon=2.0, regions=np.arange(24) // 8),
        bitldp.BRR(20, epsilon=1.0, utility="jaccard"),
        bitldp.BRR(1000, epsilon=2.0),
    ],
    ids=["line", "m6", "m1", "plane", "regions", "jaccard", "line-1000"],
)
def test_goodness_of_fit(mechanism):
    """Chi-squared over all reports of an input, n = 2^20, alpha = 1e-6."""
    law = mechanism.probabilities()
    for x in (0, 11, len(law) - 1):
        counts = np.bincount(mechanism.randomize(np.full(N, x), rng=51 + x), minlength=len(law))
        possible = law[x] > 0.0
        assert counts[~possible].sum() == 0
        assert oracle.p_value(counts[possible], law[x][possible]) > ALPHA


def test_windows_are_the_nearest_candidates():
    law = bitldp.BRR(10, epsilon=1.0, m=4).probabilities()
    windows = [np.flatnonzero(row > row.min()).tolist() for row in law]
    assert windows[0] == windows[1] == windows[2] == [0, 1, 2, 3]
    assert windows[5] == [3, 4, 5, 6]  # of two at the same distance the lower one
    assert windows[9] == [6, 7, 8, 9]
    points = np.array([0.0, 1.0, 5.0, 5.5, 9.0])
    law = bitldp.BRR(points, epsilon=1.0, m=2).probabilities()
    assert [np.flatnonzero(row > row.min()).tolist() for row in law] == [
        [0, 1],
        [0, 1],
        [2, 3],
        [2, 3],
        [3, 4],
    ]


def test_equal_candidates_favour_themselves():
    law = bitldp.BRR([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], epsilon=1.0, m=1).probabilities()
    assert law.argmax(axis=1).tolist() == [0, 1, 2]


def test_equidistant_points_take_the_closed_form():
    by_number = bitldp.BRR(50, epsilon=1.0)
    by_points = bitldp.BRR(np.arange(50) * 0.1 + 3.0, epsilon=1.0)
    assert by_points.m == by_number.m
    np.testing.assert_array_equal(
        by_points.randomize(np.arange(50), rng=1), by_number.randomize(np.arange(50), rng=1)
    )
    assert by_points.expected_error() == pytest.approx(0.1 * by_number.expected_error(), rel=1e-9)
    general = bitldp.BRR(50, epsilon=1.0, metric=lambda a, b: np.abs(a - b.T))
    assert general.m == by_number.m
    np.testing.assert_allclose(general.probabilities(), by_number.probabilities(), rtol=1e-12)


def test_metrics():
    manhattan = bitldp.BRR(POINTS, epsilon=1.0, metric="manhattan", m=5)
    losses = np.abs(POINTS[:, None] - POINTS).sum(axis=-1)
    assert manhattan.expected_error() == pytest.approx(np.sum(manhattan.probabilities() * losses) / 24)
    # one degree of latitude is 111.195 km on a sphere of the mean radius
    cities = bitldp.BRR([[0.0, 10.0], [1.0, 10.0]], epsilon=1e-9, metric="haversine")
    assert cities.expected_error() == pytest.approx(111.19508 / 2, rel=1e-5)
    assert bitldp.BRR([[60.0, 0.0], [60.0, 180.0]], epsilon=1e-9, metric="haversine").expected_error() == (
        pytest.approx(60 * 111.19508 / 2, rel=1e-5)
    )
    with pytest.raises(ValueError, match="latitudes"):
        bitldp.BRR([[91.0, 0.0], [0.0, 0.0]], epsilon=1.0, metric="haversine")
    with pytest.raises(ValueError, match="metric: must be one of"):
        bitldp.BRR(POINTS, epsilon=1.0, metric="taxi")
    with pytest.raises(ValueError, match="metric: must give a table"):
        bitldp.BRR(POINTS, epsilon=1.0, metric=lambda a, b: np.zeros(3))
    with pytest.raises(ValueError, match="metric: must give finite values"):
        bitldp.BRR(POINTS, epsilon=1.0, metric=lambda a, b: np.full((24, 24), np.nan))


def test_jaccard_utility():
    mechanism = bitldp.BRR(20, epsilon=1.0, utility="jaccard")
    points = np.arange(1.0, 21.0)
    products = np.outer(points, points)
    utility = products / (points[:, None] ** 2 + points**2 - products)
    assert mechanism.expected_utility() == pytest.approx(np.sum(mechanism.probabilities() * utility) / 20)
    assert mechanism.m == oracle.algorithm_2(-utility, 1.0)
    assert (
        mechanism.expected_utility() > bitldp.BRR(20, epsilon=1.0, utility="jaccard", m=1).expected_utility()
    )
    np.testing.assert_array_equal(mechanism.decode([0, 19]), [1.0, 20.0])
    with pytest.raises(ValueError, match="see expected_utility"):
        mechanism.expected_error()
    with pytest.raises(ValueError, match="see expected_error"):
        bitldp.BRR(20, epsilon=1.0).expected_utility()
    with pytest.raises(ValueError, match="utility: 'jaccard' needs"):
        bitldp.BRR([-1.0, 2.0, 3.0], epsilon=1.0, utility="jaccard")
    with pytest.raises(ValueError, match="give one of the two"):
        bitldp.BRR(5, epsilon=1.0, utility="jaccard", metric="manhattan")


def test_regions_are_kept_and_public():
    labels = np.array(["b", "a"])[(np.arange(24) < 7).astype(int)]
    mechanism = bitldp.BRR(POINTS, epsilon=1.5, regions=labels)
    reports = mechanism.randomize(np.repeat(np.arange(24), 50), rng=1)
    np.testing.assert_array_equal(labels[reports], np.repeat(labels, 50))
    assert [channel.cells for channel in mechanism.channels] == [7, 17]
    for label, m in zip("ab", mechanism.m, strict=True):
        assert m == bitldp.BRR(POINTS[labels == label], epsilon=1.5).m
    assert mechanism.guarantee.given == "given the public region"
    assert mechanism.guarantee.record == max(channel.epsilon for channel in mechanism.channels) <= 1.5
    by_hand = [bitldp.BRR(POINTS[labels == label], epsilon=1.5).expected_error() for label in "ab"]
    assert mechanism.expected_error() == pytest.approx((7 * by_hand[0] + 17 * by_hand[1]) / 24)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert bitldp.BRR(POINTS, epsilon=1.5, regions=labels, m=mechanism.m) == mechanism
    assert bitldp.BRR(POINTS, epsilon=1.5, regions=labels, m=2).m == (2, 2)
    values = mechanism.randomize(np.arange(24), rng=1, output="values")
    np.testing.assert_array_equal(values, mechanism.decode(mechanism.randomize(np.arange(24), rng=1)))
    packed = mechanism.randomize(np.arange(24), rng=1, output="packed")
    np.testing.assert_array_equal(bitldp.unpack(packed, 5, 24), mechanism.randomize(np.arange(24), rng=1))


def test_regions_are_checked():
    with pytest.raises(ValueError, match="regions: each needs at least 2 candidates"):
        bitldp.BRR(POINTS, epsilon=1.0, regions=[0] + [1] * 23)
    with pytest.raises(ValueError, match="regions: shape"):
        bitldp.BRR(POINTS, epsilon=1.0, regions=[0, 1])
    with pytest.raises(ValueError, match="regions"):
        bitldp.BRR(10, epsilon=1.0, interval=(0, 1), regions=[0] * 10)
    with pytest.raises(ValueError, match="m: must be one, or one for each of 2 regions"):
        bitldp.BRR(POINTS, epsilon=1.0, regions=np.arange(24) % 2, m=(1, 2, 3))
    with pytest.raises(ValueError, match="across regions"):
        bitldp.BRR(POINTS, epsilon=1.0, regions=np.arange(24) % 2, m=1).estimate_frequencies([0])


def test_interval_nearest():
    mechanism = bitldp.BRR(
        11, epsilon=30.0, m=1, interval=(0.0, 1.0)
    )  # a report is its own candidate but for 1e-12
    x = np.array([-5.0, 0.0, 0.04, 0.06, 0.5, 0.96, 7.0])
    np.testing.assert_array_equal(mechanism.randomize(x, rng=1), [0, 0, 0, 1, 5, 10, 10])
    values = mechanism.randomize(x, rng=1, output="values")
    np.testing.assert_allclose(values, [0, 0, 0, 0.1, 0.5, 1, 1], atol=1e-15)
    assert mechanism.randomize(x.astype(np.float32)[:, None], rng=1).shape == (7, 1)


def test_interval_dither_is_unbiased():
    """Mean of 2^18 dithered reports within 5 standard errors of the input."""
    mechanism = bitldp.BRR(5, epsilon=4.0, m=1, interval=(-1.0, 1.0), rounding="dither")
    estimate = mechanism.estimate_mean(mechanism.randomize(np.full(N // 4, 0.37), rng=1))
    assert estimate.value.shape == (1,)
    assert abs(estimate.value[0] - 0.37) < 5 * estimate.stderr[0]
    nearest = bitldp.BRR(5, epsilon=4.0, m=1, interval=(-1.0, 1.0))
    estimate = nearest.estimate_mean(nearest.randomize(np.full(N // 4, 0.37), rng=1))
    assert abs(estimate.value[0] - 0.5) < 5 * estimate.stderr[0]


def test_no_unbiased_decode_beyond_one():
    mechanism = bitldp.BRR(20, epsilon=1.0, m=2)
    law = mechanism.probabilities()
    np.testing.assert_array_equal(law[0], law[1])
    reports = mechanism.randomize([0, 1, 2])
    for attempt in (mechanism.estimate_frequencies, mechanism.estimate_mean, mechanism.variance):
        with pytest.raises(ValueError, match="identical rows of the law, so no unbiased decode exists"):
            attempt(reports)
    with pytest.raises(ValueError, match="no unbiased decode"):
        mechanism.accumulator()


def test_one_is_grr():
    x = np.random.default_rng(0).integers(0, 8, 100_000)
    brr, grr = bitldp.BRR(8, epsilon=1.5, m=1), bitldp.GRR(8, epsilon=1.5)
    np.testing.assert_array_equal(brr.randomize(x, rng=1), grr.randomize(x, rng=1))
    reports = brr.randomize(x, rng=1)
    np.testing.assert_array_equal(
        brr.estimate_frequencies(reports).value, grr.estimate_frequencies(reports).value
    )
    mean = brr.estimate_mean(reports)
    assert abs(mean.value[0] - x.mean()) < 5 * mean.stderr[0]
    assert mean.value[0] == pytest.approx(brr.estimate_frequencies(reports).value @ np.arange(8))
    p, q = grr.probabilities()[0, :2]
    letters = (np.arange(8) - q * 28) / (p - q)
    assert mean.stderr[0] == pytest.approx(letters[reports].std(ddof=1) / math.sqrt(len(x)))
    with pytest.raises(ValueError, match="points in space"):
        bitldp.BRR(POINTS, epsilon=1.0, m=1).estimate_mean([0])


def test_several_features_share_the_budget():
    mechanism = bitldp.BRR(9, epsilon=3.0, features=4)
    assert mechanism.m == bitldp.BRR(9, epsilon=0.75).m
    assert 3.0 * (1 - 1e-9) <= mechanism.guarantee.record <= 3.0
    assert mechanism.randomize(np.zeros((6, 4), np.int64)).shape == (6, 4)
    with pytest.raises(ValueError, match="x: shape"):
        mechanism.randomize(np.zeros(6, np.int64))


def test_encode_finds_the_nearest_candidate():
    mechanism = bitldp.BRR(POINTS, epsilon=1.0)
    np.testing.assert_array_equal(mechanism.encode(POINTS + 1e-9), np.arange(24))
    x = np.random.default_rng(1).random((50, 2)) * 10
    distances = np.linalg.norm(x[:, None] - POINTS, axis=-1)
    np.testing.assert_array_equal(mechanism.encode(x), distances.argmin(axis=1))
    np.testing.assert_array_equal(bitldp.BRR([0.0, 1.0, 5.0], epsilon=1.0).encode([0.4, 3.5]), [0, 2])
    with pytest.raises(ValueError, match="index 1 is not finite"):
        mechanism.encode([[0.0, 1.0], [np.nan, 0.0]])
    with pytest.raises(ValueError, match="x: needs 2 coordinates"):
        mechanism.encode([0.0, 1.0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"candidates": 1}, "candidates: must be at least 2"),
        ({"candidates": [1.0]}, "candidates: shape"),
        ({"candidates": np.zeros((2, 2, 2))}, "candidates: shape"),
        ({"candidates": [0.0, np.inf]}, "candidates: must be finite"),
        ({"candidates": ["a", "b"]}, "candidates: must be a number or an array"),
        ({"candidates": True}, "candidates"),
        ({"candidates": 5, "m": 5}, "m: must be between 1 and 4"),
        ({"candidates": 5, "m": 0}, "m: must be between 1 and 4"),
        ({"candidates": 5, "m": "good"}, "m: must be one of"),
        ({"candidates": 5, "m": 1.5}, "m: must be an integer"),
        ({"candidates": 5, "epsilon": -1.0}, "epsilon: must be zero or more"),
        ({"candidates": 5, "interval": (1.0, 0.0)}, "interval: low must be below high"),
        ({"candidates": 5, "interval": (0.0, np.inf)}, "interval: must be finite"),
        ({"candidates": 5, "interval": (-1.7e308, 1.7e308)}, "interval: high - low and the step"),
        ({"candidates": 5, "interval": (0.0, 1e-323)}, "interval: high - low and the step"),
        ({"candidates": 1000, "interval": (-8e307, 8e307)}, "candidates: the sum of the losses"),
        ({"candidates": 2**31}, "candidates: must be at most 16777216"),
        ({"candidates": 2**63}, "candidates: must be at most 16777216"),
        ({"candidates": [-1.7e308, 1.7e308]}, "candidates: must be finite, and so must their differences"),
        ({"candidates": [0.0, 1e308, 1.7e308]}, "metric: must give finite|candidates: the sum of the losses"),
        ({"candidates": 5, "features": 2**32}, "features: must be at most 4294967295"),
        ({"candidates": 5, "interval": (0.0, 1.0, 2.0)}, "interval: must be a pair"),
        ({"candidates": [1.0, 2.0], "interval": (0.0, 1.0)}, "interval: needs a number"),
        ({"candidates": 5, "rounding": "up"}, "rounding: must be one of"),
        ({"candidates": np.random.default_rng(0).random((9000, 2))}, "candidates: at most 8192"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        bitldp.BRR(**{"epsilon": 1.0, **parameters})


def test_any_table_of_losses():
    distances = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    by_table = bitldp.BRR(12, epsilon=1.0, metric=distances)
    assert by_table.m == bitldp.BRR(12, epsilon=1.0).m
    assert by_table.expected_error() == pytest.approx(bitldp.BRR(12, epsilon=1.0).expected_error())
    losses = np.random.default_rng(2).random((12, 12))  # neither symmetric nor zero on the diagonal
    mechanism = bitldp.BRR(12, epsilon=1.0, metric=losses)
    assert mechanism.m == oracle.algorithm_2(losses, 1.0)
    law = mechanism.probabilities()
    assert mechanism.expected_error() == pytest.approx(np.sum(law * losses) / 12)
    for row, loss in zip(law, losses, strict=True):
        assert set(np.flatnonzero(row > row.min())) == set(np.argsort(loss)[: mechanism.m])
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert mechanism != by_table
    with pytest.raises(ValueError, match="metric: a table must hold numbers of shape"):
        bitldp.BRR(11, epsilon=1.0, metric=losses)
    with pytest.raises(ValueError, match="metric: must give finite"):
        bitldp.BRR(12, epsilon=1.0, metric=losses * np.nan)
    with pytest.raises(ValueError, match="x: the metric is a table"):
        mechanism.encode([0.5])


def test_points_in_space_have_letters_of_their_own():
    mechanism = bitldp.BRR(POINTS, epsilon=1.0)
    values = mechanism.randomize([3, 4], rng=1, output="values")
    np.testing.assert_array_equal(values, POINTS[mechanism.randomize([3, 4], rng=1)])
    with pytest.raises(ValueError, match="out: not supported for points in space"):
        mechanism.randomize([3, 4], output="values", out=np.zeros((2, 2)))
    with pytest.raises(TypeError, match="regions: must be integers or strings"):
        bitldp.BRR(POINTS, epsilon=1.0, regions=np.linspace(0.0, 1.0, 24))


def test_encode_by_utility():
    mechanism = bitldp.BRR([1.0, 4.0, 16.0], epsilon=1.0, utility="jaccard")
    np.testing.assert_array_equal(mechanism.encode([1.9, 2.1, 9.0]), [0, 1, 2])  # by ratio, not by difference


def fano(m: int = 3, epsilon: float = 1.0) -> bitldp.BRR:
    """Return BRR on the seven points of the Fano plane, near being on the line of a point."""
    cells = np.arange(7)
    near = np.isin((cells - cells[:, None]) % 7, [0, 1, 3])
    return bitldp.BRR(7, epsilon=epsilon, m=m, metric=1.0 - near)


def test_what_can_be_inverted_is_estimated():
    """Rows of a law with m = 3 that are independent: within 5 standard errors, n = 200,000."""
    mechanism = fano()
    law = mechanism.probabilities()
    assert np.linalg.matrix_rank(law) == 7
    x = np.random.default_rng(1).choice(7, 200_000, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05, 0.0])
    reports = mechanism.randomize(x, rng=1)
    estimate = mechanism.estimate_frequencies(reports)
    truth = np.bincount(x, minlength=7) / len(x)
    assert np.all(np.abs(estimate.value - truth) < 5 * estimate.stderr)
    counts = np.bincount(reports, minlength=7) / len(reports)
    np.testing.assert_allclose(estimate.value, np.linalg.solve(law.T, counts), atol=1e-12)
    # The same law as blocks of a difference set, whose variances have a closed form.
    p = float(law[0].max() * 3)
    q = p / 3 + (1 - p) / 2
    other = q * (1 - q) / (p - q) ** 2
    np.testing.assert_allclose(mechanism.variance([0])[0], [p * (1 - p) / (p - q) ** 2] + [other] * 6)
    assert mechanism.worst_variance() == pytest.approx(max(other, mechanism.variance([0])[0, 0]))
    assert mechanism.mean_variance() == pytest.approx(mechanism.variance([0]).mean())
    mean = mechanism.estimate_mean(reports)
    assert abs(mean.value[0] - x.mean()) < 5 * mean.stderr[0]
    letters = mechanism.unbias(np.arange(7))
    np.testing.assert_allclose(law @ letters, np.arange(7.0), atol=1e-9)
    squares = np.square(letters - np.arange(7.0)[:, None])
    np.testing.assert_allclose(mechanism.letter_variance(np.arange(7)), (law * squares).sum(axis=1))
    merged = mechanism.accumulator()
    merged.update(reports[:100])
    assert merged.n == 100
    assert "standard_error_of_a_mean" in mechanism._facts(10)["errors"]


def test_a_law_without_full_rank_is_refused():
    """Four windows in a circle: different, and yet dependent."""
    cells = np.arange(4)
    near = np.isin((cells - cells[:, None]) % 4, [0, 1])
    mechanism = bitldp.BRR(4, epsilon=1.0, m=2, metric=1.0 - near)
    assert np.linalg.matrix_rank(mechanism.probabilities()) == 3
    for attempt in (mechanism.estimate_frequencies, mechanism.variance):
        with pytest.raises(ValueError, match="no unbiased decode exists; the rows of the law are not indep"):
            attempt([0, 1])
    with pytest.raises(ValueError, match="no unbiased decode exists"):
        fano(epsilon=0.0).estimate_frequencies([0, 1])
