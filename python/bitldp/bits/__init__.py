"""Fixed-point numbers, bit by bit."""

from __future__ import annotations

from bitldp.bits.bitrand import BitRand
from bitldp.bits.frr import FRR
from bitldp.bits.moue import MOUE, UER

__all__ = ["FRR", "MOUE", "UER", "BitRand"]
