"""Messages: a versioned header, a checksum, then reports of b bits each, packed.

`Header` describes a message. A reader builds the one that it expects and compares; no length that came
from outside is ever used to allocate or to index. The checksum finds accidents and is no protection against
forgery: whoever can send a report can send any report.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import pack, unpack

__all__ = [
    "CHECKSUM",
    "MAGIC",
    "NORMS",
    "UPDATES",
    "VERSION",
    "Field",
    "Header",
    "WireError",
    "compare",
    "parse",
    "payload",
    "read",
    "record_header",
    "sealed",
    "write",
]


VERSION = 2
MAGIC = b"bLDP"
UPDATES = ("difference", "gradient", "replace")
NORMS = ("l2", "l1", "linf")

_FIXED = struct.Struct("<4sBBBB16s16sdddQQ")
_PART = struct.Struct("<IB")
_LENGTH = struct.Struct("<Q")
_TURN = struct.Struct("<IB")
_MOST_ROUNDS = (1 << 32) - 1
_MOST_PARTS = 8
_MOST_NAME = 64

CHECKSUM = struct.Struct("<I")


class WireError(ValueError):
    """Error for bytes that are no report of the expected mechanism. Nothing was decoded.

    Attributes
    ----------
    reason : str
        One word: "garbage", "version", "mechanism", "settings", "layout", "round", "form", "truncated",
        "trailing", "checksum" or "range".
    """

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason

    def __reduce__(self) -> tuple[type[WireError], tuple[str, str]]:
        """Pickle by the two arguments."""
        return type(self), (self.reason, str(self))


class Field(NamedTuple):
    """Array of codes of a report.

    Attributes
    ----------
    columns : int
        Codes of a record.
    bits : int
        Bits of a code, 1 to 32.
    """

    columns: int
    bits: int

    def size(self, records: int) -> int:
        """Return the bytes of the packed codes of all records."""
        return (records * self.columns * self.bits + 7) // 8


@dataclass(frozen=True)
class Header:
    """Description of a report in its first bytes, which both sides build from their own settings.

    Attributes
    ----------
    name : str
        Name of the mechanism, at most 64 ASCII characters.
    mechanism, layout : bytes
        Digests of 16 bytes each, of the mechanism and of the model's arrays.
    update, norm : str
        "difference", "gradient" or "replace"; "l2", "l1" or "linf".
    clip, low, high : float
        Norm that the update was clipped to, and the interval that [-clip, clip] was mapped to.
    coordinates, records : int
        Numbers of the vector, and records that it was cut into.
    fields : tuple of Field
        Arrays of codes.
    round : int
        Number of the round that the report answers; 0 for none. A report of another round is refused.
    examples : bool
        Whether the client states its number of examples beside the report.
    version : int
        Of the wire format: 2, or 1 of older reports, which state neither of the two.
    """

    name: str
    mechanism: bytes
    layout: bytes
    update: str
    norm: str
    clip: float
    low: float
    high: float
    coordinates: int
    records: int
    fields: tuple[Field, ...]
    round: int = 0
    examples: bool = False
    version: int = VERSION

    def __post_init__(self) -> None:
        """Check the number of the round."""
        if not 0 <= self.round <= _MOST_ROUNDS:
            raise ValueError(f"round: must be 0 to {_MOST_ROUNDS}, got {self.round}")

    @property
    def payload(self) -> int:
        """Number of bytes of the packed codes."""
        return sum(part.size(self.records) for part in self.fields)

    @property
    def digest(self) -> bytes:
        """Digest of 32 bytes that tells settings apart, in all rounds and versions of the format."""
        settings = replace(self, round=0, examples=False, version=1)  # seeded clients draw by it
        return hashlib.sha256(settings.encoded()).digest()

    @property
    def size(self) -> int:
        """Number of bytes of header and payload together."""
        return len(self.encoded()) + CHECKSUM.size + self.payload

    def encoded(self) -> bytes:
        """Return the first bytes of a report: all but the checksum and the payload."""
        name = self.name.encode("ascii", "replace")[:_MOST_NAME]
        fixed = _FIXED.pack(
            MAGIC,
            self.version,
            UPDATES.index(self.update),
            NORMS.index(self.norm),
            len(self.fields),
            self.mechanism,
            self.layout,
            self.clip,
            self.low,
            self.high,
            self.coordinates,
            self.records,
        )
        parts = b"".join(_PART.pack(*part) for part in self.fields)
        turn = _TURN.pack(self.round, self.examples) if self.version > 1 else b""
        return fixed + parts + bytes([len(name)]) + name + _LENGTH.pack(self.payload) + turn


def record_header(
    name: str, fingerprint: bytes, coordinates: int, parts: Sequence[tuple[int, int]]
) -> Header:
    """Return the header of a message about one record, which states no model and no clipping.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    fingerprint : bytes
        16 bytes that tell mechanisms apart.
    coordinates : int
        Values of a record.
    parts : sequence of (int, int)
        Columns and bits of each array of codes.

    Raises
    ------
    ValueError
        For more arrays than a header names.
    """
    if len(parts) > _MOST_PARTS:
        raise ValueError(
            f"header: names at most {_MOST_PARTS} arrays of codes, and a report has {len(parts)}"
        )
    fields = tuple(Field(*part) for part in parts)
    return Header(name, fingerprint, bytes(16), "replace", "l2", 0.0, 0.0, 0.0, coordinates, 1, fields)


def sealed(head: bytes, body: bytes) -> bytes:
    """Return a header, the CRC-32 of header and packed codes, and the codes."""
    return head + CHECKSUM.pack(zlib.crc32(body, zlib.crc32(head))) + body


def parse(data: bytes) -> Header:
    """Return the header that `data` begins with; its lengths are checked against the bytes that came."""
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        raise WireError("garbage", "report: these bytes are not a report of bitldp")
    if len(data) > len(MAGIC) and not 1 <= data[len(MAGIC)] <= VERSION:
        raise WireError("version", f"report: wire version {data[len(MAGIC)]}, this side reads 1 to {VERSION}")
    short = WireError("truncated", "report: truncated within its header")
    if len(data) < _FIXED.size:
        raise short
    _, version, update, norm, parts, mechanism, layout, clip, low, high, coordinates, records = (
        _FIXED.unpack_from(data)
    )
    if update >= len(UPDATES) or norm >= len(NORMS) or not 1 <= parts <= _MOST_PARTS:
        raise WireError("garbage", "report: the header holds words that do not exist")
    offset = _FIXED.size + parts * _PART.size
    turn = _TURN.size if version > 1 else 0
    if len(data) < offset + 1 or len(data) < offset + 1 + data[offset] + _LENGTH.size + turn + CHECKSUM.size:
        raise short
    name = data[offset + 1 : offset + 1 + data[offset]]
    if len(name) > _MOST_NAME or not name.isascii() or not name.decode("ascii").isidentifier():
        raise WireError("garbage", "report: the header holds no name of a mechanism")
    after = offset + 1 + len(name) + _LENGTH.size
    number, examples = _TURN.unpack_from(data, after) if turn else (0, 0)
    if examples > 1:
        raise WireError("garbage", "report: the header holds words that do not exist")
    return Header(
        name=name.decode("ascii"),
        mechanism=mechanism,
        layout=layout,
        update=UPDATES[update],
        norm=NORMS[norm],
        clip=clip,
        low=low,
        high=high,
        coordinates=coordinates,
        records=records,
        fields=tuple(
            Field(*_PART.unpack_from(data, _FIXED.size + index * _PART.size)) for index in range(parts)
        ),
        round=number,
        examples=bool(examples),
        version=version,
    )


def compare(received: Header, expected: Header) -> None:
    """Raise unless two headers are equal; the sentence says what differs.

    Two fields may differ: `examples`, which the client decides, and `version`, which is 1 in old reports
    without a round.
    """
    if received.name != expected.name:
        raise WireError("mechanism", f"report: of mechanism {received.name}, expected {expected.name}")
    if received.mechanism != expected.mechanism:
        raise WireError("mechanism", f"report: of a {received.name} with other parameters")
    for name in ("update", "norm", "clip", "low", "high"):
        theirs, ours = getattr(received, name), getattr(expected, name)
        if not theirs == ours:
            raise WireError("settings", f"report: {name} is {theirs}, expected {ours}")
    if received.coordinates != expected.coordinates or received.layout != expected.layout:
        raise WireError(
            "layout",
            f"report: of {received.coordinates} coordinates of other arrays, expected {expected.coordinates};"
            " names, shapes or dtypes differ",
        )
    if received.round != expected.round:
        states = f"round {received.round}" if received.round else "no round"
        asked = f"round {expected.round} was" if expected.round else "none was"
        raise WireError("round", f"report: answers {states}, where {asked} asked for")
    for field in fields(expected):
        if field.name not in ("examples", "version") and getattr(received, field.name) != getattr(
            expected, field.name
        ):
            raise WireError("form", f"report: {field.name} differ from what the mechanism makes")


def write(header: Header, codes: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
    """Return header and packed codes as one array of bytes.

    Parameters
    ----------
    header : Header
        Header of the message.
    codes : sequence of ndarray of unsigned int
        One array for each part, of ``records * columns`` codes.

    Raises
    ------
    ValueError
        If the number of codes differs from the header's, or a code does not fit its bits.
    """
    if len(codes) != len(header.fields):
        raise ValueError(f"codes: {len(header.fields)} arrays are needed, got {len(codes)}")
    packed = []
    for part, each in zip(header.fields, codes, strict=True):
        if each.size != header.records * part.columns:
            raise ValueError(f"codes: {header.records * part.columns} are needed, got {each.size}")
        packed.append(pack(each.ravel(), part.bits).tobytes())
    return np.frombuffer(sealed(header.encoded(), b"".join(packed)), np.uint8)


def read(data: bytes | NDArray[np.uint8], expected: Header) -> list[NDArray[Any]]:
    """Return the codes of a report: one array of shape (records, columns) for each part.

    Parameters
    ----------
    data : bytes or ndarray of uint8
        The message that arrived.
    expected : Header
        The header that this side would have written.

    Returns
    -------
    list of ndarray of unsigned int
        Codes below ``2**bits``. The mechanism checks that they are in its alphabet.

    Raises
    ------
    WireError
        For anything but the bytes that `write` makes with an equal header. The error shows public settings,
        and nothing else that arrived.
    """
    body, start, codes = np.frombuffer(payload(data, expected), np.uint8), 0, []
    for part in expected.fields:
        size, count = part.size(expected.records), expected.records * part.columns
        own = body[start : start + size]
        codes.append(unpack(own, part.bits, count).reshape(expected.records, part.columns))
        start += size
    return codes


def payload(data: bytes | NDArray[np.uint8], expected: Header) -> bytes:
    """Return the packed codes of a report; parameters and errors are those of `read`."""
    if isinstance(data, np.ndarray):
        if data.dtype != np.uint8 or data.ndim != 1:
            raise WireError("garbage", "report: must be bytes, or a one-dimensional array of uint8")
        data = data.tobytes()
    elif not isinstance(data, (bytes, bytearray, memoryview)):
        raise WireError("garbage", f"report: must be bytes, not {type(data).__name__}")
    data = bytes(data)
    received = parse(data)
    compare(received, expected)
    head = received.encoded()
    start = len(head) + CHECKSUM.size
    if data[: len(head)] != head:  # the fields agree: only the length of the payload can differ
        raise WireError("form", "report: the payload has another length than its header needs")
    if len(data) < start + expected.payload:
        raise WireError(
            "truncated", f"report: truncated, {start + expected.payload} bytes are needed, {len(data)} came"
        )
    if len(data) > start + expected.payload:
        raise WireError("trailing", f"report: {len(data) - start - expected.payload} bytes too many")
    (checksum,) = CHECKSUM.unpack_from(data, len(head))
    if checksum != zlib.crc32(data[start:], zlib.crc32(head)):
        raise WireError("checksum", "report: damaged on the way, the checksum does not match")
    body, end = data[start:], 0
    for part in expected.fields:
        end += part.size(expected.records)
        used = expected.records * part.columns * part.bits % 8
        if used and _spare(body[end - 1], used):
            raise WireError("form", "report: the unused bits of the last byte are not zero")
    return body


def _spare(last: int, used: int) -> bool:
    """Tell whether the last byte has a bit set below its `used` highest bits."""
    return bool(last & (0xFF >> used))
