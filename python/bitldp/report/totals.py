"""Total epsilon of a record's parts, claimed and exact, and numbers written for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bitldp.privacy import Guarantee, added, composed

__all__ = ["Total", "number", "total"]


def number(value: float, digits: int = 4) -> str:
    """Write a number for a person: `digits` significant digits, thousands apart, infinity as a word."""
    if math.isinf(value):
        return "infinite"
    if value == 0 or 1e-4 <= abs(value) < 10 ** min(digits, 4):
        return f"{value:.{digits}g}"
    return f"{value:,.0f}" if 1 <= abs(value) < 1e9 else f"{value:.{digits - 1}e}"


@dataclass(frozen=True)
class Total:
    """Privacy of a record with parts that are randomized independently.

    Attributes
    ----------
    claimed, record : float
        Sums of the claimed and of the exact epsilon of the parts, the exact one rounded up.
    delta : float
        Sum of the deltas, at most 1.
    holds : bool
        Whether every part's claim holds.
    """

    claimed: float
    record: float
    delta: float
    holds: bool


def total(guarantees: Sequence[Guarantee], features: Sequence[int] | None = None) -> Total:
    """Add up the guarantees of independent parts of a record (basic composition).

    Parameters
    ----------
    guarantees : sequence of Guarantee
        One a part.
    features : sequence of int, optional
        Features of each part: a claim that covers one feature counts once for each. Without it, such a claim
        counts as the part's exact epsilon of the record.

    Returns
    -------
    Total
        For neighbouring records that differ in every part.
    """
    sizes = [None] * len(guarantees) if features is None else features
    claimed = [
        g.claimed if g.unit == "record" else g.record if size is None else composed(g.claimed, size)
        for g, size in zip(guarantees, sizes, strict=True)
    ]
    return Total(
        claimed=math.fsum(claimed),
        record=added(*(g.record for g in guarantees)),
        delta=min(1.0, added(*(g.delta for g in guarantees))),
        holds=all(g.holds for g in guarantees),
    )
