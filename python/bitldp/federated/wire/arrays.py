"""Conversion of any framework's arrays to NumPy, and of a model's arrays to one vector."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

Integers = Literal["refuse", "keep"]

_MOST_DIMENSIONS = 32


def to_numpy(array: Any) -> NDArray[Any]:
    """Return an array of any framework as a NumPy array, without a copy where that is possible.

    Parameters
    ----------
    array : array_like
        A NumPy array, or an object with ``__dlpack__`` or ``__array__`` (jax, torch, tensorflow, cupy on the
        CPU). A torch tensor that requires grad is detached, and one on a GPU is copied to the CPU.

    Returns
    -------
    ndarray

    Raises
    ------
    TypeError
        If the object is no array, or its dtype has no NumPy counterpart.
    """
    if isinstance(array, np.ndarray):
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError("array: a masked array is not allowed; fill or drop what is masked")
        return array
    for method in ("detach", "cpu"):  # torch, where __array__ refuses a tensor with a gradient or on a GPU
        if hasattr(array, method):
            array = getattr(array, method)()
    if hasattr(array, "__array__"):
        return np.asarray(array)
    if hasattr(array, "__dlpack__"):
        return np.from_dlpack(array)
    raise TypeError(f"array: must have __array__ or __dlpack__, which {type(array).__name__} has not")


@dataclass(frozen=True)
class Layout:
    """Names, shapes and dtypes of a model's arrays, and their places in one vector.

    Attributes
    ----------
    names : tuple of str
        Keys of the record.
    shapes : tuple of tuple of int
        Shape of each array; an empty one takes no coordinate.
    dtypes : tuple of str
        NumPy dtype strings.

    Notes
    -----
    Only floating-point arrays take coordinates. Others (counters, masks) are refused, or, with
    ``integers="keep"``, are never sent: the server keeps its own.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], integers: Integers = "refuse") -> Layout:
        """Return the layout of arrays.

        Raises
        ------
        TypeError, ValueError
            For an array that holds no floating-point numbers (with ``integers="keep"``: nor integers nor
            booleans), and where no array has a coordinate.
        """
        for name, array in arrays.items():
            kinds = "f" if integers == "refuse" else "fiub"
            if array.dtype.kind not in kinds or array.ndim > _MOST_DIMENSIONS:
                hint = "; integers='keep' leaves them out" if array.dtype.kind in "iub" else ""
                raise TypeError(f"arrays: {name!r} has dtype {array.dtype}; floats are allowed{hint}")
        layout = cls(
            tuple(arrays),
            tuple(array.shape for array in arrays.values()),
            tuple(array.dtype.str for array in arrays.values()),
        )
        if layout.size == 0:
            raise ValueError("arrays: no floating-point coordinate in them to report")
        return layout

    def _coordinates(self, place: int) -> int:
        if np.dtype(self.dtypes[place]).kind != "f":
            return 0
        return int(np.prod(self.shapes[place], dtype=np.int64))

    @property
    def size(self) -> int:
        """Number of coordinates of the vector."""
        return sum(self._coordinates(place) for place in range(len(self.names)))

    @property
    def digest(self) -> bytes:
        """Digest of 16 bytes that tells layouts apart."""
        text = json.dumps([self.names, self.shapes, self.dtypes], separators=(",", ":"))
        return hashlib.sha256(text.encode()).digest()[:16]

    def flatten(self, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the floating-point arrays as one vector of float64.

        Raises
        ------
        ValueError
            If names, shapes or dtypes are not those of the layout.
        """
        if tuple(arrays) != self.names:
            raise ValueError("arrays: the names are not those of the layout")
        vector = np.empty(self.size)
        start = 0
        for place, array in enumerate(arrays.values()):
            if array.shape != self.shapes[place] or array.dtype.str != self.dtypes[place]:
                raise ValueError(
                    f"arrays: {self.names[place]!r} must have shape {self.shapes[place]} and dtype "
                    f"{self.dtypes[place]}, not {array.shape} and {array.dtype.str}"
                )
            count = self._coordinates(place)
            if count:
                vector[start : start + count] = array.ravel()
            start += count
        return vector

    def restore(
        self, vector: NDArray[np.float64], kept: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[Any]]:
        """Return the arrays of a vector, in their shapes and dtypes; others are taken from `kept`."""
        arrays: dict[str, NDArray[Any]] = {}
        start = 0
        for place, name in enumerate(self.names):
            dtype = np.dtype(self.dtypes[place])
            if dtype.kind != "f":
                arrays[name] = np.array(kept[name])
                continue
            count = self._coordinates(place)
            part = vector[start : start + count].reshape(self.shapes[place])
            with np.errstate(over="ignore"):  # past the range of float16 is infinity, as in any assignment
                arrays[name] = part.astype(dtype)
            start += count
        return arrays


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
