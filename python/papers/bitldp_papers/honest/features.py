"""Public features of images: a function of one image alone, so that no privacy is spent on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEATURES", "edges", "pixels", "unit"]

FEATURES = ("edges", "pixels")

_SIDE = 8  # of pooled pixels
_DIRECTIONS = 4
_BLOCK = 1 << 12  # images at once
_TINY = 1e-9

Array = NDArray[np.float32]


def unit(x: Array) -> Array:
    """Return rows scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x / np.maximum(lengths, _TINY), np.float32)


def pixels(images: Array) -> Array:
    """Return square roots of pixels pooled to 8 x 8, less their mean, of length 1.

    Parameters
    ----------
    images : ndarray of float32, shape (n, side, side)
        Pixels in [0, 1].

    Returns
    -------
    ndarray of float32, shape (n, 64) or (n, side * side) where that is less
    """
    side = images.shape[1]
    pool = _areas(min(_SIDE, side), side)
    pooled = np.sqrt(np.maximum(pool @ images @ pool.T, 0.0)).reshape(len(images), -1)
    return unit(pooled - pooled.mean(axis=1, keepdims=True))


def edges(images: Array) -> Array:
    """Return square roots of how much of an edge runs in each of four directions, by place, of length 1.

    Slopes of neighbouring pixels are dealt to the two nearest directions, and summed over windows that
    overlap by half; each direction has its mean taken off. Source: histograms of oriented gradients (Dalal
    and Triggs, CVPR 2005), in place of the scattering features of Tramer and Boneh, "Differentially private
    learning needs better features", ICLR 2021.

    Parameters
    ----------
    images : ndarray of float32, shape (n, side, side)
        Pixels in [0, 1].

    Returns
    -------
    ndarray of float32, shape (n, 4 * places**2)
        Places are a fourth of the side, at least 4.
    """
    side = images.shape[1]
    places = max(4, side // 4)
    window = _windows(places, side)
    found = np.empty((len(images), _DIRECTIONS, places, places), np.float32)
    for start in range(0, len(images), _BLOCK):
        part = images[start : start + _BLOCK]
        across, down = np.zeros_like(part), np.zeros_like(part)
        across[:, :, 1:-1] = part[:, :, 2:] - part[:, :, :-2]
        down[:, 1:-1] = part[:, 2:] - part[:, :-2]
        turn = np.mod(np.arctan2(down, across) / np.float32(np.pi) * _DIRECTIONS, _DIRECTIONS)
        steep = np.hypot(across, down)
        for direction in range(_DIRECTIONS):
            apart = np.abs(turn - direction)
            near = np.maximum(0.0, 1.0 - np.minimum(apart, _DIRECTIONS - apart))
            found[start : start + _BLOCK, direction] = window @ (steep * near) @ window.T
    rooted = np.sqrt(np.maximum(found, 0.0)).reshape(len(images), _DIRECTIONS, -1)
    return unit((rooted - rooted.mean(axis=2, keepdims=True)).reshape(len(images), -1))


def _areas(count: int, side: int) -> Array:
    """Return the shares of pixels in `count` parts of equal length, shape (count, side)."""
    ends = np.linspace(0.0, side, count + 1)
    places = np.arange(side)
    shares = np.minimum(places + 1, ends[1:, None]) - np.maximum(places, ends[:-1, None])
    return np.asarray(np.maximum(shares, 0.0) * count / side, np.float32)


def _windows(count: int, side: int) -> Array:
    """Return triangular windows, each as wide as two parts, shape (count, side)."""
    centres = (np.arange(count) + 0.5) * side / count
    apart = np.abs(np.arange(side) + 0.5 - centres[:, None]) * count / side
    return np.asarray(np.maximum(0.0, 1.0 - apart), np.float32)
