"""Privacy-aware compression: MVU, unbiased GRR and bitwise RR, and MVU under a metric."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp._core import log_ratio
from bitldp.audit import audit
from bitldp.compression import MVU, BitwiseRR, GeneralizedRR, MetricMVU, best_bits
from bitldp.design import mvu as design
from hypothesis import example, given, settings
from hypothesis import strategies as st

ONE = 1 << 64

# Mean over uniform inputs, and worst; on [-1, 1].
GRR_BEST = {
    0.5: (16.34, 16.67),
    1: (4.349, 4.683),
    2: (0.895, 1.192),
    4: (0.139, 0.223),
    8: (0.0068, 0.0112),
}
MVU_33 = {
    0.5: (16.05, 16.08),
    1: (3.926, 4.154),
    2: (0.802, 0.943),
    4: (0.1175, 0.1643),
    8: (0.0157, 0.0236),
}

# All with designs that are shipped, or need no solver.
MECHANISMS = [
    MVU(epsilon=1.0),
    MVU(epsilon=2.0, input_bits=2, output_bits=3, interval=(-5.0, 3.0), features=4, unit="feature"),
    MVU(epsilon=5.0, features=8, spend="sample", interval=(-1.0, 1.0)),
    MVU(epsilon=1.0, input_bits=6, output_bits=1),
    GeneralizedRR(epsilon=1.5, bits=4, interval=(-1.0, 2.0)),
    BitwiseRR(epsilon=2.0, bits=5, features=2),
    BitwiseRR(epsilon=3.0, bits=6),
]


UNIT = {"interval": (0.0, 1.0)}


@pytest.fixture(scope="module")
def near():
    return MetricMVU(epsilon=2.0, input_bits=2, output_bits=2, **UNIT)


def weights(mechanism):
    return mechanism.channels[0].weights()


def test_vector_21(vectors):
    case = vectors[21]
    expected = case["expected"]
    mechanism = MVU(epsilon=1.0, input_bits=1, output_bits=1, **UNIT)
    tight = {"rtol": 0, "atol": case["tolerance"]}
    np.testing.assert_allclose(mechanism.letters, expected["alphabet"], **tight)
    np.testing.assert_allclose(mechanism.probabilities(), expected["P"], **tight)
    np.testing.assert_allclose(
        mechanism.variance(mechanism.points).sum(), expected["sum_of_variances"], **tight
    )
    # Randomized response, by the same integers as Duchi's mechanism up to rounding.
    assert math.isclose(mechanism.guarantee.record, 1.0, rel_tol=1e-12)


def test_vector_23(vectors):
    case = vectors[23]
    for name, kind in (("gRR", GeneralizedRR), ("bRR", BitwiseRR)):
        for epsilon, expected in zip(case["inputs"]["eps"], case["expected"][name], strict=True):
            mechanism = kind(epsilon=float(epsilon), bits=case["inputs"]["b"], **UNIT)
            found = mechanism.variance(mechanism.points).mean()
            assert abs(found - expected) < case["tolerance"]
    count, epsilon = 8, 3.0
    points = np.arange(count) / (count - 1)
    letters = (points * (count + math.exp(epsilon) - 1) - count / 2) / math.expm1(epsilon)
    np.testing.assert_allclose(GeneralizedRR(epsilon=epsilon, bits=3, **UNIT).letters, letters, atol=1e-12)


@pytest.mark.parametrize("epsilon", MVU_33)
def test_the_table_of_errors(epsilon):
    mechanism = MVU(epsilon=float(epsilon), interval=(-1.0, 1.0))
    found = (mechanism.mean_variance(), mechanism.worst_variance())
    np.testing.assert_allclose(found, MVU_33[epsilon], rtol=0.01)
    bits = best_bits(GeneralizedRR, epsilon=float(epsilon))
    response = GeneralizedRR(epsilon=float(epsilon), bits=bits, interval=(-1.0, 1.0))
    found = (response.mean_variance(), response.worst_variance())
    np.testing.assert_allclose(found, GRR_BEST[epsilon], rtol=0.01)


def test_best_bits_is_the_best():
    for criterion in ("mean", "worst"):
        bits = best_bits(GeneralizedRR, epsilon=4.0, criterion=criterion)
        errors = [
            getattr(GeneralizedRR(epsilon=4.0, bits=each), f"{criterion}_variance")() for each in range(1, 9)
        ]
        assert errors[bits - 1] == min(errors)
    assert best_bits(BitwiseRR, epsilon=1.0) == 1
    with pytest.raises(ValueError, match="criterion"):
        best_bits(GeneralizedRR, epsilon=1.0, criterion="median")
    with pytest.raises(ValueError, match="epsilon"):
        best_bits(GeneralizedRR, epsilon=0.0)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_mean_of_the_letters_is_the_point_by_the_integers(mechanism):
    (channel,) = mechanism.channels
    if not hasattr(channel, "weights"):
        return  # a window: its letters are tested with the numeric mechanisms
    low, high = mechanism.interval
    letters = [Fraction(letter) for letter in mechanism.letters.tolist()]
    for i, row in enumerate(channel.weights()):
        assert sum(row) == ONE
        mean = sum(Fraction(weight, ONE) * letter for weight, letter in zip(row, letters, strict=True))
        point = Fraction(low) + Fraction(high - low) * Fraction(i, len(channel.weights()) - 1)
        assert abs(mean - point) < Fraction(1, 10**9)
    epsilon = max(
        log_ratio(max(column), min(column)) for column in zip(*channel.weights(), strict=True) if max(column)
    )
    assert epsilon == mechanism.guarantee.feature
    assert mechanism.guarantee.holds


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_simulation_agrees_with_the_closed_forms(mechanism):
    # n = 200,000 letters, fixed key; bounds of 5 standard errors (alpha = 6e-7 each, were the key drawn).
    n = 200_000 // mechanism.features
    low, high = mechanism.interval
    x = np.full((n, mechanism.features), low + 0.37 * (high - low))
    values = mechanism.randomize(x, rng=7, output="values")
    variance = float(mechanism.variance(x[0, 0]))
    assert abs(values.mean() - x[0, 0]) < 5 * math.sqrt(variance / values.size)
    fourth = np.mean(np.square(np.square(values - x[0, 0])))
    assert abs(np.var(values) - variance) < 5 * math.sqrt(fourth / values.size)
    reports = mechanism.randomize(x, rng=8)
    estimate = mechanism.estimate_mean(reports)
    assert (np.abs(estimate.value - x[0]) < 5 * estimate.stderr).all()


@pytest.mark.slow
@pytest.mark.parametrize("bits", range(1, 9))
def test_reports_pack_to_their_bits(bits):
    made = [
        GeneralizedRR(epsilon=2.0, bits=bits),
        BitwiseRR(epsilon=2.0, bits=bits),
        MVU(epsilon=0.0, output_bits=bits),
    ]
    for mechanism in made:
        assert mechanism.report_bits == bits
        packed = mechanism.randomize(np.linspace(0, 1, 8000), rng=3, output="packed")
        assert packed.nbytes == 1000 * bits
        codes = mechanism.randomize(np.linspace(0, 1, 8000), rng=3)
        np.testing.assert_array_equal(bitldp.unpack(packed, bits, 8000), codes)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_answer_depends_on_the_key_alone(mechanism):
    x = np.random.default_rng(0).uniform(-1, 2, (70_000 // mechanism.features, mechanism.features))
    first = mechanism.randomize(x, rng=5, threads=1)
    second = copy.deepcopy(mechanism).randomize(x, rng=5, threads=3)
    if mechanism.k is None:
        first, second = (first,), (second,)
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_copies_are_equal(mechanism):
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    np.testing.assert_array_equal(again.probabilities(), mechanism.probabilities())
    assert repr(mechanism).startswith(type(mechanism).__name__)
    assert mechanism != MVU(epsilon=1.0, interval=(0.0, 2.0))


def test_no_budget_means_no_information():
    for mechanism in (MVU(epsilon=0.0), GeneralizedRR(epsilon=0.0, bits=2), BitwiseRR(epsilon=0.0, bits=2)):
        assert mechanism.guarantee.record == 0.0
        assert len(np.unique(mechanism.probabilities().round(12))) == 1
        reports = mechanism.randomize(np.zeros(10), rng=1)
        with pytest.raises(ValueError, match="epsilon 0"):
            mechanism.decode(reports)


def test_a_record_is_split_and_composed():
    mechanism = MVU(epsilon=4.0, features=4)
    assert 3.99 < mechanism.guarantee.record <= 4.0
    assert mechanism.guarantee.feature <= 1.0
    np.testing.assert_array_equal(mechanism.letters, MVU(epsilon=1.0).letters)
    assert mechanism.report_bits == 12


def test_bitwise_answers_are_those_of_each_bit():
    epsilon, bits = 1.5, 3
    mechanism = BitwiseRR(epsilon=epsilon, bits=bits)
    keep = 1 / (1 + math.exp(-epsilon / bits))
    one = np.array([[keep, 1 - keep], [1 - keep, keep]])
    table = np.kron(np.kron(one, one), one)
    np.testing.assert_allclose(mechanism.probabilities(), table, rtol=1e-12)
    assert math.isclose(mechanism.guarantee.bit, epsilon / bits, rel_tol=1e-9)
    assert MVU(epsilon=epsilon).worst_variance() < mechanism.worst_variance()


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 50.0, 300.0])
def test_extreme_budgets_keep_the_promise(epsilon):
    for mechanism in (BitwiseRR(epsilon=epsilon, bits=3), GeneralizedRR(epsilon=epsilon, bits=3)):
        assert mechanism.guarantee.record <= epsilon
    assert BitwiseRR(epsilon=epsilon, bits=3).guarantee.record > min(epsilon, 30.0) * (1 - 1e-6)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-3, 20.0), st.integers(1, 5), st.floats(-100, 100), st.floats(0.01, 100))
@example(epsilon=12.246091882407933, bits=1, low=0.0, length=1.0)  # rounded letters hold it above the budget
def test_one_bit_is_duchis_mechanism(epsilon, bits, low, length):
    interval = (low, low + length)
    one = MVU(epsilon=epsilon, input_bits=bits, output_bits=1, interval=interval)
    other = bitldp.Duchi(epsilon=epsilon, interval=interval)
    scale = float(np.abs(other.letters).max())
    np.testing.assert_allclose(one.letters, other.letters, rtol=1e-9, atol=1e-9 * scale)
    assert math.isclose(one.worst_variance(), other.worst_variance(), rel_tol=1e-6)


@pytest.mark.parametrize(
    ("kind", "options", "error", "match"),
    [
        (MVU, {"input_bits": 0}, ValueError, "input_bits"),
        (MVU, {"output_bits": 9}, ValueError, "output_bits"),
        (MVU, {"output_bits": True}, TypeError, "output_bits"),
        (MVU, {"objective": "least"}, ValueError, "objective"),
        (MVU, {"epsilon": -1.0}, ValueError, "epsilon"),
        (MVU, {"epsilon": 1e-6}, ValueError, "epsilon"),
        (MVU, {"interval": (1.0, 0.0)}, ValueError, "interval"),
        (MVU, {"spend": "all"}, ValueError, "spend"),
        (GeneralizedRR, {"bits": 9}, ValueError, "bits"),
        (BitwiseRR, {"bits": 2.0}, TypeError, "bits"),
        (MetricMVU, {"metric": None}, TypeError, "metric"),
        (MetricMVU, {"metric": -1.0}, ValueError, "metric"),
        (MetricMVU, {"metric": np.ones((2, 2))}, ValueError, "metric"),
        (MetricMVU, {"epsilon": 0.0}, ValueError, "epsilon"),
        (MetricMVU, {"input_bits": 7}, ValueError, "input_bits"),
        (MetricMVU, {"spend": "sample"}, ValueError, "spend"),
        (MetricMVU, {"k": 1}, ValueError, "k"),
        (MetricMVU, {"unit": "feature"}, ValueError, "unit"),
        (MetricMVU, {"clip": 1}, TypeError, "clip"),
    ],
)
def test_bad_parameters_are_named(kind, options, error, match):
    with pytest.raises(error, match=match):
        kind(**{"epsilon": 1.0, **options})


def test_bad_inputs_are_refused():
    mechanism = MVU(epsilon=1.0, clip=False)
    with pytest.raises(ValueError, match="index"):
        mechanism.randomize(np.array([0.5, 1.5]))
    with pytest.raises(ValueError, match="x"):
        MVU(epsilon=1.0).randomize(np.array([np.nan]))
    with pytest.raises(ValueError, match="reports"):
        mechanism.decode(np.array([8]))


@pytest.mark.slow
def test_a_metric_is_kept_by_the_integers(near):
    rows = weights(near)
    for i in range(4):
        for k in range(4):
            exact = max(log_ratio(max(a, b), min(a, b)) for a, b in zip(rows[i], rows[k], strict=True))
            assert exact == near.distance_epsilon(i, k)
            assert exact <= 2.0 * abs(i - k) / 3 * (1 + 1e-12)
    assert near.guarantee.record == near.distance_epsilon(0, 3) <= near.guarantee.claimed == 2.0
    assert "metric" in near.guarantee.given
    assert "metric" in str(near.guarantee)
    with pytest.raises(ValueError, match="second"):
        near.distance_epsilon(0, 4)


def test_the_slope_covers_numbers_between_the_points(near):
    laws = near.probabilities()
    x = np.linspace(0, 1, 301)
    cell = np.minimum((x * 3).astype(int), 2)
    share = (x * 3 - cell)[:, None]
    logs = np.log(laws[cell] * (1 - share) + laws[cell + 1] * share)
    steepest = (np.abs(np.diff(logs, axis=0)).max(axis=1) / np.diff(x)).max()
    assert 0.9 * near.slope < steepest <= near.slope * (1 + 1e-9)
    assert near.slope > 2.0  # dither costs something
    # The guarantee says which numbers its epsilon is for, and which slope holds for all.
    said = near.guarantee.given
    assert f"2 times the distance of points of the grid, and {near.slope:.6g} times the length" in said
    assert said in str(near.guarantee)


@pytest.mark.slow
def test_a_metric_in_the_units_of_the_interval(near):
    wide = MetricMVU(epsilon=1.0, input_bits=2, output_bits=2, interval=(-1.0, 1.0), features=3)
    np.testing.assert_allclose(wide.probabilities(), near.probabilities(), rtol=1e-12)
    assert math.isclose(wide.slope, near.slope / 2, rel_tol=1e-12)
    assert wide.guarantee.claimed == 6.0  # three features, each up to a distance of 2
    assert wide.guarantee.holds
    table = MetricMVU(epsilon=2.0, input_bits=2, output_bits=2, **UNIT, metric=lambda x, y: abs(x - y))
    assert table == pickle.loads(pickle.dumps(table))
    assert not table.metric.flags.writeable
    assert math.isclose(table.mean_variance(), near.mean_variance(), rel_tol=1e-2)


@pytest.mark.parametrize("mechanism", [MVU(epsilon=1.0, features=2), BitwiseRR(epsilon=1.0, bits=2)], ids=str)
def test_the_audit_knows_the_law(mechanism):
    found = audit(mechanism, n=20_000, rng=2)
    assert found.passed
    assert found.lower > 0.7 * mechanism.guarantee.record


def test_the_audit_passes_a_metric(near):
    assert audit(near, n=20_000, rng=2).passed


def test_designs_are_made_once(monkeypatch):
    MVU(epsilon=3.0, interval=(0.0, 7.0))
    monkeypatch.setattr(design, "_solve", None)
    assert MVU(epsilon=3.0, interval=(0.0, 8.0)).letters[-1] > 8.0


@pytest.mark.slow
@pytest.mark.parametrize(("power", "inputs", "outputs"), [(2.0, 4, 4), (3.0, 4, 3), (2.0, 6, 1), (1.5, 4, 3)])
def test_where_the_shortest_way_leads_over_other_points(power, inputs, outputs, tmp_path, monkeypatch):
    """The farthest points are nearer than their distance: letters must reach far, and do."""
    monkeypatch.setenv("BITLDP_CACHE", str(tmp_path))
    mechanism = MetricMVU(epsilon=5.0, metric=power, input_bits=inputs, output_bits=outputs, **UNIT)
    rows, points = mechanism.probabilities(), np.linspace(0.0, 1.0, 1 << inputs)
    np.testing.assert_allclose(rows @ mechanism.letters, points, atol=1e-9)
    apart = np.abs(points[:, None] - points) ** power
    used = rows[:, (rows > 0.0).any(axis=0)]
    ratios = np.log(used[:, None, :] / used[None, :, :]).max(axis=2)
    assert (ratios <= 5.0 * apart + 1e-12).all()
    # A step costs what it may, so that the ends are as far apart as the way between them, nearly.
    assert mechanism.guarantee.record > (0.9 if outputs > 1 else 0.8) * 5.0 * (len(points) - 1) * apart[0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MVU, MetricMVU, GeneralizedRR, BitwiseRR])
def test_the_interval_is_that_of_all_numeric_mechanisms(kind):
    mechanism = kind(epsilon=1.0)
    assert mechanism.interval == bitldp.Duchi(epsilon=1.0).interval == (-1.0, 1.0)
    assert mechanism.outside(np.array([-1.0, -0.5, 1.0, 1.5, -7.0])) == 2
