"""Functions that give a mechanism its client document, and read the reports of its clients."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.client.codec import Item
from bitldp.client.document import KeyedAnswers, ModelUpdate, Promise
from bitldp.client.message import MAGIC, Header, WireError, payload, record_header
from bitldp.client.notation import NoDocumentError
from bitldp.client.program import ClientProgram
from bitldp.client.record import Type
from bitldp.client.writing import GOLDEN_SEED, golden_inputs, write
from bitldp.privacy import Guarantee, composed

__all__ = [
    "NO_DOCUMENT",
    "client_document",
    "client_reports",
    "document_of",
    "fingerprint_digest",
    "joined",
    "no_document",
    "no_program",
    "unsealed",
]

NO_DOCUMENT = "its draws are made in Python, and no other client makes the same"
"""Reason for having no document, of a mechanism that states no other."""


def client_document(
    self: Any,
    *,
    dtype: Literal["float32", "float64"] = "float64",
    spends: tuple[str, int] | None = None,
    header: bool = False,
) -> str:
    """Return the mechanism as data that a client in another language reads, checks and runs.

    Parameters
    ----------
    dtype : {"float32", "float64"}
        Type of the numbers that a client passes. A number is dithered in its own precision. Ignored for
        categories.
    spends : (str, int), optional
        Name of a ledger of the client, and the number of reports that it may send, at least 1. None: the
        document sets no limit.
    header : bool
        Whether a client puts the header of the wire format and a checksum before each report. Such a message
        is about one record. `client_reports` refuses damaged messages, and those of another mechanism.

    Returns
    -------
    str
        Canonical JSON of schema version 1 (docs/reference/client.schema.json): the integers of the law, the
        exact epsilon between any two records, the layout of a report, and a golden report for a self-test. It
        holds no code and no secret. `bitldp.client.open_document` reads it back, and
        `bitldp.client.client_reports` reads what clients send.

    Raises
    ------
    NoDocumentError
        For a mechanism that no other client can run; the message says why.

    Examples
    --------
    >>> import bitldp
    >>> text = bitldp.GRR(["yes", "no"], epsilon=1.0).client_document()
    >>> len(text) < 1000
    True
    """
    return document_of(self, dtype, spends, header=header)


def no_program(self: Any, numbers: Type) -> ClientProgram:
    """Refuse to make a program for clients, as a mechanism does that has none.

    Raises
    ------
    NoDocumentError
        Always; the message says why.
    """
    raise no_document(self, self._no_document)


def no_document(mechanism: Any, reason: str) -> NoDocumentError:
    """Return the error that a mechanism has no document, for a reason."""
    return NoDocumentError(f"{type(mechanism).__name__}: has no client document, since {reason}")


def document_of(
    mechanism: Any,
    dtype: str = "float64",
    spends: tuple[str, int] | None = None,
    keyed: KeyedAnswers | None = None,
    update: ModelUpdate | None = None,
    header: bool = False,
) -> str:
    """Return the document of a mechanism, with rules for keyed answers or a model's update; see `write`."""
    kind: Type = "f32" if checks.choice("dtype", dtype, ("float32", "float64")) == "float32" else "f64"
    program, guarantee = mechanism._program(kind), mechanism.guarantee
    promise = _promise(mechanism, guarantee)
    if update is not None:
        promise = replace(promise, epsilon=composed(promise.epsilon, update.records))
    golden = _golden(mechanism, program)
    head = _header(mechanism, program).encoded() if header else b""
    return write(program, promise, golden, keyed=keyed, spends=spends, update=update, header=head)


def _header(mechanism: Any, program: ClientProgram) -> Header:
    """Return the header of a message about one record."""
    try:
        return record_header(
            type(mechanism).__name__,
            fingerprint_digest(mechanism),
            sum(each.columns for each in program.records),
            program.fields,
        )
    except ValueError as error:
        raise NoDocumentError(str(error)) from None


def _promise(mechanism: Any, guarantee: Guarantee) -> Promise:
    return Promise(
        repr(mechanism),
        fingerprint_digest(mechanism),
        guarantee.record,
        guarantee.delta,
        guarantee.unit,
        guarantee.given,
    )


def _golden(mechanism: Any, program: ClientProgram) -> list[NDArray[Any]]:
    """Return the codes that the mechanism itself makes of the golden values, an array for each field."""
    inputs = golden_inputs(program)
    if hasattr(mechanism, "_without_labels"):  # of several attributes, each with labels or without
        mechanism = mechanism._without_labels()
    by_kind = [[each for each in inputs if (each.dtype.kind == "f") == real] for real in (True, False)]
    tables = [np.concatenate(each, axis=1) for each in by_kind if each]
    arguments = [each[:, 0] if each.shape[1] == 1 else each for each in tables]
    # The labels of a set name its items; they are not values.
    labels = None if isinstance(program.codec, Item) else getattr(mechanism, "labels", None)
    if labels is not None:
        arguments = [labels[each] if each.dtype.kind == "u" else each for each in arguments]
    reports = mechanism.randomize(*arguments, rng=GOLDEN_SEED, output=mechanism._wire_output)
    return [np.asarray(each) for each in (reports if isinstance(reports, tuple) else (reports,))]


def client_reports(mechanism: Any, reports: Sequence[bytes]) -> Any:
    """Return reports that clients sent, in the form that the mechanism's `decode` and estimators take.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism whose document the clients have.
    reports : sequence of bytes
        Reports about one record each. All have the header of the wire format, or none has.

    Returns
    -------
    ndarray or tuple of ndarray
        The same arrays as `randomize` of the mechanism gives for n records, n = ``len(reports)``.

    Raises
    ------
    ValueError, TypeError
        For a report of another length, or with a bit set after its last code; the error names its index. For
        a mechanism without a document. The estimators check that codes are in range.
    WireError
        For a message that is damaged or of another mechanism; the error names its index.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.client import client_reports, open_document
    >>> mechanism = bitldp.GRR(4, epsilon=9.0)
    >>> client = open_document(mechanism.client_document())
    >>> reports = [client.randomize(3, rng=index) for index in range(100)]
    >>> mechanism.estimate_frequencies(client_reports(mechanism, reports)).value.round().tolist()
    [-0.0, -0.0, -0.0, 1.0]
    """
    program = mechanism._program("f64")
    return joined(
        mechanism, program.received(unsealed(reports, program, lambda: _header(mechanism, program)))
    )


def unsealed(
    reports: Sequence[bytes], program: ClientProgram, header: Callable[[], Header]
) -> Sequence[bytes]:
    """Return the packed codes of messages with a header; reports without a header stay as they are.

    Raises
    ------
    WireError
        For a message that is damaged, or of another mechanism, at its index.
    """
    if not (reports and isinstance(reports[0], bytes) and reports[0][: len(MAGIC)] == MAGIC):
        return reports
    if len(reports[0]) == program.report_bytes():  # codes may be any bytes
        return reports
    expected, codes = header(), []
    for index, report in enumerate(reports):
        try:
            codes.append(payload(report, expected))
        except WireError as error:
            raise WireError(error.reason, f"{error}, at index {index}") from None
    return codes


def joined(mechanism: Any, parts: Sequence[NDArray[Any]]) -> Any:
    """Return the reports that arrays of codes make, given one array of shape (n, columns) for each field."""
    made = mechanism._join(list(parts))
    single = isinstance(made, np.ndarray) and made.shape[1:] == (1,) == (mechanism.columns,)
    return made[:, 0] if single else made


def fingerprint_digest(mechanism: Any) -> bytes:
    """Return a digest of 16 bytes that tells mechanisms apart whose reports must not be mixed."""
    described: Mapping[str, Any] = mechanism.fingerprint()
    text = json.dumps(described, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).digest()[:16]
