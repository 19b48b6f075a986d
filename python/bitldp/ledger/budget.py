"""Ledger of releases, which adds up their cost and refuses the one that would exceed the budget.

Every epsilon in it is the exact one of a record, and the total is for all releases about the same records
(basic composition: Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, Theorem
3.16). Neighbouring inputs are any two series of records that one person may have.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from bitldp.base import checks
from bitldp.base.files import resolved
from bitldp.ledger import file
from bitldp.ledger.balance import BudgetExceededError
from bitldp.ledger.charges import Charges
from bitldp.ledger.entry import Entry
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

__all__ = [
    "BudgetExceededError",
    "Entry",
    "Ledger",
    "LedgerChangedError",
    "LedgerState",
    "NoLedgerError",
]


class Ledger(Charges):
    """Ledger of the releases about a set of people, with a budget that they cannot exceed.

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
    You write the notes: keep private values out of them. A ledger stands for one set of people: charge the
    same ledger for all tables about them.

    Sums are formed exactly, as fractions, and rounded against the spender when shown. A budget of 1.0 does
    not cover ten releases of 0.1, since the double 0.1 is a little more than a tenth;
    ``bitldp.privacy.share(1.0, 10)`` is the largest even share.

    All methods may be called from several threads. A ledger cannot be copied, pickled or used in a forked
    process, since each copy would have the whole budget. If a ledger must outlive a process, or several
    processes share it, keep it in a file: `open` locks the file, and writes every charge to disk before it is
    spent.

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
        super().__init__(budget, delta=delta)
        self._seen: dict[Path, str] = {}  # checksums of its files, as they were read or written last
        self._file: HeldFile | None = None  # while it is open

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
        """Open a ledger's file for the body of a ``with`` statement, and lock it.

        Every charge is on disk before `charge` returns. A crash between a charge and its release may waste a
        charge, but never restores budget.

        Parameters
        ----------
        path : path-like
            File of the ledger; links are followed. Beside it: ``NAME.lock``, which stays.
        budget, delta : float, optional
            Budget and delta of the ledger; other values than its own are refused. For a new ledger, `budget`
            is required, and `delta` is 0 by default.
        create : bool
            Whether to create the file if it does not exist. Set it once, for a new set of people. If it stays
            in the code, an emptied or unmounted folder grants the whole budget again.
        at_least : LedgerState, optional
            `state` of this ledger at an earlier time, kept away from the file; a privacy report has it under
            "ledger_state". A ledger that does not begin with these charges is refused. Without it, an older
            copy of the file cannot be recognised.

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
        While it is open, other threads and processes wait, also if they open it by another link. The
        operating system holds the locks, on ``NAME.lock`` and on the file itself, and releases them when the
        process ends. On a network file system they are as reliable as that system's locks. A forked child
        cannot charge a ledger that its parent has open.

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
                f"{os.fspath(path)}: was created with budget {self.budget:g} and delta {self.delta:g}, not "
                f"{wanted[0]:g} and {wanted[1]:g}"
            )

    def _check_at_least(self, path: str | os.PathLike[str], state: LedgerState) -> None:
        """Refuse a ledger that lacks charges which a state counted."""
        first = self._state(state.entries) if len(self._balance.entries) >= state.entries else None
        if first != state:
            raise LedgerChangedError(
                f"{os.fspath(path)}: does not start with the {state.entries} charges of at_least=; an older "
                "copy may have been restored. Nothing is released"
            )

    def state(self) -> LedgerState:
        """Return the number of charges and their checksum, to keep away from the file.

        If an older copy of the file is restored, the charges since then are lost, and the file cannot show
        it. Keep a state elsewhere (for example in the privacy report of a release), and pass it to `open` as
        `at_least`.

        Returns
        -------
        LedgerState
            It is small and reveals nothing about the data.

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
            If it is another file, or was changed or removed since, perhaps because another process charged
            it. Do not release anything that this ledger was charged for since it was loaded.
        OSError
            If the file cannot be written. An older file of that name is left as it was.
        RuntimeError
            If the ledger was closed, or belongs to another process.

        Notes
        -----
        If others may charge the same file, use `open`: of two processes that load, charge and save, one is
        refused.
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

    def _kept(self, entries: Iterable[Entry]) -> None:
        """Write what will be the charges to the open file, if there is one; a failure means no charge."""
        if self._file is not None:
            self._save(self._file, entries)

    def __repr__(self) -> str:
        """Return budget, what is spent, and the number of charges."""
        with self._lock:
            return f"Ledger(budget={self.budget:g}, spent={self.spent:g}, entries={len(self.entries)})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise TypeError("a Ledger cannot be copied: each copy would have the whole budget; use save and load")
