"""Block designs for frequencies: which one has the least variance in the fewest bits.

Each of k categories has a block of b of v cells. A report is a cell of the block of x with probability
H = e^eps b/(e^eps b + v - b), each alike, else one of the others; it counts for every category whose block
holds it. Where any two blocks share b (b - 1)/(v - 1) cells, always or on average over a public choice,

    p = H,  q = H (b - 1)/(v - 1) + (1 - H) b/(v - 1),

just as of subset selection with b of v categories; q(1 - q)/(p - q)^2 is the variance of a category one has
not, p(1 - p)/(p - q)^2 of the one one has.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.design.difference import powers, singer, singer_shape

__all__ = ["Blocks", "best", "subset_size", "variances"]

MOST_CELLS = 1 << 22
"""Cells of a difference set: an order of them takes 16 MB."""

MOST_STEPPED = 4096
"""Categories up to which progressions may be of any width: a report touches as many when it is decoded."""

MOST_WALKED = 512
"""Cells of a progression over more categories than that, up to `MOST_MODULUS`."""

MOST_MODULUS = 65_521
"""The largest modulus of progressions: the largest prime of 16 bits."""

_NEAR = 1.01  # times the variance of subset selection: what fewer bits may cost
_POWERS = 1 << 12  # prime powers are below it; a block of fewer cells would be better served by one cell


class Blocks(NamedTuple):
    """A block design.

    Attributes
    ----------
    family : str
        "single": each block is one cell; "singer": translates of a hyperplane of a projective space;
        "steps": arithmetic progressions of a modulus.
    cells : int
        Cells v.
    width : int
        Cells b of a block.
    field : tuple of int
        (p, e, d) of a "singer" design: the space of dimension d over GF(p^e).
    """

    family: str
    cells: int
    width: int
    field: tuple[int, int, int] = (0, 0, 0)

    @property
    def steps(self) -> int:
        """How many steps a progression may have; 1 where blocks are no progressions."""
        return (self.cells - 1) // 2 if self.family == "steps" else 1

    @property
    def outputs(self) -> int:
        """How many reports there are."""
        return self.cells * self.steps

    @property
    def bits(self) -> int:
        """Bits of a report."""
        return (self.outputs - 1).bit_length()

    @property
    def cell_bits(self) -> int:
        """Bits of a cell, which is the report where the step is known."""
        return (self.cells - 1).bit_length()

    def order(self) -> NDArray[np.uint32]:
        """Return all cells, the block of category 0 in front, ascending within and behind it."""
        block = np.zeros(1, np.uint32) if self.family == "single" else singer(*self.field)
        others = np.setdiff1d(np.arange(self.cells, dtype=np.uint32), block, assume_unique=True)
        return np.concatenate([block, others])


Floats = NDArray[np.float64]


def variances(cells: Floats | int, width: Floats, epsilon: float, categories: int) -> Floats:
    """Return the variance of a report's indicators, averaged over categories and over uniform inputs.

    Of blocks of a width in so many cells, or of subsets of categories: p - q is
    b (v - b)(e^eps - 1)/((v - 1)(b e^eps + v - b)), without loss for small budgets.
    """
    total = width + (cells - width) * math.exp(-epsilon)
    p = width / total
    q = (p * (width - 1.0) + (1.0 - p) * width) / (cells - 1.0)
    gap = -math.expm1(-epsilon) * width * (cells - width) / ((cells - 1.0) * total)
    sums = p * (1.0 - p) + (categories - 1.0) * q * (1.0 - q)
    with np.errstate(divide="ignore", over="ignore"):
        result: Floats = sums / (categories * np.square(gap))
    return result


@lru_cache(maxsize=256)
def subset_size(cells: int, epsilon: float, categories: int) -> int:
    """Return the number of cells of a subset with the least such variance; near cells/(e^eps + 1)."""
    guess = cells / (1.0 + math.exp(min(epsilon, 700.0)))
    low, high = max(1, int(0.8 * guess) - 2), min(cells - 1, int(1.2 * guess) + 2)
    widths = np.arange(low, high + 1, dtype=np.float64)
    return low + int(np.argmin(variances(cells, widths, epsilon, categories)))


@cache
def _powers() -> list[tuple[int, int, int]]:
    return powers(_POWERS)


@lru_cache(maxsize=256)
def best(categories: int, epsilon: float, public: bool = False) -> Blocks:
    """Return the design of fewest bits of those whose variance is within 1 % of subset selection's.

    Where there is none, that of the least variance.

    Parameters
    ----------
    categories : int
        k, 2 or more.
    epsilon : float
        Budget, above zero.
    public : bool
        Whether both sides know the step of a progression, so that its bits do not count.
    """
    result = [Blocks("single", categories, 1)]
    result += _stepped(categories, epsilon)
    result += _spaces(categories)
    cells, widths = (np.array([each[place] for each in result], np.float64) for place in (1, 2))
    spreads = variances(cells, widths, epsilon, categories)
    subsets = np.array(subset_size(categories, epsilon, categories), np.float64)
    near = _NEAR * float(variances(categories, subsets, epsilon, categories))
    allowed = np.flatnonzero(spreads <= max(near, spreads.min()))

    def cost(place: int) -> tuple[int, float]:
        return result[place].cell_bits if public else result[place].bits, float(spreads[place])

    return result[min(allowed.tolist(), key=cost)]


def _stepped(categories: int, epsilon: float) -> list[Blocks]:
    """Return progressions of the odd moduli from k on to the first prime.

    No number below the width divides the modulus; so the multiples of a step below it are as many as the
    steps, and any two blocks share width (width - 1)/(modulus - 1) cells on average over the steps.
    """
    if categories > MOST_MODULUS or (
        categories > MOST_STEPPED and subset_size(categories, epsilon, categories) > MOST_WALKED
    ):
        return []
    result = []
    for modulus in count(max(3, categories | 1), 2):
        divisor = next((d for d in range(3, math.isqrt(modulus) + 1, 2) if modulus % d == 0), modulus)
        width = min(subset_size(modulus, epsilon, categories), divisor)
        if modulus > MOST_MODULUS:
            break
        result.append(Blocks("steps", modulus, width))
        if divisor == modulus:
            break
    return result


@lru_cache(maxsize=64)
def _spaces(categories: int) -> list[Blocks]:
    """Return the hyperplanes of the smallest space over each field that has so many points."""
    result = []
    for q, p, e in _powers():
        dimension = next(d for d in range(2, 64) if singer_shape(q, d)[0] >= categories)
        v, b, _ = singer_shape(q, dimension)
        if v <= MOST_CELLS:
            result.append(Blocks("singer", v, b, (p, e, dimension)))
    return result
