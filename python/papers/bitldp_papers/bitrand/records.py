"""Records that BitRand trains on: scaled by what is public, released once, and the labels beside them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.keys import RandomSource
from bitldp.estimate import project_simplex
from bitldp.mechanism.base import Mechanism
from bitldp_papers.bitrand.mechanisms import BITWISE, largest_value
from bitldp_papers.bitrand.settings import BitRandSettings

__all__ = ["plain", "randomized", "release", "sources", "targets"]

Floats = NDArray[np.floating]


def plain(settings: BitRandSettings, x: Floats) -> NDArray[np.float32]:
    """Return features as a network without noise sees them: in [-1, 1], the range of the code."""
    share = settings.factor / 2.0**settings.integer_bits
    return np.clip(np.asarray(x) * share, -1.0, 1.0).astype(np.float32)


def sources(settings: BitRandSettings, x: Floats) -> NDArray[np.float32]:
    """Return features as their mechanism takes them: in the code's range, or in [-1, 1] for numbers."""
    inside = plain(settings, x)
    return inside * np.float32(2.0**settings.integer_bits) if settings.mechanism in BITWISE else inside


def release(settings: BitRandSettings, values: Floats, mechanism: Mechanism) -> NDArray[np.float32]:
    """Return released features divided by their public range, so that they lie in [-1, 1]."""
    return np.asarray(values / largest_value(mechanism, settings.integer_bits), np.float32)


def targets(mechanism: Mechanism, reports: NDArray[Any]) -> NDArray[Any]:
    """Return what released labels train as: classes, or the soft labels nearest to label-Laplace's vectors.

    The noisy vectors are projected to the simplex, which costs nothing: a cross-entropy of negative labels
    has no least value.
    """
    decoded: NDArray[Any] = np.asarray(mechanism.decode(reports))
    return project_simplex(decoded).astype(np.float32) if decoded.ndim == 2 else decoded


def randomized(settings: BitRandSettings, x: Floats, *, rng: RandomSource) -> NDArray[np.float32]:
    """Return features as clients' records are released: what a test on randomized records is of."""
    if not settings.private or settings.place == "updates":
        return plain(settings, x)
    mechanism = settings.features_mechanism(x.shape[1])
    randomize: Callable[..., Any] = mechanism.randomize
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one key for an experiment's test records, said in the settings
        values = randomize(sources(settings, x), rng=rng, output="values")
    return release(settings, values, mechanism)
