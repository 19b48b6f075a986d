"""Fixed-point numbers, bit by bit."""

from __future__ import annotations

from bitldp.bits.bitrand import BitRand
from bitldp.bits.frr import FRR, SymmetricRR, frr_flips
from bitldp.bits.moue import MOUE, UER, latent_corrected_epsilon, ome_corrected_epsilon

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
