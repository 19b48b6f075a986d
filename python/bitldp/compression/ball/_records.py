"""Records of a ball before their release: checked, and scaled to the ball where they are outside."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.base.arrays import place

__all__ = ["check_finite", "check_shape", "inside", "limited", "norms"]

_TINY = float(np.finfo(np.float64).tiny)
_NEAR = 1.0 + 2.0**-20  # a record this near to the ball is not refused: float32 has its rounding


def norms(x: ArrayLike, features: int, power: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return checked records as float64 and their l1 or l2 norms, shape (..., 1)."""
    records = check_finite(x, features).astype(np.float64)
    # scaled first, so that no square leaves the range of doubles
    top = np.maximum(np.abs(records).max(axis=-1, keepdims=True), _TINY)
    shares = np.abs(records / top)
    if power == 1:
        lengths = shares.sum(axis=-1, keepdims=True)
    else:
        lengths = np.sqrt(np.square(shares).sum(axis=-1, keepdims=True))
    with np.errstate(over="ignore"):  # an infinite norm is one beyond the ball
        return records, lengths * top


def inside(x: ArrayLike, features: int, power: int, radius: float, clip: bool) -> NDArray[np.float64]:
    """Return checked records in the ball: those outside are scaled to it, or refused."""
    records, lengths = norms(x, features, power)
    beyond = lengths > radius
    if not beyond.any():
        return records
    if not clip and (lengths > radius * _NEAR).any():
        index = int(np.argmax(lengths > radius * _NEAR))
        raise ValueError(
            f"x: the record at index {index} is outside the ball of radius {radius}, which clip=False refuses"
        )
    top = np.maximum(np.abs(records).max(axis=-1, keepdims=True), _TINY)
    shares = records / top
    if power == 1:
        within = np.abs(shares).sum(axis=-1, keepdims=True)
    else:
        within = np.sqrt(np.square(shares).sum(axis=-1, keepdims=True))
    scaled = shares * (radius / np.maximum(within, 1.0))
    return np.where(beyond, scaled, records)


def limited(x: ArrayLike, features: int, low: float, high: float, clip: bool) -> NDArray[np.float64]:
    """Return checked records whose coordinates are clipped to an interval, or refused."""
    records = check_finite(x, features).astype(np.float64)
    slack = (_NEAR - 1.0) * max(abs(each) for each in (low, high) if math.isfinite(each))
    near = (records >= low - slack) & (records <= high + slack)
    if not clip and not near.all():
        where = place(~near)
        raise ValueError(f"x: {where} is outside [{low}, {high}], which clip=False refuses")
    return np.clip(records, low, high)


def check_shape(name: str, shape: tuple[int, ...], features: int) -> None:
    """Refuse another shape than that of records of so many features."""
    if len(shape) not in (1, 2) or shape[-1] != features:
        raise ValueError(f"{name}: shape must be (n, {features}) or ({features},), got {shape}")


def check_finite(x: ArrayLike, features: int) -> NDArray[Any]:
    """Return records as a float array, all finite; an error gives an index, never a value."""
    values = checks.numbers("x", x)
    if values.dtype not in (np.float32, np.float64):
        raise TypeError(f"x: dtype {values.dtype} is not allowed; float32 and float64 are")
    check_shape("x", values.shape, features)
    if not np.isfinite(values).all():
        raise ValueError(f"x: {place(~np.isfinite(values))} is not finite")
    return values
