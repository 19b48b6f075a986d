"""The C library of clients, by ctypes: the build with the feature golden, which takes keys."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
VARIABLE = "BITLDP_CLIENT_LIBRARY"
"""Environment variable that names another library."""

ABSENT = f"needs the C library of clients: make client-c, or {VARIABLE}=..."
UNKNOWN = 19


class Status(ctypes.Structure):
    """What a call answers: 0, or why not, and where."""

    _fields_ = [("kind", ctypes.c_int32), ("place", ctypes.c_uint64)]  # of ctypes


class LibraryRefusedError(Exception):
    """Error for a call that the library refused.

    Attributes
    ----------
    kind : int
        Number of the reason.
    """

    def __init__(self, kind: int, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind


def library_path() -> Path | None:
    """Return where the library is; None where none was built."""
    named = os.environ.get(VARIABLE)
    places = [Path(named)] if named else [ROOT / "target" / "golden" / "libbitldp_client.so"]
    return next((path for path in places if path.is_file()), None)


@cache
def _library(path: Path) -> Any:
    library = ctypes.CDLL(os.fspath(path))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.bitldp_open.argtypes = [ctypes.c_char_p, size, ctypes.POINTER(pointer)]
    library.bitldp_close.argtypes = [pointer]
    library.bitldp_epsilon.argtypes = [pointer]
    library.bitldp_epsilon.restype = ctypes.c_double
    library.bitldp_report_bytes.argtypes = [pointer, size]
    library.bitldp_report_bytes.restype = size
    library.bitldp_reason.restype = ctypes.c_char_p
    library.bitldp_randomize.argtypes = [pointer, ctypes.c_char_p, size, ctypes.c_char_p, size]
    library.bitldp_randomize_keyed.argtypes = [
        *(pointer, ctypes.c_char_p, ctypes.c_char_p, size),
        *(ctypes.c_char_p, size, ctypes.c_char_p, size),
    ]
    library.bitldp_randomize_with_key.argtypes = [
        *(pointer, ctypes.c_char_p, size),
        *(ctypes.c_char_p, size, ctypes.c_char_p, size),
    ]
    for name in ("open", "randomize", "randomize_keyed", "randomize_with_key"):
        getattr(library, f"bitldp_{name}").restype = Status
    return library


class LibraryClient:
    """A document that the library opened.

    Parameters
    ----------
    text : str
        The document.
    path : Path
        The library.

    Raises
    ------
    LibraryRefusedError
        For a document that it refuses.
    """

    def __init__(self, text: str, path: Path) -> None:
        self._library, self._client = _library(path), ctypes.c_void_p()
        raw = text.encode("utf-8", "surrogatepass")
        self._check(self._library.bitldp_open(raw, len(raw), ctypes.byref(self._client)))

    def __enter__(self) -> LibraryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.bitldp_close(self._client)

    def _check(self, status: Status) -> None:
        if status.kind:
            raise LibraryRefusedError(status.kind, self._library.bitldp_reason(status.kind).decode())

    @property
    def epsilon(self) -> float:
        """Epsilon of a report."""
        return float(self._library.bitldp_epsilon(self._client))

    def report_bytes(self, records: int = 1) -> int:
        """Return the bytes of the reports of so many records."""
        return int(self._library.bitldp_report_bytes(self._client, records))

    def randomize(self, x: bytes, records: int = 1) -> bytes:
        """Return reports with fresh keys."""
        return self._reports("randomize", (), x, records)

    def with_key(self, keys: bytes, x: bytes, records: int = 1) -> bytes:
        """Return reports under given keys."""
        return self._reports("randomize_with_key", (keys, len(keys)), x, records)

    def keyed(self, secret: bytes, name: bytes, x: bytes) -> bytes:
        """Return the report of a record as a function of a secret, its name and its values."""
        return self._reports("randomize_keyed", (secret, name, len(name)), x, 1)

    def _reports(self, call: str, before: tuple[Any, ...], x: bytes, records: int) -> bytes:
        size = self.report_bytes(records)
        out = ctypes.create_string_buffer(size)
        function = getattr(self._library, f"bitldp_{call}")
        self._check(function(self._client, *before, x, len(x), out, size))
        return out.raw
