"""Read-only arrays, and the position of an entry in an array, in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray


def readonly(array: NDArray[Any]) -> NDArray[Any]:
    """Return a C-contiguous copy that cannot be written: a parameter, or a constant that is handed out."""
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def first(chosen: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first true entry."""
    return tuple(int(axis) for axis in np.unravel_index(int(np.argmax(chosen)), chosen.shape))


def position(chosen: NDArray[np.bool_]) -> str:
    """Return the position of the first true entry, in words."""
    return f"the value at index {first(chosen)}"


def fill(out: NDArray[Any], reports: NDArray[Any]) -> NDArray[Any]:
    """Copy reports into an array that the caller gave, once it is checked."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out: must be an array, not {type(out).__name__}")
    if out.shape != reports.shape or out.dtype != reports.dtype:
        raise ValueError(
            f"out: must have shape {reports.shape} and dtype {reports.dtype}, got {out.shape} and {out.dtype}"
        )
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError("out: must be C-contiguous and writable")
    np.copyto(out, reports)
    return out


@contextmanager
def zeros_if_refused(out: Any) -> Iterator[None]:
    """Fill an array that the caller gave with zeros where records are refused inside, as the core does."""
    try:
        yield
    except ValueError:
        if isinstance(out, np.ndarray) and out.flags.writeable:
            out.fill(0)
        raise
