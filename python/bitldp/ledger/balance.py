"""Exact sums of charges, and the refusal of one that exceeds a budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from bitldp.base import checks
from bitldp.ledger.entry import CENTRAL, RESERVATION, SUMS, Entry

__all__ = ["Balance", "BudgetExceededError", "Reserved", "Spent", "SumsBudget", "SumsSpent", "above", "below"]


class BudgetExceededError(ValueError):
    """Error for a release that would exceed the remaining budget; nothing is charged."""


class Reserved(NamedTuple):
    """A reservation: what is kept for it, and what its releases have cost, each exactly.

    The larger of the two counts as spent.
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    used_epsilon: Fraction = Fraction(0)
    used_delta: Fraction = Fraction(0)

    @property
    def cost(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that it takes of the budget."""
        return max(self.epsilon, self.used_epsilon), max(self.delta, self.used_delta)


class SumsBudget(NamedTuple):
    """Central cost of the sums in a ledger, apart from that of local releases.

    Attributes
    ----------
    budget, delta : float
        Epsilon and delta that they may cost together.
    spent, spent_delta : float
        What they have cost, rounded up.
    remaining, remaining_delta : float
        What they may still cost, rounded down.
    """

    budget: float
    delta: float
    spent: float
    spent_delta: float
    remaining: float
    remaining_delta: float


class SumsSpent(NamedTuple):
    """Exact budget and cost of sums, apart from the cost of other charges."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    used_epsilon: Fraction = Fraction(0)
    used_delta: Fraction = Fraction(0)

    def rounded(self) -> SumsBudget:
        """Return the same in doubles, rounded against the spender."""
        left = self.epsilon - self.used_epsilon, self.delta - self.used_delta
        allowed, cost = (self.epsilon, self.delta), (self.used_epsilon, self.used_delta)
        return SumsBudget(*map(below, allowed), *map(above, cost), *map(below, left))


class Spent(NamedTuple):
    """Exact cost of several charges together, the reservations among them by name, and the sums."""

    epsilon: Fraction
    delta: Fraction
    reservations: Mapping[str, Reserved]
    sums: SumsSpent = SumsSpent()


class Balance:
    """Charges within a budget; compared and added as fractions, so that no rounding lets a release through.

    Parameters
    ----------
    budget, delta : float
        As of `Ledger`.
    entries : iterable of Entry
        Checked charges to begin with.

    Raises
    ------
    BudgetExceededError
        If these exceed the budget.
    ValueError, TypeError
        For a parameter out of its range.
    """

    def __init__(self, budget: float, delta: float, entries: Iterable[Entry] = ()) -> None:
        self.budget = checks.budget("budget", budget)
        self.delta = checks.budget("delta", delta)
        if not self.delta < 1.0:
            raise ValueError(f"delta: must be below 1, got {self.delta}")
        self.entries: list[Entry] = []
        self.spent = Spent(Fraction(0), Fraction(0), {})
        first = list(entries)
        self.add(first, self.after(first))

    def after(self, entries: Sequence[Entry]) -> Spent:
        """Return the cost after more charges, or refuse them; nothing changes."""
        spent = self.spent
        for entry in entries:
            spent = self._after(spent, entry)
        return spent

    def add(self, entries: Sequence[Entry], spent: Spent) -> None:
        """Add charges, with the cost that `after` returned."""
        self.entries.extend(entries)
        self.spent = spent

    def _after(self, spent: Spent, entry: Entry) -> Spent:
        guarantee, count = entry.guarantee, entry.count
        if math.isinf(guarantee.record):
            left = below(Fraction(self.budget) - spent.epsilon)
            raise _refusal(entry, "epsilon", guarantee.record, left, self.budget)
        cost = count * Fraction(guarantee.record), count * Fraction(guarantee.delta)
        if entry.model == CENTRAL:
            return spent._replace(sums=self._after_sum(spent.sums, entry, cost))
        reservations, more = spent.reservations, cost
        if entry.reservation:
            before = reservations.get(entry.reservation)
            if entry.mechanism == RESERVATION:
                after = (before or Reserved())._replace(epsilon=cost[0], delta=cost[1])
            elif before is None:
                raise ValueError("reservation: the ledger has no reservation of that name")
            else:
                used = before.used_epsilon + cost[0], before.used_delta + cost[1]
                after = before._replace(used_epsilon=used[0], used_delta=used[1])
            earlier = (before or Reserved()).cost
            more = after.cost[0] - earlier[0], after.cost[1] - earlier[1]
            reservations = {**reservations, entry.reservation: after}
        epsilon, delta = spent.epsilon + more[0], spent.delta + more[1]
        if epsilon > Fraction(self.budget):
            left = below(Fraction(self.budget) - spent.epsilon)
            raise _refusal(entry, "epsilon", guarantee.record, left, self.budget)
        if delta > Fraction(self.delta):
            left = below(Fraction(self.delta) - spent.delta)
            raise _refusal(entry, "delta", guarantee.delta, left, self.delta)
        return spent._replace(epsilon=epsilon, delta=delta, reservations=reservations)

    def _after_sum(self, sums: SumsSpent, entry: Entry, cost: tuple[Fraction, Fraction]) -> SumsSpent:
        """Return what sums have cost after one more, or another budget for them."""
        if entry.mechanism == SUMS:
            kept = entry.guarantee
            after = sums._replace(epsilon=Fraction(kept.record), delta=Fraction(kept.delta))
        else:
            after = sums._replace(
                used_epsilon=sums.used_epsilon + cost[0], used_delta=sums.used_delta + cost[1]
            )
        for quantity, each, used, whole in (
            ("central epsilon", entry.guarantee.record, after.used_epsilon, after.epsilon),
            ("central delta", entry.guarantee.delta, after.used_delta, after.delta),
        ):
            if used > whole:
                left = below(whole - used + (0 if entry.mechanism == SUMS else entry.count * Fraction(each)))
                raise _refusal(entry, quantity, each, left, above(whole))
        return after


def _refusal(entry: Entry, quantity: str, each: float, left: float, whole: float) -> BudgetExceededError:
    many = "1 release" if entry.count == 1 else f"{entry.count} releases"
    beside = " beside its reservation" if entry.reservation and entry.mechanism != RESERVATION else ""
    return BudgetExceededError(
        f"{entry.mechanism}: {many} of {quantity} {each:.6g} would exceed the budget: "
        f"only {left:.6g} of {whole:.6g} remains{beside}"
    )


def above(exact: Fraction) -> float:
    """Return the least double that is not below an exact number."""
    nearest = float(exact)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < exact else nearest


def below(exact: Fraction) -> float:
    """Return the largest double that is not above an exact number."""
    nearest = float(exact)
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > exact else nearest
