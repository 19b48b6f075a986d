"""Read-only arrays, and the place of an entry in an array, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    pass


def readonly(array: NDArray[Any]) -> NDArray[Any]:
    """Return a C-contiguous copy that cannot be written: a parameter, or a constant that is handed out."""
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def place(chosen: NDArray[np.bool_]) -> str:
    """Return the place of the first true entry, in words."""
    index = tuple(int(axis) for axis in np.unravel_index(int(np.argmax(chosen)), chosen.shape))
    return f"the value at index {index}"
