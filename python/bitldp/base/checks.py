"""Checks of public parameters: each error names the argument and what is allowed, never a private value."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.arrays import first

MOST = (1 << 32) - 1
"""The most features, categories or candidates: the core counts them in 32 bits."""

_SHOWN_BITS = 128


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int between `low` and `high`, or raise."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: must be an integer, not bool")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: must be an integer, not {type(value).__name__}") from None
    if number < low or (high is not None and number > high):
        allowed = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ValueError(f"{name}: must be {allowed}, got {_shown(number)}")
    return number


def count(name: str, value: Any, least: int, most: int = MOST) -> int:
    """Return `value` as a count of at least `least` that fits where it is used, or raise."""
    if type(value) is int and least <= value <= most:
        return value
    number = integer(name, value, least)
    if number > most:
        raise ValueError(f"{name}: must be at most {most}, got {_shown(number)}")
    return number


def _shown(number: int) -> str:
    """Return a number's digits; of a huge one (which Python may refuse to spell) its length."""
    return str(number) if number.bit_length() <= _SHOWN_BITS else f"a number of {number.bit_length()} bits"


def real(name: str, value: Any) -> float:
    """Return `value` as a finite float, or raise."""
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise TypeError(f"{name}: must be a real number, not {type(value).__name__}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: must be a real number, not {type(value).__name__}") from None
    except OverflowError:
        raise ValueError(f"{name}: must be finite in double precision; it is too large") from None
    if not math.isfinite(number):
        raise ValueError(f"{name}: must be finite, got {number}")
    return number


def budget(name: str, value: Any) -> float:
    """Return a privacy budget: a finite float, zero or more."""
    if type(value) is float and 0.0 <= value < math.inf:
        return value
    number = real(name, value)
    if not number >= 0.0:
        raise ValueError(f"{name}: must be zero or more, got {number}")
    return number


def positive(name: str, value: Any) -> float:
    """Return a finite float above zero, or raise."""
    number = real(name, value)
    if not number > 0.0:
        raise ValueError(f"{name}: must be above zero, got {number}")
    return number


def chance(name: str, value: Any) -> float:
    """Return a probability above 0 and below 1, or raise."""
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name}: must be above 0 and below 1, got {number}")
    return number


def pair(name: str, value: Any) -> tuple[float, float]:
    """Return a pair (low, high) of finite floats, low below high, or raise."""
    ends = shape(name, value)
    if ends != (2,):
        raise ValueError(f"{name}: must be a pair (low, high), got shape {ends}")
    low, high = real(name, value[0]), real(name, value[1])
    if not low < high:
        raise ValueError(f"{name}: low must be below high, got ({low}, {high})")
    return low, high


def interval(name: str, value: Any) -> tuple[float, float]:
    """Return an interval (low, high) as floats; refuse one at whose ends squares of letters overflow."""
    plain_pair = type(value) is tuple and len(value) == 2 and type(value[0]) is type(value[1]) is float
    low, high = value if plain_pair and value[0] < value[1] else pair(name, value)
    if not 1e-100 <= high - low <= 1e100:
        raise ValueError(
            f"{name}: the interval must rise from low to high, by 1e-100 to 1e100, got ({low}, {high})"
        )
    return low, high


def choice(name: str, value: Any, allowed: Collection[str]) -> str:
    """Return `value` if it is one of the allowed words, or raise."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        shown = repr(value) if isinstance(value, str) else type(value).__name__
        raise ValueError(f"{name}: must be one of {words}, got {shown}")
    return value


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool, or raise."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: must be True or False, not {type(value).__name__}")
    return bool(value)


def form(output: Any) -> None:
    """Refuse a form of reports that is no string; the core knows the allowed ones."""
    if not isinstance(output, str):
        raise TypeError(f"output: must be a str, not {type(output).__name__}")


def stream(threads: Any, first_chunk: Any) -> tuple[int | None, int]:
    """Return the checked number of threads and first chunk of a call."""
    return (
        None if threads is None else integer("threads", threads, 1, 1 << 16),
        integer("first_chunk", first_chunk, 0, (1 << 63) - 1),
    )


def plain(name: str, values: Any) -> NDArray[Any]:
    """Return values as an array; refuse masked arrays, whose masked values would be released, too."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name}: a masked array is not allowed; fill or drop what is masked")
    try:
        return np.asarray(values)
    except ValueError:  # NumPy's message does not name the argument
        raise ValueError(f"{name}: must be an array, not nested sequences of unequal lengths") from None


def numbers(name: str, values: Any) -> NDArray[Any]:
    """Return values as an array, integers and half floats as the floats that hold them.

    Everything else stays as it is, and is refused by who takes floats. NumPy's conversion is exact for
    integers up to 2**53, and to the nearest float beyond.
    """
    array = plain(name, values)
    if array.dtype.kind in "iu":
        return array.astype(np.float64)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def shape(name: str, values: Any) -> tuple[int, ...]:
    """Return the shape of values; refuse values without one."""
    if type(values) is np.ndarray:
        return values.shape
    try:
        return np.shape(values)
    except ValueError:
        raise ValueError(f"{name}: must be an array, not nested sequences of unequal lengths") from None


def records(name: str, values: Any, columns: int) -> None:
    """Refuse values that are not one record of so many columns, or some; one value is a record of one."""
    axes = values.shape if type(values) is np.ndarray else shape(name, values)
    if columns == 1 and not axes:
        return
    if len(axes) not in (1, 2) or (axes[-1] != columns and (columns > 1 or len(axes) == 2)):
        allowed = "(n,) or (n, 1)" if columns == 1 else f"(n, {columns}) or ({columns},)"
        raise ValueError(f"{name}: shape must be {allowed}, got {axes}")


def codes(name: str, values: Any, count: int) -> NDArray[Any]:
    """Return an array of integers in [0, count); an error gives the first bad index, never the value."""
    array = plain(name, values)
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}: must be an array of integers, not {array.dtype}")
    if array.size == 0 or (array.dtype.kind == "u" and count > np.iinfo(array.dtype).max):
        return array
    if int(array.max()) >= count or int(array.min()) < 0:
        where = first((array < 0) | (array >= count))
        raise ValueError(f"{name}: the integer at index {where} is outside [0, {count})")
    return array
