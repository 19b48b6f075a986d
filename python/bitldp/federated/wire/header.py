"""Header of a private report: what both sides build from their own settings, and compare.

All numbers are little-endian. The header is::

    magic          4 bytes   b"bLDP"
    version        u8
    update, norm   u8, u8    how the update is formed and clipped
    parts          u8        arrays of codes that make a report
    mechanism      16 bytes  digest of the mechanism's fingerprint (name and all parameters)
    layout         16 bytes  digest of the arrays' names, shapes and dtypes
    clip, low, high  3 f64   the norm that was clipped to, and the interval it was scaled to
    coordinates    u64       numbers of the vector
    records        u64       records that the mechanism released
    each part:     u32, u8   columns, bits of a code
    name           u8, then as many bytes: the mechanism's name, for error messages
    length         u64       bytes of the payload
    checksum       u32       CRC-32 of everything else
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, fields
from typing import NamedTuple

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
]

VERSION = 1
MAGIC = b"bLDP"
UPDATES = ("difference", "gradient", "replace")
NORMS = ("l2", "l1", "linf")

_FIXED = struct.Struct("<4sBBBB16s16sdddQQ")
_PART = struct.Struct("<IB")
_LENGTH = struct.Struct("<Q")
_MOST_PARTS = 8
_MOST_NAME = 64

CHECKSUM = struct.Struct("<I")


class WireError(ValueError):
    """Error for bytes that are no report of the expected mechanism. Nothing was decoded.

    Attributes
    ----------
    reason : str
        One word: "garbage", "version", "mechanism", "settings", "layout", "form", "truncated", "trailing",
        "checksum" or "range".
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
        16 bytes each; see the module.
    update, norm : str
        "difference", "gradient" or "replace"; "l2", "l1" or "linf".
    clip, low, high : float
        Norm that the update was clipped to, and the interval that [-clip, clip] was mapped to.
    coordinates, records : int
        Numbers of the vector, and records that it was cut into.
    fields : tuple of Field
        Arrays of codes.
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

    @property
    def payload(self) -> int:
        """Number of bytes of the packed codes."""
        return sum(part.size(self.records) for part in self.fields)

    @property
    def digest(self) -> bytes:
        """Digest of 32 bytes that tells headers apart."""
        return hashlib.sha256(self.encoded()).digest()

    @property
    def size(self) -> int:
        """Number of bytes of header and payload together."""
        return len(self.encoded()) + CHECKSUM.size + self.payload

    def encoded(self) -> bytes:
        """Return the first bytes of a report: all but the checksum and the payload."""
        name = self.name.encode("ascii", "replace")[:_MOST_NAME]
        fixed = _FIXED.pack(
            MAGIC,
            VERSION,
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
        return fixed + parts + bytes([len(name)]) + name + _LENGTH.pack(self.payload)


def parse(data: bytes) -> Header:
    """Return the header that `data` begins with, every length checked against the bytes that are there."""
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        raise WireError("garbage", "report: these bytes are no report of bitldp")
    if len(data) > len(MAGIC) and data[len(MAGIC)] != VERSION:
        raise WireError("version", f"report: wire version {data[len(MAGIC)]}, this side reads {VERSION}")
    short = WireError("truncated", "report: truncated within its header")
    if len(data) < _FIXED.size:
        raise short
    _, _, update, norm, parts, mechanism, layout, clip, low, high, coordinates, records = _FIXED.unpack_from(
        data
    )
    if update >= len(UPDATES) or norm >= len(NORMS) or not 1 <= parts <= _MOST_PARTS:
        raise WireError("garbage", "report: the header holds words that do not exist")
    place = _FIXED.size + parts * _PART.size
    if len(data) < place + 1 or len(data) < place + 1 + data[place] + _LENGTH.size + CHECKSUM.size:
        raise short
    name = data[place + 1 : place + 1 + data[place]]
    if len(name) > _MOST_NAME or not name.isascii() or not name.decode("ascii").isidentifier():
        raise WireError("garbage", "report: the header holds no name of a mechanism")
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
            Field(*_PART.unpack_from(data, _FIXED.size + number * _PART.size)) for number in range(parts)
        ),
    )


def compare(found: Header, expected: Header) -> None:
    """Raise unless two headers are equal; the sentence says what differs."""
    if found.name != expected.name:
        raise WireError("mechanism", f"report: of mechanism {found.name}, expected {expected.name}")
    if found.mechanism != expected.mechanism:
        raise WireError("mechanism", f"report: of a {found.name} with other parameters")
    for name in ("update", "norm", "clip", "low", "high"):
        theirs, ours = getattr(found, name), getattr(expected, name)
        if not theirs == ours:
            raise WireError("settings", f"report: {name} is {theirs}, expected {ours}")
    if found.coordinates != expected.coordinates or found.layout != expected.layout:
        raise WireError(
            "layout",
            f"report: of {found.coordinates} coordinates of other arrays, expected {expected.coordinates}; "
            "names, shapes or dtypes differ",
        )
    for field in fields(expected):
        if getattr(found, field.name) != getattr(expected, field.name):
            raise WireError("form", f"report: {field.name} differ from what the mechanism makes")
