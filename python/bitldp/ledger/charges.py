"""Charges within a budget: what was spent, what is set aside, and the refusal of what would exceed it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from bitldp.base import checks
from bitldp.ledger.balance import Balance, SumsBudget, above, below
from bitldp.ledger.entry import CENTRAL, RESERVATION, SUMS, Entry, checked, named, stamped, summed
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee

if TYPE_CHECKING:
    from bitldp.accounting import Account

__all__ = ["Charges"]


class Charges:
    """Charges of one process within a budget, in memory; `bitldp.ledger.Ledger` keeps them in a file, too.

    Parameters
    ----------
    budget, delta
        As of `bitldp.ledger.Ledger`.
    """

    def __init__(self, budget: float, *, delta: float = 0.0) -> None:
        self._balance = Balance(budget, delta)
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False

    @property
    def budget(self) -> float:
        """Epsilon that all releases together may cost."""
        return self._balance.budget

    @property
    def delta(self) -> float:
        """Delta that all releases together may cost."""
        return self._balance.delta

    @property
    def spent(self) -> float:
        """Epsilon that the releases have cost, rounded up."""
        with self._lock:
            return above(self._balance.spent.epsilon)

    @property
    def spent_delta(self) -> float:
        """Delta that the releases have cost, rounded up."""
        with self._lock:
            return above(self._balance.spent.delta)

    @property
    def remaining(self) -> float:
        """Epsilon that may still be spent, rounded down."""
        with self._lock:
            return below(Fraction(self.budget) - self._balance.spent.epsilon)

    @property
    def remaining_delta(self) -> float:
        """Delta that may still be spent, rounded down."""
        with self._lock:
            return below(Fraction(self.delta) - self._balance.spent.delta)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The charges, oldest first."""
        with self._lock:
            return tuple(self._balance.entries)

    def charge(
        self,
        release: Mechanism | Guarantee,
        count: int = 1,
        *,
        note: str = "",
        reservation: str = "",
    ) -> Entry:
        """Charge releases before they are made, or refuse to.

        Parameters
        ----------
        release : Mechanism or Guarantee
            Mechanism of the release, or its guarantee. The exact epsilon of a record is charged, never the
            claimed one.
        count : int
            Number of releases about the same records, 1 or more.
        note : str
            A remark to keep with the charge. Do not put a private value in it.
        reservation : str
            Name of a reservation that the releases draw on first; see `reserve`.

        Returns
        -------
        Entry
            What was recorded, with the time and the user of the process.

        Raises
        ------
        BudgetExceededError
            If the releases would cost more than remains. Nothing is charged, and nothing may be released.
        ValueError, TypeError
            For an argument of the wrong kind, or a guarantee that holds no valid numbers.
        LedgerChangedError, OSError
            If the ledger is open, and its file was changed or cannot be written. Nothing is charged, and
            nothing may be released.
        RuntimeError
            If the ledger was closed, or belongs to another process.
        """
        return self._charge(Entry(*named(release), count, note, reservation=reservation))

    def _charge(self, entry: Entry) -> Entry:
        """Charge an entry, once it is checked, with the time and the user."""
        entry = stamped(checked(entry))
        self._extend([entry])
        return entry

    def reserve(self, name: str, epsilon: float, *, delta: float = 0.0) -> Entry:
        """Reserve a part of the budget for releases that name it; a new call changes the amount.

        Parameters
        ----------
        name : str
            Name of the reservation; `charge` draws on it by `reservation`.
        epsilon, delta : float
            Reserved amount for all of its releases together. It counts as spent from now on. If its releases
            cost more, the excess is charged to the rest of the budget. Reserving the same name with 0 frees
            what is left.

        Returns
        -------
        Entry
            What was recorded.

        Raises
        ------
        BudgetExceededError
            If more is asked than remains. Nothing is reserved.
        ValueError, TypeError
            For an empty name, or an amount out of its range.
        LedgerChangedError, OSError
            If the ledger is open, and its file was changed or cannot be written. Nothing is kept then.
        RuntimeError
            If the ledger was closed, or belongs to another process.

        Examples
        --------
        >>> import bitldp
        >>> ledger = bitldp.Ledger(4.0)
        >>> entry = ledger.reserve("survey in May", 3.0)
        >>> ledger.remaining
        1.0
        >>> entry = ledger.charge(bitldp.GRR(4, epsilon=2.0), reservation="survey in May")
        >>> ledger.remaining, round(ledger.reservations["survey in May"], 9)
        (1.0, 1.0)
        """
        amount, delta = checks.budget("epsilon", epsilon), checks.budget("delta", delta)
        kept = Guarantee(amount, amount, amount, amount, delta)
        return self._charge(Entry(RESERVATION, kept, 1, reservation=name))

    def allow_sums(self, epsilon: float, *, delta: float) -> Entry:
        """Set the budget of secure sums about these people, in the central model, apart from the local one.

        Parameters
        ----------
        epsilon, delta : float
            Budget of all sums, against anyone who sees only their totals. A new call replaces it.

        Raises
        ------
        BudgetExceededError
            If the sums so far have cost more.
        ValueError, TypeError
            For an amount out of its range.
        LedgerChangedError, OSError
            If the ledger is open, and its file was changed or cannot be written. Nothing is kept then.
        RuntimeError
            If the ledger was closed, or belongs to another process.
        """
        amount, delta = checks.budget("epsilon", epsilon), checks.budget("delta", delta)
        kept = Guarantee(amount, amount, amount, amount, delta)
        return self._charge(Entry(SUMS, kept, 1, model=CENTRAL))

    def charge_sum(self, secure: Any, *, note: str = "") -> Entry:
        """Charge a secure sum before its shares are made, or refuse to.

        Its central guarantee is never added to that of local releases: `sums` changes, `spent` does not.
        Against anyone who sees both, the sum of the two holds.

        Parameters
        ----------
        secure : bitldp.sums.SecureSum
            The sum, which is charged with its central epsilon for the least number of survivors.
        note : str
            A remark to keep with the charge. No private value belongs in it.

        Returns
        -------
        Entry
            Its `model` is "central", and `release` the digest of the sum's terms.

        Raises
        ------
        BudgetExceededError
            If sums would cost more than the budget from `allow_sums`, which is 0 at first.
        ValueError, TypeError
            For an argument of the wrong kind, or a guarantee that holds no valid numbers.
        LedgerChangedError, OSError
            If the ledger is open, and its file was changed or cannot be written. Nothing is
            charged, and nothing may be released.
        RuntimeError
            If the ledger was closed, or belongs to another process.

        Examples
        --------
        >>> import bitldp
        >>> from bitldp.sums import Count, SecureSum
        >>> ledger = bitldp.Ledger(2.0)
        >>> entry = ledger.allow_sums(1.0, delta=1e-5)
        >>> entry = ledger.charge_sum(SecureSum(Count(), epsilon=0.75, clients=500))
        >>> ledger.spent, round(ledger.sums.spent, 4)
        (0.0, 0.75)
        """
        return self._charge(summed(secure, note))

    @property
    def sums(self) -> SumsBudget:
        """Budget and cost of sums, in the central model."""
        with self._lock:
            return self._balance.spent.sums.rounded()

    @property
    def reservations(self) -> dict[str, float]:
        """Epsilon that is left of each reservation, rounded down, by name."""
        with self._lock:
            held = self._balance.spent.reservations
            return {name: max(0.0, below(each.epsilon - each.used_epsilon)) for name, each in held.items()}

    def _extend(self, entries: Sequence[Entry]) -> None:
        """Charge checked entries, all or none."""
        with self._lock:
            self._usable()
            spent = self._balance.after(entries)
            self._kept(chain(self._balance.entries, entries))
            self._balance.add(entries, spent)

    def _replace(self, entries: Sequence[Entry]) -> None:
        """Put checked entries in the place of all that there are."""
        with self._lock:
            self._usable()
            balance = Balance(self.budget, self.delta, entries)
            self._kept(balance.entries)
            self._balance = balance

    def _kept(self, entries: Iterable[Entry]) -> None:
        """Keep what will be the charges, where they are kept; a failure means no charge."""

    def _usable(self) -> None:
        """Refuse to spend a budget that another may spend as well."""
        if self._process != os.getpid():
            raise RuntimeError("the ledger cannot be used in a forked process; open its file there")
        if self._closed:
            raise RuntimeError("the ledger was closed, and others may have charged it since; open it again")

    @contextmanager
    def charging(
        self,
        release: Mechanism | Guarantee,
        count: int = 1,
        *,
        note: str = "",
        reservation: str = "",
    ) -> Iterator[Entry]:
        """Charge a release, then run the body of a ``with`` statement, which makes it.

        The charge is made first, so that the body does not run if the budget is exhausted. The charge stays
        if the body fails: a report may have been sent before the failure, and the ledger cannot know.

        Parameters
        ----------
        release : Mechanism or Guarantee
            What is released with, or its guarantee. The exact epsilon of a record is charged, and never the
            claimed one.
        count : int
            How many releases about the same records, 1 or more.
        note : str
            A remark to keep with the charge. No private value belongs in it.
        reservation : str
            Name of a reservation that the releases draw on first; see `reserve`.

        Yields
        ------
        Entry
            What was recorded.
        """
        yield self.charge(release, count, note=note, reservation=reservation)

    def account(self, delta: float, method: Literal["basic", "renyi", "pld"] = "pld") -> Account:
        """Return the cost of all releases by a finer accountant than the sum of epsilons.

        Parameters
        ----------
        delta : float
            Delta, as in `bitldp.accounting.account`.
        method : {"basic", "renyi", "pld"}
            The accountant.

        Returns
        -------
        bitldp.accounting.Account
            The cost from the guarantees of the charges, except those of sums. The ledger knows nothing else
            about the mechanisms; `bitldp.accounting.account` of the mechanisms themselves may show that they
            cost less.

        Raises
        ------
        ValueError
            For sums together with local releases, whose epsilons have no common meaning, or "renyi" for sums;
            for a delta out of its range, neither or both of delta and epsilon, no charges, a count below 1,
            or a delta that the sum of the releases' own deltas exceeds. "pld" needs a delta of at least
            2e-12, because of the rounding of its convolutions, except for Gaussian noise alone.
        TypeError
            For an argument of another kind.
        MissingExtraError
            Without the extra ``design``, for "renyi" and "pld" (except for normal laws alone).

        Notes
        -----
        The result is for information. The budget always uses basic composition.
        """
        from bitldp.accounting import account

        local = [(entry.guarantee, entry.count) for entry in self.entries if not entry.model]
        return account(local, delta=delta, method=method)
