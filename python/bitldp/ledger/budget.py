"""Ledger of releases, which adds up their cost and refuses the one that would exceed the budget.

Every epsilon in it is the exact one of a record, and the total is for all releases about the same records
(basic composition: Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, Theorem
3.16). Neighbouring inputs are any two series of records that one person may have.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from bitldp.base import checks
from bitldp.base.files import resolved
from bitldp.ledger import file
from bitldp.ledger.balance import Balance, BudgetExceededError, SumsBudget, above, below
from bitldp.ledger.entry import CENTRAL, RESERVATION, SUMS, Entry, checked, named, stamped, summed
from bitldp.ledger.file import (
    HeldFile,
    LedgerChangedError,
    LedgerState,
    NoLedgerError,
    held,
    read_text,
    state_of,
    written,
)
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee

if TYPE_CHECKING:
    from bitldp.accounting import Account

__all__ = [
    "BudgetExceededError",
    "Entry",
    "Ledger",
    "LedgerChangedError",
    "LedgerState",
    "NoLedgerError",
]


class Ledger:
    """Releases about a set of people, and their cost within a budget.

    Parameters
    ----------
    budget : float
        Epsilon that all releases together may cost, finite, zero or more.
    delta : float
        Delta that they may cost, in [0, 1).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    A ledger holds names of mechanisms, guarantees, counts and notes, who charged it and when, and no data.
    The notes are the caller's, who must keep private values out of them. A ledger stands for one set of
    people: all tables about them charge the same one.

    Sums are formed exactly, as fractions, and rounded against the spender when shown. A budget of 1.0 does
    not cover ten releases of 0.1, since the double 0.1 is a little more than a tenth;
    ``bitldp.privacy.share(1.0, 10)`` is the largest even share.

    All methods may be called from several threads. A ledger can be neither copied nor pickled, and is of no
    use in a forked process, since each copy would have the whole budget. A ledger that outlives a process, or
    that several share, is a file: `open` keeps it locked, and has every charge on disk before it is spent.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.ledger import Ledger
    >>> ledger = Ledger(3.5)
    >>> mechanism = bitldp.GRR(4, epsilon=1.0)
    >>> with ledger.charging(mechanism, note="colours"):
    ...     reports = mechanism.randomize([0, 3, 1])
    >>> ledger.spent, ledger.remaining
    (1.0, 2.5)
    >>> ledger.charge(mechanism, 3)
    Traceback (most recent call last):
    ...
    bitldp.ledger.balance.BudgetExceededError: GRR: 3 releases of epsilon 1 would exceed the budget: ...
    """

    def __init__(self, budget: float, *, delta: float = 0.0) -> None:
        self._balance = Balance(budget, delta)
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._seen: dict[Path, str] = {}  # checksums of its files, as they were read or written last
        self._file: HeldFile | None = None  # while it is open
        self._closed = False

    @classmethod
    @contextmanager
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        budget: float | None = None,
        delta: float | None = None,
        create: bool = False,
        at_least: LedgerState | None = None,
    ) -> Iterator[Ledger]:
        """Open a ledger's file for the body of a ``with`` statement, and keep everybody else out of it.

        Every charge is on disk before `charge` returns, so that a crash between a charge and its release
        costs a charge, and never brings one back.

        Parameters
        ----------
        path : path-like
            File of the ledger; links are followed. Beside it: ``NAME.lock``, which stays.
        budget, delta : float, optional
            What the ledger was begun with: another one is refused. Of a new ledger, its budget (which must be
            given) and its delta (default 0).
        create : bool
            Whether to begin a ledger where there is no file. Say so once, when a set of people is new: where
            it is left in the code, a folder that was emptied or is not mounted grants the whole budget again.
        at_least : LedgerState, optional
            `state` of this ledger at an earlier time, kept where the file is not: a privacy report has it
            under "ledger_state". A ledger that does not begin with these charges is refused. Without it an
            older copy that was put back is taken for the ledger, for no file can know that it is old.

        Yields
        ------
        Ledger
            It is closed when the body ends.

        Raises
        ------
        NoLedgerError
            If there is no file, and `create` is false; a FileNotFoundError.
        ValueError, TypeError
            For a file that is not a ledger, was damaged or has hard links, or of another budget.
        LedgerChangedError
            If it lacks charges that `at_least` counts.
        RuntimeError
            If this thread has it open already.
        OSError
            If the file cannot be read or written, or its folder does not exist.

        Notes
        -----
        Others wait while it is open, in threads, in processes, and by whatever link they come. The locks are
        the operating system's, on ``NAME.lock`` and on the file itself, and are given back when the process
        ends; over a network file system they are as good as that system's locks. A forked child cannot charge
        what its parent has open.

        Examples
        --------
        >>> import tempfile, bitldp
        >>> from bitldp.ledger import Ledger
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Ledger.open(folder.name + "/people.json", budget=2.0, create=True) as ledger:
        ...     entry = ledger.charge(bitldp.GRR(4, epsilon=1.0))
        >>> with Ledger.open(folder.name + "/people.json") as ledger:  # in another process, another day
        ...     ledger.remaining
        1.0
        >>> folder.cleanup()
        """
        checks.flag("create", create)
        if at_least is not None:
            at_least = LedgerState.checked(at_least)
        for name, value in (("budget", budget), ("delta", delta)):
            if value is not None:
                checks.budget(name, value)
        here = resolved(path)
        if not create and not here.exists():  # before a lock is left there
            raise NoLedgerError(path)
        with held(here) as its:
            if file.read(here) is None:
                if not create:
                    raise NoLedgerError(path)
                if at_least is not None:
                    raise ValueError("at_least: the file of the ledger does not exist yet")
                if budget is None:
                    raise ValueError("budget: must be given, the file of the ledger does not exist yet")
                ledger = cls(budget, delta=0.0 if delta is None else delta)
                ledger._save(its, ())
            else:
                ledger = cls.load(path)
                ledger._same(path, budget, delta)
                if at_least is not None:
                    ledger._check_at_least(path, at_least)
            ledger._file = its
            try:
                yield ledger
            finally:
                with ledger._lock:
                    ledger._closed = True

    def _same(self, path: str | os.PathLike[str], budget: float | None, delta: float | None) -> None:
        """Refuse a ledger that was begun with another budget."""
        wanted = self.budget if budget is None else budget, self.delta if delta is None else delta
        if wanted != (self.budget, self.delta):
            raise ValueError(
                f"{os.fspath(path)}: was begun with budget {self.budget:g} and delta {self.delta:g}, not "
                f"{wanted[0]:g} and {wanted[1]:g}"
            )

    def _check_at_least(self, path: str | os.PathLike[str], state: LedgerState) -> None:
        """Refuse a ledger that lacks charges which a state counted."""
        first = self._state(state.entries) if len(self._balance.entries) >= state.entries else None
        if first != state:
            raise LedgerChangedError(
                f"{os.fspath(path)}: does not begin with the {state.entries} charges of at_least=; an older "
                "copy was put back, perhaps. Nothing may be released"
            )

    def state(self) -> LedgerState:
        """Return the number of charges and their checksum, to be kept where the file is not.

        A file cannot know whether an older copy of it was put back: its charges since then are gone. Who
        keeps a state (in the privacy report of a release, say) hands it to `open` as `at_least`.

        Returns
        -------
        LedgerState
            It says nothing of the data, and is small.

        Examples
        --------
        >>> import bitldp
        >>> ledger = bitldp.Ledger(2.0)
        >>> entry = ledger.charge(bitldp.GRR(4, epsilon=1.0))
        >>> ledger.state().entries
        1
        """
        with self._lock:
            return self._state(len(self._balance.entries))

    def _state(self, count: int) -> LedgerState:
        """Return the state after the first charges."""
        return state_of(self.budget, self.delta, self._balance.entries[:count])

    def _save(self, its: HeldFile, entries: Iterable[Entry]) -> None:
        """Replace the file that was seen last, which is held."""
        text = written(self.budget, self.delta, entries)
        self._seen[its.path] = its.write(text, self._seen.get(its.path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger as JSON: to a temporary file first, which then takes the name in one step.

        Parameters
        ----------
        path : path-like
            File to write; links are followed. A file that exists must be the one that this ledger was loaded
            from, or saved to last; its permissions stay.

        Raises
        ------
        LedgerChangedError
            If it is another, or was changed or removed since: another process has charged it, perhaps. What
            this ledger was charged since it was loaded must not be released.
        OSError
            If the file cannot be written. An older file of that name is left as it was.
        RuntimeError
            If the ledger was closed, or belongs to another process.

        Notes
        -----
        Where others may charge the same file, use `open`: of two who load, charge and save, one is refused.
        """
        here = resolved(path)
        with self._lock:
            self._usable()
            if self._file is not None and here == self._file.path:
                self._save(self._file, self._balance.entries)
                return
            with held(here) as its:
                self._save(its, self._balance.entries)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ledger:
        """Read a ledger that `save` wrote: to look at it, or to save it again. `open` is for charging it.

        Parameters
        ----------
        path : path-like
            File to read.

        Returns
        -------
        Ledger

        Raises
        ------
        ValueError
            If the file is not a ledger, is of another version, or was damaged or changed by hand; or if it
            has hard links.
        OSError
            If it cannot be read; `NoLedgerError` if it does not exist.
        """
        here = resolved(path)
        contents = file.read(here)
        if contents is None:
            raise NoLedgerError(path)
        data, checksum = contents
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = ""
        ledger = cls.from_json(text, source=os.fspath(path))
        ledger._seen[here] = checksum
        return ledger

    @classmethod
    def from_json(cls, text: str, *, source: str = "text") -> Ledger:
        """Return the ledger that `to_json` wrote.

        Parameters
        ----------
        text : str
            The JSON text.
        source : str
            Where it comes from, for the error messages.

        Raises
        ------
        TypeError
            If the text is no str.
        ValueError
            If the text is not a ledger, is of another version, was damaged or changed by hand, or holds what
            no ledger would (a NaN, a budget overspent): the message says what.
        """
        try:
            budget, delta, entries = read_text(text)
            ledger = cls(budget, delta=delta)
            ledger._extend(entries)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None
        return ledger

    def to_json(self) -> str:
        """Return the ledger as a JSON text with a checksum: what `save` writes."""
        with self._lock:
            return written(self.budget, self.delta, self._balance.entries)

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
            What is released with, or its guarantee. The exact epsilon of a record is charged, and never the
            claimed one.
        count : int
            How many releases about the same records, 1 or more.
        note : str
            A remark to keep with the charge. No private value belongs in it.
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
        """Keep a part of the budget for releases that name it, until it is reserved anew with another amount.

        Parameters
        ----------
        name : str
            Name of the reservation; `charge` draws on it by `reservation`.
        epsilon, delta : float
            What is kept, for all of its releases together. It counts as spent from now on; what its releases
            cost beyond it is charged to the rest of the budget. The same name with 0 gives back what is left.

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
        LedgerChangedError, OSError, RuntimeError
            As of `charge`.

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
        """Set what sums of these people may cost together, in the central model; it is no part of the budget.

        Parameters
        ----------
        epsilon, delta : float
            Of all sums, against who sees nothing but their totals. Said anew, they replace what was said.

        Raises
        ------
        BudgetExceededError
            If the sums so far have cost more.
        ValueError, TypeError
            For an amount out of its range.
        LedgerChangedError, OSError, RuntimeError
            As of `charge`.
        """
        amount, delta = checks.budget("epsilon", epsilon), checks.budget("delta", delta)
        kept = Guarantee(amount, amount, amount, amount, delta)
        return self._charge(Entry(SUMS, kept, 1, model=CENTRAL))

    def charge_sum(self, secure: Any, *, note: str = "") -> Entry:
        """Charge a secure sum before its shares are made, or refuse to.

        Its central guarantee is never added to that of local releases: `spent` does not change, `sums` does.
        Whoever sees both has the sum of the two.

        Parameters
        ----------
        secure : bitldp.sums.SecureSum
            Charged is its central epsilon for the least number of survivors.
        note : str
            As of `charge`.

        Returns
        -------
        Entry
            Its `model` is "central", and `release` the digest of the sum's terms.

        Raises
        ------
        BudgetExceededError
            If sums would cost more than `allow_sums` set aside, which is nothing at first.
        ValueError, TypeError, LedgerChangedError, OSError, RuntimeError
            As of `charge`.

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
        """Write what will be the charges to the open file, if there is one; a failure means no charge."""
        if self._file is not None:
            self._save(self._file, entries)

    def _usable(self) -> None:
        """Refuse to spend a budget that another may spend as well."""
        if self._process != os.getpid():
            raise RuntimeError("the ledger belongs to the process that was forked; open its file")
        if self._closed:
            raise RuntimeError("the ledger was closed; others may have charged it since: open it again")

    @contextmanager
    def charging(
        self,
        release: Mechanism | Guarantee,
        count: int = 1,
        *,
        note: str = "",
        reservation: str = "",
    ) -> Iterator[Entry]:
        """Charge, then run the body of a ``with`` statement, which makes the release.

        The charge is made first, so that the body does not run if the budget is exhausted. It stays if the
        body fails: a report may have left before the failure, and the ledger cannot know.

        Parameters
        ----------
        release, count, note, reservation
            As of `charge`.

        Yields
        ------
        Entry
            What was recorded.
        """
        yield self.charge(release, count, note=note, reservation=reservation)

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
            From the guarantees of the charges but those of sums, the ledger's only knowledge of the
            mechanisms. These themselves, given to `bitldp.accounting.account`, may show that they cost less.

        Raises
        ------
        ValueError, TypeError, MissingExtraError
            As of `bitldp.accounting.account`; also if there are no charges.

        Notes
        -----
        It is a report. The budget is kept by basic composition, whatever this says.
        """
        from bitldp.accounting import account

        local = [(entry.guarantee, entry.count) for entry in self.entries if not entry.model]
        return account(local, delta=delta, method=method)

    def __repr__(self) -> str:
        """Return budget, what is spent, and the number of charges."""
        with self._lock:
            return f"Ledger(budget={self.budget:g}, spent={self.spent:g}, entries={len(self.entries)})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise TypeError("a Ledger cannot be copied, each copy would have the whole budget; use save and load")
