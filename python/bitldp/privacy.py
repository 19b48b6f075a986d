"""Guarantee of a mechanism: the claimed epsilon, and the exact one, computed from integers.

In bitldp, epsilon always means the local differential privacy of one record: the largest log-ratio ``ln
P(report | v) / P(report | v')`` over every report and every pair of inputs v, v'.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar

__all__ = ["Guarantee", "PrivacyClaimWarning", "added", "calibrated", "ceiling", "composed", "share"]

ONE = 1 << 64
"""Sum of the integers of a law."""

Unit = Literal["record", "feature"]
Calibration = Literal["exact", "paper"]

_Channel = TypeVar("_Channel")
_ROUNDED = 1e-12  # some thousand units in the last place of a logarithm near 1
_STEPS = 100  # a calibration settles in two or three; more means that the law cannot follow the budget


class PrivacyClaimWarning(UserWarning):
    """Warning that a mechanism, with a paper's own parameters, does not keep the claimed epsilon."""


@dataclass(frozen=True)
class Guarantee:
    """The privacy of one report, claimed and exact.

    Attributes
    ----------
    claimed : float
        The epsilon that was asked for, or that the paper claims; it covers one `unit`.
    bit : float
        Exact epsilon between inputs that differ in one bit of one code word, the worst bit. A report that is
        one symbol (a category) counts as one bit here.
    feature : float
        Exact epsilon between records that differ in one feature.
    record : float
        Exact epsilon between any two records.
    delta : float
        The delta of (epsilon, delta); 0 for every pure mechanism.
    holds : bool
        Whether the exact epsilon of the `unit` is at most the claimed one.
    unit : {"record", "feature"}
        What `claimed` covers.
    given : str
        What the exact epsilon assumes to be public or known; empty if it assumes nothing.

    Notes
    -----
    The three exact values are computed from the integer probabilities (units of 2**-64) that the sampler
    uses, and are rounded up. They are infinite if some report excludes some input.
    """

    claimed: float
    bit: float
    feature: float
    record: float
    delta: float = 0.0
    holds: bool = True
    unit: Unit = "record"
    given: str = ""

    @property
    def epsilon(self) -> float:
        """Exact epsilon between any two records, which accounts and ledgers charge; the same as `record`."""
        return self.record

    def __str__(self) -> str:
        """Return one line: the exact epsilons, and whether the claim holds."""
        verdict = "holds" if self.holds else "does NOT hold"
        delta = f", delta {self.delta:.3g}" if self.delta else ""
        given = f" ({self.given})" if self.given else ""
        return (
            f"exact epsilon {self.record:.6g} per record, {self.feature:.6g} per feature, "
            f"{self.bit:.6g} worst bit"
            f"{delta}{given}; claimed {self.claimed:.6g} per {self.unit}: {verdict}"
        )

    def _repr_html_(self) -> str:
        """Return the same as a table, for notebooks."""
        rows = {
            "exact epsilon per record": f"{self.record:.6g}",
            "per feature": f"{self.feature:.6g}",
            "worst bit": f"{self.bit:.6g}",
            **({"delta": f"{self.delta:.3g}"} if self.delta else {}),
            **({"given": html.escape(self.given)} if self.given else {}),
            f"claimed per {self.unit}": f"{self.claimed:.6g}",
            "the claim": "holds" if self.holds else "<b>does NOT hold</b>",
        }
        cells = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in rows.items())
        return f"<table><caption>Guarantee</caption>{cells}</table>"

    @classmethod
    def judge(
        cls,
        claimed: float,
        exact: tuple[float, float, float],
        *,
        unit: Unit = "record",
        given: str = "",
    ) -> Guarantee:
        """Build a pure guarantee from exact (bit, feature, record) and compare the claim with its unit.

        Parameters
        ----------
        claimed : float
            Epsilon promised for one `unit`.
        exact : tuple of float
            Exact epsilon of the worst bit, of the worst feature, and of the record.
        unit : {"record", "feature"}
            What the claim covers.
        given : str
            Condition of the exact values, if any.

        Returns
        -------
        Guarantee
        """
        bit, feature, record = exact
        covered = record if unit == "record" else feature
        return cls(claimed, bit, feature, record, holds=covered <= claimed, unit=unit, given=given)


def added(*exact: float) -> float:
    """Return the exact epsilon of independent releases: the sum, rounded up to a double."""
    try:
        total = math.fsum(exact)
    except OverflowError:  # a sum beyond the doubles
        return math.inf
    if not math.isfinite(total) or sum(map(Fraction, exact)) <= Fraction(total):
        return total
    return math.nextafter(total, math.inf)


def composed(exact: float, parts: int) -> float:
    """Return the exact epsilon of `parts` independent releases of `exact` each, rounded up likewise."""
    total = parts * exact
    if not math.isfinite(total) or parts * Fraction(exact) <= Fraction(total):
        return total
    return math.nextafter(total, math.inf)


def share(epsilon: float, parts: int) -> float:
    """Return the largest even share of a budget whose `composed` total keeps it."""
    each = epsilon / parts
    while composed(each, parts) > epsilon:
        each = math.nextafter(each, 0.0)
    return each


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


def ceiling(epsilon: float, candidates: int) -> float:
    """Return the largest chance of naming one of equally likely candidates from an epsilon-LDP report.

    The posterior of one candidate is at most e^epsilon/(e^epsilon + n - 1): its likelihood is at most
    e^epsilon times that of each other one. The bound holds for every attack, whatever else the attacker
    knows.

    Parameters
    ----------
    epsilon : float
        Exact, of all that is released about a candidate; may be infinite.
    candidates : int
        n, 1 or more.
    """
    return 1.0 / (1.0 + (candidates - 1) * math.exp(-epsilon))


def calibrated(
    build: Callable[[float], _Channel], epsilon: float, exact: Callable[[_Channel], float]
) -> _Channel:
    """Build the channel whose exact epsilon is at most `epsilon`, and as near to it as floats allow.

    A formula that is evaluated in floating point may exceed its target by a few units in the last place. The
    target is then lowered by the excess, and by twice as much in each further attempt, until the epsilon of
    the integers is within the budget. (Doubling is needed because rounding, for example to float letters, may
    leave the channel unchanged.)

    Parameters
    ----------
    build : callable
        Makes a channel for a target epsilon, zero included.
    epsilon : float
        The budget, finite, zero or more.
    exact : callable
        Exact epsilon of a built channel, rounded up.

    Returns
    -------
    channel
        The first one that keeps the budget. Its exact epsilon is within a relative 1e-9 of `epsilon` while
        the budget of one bit stays between about 1e-6 and 18; outside, doubles near 1/2 and near 1 are too
        coarse, and the channel is more private than asked for, never less.

    Raises
    ------
    ValueError
        If no target meets the budget.
    """
    target = epsilon
    for step in range(_STEPS):
        channel = build(target)
        reached = exact(channel)
        if reached <= epsilon:
            return channel
        excess = reached - epsilon if math.isfinite(reached) else target / 2
        target = max(0.0, target - 2.0**step * max(excess, math.ulp(target)))
    raise ValueError(f"epsilon: no channel in units of 2**-64 keeps the budget {epsilon}")


def published(
    build: Callable[[float], _Channel], claimed: float, exact: Callable[[_Channel], float], theory: float
) -> _Channel:
    """Build a published law; a claim of it that is true is not broken by the rounding of the law.

    A law whose epsilon is the claimed one in theory may land a few units in the last place above it, and more
    where probabilities are of few units of 2**-64. Such a law is `calibrated`, by as little. One whose claim
    is wrong in theory stays as it was published.

    Parameters
    ----------
    build : callable
        Makes a channel for a target epsilon, zero included, by the published formula.
    claimed : float
        The epsilon that was published, finite, zero or more.
    exact : callable
        Exact epsilon of a built channel, rounded up.
    theory : float
        Epsilon of the published law in real numbers, up to `rounding`.

    Returns
    -------
    channel
    """
    if theory <= claimed + rounding(claimed):
        return calibrated(build, claimed, exact)
    return build(claimed)


def rounding(epsilon: float) -> float:
    """Return by how much the floats of a formula may miss an epsilon."""
    return _ROUNDED * max(1.0, epsilon)


def number(value: float, digits: int = 4) -> str:
    """Write a number for a person: `digits` significant digits, thousands apart, infinity as a word."""
    if math.isinf(value):
        return "infinite"
    if value == 0 or 1e-4 <= abs(value) < 10 ** min(digits, 4):
        return f"{value:.{digits}g}"
    return f"{value:,.0f}" if 1 <= abs(value) < 1e9 else f"{value:.{digits - 1}e}"
