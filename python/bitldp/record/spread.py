"""Variance of what a record's report is worth for one of its attributes, with the sampling of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["indicators", "indicators_worst", "mean_indicators"]


def indicators(oracle: Any, x: NDArray[Any], size: int, scale: float) -> NDArray[np.float64]:
    """Return the variance of the indicators of a category that is released with the chance 1/scale.

    A letter L is unbiased for the indicator i, and worth 1/size + scale (L - 1/size) where the attribute is
    sampled, 1/size where it is not: unbiased again, with the second moment about 1/size scaled. Frequencies
    that are estimated from the attribute's own reports have the same variance where all categories are as
    frequent, and less where they are not.
    """
    own = (x[..., None] == np.arange(size)) - 1.0 / size
    found: NDArray[np.float64] = scale * oracle.variance(x) + (scale - 1.0) * np.square(own)
    return found


def mean_indicators(oracles: Sequence[Any], sizes: Any, scale: float) -> float:
    """Return the mean of `indicators` over the categories of all attributes and uniform inputs."""
    both = Counter(zip(oracles, sizes, strict=True))
    means = [scale * one.mean_variance() + (scale - 1.0) * (1.0 - 1.0 / size) / size for one, size in both]
    weights = [size * times for (_, size), times in both.items()]
    return float(np.average(means, weights=weights))


def indicators_worst(oracle: Any, size: int, scale: float) -> float:
    """Return the largest of `indicators`."""
    return float(indicators(oracle, np.zeros(1, np.int64), size, scale).max())
