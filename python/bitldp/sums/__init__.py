"""Secure sums: only the total of the clients' integers is shown, with an exact CENTRAL epsilon.

The guarantees of mechanisms are local: they hold against anyone who sees a single report. The guarantee of a
secure sum holds against anyone who sees only the total. It needs a protocol that shows nothing else;
`SecureSum.trust` lists who must do what.
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
