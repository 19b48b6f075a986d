"""Arrays of a model as one vector: laid flat, cut into arrays again, clipped, and stepped along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Model", "flat", "in_ball", "shaped", "stepped"]

Model = list[NDArray[Any]]


def flat(arrays: Sequence[NDArray[Any]], rows: int = 0) -> NDArray[Any]:
    """Return the arrays as one vector, or as `rows` of them, where the arrays' first axis counts rows."""
    if rows:
        return np.concatenate([array.reshape(rows, -1) for array in arrays], axis=1)
    return np.concatenate([array.ravel() for array in arrays])


def shaped(vector: NDArray[Any], like: Sequence[NDArray[Any]]) -> Model:
    """Return the last axis of a vector, or of a table of them, cut into arrays of the shapes of `like`."""
    parts = np.split(vector, np.cumsum([array.size for array in like])[:-1], axis=-1)
    return [part.reshape(*vector.shape[:-1], *array.shape) for part, array in zip(parts, like, strict=True)]


def stepped(model: Sequence[NDArray[Any]], step: NDArray[Any]) -> Model:
    """Return a model less a step, in the model's dtypes."""
    return [
        (array - part).astype(array.dtype) for array, part in zip(model, shaped(step, model), strict=True)
    ]


def in_ball(rows: NDArray[Any], radius: float) -> NDArray[Any]:
    """Return rows, those outside the l2 ball scaled to it."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, radius / np.maximum(lengths, 1e-30)))
