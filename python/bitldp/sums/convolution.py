"""Law of a sum of many independent shares, from their integers, never above the truth.

Chances are whole numbers of units of 10^-D. A product of two laws is one product of two long decimal numbers,
whose digits are the chances in slots that no carry leaves; what is below a unit is dropped at every step. So
every chance is a lower bound, and what is missing to one is known exactly.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bitldp.sums.laws import ShareLaw, ShareTable

__all__ = ["Noise", "SumLaw", "exact_sum", "lower_chances", "work"]

_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_GUARD = 6  # digits beyond those that the dropped parts need
_SPARED = 2.0**-12  # of delta: what may be missing


class Noise(Protocol):
    """Law of one share, as far as its sum is computed from it; see `ShareLaw`."""

    @property
    def table(self) -> ShareTable:
        """Integers of a draw."""

    @property
    def mirrored(self) -> bool:
        """True where a share is the difference of two draws."""

    def reach(self, shares: int, tail: float) -> int:
        """Return what the sum of shares exceeds with that chance at most, to one side."""

    def __hash__(self) -> int:
        """Return a hash: laws of sums are kept by their share's."""


@dataclass(frozen=True, eq=False)
class SumLaw:
    """Bounds of the chances of the sums -W, ..., W.

    Attributes
    ----------
    lower : ndarray of float64, shape (2 W + 1,)
        At most the chance of each, but for one rounding to doubles.
    missing : float
        At least one less the sum of these chances.
    slack : float
        Relative error of `lower`, at most.
    exact : bool
        Whether they come from the integers of the tables, rather than from the laws that these stand for.
    """

    lower: NDArray[np.float64]
    missing: float
    slack: float
    exact: bool


def work(shares: int, reach: int) -> float:
    """Return how many digits the products of `exact_sum` have in all, about."""
    products = shares.bit_length() + bin(shares).count("1")
    return float(products * reach * (2 * _digits(shares, reach, 1e-6) + 12))


def _digits(shares: int, reach: int, delta: float) -> int:
    """Return D: all that is dropped is below 2 shares (2 reach + 2) units, far below delta."""
    return math.ceil(math.log10(2.0 * shares * (2 * reach + 2) / delta)) + _GUARD


def lower_chances(law: Noise, shares: int, reach: int, digits: int) -> list[int]:
    """Return lower bounds of the chances of the sums -reach, ..., reach, in units of 10^-digits."""
    total = _Digits.of(law.table, digits, reach).power(shares)
    if law.mirrored:
        total = total.times(total.mirror())
    chances = total.chances()
    before = total.first + reach
    return [0] * before + chances + [0] * (2 * reach + 1 - before - len(chances))


@lru_cache(maxsize=16)
def exact_sum(law: ShareLaw, shares: int, delta: float) -> SumLaw:
    """Return the law of the sum of so many shares, with less missing than a 1000th of `delta`.

    Parameters
    ----------
    law : ShareLaw
        Of one share.
    shares : int
        One or more.
    delta : float
        What the chances are compared with; only the precision depends on it.
    """
    reach = law.reach(shares, delta * _SPARED)
    digits = _digits(shares, reach, delta)
    chances = lower_chances(law, shares, reach, digits)
    missing = 10**digits - sum(chances)
    scale = 10.0**digits
    lower = np.array([each / scale for each in map(float, chances)])
    return SumLaw(lower, (missing / 10**digits) * (1.0 + 2.0**-40), 2.0**-50, True)


@dataclass(frozen=True)
class _Digits:
    """Chances as the digits of one number, the least value last.

    Attributes
    ----------
    text : str
        `slot` digits a chance.
    first : int
        The least value.
    digits : int
        D.
    reach : int
        Chances beyond -reach to reach are dropped.
    slot : int
        Digits of a slot: more than those of any chance of a product.
    """

    text: str
    first: int
    digits: int
    reach: int
    slot: int

    @classmethod
    def of(cls, table: ShareTable, digits: int, reach: int) -> _Digits:
        slot = 2 * digits + 1  # a chance of a product is at most 10^(2 D), since those of a law sum to one
        begin, end = max(0, -reach - table.first), reach + 1 - table.first
        kept, unit = table.weights[begin:end], 10**digits
        text = "".join(str(weight * unit >> table.bits).zfill(slot) for weight in reversed(kept))
        return cls(text, table.first + begin, digits, reach, slot)

    @property
    def length(self) -> int:
        return len(self.text) // self.slot

    def chances(self) -> list[int]:
        slot = self.slot
        return [int(self.text[at : at + slot]) for at in range(len(self.text) - slot, -1, -slot)]

    def mirror(self) -> _Digits:
        slot = self.slot
        text = "".join(self.text[at : at + slot] for at in range(len(self.text) - slot, -1, -slot))
        return _Digits(text, -(self.first + self.length - 1), self.digits, self.reach, slot)

    def times(self, other: _Digits) -> _Digits:
        slot, digits = self.slot, self.digits
        length = self.length + other.length - 1
        mine, others = Decimal(self.text), None if other is self else Decimal(other.text)
        whole = str(_EXACT.multiply(mine, mine if others is None else others)).zfill(length * slot)
        first = self.first + other.first
        last = min(first + length - 1, self.reach)
        least = max(first, -self.reach)
        # the slot of value v begins so far from the left
        start = (first + length - 1 - last) * slot
        stop = (first + length - least) * slot
        pad = "0" * digits
        text = "".join(pad + whole[at : at + slot - digits] for at in range(start, stop, slot))
        return _Digits(text, least, digits, self.reach, slot)

    def power(self, n: int) -> _Digits:
        result = self
        for bit in bin(n)[3:]:
            result = result.times(result)
            if bit == "1":
                result = result.times(self)
        return result
