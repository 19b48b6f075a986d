"""Sampled signs: the law by enumeration, letters, the best number of signs, estimates, refusals."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from bitldp import SampledReports, SampledSigns
from bitldp._core import CHUNK
from bitldp.audit import audit
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the seeds are fixed
ONE = 1 << 64


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_epsilon_and_letters_by_enumeration(k, epsilon):
    mechanism = SampledSigns(k, k=k, epsilon=epsilon)
    law = mechanism.channel.probabilities()
    exact = np.log(law.max() / law.min())
    assert exact * (1 - 1e-12) <= mechanism.guarantee.record <= epsilon
    assert math.isclose(mechanism.guarantee.record, epsilon, rel_tol=1e-9)
    indices = np.tile(np.arange(k), (1 << k, 1))
    letters = mechanism.decode((indices, np.arange(1 << k)))
    corners = (np.arange(1 << k)[:, None] >> np.arange(k - 1, -1, -1) & 1) * 2.0 - 1.0
    np.testing.assert_allclose(law @ letters, corners, atol=1e-11)
    right = (1.0 + 1.0 / letters.max()) / 2.0
    np.testing.assert_allclose(mechanism.probabilities(), [[right, 1 - right], [1 - right, right]])


def test_vector_of_the_second_moment(vectors):
    case = vectors[25]
    inputs, expected = case["inputs"], case["expected"]
    mechanism = SampledSigns(inputs["d"], k=inputs["k"], epsilon=inputs["eps"])
    assert math.isclose(mechanism.worst_variance(), expected["kgrr"], rel_tol=1e-9)


@pytest.mark.parametrize(("features", "epsilon"), [(1, 1.0), (9, 0.2), (9, 5.0), (40, 12.0), (768, 8.0)])
def test_best_number_of_signs(features, epsilon):
    best = SampledSigns(features, epsilon=epsilon)
    every = [SampledSigns(features, k=k, epsilon=epsilon) for k in range(1, min(features, 20) + 1)]
    assert best.worst_variance() <= min(each.worst_variance() for each in every) * (1 + 1e-9)


def test_goodness_of_fit():
    """Chi-squared of symbols and of coordinates, n = 2^17, alpha = 1e-6."""
    mechanism, n = SampledSigns(5, k=2, epsilon=2.0), 1 << 17
    indices, symbols = mechanism.randomize(np.tile([1.0, -1.0, 1.0, -1.0, 1.0], (n, 1)), rng=8)
    truth = 2 * (indices[:, 0] % 2 == 0) + (indices[:, 1] % 2 == 0)
    share = mechanism.channel.high / ONE
    found = np.bincount(symbols ^ truth, minlength=4)
    assert oracle.p_value(found, [share, *[(1 - share) / 3] * 3]) > ALPHA
    assert oracle.p_value(np.bincount(indices.ravel(), minlength=5), [0.2] * 5) > ALPHA


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_and_variance(k, dtype):
    """Within 5 standard errors, and these within 5 % of the closed form's; n = 40,000."""
    mechanism, n = SampledSigns(6, k=k, epsilon=4.0, interval=(0.0, 10.0)), 40_000
    records = np.random.default_rng(11).uniform(0, 10, (n, 6)).astype(dtype)
    reports = mechanism.randomize(records, rng=21)
    estimate = mechanism.estimate_mean(reports)
    assert np.all(np.abs(estimate.value - records.mean(axis=0)) < 5 * estimate.stderr)
    total = mechanism.variance(records).mean(axis=0) + records.var(axis=0)
    np.testing.assert_allclose(estimate.stderr, np.sqrt(total / n), rtol=0.05)
    values = mechanism.randomize(records, rng=21, output="values")
    assert values.dtype == dtype
    np.testing.assert_allclose(values.mean(axis=0, dtype=np.float64), estimate.value, rtol=1e-5)
    left, right = mechanism.accumulator(), mechanism.accumulator()
    left.update((reports.indices[:99], reports.codes[:99]))
    right.update((reports.indices[99:], reports.codes[99:]))
    left.merge(type(right).from_json(right.to_json(), mechanism))
    np.testing.assert_allclose(left.estimate().value, estimate.value, rtol=1e-12)


def test_forms_threads_and_copies():
    mechanism = SampledSigns(9, k=4, epsilon=4.0)
    x = np.random.default_rng(1).uniform(-1.5, 1.5, (CHUNK, 9))
    reports = mechanism.randomize(x, rng=5)
    assert isinstance(reports, SampledReports)
    assert reports.indices.shape == (CHUNK, 4)
    assert reports.codes.shape == (CHUNK,)
    for threads in (1, 3):
        again = mechanism.randomize(x, rng=5, threads=threads)
        assert all(np.array_equal(a, b) for a, b in zip(reports, again, strict=True))
    copy = pickle.loads(pickle.dumps(mechanism))
    assert copy == mechanism
    assert hash(copy) == hash(mechanism)
    assert all(np.array_equal(a, b) for a, b in zip(reports, copy.randomize(x, rng=5), strict=True))
    packed = mechanism.randomize(x, rng=5, output="packed")
    assert 8 * sum(map(len, packed)) == CHUNK * mechanism.report_bits
    assert mechanism.outside(x) == np.count_nonzero(np.abs(x) > 1)


def test_nothing_is_said_at_epsilon_zero():
    mechanism = SampledSigns(6, epsilon=0.0)
    assert (mechanism.k, mechanism.guarantee.record) == (1, 0.0)
    reports = [mechanism.randomize(np.full((9, 6), x), rng=1) for x in (1.0, -1.0)]
    assert np.array_equal(reports[0].codes, reports[1].codes)
    with pytest.raises(ValueError, match="no unbiased decode"):
        mechanism.estimate_mean(reports[0])


@pytest.mark.parametrize(
    ("parameters", "error", "text"),
    [
        ({"k": 6}, ValueError, "k: must be between 1 and 5"),
        ({"k": 0}, ValueError, "k: "),
        ({"k": True}, TypeError, "k: "),
        ({"features": 0}, ValueError, "features: "),
        ({"epsilon": math.inf}, ValueError, "epsilon: "),
        ({"interval": (2.0, 1.0)}, ValueError, "interval: "),
        ({"clip": "no"}, TypeError, "clip: "),
    ],
)
def test_parameters_out_of_range(parameters, error, text):
    with pytest.raises(error, match=text):
        SampledSigns(**{"features": 5, "epsilon": 1.0, **parameters})


def test_bad_input_and_reports():
    mechanism = SampledSigns(5, k=2, epsilon=1.0)
    for x, error, text in [
        (np.zeros((2, 4)), ValueError, "x: shape"),
        (np.array([0.0, 0.0, 0.0, 0.0, np.nan]), ValueError, "x: the value at index .4.* is NaN"),
        (np.zeros((2, 5), bool), TypeError, "x: dtype bool"),
    ]:
        with pytest.raises(error, match=text):
            mechanism.randomize(x)
    with pytest.raises(ValueError, match="clip=False"):
        SampledSigns(5, k=2, epsilon=1.0, clip=False).randomize(np.full(5, 1.5))
    for reports, error, text in [
        (np.zeros(3, np.uint8), TypeError, "reports: must be a pair"),
        (([[0, 1]], [4]), ValueError, "reports.symbols: "),
        (([[0, 5]], [1]), ValueError, "reports.indices: "),
        (([[1, 1]], [1]), ValueError, "coordinate twice"),
        (([0, 1], [1]), ValueError, "reports: shapes"),
    ]:
        with pytest.raises(error, match=text):
            mechanism.decode(reports)


def test_audit_comes_near_the_exact_epsilon():
    found = audit(SampledSigns(6, epsilon=2.0), n=20_000, rng=1)
    assert 1.5 < found.lower <= 2.0
