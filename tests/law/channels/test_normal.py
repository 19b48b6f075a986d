"""The certificate that integer noise is no worse than normal noise: all tests of small laws, d = 1, 2, 3."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bitldp.channels import normal
from bitldp.channels.noise import gaussian_weights, skellam_weights
from bitldp.channels.normal import slope_of_noise, slope_of_rows
from bitldp.privacy import ONE

stats = pytest.importorskip("scipy.stats")

STEPS = 4  # of the inputs: integers from 0
PLACES = np.unique(np.concatenate([np.linspace(0.0, STEPS, 17), np.array([1e-5, 1.4, 2.50001])]))
ROUNDING = 1e-9  # of quantiles of chances near 0 and 1


def spread(seed, reach):
    """Return symmetric noise of any shape, with no heavy middle."""
    parts = np.random.default_rng(seed).dirichlet(np.full(reach + 1, 2.0))
    half = [int(part * 2**63) for part in parts[1:]]
    return [*half[::-1], ONE - 2 * sum(half), *half]


NOISE = {
    "gaussian": gaussian_weights(1.5, 6, lumped=True),
    "narrow": gaussian_weights(0.7, 5, lumped=True),
    "wide": gaussian_weights(4.0, 9, lumped=True),
    "skellam": skellam_weights(1.2, 6, lumped=True),
    "any": spread(1, 6),
    "another": spread(4, 7),
}


def law(weights, x):
    """Return the law of the reports at x, clamped so that the ends of the noise stand for all beyond them."""
    reach = len(weights) // 2
    low, high = STEPS - reach, reach  # every input reaches both
    chances = np.zeros(high - low + 1)
    below = min(int(x), STEPS - 1)
    for n, share in ((below, 1.0 - (x - below)), (below + 1, x - below)):
        for place, weight in enumerate(weights):
            chances[min(max(n + place - reach, low), high) - low] += share * (weight / ONE)
    return chances


def apart(one, other):
    """Return the least mu whose normal laws are told apart as well as these: over all tests, exactly.

    By the lemma of Neyman and Pearson the best tests are the reports of highest likelihood ratio; between
    them both chances are mixed, and the power of a normal test is concave in its size.
    """
    with np.errstate(divide="ignore"):
        order = np.argsort(-(other / one), kind="stable")
    # summed from either end, so that the rare ends keep their digits
    size, power = np.cumsum(one[order])[:-1], np.cumsum(other[order])[:-1]
    rest, left = np.cumsum(one[order][::-1])[::-1][1:], np.cumsum(other[order][::-1])[::-1][1:]
    quantiles = [
        np.where(up < 0.5, stats.norm.ppf(up), -stats.norm.ppf(down))
        for up, down in ((size, rest), (power, left))
    ]
    return float((quantiles[1] - quantiles[0]).max())


@pytest.mark.parametrize("weights", NOISE.values(), ids=NOISE)
def test_one_coordinate(weights):
    """All pairs of places, at and between integers: never more than the slope, and somewhere all of it."""
    slope, laws = slope_of_noise(weights), [law(weights, x) for x in PLACES]
    found = []
    for (x, one), (y, other) in itertools.permutations(zip(PLACES.tolist(), laws, strict=True), 2):
        mu = apart(one, other)
        assert mu <= slope * abs(x - y) + ROUNDING
        found.append(mu / abs(x - y))
    assert max(found) >= 0.95 * slope  # near pairs come to it


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("name", ["gaussian", "wide", "any"])
def test_more_coordinates(name, count):
    """Products of laws, by all their reports: at most the slope times the Euclidean distance."""
    weights = NOISE[name]
    slope, rng = slope_of_noise(weights), np.random.default_rng(count)
    nearest = 0.0
    for _ in range(40):
        start = rng.uniform(0.0, STEPS, count)
        end = rng.uniform(0.0, STEPS, count) if rng.random() < 0.5 else start + rng.normal(0.0, 0.05, count)
        end = np.clip(end, 0.0, STEPS)
        one, other = np.ones(1), np.ones(1)
        for x, y in zip(start, end, strict=True):
            one, other = np.outer(one, law(weights, x)).ravel(), np.outer(other, law(weights, y)).ravel()
        distance = float(np.linalg.norm(end - start))
        mu = apart(one, other)
        assert mu <= slope * distance + ROUNDING
        nearest = max(nearest, mu / distance)
    assert nearest >= 0.5 * slope


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_tables(seed):
    """Any table whose rows are dithered; a step of it is a coordinate's step."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(4, 3.0), 3)
    slope, places = slope_of_rows(rows), np.linspace(0.0, 2.0, 41)

    def at(x):
        below = min(int(x), 1)
        return (1.0 - x + below) * rows[below] + (x - below) * rows[below + 1]

    found = []
    for x, y in itertools.permutations(places.tolist(), 2):
        mu = apart(at(x), at(y))
        assert mu <= slope * abs(x - y) + ROUNDING
        found.append(mu / abs(x - y))
    assert max(found) >= 0.9 * slope


def test_a_wrong_certificate_is_seen(monkeypatch):
    """Four per cent less, or sets of the wrong order."""
    weights, cut = NOISE["gaussian"], normal._cut
    true = slope_of_noise(weights)
    for name, wrong in (("_SLOPE_UP", 0.96), ("_cut", lambda at, gains, scores: cut(at, gains, -scores))):
        monkeypatch.setattr(normal, name, wrong)
        with pytest.raises(AssertionError):
            test_one_coordinate(weights)
        monkeypatch.undo()
    assert slope_of_noise(weights) == true
