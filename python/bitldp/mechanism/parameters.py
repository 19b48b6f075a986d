"""Parameters that are declared with their check: the base of the mechanisms runs it, `_build` need not.

A field's annotation says what it is checked to be: ``epsilon: Budget``. The check is called with the name and
the value that was given, and returns the value that the mechanism keeps.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache, partial
from typing import Annotated, Any, Literal, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.codecs import Categories as Labels
from bitldp.privacy import Calibration as _Calibration
from bitldp.privacy import Unit as _Unit

Check = Callable[[str, Any], Any]


def one_of(*words: str) -> Check:
    """Return the check that a value is one of some words."""
    return partial(_choice, words)


def _choice(words: tuple[str, ...], name: str, value: Any) -> str:
    if isinstance(value, str) and value in words:
        return value
    return checks.choice(name, value, words)


def at_least(least: int, most: int = checks.MOST) -> Check:
    """Return the check that a value is a number of things, from `least` to `most`."""
    return partial(_count, least, most)


def _count(least: int, most: int, name: str, value: Any) -> int:
    return value if type(value) is int and least <= value <= most else checks.count(name, value, least, most)


def categories(most: int = checks.MOST) -> Check:
    """Return the check that a value is a number of categories, from 2 to `most`, or their labels."""
    return partial(_categories, most)


def _categories(most: int, name: str, value: Any) -> int | Labels:
    if isinstance(value, Labels):
        return value
    if isinstance(value, (str, bytes)) or not np.iterable(value):
        return _count(2, most, name, value)
    try:
        return Labels(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {str(error).removeprefix('labels: ')}") from None


def whole(low: int, high: int) -> Check:
    """Return the check that a value is an integer of [low, high]."""
    return partial(_whole, low, high)


def _whole(low: int, high: int, name: str, value: Any) -> int:
    return checks.integer(name, value, low, high)


def optional(check: Check) -> Check:
    """Return the check of a parameter that may be None."""
    return partial(_optional, check)


def _optional(check: Check, name: str, value: Any) -> Any:
    return None if value is None else check(name, value)


Budget = Annotated[float, checks.budget]
"""A privacy budget: finite, zero or more."""

Features = Annotated[int, at_least(1)]
"""Numbers of a record, 1 or more."""

CategoryNames = int | Sequence[Any] | NDArray[Any] | Labels
"""What a number of categories may be given as: itself, or the labels, in order."""

Categories = Annotated[CategoryNames, categories()]
"""Categories, 2 or more: how many, or their labels."""

Flag = Annotated[bool, checks.flag]
"""Yes or no."""

Interval = Annotated[tuple[float, float], checks.interval]
"""Where a number lies: (low, high)."""

Unit = Annotated[_Unit, one_of("record", "feature")]
"""What a budget covers."""

Calibration = Annotated[_Calibration, one_of("exact", "paper")]
"""Whether a budget is kept exactly, or the paper's formula is used."""

Criterion = Annotated[Literal["mean", "worst"], one_of("mean", "worst")]
"""Which variance is minimised: the mean over uniform inputs, or that of the worst one."""


@cache
def declared(kind: type) -> tuple[tuple[str, Check], ...]:
    """Return the checks of a dataclass' fields by name, in the order of the constructor.

    Fields without a check are left out; a `_build` of the class looks at them.
    """
    found: list[tuple[str, Check]] = []
    for field in fields(kind):
        owner = next(each for each in kind.__mro__ if field.name in inspect.get_annotations(each))
        stated = field.type
        if isinstance(stated, str):
            stated = eval(stated, vars(sys.modules[owner.__module__]))
        if get_origin(stated) is Annotated:
            found.extend((field.name, check) for check in get_args(stated)[1:] if callable(check))
    return tuple(found)
