"""Variance of what a record's report is worth for one of its attributes, with the sampling of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["indicators", "indicators_mean", "indicators_worst"]


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


def indicators_mean(oracle: Any, size: int, scale: float) -> float:
    """Return the mean of `indicators` over categories and uniform inputs."""
    return float(scale * oracle.mean_variance() + (scale - 1.0) * (1.0 - 1.0 / size) / size)


def indicators_worst(oracle: Any, size: int, scale: float) -> float:
    """Return the largest of `indicators`."""
    return float(indicators(oracle, np.zeros(1, np.int64), size, scale).max())
