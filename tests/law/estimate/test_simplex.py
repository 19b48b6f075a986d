"""The projection to the simplex."""

from __future__ import annotations

import bitldp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

VECTOR = st.lists(st.floats(-50, 50), min_size=1, max_size=12)


@pytest.mark.slow
@given(VECTOR)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_projection_is_the_nearest_point(values):
    """On the simplex, and by the variational inequality (v - p).(s - p) <= 0 at every corner s."""
    point = bitldp.project_simplex(values)
    assert point.min() >= 0.0
    assert point.sum() == pytest.approx(1.0, abs=1e-9)
    away = np.array(values) - point
    assert np.all(away - away @ point <= 1e-9 * (1 + np.abs(values).max()))


def test_projection_of_points_and_rows():
    np.testing.assert_array_equal(bitldp.project_simplex([0.25, 0.75]), [0.25, 0.75])
    np.testing.assert_array_equal(bitldp.project_simplex([2.0, 0.0]), [1.0, 0.0])
    rows = np.random.default_rng(0).normal(size=(3, 4, 5))
    projected = bitldp.project_simplex(rows)
    assert projected.shape == rows.shape
    np.testing.assert_allclose(projected[2, 1], bitldp.project_simplex(rows[2, 1]), rtol=1e-15)


@pytest.mark.slow
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_projection_of_any_finite_vector(values):
    point = bitldp.project_simplex(values)
    assert point.min() >= 0.0
    assert abs(point.sum() - 1.0) <= 1e-12


def test_projection_of_large_vectors():
    np.testing.assert_array_equal(bitldp.project_simplex([1e17, 1e17, 0.0]), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(bitldp.project_simplex([1.7e308, -1.7e308]), [1.0, 0.0])
    many = np.random.default_rng(3).random(300_000) / 1e4 + 1e3
    assert abs(bitldp.project_simplex(many).sum() - 1.0) <= 1e-12


@pytest.mark.parametrize("bad", [0.5, [], [1.0, np.nan], [np.inf, 0.0]])
def test_projection_checks_its_input(bad):
    with pytest.raises(ValueError, match="values"):
        bitldp.project_simplex(bad)
