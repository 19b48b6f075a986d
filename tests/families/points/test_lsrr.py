"""L-SRR: codes of places, groups by prefix, the staircase, and its exact epsilon."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp import LSRR, location_codes
from bitldp.audit import audit
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
N = 1 << 18
POINTS = np.random.default_rng(3).random((40, 2))
# six places on a map: groups of different sizes
CODES = np.array(["0000", "0001", "0010", "0111", "1000", "1111"])
LINE = np.arange(6)


def by_hand(codes, prefixes, c):
    """Return the law candidate by candidate, from the definition of the groups."""
    groups = len(prefixes) + 1
    rows = []
    for x in codes:
        weights = []
        for y in codes:
            common = len(
                [0 for a, b in itertools.takewhile(lambda ab: ab[0] == ab[1], zip(x, y, strict=True))]
            )
            group = 1 + sum(common < length for length in prefixes)
            weights.append(1 + (c - 1) * (groups - group) / (groups - 1))
        rows.append(np.array(weights) / sum(weights))
    return np.array(rows)


def paper(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        return LSRR(*arguments, calibration="paper", **options)


@pytest.mark.parametrize("prefixes", [(3,), (3, 1), (4, 2), (4, 3, 2, 1)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_paper_s_table(prefixes, epsilon):
    mechanism = paper(LINE, epsilon=epsilon, encoding=CODES, prefixes=prefixes)
    expected = by_hand(CODES, prefixes, math.exp(epsilon))
    np.testing.assert_allclose(mechanism.probabilities(), expected, rtol=1e-12)
    # the least probability of a row, in closed form: (m - 1)/((m - 1) N c - (c - 1) sum (j - 1) |G_j|)
    c, m = math.exp(epsilon), len(prefixes) + 1
    for row in mechanism.probabilities():
        # an empty last group leaves no candidate at that probability, so it is computed from the largest one
        ranks = np.round((row.max() - row) / (row.max() * (1 - 1 / c)) * (m - 1))
        least = (m - 1) / ((m - 1) * len(CODES) * c - (c - 1) * ranks.sum())
        assert row.max() == pytest.approx(c * least, rel=1e-9)


def test_the_claim_fails_where_groups_differ_in_size():
    with pytest.warns(bitldp.PrivacyClaimWarning, match="claimed epsilon 1 per record"):
        mechanism = LSRR(LINE, epsilon=1.0, encoding=CODES, prefixes=(3, 1), calibration="paper")
    law = [[Fraction(weight, oracle.ONE) for weight in row] for row in mechanism.channel.weights()]
    assert mechanism.guarantee.record == pytest.approx(oracle.epsilon_of(law), rel=1e-14)
    assert mechanism.guarantee.record > 1.05
    assert not mechanism.guarantee.holds
    # eight places, a full tree: all groups alike in size, and the claim holds
    tree = np.array(["".join(bits) for bits in itertools.product("01", repeat=3)])
    exact = paper(np.arange(8), epsilon=1.0, encoding=tree, prefixes=(2, 1)).guarantee.record
    assert exact == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0, 10.0, 30.0])
@pytest.mark.parametrize("options", [{}, {"groups": 2}, {"groups": 4}, {"regions": np.arange(40) % 2}])
def test_exact_epsilon_by_enumeration(epsilon, options):
    mechanism = LSRR(POINTS, epsilon=epsilon, **options)
    laws = [
        [[Fraction(weight, oracle.ONE) for weight in row] for row in channel.weights()]
        for channel in mechanism.channels
    ]
    worst = max(oracle.epsilon_of(law) for law in laws)
    assert mechanism.guarantee.record == pytest.approx(worst, rel=1e-14)
    assert epsilon * (1 - 1e-6) <= mechanism.guarantee.record <= epsilon
    assert mechanism.guarantee.holds


def test_exact_calibration_is_a_staircase_too():
    mechanism = LSRR(LINE, epsilon=1.0, encoding=CODES, prefixes=(3, 1))
    law = mechanism.probabilities()
    c = law[0].max() / law[0].min()
    assert 1.0 < c < math.e
    np.testing.assert_allclose(law, by_hand(CODES, (3, 1), c), rtol=1e-9)


def test_the_division_of_least_error():
    """No other division into three groups has a smaller expected error at c = e^epsilon."""
    for epsilon in (0.5, 2.0):
        found = paper(POINTS, epsilon=epsilon)
        ((longest, shortest),) = found.divisions
        given = paper(POINTS, epsilon=epsilon, prefixes=(longest, shortest))
        np.testing.assert_array_equal(given.probabilities(), found.probabilities())
        for prefixes in itertools.combinations(range(12, 0, -1), 2):
            other = paper(POINTS, epsilon=epsilon, prefixes=prefixes)
            assert other.expected_error() >= found.expected_error() * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 2.0])
def test_brr_has_the_smaller_error(epsilon):
    best = bitldp.BRR(POINTS, epsilon=epsilon, m="best")
    assert best.expected_error() < LSRR(POINTS, epsilon=epsilon).expected_error()


def test_location_codes():
    square = np.array([[0.0, 0.0], [0.9, 0.1], [0.1, 0.9], [1.0, 1.0], [0.3, 0.3]])
    assert location_codes(square, bits=4).tolist() == ["0000", "1010", "0101", "1111", "0011"]
    box = ([0.0, 0.0], [2.0, 2.0])
    assert location_codes(square, bits=2, box=box).tolist() == ["00", "00", "00", "11", "00"]
    assert location_codes([5.0, 1.0, 3.0], bits=2).tolist() == ["11", "00", "10"]
    assert location_codes([[1.0, 7.0], [2.0, 7.0]], bits=3).tolist() == ["000", "101"]
    assert location_codes(square * 9.0, bits=2, box=box).tolist() == ["00", "10", "01", "11", "11"]
    assert len(set(location_codes(POINTS).tolist())) == len(POINTS)
    for bad, error, message in (
        (["a"], TypeError, "points: must be numbers"),
        (np.zeros((2, 2, 2)), ValueError, "points: shape"),
        ([np.nan, 1.0], ValueError, "points: must be finite"),
        ([-1e308, 1e308], ValueError, "points: their differences must be finite"),
    ):
        with pytest.raises(error, match=message):
            location_codes(bad)
    with pytest.raises(ValueError, match="bits: must be between 1 and 64"):
        location_codes(square, bits=65)
    with pytest.raises(ValueError, match="box: must be"):
        location_codes(square, box=([0.0], [1.0]))
    with pytest.raises(ValueError, match="box: must be"):
        location_codes(square, box=([1.0, 1.0], [0.0, 0.0]))


def test_codes_serve_as_regions():
    regions = np.array([code[:1] for code in location_codes(POINTS, bits=8).tolist()])
    mechanism = LSRR(POINTS, epsilon=1.0, regions=regions)
    reports = mechanism.randomize(np.repeat(np.arange(40), 20), rng=1)
    np.testing.assert_array_equal(regions[reports], np.repeat(regions, 20))
    assert len(mechanism.divisions) == len(mechanism.channels) == 2
    assert mechanism.guarantee.given == "given the public region"
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_small_regions_have_as_many_groups_as_they_offer():
    for calibration, make in (("exact", LSRR), ("paper", paper)):
        mechanism = make(4, epsilon=1.0, regions=[0, 0, 1, 1])
        assert [len(division) + 1 for division in mechanism.divisions] == [2, 2], calibration
        assert mechanism.guarantee.record == pytest.approx(1.0, rel=1e-9)
        assert mechanism.guarantee.holds
    assert LSRR(2, epsilon=1.0).divisions == LSRR(2, epsilon=1.0, groups=4).divisions
    # two equal points share all of their code: one group, reported alike
    points = np.array([0.0, 0.0, 3.0, 4.0, 5.0])
    mechanism = LSRR(points, epsilon=1.0, regions=[0, 0, 1, 1, 1])
    assert mechanism.divisions[0] == ()
    np.testing.assert_array_equal(mechanism.probabilities()[:2, :2], 0.5)
    assert mechanism.guarantee.record == pytest.approx(1.0, rel=1e-9)
    reports = mechanism.randomize(np.arange(5).repeat(50), rng=1)
    np.testing.assert_array_equal(reports < 2, np.arange(5).repeat(50) < 2)


@pytest.mark.parametrize("calibration", ["exact", "paper"])
def test_goodness_of_fit(calibration):
    """Chi-squared over all reports of an input, n = 2^18, alpha = 1e-6."""
    build = paper if calibration == "paper" else LSRR
    mechanism = build(POINTS, epsilon=2.0, prefixes=(4, 2))
    law = mechanism.probabilities()
    for x in (0, 17):
        counts = np.bincount(mechanism.randomize(np.full(N, x), rng=x), minlength=40)
        assert oracle.p_value(counts, law[x]) > ALPHA


def test_unbiased_only_where_rows_differ():
    with pytest.raises(ValueError, match="LSRR: no unbiased decode exists"):
        LSRR(POINTS, epsilon=1.0, prefixes=(2, 1)).estimate_frequencies([0, 1])
    mechanism = LSRR(LINE, epsilon=1.0, encoding=CODES, prefixes=(4, 2))
    law = mechanism.probabilities()
    np.testing.assert_allclose(law @ mechanism._inverse.indicators, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(law @ mechanism.letters, LINE, atol=1e-9)
    x = np.random.default_rng(4).choice(6, N, p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    reports = mechanism.randomize(x, rng=6)
    estimate = mechanism.estimate_frequencies(reports)
    assert np.all(np.abs(estimate.value - np.bincount(x) / N) < 5 * estimate.stderr)


def test_pickle_and_equality():
    mechanism = LSRR(LINE, epsilon=1.0, encoding=CODES, prefixes=[3, 1])
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert again.prefixes == (3, 1)
    np.testing.assert_array_equal(again.probabilities(), mechanism.probabilities())
    assert mechanism != LSRR(LINE, epsilon=1.0, encoding=CODES, prefixes=[3, 2])
    assert mechanism != LSRR(LINE, epsilon=1.0, prefixes=[3, 1])
    assert mechanism.report_bits == 3
    assert mechanism.fingerprint()["name"] == "LSRR"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1.0}, "epsilon: must be zero or more"),
        ({"calibration": "both"}, "calibration: must be one of"),
        ({"prefixes": ()}, "prefixes: must be a sequence"),
        ({"prefixes": 3}, "prefixes: must be a sequence"),
        ({"prefixes": (1, 3)}, "prefixes: must be descending"),
        ({"prefixes": (3, 0)}, "prefixes: must be at least 1"),
        ({"prefixes": (3.5, 1)}, "prefixes: must be an integer"),
        ({"groups": 1}, "groups: must be between 2 and 4"),
        ({"groups": 5}, "groups: must be between 2 and 4"),
        ({"encoding": CODES[:5]}, "encoding: shape must be"),
        ({"encoding": np.arange(6)}, "encoding: must be strings"),
        ({"encoding": np.array(["0", "01", "10", "11", "0", "1"])}, "the same length"),
        ({"encoding": np.array(["01"] * 6)}, "groups: the codes share prefixes of only 1"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LSRR(LINE, **{"epsilon": 1.0, **options})


def test_epsilon_zero_says_nothing():
    mechanism = LSRR(LINE, epsilon=0.0, encoding=CODES)
    assert mechanism.guarantee.record == 0.0
    with pytest.raises(ValueError, match="no unbiased decode"):
        mechanism.estimate_mean([0, 1])


def test_audit_finds_the_excess():
    mechanism = paper(LINE, epsilon=2.0, encoding=CODES, prefixes=(3, 1))
    result = audit(mechanism, n=40_000, rng=2)
    assert result.passed
    assert 1.0 < result.lower <= mechanism.guarantee.record
