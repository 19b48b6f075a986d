"""Post-processing of frequencies: the maximum of the likelihood, Norm-Sub, and what they say of it."""

from __future__ import annotations

import bitldp
import numpy as np
import pytest

N = 40_000


def log_likelihood(counts, law, frequencies):
    """Return ln P(counts) but for a constant; reports that did not come do not count."""
    met = counts > 0
    return float(counts[met] @ np.log((frequencies @ law)[met]))


def test_the_maximum_is_one():
    """No other frequencies are likelier: not the truth, the projection, or 500 others near the maximum."""
    rng = np.random.default_rng(1)
    mechanism = bitldp.GRR(6, epsilon=1.0)
    truth = np.array([0.55, 0.3, 0.15, 0.0, 0.0, 0.0])
    reports = mechanism.randomize(rng.choice(6, N, p=truth), rng=rng)
    law, counts = mechanism.probabilities(), np.bincount(reports, minlength=6)
    found = bitldp.maximum_likelihood(counts, law)
    best = log_likelihood(counts, law, found)
    near = found + 0.01 * rng.dirichlet(np.ones(6), 500) - 0.01 * found
    others = [truth, mechanism.estimate_frequencies(reports, project=True).value, *near]
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert max(log_likelihood(counts, law, each) for each in others) <= best + 1e-3


def test_inside_the_simplex_the_maximum_is_the_unbiased_estimate():
    """With a square law and no frequency below zero, the likelihood is largest where the means are met."""
    mechanism = bitldp.BRR(7, epsilon=3.0, m=1)
    counts = np.array([900, 800, 700, 600, 500, 400, 300])
    unbiased = np.linalg.solve(mechanism.probabilities().T, counts / counts.sum())
    assert unbiased.min() > 0.0
    found = bitldp.maximum_likelihood(counts, mechanism.probabilities(), tolerance=1e-9)
    np.testing.assert_allclose(found, unbiased, atol=1e-5)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (bitldp.GRR(5, epsilon=2.0, features=3), lambda rng: rng.integers(0, 2, (N, 3))),
        (bitldp.Exponential(9, epsilon=3.0), lambda rng: rng.integers(2, 5, N)),
        (bitldp.Piecewise(epsilon=4.0), lambda rng: rng.choice([-0.5, 0.25], N)),
        (bitldp.GRR(["a", "b", "c"], epsilon=1.0), lambda rng: np.array(["a", "c"])[rng.integers(0, 2, N)]),
    ],
    ids=["columns", "table of a law", "numbers", "labels"],
)
def test_any_mechanism_with_a_table(mechanism, values):
    """N = 40,000: the mean of the maximum is within 5 standard errors of that of the truth."""
    rng = np.random.default_rng(3)
    x = values(rng)
    found = bitldp.likeliest_frequencies(mechanism, mechanism.randomize(x, rng=rng))
    assert found.n == N
    assert found.value.min() >= 0.0
    np.testing.assert_allclose(found.value.sum(axis=-1), 1.0, rtol=1e-12)
    if isinstance(mechanism, bitldp.Piecewise):
        mean = found.value @ mechanism.points
        assert abs(mean - x.mean()) < 5 * np.sqrt(mechanism.worst_variance() / N)
    elif mechanism.columns == 3:
        assert found.value.shape == (3, 5)
        np.testing.assert_allclose(
            found.value[:, :2], 0.5, atol=5 * mechanism.variance([0]).max() ** 0.5 / 200
        )
    elif found.labels is not None:
        assert found.labels.tolist() == ["a", "b", "c"]
        assert str(found).splitlines()[1].split()[0] == "a"
    else:
        assert found.value[2:5].sum() > 0.9


@pytest.mark.statistical
def test_it_says_that_it_is_biased():
    mechanism = bitldp.GRR(4, epsilon=1.0)
    found = bitldp.likeliest_frequencies(mechanism, mechanism.randomize(np.zeros(500, int), rng=1))
    assert np.isnan(found.stderr).all()
    assert "maximum likelihood: biased, without standard errors" in str(found)
    assert "±" not in str(found) + found._repr_html_()
    with pytest.raises(ValueError, match="one by maximum likelihood"):
        found.confidence_interval()
    # nobody has them: the unbiased estimates are below zero about half of the time, these never
    many = [mechanism.randomize(np.zeros(500, int), rng=seed) for seed in range(200)]
    rare = np.mean([bitldp.likeliest_frequencies(mechanism, each).value[1:] for each in many])
    assert rare > 0.005


def test_it_does_not_stop_early():
    law = bitldp.GRR(40, epsilon=0.2).probabilities()
    counts = np.arange(1, 41)
    with pytest.raises(RuntimeError, match="not within 1e-12 of its maximum after 2 rounds"):
        bitldp.maximum_likelihood(counts, law, tolerance=1e-12, rounds=2)


@pytest.mark.parametrize(
    ("counts", "law", "message"),
    [
        ([0, 0], np.eye(2), "counts: at least one report"),
        ([1, 2, 3], np.eye(2), "counts: the last axis must be of length 2"),
        ([1, -2], np.eye(2), "counts: must be finite, zero or more"),
        ([1, 2], [[0.5, 0.4], [0.5, 0.5]], "law: every row must have the sum 1"),
        ([1, 2], [[0.5, np.nan], [0.5, 0.5]], "law: must be a table"),
        ([1, 2], [[1.0, 0.0], [1.0, 0.0]], "counts: there are reports that no value can have"),
    ],
)
def test_what_does_not_fit_is_refused(counts, law, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        bitldp.maximum_likelihood(counts, law)


def test_reports_without_a_table_are_refused():
    for mechanism in (bitldp.OUE(5, epsilon=1.0), bitldp.SampledSigns(4, epsilon=2.0)):
        with pytest.raises(TypeError, match="has no table of the codes that it reports"):
            bitldp.likeliest_frequencies(mechanism, np.zeros((3, 5), np.uint8))
    mechanism = bitldp.GRR(5, epsilon=1.0)
    with pytest.raises(ValueError, match="reports: at least one"):
        bitldp.likeliest_frequencies(mechanism, np.zeros(0, np.uint8))
    with pytest.raises(ValueError, match="outside"):
        bitldp.likeliest_frequencies(mechanism, [7])


def test_norm_sub_is_the_projection_at_a_total():
    values = np.random.default_rng(0).normal(0.2, 0.5, (3, 8))
    np.testing.assert_allclose(bitldp.norm_sub(values), bitldp.project_simplex(values), rtol=1e-14)
    counts = bitldp.norm_sub(500.0 * values, 500.0)
    np.testing.assert_allclose(counts, 500.0 * bitldp.project_simplex(values), rtol=1e-12)
    # as it was published: what is below zero becomes zero, and all others are lowered alike
    kept = counts > 0.0
    lowered = (500.0 * values - counts)[0][kept[0]]
    np.testing.assert_allclose(lowered, lowered[0], rtol=1e-9)
    with pytest.raises(ValueError, match="total: must be above zero"):
        bitldp.norm_sub([1.0], 0.0)


def test_a_guarantee_in_a_notebook():
    holds = bitldp.GRR(4, epsilon=1.0).guarantee._repr_html_()
    assert "<th>exact epsilon per record</th><td>1</td>" in holds
    assert "holds" in holds
    with pytest.warns(bitldp.PrivacyClaimWarning):
        broken = bitldp.FRR(100, epsilon=1.0, calibration="paper").guarantee
    assert "does NOT hold" in broken._repr_html_()
    assert "<th>given</th><td>one-hot input</td>" in bitldp.OUE(4, epsilon=1.0).guarantee._repr_html_()
