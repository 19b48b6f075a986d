"""Features that the linear classifier of `mvu` is given: pixels, or a public transform of the image.

The paper takes a scattering network's features (Oyallon and Mallat 2015, as of Tramer and Boneh 2020). In
their place stands a fixed random convolution: kernels drawn from a public seed, absolute values, means of
blocks, each image's features centred and scaled to length 1. It looks at nobody's data but the image's own.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from bitldp_papers.data import Dataset
from bitldp_papers.run.share import loaded

__all__ = ["FEATURES", "convolved", "inputs"]

FEATURES = ("features", "convolutions")
_KERNELS = 4
_SEED = 20220801
_BLOCKS = 4  # means of an image's side
_STEP = 4096  # images at once


@lru_cache(maxsize=4)
def inputs(name: str, features: str) -> tuple[Dataset, NDArray[np.float32], NDArray[np.float32]]:
    """Return a data set, and the features of its training and test part; a process computes them once.

    Raises
    ------
    ValueError
        For "convolutions" of records that are not square images.
    """
    data, train, test = loaded(name)
    if features == "features":
        return data, train, test
    return data, convolved(train), convolved(test)


def convolved(images: NDArray[Any]) -> NDArray[np.float32]:
    """Return the features of square images, each row of length 1.

    Parameters
    ----------
    images : ndarray, shape (n, side**2) or (n, 3 side**2)
        Grey, or in colour: row by row, the three channels of a pixel together.
    """
    channels = 1 if math.isqrt(images.shape[1]) ** 2 == images.shape[1] else 3
    side = math.isqrt(images.shape[1] // channels)
    if channels * side * side != images.shape[1] or side < 8:
        raise ValueError(
            f"features: {images.shape[1]} numbers are not a square image of 8 x 8 pixels or more"
        )
    width = max(3, round(side / 6))
    kernels = np.random.default_rng(_SEED).normal(size=(width, width, channels, _KERNELS)).astype(np.float32)
    kernels -= kernels.mean(axis=(0, 1), keepdims=True)  # an image of one colour has no features
    block = (side - width + 1) // _BLOCKS
    kept = block * _BLOCKS
    parts = []
    for start in range(0, len(images), _STEP):
        some = np.asarray(images[start : start + _STEP], np.float32).reshape(-1, side, side, channels)
        maps = np.abs(np.asarray(_convolution(some, kernels))[:, :kept, :kept])
        means = maps.reshape(len(some), _BLOCKS, block, _BLOCKS, block, _KERNELS).mean(axis=(2, 4))
        parts.append(means.reshape(len(some), -1))
    rows: NDArray[np.float32] = np.concatenate(parts)
    rows -= rows.mean(axis=1, keepdims=True)  # else all images point the same way
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))


@jax.jit
def _convolution(images: Any, kernels: Any) -> Any:
    form = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(images, kernels, (1, 1), "VALID", dimension_numbers=form)
