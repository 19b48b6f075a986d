"""Wire format of a private report: a versioned header, then reports of b bits each, packed.

`header` says what the header is. A reader builds the one that it expects and compares; no length that came
from outside is ever used to allocate or to index. The checksum finds accidents and is no protection against
forgery: whoever can send a report can send any report.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import pack, unpack
from bitldp.federated.wire.header import (
    CHECKSUM,
    MAGIC,
    NORMS,
    UPDATES,
    VERSION,
    Field,
    Header,
    WireError,
    compare,
    parse,
)
from bitldp.mechanism.base import Mechanism

__all__ = [
    "MAGIC",
    "NORMS",
    "UPDATES",
    "VERSION",
    "Field",
    "Header",
    "WireError",
    "fingerprint_digest",
    "read",
    "write",
]


def fingerprint_digest(mechanism: Mechanism) -> bytes:
    """Return a digest of 16 bytes that tells mechanisms apart whose reports must not be mixed."""
    text = json.dumps(mechanism.fingerprint(), sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).digest()[:16]


def write(header: Header, codes: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
    """Return header and packed codes as one array of bytes.

    Parameters
    ----------
    header : Header
        What is sent.
    codes : sequence of ndarray of unsigned int
        One array for each part, of ``records * columns`` codes.

    Raises
    ------
    ValueError
        If the codes are not as many as the header says, or do not fit their bits.
    """
    if len(codes) != len(header.fields):
        raise ValueError(f"codes: {len(header.fields)} arrays are needed, got {len(codes)}")
    packed = []
    for part, each in zip(header.fields, codes, strict=True):
        if each.size != header.records * part.columns:
            raise ValueError(f"codes: {header.records * part.columns} are needed, got {each.size}")
        packed.append(pack(each.ravel(), part.bits).tobytes())
    body = b"".join(packed)
    head = header.encoded()
    checksum = CHECKSUM.pack(zlib.crc32(body, zlib.crc32(head)))
    return np.frombuffer(head + checksum + body, np.uint8)


def read(data: bytes | NDArray[np.uint8], expected: Header) -> list[NDArray[Any]]:
    """Return the codes of a report: one array of shape (records, columns) for each part.

    Parameters
    ----------
    data : bytes or ndarray of uint8
        What arrived.
    expected : Header
        What this side would have written.

    Returns
    -------
    list of ndarray of unsigned int
        Codes below ``2**bits``; whether they are in the mechanism's alphabet is for the mechanism to check.

    Raises
    ------
    WireError
        For anything but bytes that `write` made of an equal header. The message never shows what arrived,
        apart from public settings.
    """
    if isinstance(data, np.ndarray):
        if data.dtype != np.uint8 or data.ndim != 1:
            raise WireError("garbage", "report: must be bytes, or a one-dimensional array of uint8")
        data = data.tobytes()
    elif not isinstance(data, (bytes, bytearray, memoryview)):
        raise WireError("garbage", f"report: must be bytes, not {type(data).__name__}")
    data = bytes(data)
    head = expected.encoded()
    compare(parse(data), expected)
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
    codes = []
    for part in expected.fields:
        size, count = part.size(expected.records), expected.records * part.columns
        body = np.frombuffer(data, np.uint8, size, start)
        spare = 8 * size - count * part.bits
        if spare and _spare(body, count * part.bits):
            raise WireError("form", "report: the unused bits of the last byte are not zero")
        codes.append(unpack(body, part.bits, count).reshape(expected.records, part.columns))
        start += size
    return codes


def _spare(body: NDArray[np.uint8], used: int) -> bool:
    """Tell whether a bit of the last byte is set that no code uses."""
    return bool(unpack(body[-1:], 1, 8)[used % 8 :].any())
