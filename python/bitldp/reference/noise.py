"""Added noise in plain NumPy, as a careful engineer would write it: a baseline for speed and law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["discrete_laplace"]


def discrete_laplace(
    x: NDArray[Any], steps: int, epsilon: float, beyond: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Dither numbers of [-1, 1] to a grid, add two-sided geometric noise, and clamp.

    Parameters
    ----------
    x : ndarray of float
        Numbers in [-1, 1].
    steps : int
        Steps of the grid.
    epsilon : float
        Epsilon of a number, above zero.
    beyond : int
        Steps that the reports go beyond either end.
    rng : Generator
        Source of the dither and the noise.

    Returns
    -------
    ndarray of int64
        Codes from 0 to ``steps + 2 * beyond``.

    Notes
    -----
    The noise is the difference of two geometric numbers. Floats decide here, so no exact epsilon is claimed.
    """
    places = (x + 1.0) * (steps / 2.0)
    codes = np.floor(places + rng.random(x.shape, dtype=x.dtype)).astype(np.int64)
    success = -math.expm1(-epsilon / steps)
    noise = rng.geometric(success, x.shape) - rng.geometric(success, x.shape)
    reports: NDArray[np.int64] = np.clip(codes + noise + beyond, 0, steps + 2 * beyond)
    return reports
