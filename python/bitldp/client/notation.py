"""Notation of client documents: canonical JSON, doubles by their bits, tables in base64."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.documents import document
from bitldp.privacy import ONE

__all__ = [
    "DocumentError",
    "Fields",
    "NoDocumentError",
    "canonical",
    "digest",
    "double",
    "integers",
    "parsed",
    "shorts",
    "text_of",
]

VERSION = 1
"""Version of the schema, and of the keystream that golden reports are made with."""

MOST_BYTES = 8_000_000
"""The longest document that is read, in bytes of UTF-8."""

MOST_DEPTH = 16
"""Largest depth of objects and arrays within each other."""

MOST_COUNT = (1 << 53) - 1
"""Largest whole number that a document states as a number: JavaScript has no larger exact one."""

MOST_ENTRIES = 1 << 21
"""Largest number of entries of one table."""

_WEIGHT = 9  # bytes of an integer from 0 to 2**64, both included


class DocumentError(ValueError):
    """Error for a text that is not a client document, or whose fields do not agree.

    Attributes
    ----------
    field : str
        The field that was refused, such as "channel.high"; empty where it is the whole text.
    reason : str
        The rule that it breaks. Neither the reason nor the message shows what the field holds.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field or 'document'}: {reason}")
        self.field = field
        self.reason = reason

    def __reduce__(self) -> tuple[type[DocumentError], tuple[str, str]]:
        """Pickle by the two arguments."""
        return type(self), (self.field, self.reason)


class NoDocumentError(ValueError):
    """Error for a mechanism that no other client can run; the message says why."""


# -- writing


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal documents are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(fields: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document without its own field, as 64 hexadecimal digits."""
    rest = {name: value for name, value in fields.items() if name != "sha256"}
    return hashlib.sha256(canonical(rest).encode("utf-8", "surrogatepass")).hexdigest()


def double(value: float) -> str:
    """Return a double as the 16 hexadecimal digits of its bits, the sign first."""
    return struct.pack(">d", value).hex()


def text_of(raw: bytes | NDArray[Any]) -> str:
    """Return bytes, or those of an array, in base64."""
    return base64.b64encode(raw if isinstance(raw, bytes) else raw.tobytes()).decode("ascii")


def integers(weights: Sequence[int]) -> str:
    """Return integers from 0 to 2**64 in base64: 9 bytes each, the lowest first."""
    return text_of(b"".join(int(weight).to_bytes(_WEIGHT, "little") for weight in weights))


def shorts(numbers: NDArray[Any], dtype: str) -> str:
    """Return whole numbers of a little-endian dtype in base64."""
    return text_of(np.ascontiguousarray(numbers, dtype=dtype))


# -- reading


def parsed(text: Any) -> dict[str, Any]:
    """Return the fields of a canonical text.

    Raises
    ------
    TypeError
        If it is not a str.
    DocumentError
        If it is too long or too deep, not an object of JSON, or not canonical.
    """
    if not isinstance(text, str):
        raise TypeError(f"text: must be a str, not {type(text).__name__}")
    text = text.strip("\n")
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise DocumentError("", f"has more than {MOST_BYTES:,} bytes")
    try:
        fields = document(text)
    except ValueError as error:
        raise DocumentError("", str(error).removeprefix("text: ")) from None
    if not isinstance(fields, dict):
        raise DocumentError("", "is not a JSON object")
    if _depth(fields) > MOST_DEPTH:
        raise DocumentError("", f"has more than {MOST_DEPTH} objects within each other")
    if canonical(fields) != text:
        raise DocumentError("", "is not canonical: sorted keys, each once, and no spaces")
    return fields


def _depth(value: Any) -> int:
    """Return the depth of objects and arrays within each other."""
    level, depth = [value], 0
    while level := [each for each in level if isinstance(each, (dict, list))]:
        depth += 1
        if depth > MOST_DEPTH:
            break
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


class Fields:
    """Fields of an object of a document. Each is checked and taken once; `done` refuses those left over.

    Parameters
    ----------
    value : object
        Value that should be an object of JSON.
    name : str
        Dotted name of the object in the document; empty for the document itself.
    """

    def __init__(self, value: Any, name: str = "") -> None:
        if not isinstance(value, dict):
            raise DocumentError(name, "must be an object")
        self._left = dict(value)
        self._name = name

    def __contains__(self, name: str) -> bool:
        """Tell whether a field was given and is not yet taken."""
        return name in self._left

    def at(self, name: str) -> str:
        """Return the dotted name of a field."""
        return f"{self._name}.{name}" if self._name else name

    def refuse(self, name: str, reason: str) -> DocumentError:
        """Return the error for a field, with the rule that it breaks."""
        return DocumentError(self.at(name), reason)

    def any(self, name: str) -> Any:
        """Take a field as it is."""
        if name not in self._left:
            raise self.refuse(name, "is missing")
        return self._left.pop(name)

    def done(self) -> None:
        """Refuse fields that nobody took."""
        if self._left:
            raise DocumentError(self._name, f"has {len(self._left)} fields that version 1 does not know")

    def object(self, name: str) -> Fields:
        """Take an object."""
        return Fields(self.any(name), self.at(name))

    def entries(self, name: str, most: int, least: int = 0) -> list[Any]:
        """Take a list of `least` to `most` entries."""
        value = self.any(name)
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise self.refuse(name, f"must be a list of {least:,} to {most:,} entries")
        return value

    def objects(self, name: str, most: int, least: int = 0) -> list[Fields]:
        """Take a list of `least` to `most` objects."""
        values = self.entries(name, most, least)
        return [Fields(value, f"{self.at(name)}[{index}]") for index, value in enumerate(values)]

    def count(self, name: str, least: int = 0, most: int = MOST_COUNT) -> int:
        """Take a whole number from `least` to `most`."""
        value = self.any(name)
        if type(value) is not int or not least <= value <= most:
            raise self.refuse(name, f"must be a whole number from {least:,} to {most:,}")
        return value

    def counts(self, name: str, least: int, most: int, length: int) -> tuple[int, ...]:
        """Take a list of `length` whole numbers."""
        values = self.entries(name, length, length)
        if not all(type(value) is int and least <= value <= most for value in values):
            raise self.refuse(name, f"must be {length} whole numbers from {least:,} to {most:,}")
        return tuple(values)

    def flag(self, name: str, default: bool = False) -> bool:
        """Take true or false; a field that is left out has the default."""
        if name not in self._left:
            return default
        value = self.any(name)
        if not isinstance(value, bool) or value == default:
            raise self.refuse(name, f"must be {str(not default).lower()}, or left out")
        return value

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        """Take one of some words."""
        value = self.any(name)
        if not isinstance(value, str) or value not in allowed:
            raise self.refuse(name, f"must be one of {', '.join(allowed)}")
        return value

    def text(self, name: str, most: int = 4096) -> str:
        """Take a text of at most `most` characters."""
        value = self.any(name)
        if not isinstance(value, str) or len(value) > most:
            raise self.refuse(name, f"must be a text of at most {most} characters")
        return value

    def chance(self, name: str) -> int:
        """Take an integer over 2**64, 0 to 2**64."""
        return self.chance_of(self.any(name), name)

    def chance_of(self, value: Any, name: str) -> int:
        """Return the integer over 2**64 that a value of a field stands for."""
        digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20
        if not digits or str(int(value)) != value or int(value) > ONE:
            raise self.refuse(name, "must be the decimal digits of an integer from 0 to 2**64")
        return int(value)

    def double(self, name: str) -> float:
        """Take a double that is a finite number."""
        return self.double_of(self.any(name), name)

    def double_of(self, value: Any, name: str) -> float:
        """Return the finite double that a value of a field stands for."""
        (number,) = struct.unpack(">d", self.hex_of(value, name, 8))
        if not np.isfinite(number):
            raise self.refuse(name, "must be the bits of a finite double")
        return float(number)

    def hex(self, name: str, size: int | None) -> bytes:
        """Take `size` bytes in hexadecimal digits, or up to 1024 bytes where `size` is None."""
        return self.hex_of(self.any(name), name, size)

    def hex_of(self, value: Any, name: str, size: int | None) -> bytes:
        """Return the bytes that lower-case hexadecimal digits stand for."""
        length = "at most 1024" if size is None else str(size)
        wrong = self.refuse(name, f"must be {length} bytes as lower-case hexadecimal digits")
        if not isinstance(value, str) or set(value) - set("0123456789abcdef") or len(value) % 2:
            raise wrong
        raw = bytes.fromhex(value)
        if len(raw) > 1024 if size is None else len(raw) != size:
            raise wrong
        return raw

    def raw(self, name: str, most: int = MOST_BYTES) -> bytes:
        """Take at most `most` bytes in base64."""
        value = self.any(name)
        wrong = self.refuse(name, f"must be base64 of at most {most:,} bytes")
        if not isinstance(value, str) or len(value) > 4 * (most + 2) // 3 + 4:
            raise wrong
        try:
            raw = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise wrong from None
        if text_of(raw) != value or len(raw) > most:
            raise wrong
        return raw

    def integers(self, name: str, count: int) -> list[int]:
        """Take `count` integers from 0 to 2**64 in base64."""
        if count > MOST_ENTRIES:
            raise self.refuse(name, f"must be at most {MOST_ENTRIES:,} integers")
        raw = self.raw(name, _WEIGHT * count)
        if len(raw) != _WEIGHT * count:
            raise self.refuse(name, f"must be {count:,} integers of {_WEIGHT} bytes")
        numbers = [int.from_bytes(raw[i : i + _WEIGHT], "little") for i in range(0, len(raw), _WEIGHT)]
        if any(number > ONE for number in numbers):
            raise self.refuse(name, "must be integers up to 2**64")
        return numbers

    def shorts(self, name: str, dtype: str, most: int = MOST_ENTRIES) -> NDArray[Any]:
        """Take whole numbers of a little-endian dtype in base64."""
        kind = np.dtype(dtype)
        raw = self.raw(name, kind.itemsize * most)
        if len(raw) % kind.itemsize:
            raise self.refuse(name, f"must be numbers of {kind.itemsize} bytes")
        return np.frombuffer(raw, kind).astype(kind.newbyteorder("="))
