"""Agreement on a secure sum: all that a client holds in its own configuration, and refuses to do without."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bitldp.base import checks
from bitldp.base.signing import public_key
from bitldp.sums.protocol.graph import failure_chance, least_threshold
from bitldp.sums.secure import SecureSum

__all__ = ["Agreement"]

MOST_CLIENTS = 1 << 16
_KEY_BYTES = 32
_CHANCE = 2.0**-40


@dataclass(frozen=True, eq=False)
class Agreement:
    """Terms of a secure sum that clients and server have to the letter in common.

    Parameters
    ----------
    sum : SecureSum
        What is summed: noise law, floor h of honest survivors, colluding clients c, modulus, clip, numbers
        and steps.
    keys : sequence of bytes or path-like
        Public Ed25519 key of each client, as 32 bytes or as a PEM file (``bitldp keypair`` makes pairs). The
        order is part of the agreement: a client's index is that of its key.
    threshold : int, optional
        Shares that give a dropped client's mask back. On the complete graph above (n + c)/2, and the least
        such number by default; else the least that keeps `failure` at 2**-40.
    degree : int, optional
        Clients that each one chooses as its neighbours; default all others (the complete graph).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, keys that are not different, a list of another length than the
        sum's clients, a threshold that is too low, and a degree with which no threshold is high enough.

    Notes
    -----
    A client answers nothing that was made under another agreement: `digest` stands in every message, in every
    signature and in every key.

    Examples
    --------
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> from bitldp.sums import Count, SecureSum
    >>> from bitldp.sums.protocol import Agreement
    >>> keys = [Ed25519PrivateKey.generate().public_key().public_bytes_raw() for _ in range(10)]
    >>> total = SecureSum(Count(), epsilon=1.0, clients=10, floor=7, colluding=1)
    >>> agreement = Agreement(total, keys)  # keys of files: ["hospital-1.key.pub", ...]
    >>> agreement.threshold, agreement.least, agreement.failure
    (6, 8, 0.0)
    """

    sum: SecureSum
    keys: Sequence[bytes | str | os.PathLike[str]]
    _: KW_ONLY
    threshold: int | None = None
    degree: int | None = None

    def __post_init__(self) -> None:
        """Check the terms."""
        if isinstance(self.keys, (str, bytes)):
            raise TypeError("keys: must be a sequence of public keys or of their files")
        keys = tuple(_public(index, each) for index, each in enumerate(self.keys))
        clients = checks.integer("keys", len(keys), 2, MOST_CLIENTS)
        if len(set(keys)) != clients:
            raise ValueError("keys: each client needs its own key, but two are equal")
        if self.sum.clients != clients:
            raise ValueError(f"keys: {clients} are not the {self.sum.clients} clients of the sum")
        others, colluding = clients - 1, self.sum.colluding
        degree = others if self.degree is None else checks.integer("degree", self.degree, 1, others)
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "degree", degree)
        least = self.quorum if degree == others else least_threshold(clients, colluding, degree, _CHANCE)
        if least is None or least > degree:
            raise ValueError(
                f"degree: with {degree} neighbours no threshold keeps the chance that the server reads less "
                f"than the sum at 2**-40, for {clients} clients of which {colluding} collude"
            )
        if self.threshold is None:
            object.__setattr__(self, "threshold", least)
        elif checks.integer("threshold", self.threshold, 1, degree) < least:
            raise ValueError(
                f"threshold: must be at least {least} for {clients} clients of which {colluding} collude, "
                f"got {self.threshold}"
            )
        if self.starters > clients:
            raise ValueError(
                f"sum: floor and colluding need {self.starters} of {clients} clients; more clients, a "
                "lower floor or a lower threshold"
            )

    def __eq__(self, other: object) -> bool:
        """Return whether two agreements have the same terms."""
        return self.digest == other.digest if isinstance(other, Agreement) else NotImplemented

    def __hash__(self) -> int:
        """Return a hash of the terms."""
        return hash(self.digest)

    @property
    def clients(self) -> int:
        """Length n of the list of clients."""
        return len(self.keys)

    @property
    def holders(self) -> int:
        """Clients that hold shares of one client's secrets: the degree of the graph."""
        assert self.degree is not None
        return self.degree

    @property
    def needed(self) -> int:
        """Shares that give a secret back: the threshold."""
        assert self.threshold is not None
        return self.threshold

    @property
    def quorum(self) -> int:
        """Clients that must sign the same list of survivors: the least number above (n + c)/2.

        Two lists cannot both have so many signers, for each honest client signs one.
        """
        return (self.clients + self.sum.colluding) // 2 + 1

    @property
    def least(self) -> int:
        """Fewest survivors whose sum a client helps to open: floor + colluding, and what the shares need."""
        return max(self.sum.least_survivors, self.quorum, self.needed)

    @property
    def starters(self) -> int:
        """Fewest clients whose keys a round begins with: each needs as many others as the threshold."""
        return max(self.least, self.needed + 1)

    @property
    def failure(self) -> float:
        """Upper bound of the chance that a server reads less than the whole sum; 0 on the complete graph.

        It is over the nonces of the clients in one round. A server sees the graph before it asks for masked
        shares, and may begin round after round: each of them has this chance.
        """
        return failure_chance(self.clients, self.sum.colluding, self.holders, self.needed)

    @cached_property
    def digest(self) -> bytes:
        """Digest of 32 bytes of all terms."""
        terms = {
            "version": 1,
            "sum": self.sum.terms(),
            "keys": [bytes(key).hex() for key in self._public],
            "threshold": self.threshold,
            "degree": self.degree,
        }
        text = json.dumps(terms, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(b"bitldp sum agreement\0" + text.encode()).digest()

    @property
    def _public(self) -> tuple[bytes, ...]:
        """The public keys, which the constructor has read."""
        return self.keys  # type: ignore[return-value]

    def index_of(self, public: bytes) -> int:
        """Return the index of a public key.

        Raises
        ------
        ValueError
            If it is not of the list.
        """
        try:
            return self._public.index(public)
        except ValueError:
            raise ValueError("key: its public key is not in the list of the agreement") from None

    def signed(self, index: int, signature: bytes, text: bytes) -> bool:
        """Return whether a signature of a text is that of a client."""
        try:
            Ed25519PublicKey.from_public_bytes(self._public[index]).verify(signature, text)
        except InvalidSignature:
            return False
        return True

    @property
    def trust(self) -> tuple[str, ...]:
        """Sentences that say who must do what for the guarantee of the sum to hold."""
        few, n, rare = self.sum.colluding, self.clients, self.failure
        but = f", but for a chance of at most {rare:.1e} in each round that it begins" if rare else ""
        return (
            f"At least {self.sum.floor} of the surviving clients add their noise; at most {few} of {n} work "
            "with the server or with each other.",
            f"The list of {n} public keys came to each client from somebody other than the server, and each "
            "private key is its owner's alone. Without that, a server that lies can be all other clients.",
            f"The server may lie about everything: it sees the sum of {self.least} clients or more, or "
            f"nothing{but}.",
            "A client or a server that lies can spoil a sum, and a client can add any number to it; neither "
            "is noticed. Who takes part, and when, is seen.",
        )


def _public(index: int, key: Any) -> bytes:
    """Return a public key as its bytes."""
    if isinstance(key, (str, os.PathLike)):
        return public_key(key).public_bytes_raw()
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        raise TypeError(f"keys: number {index} must be {_KEY_BYTES} bytes of Ed25519, or the file of a key")
    return key
