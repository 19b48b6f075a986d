"""Randomized response on every bit of fixed-point numbers, alike for all: where LDPFL starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bitldp._core import Bits
from bitldp.bits.frr import symmetric
from bitldp.bits.words import FixedPointBits, of_unit
from bitldp.privacy import Unit, calibrated

__all__ = ["SymmetricRR"]


@lru_cache(maxsize=64)
def _channel(features: int, bits: int, epsilon: float, unit: Unit) -> Bits:
    positions = features * bits if unit == "record" else bits

    def build(target: float) -> Bits:
        p, q = symmetric(np.full(bits, target / positions))
        return Bits([p], [q], features)

    return calibrated(build, epsilon, lambda channel: of_unit(channel, unit))


@dataclass(frozen=True, eq=False, repr=False)
class SymmetricRR(FixedPointBits):
    """Symmetric randomized response of bits: every one kept with probability e^E/(1 + e^E), E = eps/(r l).

    Parameters
    ----------
    features, bits, integer_bits, epsilon : int, int, int, float
        As of `FRR`.
    calibration : {"exact", "paper"}
        The same law: the paper's Eq. 15 has its epsilon exactly.
    unit, sign, infinities : str
        As of `FRR`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way, in all of their r l bits. Source: Arachchige et al., "LDPFL", Eq.
    15, which its MOUE and UER are to improve on. `BitBudgets` has the best budgets of bits of one number.

    Examples
    --------
    >>> import bitldp
    >>> mechanism = bitldp.SymmetricRR(1024, epsilon=0.5)
    >>> round(mechanism.guarantee.record, 9)
    0.5
    """

    def _bits(self) -> tuple[Bits, None]:
        return _channel(self.features, self.bits, self.epsilon, self.unit), None
