"""Messages of a secure sum as records of Flower."""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, Message

from bitldp.sums.protocol import SumRefusedError

__all__ = ["SUM", "sum_bytes", "sum_record"]

SUM = "bitldp.sum"
"""Name of the record that holds a message of the protocol; it holds nothing else."""

STYPE = "bitldp.sum"
"""Kind of serialisation of its array: no strategy takes it for numbers."""


def sum_record(data: bytes) -> ArrayRecord:
    """Return the record of a message of the protocol."""
    return ArrayRecord({"message": Array("uint8", (len(data),), STYPE, data)})


def sum_bytes(message: Message) -> bytes:
    """Return the message of the protocol that a Flower message carries.

    Raises
    ------
    SumRefusedError
        If it carries none.
    """
    record = message.content.get(SUM) if message.has_content() else None
    array = record.get("message") if isinstance(record, ArrayRecord) and len(record) == 1 else None
    if array is None or array.stype != STYPE:
        raise SumRefusedError("form", f"message: has no record {SUM!r}")
    return bytes(array.data)
