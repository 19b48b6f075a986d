"""Conversion between Flower's records of arrays and arrays of any framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from bitldp.federated.wire.arrays import to_numpy

__all__ = ["from_record", "to_record"]


def to_record(arrays: Mapping[str, Any] | Sequence[Any]) -> ArrayRecord:
    """Return a record of arrays of any framework; Flower itself takes NumPy's and torch's alone.

    Parameters
    ----------
    arrays : mapping of str to array, or sequence of arrays
        NumPy, torch, jax, or anything that `to_numpy` takes. Those of a sequence get the keys "0", "1", ...

    Returns
    -------
    flwr.app.ArrayRecord
        Shapes and dtypes as they were.

    Raises
    ------
    TypeError
        For what is no array, or an array of objects.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.federated import from_record, to_record
    >>> record = to_record({"weight": np.ones((2, 3), np.float32)})
    >>> from_record(record)["weight"].shape
    (2, 3)
    """
    named = arrays if isinstance(arrays, Mapping) else {str(i): each for i, each in enumerate(arrays)}
    plain = {name: to_numpy(each) for name, each in named.items()}
    for name, array in plain.items():
        if array.dtype.kind not in "fiub":
            raise TypeError(
                f"arrays: {name!r} has dtype {array.dtype}; floats, integers and bools are allowed"
            )
    return ArrayRecord({name: Array(array) for name, array in plain.items()})


def from_record(record: ArrayRecord) -> dict[str, NDArray[Any]]:
    """Return the arrays of a record by name, as NumPy arrays that ``jax.numpy.asarray`` and others take."""
    return {name: array.numpy() for name, array in record.items()}
