"""Privacy-aware compression: numbers of an interval as reports of b bits with unbiased letters.

Mechanisms and names are those of Chaudhuri, Guo and Rabbat, "Privacy-aware compression for federated data
analysis" (UAI 2022). A report packs to exactly b bits.
"""

from __future__ import annotations

from bitldp.compression.cldp import CLDP
from bitldp.compression.mvu import MVU
from bitldp.compression.response import BitwiseRR, GeneralizedRR, best_bits
from bitldp.compression.signsgd import SignSGD
from bitldp.compression.skellam import Skellam
from bitldp.compression.vector_mvu import VectorMVU

__all__ = [
    "CLDP",
    "MVU",
    "BitwiseRR",
    "GeneralizedRR",
    "SignSGD",
    "Skellam",
    "VectorMVU",
    "best_bits",
]
