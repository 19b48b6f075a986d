"""Budget of one client: a ledger that outlives rounds, in a file or in Flower's context."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from flwr.app import ConfigRecord, Context

from bitldp.base import checks
from bitldp.base.files import resolved
from bitldp.ledger.budget import Ledger
from bitldp.ledger.entry import Entry, checked
from bitldp.ledger.file import NoLedgerError

__all__ = ["Charge", "ClientAccount", "RunBudgetWarning", "SumsAccount", "node_file"]

Place = str | os.PathLike[str] | Callable[[Context], str | os.PathLike[str]]

UPDATE = "federated update"
"""Note of the charge of an update."""

RECORD = "bitldp.ledger"
"""Name of the record of `Context.state` that holds the ledger where no file does."""


class RunBudgetWarning(UserWarning):
    """Warning that a budget is kept for one run only: the next run has all of it again."""


def node_file(context: Context) -> Path:
    """Return the file of a node's ledger where none is named.

    It is ``ledgers/node-N.json``, with N the "partition-id" of the node's configuration, or ``node.json``
    where there is none, in the folder that ``BITLDP_STATE`` names; else in ``bitldp`` in ``XDG_STATE_HOME``,
    or in the place where the platform keeps such files.

    Raises
    ------
    ValueError
        If there is no such place, or the partition is no number.
    """
    part = context.node_config.get("partition-id")
    name = "node" if part is None else f"node-{checks.integer('partition-id', part, 0)}"
    return _state() / "ledgers" / f"{name}.json"


def _state() -> Path:
    chosen = os.environ.get("BITLDP_STATE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME")
    if base and Path(base).is_absolute():
        return Path(base) / "bitldp"
    try:
        return Path.home() / ".local" / "state" / "bitldp"
    except RuntimeError:  # a service's account
        raise ValueError("ledger: there is no home folder for its file; pass a path") from None


class Charge(NamedTuple):
    """Cost of a reply: a mechanism, a guarantee or a secure sum, the number of its releases, and a note."""

    release: Any
    times: int
    note: str


@dataclass(frozen=True)
class ClientAccount:
    """Place of a client's ledger, and the budget that it keeps.

    Parameters
    ----------
    budget, delta : float
        Budget for a client's data: epsilon, above zero, and delta, 0 or more and below 1.
    path : path-like, callable of the Context that returns one, or "run", optional
        File of the ledger, as in `bitldp.Ledger.open`. Default: a file of the node (`node_file`), which is
        created automatically and outlives runs and restarts. "run" keeps the ledger in `Context.state`, which
        Flower keeps for one run: the next run, or a restarted SuperNode, has the whole budget again. Use it
        for simulations only; it issues a warning.
    create : bool
        Whether to create the ledger if there is no file at the given path. An emptied or unmounted folder
        then grants the whole budget again. In production, create the ledger once by hand (``Ledger.open(path,
        budget=..., create=True)``), and leave this out.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.
    NoLedgerError
        If there is no file, and `create` is false; for a callable path, when the client is asked.
    """

    budget: float
    delta: float = 0.0
    path: Place | Literal["run"] | None = None
    create: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check the parameters."""
        Ledger(self.budget, delta=self.delta)
        if checks.flag("create", self.create) and self.path in (None, "run"):
            raise ValueError("create: needs a ledger with a path")
        if self.path == "run":
            warnings.warn(
                f"ledger='run': the budget of {self.budget:g} is that of one run, and the next run has it "
                "again; leave ledger= out for one that lasts",
                RunBudgetWarning,
                stacklevel=3,
            )
        elif self.path is not None and not callable(self.path):
            parent = resolved(self.path).parent
            if not parent.is_dir():
                raise ValueError(f"ledger: the folder {parent} does not exist")
            if not self.create and not Path(self.path).exists():
                raise NoLedgerError(self.path)

    def ledger(self, context: Context) -> Ledger:
        """Return a copy of a client's present ledger, or a new one if it has not been created."""
        path = self._path(context)
        if path is None:
            record: Any = context.state.get(RECORD)
            result = None if record is None else Ledger.from_json(record["json"], source=RECORD)
            return self._begun() if result is None else self._same(result, "ledger")
        try:
            return self._same(Ledger.load(path), path)
        except NoLedgerError:
            if not self._begins:
                raise
            return self._begun()

    def _begun(self) -> Ledger:
        """Return a new ledger."""
        return Ledger(self.budget, delta=self.delta)

    @property
    def _begins(self) -> bool:
        """True where a missing file is begun."""
        return self.create or self.path is None

    def _same(self, result: Ledger, where: Any) -> Ledger:
        """Return a ledger, or refuse one that was begun with another budget."""
        if (result.budget, result.delta) != (self.budget, self.delta):
            more = "; name another file, or ledger='run' for a simulation" if self.path is None else ""
            raise ValueError(
                f"{where}: was created with budget {result.budget:g} and delta {result.delta:g}, not "
                f"{self.budget:g} and {self.delta:g}{more}"
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
        if self.path is None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._opened(path) as ledger:
            ledger._replace(self._charged(merged(ledger), charges).entries)

    def _opened(self, path: Path) -> AbstractContextManager[Ledger]:
        """Return the ledger of a file, held while it is open."""
        return Ledger.open(path, budget=self.budget, delta=self.delta, create=self._begins)

    def _charged(self, ledger: Ledger, charges: Sequence[Charge]) -> Ledger:
        """Return a ledger with charges added; they add up."""
        for each in charges:
            ledger.charge(each.release, each.times, note=each.note)
        return merged(ledger)

    def _usual(self, context: Context) -> Path:
        """Return the file where none is named."""
        return node_file(context)

    def _path(self, context: Context) -> Path | None:
        """Return the file of a client's ledger; None where its run keeps it."""
        if self.path is None:
            return self._usual(context)
        path = self.path(context) if callable(self.path) else self.path
        return None if path == "run" else Path(path)


@dataclass(frozen=True)
class SumsAccount(ClientAccount):
    """Place of a ledger that charges secure sums, and what they may cost together in the central model.

    Parameters
    ----------
    budget, delta : float
        Budget of the sums of a client's data: central epsilon, above zero, and delta. They apply to a ledger
        that this account creates; an existing ledger has its own (`Ledger.allow_sums`).
    path : path-like, callable of the Context that returns one, or "run", optional
        File of the ledger. Default: a file of the node for its sums alone, which is begun by itself: that of
        `ClientAccount`, with the end ``.sums.json``; in it nothing else may be charged. "run" keeps the
        ledger for one run: for simulations.
    create : bool
        Whether to begin a ledger where there is no file of the given path.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.
    NoLedgerError
        If there is no file, and `create` is false.

    Examples
    --------
    >>> from bitldp.federated import SumsAccount
    >>> SumsAccount(2.0, delta=1e-5)
    SumsAccount(budget=2.0, delta=1e-05, path=None, create=False)
    """

    def _usual(self, context: Context) -> Path:
        return node_file(context).with_suffix(".sums.json")

    def _begun(self) -> Ledger:
        ledger = Ledger(0.0)
        ledger.allow_sums(self.budget, delta=self.delta)
        return ledger

    def _same(self, result: Ledger, where: Any) -> Ledger:
        sums = result.sums
        if self._begins and (sums.budget, sums.delta) != (self.budget, self.delta):
            raise ValueError(
                f"{where}: was created with budget {sums.budget:g} and delta {sums.delta:g} for sums, not "
                f"{self.budget:g} and {self.delta:g}"
            )
        return result

    @contextmanager
    def _opened(self, path: Path) -> Iterator[Ledger]:
        with Ledger.open(path, budget=0.0 if self._begins else None, create=self._begins) as ledger:
            if not ledger.entries and self._begins:
                ledger.allow_sums(self.budget, delta=self.delta)
            yield self._same(ledger, path)

    def _charged(self, ledger: Ledger, charges: Sequence[Charge]) -> Ledger:
        for each in charges:
            ledger.charge_sum(each.release, note=each.note)
        return merged(ledger)


def merged(ledger: Ledger) -> Ledger:
    """Return a ledger with equal charges in one entry: its size does not grow with the rounds."""
    counts: dict[Entry, int] = {}
    for entry in ledger.entries:
        alike = replace(entry, count=1)
        counts[alike] = counts.get(alike, 0) + entry.count
    short = Ledger(ledger.budget, delta=ledger.delta)
    short._extend([checked(replace(entry, count=count)) for entry, count in counts.items()])
    return short
