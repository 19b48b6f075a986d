"""Losses between candidates: named metrics, a named utility, or a caller's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Points: TypeAlias = NDArray[np.float64]
"""Candidates or inputs, shape (n, d)."""

Metric: TypeAlias = Callable[[Points, Points], NDArray[np.float64]]
"""Pairwise values of two sets of points, shape (len(a), len(b))."""

_EARTH_RADIUS_KM = 6371.0088  # mean radius, IUGG


def euclidean(a: Points, b: Points) -> NDArray[np.float64]:
    """Return Euclidean distances."""
    return np.sqrt(_summed(np.square, a, b))


def manhattan(a: Points, b: Points) -> NDArray[np.float64]:
    """Return Manhattan distances."""
    return _summed(np.abs, a, b)


def _summed(term: Any, a: Points, b: Points) -> NDArray[np.float64]:
    total = np.zeros((len(a), len(b)))
    for axis in range(a.shape[1]):  # one (n, n) table at a time
        total += term(a[:, axis, None] - b[None, :, axis])
    return total


def haversine(a: Points, b: Points) -> NDArray[np.float64]:
    """Return great-circle distances in km; points are (latitude, longitude) in degrees."""
    for points in (a, b):
        if points.shape[1] != 2 or (np.abs(points[:, 0]) > 90.0).any():
            raise ValueError(
                "metric: 'haversine' needs (latitude, longitude) pairs, latitudes of -90 to 90 degrees"
            )
    (lat_a, lon_a), (lat_b, lon_b) = np.radians(a.T), np.radians(b.T)
    half = (
        np.sin((lat_a[:, None] - lat_b) / 2.0) ** 2
        + np.cos(lat_a)[:, None] * np.cos(lat_b) * np.sin((lon_a[:, None] - lon_b) / 2.0) ** 2
    )
    distances: NDArray[np.float64] = 2.0 * _EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0)))
    return distances


def jaccard(a: Points, b: Points) -> NDArray[np.float64]:
    """Return generalized Jaccard (Tanimoto) similarities x.y/(x.x + y.y - x.y): the larger, the better."""
    for points in (a, b):
        if (points < 0.0).any() or not points.any(axis=1).all():
            raise ValueError("utility: 'jaccard' needs points with no negative coordinate, and none at zero")
    products = a @ b.T
    squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1)
    similarities: NDArray[np.float64] = products / (squares - products)
    return similarities


METRICS: dict[str, Metric] = {"euclidean": euclidean, "manhattan": manhattan, "haversine": haversine}
UTILITIES: dict[str, Metric] = {"jaccard": jaccard}


def named(argument: str, value: Any, names: dict[str, Metric]) -> Metric:
    """Return the function that a metric or utility argument means."""
    if callable(value):
        function: Metric = value
        return function
    if not isinstance(value, str) or value not in names:
        shown = repr(value) if isinstance(value, str) else type(value).__name__
        words = ", ".join(repr(name) for name in names)
        raise ValueError(
            f"{argument}: must be one of {words}, or a function of two arrays of points, got {shown}"
        )
    return names[value]


def table(argument: str, function: Metric, points: Points) -> NDArray[np.float64]:
    """Return the finite (N, N) table of a metric or utility between candidates."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        values = np.asarray(function(points, points), dtype=np.float64)
    if values.shape != (len(points), len(points)):
        raise ValueError(f"{argument}: must give a table of shape {(len(points),) * 2}, got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{argument}: must give finite values between all candidates")
    return values
