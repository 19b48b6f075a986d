"""Records of numbers and categories under one budget: estimates, variance, refusals."""

from __future__ import annotations

import pickle

import bitldp
import numpy as np
import pytest
from bitldp import MixedRecord

N = 60_000


def drawn(rng, sizes):
    """Return categories that are not alike: those below the middle are thrice as frequent."""
    table = np.stack([rng.integers(0, size, N) for size in sizes], axis=1)
    common = np.stack([rng.integers(0, -(-size // 2), N) for size in sizes], axis=1)
    return np.where(rng.random((N, len(sizes))) < 0.5, table, common)


MIXED = [{}, {"k": 2}, {"spend": "split"}, {"number": "Piecewise", "oracle": "GRR"}]


@pytest.mark.parametrize("options", MIXED)
def test_numbers_and_categories(options):
    """60,000 records: means and frequencies within 5 standard errors; those of means as the variance says."""
    mechanism = MixedRecord([3, 20], features=2, epsilon=3.0, interval=(0.0, 4.0), **options)
    rng = np.random.default_rng(7)
    x, y = rng.beta(2.0, 5.0, (N, 2)) * 4.0, drawn(rng, (3, 20))
    reports = mechanism.randomize(x, y, rng=rng)
    mean, shares = mechanism.estimate_mean(reports), mechanism.estimate_frequencies(reports)
    assert mean.n == N
    assert (np.abs(mean.value - x.mean(axis=0)) < 5.0 * mean.stderr).all()
    said = mechanism.variance(x, y)
    assert (mean.stderr < 1.05 * np.sqrt((said[0].mean(axis=0) + x.var(axis=0)) / N)).all()
    for place, (estimate, size) in enumerate(zip(shares, (3, 20), strict=True)):
        truth = np.bincount(y[:, place], minlength=size) / N
        assert (np.abs(estimate.value - truth) < 5.0 * estimate.stderr).all()
    accumulator = mechanism.accumulator()
    for start in (0, 20_000, 40_000):
        accumulator.update(tuple(each[start : start + 20_000] for each in reports))
    again, _ = type(accumulator).from_json(accumulator.to_json(), mechanism).estimate()
    np.testing.assert_allclose(again.value, mean.value, rtol=1e-12)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert 2.9999 < mechanism.guarantee.record <= 3.0
    assert 0.0 < mechanism.mean_variance() <= mechanism.worst_variance()


def test_variance_of_a_number_that_is_sampled():
    """As of any sampled coordinate: what is not sampled counts as the middle."""
    mechanism = MixedRecord([2, 2], features=3, epsilon=2.0, number="Hybrid")
    alone = bitldp.Hybrid(epsilon=2.0, features=5, spend="sample", k=1)
    x = np.array([[0.5, -1.0, 0.0]])
    np.testing.assert_allclose(mechanism.variance(x, [[0, 1]])[0], alone.variance(x), rtol=1e-12)


def test_mixed_refusals():
    mechanism = MixedRecord([3, 4], features=2, epsilon=1.0)
    with pytest.raises(ValueError, match=r"^y: must be of 5 records"):
        mechanism.randomize(np.zeros((5, 2)), np.zeros((4, 2), int))
    with pytest.raises(ValueError, match=r"^x: shape"):
        mechanism.randomize(np.zeros((5, 3)), np.zeros((5, 2), int))
    with pytest.raises(TypeError, match=r"^y: must be an array of integers"):
        mechanism.randomize(np.zeros((5, 2)), np.zeros((5, 2)))
    with pytest.raises(ValueError, match=r"^out: not supported"):
        mechanism.randomize(np.zeros((5, 2)), np.zeros((5, 2), int), out=np.zeros(3))
    with pytest.raises(ValueError, match=r"^number: must be one of"):
        MixedRecord([3], features=2, epsilon=1.0, number="Duchy")
    for spend in ("sample", "split"):
        strict = MixedRecord([2], features=1, epsilon=1.0, spend=spend, clip=False)
        for seed in range(10):  # whatever is drawn
            with pytest.raises(ValueError, match="clip=False refuses"):
                strict.randomize([[3.0]], [[0]], rng=seed)
    assert mechanism.outside([[2.0, 0.5], [-2.0, 1.0]]) == 2
