"""Ledger of releases, which adds up their cost and refuses the one that would exceed the budget.

Every epsilon in it is the exact one of a record, and the total is for all releases about the same records
(basic composition: Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, Theorem
3.16). Neighbouring inputs are any two series of records that one person may have.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from bitldp.base import checks
from bitldp.base.files import replacing
from bitldp.ledger.entry import Entry, check_numbers, digest, from_json, named, to_json
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee

if TYPE_CHECKING:
    from bitldp.accounting import Account

__all__ = ["BudgetExceededError", "Entry", "Ledger"]

_FORMAT = "bitldp.ledger"
_VERSION = 1


class BudgetExceededError(ValueError):
    """Error for a release that would cost more than remains. Nothing was charged."""


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
    A ledger holds names of mechanisms, guarantees, counts and notes, and no data; the notes are the caller's,
    who must keep private values out of them.

    Sums are formed exactly, as fractions, and rounded against the spender when shown. A budget of 1.0 does
    not cover ten releases of 0.1, since the double 0.1 is a little more than a tenth;
    ``bitldp.privacy.share(1.0, 10)`` is the largest even share.

    All methods may be called from several threads. A ledger can be neither copied nor pickled, since each
    copy would have the whole budget; `save` and `load` move it. To survive a crash, save after a charge and
    before the release.

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
    bitldp.ledger.budget.BudgetExceededError: GRR: 3 releases of epsilon 1 exceed the budget, ...
    """

    def __init__(self, budget: float, delta: float = 0.0) -> None:
        self._budget = checks.budget("budget", budget)
        self._delta = checks.budget("delta", delta)
        if not self._delta < 1.0:
            raise ValueError(f"delta: must be below 1, got {self._delta}")
        self._lock = threading.RLock()
        self._entries: list[Entry] = []
        self._epsilon_spent = Fraction(0)
        self._delta_spent = Fraction(0)

    @property
    def budget(self) -> float:
        """Epsilon that all releases together may cost."""
        return self._budget

    @property
    def delta(self) -> float:
        """Delta that all releases together may cost."""
        return self._delta

    @property
    def spent(self) -> float:
        """Epsilon that the releases have cost, rounded up."""
        with self._lock:
            return _rounded(self._epsilon_spent, math.inf)

    @property
    def spent_delta(self) -> float:
        """Delta that the releases have cost, rounded up."""
        with self._lock:
            return _rounded(self._delta_spent, math.inf)

    @property
    def remaining(self) -> float:
        """Epsilon that may still be spent, rounded down."""
        with self._lock:
            return _rounded(Fraction(self._budget) - self._epsilon_spent, -math.inf)

    @property
    def remaining_delta(self) -> float:
        """Delta that may still be spent, rounded down."""
        with self._lock:
            return _rounded(Fraction(self._delta) - self._delta_spent, -math.inf)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The charges, oldest first."""
        with self._lock:
            return tuple(self._entries)

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
        """
        name, guarantee = named(release)
        check_numbers(guarantee)
        count = checks.integer("count", count, 1)
        if not isinstance(note, str):
            raise TypeError(f"note: must be a string, not {type(note).__name__}")
        entry = Entry(name, guarantee, count, note)
        with self._lock:
            self._take(entry)
        return entry

    def _take(self, entry: Entry) -> None:
        """Add a checked entry, all of it or nothing."""
        guarantee, count = entry.guarantee, entry.count
        if math.isinf(guarantee.record):
            raise self._refusal(entry, "epsilon", guarantee.record, self.remaining, self._budget)
        # compared as fractions: no rounding can let a release through
        epsilon = self._epsilon_spent + count * Fraction(guarantee.record)
        if epsilon > Fraction(self._budget):
            raise self._refusal(entry, "epsilon", guarantee.record, self.remaining, self._budget)
        delta = self._delta_spent + count * Fraction(guarantee.delta)
        if delta > Fraction(self._delta):
            raise self._refusal(entry, "delta", guarantee.delta, self.remaining_delta, self._delta)
        self._entries.append(entry)
        self._epsilon_spent, self._delta_spent = epsilon, delta

    @staticmethod
    def _refusal(entry: Entry, what: str, each: float, left: float, whole: float) -> BudgetExceededError:
        many = "1 release" if entry.count == 1 else f"{entry.count} releases"
        return BudgetExceededError(
            f"{entry.mechanism}: {many} of {what} {each:.6g} exceed the budget, "
            f"{left:.6g} of {whole:.6g} remains"
        )

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

    def to_json(self) -> str:
        """Return the ledger as a JSON text with a checksum: what `save` writes."""
        with self._lock:
            contents = self._contents()
        document = {"format": _FORMAT, "version": _VERSION, "sha256": digest(contents), "ledger": contents}
        return json.dumps(document, indent=1, allow_nan=False) + "\n"

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger as JSON: to a temporary file first, which then takes the name in one step.

        Parameters
        ----------
        path : path-like
            File to write; replaced if it exists.

        Raises
        ------
        OSError
            If the file cannot be written. An older file of that name is left as it was.
        """
        text = self.to_json()
        with replacing(Path(path)) as file:
            file.write(text.encode())

    def _contents(self) -> dict[str, Any]:
        return {
            "budget": self._budget,
            "delta": self._delta,
            "entries": [to_json(entry) for entry in self._entries],
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ledger:
        """Read a ledger that `save` wrote.

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
            If the file is not a ledger, is of another version, or was damaged or changed by hand.
        OSError
            If it cannot be read.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except ValueError:  # bytes that are no UTF-8
            text = ""
        return cls.from_json(text, place=os.fspath(path))

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
        ValueError
            If the text is not a ledger, is of another version, or was damaged or changed by hand.
        """
        try:
            document = json.loads(text)
        except ValueError:
            raise ValueError(f"{place}: is not a ledger (no JSON text)") from None
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise ValueError(f"{place}: is not a ledger (its format must be {_FORMAT!r})")
        if document.get("version") != _VERSION:
            raise ValueError(f"{place}: version must be {_VERSION}, got {document.get('version')!r}")
        contents: Any = document.get("ledger")
        if document.get("sha256") != digest(contents):
            raise ValueError(f"{place}: the contents do not match their checksum; damaged or changed by hand")
        try:
            ledger = cls(contents["budget"], contents["delta"])
            for each in contents["entries"]:
                ledger._take(from_json(each))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{place}: the contents are damaged ({type(error).__name__})") from None
        return ledger

    def __repr__(self) -> str:
        """Return budget, what is spent, and the number of charges."""
        with self._lock:
            return f"Ledger(budget={self._budget:g}, spent={self.spent:g}, entries={len(self._entries)})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise TypeError("a Ledger cannot be copied, each copy would have the whole budget; use save and load")


def _rounded(exact: Fraction, toward: float) -> float:
    """Return the nearest double on one side of an exact number."""
    nearest = float(exact)
    wrong = Fraction(nearest) < exact if toward > 0.0 else Fraction(nearest) > exact
    return math.nextafter(nearest, toward) if wrong else nearest
