"""The cross-polytope: its exact law, its letters, what it costs, and the goals that it was built for."""

from __future__ import annotations

import itertools
import math
import warnings

import bitldp
import numpy as np
import pytest
from bitldp import CrossPolytope, RotatedReports
from bitldp._core import Rotation, Select
from bitldp.accounting import account, renyi
from bitldp.letters.polytope import best_top, mean_length, tops
from bitldp.release.draws import public_key
from bitldp.release.rotated import signed_top

GOALS = {  # sum of the variances of a unit vector at epsilon 1, 2, 4 and 8; PrivUnit's are 0.1 to 6 % less
    128: (809.0, 206.6, 55.5, 17.5),
    768: (4860.0, 1241.0, 334.0, 103.0),
}


def unit(d: int, seed: int = 1) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=d)
    return x / np.linalg.norm(x)


def spikes(d: int, *heights: float) -> np.ndarray:
    x = np.zeros(d)
    x[: len(heights)] = heights
    return x


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.3, 1.0, 4.0, 12.0, 30.0])
@pytest.mark.parametrize("features", [3, 40, 700])
def test_epsilon_is_the_log_ratio_of_the_two_weights(features, epsilon):
    mechanism = CrossPolytope(features, epsilon=epsilon, reports=1)
    weights = mechanism.channel.weights().tolist()
    exact = math.log1p((max(weights) - min(weights)) / min(weights))
    assert len(weights) == 2 * mechanism.codec.dimensions == 1 << mechanism._report_parts[1][1]
    assert weights == sorted(weights)
    assert len(set(weights)) == (2 if epsilon else 1)
    assert exact * (1 - 1e-12) <= mechanism.guarantee.record <= epsilon
    assert mechanism.guarantee.record >= epsilon * (1 - 1e-9)
    assert mechanism.guarantee.holds


def law(channel: Select, y: np.ndarray) -> np.ndarray:
    """P(code | y) by the definition: sort the 2 D values, share the weights of equal ones."""
    values = np.stack([-y, y], axis=1).ravel()  # by code: 2 j is -y_j
    weights = channel.weights() / float(channel.total)
    ordered = np.sort(values)
    found = np.empty(len(values))
    for code, value in enumerate(values):
        equal = np.flatnonzero(ordered == value)
        found[code] = weights[equal].mean()
    return found


@pytest.mark.slow
def test_the_selection_follows_the_law_of_signed_ranks():
    """300,000 draws of six vectors with ties and zeros; chi-square of 7 degrees, alpha = 1e-7: 45.1."""
    channel = Select(np.array([3, 3, 2], np.uint32), np.array([1, 3, 9], np.uint64), signed=True)
    for y in ([1, 2, 3, 4], [-4, 1, -2, 3], [1, -1, 1, 2], [0, 1, 0, -2], [0, 0, 0, 0], [2, 2, -2, 2]):
        draws = channel.randomize(
            np.tile(np.array(y, float), (300_000, 1)), bytes(32), "codes", None, None, 0
        )
        expected = law(channel, np.array(y)) * 300_000
        assert (np.square(np.bincount(draws, minlength=8) - expected) / expected).sum() < 45.1, y


def test_no_two_vectors_are_further_apart_than_epsilon():
    """All laws of vectors with entries of -2 to 2, D = 4: short and long ones, ties and zeros among them."""
    channel = signed_top(4, 2, 1.5)
    rows = np.array(
        [law(channel, np.array(y, dtype=float)) for y in itertools.product(range(-2, 3), repeat=4)]
    )
    assert rows.min() > 0.0
    worst = float(np.log(rows.max(axis=0) / rows.min(axis=0)).max())
    assert worst == pytest.approx(channel.epsilon, rel=1e-12)
    assert channel.epsilon <= 1.5


def test_norms_do_not_leak():
    """Records of norm 0 and R have laws of the same weights in other orders, under each of 50 rotations."""
    mechanism = CrossPolytope(3, epsilon=2.0, rotation="haar", radius=5.0)
    numbers = np.arange(50, dtype=np.uint32)
    laws = []
    for x in (np.zeros(3), spikes(3, 5.0), np.array([1.0, -2.0, 0.5]), np.full(3, 100.0)):
        rotated = mechanism.codec.rotate(np.tile(x, (50, 1)), numbers)
        laws.append(np.array([law(mechanism.channel, y) for y in rotated]))
    for rows in laws:
        assert np.allclose(np.sort(rows, axis=1), np.sort(laws[0], axis=1), rtol=1e-12)
    ratios = np.log(np.max(laws, axis=0) / np.min(laws, axis=0))
    assert ratios.max() == pytest.approx(mechanism.guarantee.record, rel=1e-12)


def test_the_means_of_the_largest_coordinates():
    """The values of the specification, a direct sum of order statistics, and 200,000 directions (5 sigma)."""
    for dimensions, k, m, spread in ((128, 17, 0.133318, 55.263), (1024, 133, 0.0473347, 445.317)):
        assert best_top(dimensions, 4.0) == k
        mean = CrossPolytope(dimensions - 1, epsilon=4.0)._moments[0]
        assert mean == pytest.approx(m, rel=4e-6)
        assert 1.0 / mean**2 - 1.0 == pytest.approx(spread, rel=2e-5)
    directions = np.abs(np.random.default_rng(1).normal(size=(200_000, 6)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    ordered = -np.sort(-directions, axis=1)
    for k in range(1, 7):
        sums, squares = ordered[:, :k].sum(axis=1), np.square(ordered[:, :k]).sum(axis=1)
        for found, said in ((sums, tops(6, k).sum), (squares, tops(6, k).squares)):
            assert abs(found.mean() - said) <= 5.0 * found.std() / math.sqrt(200_000) + 1e-12
    for dimensions in (2, 255, 256, 257, 5000):
        nearly = math.sqrt(dimensions - 0.5 + 1.0 / (8.0 * dimensions))  # of the second order
        assert mean_length(dimensions) == pytest.approx(nearly, rel=0.2 / dimensions**2)


@pytest.mark.parametrize("features", GOALS)
@pytest.mark.parametrize("place", range(4))
def test_the_goals_are_met_by_computation(features, place):
    mechanism = CrossPolytope(features, epsilon=float(1 << place))
    goal = GOALS[features][place]
    assert mechanism.total_variance() == pytest.approx(goal, rel=0.01)
    x = unit(features)
    assert mechanism.variance(x).sum() == pytest.approx(mechanism.total_variance(), rel=1e-9)


def test_a_hundred_thousand_features_take_18_bits():
    mechanism = CrossPolytope(100_000, epsilon=4.0)
    assert mechanism.total_variance() == pytest.approx(43_532, rel=0.001)
    assert mechanism._report_parts == ((1, 32), (1, 18))
    x = np.zeros((2, 100_000), np.float32)
    assert len(mechanism.randomize(x, first=5, output="packed")) == 5  # 36 bits


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
@pytest.mark.parametrize("kind", ["random", "one spike", "two spikes", "short", "zero"])
def test_letters_are_right_on_average_and_spread_as_said(kind, epsilon):
    """At d = 128, n = 20,000: the error along the record, and the sum of squares, within 5 standard errors.

    alpha = 6e-7 for each of 2 x 15 numbers; what the passes leave is below them (the next test).
    """
    d, n = 128, 20_000
    x = {
        "random": unit(d),
        "one spike": spikes(d, 1.0),
        "two spikes": spikes(d, 0.5**0.5, -(0.5**0.5)),
        "short": 0.3 * unit(d, 2),
        "zero": np.zeros(d),
    }[kind]
    mechanism = CrossPolytope(d, epsilon=epsilon)
    letters = mechanism.decode(mechanism.randomize(np.tile(x, (n, 1)), rng=int(epsilon)))
    along = unit(d, 3) if kind == "zero" else x / np.linalg.norm(x)
    error = (letters - x) @ along
    assert abs(error.mean()) < 5.0 * error.std() / math.sqrt(n) + 1e-12
    squares = np.square(letters - x).sum(axis=1)
    said = mechanism.total_variance(float(np.linalg.norm(x)))
    assert abs(squares.mean() - said) < 5.0 * squares.std() / math.sqrt(n) + 1e-12 * said
    assert squares.mean() == pytest.approx(said, rel=0.02)
    assert mechanism.variance(x).sum() == pytest.approx(said, rel=1e-9)


def shortfall(features: int, k: int, x: np.ndarray, n: int) -> tuple[float, float]:
    """Return the mean sum of the k largest coordinates over that of uniform rotations, and its error."""
    rotation = Rotation(features, 1.0, "hadamard", public_key(0))
    said, found = tops(rotation.dimensions, k).sum, []
    for start in range(0, n, 2000):
        numbers = np.arange(start, min(n, start + 2000), dtype=np.uint32)
        y = np.abs(rotation.rotate(np.tile(x, (len(numbers), 1)), numbers))
        largest = np.partition(y, rotation.dimensions - k, axis=1)[:, rotation.dimensions - k :]
        found.append(largest.sum(axis=1) / np.linalg.norm(y, axis=1) / said)
    means = np.concatenate(found)
    return float(means.mean()), float(means.std() / math.sqrt(n))


@pytest.mark.slow
@pytest.mark.parametrize("features", [10, 31, 63, 127, 255, 768])
@pytest.mark.parametrize("heights", [(1.0,), (0.5**0.5, 0.5**0.5), (0.8, 0.6), (0.5,)])
def test_what_hadamard_passes_leave_is_a_thousandth(features, heights):
    """Over 20,000 rotations, without noise: within 0.1 % and 5 standard errors of the uniform mean.

    With three passes in 32 dimensions, two spikes would be off by 3 to 6 %.
    """
    k = best_top((features + 1) if features in (31, 63, 127, 255) else 32 if features == 10 else 1024, 6.0)
    found, error = shortfall(features, k, spikes(features, *heights), 20_000)
    assert abs(found - 1.0) < 0.001 + 5.0 * error
    assert error < 0.002


@pytest.mark.parametrize("kind", ["hadamard", "haar"])
def test_streams_do_not_depend_on_threads_and_batches_concatenate(kind):
    mechanism = CrossPolytope(30, epsilon=3.0, rotation=kind)
    n = 5 * mechanism.channel.chunk
    x = np.random.default_rng(1).normal(0.0, 0.2, (n, 30))
    whole = mechanism.randomize(x, rng=4, threads=1)
    again = mechanism.randomize(x, rng=4, threads=3)
    halves = [
        mechanism.randomize(x[: n // 5], rng=4),
        mechanism.randomize(x[n // 5 :], rng=4, first_chunk=1),
    ]
    for place in range(2):
        assert (whole[place] == again[place]).all()
        assert (np.concatenate([half[place] for half in halves]) == whole[place]).all()
    sums = [mechanism.codec.sums(*(np.uint32(part) for part in whole), 1.0, threads) for threads in (1, 2, 3)]
    assert all((one == other).all() for pair in sums for one, other in zip(pair, sums[0], strict=True))


def test_rotations_are_public_and_no_part_of_the_key():
    mechanism = CrossPolytope(20, epsilon=3.0, public_seed=9)
    x = np.random.default_rng(1).normal(0.0, 0.2, (300, 20))
    codes = mechanism.randomize(x, first=(1 << 32) - 100, rng=3)
    assert codes.shape == (300,)
    pair = mechanism.numbered(codes, (1 << 32) - 100)
    assert pair.rotations[[0, 99, 100, 299]].tolist() == [(1 << 32) - 100, (1 << 32) - 1, 0, 199]
    assert (mechanism.decode(codes, first=(1 << 32) - 100) == mechanism.decode(pair)).all()
    other = CrossPolytope(20, epsilon=3.0, public_seed=10)
    assert (other.decode(pair) != mechanism.decode(pair)).any()
    # a report's rotation is drawn anew each time, and by another key than the report
    drawn = [mechanism.randomize(x).rotations for _ in range(2)]
    assert (drawn[0] != drawn[1]).mean() > 0.99
    first, second = (mechanism.randomize(x + add, rng=1).rotations for add in (0.0, 0.1))
    assert (first == second).all()


def test_short_and_long_records_are_scaled_or_refused():
    mechanism = CrossPolytope(4, epsilon=3.0, radius=2.0)
    inside, far = np.array([[1.0, 1.0, 1.0, 1.0]]), np.array([[30.0, 30.0, 30.0, 30.0]])
    assert (mechanism.outside(inside), mechanism.outside(far)) == (0, 1)
    assert mechanism.randomize(inside, rng=1).codes == mechanism.randomize(far, rng=1).codes
    assert np.allclose(mechanism.variance(far), mechanism.variance(inside))
    with pytest.raises(ValueError, match="index 0"):
        CrossPolytope(4, epsilon=3.0, radius=2.0, clip=False).randomize(far)
    with pytest.raises(ValueError, match="finite"):
        mechanism.randomize(np.array([[0.0, np.nan, 0.0, 0.0]]))


def test_one_rotation_for_everybody_is_refused_unless_asked_for():
    mechanism = CrossPolytope(40, epsilon=4.0)
    reports = mechanism.randomize(np.zeros((50, 40)), rng=1)
    shared = RotatedReports(np.full(50, 7, np.uint32), reports.codes)
    with pytest.raises(ValueError, match="cohorts=1"):
        mechanism.estimate_mean(shared)
    single = mechanism.accumulator()
    single.update(RotatedReports(shared.rotations[:1], shared.codes[:1]))
    assert single.estimate().n == 1
    with pytest.warns(bitldp.OneRotationWarning, match="biased") as caught:
        alone = CrossPolytope(40, epsilon=4.0, cohorts=1)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CrossPolytope(40, epsilon=4.0, cohorts=2)
        estimate = alone.estimate_mean(alone.randomize(np.zeros((50, 40)), rng=1))
    assert np.isnan(estimate.stderr).all()


def test_cohorts_are_summed_before_their_rotation_is_undone():
    """30 cohorts, 6,000 records: the same mean as report by report, and an honest standard error.

    The sum over 100 coordinates of squared errors over variances is about 100 (29 degrees of freedom each,
    sigma about 16): within 5 sigma.
    """
    x = unit(100)
    mechanism = CrossPolytope(100, epsilon=6.0, cohorts=30)
    reports = mechanism.randomize(np.tile(x, (6_000, 1)), rng=8)
    assert reports.rotations.max() == 29
    assert len(np.unique(reports.rotations)) == 30
    estimate = mechanism.estimate_mean(reports)
    assert np.allclose(estimate.value, mechanism.decode(reports).mean(axis=0), atol=1e-12)
    assert abs(np.square((estimate.value - x) / estimate.stderr).sum() - 100.0) < 80.0
    # more records of the same cohorts do not help as much as cohorts do
    independent = CrossPolytope(100, epsilon=6.0).total_variance() / 6_000
    assert np.square(estimate.stderr).sum() > 3.0 * independent
    one, other = mechanism.accumulator(), mechanism.accumulator()
    one.update(RotatedReports(reports.rotations[:100], reports.codes[:100]))
    other.update(RotatedReports(reports.rotations[100:], reports.codes[100:]))
    one.merge(other)
    assert (one.estimate().value == estimate.value).all()
    assert one.estimate().n == 6_000
    again = type(one).from_json(one.to_json(), mechanism)
    assert (again.estimate().stderr == estimate.stderr).all()


def test_a_budget_beyond_one_report_is_split():
    one = CrossPolytope(10, epsilon=20.0, reports=1, rotation="haar")
    mechanism = CrossPolytope(10, epsilon=20.0, rotation="haar")
    count = mechanism._report_parts[0][0]
    assert count > 1
    assert mechanism.total_variance() < 0.6 * one.total_variance()
    assert 20.0 * (1 - 1e-9) < mechanism.guarantee.record <= 20.0
    assert CrossPolytope(10, epsilon=math.log(32.0) + 0.9, rotation="haar")._report_parts[0][0] == 1
    # n = 4,000; the sum of squares within 5 standard errors (alpha = 6e-7)
    x = np.full(10, 0.2)
    reports = mechanism.randomize(np.tile(x, (4_000, 1)), rng=1)
    assert reports.codes.shape == reports.rotations.shape == (4_000, count)
    letters = mechanism.decode(reports)
    squares = np.square(letters - x).sum(axis=1)
    said = mechanism.total_variance(float(np.linalg.norm(x)))
    assert abs(squares.mean() - said) < 5.0 * squares.std() / math.sqrt(4_000) + 1e-12 * said
    estimate = mechanism.estimate_mean(reports)
    assert np.allclose(estimate.value, letters.mean(axis=0))
    assert np.square(estimate.stderr).sum() * 4_000 == pytest.approx(said, rel=0.1)


@pytest.mark.parametrize("parameters", [{}, {"cohorts": 700}, {"reports": 3}])
def test_packed_reports_are_the_codes(parameters):
    mechanism = CrossPolytope(50, epsilon=4.0, **parameters)
    x = np.random.default_rng(1).normal(0.0, 0.1, (501, 50))
    plain, packed = (mechanism.randomize(x, rng=2, output=output) for output in ("codes", "packed"))
    bits = mechanism._report_parts
    assert [len(part) for part in packed] == [(501 * columns * width + 7) // 8 for columns, width in bits]
    one, other = mechanism.accumulator(), mechanism.accumulator()
    one.update(plain)
    other.update(packed, output="packed", records=501)
    assert (one.estimate().value == other.estimate().value).all()


def test_silence_and_wrong_reports_are_refused():
    silent = CrossPolytope(5, epsilon=0.0)
    assert silent.guarantee.record == 0.0
    assert silent._symbols() == ()
    reports = silent.randomize(np.zeros((3, 5)))
    for ask in (silent.decode, silent.estimate_mean, silent.variance):
        with pytest.raises(ValueError, match="epsilon 0"):
            ask(reports if ask != silent.variance else np.zeros(5))
    mechanism = CrossPolytope(5, epsilon=2.0, cohorts=7)
    for wrong, error in (
        (np.zeros(3, int), TypeError),
        ((np.zeros(3, int), np.full(3, 64)), ValueError),
        ((np.full(3, 7), np.zeros(3, int)), ValueError),
        ((np.zeros(2, int), np.zeros(3, int)), ValueError),
        ((np.zeros((3, 1), int), np.zeros((3, 1), int)), ValueError),
    ):
        with pytest.raises(error, match="reports"):
            mechanism.decode(wrong)
    for parameters in (
        {"features": (1 << 31) + 1},
        {"features": (1 << 24) + 1, "cohorts": 5},
        {"features": 128, "rotation": "haar"},
        {"rotation": "none"},
        {"cohorts": 0},
        {"public_seed": -1},
        {"reports": 65},
        {"radius": 0.0},
    ):
        with pytest.raises(ValueError, match=list(parameters)[-1] if "rotation" not in parameters else "."):
            CrossPolytope(**{"features": 5, "epsilon": 1.0} | parameters)


def test_its_accounting_is_that_of_its_worst_pair():
    """All orders of 4 signed coordinates: no two laws diverge more than was said, and some as much."""
    channel = signed_top(4, 3, 2.0)
    vectors = [
        np.array(signs) * np.array(order)
        for order in itertools.permutations([1.0, 2.0, 3.0, 4.0])
        for signs in itertools.product([-1.0, 1.0], repeat=4)
    ]
    rows = np.array([law(channel, y) for y in vectors])
    orders = np.array([1.5, 3.0, 20.0])
    found = [np.log((rows[:1] ** a * rows ** (1.0 - a)).sum(axis=1)).max() / (a - 1.0) for a in orders]
    assert renyi(channel, orders) == pytest.approx(found, rel=1e-9)
    mechanism = CrossPolytope(700, epsilon=1.0)
    promised = account([(mechanism.guarantee, 100)], delta=1e-6).epsilon
    assert account([(mechanism, 100)], delta=1e-6).epsilon < 0.95 * promised


def test_the_audit_sees_epsilon():
    mechanism = CrossPolytope(40, epsilon=1.5)
    experiment = mechanism.extremes()
    assert experiment is not None
    assert experiment.blocks
    rows = experiment.blocks[0].table[:, 0]
    assert np.log(rows[0] / rows[1]).max() == pytest.approx(mechanism.guarantee.record, rel=1e-9)
    for x, row in zip(experiment.inputs, rows, strict=True):
        # n = 40,000, three cells, chi-square with 2 degrees of freedom: alpha = 1e-7 is 32.2
        (symbols,) = experiment.split(mechanism.randomize(np.tile(x, (40_000, 1)), rng=5))
        expected = row * 40_000
        counts = np.bincount(symbols.ravel(), minlength=3)
        assert (np.square(counts - expected) / expected).sum() < 32.2


def test_a_million_features():
    mechanism = CrossPolytope(1_000_000, epsilon=2.0)
    x = np.zeros((2, 1_000_000), np.float32)
    x[:, 3] = 1.0
    reports = mechanism.randomize(x, rng=1)
    letters = mechanism.decode(reports)
    assert letters.shape == (2, 1_000_000)
    assert reports.codes.max() < 1 << 21
    length = mechanism.letters[1] ** 2
    assert np.square(letters).sum(axis=1) == pytest.approx(length * 1_000_000 / (1 << 20), rel=0.01)


def least_variance(d: int, epsilon: float) -> float:
    """Return the sum of PrivUnit's variances on the sphere, 1/m^2 - 1: of the best cap."""
    odds = math.expm1(epsilon)
    best = 0.0
    for height in np.linspace(0.0, 6.0, 6001).tolist():
        share = math.erfc(height / math.sqrt(2.0)) / 2.0
        density = math.exp(-height * height / 2.0) / math.sqrt(2.0 * math.pi)
        best = max(best, odds * density / (odds * share + 1.0))
    return d / best**2 - 1.0


@pytest.mark.parametrize("features", [1 << 20, 1 << 24])
def test_the_variance_of_large_vectors_is_within_2_percent_of_the_least(features):
    total = CrossPolytope(features, epsilon=4.0).total_variance()
    assert 0.9999 < total / least_variance(features, 4.0) < 1.02


@pytest.mark.slow
def test_large_vectors_are_estimated_as_was_said():
    """By the product of each of 120 reports with the record, 2^20 numbers: alpha 1e-6, 4.9 deviations.

    Its mean is 1. The squared lengths of reports are E|z|^2 in the mean, all but the lift.
    """
    d = 1 << 20
    mechanism = CrossPolytope(d, epsilon=4.0)
    x = unit(d, 3).astype(np.float32)
    along, lengths = [], []
    for seed in range(120):
        letters = mechanism.decode(mechanism.randomize(x, rng=seed))
        along.append(float(letters @ x))
        lengths.append(float(letters @ letters))
    deviation = math.sqrt(mechanism._second_moments()[0] - 1.0)
    assert abs(np.mean(along) - 1.0) < min(4.9 * deviation / math.sqrt(120.0), 0.9)
    assert np.mean(lengths) - 1.0 == pytest.approx(mechanism.total_variance(), rel=1e-3)


def test_vectors_of_more_than_2_to_the_24_numbers_are_cut_into_blocks():
    d = (1 << 24) + 1
    mechanism = CrossPolytope(d, epsilon=4.0)
    assert (mechanism.codec.blocks, mechanism.codec.dimensions) == (2, 1 << 24)
    assert mechanism._facts()["law"]["blocks"] == 2
    whole = CrossPolytope(d - 1, epsilon=4.0)
    assert mechanism.total_variance() / whole.total_variance() == pytest.approx(2.0, rel=1e-3)


@pytest.mark.slow
def test_a_report_of_a_large_vector_is_about_one_of_its_blocks():
    d = (1 << 24) + 1
    mechanism = CrossPolytope(d, epsilon=60.0, reports=1)  # the largest coordinate, nearly always
    x = np.zeros((1, d), np.float32)
    x[0, 5], x[0, -3] = 0.6, -0.8
    edges = (0, (d + 1) // 2, d)
    seen = set()
    for number in (2, 3):
        (letters,) = mechanism.decode(mechanism.randomize(x, first=number, rng=number), first=number)
        parts = [letters[a:b] for a, b in itertools.pairwise(edges)]
        (block,) = (i for i, part in enumerate(parts) if part.any())
        seen.add(block)
        assert parts[block] @ x[0, edges[block] : edges[block + 1]] > 0.0  # of the record's own sign
        lifted = np.square(letters).sum() / float(mechanism.letters[1]) ** 2
        assert lifted == pytest.approx(0.5, rel=0.01)  # 2^23 + 1 numbers of 2^24 dimensions
    assert seen == {0, 1}
