"""File of a released copy: an npz without pickles, with its origin and a checksum."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.base import saved
from bitldp.base.files import replacing

_FORMAT = "bitldp.private-data"
_VERSION = 1


class Released(NamedTuple):
    """Released copy of a data set.

    Attributes
    ----------
    features : ndarray
        Reported features; read-only.
    labels : ndarray, or None
        Reported labels; read-only.
    """

    features: NDArray[Any]
    labels: NDArray[Any] | None

    def __repr__(self) -> str:
        """Return shapes, and no values."""
        labels = None if self.labels is None else f"<{self.labels.shape} {self.labels.dtype}>"
        return f"Released(features=<{self.features.shape} {self.features.dtype}>, labels={labels})"


def write(path: Path, released: Released, identity: dict[str, Any]) -> str:
    """Write a copy and its origin; return the note of its charge."""
    arrays = {name: each for name, each in released._asdict().items() if each is not None}
    digest = _digest(arrays)
    about = {"format": _FORMAT, "version": _VERSION, "sha256": digest, **identity}
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, about=text, **arrays)
    return note(digest)


def readonly(features: NDArray[Any], labels: NDArray[Any] | None) -> Released:
    """Return a copy whose arrays cannot be written."""
    for each in (features, labels):
        if each is not None:
            each.flags.writeable = False
    return Released(features, labels)


def note(digest: str) -> str:
    """Return the ledger's note of a copy."""
    return f"private data {digest[:32]}"


def _digest(arrays: dict[str, NDArray[Any]]) -> str:
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def digest_of(path: Path) -> str:
    """Return the checksum of a file's arrays, which is checked first."""
    return str(read(path)[0]["sha256"])


def read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a file's statement of its origin, and its arrays, which match its checksum."""
    raw = path.read_bytes()
    try:
        arrays = saved.arrays(raw)
        about = json.loads(arrays.pop("about").tobytes())
        known = about["format"] == _FORMAT and "features" in arrays and set(arrays) <= {"features", "labels"}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path}: is no released copy, or is damaged") from None
    if not known:
        raise ValueError(f"{path}: is no released copy")
    if about.get("version") != _VERSION:
        raise ValueError(f"{path}: version must be {_VERSION}, got {about.get('version')!r}")
    if about.get("sha256") != _digest(arrays):
        raise ValueError(f"{path}: the contents do not match their checksum; damaged or changed by hand")
    return about, arrays
