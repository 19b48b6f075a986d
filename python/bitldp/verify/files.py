"""Columns, rows and values of a released file: CSV, Parquet, Arrow and NumPy, by the standard library."""

from __future__ import annotations

import ast
import bz2
import csv
import gzip
import hashlib
import io
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote

from .findings import Unproven, must

__all__ = ["Contents", "FilePart", "contents_of", "parts_of", "sha256_of", "values_of"]

_BLOCK = 1 << 20
_REPORT = "_privacy.json"  # in a folder
_MOST = 1 << 28  # bytes of a footer


class Contents(NamedTuple):
    """Names of a file's columns, its rows, and the character between its fields if it is text."""

    names: list[str]
    rows: int
    delimiter: str | None = None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    result = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            result.update(block)
    return result.hexdigest()


class FilePart(NamedTuple):
    """One file of what was released, its rows by the report, and the columns that its folders name."""

    path: Path
    rows: int
    keys: set[str]


def parts_of(folder: Path, listed: Any) -> list[FilePart]:
    """Return the files of a folder; they must be those that are listed, with their bytes, and no others."""
    must(folder.is_dir(), "is NOT the folder of the report")
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    names = [each["name"] for each in listed]
    must(there - {_REPORT} == set(names) and len(set(names)) == len(names), "has other files than the report")
    for each in listed:
        must(
            sha256_of(folder / each["name"]) == each["sha256"],
            f"{each['name']} is NOT the file of the report",
        )
    return [
        FilePart(folder / name, each["rows"], {unquote(key) for key, equals, _ in _said(name) if equals})
        for name, each in zip(names, listed, strict=True)
    ]


def _said(name: str) -> list[tuple[str, str, str]]:
    return [part.partition("=") for part in name.split("/")[:-1]]


def contents_of(path: Path, names: Sequence[str]) -> Contents:
    """Return what a file holds; `names`, which it should have, tell where fields of text end."""
    with path.open("rb") as file:
        start = file.read(8)
        if start[:4] == b"PAR1":
            return _parquet(file)
        if start[:6] == b"ARROW1" or start[:4] == b"\xff\xff\xff\xff":
            file.seek(8 if start[:6] == b"ARROW1" else 0)
            return _arrow(file)
        if start[:6] == b"\x93NUMPY":
            return _array(file)
    with _text(path) as text:
        line = text.readline()
    for delimiter in dict.fromkeys([",", "\t", *(c for c in line if c.isascii() and c not in '"\r\n')]):
        with _text(path) as text:
            found = next(csv.reader(text, delimiter=delimiter), [])
        if sorted(found) == sorted(names):
            return Contents(found, sum(1 for _ in _records(path, delimiter)), delimiter)
    return Contents(next(csv.reader([line]), []), 0)


def _text(path: Path) -> io.TextIOWrapper:
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"\x28\xb5\x2f\xfd":
        try:
            zstd = import_module("compression.zstd")  # of the standard library from Python 3.14 on
        except ImportError:
            raise Unproven("files compressed with zstd need Python 3.14 or later") from None
        return io.TextIOWrapper(zstd.open(path), encoding="utf-8-sig", newline="")
    packed: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open}
    binary: Any = packed.get(start[:2], open)(path, "rb")
    return io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")


def _records(path: Path, delimiter: str) -> Iterator[list[str]]:
    with _text(path) as text:
        rows = csv.reader(text, delimiter=delimiter)
        next(rows, None)
        yield from (row for row in rows if row)


def values_of(path: Path, delimiter: str, allowed: Mapping[int, tuple[set[str] | None, int]]) -> None:
    """Refuse values that no mechanism gives.

    Parameters
    ----------
    path : pathlib.Path
        A text.
    delimiter : str
    allowed : mapping
        For columns by their number: the texts that they may hold, or None, and how many different ones.
    """
    seen: dict[int, set[str]] = {column: set() for column in allowed}
    for row in _records(path, delimiter):
        for column, values in seen.items():
            values.add(row[column])
            texts, most = allowed[column]
            must(len(values) <= most, f"column {column + 1} holds more values than its law has reports")
            must(
                texts is None or row[column].lower() in texts,
                f"column {column + 1} holds no report of its law",
            )


def _array(file: BinaryIO) -> Contents:
    file.seek(6)
    major = file.read(2)[0]
    (size,) = struct.unpack("<H", file.read(2)) if major == 1 else struct.unpack("<I", file.read(4))
    must(size <= _MOST, "its header is too long")
    shape = ast.literal_eval(file.read(size).decode("latin1"))["shape"]
    columns = 1 if len(shape) == 1 else shape[1]
    return Contents([str(j) for j in range(columns)], shape[0])


# -- Parquet: the footer is a structure of Thrift's compact protocol


def _parquet(file: BinaryIO) -> Contents:
    end = file.seek(-8, io.SEEK_END)
    size, magic = struct.unpack("<I4s", file.read(8))
    must(magic == b"PAR1" and size <= min(end, _MOST), "its footer is damaged")
    file.seek(end - size)
    footer = _Thrift(file.read(size)).struct()
    root, *columns = footer[2]
    names = [each[4].decode() for each in columns]
    must(len(names) == root[5], "its columns are nested")
    return Contents(names, footer[3])


class _Thrift:
    """Reader of Thrift's compact protocol: structures become mappings of their fields' numbers."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        result = shift = 0
        while True:
            byte = self._byte()
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self) -> dict[int, Any]:
        """Read a structure."""
        result: dict[int, Any] = {}
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            result[field] = kind == 1 if kind in (1, 2) else self._value(kind)
        return result

    def _value(self, kind: int) -> Any:
        readers: dict[int, Callable[[], Any]] = {
            1: self._byte,
            2: self._byte,
            3: self._byte,
            8: self._bytes,
            12: self.struct,
        }
        readers |= {4: self._zigzag, 5: self._zigzag, 6: self._zigzag, 9: self._list, 10: self._list}
        readers[7] = lambda: self._skip(8)
        must(kind in readers, "its footer is damaged")
        return readers[kind]()

    def _skip(self, size: int) -> bytes:
        must(0 <= size <= len(self._data) - self._at, "its footer is damaged")
        self._at += size
        return self._data[self._at - size : self._at]

    def _bytes(self) -> bytes:
        return self._skip(self._varint())

    def _list(self) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 != 15 else self._varint()
        must(size <= len(self._data), "its footer is damaged")
        return [self._value(head & 15) for _ in range(size)]


# -- Arrow: messages, each with a head of FlatBuffers


def _arrow(file: BinaryIO) -> Contents:
    names: list[str] | None = None
    rows = 0
    while True:
        first = file.read(4)
        (size,) = struct.unpack("<i", first if first != b"\xff\xff\xff\xff" else file.read(4))
        if size == 0:
            break
        must(0 < size <= _MOST, "a message is damaged")
        message = _FlatTable.root(file.read(size))
        kind, body = message.number(1, "<B"), message.number(3, "<q")
        if kind == 1:
            names = [each.text(0) for each in message.table(2).tables(1)]
        elif kind == 3:
            rows += message.table(2).number(0, "<q")
        file.seek(body, io.SEEK_CUR)
    if names is None:
        raise Unproven("the file says no columns")
    return Contents(names, rows)


class _FlatTable:
    """A table of FlatBuffers, whose fields are found by their numbers."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._fields = at - self._get("<i", at)

    @classmethod
    def root(cls, data: bytes) -> _FlatTable:
        return cls(data, struct.unpack_from("<I", data)[0])

    def _get(self, form: str, at: int) -> int:
        must(at >= 0, "a message is damaged")
        return int(struct.unpack_from(form, self._data, at)[0])

    def _field(self, number: int) -> int:
        slot = 4 + 2 * number
        inside = slot < self._get("<H", self._fields)
        offset = self._get("<H", self._fields + slot) if inside else 0
        return self._at + offset if offset else 0

    def number(self, number: int, form: str) -> int:
        """Return a number; 0 where it is left out."""
        at = self._field(number)
        return self._get(form, at) if at else 0

    def _behind(self, number: int) -> int:
        at = self._field(number)
        must(at > 0, "a message is damaged")
        return at + self._get("<I", at)

    def table(self, number: int) -> _FlatTable:
        """Return a table."""
        return _FlatTable(self._data, self._behind(number))

    def tables(self, number: int) -> Iterator[_FlatTable]:
        """Yield the tables of a vector."""
        at = self._behind(number)
        for i in range(self._get("<I", at)):
            place = at + 4 + 4 * i
            yield _FlatTable(self._data, place + self._get("<I", place))

    def text(self, number: int) -> str:
        """Return a text."""
        at = self._behind(number)
        size = self._get("<I", at)
        return self._data[at + 4 : at + 4 + size].decode()
