"""Epsilon of one bit a coordinate, l1 and l2 balls: never below all pairs of records, and near it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bitldp.compression import VectorMVU
from bitldp.compression.ball import bounds, joint


def enumerated(rows, features, power, positive, count):
    """Return the largest loss over all reports and all pairs of records of a grid of the ball."""
    low = 0.0 if positive else -1.0
    places = np.linspace(low, 1.0, count)
    steps = (places - low) / (1.0 - low) * (len(rows) - 1)
    below = np.clip(np.floor(steps).astype(int), 0, len(rows) - 2)
    share = (steps - below)[:, None]
    logs = np.log((1.0 - share) * rows[below] + share * rows[below + 1])
    records = np.array(list(itertools.product(range(count), repeat=features)))
    records = records[(np.abs(places[records]) ** power).sum(axis=1) <= 1.0 + 1e-12]
    worst = 0.0
    for report in itertools.product(range(2), repeat=features):
        chances = sum(logs[records[:, index], bit] for index, bit in enumerate(report))
        worst = max(worst, float(chances.max() - chances.min()))
    return worst


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("norm", "above"), [("l1", 1e-3), ("l2", 0.07)])
@pytest.mark.parametrize("features", [1, 2, 3])
def test_it_is_that_of_all_pairs_of_records(features, norm, above, positive):
    for epsilon in (1.0, 4.0):
        mechanism = VectorMVU(
            features, epsilon=epsilon, norm=norm, input_bits=3, output_bits=1, positive=positive
        )
        rows = mechanism.probabilities()
        true = enumerated(rows, features, mechanism._power, positive, 81 if features < 3 else 41)
        assert true <= mechanism.guarantee.record <= true * (1.0 + above)
        assert mechanism.guarantee.record <= epsilon


def test_any_law_of_two_values_is_bounded():
    """Crooked ones, too, whose worst inputs are inside the interval."""
    rng = np.random.default_rng(5)
    for _ in range(6):
        heads = rng.uniform(0.05, 0.95, 5)
        rows = np.stack([heads, 1.0 - heads], axis=1)
        for power in (1, 2):
            assert enumerated(rows, 2, power, False, 61) <= joint.joint(rows, power, 1.0, 2)


def test_one_price_for_both_records_was_too_much():
    mechanism = VectorMVU(2, epsilon=4.0, norm="l1", input_bits=3, output_bits=1)
    rows = mechanism.probabilities()
    assert bounds.record(rows, np.inf, 1, 1.0, 2) > 1.4 * mechanism.guarantee.record


def test_a_capacity_that_is_too_small_is_found():
    """Planted: of one record alone."""
    rows = VectorMVU(2, epsilon=4.0, norm="l1", input_bits=3, output_bits=1).probabilities()
    assert joint.joint(rows, 1, 0.8, 2) < enumerated(rows, 2, 1, False, 201)
