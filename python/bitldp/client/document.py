"""Client documents that were opened: what they promise, and the reports that they make."""

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
"""Factor of the norm that a vector is clipped to, below 1 so that rounding never exceeds the norm."""


@dataclass(frozen=True)
class KeyedAnswers:
    """Rules by which reports follow from a key that stays with the client.

    Attributes
    ----------
    context : bytes
        Purpose of the randomness; another context gives other reports.
    column : int
        Number of the record's first column among all columns under the same key and context.
    id : {"u64", "digest", "text"}
        Form of a record's name: a number of 64 bits, 32 bytes, or a text whose SHA-256 is these bytes.
    apart : bool
        True where each part of a record is keyed by itself. Its first column is numbered after the columns of
        the parts before it.
    """

    context: bytes
    column: int = 0
    id: Literal["u64", "digest", "text"] = "u64"
    apart: bool = False


@dataclass(frozen=True)
class ModelUpdate:
    """Rules that turn a model's update into records, and their report into a message to the server.

    Attributes
    ----------
    clip : float
        Largest norm of an update, above 0.
    norm : {"l2", "l1", "linf"}
        Norm that is limited. "l2" and "l1" scale an update that is too long; "linf" clips each coordinate.
    low, high : float
        Ends of the mechanism's interval. [-clip, clip] is mapped to [low, high] linearly.
    records : int
        Number of records of equal length that the vector is cut into.
    header : bytes
        First bytes of the message. The checksum and the packed codes follow.
    rows : int
        Number of updates of equal length in the vector. Each is clipped by itself.
    """

    clip: float
    norm: Literal["l2", "l1", "linf"]
    low: float
    high: float
    records: int
    header: bytes
    rows: int = 1

    def values(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the clipped rows, mapped to the mechanism's interval; a client may sum in any order."""
        clipped = np.concatenate([self._clipped(row) for row in vector.reshape(self.rows, -1)])
        shares = 0.5 + 0.5 * (clipped / self.clip)
        return np.clip(self.low + (self.high - self.low) * shares, self.low, self.high)

    def _clipped(self, row: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an update whose norm is at most `clip`."""
        if self.norm == "linf":
            return np.clip(row, -self.clip, self.clip)
        largest = np.abs(row).max(initial=0.0)
        unit = row / largest if largest > 0.0 else row
        length = np.abs(unit).sum() if self.norm == "l1" else np.sqrt(np.square(unit).sum())
        return unit * (self.clip * UPDATE_SLACK / length) if length * largest > self.clip else row

    def message(self, codes: bytes) -> bytes:
        """Return the bytes to send: the header, a checksum and the packed codes."""
        return sealed(self.header, codes)


@dataclass(frozen=True)
class Promise:
    """Statement of what a report costs, for people and for the server.

    Attributes
    ----------
    mechanism : str
        Name of the mechanism, for people alone; no program reads it.
    fingerprint : bytes
        16 bytes, the same for mechanisms whose reports may be mixed.
    epsilon, delta : float
        Privacy of one report about a record, between any two records.
    unit : {"record", "feature"}
        Unit of the mechanism's own claim.
    given : str
        What epsilon takes as public; empty where it takes nothing.
    """

    mechanism: str
    fingerprint: bytes
    epsilon: float
    delta: float = 0.0
    unit: Literal["record", "feature"] = "record"
    given: str = ""


@dataclass(frozen=True)
class ClientDocument:
    """Document whose claims were checked: it makes reports, and states what one costs.

    Attributes
    ----------
    promise : Promise
        Name, fingerprint and epsilon, as the document has them.
    program : ClientProgram
        Steps that turn a record into a report.
    keyed : KeyedAnswers or None
        Rules that give a record the same report each time; None where each report is drawn anew.
    spends : (str, int) or None
        Name of the client's ledger, and the number of reports that it allows. None sets no limit.
    text : str
        The document itself.
    update : ModelUpdate or None
        Rules for a model's update; None for a document of records.
    header : bytes
        Header of a message, before its checksum and report; empty where reports are sent alone.
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
        """Epsilon of a report between any two records, from the document's integers and rounded up."""
        return exact_of(self.program, self.promise, self.update)

    @property
    def delta(self) -> float:
        """Chance with which epsilon may fail; 0 for a pure mechanism."""
        return self.promise.delta

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the mechanism, in 32 hexadecimal digits."""
        return self.promise.fingerprint.hex()

    def report_bytes(self, records: int = 1) -> int:
        """Return the number of bytes that `randomize` gives for so many records.

        For a document of updates, it is the length of a message; `records` is ignored. A message with a
        header is about one record.
        """
        if self.update is None:
            before = len(self.header) + CHECKSUM.size if self.header else 0
            return before + self.program.report_bytes(records)
        return len(self.update.message(b"")) + self.program.report_bytes(self.update.records)

    def sentence(self) -> str:
        """Return the words that a person should read before they answer."""
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
        """Return the message about a model's update, which is clipped, randomized and packed.

        Parameters
        ----------
        vector : array_like of float, shape (coordinates,) or (rows, coordinates)
            The update, or `rows` updates where the document is about several.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. A seed is for tests and experiments only:
            the same seed on two inputs reveals where they differ.

        Returns
        -------
        bytes
            Header, checksum and packed codes; as many bytes as `report_bytes` says.

        Raises
        ------
        ValueError
            For a document of records, another shape, or coordinates that are not finite.
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
        """Return the report about a record, in bytes that may be sent.

        Parameters
        ----------
        *x : array_like
            An array for each of `program.records`, of shape (columns,) or (n, columns): numbers, or
            categories by code or by label. numpy.datetime64 is for documents that state a unit of time.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. A seed is for tests and experiments only:
            the same seed on two inputs reveals where they differ.

        Returns
        -------
        bytes
            The packed codes, behind header and checksum where the document has a header; as many bytes as
            `report_bytes` says.

        Raises
        ------
        ValueError, TypeError
            For a value that the mechanism refuses. The error names its place, never the value. For several
            records where the document has a header.
        """
        records = self.program.records
        if len(x) != len(records):
            raise ValueError(f"x: {len(records)} arrays are needed, got {len(x)}")
        values = [_values(each, record) for each, record in zip(x, records, strict=True)]
        if len({len(each) for each in values}) > 1:
            raise ValueError("x: the arrays must have the same number of records")
        if self.header and len(values[0]) != 1:
            raise ValueError("x: a message is about one record")
        fresh = [os.urandom(32) if key is None else key for key in keys(rng, self.program.streams)]
        report = self.program.packed(values, fresh)
        return sealed(self.header, report) if self.header else report


def counted(many: int, unit: str) -> str:
    """Return a number and its unit, such as "1 byte" or "2 bytes"."""
    return f"{many:,} {unit}{'' if many == 1 else 's'}"


def _values(x: ArrayLike, record: ClientRecord) -> NDArray[Any]:
    """Return values as an array of shape (n, columns); labels become codes."""
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
        raise ValueError(f"x: {values.size} values do not make records of {record.columns} values each")
    values = values.reshape(-1, record.columns)
    if not record.real and ((values < 0) | (values >= np.array(record.codes))).any():
        raise ValueError(f"x: a category is not below {record.below}")
    return values.astype(record.dtype.newbyteorder("="))


def exact_of(program: ClientProgram, promise: Promise, update: ModelUpdate | None) -> float:
    """Return epsilon of a report, computed from the integers of a program and rounded up."""
    one = program.epsilon(promise.delta, promise.epsilon)
    return one if update is None or update.records == 1 else composed(one, update.records)


def within(exact: float, claimed: float) -> bool:
    """Tell whether a claimed epsilon is the exact one, up to the rounding of a sum."""
    return exact == claimed or abs(exact - claimed) <= rounding(exact)
