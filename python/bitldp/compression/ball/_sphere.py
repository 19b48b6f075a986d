"""Directions of the sphere that do not depend on the data, and their coordinates in few bits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bitldp._core import CHUNK, Coins
from bitldp.release.base import Source
from bitldp.release.draws import _words

__all__ = ["blocks", "coordinate", "directions", "quantized", "second_moment"]

_SMOOTH = 64  # dimensions from which on the density of a coordinate is smooth over a step of the grid
_NODES = 32
_ENTRIES = 1 << 20  # numbers of a block, about


def _width(features: int) -> int:
    """Return the words of a stream that a record takes: a power of two, so that blocks begin with chunks."""
    return max(2, 1 << (features - 1).bit_length())


def blocks(records: int, features: int) -> list[slice]:
    """Return which records are drawn together."""
    size = max(1, CHUNK // _width(features))
    size *= max(1, _ENTRIES // (size * _width(features)))
    return [slice(start, min(start + size, records)) for start in range(0, records, size)]


def _block(key: Source, part: slice, features: int, first_chunk: int) -> NDArray[np.uint64]:
    """Return the words of some records, shape (records, width)."""
    width = _width(features)
    if isinstance(key, Coins):  # every record has a stream of its own
        key = key.taken(np.arange(part.start, part.stop, dtype=np.int64), 0)
        return _words(key, len(key) * width, 0).reshape(-1, width)
    words = _words(key, (part.stop - part.start) * width, first_chunk * width + part.start * width // CHUNK)
    return words.reshape(-1, width)


def directions(key: Source, part: slice, features: int, first_chunk: int) -> NDArray[np.float64]:
    """Return uniform vectors of the unit sphere, shape (records, features): normal ones over their norms.

    By Box and Muller, "A note on the generation of random normal deviates", 1958.
    """
    uniform = (
        (_block(key, part, features, first_chunk) >> np.uint64(11)).astype(np.float64) + 0.5
    ) * 2.0**-53
    half = uniform.shape[1] // 2
    radius, angle = np.sqrt(-2.0 * np.log(uniform[:, :half])), 2.0 * math.pi * uniform[:, half:]
    normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)[:, :features]
    unit: NDArray[np.float64] = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return unit


def quantized(
    key: Source, vectors: NDArray[np.float64], part: slice, points: int, first_chunk: int
) -> NDArray[np.int64]:
    """Return numbers of [-1, 1] dithered, without bias, to the indices of so many equidistant points."""
    features = vectors.shape[1]
    words = _block(key, part, features, first_chunk)[:, :features]
    places = np.clip((vectors + 1.0) * ((points - 1) / 2.0), 0.0, points - 1.0)
    low = np.minimum(np.floor(places), points - 2.0)
    upper = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 < places - low
    return (low + upper).astype(np.int64)


def coordinate(features: int) -> float:
    """Return E|w_1| of a uniform vector w of the unit sphere: Gamma(d/2)/(sqrt(pi) Gamma((d + 1)/2))."""
    return math.exp(math.lgamma(features / 2.0) - math.lgamma((features + 1.0) / 2.0)) / math.sqrt(math.pi)


def second_moment(features: int, points: int) -> float:
    """Return E[y^2] of a coordinate of a uniform vector of the sphere, dithered to so many points of [-1, 1].

    1/d, and f (1 - f) steps squared of the dither, f being the place within a step: 1/6 on average where the
    density is smooth over a step, as it is but for few dimensions.
    """
    step = 2.0 / (points - 1)
    if features == 1:
        return 1.0
    if features >= _SMOOTH:
        return 1.0 / features + step * step / 6.0
    # w = sin(t) has the density cos(t)^(d - 2), up to a factor, between -pi/2 and pi/2
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    edges = np.arcsin(np.linspace(-1.0, 1.0, points))
    middle, half = (edges[1:] + edges[:-1]) / 2.0, np.diff(edges) / 2.0
    angles = middle[:, None] + half[:, None] * nodes
    mass = half[:, None] * weights * np.cos(angles) ** (features - 2)
    places = (np.sin(angles) + 1.0) / step
    share = places - np.floor(places)
    return 1.0 / features + step * step * float((mass * share * (1.0 - share)).sum() / mass.sum())
