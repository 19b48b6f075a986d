"""Points under a metric: every pair by enumeration, the program and its spanner, estimates, refusals."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import permutations

import bitldp
import numpy as np
import pytest
from bitldp import MetricPoints
from bitldp.audit import audit
from bitldp.design import DesignError, metric
from bitldp.points.candidates import euclidean
from bitldp.verify import parameters
from bitldp.verify.findings import Lie, Unproven
from support import oracle

SCATTERED = np.random.default_rng(5).random((12, 2)) * 10.0
GRID = np.array([(i, j) for i in range(4) for j in range(3)], dtype=np.float64)
CASES = {
    "line": lambda epsilon, **rest: MetricPoints(9, epsilon=epsilon, **rest),
    "interval": lambda epsilon, **rest: MetricPoints(7, epsilon=epsilon, interval=(-1.0, 2.0), **rest),
    "grid": lambda epsilon, **rest: MetricPoints(GRID, epsilon=epsilon, **rest),
    "scattered": lambda epsilon, **rest: MetricPoints(SCATTERED, epsilon=epsilon, metric="manhattan", **rest),
    "detour": lambda epsilon, **rest: MetricPoints(
        3, epsilon=epsilon, metric=[[0, 1, 9], [1, 0, 2], [9, 2, 0]], **rest
    ),
}
KM = np.array([(48.85, 2.35), (48.86, 2.29), (48.89, 2.34), (48.84, 2.32)])


@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
@pytest.mark.parametrize("method", ["kernel", "program"])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_every_pair_keeps_its_distance(build, method, epsilon):
    if method == "program":
        pytest.importorskip("scipy", reason="the extra design is not installed")
    mechanism = build(epsilon, method=method)
    rows = mechanism.channel.weights()
    table = mechanism._regions[0].losses
    ways = np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]]) if build is CASES["detour"] else table
    worst = max(
        oracle.epsilon_of([[Fraction(weight, oracle.ONE) for weight in rows[each]] for each in (a, b)])
        / ways[a, b]
        for a, b in permutations(range(len(rows)), 2)
    )
    assert mechanism.slope == pytest.approx(worst, rel=1e-11)
    assert worst <= mechanism.slope <= epsilon
    silent = method == "program" and worst == 0.0  # with little to spend, one candidate is always reported
    assert silent or worst >= 0.9 * epsilon
    assert not (silent and epsilon > 1.0)
    assert mechanism.guarantee.holds
    assert mechanism.guarantee.claimed == epsilon * table.max()
    assert mechanism.guarantee.record == mechanism.channel.epsilon
    assert "times the distance" in mechanism.guarantee.given


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 2.0])
def test_a_line_is_the_truncated_geometric_mechanism(epsilon):
    law = MetricPoints(10, epsilon=epsilon).probabilities()
    a = math.exp(-epsilon)
    ideal = a ** np.abs(np.subtract.outer(np.arange(10), np.arange(10))) * (1 - a) / (1 + a)
    ideal[:, [0, -1]] /= 1 - a
    assert np.abs(law - ideal).max() < 1e-8


@pytest.mark.parametrize(("points", "ratio"), [(9, 1.03), (GRID, 1.4), (SCATTERED, 1.4)])
def test_the_program_has_the_least_loss(points, ratio):
    pytest.importorskip("scipy", reason="the extra design is not installed")
    exact = MetricPoints(points, epsilon=0.7, method="program", dilation=1.0).expected_error()
    sparse = MetricPoints(points, epsilon=0.7, method="program", dilation=1.5).expected_error()
    closed = MetricPoints(points, epsilon=0.7).expected_error()
    assert exact <= sparse * (1 + 1e-5)
    assert exact * (1 - 1e-5) <= closed <= ratio * exact


def test_a_prior_shapes_the_program():
    pytest.importorskip("scipy", reason="the extra design is not installed")
    prior = [8, 4, 2, 1, 1, 0]
    own = MetricPoints(6, epsilon=0.5, method="program", prior=prior).expected_error()
    assert own < MetricPoints(6, epsilon=0.5, prior=prior).expected_error()


@pytest.mark.parametrize("dilation", [1.0, 1.1, 1.5])
def test_the_spanner_has_no_longer_detour(dilation):
    distances = euclidean(SCATTERED, SCATTERED)
    edges, stretch = metric.spanner(distances, dilation)
    ways = np.full_like(distances, np.inf)
    for a, b in edges:
        ways[a, b] = ways[b, a] = distances[a, b]
    for middle in range(len(ways)):
        ways = np.minimum(ways, ways[:, middle, None] + ways[middle])
    apart = ~np.eye(len(ways), dtype=bool)
    assert stretch == pytest.approx(max(1.0, (ways[apart] / distances[apart]).max()))
    assert stretch <= dilation * (1 + 1e-9)
    line = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    assert metric.spanner(line, dilation) == ([(each, each + 1) for each in range(8)], 1.0)


def test_frequencies_are_unbiased():
    n, law = 60_000, np.array([0.4, 0.1, 0.05, 0.05, 0.3, 0.1])
    mechanism = MetricPoints(6, epsilon=1.0)
    x = np.repeat(np.arange(6), (n * law).astype(int))
    reports = mechanism.randomize(x, rng=3)
    estimate = mechanism.estimate_frequencies(reports)
    assert (np.abs(estimate.value - law) < 5.5 * estimate.stderr).all()  # alpha 4e-8
    assert np.abs(mechanism.probabilities() @ mechanism.letters - np.arange(6)).max() < 1e-8


def test_a_map_in_kilometres():
    mechanism = MetricPoints(KM, epsilon=0.5, metric="haversine")
    assert mechanism.slope <= 0.5
    assert mechanism.encode([(48.851, 2.349)]).tolist() == [0]
    two = MetricPoints(KM, epsilon=0.5, metric="haversine", features=2)
    assert two.guarantee.record == 2.0 * mechanism.guarantee.record  # distances of values add up


def test_a_pickle_has_the_table_and_is_checked():
    mechanism = MetricPoints(GRID, epsilon=0.5)
    again = pickle.loads(pickle.dumps(mechanism))
    assert again.channel.weights() == mechanism.channel.weights()
    rebuild, (kind, parameters, tables) = mechanism.__reduce__()
    with pytest.raises(ValueError, match="epsilon: the stored table"):
        rebuild(kind, {**parameters, "epsilon": 0.4}, tables)


def test_nothing_to_spend():
    mechanism = MetricPoints(5, epsilon=0.0)
    assert mechanism.guarantee.record == mechanism.slope == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 1e-5}, "epsilon: must be 0"),
        ({"candidates": [0.0, 1.0, 1.0]}, "metric: distances must be 0"),
        ({"candidates": 1025}, "candidates: at most 1024"),
        ({"candidates": 129, "method": "program"}, "candidates: at most 128"),
        ({"method": "other"}, "method"),
        ({"dilation": 0.5}, "dilation: must be 1 to 4"),
        ({"regions": [0, 0, 1, 1]}, "regions: must be None"),
        ({"unit": "feature"}, "unit: must be 'record'"),
        ({"interval": (0.0, 1.0), "rounding": "dither"}, "rounding: must be 'nearest'"),
        ({"metric": [[0, 1], [1, 0]]}, "metric: a table"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        MetricPoints(**{"candidates": 4, "epsilon": 1.0, **options})


def test_a_law_that_is_none_is_refused():
    line = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    with pytest.raises(DesignError, match="is not a law"):
        metric.settled(np.full((3, 3), 0.1), line, 1.0)
    with pytest.raises(DesignError, match="no integers"):
        metric.settled(np.eye(3) * 0.7 + 0.1, line, 1.0)


def test_audit_stays_within_the_budget():
    result = audit(MetricPoints(4, epsilon=0.5), n=40_000, rng=1)
    assert result.passed
    assert 0.7 < result.lower <= 1.5


def test_an_exact_slope_covers_reports_that_no_input_gives():
    distances = np.array([[0.0, 2.0], [2.0, 0.0]])
    assert metric.slope(np.array([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]]), distances) == pytest.approx(
        math.log(3.0) / 2.0
    )
    assert metric.slope(np.array([[1.0, 0.0], [0.5, 0.5]]), distances) == math.inf
    assert bitldp.MetricPoints(2, epsilon=1.0).guarantee.holds


def test_verify_holds_neighbours_to_their_distance():
    mechanism = MetricPoints(6, epsilon=0.5)
    law = [{"times": 1, "laws": [{"law": "matrix", "weights": mechanism.channel.weights()}]}]
    own = dict(mechanism.parameters)
    assert not parameters.checked("MetricPoints", own, law)  # the table is taken as stated, and holds
    with pytest.raises(Lie, match="two neighbours are further apart"):
        parameters.checked("MetricPoints", {**own, "epsilon": 0.49}, law)
    with pytest.raises(Unproven, match="by a digest alone"):
        parameters.checked("MetricPoints", {**own, "candidates": {"digest": "0"}}, law)
