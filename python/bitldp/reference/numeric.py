"""Unbiased letters of numbers in [-1, 1], in NumPy: the continuous laws of the papers.

They report letters and not codes: the papers' mechanisms have no other report. Each takes one uniform
float32 for each choice that the law has, and no more passes over the array than that takes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def duchi(x: NDArray[np.float32], epsilon: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Report C with probability 1/2 + x/(2C), else -C; C = (e^eps + 1)/(e^eps - 1).

    Parameters
    ----------
    x : ndarray of float32
        Numbers, any shape; those outside [-1, 1] are clipped to it.
    epsilon : float
        Above 0.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of float32
        Letters, same shape.

    Notes
    -----
    Source: Wang et al., "Collecting and analyzing multidimensional data with local differential privacy",
    ICDE 2019, Algorithm 1.
    """
    reach = np.float32(1.0 / math.tanh(epsilon / 2.0))
    return _duchi(np.clip(x, np.float32(-1.0), np.float32(1.0)), reach, rng)


def piecewise(x: NDArray[np.float32], epsilon: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Report a number of [-C, C], near x with probability t/(t + 1); t = e^(eps/2), C = (t + 1)/(t - 1).

    Parameters
    ----------
    x, epsilon, rng
        As of `duchi`.

    Returns
    -------
    ndarray of float32
        Letters, same shape.

    Notes
    -----
    Source: as `duchi`, Algorithm 2. Of the two uniforms that a number takes, one decides between near and
    far, and the other is the place in either.
    """
    return _piecewise(np.clip(x, np.float32(-1.0), np.float32(1.0)), epsilon, rng)


def hybrid(x: NDArray[np.float32], epsilon: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Report as `piecewise` with probability 1 - e^(-eps/2), else as `duchi`.

    Parameters
    ----------
    x, rng
        As of `duchi`.
    epsilon : float
        Above 0.61, where the paper mixes the two.

    Returns
    -------
    ndarray of float32
        Letters, same shape.
    """
    x = np.clip(x, np.float32(-1.0), np.float32(1.0))
    reach = np.float32(1.0 / math.tanh(epsilon / 2.0))
    coin = rng.random(x.shape, dtype=np.float32) < np.float32(-math.expm1(-epsilon / 2.0))
    return np.where(coin, _piecewise(x, epsilon, rng), _duchi(x, reach, rng))


def three_outputs(
    x: NDArray[np.float32], law: NDArray[np.float64], reach: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Report -C, 0 or C by a law that is linear between -1, 0 and 1.

    Parameters
    ----------
    x, rng
        As of `duchi`.
    law : ndarray of float64, shape (3, 3)
        P(letter | x) for x = -1, 0, 1, symmetric.
    reach : float
        C.

    Returns
    -------
    ndarray of float32
        Letters, same shape.

    Notes
    -----
    Source: Zhao et al., "Local differential privacy-based federated learning for Internet of Things", IEEE
    Internet of Things Journal 8 (2021). One uniform decides: low below P(-C | x), high from 1 - P(C | x) on.
    """
    x = np.clip(x, np.float32(-1.0), np.float32(1.0))
    size = np.abs(x)
    # P(-C | x) is linear on both sides of 0: a x + b |x| + c, and P(C | x) the same for -x.
    odd, even = (law[2, 0] - law[0, 0]) / 2.0, (law[2, 0] + law[0, 0]) / 2.0 - law[1, 0]
    sides = size * np.float32(even) + np.float32(law[1, 0])
    slope = x * np.float32(odd)
    uniform = rng.random(x.shape, dtype=np.float32)
    high: NDArray[np.float32] = (uniform >= 1.0 - sides + slope).astype(np.float32)
    high -= uniform < sides + slope
    high *= np.float32(reach)
    return high


def _duchi(x: NDArray[Any], reach: np.float32, rng: np.random.Generator) -> NDArray[np.float32]:
    chance = x * (np.float32(0.5) / reach) + np.float32(0.5)
    letters: NDArray[np.float32] = np.where(rng.random(x.shape, dtype=np.float32) < chance, reach, -reach)
    return letters


def _piecewise(x: NDArray[Any], epsilon: float, rng: np.random.Generator) -> NDArray[np.float32]:
    t = math.exp(epsilon / 2.0)
    reach = (t + 1.0) / (t - 1.0)
    width = np.float32(reach - 1.0)
    left = x * np.float32((reach + 1.0) / 2.0) - width / np.float32(2.0)
    inside = rng.random(x.shape, dtype=np.float32) < np.float32(t / (t + 1.0))
    position = rng.random(x.shape, dtype=np.float32)
    far = position * np.float32(reach + 1.0) - np.float32(reach)
    far += width * (far >= left)
    letters: NDArray[np.float32] = np.where(inside, left + position * width, far)
    return letters
