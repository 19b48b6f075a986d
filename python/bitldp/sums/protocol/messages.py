"""Messages of the protocol: a stage, what it is bound to, and rows of fixed width. Each has one spelling.

| stage | server to client | client to server |
|---|---|---|
| ADVERTISE | the number of the round | nonce, two public keys, commitment to the own mask, signature |
| SHARE | all of these | sealed shares of its secrets, one for each client that it chose |
| MASK | who goes on, and the shares that are for it | packed sum of its share and its masks |
| AGREE | who survived | signature of both lists |
| REVEAL | the signatures of a quorum | its seed; a share of each one's seed, or key if it dropped out |

A list of clients is one bit for each. Who survived is a part of who went on, and all others of these dropped:
no message can name a client as both, and two different lists are never both answered.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Members",
    "Stage",
    "SumRefusedError",
    "body_of",
    "flags",
    "flags_size",
    "message",
    "read_flags",
    "read_rows",
    "rows",
]

Members = NDArray[np.bool_]
"""Which clients of the agreement's list, shape (clients,)."""

_HEAD = struct.Struct("<4sBBB32sQ")
_MAGIC = b"bLsS"
_VERSION = 1
_INDEX = struct.Struct("<I")


class Stage(IntEnum):
    """Exchange of the protocol: one message of the server, one reply of each client."""

    ADVERTISE = 0
    SHARE = 1
    MASK = 2
    AGREE = 3
    REVEAL = 4


class SumRefusedError(ValueError):
    """Error for a message that does not fit the agreement. Nothing left because of it, and nothing will.

    Attributes
    ----------
    reason : str
        One word: "form", "agreement", "round", "stage", "keys", "signature", "shares", "members",
        "survivors", "quorum" or "range".
    """

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason

    def __reduce__(self) -> tuple[type[SumRefusedError], tuple[str, str]]:
        """Pickle by the two arguments."""
        return type(self), (self.reason, str(self))


def message(stage: Stage, *, reply: bool, bound: bytes, number: int, body: bytes = b"") -> bytes:
    """Return a message: its head and its body.

    Parameters
    ----------
    stage : Stage
    reply : bool
        Whether a client sends it.
    bound : bytes
        Digest of the agreement in the first two stages, of the session after them; 32 bytes.
    number : int
        Number of the round.
    body : bytes
    """
    return _HEAD.pack(_MAGIC, _VERSION, stage, reply, bound, number) + body


def body_of(data: bytes, stage: Stage, *, reply: bool, bound: bytes, number: int | None) -> bytes:
    """Return the body of a message with this head.

    Raises
    ------
    SumRefusedError
        For any other head.
    """
    got, bound_to, number_of, body = head_of(data, reply=reply)
    if got != stage:
        raise SumRefusedError("stage", f"message: of the stage {got.name}, where {stage.name} is due")
    if bound_to != bound:
        raise SumRefusedError("agreement", "message: of another agreement, or of another session of it")
    if number is not None and number_of != number:
        raise SumRefusedError("round", f"message: of round {number_of}, in round {number}")
    return body


def head_of(data: bytes, *, reply: bool) -> tuple[Stage, bytes, int, bytes]:
    """Return stage, binding, number and body of a message."""
    if not isinstance(data, bytes) or len(data) < _HEAD.size:
        raise SumRefusedError("form", "message: no message of a secure sum")
    magic, version, stage, direction, bound, number = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != _VERSION or stage > max(Stage) or direction != reply:
        raise SumRefusedError("form", "message: no message of a secure sum, or of another version")
    return Stage(stage), bound, number, data[_HEAD.size :]


def rows(values: Iterable[tuple[int, bytes]]) -> bytes:
    """Return rows of an index and bytes, in ascending order of the index."""
    return b"".join(_INDEX.pack(index) + value for index, value in sorted(values))


def read_rows(data: bytes, width: int, clients: int) -> dict[int, bytes]:
    """Return the rows of a body by their index.

    Raises
    ------
    SumRefusedError
        For half a row, an index beyond the list, or indices that do not ascend.
    """
    step = _INDEX.size + width
    if len(data) % step:
        raise SumRefusedError("form", "message: its rows are cut off")
    result: dict[int, bytes] = {}
    last = -1
    for start in range(0, len(data), step):
        (index,) = _INDEX.unpack_from(data, start)
        if not last < index < clients:
            raise SumRefusedError("form", "message: indices must ascend, and be of the list")
        result[index] = data[start + _INDEX.size : start + step]
        last = index
    return result


def flags_size(clients: int) -> int:
    """Return the bytes of a list of clients."""
    return (clients + 7) // 8


def flags(members: Members) -> bytes:
    """Return a list of clients as bits."""
    return np.packbits(members, bitorder="little").tobytes()


def read_flags(data: bytes, clients: int) -> Members:
    """Return a list of clients.

    Raises
    ------
    SumRefusedError
        If it has another length, or a bit beyond the list.
    """
    if len(data) != flags_size(clients):
        raise SumRefusedError("form", "message: its list of clients has another length")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    if bits[clients:].any():
        raise SumRefusedError("form", "message: its list names clients that do not exist")
    return bits[:clients].astype(np.bool_)


def members(indices: Iterable[int] | Mapping[int, object], clients: int) -> Members:
    """Return which clients have one of the indices."""
    result = np.zeros(clients, np.bool_)
    result[list(indices)] = True
    return result
