"""A sum that two servers hold halves of: reports with proofs, noise of each server, the estimate."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from bitldp.base import checks
from bitldp.estimate.estimates import Estimate
from bitldp.sums import Central, Count, Histogram, Number, SecureSum, Vector
from numpy.typing import NDArray

from bitldp_prio._prio3 import Prio3, Verification

__all__ = ["SumServer", "TwoServerSum"]

_VERSION = 1
_NONCE = 16
_KEY = 32
_SERVERS = 2


@dataclass(frozen=True, eq=False, repr=False)
class TwoServerSum:
    """Sum of records over two servers that do not collude, with a proof for each record that it is in range.

    A client splits its record in two halves, each of which is uniformly random by itself. The servers verify
    together that the record is one that the kind allows, and learn nothing else. Each adds noise to its own
    total before it hands it out, enough for the whole epsilon: so the sum keeps (epsilon, delta) towards the
    collector and towards one server, as long as the other one is honest.

    Parameters
    ----------
    kind : Count, Histogram, Number or Vector
        What is summed, as in `bitldp.sums.SecureSum`. Holds the steps of a vector's grid afterwards.
    epsilon : float
        Central epsilon of the sum, above zero, between data sets that differ in one record, replaced: a
        vector by any other of the l2 ball of radius `clip`.
    delta : float
        Delta of it, in (0, 1).
    task : str
        Name of this sum. Every message is bound to it: a report counts in no other sum.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    The noise of a server is that of the Pólya law at shape 1, two-sided geometric, from integers over 2**64.
    That of a vector is Skellam noise in each coordinate, and the guarantee is a bound, by normal laws (see
    `bitldp.sums.Vector`). Both servers add it, so the variance is twice that of one trusted server. The
    number of reports is public.

    *What a liar can do.* The proof is of each integer: a category is one of the categories, a number one of
    the grid, so that a liar moves a sum by as much as anybody. Of a vector it is that each of the D integers
    is at most `bitldp.sums.Vector.usual`, 7 to 9 times the root of its mean square at the length `clip`, and
    a step: `liar_factor` says how many times as long as an honest vector a liar's can be. An honest vector's
    integer is beyond with a chance of 1e-9, and is cut there; no two records get farther apart by that.

    Sources: Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai, CRYPTO 2019; Davis, Patton, Rosulek and
    Schoppmann, "Verifiable distributed aggregation functions", PETS 2023; draft-irtf-cfrg-vdaf,
    Prio3Histogram and Prio3SumVec.

    Examples
    --------
    >>> from bitldp.sums import Count
    >>> ill = TwoServerSum(Count(), epsilon=2.0, task="doctest")
    >>> servers = [ill.server(place, bytes(32)) for place in (0, 1)]
    >>> for has in [True] * 30 + [False] * 70:
    ...     messages = [server.receive(half) for server, half in zip(servers, ill.report(has))]
    ...     for server, message in zip(servers, messages[::-1]):
    ...         server.verify(message)
    >>> estimate = ill.collect(*(server.total() for server in servers))
    >>> estimate.n, bool(abs(estimate.value[0] - 30) < 15)
    (100, True)
    """

    kind: Count | Histogram | Number | Vector
    _: KW_ONLY
    epsilon: float
    delta: float = 1e-6
    task: str

    def __post_init__(self) -> None:
        """Check the parameters, and fit the noise of a server."""
        if not isinstance(self.kind, (Count, Histogram, Number, Vector)):
            kinds = "Count(), Histogram(...), Number(...) or Vector(...)"
            raise TypeError(f"kind: must be {kinds}, not {type(self.kind).__name__}")
        if not isinstance(self.task, str) or not self.task:
            raise TypeError("task: must be a name, which is not empty")
        noise = self._noise
        object.__setattr__(self, "kind", noise.kind)  # with the steps of a vector
        object.__setattr__(self, "epsilon", self._noise.epsilon)
        object.__setattr__(self, "delta", self._noise.delta)

    @cached_property
    def _noise(self) -> SecureSum:
        """The servers' noise: two shares of it, of which one is enough."""
        return SecureSum(
            self.kind,
            epsilon=self.epsilon,
            delta=self.delta,
            clients=_SERVERS,
            colluding=1,
        )

    @cached_property
    def _prio(self) -> Prio3:
        if isinstance(self.kind, Histogram):
            return Prio3.histogram(self.kind.coordinates)
        low, high = self.entries
        return Prio3.vector(self.kind.coordinates, high - low)

    @property
    def entries(self) -> tuple[int, int]:
        """Least and largest integer of a report that the proof lets through."""
        if isinstance(self.kind, Vector):
            return -self.kind.usual, self.kind.usual
        return self.kind.bounds

    @property
    def liar_factor(self) -> float:
        """How many times as far as an honest client a liar can move the sum, at most; 1 but for vectors."""
        if not isinstance(self.kind, Vector):
            return 1.0
        length = math.sqrt(self.kind.coordinates) * self.entries[1]
        return length * self.kind.step / self.kind.clip

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the task and the parameters, in hexadecimal digits; clients and servers compare it."""
        named: dict[str, Any] = {"version": _VERSION, "task": self.task, "noise": self._noise.terms()}
        if isinstance(self.kind, Vector):
            named["entries"] = self.entries
        text = json.dumps(named, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def _context(self) -> bytes:
        return b"bitldp " + bytes.fromhex(self.digest)

    @property
    def guarantee(self) -> Central:
        """Central guarantee of the sum, if one of the two servers is honest."""
        return self._noise.guarantee.central()

    @property
    def trust(self) -> tuple[str, str, str, str]:
        """Who must do what for the guarantee to hold: four lines, none of which a total can show."""
        return (
            "the two servers do not collude: both halves together are the record",
            "at least one server adds its noise, and hands its total out once",
            "every client reports one record, once: the servers know clients from others",
            "no one breaks the cryptography of Prio3 (TurboSHAKE128, a field of 128 bits)",
        )

    # the client

    def report(self, x: Any) -> tuple[bytes, bytes]:
        """Split one record in the halves for the two servers, with the proof that it is in range.

        Parameters
        ----------
        x : bool, int, float, label or ndarray of float, shape (features,)
            One record, as the kind takes it. A number or a vector is dithered to the grid first.

        Returns
        -------
        (bytes, bytes)
            For the first server (place 0) and the second one. Each must travel encrypted to its own server.

        Raises
        ------
        ValueError, TypeError
            For a record that the kind does not take.
        """
        integers, single = self.kind.encode(x, [None] * self.kind.streams, None)
        if not single:
            raise ValueError("x: must be one record")
        low, high = self.entries
        record = np.clip(integers[0], low, high) - low
        measured = [int(np.argmax(record))] if isinstance(self.kind, Histogram) else record.tolist()
        nonce = os.urandom(_NONCE)
        public, first, second = self._prio.shard(self._context, nonce, measured)
        return _joined(nonce, public, first), _joined(nonce, public, second)

    # the servers

    def server(self, place: int, key: bytes) -> SumServer:
        """Return one of the two servers, which begins with no report.

        Parameters
        ----------
        place : int
            0 or 1.
        key : bytes
            32 secret bytes that both servers know and no client does: a client that knew them could forge
            proofs.
        """
        return SumServer(self, place, key)

    # the collector

    def collect(self, first: bytes, second: bytes) -> Estimate:
        """Return what the two totals say together.

        Parameters
        ----------
        first, second : bytes
            Totals of the servers at places 0 and 1.

        Returns
        -------
        Estimate
            Counts for `Count` and `Histogram`, the mean for `Number` and `Vector`, of the very records that
            were reported: intervals cover the noise of both servers.

        Raises
        ------
        ValueError
            If the totals are of another sum, or of different reports.
        """
        heads, shares = [], []
        for place, total in enumerate((first, second)):
            head, share = _parted("total", total, 2)
            heads.append(head)
            shares.append(share)
            if head[: len(self._context)] != self._context or head[len(self._context)] != place:
                raise ValueError("total: of another sum, or of the other server")
        one, other = (head[len(self._context) + 1 :] for head in heads)
        if one != other:
            raise ValueError("total: the two servers have counted different reports")
        count = int.from_bytes(one[:8], "big")
        if count == 0:
            raise ValueError("total: of no report at all")
        sums = np.array(self._prio.unshard(shares), dtype=np.int64) + count * self.entries[0]
        return self.kind.estimate(sums, self._noise.law, count, _SERVERS)

    def __repr__(self) -> str:
        """Return the call that makes it."""
        return f"TwoServerSum({self.kind!r}, epsilon={self.epsilon}, delta={self.delta}, task={self.task!r})"


class SumServer:
    """One of the two servers of a sum: verifies halves of reports, adds them up, and adds noise once.

    Its state is its own, and private: it has no repr of it, cannot be pickled, and ends with the process.

    Parameters
    ----------
    of : TwoServerSum
        The sum.
    place : int
        0 or 1.
    key : bytes
        As of `TwoServerSum.server`.
    """

    def __init__(self, of: TwoServerSum, place: int, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) != _KEY:
            raise ValueError(f"key: must be {_KEY} bytes")
        self._of, self._key = of, key
        self._place = checks.integer("place", place, 0, _SERVERS - 1)
        self._waiting: dict[bytes, tuple[Verification, bytes]] = {}
        self._seen: set[bytes] = set()
        self._counted: list[bytes] = []
        self._sum = of._prio.total()
        self._total: bytes | None = None

    @property
    def count(self) -> int:
        """Reports that were verified and added."""
        return self._sum.count

    @property
    def waiting(self) -> int:
        """Reports of which the other server's message has not come."""
        return len(self._waiting)

    def receive(self, report: bytes) -> bytes:
        """Take a client's half, and return the message about it for the other server.

        Raises
        ------
        ValueError
            For bytes that are no half of such a report, for one that was received before, and after `total`.
        """
        self._open()
        nonce, public, share = _parted("report", report, 3)
        if len(nonce) != _NONCE:
            raise ValueError("report: is no message of this sum")
        if nonce in self._seen:
            raise ValueError("report: was received before")
        of = self._of
        state, message = of._prio.begin(self._key, of._context, self._place, nonce, public, share)
        self._seen.add(nonce)
        self._waiting[nonce] = (state, message)
        return _joined(nonce, message)

    def verify(self, message: bytes) -> None:
        """Add a report to the total if its proof holds, by the other server's message about it.

        Raises
        ------
        ValueError
            If the proof does not hold: the report is dropped, on both sides. And for a message about no
            report that is waiting.
        """
        self._open()
        nonce, other = _parted("message", message, 2)
        kept = self._waiting.pop(nonce, None)
        if kept is None:
            raise ValueError("message: about no report that is waiting")
        state, own = kept
        of = self._of
        both = [own, other] if self._place == 0 else [other, own]
        of._prio.finish(of._context, state, of._prio.combine(of._context, state, both), self._sum)
        self._counted.append(nonce)

    def total(self) -> bytes:
        """Add the noise of this server, and return its total for the collector; the same bytes each time."""
        if self._total is None:
            of = self._of
            law = of._noise.law
            noise: NDArray[np.int64] = law.sample((1, of.kind.coordinates), [None] * law.streams)[0]
            self._sum.add(noise.tolist())
            reports = hashlib.sha256(b"".join(sorted(self._counted))).digest()
            counted = self._sum.count.to_bytes(8, "big") + reports
            head = of._context + bytes([self._place]) + counted
            self._total = _joined(head, self._sum.encode())
            self._waiting.clear()
        return self._total

    def _open(self) -> None:
        if self._total is not None:
            raise ValueError("report: the total was handed out, and takes no other")

    def __reduce__(self) -> Any:
        """Refuse to be pickled: the total without its noise would be in it."""
        raise TypeError("SumServer: holds a total without noise, and is not written anywhere")


def _joined(*parts: bytes) -> bytes:
    """Return parts as one message: the length of each in four bytes, then its bytes."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _parted(name: str, message: bytes, count: int) -> Sequence[bytes]:
    """Return the parts of a message."""
    parts, rest = [], memoryview(bytes(message) if isinstance(message, (bytes, bytearray)) else b"")
    for _ in range(count):
        size = int.from_bytes(rest[:4], "big")
        if len(rest) < 4 or len(rest) - 4 < size:
            break
        parts.append(bytes(rest[4 : 4 + size]))
        rest = rest[4 + size :]
    if len(parts) < count or len(rest):
        raise ValueError(f"{name}: is no message of this sum")
    return parts
