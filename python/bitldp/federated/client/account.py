"""Budget of one client: a ledger that outlives rounds, in a file or in Flower's context."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from flwr.app import ConfigRecord, Context

from bitldp.base import checks
from bitldp.base.files import resolved
from bitldp.ledger.budget import Ledger
from bitldp.ledger.entry import Entry, checked
from bitldp.ledger.file import NoLedgerError
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee

__all__ = ["Charge", "ClientAccount"]

Place = str | os.PathLike[str] | Callable[[Context], str | os.PathLike[str]]

UPDATE = "federated update"
"""Note of the charge of an update."""

RECORD = "bitldp.ledger"
"""Name of the record of `Context.state` that holds the ledger where no file does."""


class Charge(NamedTuple):
    """Cost of a reply: a mechanism or guarantee, the number of its releases, and a note."""

    release: Mechanism | Guarantee
    times: int
    note: str


@dataclass(frozen=True)
class ClientAccount:
    """Place of a client's ledger, and the budget that it keeps.

    Parameters
    ----------
    budget, delta : float
        What may be spent on a client's data: epsilon, above zero, and delta, 0 or more and below 1.
    path : path-like, or callable of the Context that returns one, optional
        File of the ledger, as of `bitldp.Ledger.open`. Without one it is kept in `Context.state`, which
        Flower keeps for one run: a new run, or a restarted SuperNode, would begin with the whole budget. A
        file outlives both.
    create : bool
        Whether to begin a ledger where there is no file. A folder that was emptied or is not mounted then
        grants the whole budget again: on a client that matters, begin the ledger once, by hand
        (``Ledger.open(path, budget=..., create=True)``), and leave this out.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.
    NoLedgerError
        If there is no file, and `create` is false; for a callable path, when the client is asked.
    """

    budget: float
    delta: float = 0.0
    path: Place | None = None
    create: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check the parameters."""
        Ledger(self.budget, delta=self.delta)
        if checks.flag("create", self.create) and self.path is None:
            raise ValueError("create: there is no file to begin, without a path of the ledger")
        if self.path is not None and not callable(self.path):
            parent = resolved(self.path).parent
            if not parent.is_dir():
                raise ValueError(f"ledger: the folder {parent} does not exist")
            if not self.create and not Path(self.path).exists():
                raise NoLedgerError(self.path)

    def ledger(self, context: Context) -> Ledger:
        """Return a copy of a client's present ledger; a new one where one is to be begun."""
        path = self._path(context)
        if path is None:
            record: Any = context.state.get(RECORD)
            result = None if record is None else Ledger.from_json(record["json"], source=RECORD)
            return Ledger(self.budget, delta=self.delta) if result is None else self._same(result)
        try:
            return self._same(Ledger.load(path))
        except NoLedgerError:
            if not self.create:
                raise
            return Ledger(self.budget, delta=self.delta)

    def _same(self, result: Ledger) -> Ledger:
        """Return a ledger, or refuse one that was begun with another budget."""
        if (result.budget, result.delta) != (self.budget, self.delta):
            raise ValueError(
                f"ledger: was begun with budget {result.budget:g} and delta {result.delta:g}, not "
                f"{self.budget:g} and {self.delta:g}"
            )
        return result

    def check(self, context: Context, charges: Sequence[Charge]) -> None:
        """Raise `BudgetExceededError` if charges would exceed the budget; charge nothing."""
        self._charged(self.ledger(context), charges)

    def charge(self, context: Context, charges: Sequence[Charge]) -> None:
        """Make all charges or none, and save the ledger, before anything is released.

        Raises
        ------
        BudgetExceededError
            If the charges would exceed the budget.
        ValueError, OSError
            If the ledger is damaged, of another budget, or cannot be written.
        """
        path = self._path(context)
        if path is None:
            kept = self._charged(self.ledger(context), charges)
            context.state[RECORD] = ConfigRecord({"json": kept.to_json()})
            return
        with Ledger.open(path, budget=self.budget, delta=self.delta, create=self.create) as ledger:
            ledger._replace(self._charged(merged(ledger), charges).entries)

    def _charged(self, ledger: Ledger, charges: Sequence[Charge]) -> Ledger:
        """Return a ledger with charges added; they add up."""
        for each in charges:
            ledger.charge(each.release, each.times, note=each.note)
        return merged(ledger)

    def _path(self, context: Context) -> Path | None:
        path = self.path(context) if callable(self.path) else self.path
        return None if path is None else Path(path)


def merged(ledger: Ledger) -> Ledger:
    """Return a ledger with equal charges in one entry: its size does not grow with the rounds."""
    counts: dict[Entry, int] = {}
    for entry in ledger.entries:
        alike = replace(entry, count=1)
        counts[alike] = counts.get(alike, 0) + entry.count
    short = Ledger(ledger.budget, delta=ledger.delta)
    short._extend([checked(replace(entry, count=count)) for entry, count in counts.items()])
    return short
