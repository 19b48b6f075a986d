"""Parameters of a mechanism as hashable values, as JSON, and in words; lasting names of classes."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
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
    if hasattr(value, "fingerprint") and not isinstance(value, type):
        return value.fingerprint()
    if callable(value):
        return name(value)
    return list(value) if isinstance(value, tuple) else value


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON values under the names of the constructor, for people."""
    return {name: plain(value) for name, value in parameters.items()}


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
    """Return a stable name of a callable, which may be an instance or a partial function.

    A class that stands as a parameter may be moved or renamed: its `_lasting` name is what it had at first.
    """
    named = function if hasattr(function, "__qualname__") else type(function)
    lasting: str = vars(named).get("_lasting", "")
    return lasting or f"{named.__module__}.{named.__qualname__}"


def short_name(kind: type) -> str:
    """Return the lasting name of a class without its module."""
    return str(vars(kind).get("_lasting", kind.__name__)).rpartition(".")[2]
