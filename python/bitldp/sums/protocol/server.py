"""Server of a secure sum: it carries messages between clients, and opens the sum of those who survived."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from bitldp.base import checks
from bitldp.sums.protocol.agreement import Agreement
from bitldp.sums.protocol.client import (
    ADVERT,
    SEALED,
    SIGNATURE_BYTES,
    Advert,
    commitment,
    pair_mask,
    session_of,
    survivors_text,
)
from bitldp.sums.protocol.graph import edges
from bitldp.sums.protocol.masks import (
    KEY_BYTES,
    Words,
    public_of,
    seed_key,
    stream,
    unpacked,
    word,
)
from bitldp.sums.protocol.messages import (
    Members,
    Stage,
    SumRefusedError,
    body_of,
    flags,
    members,
    message,
    read_rows,
    rows,
)
from bitldp.sums.protocol.shamir import SHARE_BYTES, join

__all__ = ["OpenedSum", "Sender", "SumFailedError", "SummingServer"]

Sender = Hashable
"""Whatever the transport calls a client by."""

log = logging.getLogger("bitldp.sums")

MOST_NUMBER = (1 << 64) - 1


class SumFailedError(RuntimeError):
    """Error for a sum that cannot be opened: too few clients answered, or one of them lied."""


@dataclass(frozen=True)
class OpenedSum:
    """Sum of the survivors' shares.

    Attributes
    ----------
    total : ndarray of unsigned int, shape (coordinates,)
        Modulo 2**bits.
    survivors : int
        How many shares are in it.
    members : tuple of int
        Their indices in the agreement.
    """

    total: Words
    survivors: int
    members: tuple[int, ...]


@dataclass(repr=False)
class _Session:
    """View of a round, filled in stage by stage."""

    senders: dict[Sender, int] = field(default_factory=dict)
    adverts: dict[int, Advert] = field(default_factory=dict)
    session: bytes = b""
    choices: dict[int, Members] = field(default_factory=dict)
    present: Members = field(default_factory=lambda: np.zeros(0, np.bool_))
    active: Members = field(default_factory=lambda: np.zeros(0, np.bool_))


class SummingServer:
    """Machine of the server: replies of the clients in, messages to them out, without any transport.

    Parameters
    ----------
    agreement : Agreement
        The same as the clients'.
    number : int
        Number of the round, above that of every round before it: a client answers no other.

    Attributes
    ----------
    answered : dict of str to int
        How many usable replies each stage has had.
    refused : collections.Counter
        Replies that could not be used, by the reason.
    opened : OpenedSum or None
        The result, once there is one.

    Notes
    -----
    A round is a loop of `proceed`, whatever carries the messages; see `SummingClient`. A client whose reply
    is missing or cannot be used has dropped out, from there on.
    """

    def __init__(self, agreement: Agreement, number: int) -> None:
        self._agreement = agreement
        self._number = checks.integer("number", number, 0, MOST_NUMBER)
        self._stage: Stage | None = None
        self._view = _Session()
        self._sum = np.zeros(agreement.sum.kind.coordinates, word(agreement.sum.bits))
        self.answered: dict[str, int] = {}
        self.refused: Counter[str] = Counter()
        self.opened: OpenedSum | None = None

    @property
    def stage(self) -> Stage | None:
        """The stage whose replies are waited for; None before the first and after the last."""
        return self._stage

    def invite(self, senders: Iterable[Sender]) -> dict[Sender, bytes]:
        """Return the first message to each client.

        Raises
        ------
        SumFailedError
            If they are fewer than the agreement needs.
        """
        asked = list(senders)
        self._stage = Stage.ADVERTISE
        self._enough(len(asked), self._agreement.starters)
        return dict.fromkeys(asked, self._message(Stage.ADVERTISE, b""))

    def proceed(self, replies: Mapping[Sender, bytes]) -> dict[Sender, bytes]:
        """Take the replies of a stage, and return the messages of the next one; none after the last.

        Parameters
        ----------
        replies : mapping
            From whatever names a client to its reply. Who is missing has dropped out.

        Raises
        ------
        SumFailedError
            If too few replies can be used.
        """
        if self._stage is None:
            raise SumFailedError("the round has not begun, or is over")
        stage = self._stage
        read = {}
        for sender, data in replies.items():
            try:
                read[sender] = self._body(stage, data)
            except SumRefusedError as error:
                self._drop(sender, error)
        steps = {
            Stage.ADVERTISE: self._after_advertise,
            Stage.SHARE: self._after_share,
            Stage.MASK: self._after_mask,
            Stage.AGREE: self._after_agree,
            Stage.REVEAL: self._after_reveal,
        }
        messages = steps[stage](read)
        self._stage = Stage(stage + 1) if messages else None
        return messages

    def _message(self, stage: Stage, body: bytes) -> bytes:
        bound = self._view.session if stage > Stage.SHARE else self._agreement.digest
        return message(stage, reply=False, bound=bound, number=self._number, body=body)

    def _body(self, stage: Stage, data: bytes) -> bytes:
        bound = self._view.session if stage > Stage.SHARE else self._agreement.digest
        return body_of(data, stage, reply=True, bound=bound, number=self._number)

    def _drop(self, sender: Sender, error: SumRefusedError) -> None:
        self.refused[error.reason] += 1
        log.warning("%s: %s", sender, error)

    def _enough(self, count: int, needed: int | None = None) -> None:
        """Note how many answered, and raise if they are too few."""
        assert self._stage is not None
        needed = self._agreement.least if needed is None else needed
        self.answered[self._stage.name.lower()] = count
        if count < needed:
            raise SumFailedError(
                f"stage {self._stage.name.lower()}: {count} clients answered, {needed} are needed"
            )

    def _indices(self, read: Mapping[Sender, bytes]) -> dict[Sender, int]:
        """Return the clients of replies that are members of the round."""
        return {sender: self._view.senders[sender] for sender in read if sender in self._view.senders}

    def _after_advertise(self, read: Mapping[Sender, bytes]) -> dict[Sender, bytes]:
        agreement, view = self._agreement, self._view
        for sender, body in read.items():
            try:
                found = read_rows(body, ADVERT, agreement.clients)
                if len(found) != 1:
                    raise SumRefusedError("form", "keys: of one client are needed")
                ((index, row),) = found.items()
                if index in view.adverts:
                    raise SumRefusedError("keys", f"keys: client {index} has answered already")
                view.adverts[index] = Advert.checked(agreement, self._number, index, row)
                view.senders[sender] = index
            except SumRefusedError as error:
                self._drop(sender, error)
        self._enough(len(view.adverts), agreement.starters)
        keys = rows((index, bytes(each)) for index, each in view.adverts.items())
        view.session = session_of(agreement, self._number, keys)
        nonces = {index: each.nonce for index, each in view.adverts.items()}
        view.choices = edges(nonces, agreement.clients, agreement.holders)
        data = message(Stage.SHARE, reply=False, bound=agreement.digest, number=self._number, body=keys)
        return dict.fromkeys(view.senders, data)

    def _after_share(self, read: Mapping[Sender, bytes]) -> dict[Sender, bytes]:
        agreement, view = self._agreement, self._view
        boxes: dict[int, dict[int, bytes]] = {index: {} for index in view.adverts}
        present: dict[Sender, int] = {}
        for sender, index in self._indices(read).items():
            try:
                found = read_rows(read[sender], SEALED, agreement.clients)
                if set(found) != {other for other in view.adverts if view.choices[index][other]}:
                    raise SumRefusedError("shares", "shares: not for exactly those whom the client chose")
            except SumRefusedError as error:
                self._drop(sender, error)
                continue
            present[sender] = index
            for holder, envelope in found.items():
                boxes[holder][index] = envelope
        self._enough(len(present))
        view.senders = present
        view.present = members(present.values(), agreement.clients)
        who = flags(view.present)
        return {
            sender: self._message(Stage.MASK, who + rows(boxes[index].items()))
            for sender, index in present.items()
        }

    def _after_mask(self, read: Mapping[Sender, bytes]) -> dict[Sender, bytes]:
        agreement, view = self._agreement, self._view
        active: dict[Sender, int] = {}
        for sender, index in self._indices(read).items():
            try:
                words = unpacked(read[sender], agreement.sum.kind.coordinates, agreement.sum.bits)
            except ValueError:
                self._drop(sender, SumRefusedError("range", "sum: not of the agreed length"))
                continue
            self._sum += words
            active[sender] = index
        self._enough(len(active))
        view.senders = active
        view.active = members(active.values(), agreement.clients)
        return dict.fromkeys(active, self._message(Stage.AGREE, flags(view.active)))

    def _after_agree(self, read: Mapping[Sender, bytes]) -> dict[Sender, bytes]:
        agreement, view = self._agreement, self._view
        text = survivors_text(view.session, view.present, view.active)
        signed: dict[int, bytes] = {}
        agreed: dict[Sender, int] = {}
        for sender, index in self._indices(read).items():
            body = read[sender]
            if len(body) != SIGNATURE_BYTES or not agreement.signed(index, body, text):
                self._drop(sender, SumRefusedError("signature", "survivors: not signed by the client"))
                continue
            signed[index], agreed[sender] = body, index
        self._enough(len(signed), agreement.quorum)
        view.senders = agreed
        quorum = sorted(signed.items())[: agreement.quorum]  # more signatures prove nothing more
        return dict.fromkeys(agreed, self._message(Stage.REVEAL, rows(quorum)))

    def _after_reveal(self, read: Mapping[Sender, bytes]) -> dict[Sender, bytes]:
        """Take the masks off, and keep the sum."""
        agreement, view = self._agreement, self._view
        shares: dict[int, dict[int, bytes]] = {int(index): {} for index in np.flatnonzero(view.present)}
        seeds: dict[int, bytes] = {}
        for sender, index in self._indices(read).items():
            try:
                found = read_rows(read[sender][KEY_BYTES:], SHARE_BYTES, agreement.clients)
                if set(found) != {owner for owner in shares if view.choices[owner][index]}:
                    raise SumRefusedError("shares", "shares: not of exactly those who chose the client")
            except SumRefusedError as error:
                self._drop(sender, error)
                continue
            seeds[index] = read[sender][:KEY_BYTES]
            for owner, share in found.items():
                shares[owner][index + 1] = share
        self._enough(len(seeds), agreement.needed)
        for owner, held in shares.items():
            if not view.active[owner]:
                self._unmask_pairs(owner, self._secret(owner, held))
            elif owner in seeds and self._committed(owner, seeds[owner]):
                self._unmask_own(owner, seeds[owner])
            else:
                self._unmask_own(owner, self._secret(owner, held))
        total = self._sum & self._sum.dtype.type((1 << agreement.sum.bits) - 1)
        who = tuple(int(index) for index in np.flatnonzero(view.active))
        self.opened = OpenedSum(total, len(who), who)
        return {}

    def _secret(self, owner: int, held: Mapping[int, bytes]) -> bytes:
        """Return the secret of a client: its seed if it survived, else the key of its masks."""
        needed = self._agreement.needed
        if len(held) < needed:
            raise SumFailedError(f"client {owner}: {len(held)} shares of its mask came, {needed} are needed")
        try:
            return join(dict(sorted(held.items())[:needed]))
        except ValueError:
            raise SumFailedError(f"client {owner}: the shares of its mask do not belong together") from None

    def _committed(self, owner: int, seed: bytes) -> bool:
        """Return whether a seed is the one that a client has signed."""
        bound = self._agreement.digest + self._number.to_bytes(8, "little")
        return commitment(bound, owner, seed) == self._view.adverts[owner].commitment

    def _unmask_own(self, owner: int, seed: bytes) -> None:
        if not self._committed(owner, seed):
            raise SumFailedError(f"client {owner}: the shares of its mask give another one back")
        own = seed_key(seed, self._view.session, owner)
        self._sum -= stream(own, self._sum.size, self._agreement.sum.bits)

    def _unmask_pairs(self, owner: int, private: bytes) -> None:
        """Take off what the neighbours of a dropped client have added for it."""
        view = self._view
        if public_of(private) != view.adverts[owner].mask:
            raise SumFailedError(f"client {owner}: the shares of its key give another one back")
        for other in map(int, np.flatnonzero(view.active)):
            if view.choices[owner][other] or view.choices[other][owner]:
                public = view.adverts[other].mask
                mask = pair_mask(self._agreement, private, public, view.session, owner, other)
                if other < owner:
                    self._sum -= mask
                else:
                    self._sum += mask
