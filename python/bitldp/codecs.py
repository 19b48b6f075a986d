"""Codecs between values and codes. Privacy does not depend on them.

`FixedPoint` and `Grid` are the types of the extension module. `Categories` is a public dictionary of labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import FixedPoint, Grid
from bitldp.base import checks
from bitldp.base.arrays import first, readonly

__all__ = ["Categories", "FixedPoint", "Grid"]

_FAMILIES = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str", "S": "bytes"}
_INT64_MAX = (1 << 63) - 1


class Categories:
    """Public dictionary between labels and the integers 0 to N-1, in the given order.

    Parameters
    ----------
    labels : iterable
        The N >= 2 distinct labels in order, all of one type: bool, int, float, str or bytes. They must be
        known beforehand: a dictionary learned from private records reveals which labels occur in them.

    Raises
    ------
    ValueError
        For fewer than two labels, repeated labels, NaN, labels that are not one-dimensional, or integers that
        neither int64 nor uint64 holds.
    TypeError
        For labels of different types, or of another type, or in a set, which has no order.

    Notes
    -----
    A lookup is a binary search, so its time depends on the label, as with any dictionary.

    Examples
    --------
    >>> from bitldp import Categories
    >>> colours = Categories(["red", "green", "blue"])
    >>> colours.encode(["blue", "red"])
    array([2, 0], dtype=uint8)
    >>> colours.decode([1]).tolist()
    ['green']
    """

    __slots__ = ("_labels", "_order", "_sorted")

    def __init__(self, labels: Iterable[Any]) -> None:
        if isinstance(labels, (set, frozenset)):
            raise TypeError("labels: must be a sequence, since codes are positions in it; a set has no order")
        table = _labels("labels", labels if isinstance(labels, np.ndarray) else list(labels))
        if table.ndim != 1:
            raise ValueError(f"labels: must be one-dimensional, got shape {table.shape}")
        if len(table) < 2:
            raise ValueError(f"labels: at least 2 are needed, got {len(table)}")
        if table.dtype.kind == "f" and np.isnan(table).any():
            raise ValueError("labels: NaN cannot be a label, since it does not equal itself")
        order = np.argsort(table, kind="stable")
        ordered = table[order]
        if table.dtype.kind in "iu":
            ordered = ordered.astype(table.dtype.kind + "8")
        if (ordered[1:] == ordered[:-1]).any():
            raise ValueError("labels: must be distinct")
        self._labels: NDArray[Any] = readonly(table)
        self._order: NDArray[Any] = order.astype(np.min_scalar_type(len(table) - 1))
        self._sorted: NDArray[Any] = ordered

    @property
    def labels(self) -> NDArray[Any]:
        """The labels by code; read-only."""
        return self._labels

    def __len__(self) -> int:
        """Return the number of labels."""
        return len(self._labels)

    def __eq__(self, other: object) -> bool:
        """Compare the labels and their order."""
        return (
            isinstance(other, Categories)
            and _family(self._labels) == _family(other._labels)
            and self._labels.tolist() == other._labels.tolist()
        )

    def __hash__(self) -> int:
        """Hash the labels."""
        return hash(tuple(self._labels.tolist()))

    def __repr__(self) -> str:
        """Return the type and the number of labels."""
        return f"Categories({len(self)} labels)"

    def __reduce__(self) -> tuple[type[Categories], tuple[NDArray[Any]]]:
        """Pickle by the labels."""
        return Categories, (np.array(self._labels),)

    def encode(self, x: Any) -> NDArray[Any]:
        """Look up the code of each label.

        Parameters
        ----------
        x : array_like
            Labels, any shape, of the same type as those of the dictionary. Integers are looked up as
            integers, with all their digits. Columns of pandas or polars, categoricals and dictionary arrays
            work, too, as does anything that NumPy can view as an array of labels.

        Returns
        -------
        ndarray
            Codes in the smallest unsigned dtype, same shape.

        Raises
        ------
        ValueError
            For a label outside the dictionary. The message gives its index, not the label.
        TypeError
            If `x` holds anything of another type than the dictionary.
        """
        return self._encode("x", x)

    def _encode(self, name: str, x: Any) -> NDArray[Any]:
        """Look up the code of each label, as `encode` does; errors call the argument `name`."""
        array = _labels(name, x)
        if not array.size:
            return np.zeros(array.shape, self._order.dtype)
        if _family(array) != _family(self._sorted):
            raise TypeError(f"{name}: must hold {_family(self._sorted)} labels, not {_family(array)}")
        unknown = np.zeros(array.shape, np.bool_)
        if array.dtype.kind in "iu":  # NumPy compares int64 with uint64 as floats
            if array.dtype.kind != self._sorted.dtype.kind:
                unknown = array > _INT64_MAX if array.dtype.kind == "u" else array < 0
            array = array.astype(self._sorted.dtype.kind + "8")
        position = np.minimum(np.searchsorted(self._sorted, array), len(self) - 1)
        unknown |= self._sorted[position] != array
        if unknown.any():
            index = first(unknown)
            raise ValueError(f"{name}: the label at index {index} is not one of the {len(self)} labels")
        codes: NDArray[Any] = self._order[position]
        return codes

    def decode(self, codes: Any) -> NDArray[Any]:
        """Return the label of each code.

        Parameters
        ----------
        codes : array_like of int
            Codes in [0, N), any shape.

        Returns
        -------
        ndarray
            Labels, same shape.

        Raises
        ------
        ValueError, TypeError
            For a code outside [0, N), or for anything but integers.
        """
        labels: NDArray[Any] = self._labels[checks.codes("codes", codes, len(self))]
        return labels


def _family(labels: NDArray[Any]) -> str:
    """Return the name of the type that an array's labels are of."""
    return _FAMILIES[labels.dtype.kind]


def _labels(name: str, values: Any) -> NDArray[Any]:
    """Return labels as an array of one type; nothing is converted from one type to another."""
    array = checks.plain(name, values) if hasattr(values, "__array__") else np.array(values, dtype=np.object_)
    if array.dtype.kind != "O":
        if array.dtype.kind not in _FAMILIES:
            raise TypeError(f"{name}: must be bool, int, float, str or bytes, not {array.dtype}")
        return array
    items = array.ravel().tolist()
    kinds = {_kind(each) for each in set(map(type, items))}
    if len(kinds) > 1 or not kinds <= set(_FAMILIES.values()):
        raise TypeError(
            f"{name}: must be all of one type (bool, int, float, str or bytes), not "
            + ", ".join(sorted(kinds))
        )
    if "int" not in kinds:
        return np.array(items).reshape(array.shape)
    low, high = min(items), max(items)
    if low < -_INT64_MAX - 1 or high > (_INT64_MAX if low < 0 else 2 * _INT64_MAX + 1):
        raise ValueError(f"{name}: integers must all fit in int64, or all in uint64")
    return array.astype(np.uint64 if high > _INT64_MAX else np.int64)


def _kind(kind: type[Any]) -> str:
    """Return the type of label that a Python or NumPy scalar type is, or its own name if it is none."""
    for types, name in (
        ((bool, np.bool_), "bool"),
        ((int, np.integer), "int"),
        ((float, np.floating), "float"),
        ((str,), "str"),
        ((bytes,), "bytes"),
    ):
        if issubclass(kind, types):
            return name
    return kind.__name__
