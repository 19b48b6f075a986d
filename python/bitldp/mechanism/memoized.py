"""Repeated collection: the same record and value are answered by the same report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from bitldp.base import checks
from bitldp.base.keys import check_secret
from bitldp.client.document import KeyedAnswers
from bitldp.client.mechanisms import document_of
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee, composed
from bitldp.release.keyed import Ids

__all__ = ["Memoized", "Secret"]

_BYTES = 32

GIVEN = (
    "reports of one value of a record: each further value that it takes costs the same once more, and the "
    "reports show when it changes"
)


@runtime_checkable
class Secret(Protocol):
    """Something that keeps a key and derives others of it: `bitldp.tables.ReleaseKey`."""

    def derive(self, *parts: bytes) -> bytes:
        """Return a key of 32 bytes for a purpose."""


class Memoized:
    """Mechanism that repeats its report of a record's value, so that daily reports cost as much as one.

    Parameters
    ----------
    mechanism : Mechanism
        What answers.
    key : bytes or Secret
        32 bytes, or an object that holds them (`bitldp.tables.ReleaseKey`). Keep the key with the owner of
        the data for as long as you ask the question. Whoever holds it can test values; without it, the next
        answers are new.
    question : str
        Name of the question. Two questions about one value share no random bits under the key.

    Raises
    ------
    ValueError, TypeError
        For a key of another length or kind, or anything but a mechanism.

    Notes
    -----
    A report is a function of key, question, mechanism, record id and value only
    (`Mechanism.randomize_keyed`). Nothing is stored. If a record's value stays the same, any number of its
    reports reveal as much as one, at the mechanism's guarantee. If the value changes, the reports of
    different values are independent: v values cost v times as much (`over`). It is then visible *that* the
    value changed, which no finite epsilon covers. To hide changes, too, use `RAPPOR` with its instantaneous
    step, or fresh randomness at the sum of all rounds. If the numbers or categories of a record are each
    released by themselves, it is visible which of them changed.

    A pickle holds the key by reference if the key is a secret that has one. Otherwise pickling is refused.

    Sources: Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014 (the permanent response); Ding, Kulkarni and
    Yekhanin, "Collecting telemetry data privately", NeurIPS 2017 (what repeated answers show).

    Examples
    --------
    >>> import os, numpy as np, bitldp
    >>> daily = bitldp.Memoized(bitldp.GRR(50, epsilon=1.0), os.urandom(32), question="browser")
    >>> users, browsers = np.arange(1000, dtype=np.uint64), np.arange(1000) % 50
    >>> monday = daily.randomize(browsers, ids=users)
    >>> tuesday = daily.randomize(browsers, ids=users)
    >>> bool((monday == tuesday).all())
    True
    """

    __slots__ = ("_guarantee", "_key", "_mechanism", "_question", "_secret")

    def __init__(self, mechanism: Mechanism, key: bytes | Secret, *, question: str = "") -> None:
        if not isinstance(mechanism, Mechanism):
            raise TypeError(f"mechanism: must be one of bitldp's, not {type(mechanism).__name__}")
        if not isinstance(question, str):
            raise TypeError(f"question: must be a str, not {type(question).__name__}")
        self._mechanism, self._question, self._secret = mechanism, question, key
        self._key = _bytes_of(key)
        exact = mechanism.guarantee
        given = f"{exact.given}; {GIVEN}" if exact.given else GIVEN
        self._guarantee = Guarantee(
            exact.claimed, exact.bit, exact.feature, exact.record, exact.delta, exact.holds, exact.unit, given
        )

    @property
    def mechanism(self) -> Mechanism:
        """The inner mechanism. The reports of one round are its reports: use it to decode and estimate."""
        return self._mechanism

    @property
    def question(self) -> str:
        """Name that tells this question from others under the key."""
        return self._question

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee over all rounds in which a record's value stays; `given` says what a change shows."""
        return self._guarantee

    def client_document(
        self,
        *,
        dtype: Literal["float32", "float64"] = "float64",
        ids: Literal["u64", "digest", "text"] = "u64",
        header: bool = False,
    ) -> str:
        """Return the mechanism as data for clients that keep a key of their own; see `client_document`.

        Parameters
        ----------
        dtype : {"float32", "float64"}
            Type of the numbers that a client passes. A number is dithered in its own precision. Ignored for
            categories.
        ids : {"u64", "digest", "text"}
            Form of a record's id: a number, 32 bytes, or a text.
        header : bool
            Whether the header of the wire format and a checksum stand before each report.

        Returns
        -------
        str
            The document of the mechanism, with the context of the question. The key is not part of it: each
            client keeps its own, and repeats its answer to a value for as long as it does.

        Raises
        ------
        NoDocumentError
            For a mechanism that no other client can run; the message says why.
        """
        checks.choice("ids", ids, ("u64", "digest", "text"))
        return document_of(self._mechanism, dtype, keyed=KeyedAnswers(self._context, 0, ids), header=header)

    @property
    def _context(self) -> bytes:
        """Context of the keyed randomness."""
        return b"memoized " + self._question.encode()

    def over(self, values: int) -> float:
        """Return the exact epsilon of all reports of a record that takes `values` values, changes excluded.

        Parameters
        ----------
        values : int
            How many different values a record takes over all rounds, 1 or more.

        Returns
        -------
        float
            The bound holds between two records that change at the same times. The fact that they changed is
            not covered.

        Raises
        ------
        ValueError, TypeError
            If it is below 1.
        """
        return composed(self._guarantee.record, checks.integer("values", values, 1))

    def randomize(
        self,
        *records: ArrayLike,
        ids: Ids,
        output: str | None = None,
        threads: int | None = None,
    ) -> Any:
        """Randomize records, each with the randomness of its id and value.

        Parameters
        ----------
        *records : array_like
            As `randomize_keyed` of the mechanism takes them: one array, or features and labels.
        ids : ndarray of int, zero or more, shape (n,); of uint8, shape (n, 32); or sequence of n bytes
            Id of each record's user: the same in every round.
        output : str
            One of `outputs`. "codes" have the smallest unsigned dtype. "values" are decoded by `decode`, in
            the dtype of `x`. "bits" are bytes of 0 and 1. "packed" are bytes that hold only the bits that a
            code needs.
        threads : int, optional
            Number of threads; the result does not depend on it.

        Returns
        -------
        ndarray or tuple of ndarray
            The reports: always the same for the same id and value.

        Raises
        ------
        ValueError, TypeError
            As `Mechanism.randomize_keyed`.
        """
        return self._mechanism.randomize_keyed(
            *records, key=self._key, ids=ids, context=self._context, output=output, threads=threads
        )

    def __repr__(self) -> str:
        """Return mechanism and question; the key is not shown."""
        return f"Memoized({self._mechanism!r}, ..., question={self._question!r})"

    def __reduce__(self) -> tuple[Callable[..., Memoized], tuple[Any, ...]]:
        """Pickle mechanism, question and the secret's reference; a key in bytes stays in its process."""
        if isinstance(self._secret, bytes):
            raise TypeError(
                "Memoized: a key in bytes cannot be pickled; pass a bitldp.tables.ReleaseKey, "
                "which pickles as the name of its variable or file"
            )
        return _rebuild, (self._mechanism, self._secret, self._question)


def _bytes_of(key: Any) -> bytes:
    if isinstance(key, Secret):
        key = key.derive(b"bitldp memoized reports")
    if not isinstance(key, bytes):
        raise TypeError(f"key: must be bytes, or derive them, not {type(key).__name__}")
    if len(key) != _BYTES:
        raise ValueError(f"key: {len(key)} bytes are not allowed; {_BYTES} are")
    check_secret(key)
    return key


def _rebuild(mechanism: Mechanism, secret: Secret, question: str) -> Memoized:
    return Memoized(mechanism, secret, question=question)
