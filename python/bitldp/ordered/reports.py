"""Reports of hashed beginnings of words: three arrays, two of them public coins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks

__all__ = ["SEED_BITS", "WordReports", "checked", "joined"]

SEED_BITS = 32
"""Bits of the number of a hash function."""


class WordReports(NamedTuple):
    """What is released of n words.

    Attributes
    ----------
    groups : ndarray of unsigned int, shape (n,)
        Which beginning each is about, drawn without looking at the word.
    seeds : ndarray of uint32, shape (n,)
        The public hash function of each, drawn likewise.
    codes : ndarray of unsigned int, shape (n,)
        The randomized cell of the beginning under that function.
    """

    groups: NDArray[Any]
    seeds: NDArray[np.uint32]
    codes: NDArray[Any]


def joined(parts: Sequence[Any]) -> WordReports:
    """Return reports of their three arrays, of any shapes of so many entries."""
    groups, functions, codes = (np.asarray(part).reshape(-1) for part in parts)
    return WordReports(groups, functions.astype(np.uint32), codes)


def checked(reports: Any, groups: int, cells: int) -> WordReports:
    """Return reports as arrays of shape (n,), after checking them against the mechanism's form."""
    if not isinstance(reports, (tuple, list)) or len(reports) != 3:
        raise TypeError("reports: must be (groups, seeds, codes), as randomize gives them")
    found = [
        np.atleast_1d(checks.codes(f"reports.{name}", part, most))
        for name, part, most in zip(
            WordReports._fields, reports, (groups, 1 << SEED_BITS, cells), strict=True
        )
    ]
    for name, part in zip(WordReports._fields, found, strict=True):
        if part.shape != (len(found[0]),):
            raise ValueError(f"reports.{name}: shape must be (n,), the same for all, got {part.shape}")
    return joined(found)
