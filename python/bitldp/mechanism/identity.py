"""What tells two mechanisms apart: their parameters as hashable values, as JSON, and in words."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.codecs import Categories


def frozen(value: Any) -> Hashable:
    """Return a parameter as a hashable value; of an array what tells it from others."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, digest(value))
    hashable: Hashable = value
    return hashable


def plain(value: Any) -> Any:
    """Return a parameter as a JSON value: arrays and labels as a digest, functions by name."""
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape), "dtype": value.dtype.str, "sha256": digest(value)}
    if isinstance(value, Categories):
        text = repr(value.labels.tolist())
        return {"labels": len(value), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    if callable(value):
        return name(value)
    return list(value) if isinstance(value, tuple) else value


def short(value: Any) -> str:
    """Return a parameter as a representation shows it."""
    if callable(value):
        return f"<{name(value)}>"
    if isinstance(value, np.ndarray):
        return f"<array {'x'.join(str(axis) for axis in value.shape)}>"
    return repr(value)


def digest(array: NDArray[Any]) -> str:
    """Return the SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def name(function: Any) -> str:
    """Return a stable name of a callable, which may be an instance or a partial function."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
