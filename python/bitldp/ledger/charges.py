"""Charges within a budget, in memory: made before a release, by several threads, in one process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Literal, NoReturn

from bitldp.ledger.balance import Balance, above, below
from bitldp.ledger.entry import Entry, checked, named
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee

if TYPE_CHECKING:
    from bitldp.accounting import Account

__all__ = ["Charges"]


class Charges:
    """Ledger without a file; every charge passes through `_kept` before it counts."""

    def __init__(self, budget: float, delta: float = 0.0) -> None:
        self._balance = Balance(budget, delta)
        self._lock = threading.RLock()
        self._process = os.getpid()

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

    def charge(self, release: Mechanism | Guarantee, count: int = 1, *, note: str = "") -> Entry:
        """Charge releases before they are made, or refuse to.

        Parameters
        ----------
        release : Mechanism or Guarantee
            What is released with, or its guarantee. The exact epsilon of a record is charged, and never the
            claimed one.
        count : int
            How many releases about the same records, 1 or more.
        note : str
            A remark to keep with the charge. No private value belongs in it.

        Returns
        -------
        Entry
            What was recorded.

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
        entry = checked(Entry(*named(release), count, note))
        self._extend([entry])
        return entry

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
        """Keep what will be the charges where they outlive the process; a failure means no charge."""

    def _usable(self) -> None:
        """Refuse to spend a budget that another may spend as well."""
        if self._process != os.getpid():
            raise RuntimeError("the ledger belongs to the process that was forked; open its file")

    @contextmanager
    def charging(self, release: Mechanism | Guarantee, count: int = 1, *, note: str = "") -> Iterator[Entry]:
        """Charge, then run the body of a ``with`` statement, which makes the release.

        The charge is made first, so that the body does not run if the budget is exhausted. It stays if the
        body fails: a report may have left before the failure, and the ledger cannot know.

        Parameters
        ----------
        release, count, note
            As of `charge`.

        Yields
        ------
        Entry
            What was recorded.
        """
        yield self.charge(release, count, note=note)

    def account(self, delta: float, method: Literal["basic", "renyi", "pld"] = "pld") -> Account:
        """Return the cost of all releases by a finer accountant than the sum that the budget is for.

        Parameters
        ----------
        delta : float
            Delta, as in `bitldp.accounting.account`.
        method : {"basic", "renyi", "pld"}
            The accountant.

        Returns
        -------
        bitldp.accounting.Account
            From the guarantees of the charges, the ledger's only knowledge of the mechanisms. The mechanisms
            themselves, given to `bitldp.accounting.account`, may show that they cost less.

        Raises
        ------
        ValueError, TypeError, MissingExtraError
            As of `bitldp.accounting.account`; also if there are no charges.

        Notes
        -----
        It is a report. The budget is kept by basic composition, whatever this says.
        """
        from bitldp.accounting import account

        return account([(entry.guarantee, entry.count) for entry in self.entries], delta=delta, method=method)

    def __repr__(self) -> str:
        """Return budget, what is spent, and the number of charges."""
        with self._lock:
            return f"Ledger(budget={self.budget:g}, spent={self.spent:g}, entries={len(self.entries)})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise TypeError("a Ledger cannot be copied, each copy would have the whole budget; use save and load")
