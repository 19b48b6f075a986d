"""Conversion of any framework's arrays to NumPy, and of a model's arrays to one vector."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
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
    kept : tuple of str
        Names of the arrays that are never sent, in the order of `names`.

    Notes
    -----
    Only floating-point arrays that are not `kept` take coordinates. Others (counters, masks) are refused, or,
    with ``integers="keep"``, are never sent: the server keeps its own.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    kept: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        integers: Integers = "refuse",
        only: Sequence[str] = (),
        keep_local: Sequence[str] = (),
    ) -> Layout:
        """Return the layout of arrays.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            Of the model.
        integers : {"refuse", "keep"}
            What happens to arrays of integers or booleans: refused, or not sent, so that the server keeps its
            own.
        only : str or sequence of str
            Names of the arrays that are released, as patterns ("head.*", "*lora*"); each must match one.
            Empty: all. The others are never sent, and the server keeps its own; a reply may leave them out.
        keep_local : str or sequence of str
            Patterns of names that are never sent, such as "*running_*" for the statistics of batch
            normalisation, or the layers that a client keeps for itself.

        Raises
        ------
        TypeError, ValueError
            For an array that holds no floating-point numbers (with ``integers="keep"``: nor integers nor
            booleans), for a pattern that no name matches, and where no array has a coordinate.
        """
        sent = set(_matching("only", only, arrays)) if only else set(arrays)
        sent -= set(_matching("keep_local", keep_local, arrays))
        for name, array in arrays.items():
            if name not in sent:
                continue
            kinds = "f" if integers == "refuse" else "fiub"
            if array.dtype.kind not in kinds or array.ndim > _MOST_DIMENSIONS:
                hint = "; integers='keep' leaves them out" if array.dtype.kind in "iub" else ""
                raise TypeError(f"arrays: {name!r} has dtype {array.dtype}; floats are allowed{hint}")
        layout = cls(
            tuple(arrays),
            tuple(array.shape for array in arrays.values()),
            tuple(array.dtype.str for array in arrays.values()),
            tuple(name for name in arrays if name not in sent),
        )
        if layout.size == 0:
            raise ValueError("arrays: no floating-point coordinate in them to report")
        return layout

    def sends(self, name: str) -> bool:
        """Return whether an array takes coordinates of an update."""
        floating = np.dtype(self.dtypes[self.names.index(name)]).kind == "f"
        return floating and name not in self.kept

    def _coordinates(self, index: int) -> int:
        if not self.sends(self.names[index]):
            return 0
        return int(np.prod(self.shapes[index], dtype=np.int64))

    @property
    def size(self) -> int:
        """Number of coordinates of the vector."""
        return sum(self._coordinates(index) for index in range(len(self.names)))

    @property
    def digest(self) -> bytes:
        """Digest of 16 bytes that tells layouts apart."""
        kept = [self.kept] if self.kept else []  # without any, the digest is that of before there were any
        text = json.dumps([self.names, self.shapes, self.dtypes, *kept], separators=(",", ":"))
        return hashlib.sha256(text.encode()).digest()[:16]

    def flatten(self, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the floating-point arrays that are sent as one vector of float64.

        Arrays that are `kept` may be there or not; they are not looked at.

        Raises
        ------
        ValueError
            If names, shapes or dtypes are not those of the layout.
        """
        sent = tuple(name for name in self.names if name not in self.kept)
        if tuple(name for name in arrays if name not in self.kept) != sent:
            raise ValueError("arrays: the names are not those of the layout")
        vector = np.empty(self.size)
        start = 0
        for index, name in enumerate(self.names):
            if name in self.kept:
                continue
            array = arrays[name]
            if array.shape != self.shapes[index] or array.dtype.str != self.dtypes[index]:
                raise ValueError(
                    f"arrays: {self.names[index]!r} must have shape {self.shapes[index]} and dtype "
                    f"{self.dtypes[index]}, not {array.shape} and {array.dtype.str}"
                )
            count = self._coordinates(index)
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
        for index, name in enumerate(self.names):
            dtype = np.dtype(self.dtypes[index])
            if not self.sends(name):
                arrays[name] = np.array(kept[name])
                continue
            count = self._coordinates(index)
            part = vector[start : start + count].reshape(self.shapes[index])
            with np.errstate(over="ignore"):  # past the range of float16 is infinity, as in any assignment
                arrays[name] = part.astype(dtype)
            start += count
        return arrays


def _matching(option: str, patterns: Sequence[str], names: Iterable[str]) -> list[str]:
    """Return the names that any of some patterns matches; each must match one."""
    found: list[str] = []
    for pattern in patterns:
        matched = [name for name in names if fnmatchcase(name, pattern)]
        if not matched:
            raise ValueError(f"{option}: no array of the model has a name like {pattern!r}")
        found += matched
    return found


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
