"""Secure sums: integers of which only the total is shown, with an exact CENTRAL epsilon.

Everything in the families is local: it holds against whoever sees a single report. What is here holds against
whoever sees nothing but the total, and needs a protocol that shows nothing else; `SecureSum.trust` lists who
must do what.
"""

from __future__ import annotations

from bitldp.sums.kinds import Central, Count, Histogram, Number, SumKind
from bitldp.sums.secure import SecureSum, SumEvidence, SumGuarantee
from bitldp.sums.vector import Vector

__all__ = [
    "Central",
    "Count",
    "Histogram",
    "Number",
    "SecureSum",
    "SumEvidence",
    "SumGuarantee",
    "SumKind",
    "Vector",
]
