"""Last report of a client, kept to answer a repeated question without a second charge."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flwr.app import ArrayRecord, Message, MessageType

from bitldp.base import saved
from bitldp.base.files import replacing

__all__ = ["Kept", "find", "keep", "question"]

log = logging.getLogger("bitldp.federated")


class Kept(NamedTuple):
    """Released report: its bytes, and the metrics that left with it."""

    report: bytes
    metrics: dict[str, Any]

    def __repr__(self) -> str:
        """Return the size alone."""
        return f"Kept({len(self.report)} bytes)"


def question(message: Message, settings: bytes) -> bytes:
    """Return the digest of a message's kind, arrays and configuration, and of the codec's settings."""
    found = hashlib.sha256(settings)
    if message.metadata.message_type != MessageType.TRAIN:
        found.update(f"\n{message.metadata.message_type}\n".encode())
    for name, record in sorted(message.content.items()):
        found.update(f"\n{name}\n".encode())
        if isinstance(record, ArrayRecord):
            for key, array in record.items():
                found.update(json.dumps([key, array.dtype, list(array.shape), array.stype]).encode())
                found.update(hashlib.sha256(array.data).digest())
        else:
            found.update(json.dumps(dict(record), sort_keys=True, default=repr).encode())
    return found.digest()


def find(path: Path, asked: bytes) -> Kept | None:
    """Return the report that answered the same question last, or None."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        found = saved.arrays(raw)
        about, report = json.loads(found["about"].tobytes()), found["report"].tobytes()
        same = about["asked"] == asked.hex() and about["sha256"] == hashlib.sha256(report).hexdigest()
        return Kept(report, about["metrics"]) if same else None
    except (ValueError, KeyError, TypeError):
        log.warning("the file of the last report is damaged; a new one is released and charged")
        return None


def keep(path: Path, asked: bytes, kept: Kept) -> None:
    """Keep a report in place of the one before it."""
    about = {
        "asked": asked.hex(),
        "sha256": hashlib.sha256(kept.report).hexdigest(),
        "metrics": kept.metrics,
    }
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, about=text, report=np.frombuffer(kept.report, np.uint8))
