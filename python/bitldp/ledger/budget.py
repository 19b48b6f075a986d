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

from bitldp.base import checks
from bitldp.base.lock import locked
from bitldp.ledger import document, place
from bitldp.ledger.balance import BudgetExceededError
from bitldp.ledger.charges import Charges
from bitldp.ledger.entry import Entry
from bitldp.ledger.place import LedgerChangedError, NoLedgerError

__all__ = ["BudgetExceededError", "Entry", "Ledger", "LedgerChangedError", "NoLedgerError"]


class Ledger(Charges):
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
    A ledger holds names of mechanisms, guarantees, counts and notes, and no data; the notes are the caller's,
    who must keep private values out of them.

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
    bitldp.ledger.balance.BudgetExceededError: GRR: 3 releases of epsilon 1 exceed the budget, ...
    """

    def __init__(self, budget: float, delta: float = 0.0) -> None:
        super().__init__(budget, delta)
        self._seen: dict[Path, str] = {}  # checksums of its files, as they were read or written last
        self._file: Path | None = None  # while it is open
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
        RuntimeError
            If this thread has it open already.
        OSError
            If the file cannot be read or written, or its folder does not exist.

        Notes
        -----
        Others wait while it is open, in threads, in processes, and by whatever link they come. The lock is
        the operating system's, given back when the process ends; over a network file system it is as good as
        that system's locks. A forked child cannot charge what its parent has open.

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
        for name, value in (("budget", budget), ("delta", delta)):
            if value is not None:
                checks.budget(name, value)
        here = place.place_of(path)
        if not create and not here.exists():  # before a lock is left there
            raise NoLedgerError(path)
        with locked(here):
            if place.read(here) is None:
                if not create:
                    raise NoLedgerError(path)
                if budget is None:
                    raise ValueError("budget: must be given, the file of the ledger does not exist yet")
                ledger = cls(budget, 0.0 if delta is None else delta)
                ledger._write(here, ())
            else:
                ledger = cls.load(path)
                ledger._same(path, budget, delta)
            ledger._file = here
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

    def _write(self, here: Path, entries: Iterable[Entry]) -> None:
        """Replace the file that was seen last, whose lock is held."""
        text = document.write(self.budget, self.delta, entries)
        self._seen[here] = place.write(here, text, self._seen.get(here))

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
        here = place.place_of(path)
        with self._lock:
            self._usable()
            if here == self._file:
                self._write(here, self._balance.entries)
                return
            with locked(here):
                self._write(here, self._balance.entries)

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
        here = place.place_of(path)
        found = place.read(here)
        if found is None:
            raise NoLedgerError(path)
        data, checksum = found
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = ""
        ledger = cls.from_json(text, place=os.fspath(path))
        ledger._seen[here] = checksum
        return ledger

    @classmethod
    def from_json(cls, text: str, *, place: str = "text") -> Ledger:
        """Return the ledger that `to_json` wrote.

        Parameters
        ----------
        text : str
            The JSON text.
        place : str
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
            budget, delta, entries = document.read(text)
            ledger = cls(budget, delta)
            ledger._extend(entries)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        return ledger

    def to_json(self) -> str:
        """Return the ledger as a JSON text with a checksum: what `save` writes."""
        with self._lock:
            return document.write(self.budget, self.delta, self._balance.entries)

    def _kept(self, entries: Iterable[Entry]) -> None:
        if self._file is not None:
            self._write(self._file, entries)

    def _usable(self) -> None:
        super()._usable()
        if self._closed:
            raise RuntimeError("the ledger was closed; others may have charged it since: open it again")
