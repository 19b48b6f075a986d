"""Reader of an accumulator's JSON, which checks every number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.documents import document

__all__ = ["MOST_REPORTS", "counts", "document", "integers", "moments", "numbers", "together", "whole"]

MOST_REPORTS = (1 << 63) - 1
"""The most reports of one accumulator: counts are 64-bit integers."""


def whole(value: Any) -> int:
    """Return a number of reports read from JSON, or raise ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_REPORTS:
        raise ValueError("text: the number of reports is damaged")
    return value


def numbers(value: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array of finite numbers read from JSON, or raise ValueError."""
    try:
        array = np.array(value)
    except (ValueError, OverflowError, RecursionError):  # ragged, too large, too deep
        array = np.array(None)
    if array.shape != shape or array.dtype.kind not in "if" or not np.isfinite(array).all():
        raise ValueError(f"text: must hold finite numbers of shape {shape}")
    return array


def counts(value: Any, shape: tuple[int, ...], n: int, *, exclusive: bool) -> NDArray[np.int64]:
    """Return the counts of n reports read from JSON, or raise ValueError.

    With `exclusive`, every report is counted once (in each feature), so that the counts add up to n.
    """
    array = numbers(value, shape)
    if array.dtype.kind != "i" or (array < 0).any() or (array > n).any():
        raise ValueError("text: the counts are damaged")
    rows = array.reshape(-1, shape[-1])
    if exclusive and any(sum(row.tolist()) != n for row in rows):  # Python's integers, which do not overflow
        raise ValueError("text: the counts are damaged: they do not add up to the number of reports")
    return array.astype(np.int64)


def integers(value: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return integers of zero or more read from JSON, of any size, or raise ValueError."""
    array = np.array(value, dtype=object) if isinstance(value, list) else np.array(None)
    if array.shape != shape or not all(type(each) is int and each >= 0 for each in array.flat):
        raise ValueError(f"text: must hold integers of shape {shape}, zero or more")
    return array


def moments(state: dict[str, Any], features: int, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and squared deviations of n reports read from JSON, or raise ValueError."""
    mean, m2 = (numbers(state.get(name), (features,)).astype(np.float64) for name in ("mean", "m2"))
    if (m2 < 0.0).any() or (n <= 1 and m2.any()):
        raise ValueError("text: the squared deviations are damaged")
    if n == 0 and mean.any():
        raise ValueError("text: the mean is damaged: there are no reports")
    return mean, m2


def together(name: str, mine: int, more: int) -> int:
    """Return the sum of two numbers of reports; refuse one above the limit."""
    if mine + more > MOST_REPORTS:
        raise ValueError(f"{name}: with these there would be more than {MOST_REPORTS} reports")
    return mine + more
