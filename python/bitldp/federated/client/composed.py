"""Account that composes its rounds by an accountant, instead of adding them up."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from flwr.app import Context

from bitldp.accounting import account
from bitldp.accounting.compose import Method
from bitldp.base import checks
from bitldp.federated.client.account import UPDATE, Charge, ClientAccount
from bitldp.ledger.budget import Ledger
from bitldp.ledger.entry import Entry
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee

__all__ = ["Composed", "ComposedAccount", "composed"]

_NOTE = re.compile(r"(\d+) reported, each of (\d+) at most (\d+) times, by (\w+), of ([0-9a-f]{32})")
_LEAST_DELTA = 1e-11  # below which "pld" is not asked: the rounding of its convolutions would show


class Composed(NamedTuple):
    """Cost of several releases together.

    Attributes
    ----------
    epsilon, delta : float
    method : {"basic", "renyi", "pld"}
        The accountant that found it.
    """

    epsilon: float
    delta: float
    method: Method


@lru_cache(maxsize=1024)
def composed(mechanism: Mechanism, count: int, delta: float) -> Composed:
    """Return the least cost of `count` releases about the same record, over all accountants.

    Parameters
    ----------
    mechanism : Mechanism
        What releases.
    count : int
        How many releases, 1 or more.
    delta : float
        The delta that they may cost, in [0, 1).

    Returns
    -------
    Composed
        Infinite where no accountant finds an epsilon at this delta. "basic" is left out where the deltas of
        the releases add up to more.
    """
    own = mechanism.guarantee.delta
    result: list[Composed] = []
    if count * own <= delta:
        basic = account([(mechanism, count)], delta=delta, method="basic")
        result.append(Composed(basic.epsilon, delta if own else 0.0, "basic"))
    if delta > 0.0:
        finer: list[Method] = ["renyi", "pld"] if delta > _LEAST_DELTA else ["renyi"]
        for method in finer:
            each = account([(mechanism, count)], delta=delta, method=method)
            result.append(Composed(each.epsilon, delta, method))
    # the first of equals: what needs no delta, or is simplest
    return min(result, key=lambda each: each.epsilon, default=Composed(math.inf, delta, "basic"))


@dataclass(frozen=True)
class ComposedAccount(ClientAccount):
    """Account that composes all updates of a mechanism into one entry, by an accountant.

    Parameters
    ----------
    budget, delta : float
        What may be spent on a client's data: epsilon, above zero, and delta, 0 or more and below 1. Updates
        are composed at what remains of delta, so that they take all of it.
    path : path-like, or callable of the Context that returns one, optional
        File of the ledger; without one it is kept in `Context.state`, for one run (see `ClientAccount`).
    turns : int
        Number of records that take turns: with n of them and m releases, each was released at most ceil(m/n)
        times. Your training code must ensure that (`reported` returns the number of releases). 1 if all
        releases are about the same records.
    identity : str
        Name of what takes turns, such as the data set and its order. With another name, a new count starts,
        in a separate entry that adds to the others.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    A `Ledger` adds epsilons and deltas, which overestimates the cost of many releases with a delta by far. In
    this account, a charge replaces the entry of the same mechanism by one of a larger count, whose guarantee
    is that of all its releases together: the least epsilon of basic composition, Rényi divergences and
    privacy-loss distributions (`bitldp.accounting.account`). Entries of other mechanisms add to it. The
    ledger stays an ordinary one, that refuses what exceeds its budget before anything is released.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.federated import ComposedAccount, PrivateUpdateMod
    >>> account = ComposedAccount(budget=4.0, delta=1e-5)
    >>> mod = PrivateUpdateMod(lambda d: bitldp.Duchi(epsilon=0.1, features=d), clip=1.0, budget=account)
    """

    turns: int = 1
    identity: str = ""

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        checks.integer("turns", self.turns, 1)
        if not isinstance(self.identity, str):
            raise TypeError(f"identity: must be a string, not {type(self.identity).__name__}")

    def reported(self, context: Context, mechanism: Mechanism) -> int:
        """Return the number of charged updates that a mechanism released."""
        return _done(self.ledger(context), self._digest(mechanism))

    def _digest(self, mechanism: Mechanism) -> str:
        text = json.dumps([mechanism.fingerprint(), self.turns, self.identity], sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _charged(self, ledger: Ledger, charges: Sequence[Charge]) -> Ledger:
        plain = [each for each in charges if each.note != UPDATE or isinstance(each.release, Guarantee)]
        ledger = super()._charged(ledger, plain)
        for each in charges:
            if each.note == UPDATE and isinstance(each.release, Mechanism):
                ledger = self._composed(ledger, each.release, each.times)
        return ledger

    def _composed(self, ledger: Ledger, mechanism: Mechanism, times: int) -> Ledger:
        digest = self._digest(mechanism)
        done = _done(ledger, digest) + times
        count = -(-done // self.turns)
        others = Ledger(ledger.budget, delta=ledger.delta)
        for entry in ledger.entries:
            if _of(entry) != digest:
                others._extend([entry])
        total = composed(mechanism, count, others.remaining_delta)
        exact = (total.epsilon,) * 4
        note = f"{done} reported, each of {self.turns} at most {count} times, by {total.method}, of {digest}"
        others._extend([Entry(type(mechanism).__name__, Guarantee(*exact, delta=total.delta), 1, note)])
        return others


def _of(entry: Entry) -> str | None:
    """Return the digest in the note of a composed entry; None for another one."""
    result = _NOTE.fullmatch(entry.note)
    return None if result is None else result[5]


def _done(ledger: Ledger, digest: str) -> int:
    notes = [_NOTE.fullmatch(entry.note) for entry in ledger.entries]
    return sum(int(result[1]) for result in notes if result is not None and result[5] == digest)
