"""A client document that was opened: its promise, its program, and the reports it makes."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base.keys import RandomSource, keys
from bitldp.client.message import CHECKSUM, sealed
from bitldp.client.program import ClientProgram
from bitldp.client.record import UNITS, ClientRecord
from bitldp.privacy import composed, number, rounding

__all__ = [
    "UPDATE_SLACK",
    "ClientDocument",
    "KeyedAnswers",
    "ModelUpdate",
    "Promise",
    "counted",
    "exact_of",
    "within",
]

UPDATE_SLACK = 1.0 - 2.0**-48
"""Factor of a clipped norm, so that rounding of the products never leads past it."""


@dataclass(frozen=True)
class KeyedAnswers:
    """How reports follow from a key that stays with the client.

    Attributes
    ----------
    context : bytes
        Purpose of the randomness.
    column : int
        Number of the record's first column among all under the key and context.
    id : {"u64", "digest", "text"}
        What names a record: a number, 32 bytes, or a text, of which SHA-256 makes them.
    apart : bool
        Whether each part of a record is a value by itself, whose first column follows those of the parts
        before it.
    """

    context: bytes
    column: int = 0
    id: Literal["u64", "digest", "text"] = "u64"
    apart: bool = False


@dataclass(frozen=True)
class ModelUpdate:
    """How a model's update becomes records, and a report of them a message to a server.

    Attributes
    ----------
    clip : float
        Norm that a vector is clipped to.
    norm : {"l2", "l1", "linf"}
        Which one. "l2" and "l1" scale what is longer; "linf" clips each coordinate.
    low, high : float
        What -clip and clip are mapped to, linearly.
    records : int
        Records that a vector is cut into, one behind the other.
    header : bytes
        What stands before the checksum and the packed codes.
    rows : int
        Updates that a vector is, one behind the other, each of which is clipped by itself.
    """

    clip: float
    norm: Literal["l2", "l1", "linf"]
    low: float
    high: float
    records: int
    header: bytes
    rows: int = 1

    def values(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return clipped rows on the mechanism's interval; sums may be made in any order."""
        clipped = np.concatenate([self._clipped(row) for row in vector.reshape(self.rows, -1)])
        shares = 0.5 + 0.5 * (clipped / self.clip)
        return np.clip(self.low + (self.high - self.low) * shares, self.low, self.high)

    def _clipped(self, row: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an update of at most the norm."""
        if self.norm == "linf":
            return np.clip(row, -self.clip, self.clip)
        largest = np.abs(row).max(initial=0.0)
        unit = row / largest if largest > 0.0 else row
        length = np.abs(unit).sum() if self.norm == "l1" else np.sqrt(np.square(unit).sum())
        return unit * (self.clip * UPDATE_SLACK / length) if length * largest > self.clip else row

    def message(self, codes: bytes) -> bytes:
        """Return header, checksum and packed codes."""
        return sealed(self.header, codes)


@dataclass(frozen=True)
class Promise:
    """Promise of a report, for people and for the server.

    Attributes
    ----------
    mechanism : str
        What it is called; shown, and never read.
    fingerprint : bytes
        16 bytes that tell mechanisms apart whose reports must not be mixed.
    epsilon, delta : float
        Of a record.
    unit : {"record", "feature"}
        What the claim was about.
    given : str
        What epsilon takes as known or as public; empty where it takes nothing.
    """

    mechanism: str
    fingerprint: bytes
    epsilon: float
    delta: float = 0.0
    unit: Literal["record", "feature"] = "record"
    given: str = ""


@dataclass(frozen=True)
class ClientDocument:
    """A document whose claims were checked: what it does to a record, and what that costs.

    Attributes
    ----------
    promise : Promise
        Name, fingerprint and epsilon, as the document has them.
    program : ClientProgram
        What is done to a record.
    keyed : KeyedAnswers or None
        How a client answers for ever alike; None where each report is drawn anew.
    spends : (str, int) or None
        Name of a ledger, and how many reports it allows.
    text : str
        The document.
    update : ModelUpdate or None
        What a vector goes through before the program, and a report behind it.
    header : bytes
        What a report stands behind, with a checksum; empty where it is sent as it is.
    """

    promise: Promise
    program: ClientProgram
    keyed: KeyedAnswers | None
    spends: tuple[str, int] | None
    text: str
    update: ModelUpdate | None = None
    header: bytes = b""

    @property
    def epsilon(self) -> float:
        """Epsilon of a report, computed from the integers of the document and rounded up."""
        return exact_of(self.program, self.promise, self.update)

    @property
    def delta(self) -> float:
        """Chance with which epsilon may fail; 0 for every pure mechanism."""
        return self.promise.delta

    @property
    def fingerprint(self) -> str:
        """Name that the server gives the mechanism: 32 hexadecimal digits."""
        return self.promise.fingerprint.hex()

    def report_bytes(self, records: int = 1) -> int:
        """Return the bytes of the reports of so many records in one call; of an update, its message's.

        Behind a header, a message is about one record.
        """
        if self.update is None:
            before = len(self.header) + CHECKSUM.size if self.header else 0
            return before + self.program.report_bytes(records)
        return len(self.update.message(b"")) + self.program.report_bytes(self.update.records)

    def sentence(self) -> str:
        """Return what a person should know before they answer."""
        delta = f" (but for a chance of {self.delta:.2g})" if self.delta else ""
        times = math.exp(min(self.epsilon, 700.0))
        again = "Each further report costs as much again."
        if self.keyed:
            again = "The same value is answered alike for ever, and repeated reports cost nothing more."
        return (
            f"What is sent is {counted(self.report_bytes(), 'byte')}. Whatever they are, they are at most "
            f"{number(times)} times as likely with your values as with any others{delta}: epsilon is "
            f"{number(self.epsilon, 6)}. {again}"
        )

    def randomize_update(self, vector: ArrayLike, *, rng: RandomSource = None) -> bytes:
        """Return the message about a model's update: clipped, randomized, packed behind its header.

        Parameters
        ----------
        vector : array_like of float, shape (coordinates,) or (rows, coordinates)
            The update; several of them, where the document is of so many rows.
        rng : None, int, SeedSequence or Generator
            None: fresh 256-bit keys of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.

        Raises
        ------
        ValueError
            For a document of no update, another shape, or coordinates that are not finite.
        """
        update, records = self.update, self.program.records
        if update is None:
            raise ValueError("document: describes records, not an update")
        values = np.asarray(vector, dtype=np.float64)
        length = update.records * records[0].columns // update.rows
        if values.shape != (update.rows, length)[update.rows == 1 :]:
            rows = f"{update.rows} rows of " if update.rows > 1 else ""
            raise ValueError(f"vector: {rows}{length} coordinates are needed")
        if not np.isfinite(values).all():
            raise ValueError("vector: has coordinates that are not finite")
        return update.message(self.randomize(update.values(values.ravel()), rng=rng))

    def randomize(self, *x: ArrayLike, rng: RandomSource = None) -> bytes:
        """Return the report of a record: bytes that may be sent.

        Parameters
        ----------
        *x : array_like
            The values of a record, or of n records, for each of the `program.records`: numbers, or categories
            by code or by label; numpy.datetime64 where the document states a unit of time.
        rng : None, int, SeedSequence or Generator
            None: fresh 256-bit keys of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.

        Raises
        ------
        ValueError, TypeError
            For a value that the mechanism refuses; its place is named, never the value. For several records
            where reports stand behind a header.
        """
        records = self.program.records
        if len(x) != len(records):
            raise ValueError(f"x: {len(records)} arrays are needed, got {len(x)}")
        values = [_values(each, record) for each, record in zip(x, records, strict=True)]
        if len({len(each) for each in values}) > 1:
            raise ValueError("x: the arrays must be of as many records")
        if self.header and len(values[0]) != 1:
            raise ValueError("x: a message is about one record")
        fresh = [os.urandom(32) if key is None else key for key in keys(rng, self.program.streams)]
        report = self.program.packed(values, fresh)
        return sealed(self.header, report) if self.header else report


def counted(many: int, unit: str) -> str:
    """Return a number of things in words."""
    return f"{many:,} {unit}{'' if many == 1 else 's'}"


def _values(x: ArrayLike, record: ClientRecord) -> NDArray[Any]:
    """Return values of a record as an array of its columns; labels become codes."""
    values = np.asarray(x)
    if record.labels is not None and values.dtype.kind in "US":
        known = [{label: code for code, label in enumerate(texts)} for texts in record.texts]
        labels = [(label, known[i % len(known)]) for i, label in enumerate(values.ravel().tolist())]
        if not all(label in own for label, own in labels):
            raise ValueError("x: a label is not one of the document's")
        values = np.array([own[label] for label, own in labels], np.int64).reshape(values.shape)
    if record.unit is not None and values.dtype.kind == "M":
        epoch, unit = np.datetime64(0, "D"), np.timedelta64(1, UNITS[record.unit])  # type: ignore[call-overload]
        values = (values - epoch) / unit  # NaN where there is none
    wanted, kinds = ("numbers", "iuf") if record.real else ("whole numbers", "iu")
    if values.dtype.kind not in kinds:
        raise TypeError(f"x: must be {wanted}, not {values.dtype}")
    if values.size % record.columns or not values.size:
        raise ValueError(f"x: {values.size} values are not records of {record.columns}")
    values = values.reshape(-1, record.columns)
    if not record.real and ((values < 0) | (values >= np.array(record.codes))).any():
        raise ValueError(f"x: a category is not below {record.below}")
    return values.astype(record.dtype.newbyteorder("="))


def exact_of(program: ClientProgram, promise: Promise, update: ModelUpdate | None) -> float:
    """Return epsilon of a report from the integers of a program."""
    one = program.epsilon(promise.delta, promise.epsilon)
    return one if update is None or update.records == 1 else composed(one, update.records)


def within(exact: float, claimed: float) -> bool:
    """Tell whether a claimed epsilon is the exact one: equal, or apart by the rounding of a sum."""
    return exact == claimed or abs(exact - claimed) <= rounding(exact)
