"""Client documents of mechanisms: what a client does in place of Python, as data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.client.document import Keyed, Promise
from bitldp.client.notation import NoDocumentError
from bitldp.client.program import Program, Type
from bitldp.client.writing import GOLDEN_SEED, golden_inputs, write
from bitldp.privacy import Guarantee

__all__ = ["Documented", "fingerprint_digest"]


class Documented:
    """Base of what has a client document.

    Not a dataclass: a subclass says by `_program` what a client does to a record.
    """

    _no_document: ClassVar[str] = "its draws are made in Python, and no other client makes the same"
    _wire_output: Any
    guarantee: Any

    def client_document(
        self,
        *,
        dtype: Literal["float32", "float64"] = "float64",
        spends: tuple[str, int] | None = None,
    ) -> str:
        """Return the mechanism as data that a client in another language reads, checks and runs.

        Parameters
        ----------
        dtype : {"float32", "float64"}
            Of the numbers that a client gives; a number is dithered in its own precision. Nothing to
            categories.
        spends : (str, int), optional
            Name of a ledger of the client, and how many reports it may send, at least 1. None: no limit but
            the client's own.

        Returns
        -------
        str
            Canonical JSON of schema version 1 (docs/reference/client.schema.json): the integers of the law,
            the exact epsilon, the layout of a report and a golden report for a self-test. No code, and
            nothing secret. `bitldp.client.open_document` reads it back.

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
        return self._document(dtype, spends, None)

    def client_reports(self, reports: Sequence[bytes]) -> Any:
        """Return the reports that clients sent as `decode` and the estimators take them.

        Parameters
        ----------
        reports : sequence of bytes
            Of one record each, as a client of `client_document` makes them.

        Raises
        ------
        ValueError, TypeError
            For a report of another length, or with bits behind its codes, at its index; and for a mechanism
            without a document. Whether codes are in range is for the estimators to say.
        """
        return self._joined_of(self._program("f64").received(reports))

    def _joined_of(self, parts: Sequence[NDArray[Any]]) -> Any:
        """Return the reports of arrays of codes, one of shape (n, columns) for each field."""
        mechanism: Any = self
        joined = mechanism._join(list(parts))
        single = isinstance(joined, np.ndarray) and joined.shape[1:] == (1,) == (mechanism.columns,)
        return joined[:, 0] if single else joined

    def _document(self, dtype: str, spends: tuple[str, int] | None, keyed: Keyed | None) -> str:
        kind: Type = "f32" if checks.choice("dtype", dtype, ("float32", "float64")) == "float32" else "f64"
        if spends is not None:
            name, most = spends
            spends = str(name), checks.integer("spends[1]", most, 1)
        program = self._program(kind)
        return write(program, self._promise_of(), self._golden(program), keyed=keyed, spends=spends)

    def _promise_of(self) -> Promise:
        guarantee: Guarantee = self.guarantee
        return Promise(
            repr(self),
            fingerprint_digest(self),
            guarantee.record,
            guarantee.delta,
            guarantee.unit,
            guarantee.given,
        )

    def _program(self, numbers: Type) -> Program:
        """Return what a client does to a record whose numbers are of a type.

        Raises
        ------
        NoDocumentError
            Where no client can do it.
        """
        self._refuse_document(self._no_document)

    def _refuse_document(self, reason: str) -> NoReturn:
        raise NoDocumentError(f"{type(self).__name__}: has no client document, since {reason}")

    def _golden(self, program: Program) -> Sequence[NDArray[Any]]:
        """Return the mechanism's own codes of `golden_inputs`."""
        inputs = [each.reshape(-1, *each.shape[1:]) for each in golden_inputs(program)]
        reports = self._of_golden(self._arguments(inputs))
        return [np.asarray(each) for each in (reports if isinstance(reports, tuple) else (reports,))]

    def _arguments(self, inputs: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
        """Return what `randomize` takes, of the values of each of a program's records."""
        return [each[:, 0] if each.shape[1] == 1 else each for each in inputs]

    def _of_golden(self, arguments: Sequence[NDArray[Any]]) -> Any:
        """Return the reports of codes, whatever labels there are."""
        mechanism: Any = self
        labelled = getattr(mechanism, "labels", None) is not None
        if labelled:
            arguments = [mechanism.labels[each] if each.dtype.kind == "u" else each for each in arguments]
        return mechanism.randomize(*arguments, rng=GOLDEN_SEED, output=mechanism._wire_output)


def fingerprint_digest(mechanism: Any) -> bytes:
    """Return a digest of 16 bytes that tells mechanisms apart whose reports must not be mixed."""
    described: Mapping[str, Any] = mechanism.fingerprint()
    text = json.dumps(described, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).digest()[:16]
