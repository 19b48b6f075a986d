"""Plans for clients in other languages: a form, and the released table that its reports make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from bitldp.base import checks
from bitldp.base.errors import PlanError
from bitldp.base.keys import keys
from bitldp.client.document import KeyedAnswers, Promise
from bitldp.client.mechanisms import joined, unsealed
from bitldp.client.message import Header, record_header
from bitldp.client.notation import NoDocumentError
from bitldp.client.program import ClientProgram, spelled
from bitldp.client.record import ClientRecord, Type
from bitldp.client.writing import GOLDEN_SEED, golden_inputs, write
from bitldp.privacy import Guarantee
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.labels import Labels
from bitldp.tables.numbers import NumericColumns
from bitldp.tables.points import Points
from bitldp.tables.presence import Presence
from bitldp.tables.record import Record
from bitldp.tables.scales import Scales

__all__ = ["ClientForm"]

_PRESENT = ("missing", "present")


class ClientForm(ABC):
    """Base of a plan: the form that clients fill in, and the table of their reports."""

    codecs: tuple[ColumnCodec, ...]
    keep: tuple[str, ...]

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Guarantee of a record: the cost of all its columns together."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of the plan, in hexadecimal."""

    def client_document(
        self,
        *,
        dtype: Literal["float32", "float64"] = "float64",
        spends: tuple[str, int] | None = None,
        header: bool = False,
        keyed: Literal["u64", "digest", "text"] | None = None,
    ) -> str:
        """Return the plan as data that a client in another language reads, checks and runs.

        A record consists of the values of all columns by name; categories have their labels. A number counts
        as the nearest point where the mechanism takes points. The attributes of a record that follow each
        other and have one mechanism are one value. Missing values are refused by default. With
        ``nulls="category"``, a missing value is the last category, named "".
        With ``nulls="fill"``, pass "" for a missing category and NaN for a missing number, and the client
        uses the public value. With ``nulls="report"``, pass "missing" or "present" after the number, as a
        value of its own. Dates and times are numbers of their column's `unit`, which the document states.

        Parameters
        ----------
        dtype : {"float32", "float64"}
            Type of the numbers that a client passes. A number is dithered in its own precision. Ignored for
            categories.
        spends : (str, int), optional
            Name of a ledger of the client, and the number of reports that it may send, at least 1. None: the
            document sets no limit.
        header : bool
            Whether a client puts the header of the wire format and a checksum before each report:
            `from_clients` refuses those of another plan, and damaged ones. At most eight arrays of codes.
        keyed : {"u64", "digest", "text"}, optional
            Form of a record's id: a number, 32 bytes, or a text. Clients then compute a report from a secret,
            the record's id and its values. With `TableRelease.client_secret`, the reports are those of the
            release. None: each report is drawn with fresh randomness.

        Returns
        -------
        str
            Canonical JSON; `bitldp.client.open_document` reads it back, and `from_clients` makes a released
            table of the reports.

        Raises
        ------
        PlanError
            For a column that no other client can release, and for columns that are kept. With `keyed`, for a
            column that it releases with fresh randomness alone.
        """
        kind: Type = "f32" if checks.choice("dtype", dtype, ("float32", "float64")) == "float32" else "f64"
        if self.keep:
            raise PlanError("keep: a form cannot keep columns as they are; leave keep out")
        program = self._program(kind)
        guarantee = self.guarantee
        promise = Promise(
            f"TablePlan({', '.join(name for codec in self.codecs for name in codec.columns)})",
            bytes.fromhex(self.digest)[:16],
            guarantee.record,
            guarantee.delta,
            guarantee.unit,
            guarantee.given,
        )
        # Each part was compared with its mechanism when its own document was written.
        own = [key for key in keys(GOLDEN_SEED, program.streams) if key is not None]
        golden = program.codes(golden_inputs(program), own)
        head = self._header(program).encoded() if header else b""
        answers = None
        if keyed is not None:
            checks.choice("keyed", keyed, ("u64", "digest", "text"))
            answers = KeyedAnswers(b"", 0, keyed, apart=True)
            for codec, part in zip(self.codecs, program.parts, strict=True):
                if not part.is_plain:
                    raise PlanError(f"{codec.settings.title}: a client draws its reports anew, with no key")
        return write(program, promise, golden, keyed=answers, spends=spends, header=head)

    def from_clients(self, reports: Sequence[bytes]) -> pa.Table:
        """Return reports that clients sent as a released table of the plan.

        Parameters
        ----------
        reports : sequence of bytes
            Reports about one record each, as a client of `client_document` makes them. All have a header, or
            none has.

        Returns
        -------
        pyarrow.Table
            The columns of the plan, with a row for each report. `aggregate` and ``bitldp estimate`` take it
            as they take any released table. Tables of several calls can be joined.

        Raises
        ------
        ValueError, TypeError
            For a report of another length, with a bit set after its codes, or with a code out of range. The
            error names its index.
        PlanError
            For a column that no other client can release, and for columns that are kept.
        WireError
            For a message that is damaged or of another plan. The error names its index.
        """
        program = self._program("f64")
        codes = unsealed(reports, program, lambda: self._header(program))
        arrays, made = program.received(codes), []
        for codec, part in zip(self.codecs, program.parts, strict=True):
            own, arrays = arrays[: len(part.fields)], arrays[len(part.fields) :]
            reported = joined(codec.mechanism, own)
            values = _written_values(codec, reported)
            if isinstance(codec, NumericColumns) and isinstance(values, np.ndarray):
                values = values.reshape(len(reports), -1)
            kind = pa.string() if isinstance(codec, Labels) else pa.float64()
            made += [(name, codec.signed(each)) for name, each in codec.written(values, kind)]
        table = pa.table([values for _, values in made], names=[name for name, _ in made])
        facts = {b"bitldp.plan": self.digest, b"bitldp.epsilon": repr(self.guarantee.record)}
        return table.replace_schema_metadata({name: text.encode() for name, text in facts.items()})

    def _header(self, program: ClientProgram) -> Header:
        """Return the header of a message about one record."""
        values = sum(each.columns for each in program.records)
        try:
            return record_header("TablePlan", bytes.fromhex(self.digest)[:16], values, program.fields)
        except ValueError as error:
            raise PlanError(str(error)) from None

    def _program(self, numbers: Type) -> ClientProgram:
        """Return the program of a client, with a part for each codec."""
        parts = tuple(_part(codec, numbers) for codec in self.codecs)
        return ClientProgram(None, tuple(field for part in parts for field in part.fields), parts=parts)


def _written_values(codec: ColumnCodec, reports: Any) -> Any:
    """Return codes in the form of reports that the codec writes."""
    mechanism, asked = codec.mechanism, codec._options().get("output", "codes")
    if asked == "bits" and "codes" in mechanism.outputs:
        ((_, bits),) = mechanism._report_parts
        return codec._values(spelled(reports, bits))
    labels = isinstance(codec, Labels) and codec.output == "values"  # whose codes are checked, and stay
    return codec._values(mechanism.decode(reports) if asked == "values" or labels else reports)


def _part(codec: ColumnCodec, numbers: Type) -> ClientProgram:
    """Return the program of a client for the columns of a codec."""
    title = codec.settings.title
    if not isinstance(codec, (Labels, NumericColumns, Points, Presence, Record)):
        raise PlanError(f"{title}: a client takes categories, numbers, and records of both")
    scales = codec.scales if isinstance(codec, (NumericColumns, Record)) else None
    own = scales is None and codec.settings.unit is None
    wide = not own or isinstance(codec, (Points, Record))  # read in double precision
    try:
        codec.mechanism.client_document()  # which compares it with the mechanism
        program: ClientProgram = codec.mechanism._program("f64" if wide else numbers)
    except NoDocumentError as error:
        raise PlanError(f"{title}: {error}") from None
    if isinstance(codec, Record):
        return _of_record(codec, program)
    if program.record is None:
        raise PlanError(f"{title}: a client takes categories, and numbers")
    if isinstance(codec, Labels):
        return replace(program, record=_labelled(codec, program.record))
    if isinstance(codec, Presence):
        return replace(program, record=replace(program.record, labels=_PRESENT, names=tuple(codec.names)))
    missing = codec.settings.missing
    record = program.record
    if isinstance(codec, Points) and codec.mechanism._span is None:  # categories, which are its points
        record = ClientRecord("f64", below=codec.points)
        scales = Scales((codec.interval,), (0.0, codec.points - 1.0))
    fill = float(missing.fill) if missing.filled else None
    return replace(program, record=replace(_numbered(codec, record, scales), fill=fill))


def _numbered(
    codec: ColumnCodec, record: ClientRecord, scales: Scales | None, first: int = 0
) -> ClientRecord:
    """Return the record of columns of numbers, the first of which has a number among those of the codec."""
    last = first + record.columns
    record = replace(record, labels=None, names=tuple(codec.columns[first:last]), unit=codec.settings.unit)
    if scales is None:
        return record
    own = tuple((float(low), float(high)) for low, high in scales.intervals[first:last])
    return replace(record, interval=None, intervals=own, span=scales.span)


def _of_record(codec: Record, program: ClientProgram) -> ClientProgram:
    """Return the program of a record of attributes, whose parts are numbers, or categories with labels."""
    if program.record is not None:
        return replace(program, record=_attributed(codec, program.record, 0))
    parts, first = [], 0
    for part in program.parts:
        assert part.record is not None  # of attributes
        parts.append(replace(part, record=_attributed(codec, part.record, first)))
        first += part.record.columns
    return replace(program, parts=tuple(parts))


def _attributed(codec: Record, record: ClientRecord, first: int) -> ClientRecord:
    """Return the record of some attributes, the first of which has a number."""
    if record.real:
        return _numbered(codec, record, codec.scales, first)
    last, before = first + record.columns, len(codec.numbers)
    labels = [_labels(codec, each) for each in codec.categories[first - before : last - before]]
    return replace(
        record,
        labels=labels[0] if len(labels) == 1 else tuple(labels),
        names=tuple(codec.columns[first:last]),
    )


def _labels(codec: Labels | Record, categories: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels of a column of categories. The last one may stand for a missing value."""
    if codec.settings.missing.policy == "refuse":
        return categories
    if "" in categories:
        raise PlanError(
            f"{codec.settings.title}: categories: must not hold '', which a client passes for a missing value"
        )
    return (*categories, "")


def _labelled(codec: Labels, record: ClientRecord) -> ClientRecord:
    """Return the record of a column of categories."""
    labels = _labels(codec, codec.categories)
    record = replace(record, labels=labels, names=tuple(codec.columns))
    if codec.settings.missing.policy != "fill":
        return record
    kind = ClientRecord.of_codes(len(labels)).type  # of one code more
    return replace(record, type=kind, fill=codec.categories.index(str(codec.dictionary.missing.fill)))
