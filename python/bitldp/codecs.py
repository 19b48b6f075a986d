"""Codecs: value to code and back, without any randomness that privacy rests on.

`FixedPoint` and `Grid` are the types of the extension module. `Categories` is a public dictionary of labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp import _checks
from bitldp._core import FixedPoint, Grid
from bitldp._mechanism import readonly

__all__ = ["Categories", "FixedPoint", "Grid"]


class Categories:
    """A public dictionary between labels and the integers 0 to N-1, in the given order.

    Parameters
    ----------
    labels : iterable
        The N >= 2 distinct labels, all numbers or all strings. They must be known beforehand: a dictionary
        learned from private records reveals which labels occur in them.

    Raises
    ------
    ValueError
        For fewer than two labels, repeated labels, or labels that are not one-dimensional.
    TypeError
        For labels that NumPy can only hold as objects.

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
        table = np.asarray(labels if isinstance(labels, np.ndarray) else list(labels))
        if table.ndim != 1:
            raise ValueError(f"labels: must be one-dimensional, got shape {table.shape}")
        if table.dtype.kind not in "biufUS":
            raise TypeError(f"labels: must be all numbers or all strings, not {table.dtype}")
        if len(table) < 2:
            raise ValueError(f"labels: at least 2 are needed, got {len(table)}")
        if table.dtype.kind == "f" and np.isnan(table).any():
            raise ValueError("labels: NaN equals nothing and cannot be a label")
        order = np.argsort(table, kind="stable")
        ordered = table[order]
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
        return isinstance(other, Categories) and np.array_equal(self._labels, other._labels)

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
            Labels, any shape.

        Returns
        -------
        ndarray
            Codes in the smallest unsigned dtype, same shape.

        Raises
        ------
        ValueError
            For a label outside the dictionary. The message gives its index, not the label.
        TypeError
            If `x` holds strings and the dictionary numbers, or the reverse.
        """
        array = np.asarray(x)
        if array.dtype.kind == "O":  # columns of strings often arrive as objects
            array = np.asarray(array.tolist())
        textual = self._sorted.dtype.kind in "US"
        if array.size and (array.dtype.kind not in "biufUS" or (array.dtype.kind in "US") != textual):
            raise TypeError(f"x: the labels are {self._sorted.dtype}, not {array.dtype}")
        if not array.size:
            return np.zeros(array.shape, self._order.dtype)
        place = np.minimum(np.searchsorted(self._sorted, array), len(self) - 1)
        unknown = self._sorted[place] != array
        if unknown.any():
            index = tuple(int(axis) for axis in np.unravel_index(int(np.argmax(unknown)), array.shape))
            raise ValueError(f"x: the label at index {index} is not one of the {len(self)} labels")
        codes: NDArray[Any] = self._order[place]
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
        labels: NDArray[Any] = self._labels[_checks.codes("codes", codes, len(self))]
        return labels
