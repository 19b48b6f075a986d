"""The exponential mechanism: its table, its exact epsilon, its unbiased letters."""

from __future__ import annotations

import pickle
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp import Exponential
from bitldp.audit import audit
from bitldp.points.exponential import largest_root
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
N = 1 << 18
POINTS = np.random.default_rng(11).random((24, 2)) * 10.0
CASES = {
    "line": lambda **o: Exponential(20, epsilon=1.5, **o),
    "interval": lambda **o: Exponential(9, epsilon=2.0, interval=(-3.0, 5.0), rounding="dither", **o),
    "plane": lambda **o: Exponential(POINTS, epsilon=1.0, **o),
    "manhattan": lambda **o: Exponential(POINTS, epsilon=6.0, metric="manhattan", **o),
    "jaccard": lambda **o: Exponential(12, epsilon=2.0, utility="jaccard", **o),
    "regions": lambda **o: Exponential(POINTS, epsilon=2.0, regions=np.arange(24) % 3, **o),
    "losses": lambda **o: Exponential(3, epsilon=1.0, metric=[[0, 1, 9], [4, 0, 1], [2, 2, 0]], **o),
}


def fractions(channel):
    return [[Fraction(weight, oracle.ONE) for weight in row] for row in channel.weights()]


@pytest.fixture(params=CASES.values(), ids=CASES)
def build(request):
    return request.param


@pytest.mark.parametrize("calibration", ["exact", "paper"])
def test_exact_epsilon_by_enumeration(build, calibration):
    mechanism = build(calibration=calibration)
    worst = max(oracle.epsilon_of(fractions(channel)) for channel in mechanism.channels)
    assert mechanism.guarantee.record == pytest.approx(worst, rel=1e-14)
    assert mechanism.guarantee.holds
    if calibration == "exact":
        assert mechanism.epsilon * (1 - 1e-9) <= mechanism.guarantee.record <= mechanism.epsilon
    for channel in mechanism.channels:
        assert all(sum(row) == oracle.ONE for row in channel.weights())


def test_the_law_is_exponential_in_the_loss(build):
    for calibration in ("exact", "paper"):
        mechanism = build(calibration=calibration)
        for part in mechanism._regions:
            logs = np.log(part.release.channel.probabilities())
            drop = logs - logs[:, :1]
            gaps = part.losses - part.losses[:, :1]
            scale = -np.sum(drop * gaps) / np.sum(gaps * gaps)
            np.testing.assert_allclose(drop, -scale * gaps, atol=1e-9)
            if calibration == "paper":
                reach = (part.losses.max(axis=0) - part.losses.min(axis=0)).max()
                assert scale == pytest.approx(mechanism.epsilon / (2.0 * reach), rel=1e-9)


@pytest.mark.parametrize("count", [2, 5, 20, 101])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 12.0])
def test_the_paper_has_half_its_epsilon_on_a_line(count, epsilon):
    paper = Exponential(count, epsilon=epsilon, calibration="paper")
    exact = Exponential(count, epsilon=epsilon)
    assert paper.guarantee.record == pytest.approx(epsilon / 2.0, rel=1e-9)
    assert exact.guarantee.record == pytest.approx(epsilon, rel=1e-9)
    assert exact.expected_error() < paper.expected_error()
    assert bitldp.BRR(count, epsilon=epsilon, m="best").expected_error() <= exact.expected_error() * (
        1 + 1e-9
    )


def test_expected_errors(build):
    mechanism = build()
    losses = np.zeros(mechanism.probabilities().shape)
    for part in mechanism._regions:
        losses[np.ix_(part.members, part.members)] = part.losses
    rows = np.sum(mechanism.probabilities() * losses, axis=1)
    if mechanism.utility is None:
        assert mechanism.expected_error() == pytest.approx(rows.mean(), rel=1e-12)
        assert mechanism.worst_error() == pytest.approx(rows.max(), rel=1e-12)
        with pytest.raises(ValueError, match="see expected_error"):
            mechanism.expected_utility()
    else:
        assert mechanism.expected_utility() == pytest.approx(-rows.mean(), rel=1e-12)
        with pytest.raises(ValueError, match="see expected_utility"):
            mechanism.expected_error()
        with pytest.raises(ValueError, match="see expected_utility"):
            mechanism.worst_error()


@pytest.mark.parametrize("count", [2, 9, 60])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0, 20.0])
def test_letters_are_unbiased(count, epsilon):
    mechanism = Exponential(count, epsilon=epsilon, interval=(-2.0, 6.0), rounding="dither")
    law = fractions(mechanism.channel)
    letters = [Fraction(float(letter)) for letter in mechanism.letters]
    for row, point in zip(law, mechanism.points, strict=True):
        mean = sum(chance * letter for chance, letter in zip(row, letters, strict=True))
        assert abs(float(mean - Fraction(float(point)))) < 4e-9
    law = mechanism.probabilities()
    expected = law @ np.square(mechanism.letters) - np.square(mechanism.points)
    np.testing.assert_allclose(mechanism.letter_variance(np.arange(count)), expected, rtol=1e-6)
    np.testing.assert_array_equal(mechanism.unbias([0, count - 1]), mechanism.letters[[0, -1]])
    with pytest.raises(ValueError, match="read-only"):
        mechanism.letters[0] = 1.0


def test_indicators_are_unbiased():
    for mechanism in (Exponential(20, epsilon=1.5), Exponential(POINTS, epsilon=1.0)):
        law = mechanism.probabilities()
        np.testing.assert_allclose(law @ mechanism._inverse.indicators, np.eye(len(law)), atol=1e-9)
        moments = law @ np.square(mechanism._inverse.indicators) - np.eye(len(law))
        np.testing.assert_allclose(mechanism.variance([3, 7]), moments[[3, 7]], rtol=1e-9)


def test_no_unbiased_decode_where_there_is_none():
    twins = Exponential([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], epsilon=1.0)
    for ask in (lambda: twins.estimate_frequencies([0, 1]), lambda: twins.variance([0]), twins.accumulator):
        with pytest.raises(ValueError, match="no unbiased decode exists; the rows of the law"):
            ask()
    alike = Exponential([2.0, 5.0, 2.0], epsilon=1.0)  # letters exist all the same: equal points, equal rows
    np.testing.assert_allclose(alike.probabilities() @ alike.letters, [2.0, 5.0, 2.0], atol=1e-9)
    silent = Exponential(7, epsilon=0.0)
    assert silent.guarantee.record == 0.0
    with pytest.raises(ValueError, match="no unbiased decode exists; no letters"):
        silent.estimate_mean([0, 1])
    with pytest.raises(ValueError, match="points in space have no mean"):
        Exponential(POINTS, epsilon=1.0).estimate_mean([0])
    with pytest.raises(ValueError, match="across regions"):
        CASES["regions"]().estimate_frequencies([0])
    flat = Exponential(4, epsilon=1.0, metric=np.ones((4, 4)))
    assert flat.guarantee.record == 0.0


def test_goodness_of_fit(build):
    """Chi-squared over all reports of an input, n = 2^18, alpha = 1e-6."""
    mechanism = build()
    law = mechanism.probabilities()
    for x in (0, len(law) - 1):
        value = x if mechanism.interval is None else mechanism.points[x]
        counts = np.bincount(mechanism.randomize(np.full(N, value), rng=51 + x), minlength=len(law))
        assert counts[law[x] == 0.0].sum() == 0
        assert oracle.p_value(counts[law[x] > 0.0], law[x][law[x] > 0.0]) > ALPHA


def test_estimates_within_five_standard_errors():
    """Of frequencies and means, n = 2^18; the standard errors within 3 % of the closed form's."""
    mechanism = Exponential(6, epsilon=2.0)
    x = np.random.default_rng(2).choice(6, N, p=[0.4, 0.1, 0.1, 0.05, 0.05, 0.3])
    truth = np.bincount(x, minlength=6) / N
    reports = mechanism.randomize(x, rng=8)
    estimate = mechanism.estimate_frequencies(reports)
    assert np.all(np.abs(estimate.value - truth) < 5 * estimate.stderr)
    # a report's indicators have the spread of the coins and that of the records
    spread = (truth @ mechanism.variance(np.arange(6)) + truth * (1 - truth)) / N
    np.testing.assert_allclose(estimate.stderr, np.sqrt(spread), rtol=0.03)
    projected = mechanism.estimate_frequencies(reports, project=True)
    assert projected.value.sum() == pytest.approx(1.0)
    assert projected.value.min() >= 0.0
    mean = mechanism.estimate_mean(reports)
    assert abs(mean.value[0] - x.mean()) < 5 * mean.stderr[0]
    spread = (truth @ mechanism.letter_variance(np.arange(6)) + x.var()) / N
    assert mean.stderr[0] == pytest.approx(np.sqrt(spread), rel=0.03)
    assert mean.value[0] == pytest.approx(mechanism.unbias(reports).mean(), rel=1e-12)
    assert np.isnan(mechanism.estimate_mean([3]).stderr).all()


def test_accumulators_merge_and_serialise():
    mechanism = Exponential(5, epsilon=2.0, features=2)
    x = np.random.default_rng(3).integers(0, 5, (3000, 2))
    reports = mechanism.randomize(x, rng=4)
    whole, left, right = (mechanism.accumulator() for _ in range(3))
    whole.update(reports)
    left.update(reports[:1000])
    right.update(reports[1000:])
    left.merge(type(right).from_json(right.to_json(), mechanism))
    np.testing.assert_array_equal(left.estimate().value, whole.estimate().value)
    assert whole.estimate().value.shape == (2, 5)
    assert mechanism.estimate_mean(reports).value.shape == (2,)
    with pytest.raises(ValueError, match="at least one"):
        mechanism.accumulator().estimate()
    with pytest.raises(ValueError, match="another mechanism"):
        type(right).from_json(right.to_json(), Exponential(5, epsilon=1.0, features=2))


def test_outputs_and_pickle(build):
    mechanism = build()
    count = len(mechanism.points)
    x = np.arange(count) if mechanism.interval is None else mechanism.points
    codes = mechanism.randomize(x, rng=5)
    np.testing.assert_array_equal(mechanism.randomize(x, rng=5, output="values"), mechanism.decode(codes))
    packed = mechanism.randomize(x, rng=5, output="packed")
    np.testing.assert_array_equal(bitldp.unpack(packed, mechanism.report_bits, count), codes)
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    np.testing.assert_array_equal(again.randomize(x, rng=5), codes)
    np.testing.assert_array_equal(mechanism.randomize(x, rng=5, threads=2), codes)
    assert type(mechanism)(**mechanism.parameters) == mechanism


def test_report_bits():
    assert Exponential(17, epsilon=1.0).report_bits == 5
    assert Exponential(16, epsilon=1.0, features=3).report_bits == 12
    assert bitldp.BRR(2, epsilon=1.0).report_bits == 1


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((1,), {}, "candidates: must be at least 2"),
        ((2049,), {}, "candidates: at most 2048 in a region"),
        (("x",), {}, "candidates: must be a number"),
        ((5,), {"epsilon": -1.0}, "epsilon: must be zero or more"),
        ((5,), {"epsilon": np.nan}, "epsilon: must be finite"),
        ((5,), {"calibration": "Paper"}, "calibration: must be one of 'exact', 'paper'"),
        ((5,), {"metric": np.ones((4, 4))}, "metric: a table must hold numbers"),
        ((5,), {"metric": np.full((5, 5), 1e308)}, "exceeds the range of doubles"),
        ((5,), {"unit": "client"}, "unit: must be one of"),
        ((5,), {"interval": (1.0, 1.0)}, "interval: low must be below high"),
        ((5,), {"features": 0}, "features: must be at least 1"),
    ],
)
def test_bad_parameters(arguments, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Exponential(*arguments, **{"epsilon": 1.0, **options})


def test_bad_inputs():
    mechanism = Exponential(5, epsilon=1.0)
    for bad in ([5], [-1], [0.5], np.zeros((2, 2), int), np.array(["a"])):
        with pytest.raises((ValueError, TypeError)):
            mechanism.randomize(bad)
    with pytest.raises((ValueError, TypeError), match="output"):
        mechanism.randomize([1], output="bits")
    with pytest.raises(ValueError, match="outside"):
        mechanism.unbias([5])
    with pytest.raises(ValueError, match="outside"):
        mechanism.variance([7])
    with pytest.raises(ValueError, match="NaN"):
        Exponential(5, epsilon=1.0, interval=(0.0, 1.0)).randomize(np.array([np.nan]))


@pytest.mark.parametrize("epsilon", [30.0, 44.0, 100.0, 1e4])
def test_large_budgets_are_kept(epsilon):
    for calibration in ("exact", "paper"):
        guarantee = Exponential(50, epsilon=epsilon, calibration=calibration).guarantee
        assert guarantee.holds
        assert 14.0 < guarantee.record <= min(epsilon, 44.37)


def test_several_features_share_the_budget():
    mechanism = Exponential(9, epsilon=3.0, features=4)
    assert mechanism.guarantee.feature == pytest.approx(0.75, rel=1e-9)
    assert 3.0 * (1 - 1e-9) <= mechanism.guarantee.record <= 3.0
    assert mechanism.randomize(np.zeros((7, 4), int)).shape == (7, 4)


def test_the_search_for_a_scale():
    assert largest_root(lambda s: s**3, 8.0, 0.1) == pytest.approx(2.0, rel=1e-14)
    assert largest_root(lambda s: min(s, 5.0), 4.9, 1e-9) == pytest.approx(4.9, rel=1e-14)
    assert np.isfinite(largest_root(lambda s: s / (1 + s), 2.0, 1.0))


@pytest.mark.parametrize(
    "mechanism",
    [
        Exponential(6, epsilon=2.0),
        Exponential(4, epsilon=4.0, features=2),
        Exponential(4, epsilon=2.0, interval=(0.0, 1.0)),
        Exponential(POINTS[:8], epsilon=2.0, regions=np.arange(8) % 2),
    ],
    ids=["line", "features", "interval", "regions"],
)
def test_audit_finds_the_budget(mechanism):
    result = audit(mechanism, n=40_000, rng=1)
    assert result.passed
    assert 0.5 * mechanism.epsilon < result.lower <= mechanism.epsilon
