"""Parameters as values that compare, that JSON has, and that a repr shows."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["frozen", "plain", "short"]


def _digest(array: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def frozen(value: Any) -> Hashable:
    """Return a value that compares by content."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, _digest(value))
    hashable: Hashable = value
    return hashable


def plain(value: Any) -> Any:
    """Return a JSON value; arrays as a digest, functions by name."""
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape), "dtype": value.dtype.str, "sha256": _digest(value)}
    if callable(value):
        return _name(value)
    return list(value) if isinstance(value, tuple) else value


def _name(function: Any) -> str:
    """Return a stable name of a callable, which may be an instance or a partial function."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def short(value: Any) -> str:
    """Return a value as a repr shows it."""
    if callable(value):
        return f"<{_name(value)}>"
    if isinstance(value, np.ndarray):
        return f"<array {'x'.join(str(axis) for axis in value.shape)}>"
    return repr(value)
