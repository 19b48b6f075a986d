"""Fixed-point numbers, bit by bit."""

from __future__ import annotations

from bitldp.bits.bitrand import BitRand
from bitldp.bits.corrected import latent_corrected_epsilon, ome_corrected_epsilon
from bitldp.bits.frr import FRR, frr_flips
from bitldp.bits.moue import MOUE, UER
from bitldp.bits.symmetric import SymmetricRR

__all__ = [
    "FRR",
    "MOUE",
    "UER",
    "BitRand",
    "SymmetricRR",
    "frr_flips",
    "latent_corrected_epsilon",
    "ome_corrected_epsilon",
]
