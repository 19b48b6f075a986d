"""Client of a secure sum: it answers each stage once, checks all against its own agreement, and else ends."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from bitldp.base.documents import document
from bitldp.base.signing import private_key
from bitldp.sums.protocol.agreement import Agreement
from bitldp.sums.protocol.graph import chosen, edges
from bitldp.sums.protocol.masks import (
    KEY_BYTES,
    SEAL_BYTES,
    Words,
    opened,
    packed,
    pair_key,
    public_of,
    sealed,
    seed_key,
    stream,
    word,
)
from bitldp.sums.protocol.messages import (
    Members,
    Stage,
    SumRefusedError,
    body_of,
    flags,
    flags_size,
    head_of,
    members,
    message,
    read_flags,
    read_rows,
    rows,
)
from bitldp.sums.protocol.shamir import SHARE_BYTES, Entropy, split

__all__ = ["ADVERT", "Advert", "SummingClient", "commitment", "pair_mask", "session_of", "survivors_text"]

SIGNATURE_BYTES = 64
ADVERT = 4 * KEY_BYTES + SIGNATURE_BYTES
SEALED = 2 * SHARE_BYTES + SEAL_BYTES

Share = Callable[[], NDArray[Any]]


@dataclass(frozen=True)
class Advert:
    """Keys that a client signs for one round.

    Attributes
    ----------
    nonce : bytes
        Chooses its neighbours.
    seal, mask : bytes
        Public X25519 keys: of the envelopes for its shares, and of the masks with its neighbours.
    commitment : bytes
        Digest of the seed of its own mask, so that shares which do not give it back are noticed.
    signature : bytes
        Of all these, the agreement, the round and the client's index.
    """

    nonce: bytes
    seal: bytes
    mask: bytes
    commitment: bytes
    signature: bytes = b""

    def text(self, agreement: Agreement, number: int, index: int) -> bytes:
        """Return what the client signs."""
        where = agreement.digest + number.to_bytes(8, "little") + index.to_bytes(4, "little")
        return b"bitldp sum keys\0" + where + self.nonce + self.seal + self.mask + self.commitment

    def __bytes__(self) -> bytes:
        """Return the row of a message."""
        return self.nonce + self.seal + self.mask + self.commitment + self.signature

    @classmethod
    def of(cls, row: bytes) -> Advert:
        """Return the keys of a row."""
        nonce, seal, mask, seed = (row[start : start + KEY_BYTES] for start in range(0, 128, KEY_BYTES))
        return cls(nonce, seal, mask, seed, row[4 * KEY_BYTES :])

    @classmethod
    def checked(cls, agreement: Agreement, number: int, index: int, row: bytes) -> Advert:
        """Return the keys of a row that its client has signed.

        Raises
        ------
        SumRefusedError
            If it has not, for this agreement, this round and this index.
        """
        advert = cls.of(row)
        if not agreement.signed(index, advert.signature, advert.text(agreement, number, index)):
            raise SumRefusedError("signature", f"keys: those of client {index} are not signed by it")
        return advert


def commitment(session: bytes, index: int, seed: bytes) -> bytes:
    """Return the digest that a client signs of the seed of its own mask."""
    return hashlib.sha256(b"bitldp sum seed\0" + session + index.to_bytes(4, "little") + seed).digest()


def session_of(agreement: Agreement, number: int, keys: bytes) -> bytes:
    """Return the digest of agreement, round and all keys, which everything after them is bound to."""
    head = b"bitldp sum session\0" + agreement.digest + number.to_bytes(8, "little")
    return hashlib.sha256(head + hashlib.sha256(keys).digest()).digest()


def survivors_text(session: bytes, present: Members, active: Members) -> bytes:
    """Return what the survivors sign: who went on to the masks, and who of them survived."""
    return b"bitldp sum survivors\0" + session + flags(present) + flags(active)


def pair_mask(
    agreement: Agreement, private: bytes, public: bytes, session: bytes, one: int, other: int
) -> Words:
    """Return the mask of two clients: the one of the lower index adds it, the other takes it off."""
    key = pair_key(private, public, session, b"mask", min(one, other), max(one, other))
    return stream(key, agreement.sum.kind.coordinates, agreement.sum.bits)


@dataclass(repr=False)
class _Round:
    """Secrets and views of a round."""

    number: int = -1
    stage: int = -1  # the last one that was answered
    seal: bytes = b""
    mask: bytes = b""
    seed: bytes = b""
    advert: bytes = b""
    keys: bytes = b""
    session: bytes = b""
    present: bytes = b""
    active: bytes = b""
    shares: dict[int, bytes] = field(default_factory=dict)


class SummingClient:
    """Machine of one client: messages of the server in, replies out, without any transport.

    Parameters
    ----------
    agreement : Agreement
        The terms, from the client's own configuration.
    key : path-like or Ed25519PrivateKey
        Private key that signs for this client, in a PEM file that its owner alone may read.
    state : bytes, optional
        What `state` returned, of this client; None for one that has seen no round.
    entropy : callable
        Source of secret bytes. For tests only.

    Raises
    ------
    ValueError, TypeError
        For a key that is not of the agreement, and a state that is none.

    Notes
    -----
    `answer` checks, in this order: the agreement's digest and the round's number, which rises; the stage,
    each of which is answered once; that every key is signed by its client and none stands twice; that enough
    clients go on, itself among them; that its envelopes are sealed for this session; that those who survived
    are among these, no fewer than `Agreement.least`, each with enough neighbours; and that a quorum has
    signed the same lists. Whatever does not fit ends the round: its secrets are dropped and nothing more of
    it is answered.

    The reply of the stage MASK alone depends on what is summed, and it is uniform to everybody who does not
    know the masks.

    Examples
    --------
    A round, of clients that all stay:

    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> from bitldp.sums import Count, SecureSum
    >>> from bitldp.sums.protocol import Agreement, SummingClient, SummingServer
    >>> keys = [Ed25519PrivateKey.generate() for _ in range(5)]
    >>> total = SecureSum(Count(), epsilon=1.0, clients=5)
    >>> agreement = Agreement(total, [key.public_key().public_bytes_raw() for key in keys])
    >>> clients = {index: SummingClient(agreement, key) for index, key in enumerate(keys)}
    >>> server = SummingServer(agreement, number=1)
    >>> messages = server.invite(clients)
    >>> while messages:
    ...     replies = {
    ...         each: clients[each].answer(data, lambda: total.share(True)) for each, data in messages.items()
    ...     }
    ...     messages = server.proceed(replies)
    >>> server.opened.survivors
    5
    """

    def __init__(
        self,
        agreement: Agreement,
        key: str | os.PathLike[str] | Ed25519PrivateKey,
        *,
        state: bytes | None = None,
        entropy: Entropy = os.urandom,
    ) -> None:
        self._agreement = agreement
        self._key = key if isinstance(key, Ed25519PrivateKey) else private_key(key)
        self.index = agreement.index_of(self._key.public_key().public_bytes_raw())
        self._entropy = entropy
        self._round = _Round() if state is None else _restored(state)

    def __repr__(self) -> str:
        """Return index and stage; never a secret."""
        return f"SummingClient(index={self.index}, round={self._round.number}, stage={self._round.stage})"

    @property
    def state(self) -> bytes:
        """State that a machine of this client goes on with; its secrets must not leave the client."""
        entries: dict[str, Any] = {}
        for each in fields(_Round):
            value = getattr(self._round, each.name)
            if isinstance(value, dict):
                value = {str(index): share.hex() for index, share in value.items()}
            entries[each.name] = value.hex() if isinstance(value, bytes) else value
        return json.dumps(entries).encode()

    def answer(self, data: bytes, share: Share | None = None) -> bytes:
        """Return the reply to a message of the server.

        Parameters
        ----------
        data : bytes
            The message.
        share : callable
            Returns the noisy share: integers modulo 2**bits, shape (coordinates,). It is called in the
            stage MASK alone, once everything that the message says was checked.

        Returns
        -------
        bytes

        Raises
        ------
        SumRefusedError
            For a message that does not fit. The round is over for this client.
        Exception
            What `share` raises; the round is over, too.
        """
        number = self._round.number
        try:
            stage, _, theirs, _ = head_of(data, reply=False)
            if stage == Stage.ADVERTISE:
                body = self._advertise(data, theirs)
                number = theirs
            elif stage != self._round.stage + 1:
                raise SumRefusedError("stage", "message: of a stage that was answered, or is not due")
            elif stage == Stage.MASK:
                body = self._mask(data, share)
            else:
                steps = {Stage.SHARE: self._share, Stage.AGREE: self._agree, Stage.REVEAL: self._reveal}
                body = steps[stage](data)
            self._round.stage = stage
        except BaseException:
            self._round = _Round(number=max(number, self._round.number))
            raise
        reply = message(stage, reply=True, bound=self._bound(stage), number=number, body=body)
        if stage == Stage.REVEAL:  # nothing of it is needed again
            self._round = _Round(number=number, stage=int(Stage.REVEAL))
        return reply

    def _bound(self, stage: Stage) -> bytes:
        return self._round.session if stage > Stage.SHARE else self._agreement.digest

    def _body(self, data: bytes, stage: Stage) -> bytes:
        """Return the body of a message of this round."""
        bound = self._agreement.digest if stage == Stage.SHARE else self._round.session
        return body_of(data, stage, reply=False, bound=bound, number=self._round.number)

    def _advertise(self, data: bytes, number: int) -> bytes:
        """Begin a round: fresh secrets, and signed public keys."""
        bound = self._agreement.digest
        if body_of(data, Stage.ADVERTISE, reply=False, bound=bound, number=None):
            raise SumRefusedError("form", "message: an invitation holds a number and nothing else")
        if number <= self._round.number:
            raise SumRefusedError("round", f"message: round {number} is not after round {self._round.number}")
        seal, mask, seed, nonce = (self._entropy(KEY_BYTES) for _ in range(4))
        secret = commitment(bound + number.to_bytes(8, "little"), self.index, seed)
        advert = Advert(nonce, public_of(seal), public_of(mask), secret)
        signature = self._key.sign(advert.text(self._agreement, number, self.index))
        row = bytes(advert) + signature
        self._round = _Round(number=number, seal=seal, mask=mask, seed=seed, advert=row)
        return rows([(self.index, row)])

    def _adverts(self) -> dict[int, Advert]:
        """Return the keys of the round, which were checked when they came."""
        read = read_rows(self._round.keys, ADVERT, self._agreement.clients)
        return {index: Advert.of(row) for index, row in read.items()}

    def _share(self, data: bytes) -> bytes:
        """Check all keys, and hand out sealed shares of the own secrets."""
        agreement, own = self._agreement, self._round
        body = self._body(data, Stage.SHARE)
        read = read_rows(body, ADVERT, agreement.clients)
        if read.get(self.index) != own.advert:
            raise SumRefusedError("keys", "keys: one's own are not among them, or are others")
        if len(read) < agreement.starters:
            raise SumRefusedError("members", f"keys: of {len(read)} clients, {agreement.starters} are needed")
        adverts = {index: Advert.checked(agreement, own.number, index, row) for index, row in read.items()}
        public = [key for each in adverts.values() for key in (each.seal, each.mask)]
        if len(set(public)) != len(public):
            raise SumRefusedError("keys", "keys: one of them appears twice")
        own.keys = body
        own.session = session_of(agreement, own.number, body)
        choice = chosen(adverts[self.index].nonce, self.index, agreement.clients, agreement.holders)
        holders = [index for index in adverts if choice[index]]
        if len(holders) < agreement.needed:
            raise SumRefusedError("members", "keys: of too few of the clients that hold one's shares")
        points = [index + 1 for index in holders]
        seeds = split(own.seed, points, agreement.needed, self._entropy)
        masks = split(own.mask, points, agreement.needed, self._entropy)
        envelopes = []
        for holder, first, second in zip(holders, seeds, masks, strict=True):
            key = self._envelope(adverts[holder].seal, self.index, holder)
            envelopes.append((holder, sealed(key, first + second)))
        return rows(envelopes)

    def _envelope(self, public: bytes, sender: int, holder: int) -> bytes:
        """Return the key of an envelope with shares of the sender for the holder."""
        try:
            return pair_key(self._round.seal, public, self._round.session, b"share", sender, holder)
        except ValueError:
            raise SumRefusedError("keys", "keys: one of them is of small order") from None

    def _mask(self, data: bytes, share: Share | None) -> bytes:
        """Keep the shares of others, and return the own share under all masks."""
        agreement, own = self._agreement, self._round
        clients = agreement.clients
        body = self._body(data, Stage.MASK)
        cut = flags_size(clients)
        present = read_flags(body[:cut], clients)
        read = read_rows(body[cut:], SEALED, clients)
        adverts = self._adverts()
        if not present[self.index] or (present & ~members(adverts, clients)).any():
            raise SumRefusedError("members", "members: one of them has no keys, or this client is missing")
        if int(present.sum()) < agreement.least:
            raise SumRefusedError("members", f"members: fewer than {agreement.least}")
        choices = edges({index: each.nonce for index, each in adverts.items()}, clients, agreement.holders)
        senders = {index for index in adverts if present[index] and choices[index][self.index]}
        if set(read) != senders:
            raise SumRefusedError("shares", "shares: not of exactly the members that chose this client")
        for sender in sorted(senders):
            plain = opened(self._envelope(adverts[sender].seal, sender, self.index), read[sender])
            if plain is None:
                raise SumRefusedError("shares", f"shares: those of client {sender} were not sealed for this")
            own.shares[sender] = plain
        if share is None:
            raise TypeError("share: is needed in the stage MASK")
        total = self._whole(share())
        total += stream(seed_key(own.seed, own.session, self.index), total.size, agreement.sum.bits)
        for other in np.flatnonzero(present & (members(senders, clients) | choices[self.index])):
            try:
                mask = pair_mask(
                    agreement, own.mask, adverts[int(other)].mask, own.session, self.index, int(other)
                )
            except ValueError:
                raise SumRefusedError("keys", "keys: one of them is of small order") from None
            if self.index < other:
                total += mask
            else:
                total -= mask
        own.present = flags(present)
        own.seal = own.mask = b""  # what others hold of them is all that is needed now
        return packed(total, agreement.sum.bits)

    def _whole(self, values: NDArray[Any]) -> Words:
        """Return a share as words of its own, or refuse what is none."""
        agreed = self._agreement.sum
        values = np.asarray(values)
        if values.dtype.kind not in "ui" or values.shape != (agreed.kind.coordinates,):
            raise TypeError(f"share: must be {agreed.kind.coordinates} integers")
        if values.dtype.kind == "i" and values.size and int(values.min()) < 0:
            raise ValueError(f"share: must be integers from 0 to 2**{agreed.bits} - 1")
        if values.size and int(values.max()) >> agreed.bits:
            raise ValueError(f"share: must be integers from 0 to 2**{agreed.bits} - 1")
        return values.astype(word(agreed.bits))

    def _agree(self, data: bytes) -> bytes:
        """Check who survived, and sign it."""
        agreement, own = self._agreement, self._round
        clients = agreement.clients
        present = read_flags(own.present, clients)
        active = read_flags(self._body(data, Stage.AGREE), clients)
        if (active & ~present).any() or not active[self.index]:
            raise SumRefusedError("survivors", "survivors: one is not a member, or this client is missing")
        if int(active.sum()) < agreement.least:
            raise SumRefusedError(
                "survivors", f"survivors: {int(active.sum())}, at least {agreement.least} are needed"
            )
        if agreement.holders < clients - 1:
            for index, each in self._adverts().items():
                choice = chosen(each.nonce, index, clients, agreement.holders)
                if active[index] and int((choice & active).sum()) < agreement.needed:
                    raise SumRefusedError("survivors", "survivors: one of them has too few neighbours left")
        own.active = flags(active)
        return self._key.sign(survivors_text(own.session, present, active))

    def _reveal(self, data: bytes) -> bytes:
        """Check that a quorum has signed the same lists; hand out the own seed, and a share of each."""
        agreement, own = self._agreement, self._round
        clients = agreement.clients
        present, active = read_flags(own.present, clients), read_flags(own.active, clients)
        read = read_rows(self._body(data, Stage.REVEAL), SIGNATURE_BYTES, clients)
        if len(read) < agreement.quorum:
            raise SumRefusedError("quorum", f"signatures: of {len(read)}, {agreement.quorum} are needed")
        text = survivors_text(own.session, present, active)
        for index, signature in read.items():
            if not agreement.signed(index, signature, text):
                raise SumRefusedError("quorum", f"signatures: that of client {index} is of another list")
        return own.seed + rows(
            (index, share[:SHARE_BYTES] if active[index] else share[SHARE_BYTES:])
            for index, share in own.shares.items()
        )


def _restored(state: bytes) -> _Round:
    """Return the round of a state, or refuse what is none."""
    result = _Round()
    try:
        entries = document(state.decode())
        for each in fields(_Round):
            value, like = entries[each.name], getattr(result, each.name)
            if isinstance(like, dict):
                value = {int(index): bytes.fromhex(share) for index, share in value.items()}
            elif isinstance(like, bytes):
                value = bytes.fromhex(value)
            setattr(result, each.name, value)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError("state: is not the state of a client") from None  # and shows nothing of it
    return result
