"""Documents of what a client does, as a server publishes and a client inspects them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import FixedPoint, Grid, Mixture, Window, keystream
from bitldp.base.keys import RandomSource, keys
from bitldp.client import laws
from bitldp.client.notation import DocumentError, Fields, canonical, digest, double, parsed, text_of
from bitldp.client.program import (
    OneHot,
    Part,
    Program,
    PublicDraw,
    Record,
    Signs,
    field_bits,
    inputs_of,
    packed,
)
from bitldp.privacy import number, rounding
from bitldp.release.draws import scaled
from bitldp.release.sampled import index_bits

__all__ = ["ClientDocument", "Keyed", "Promise", "golden_inputs", "open_document", "write"]

VERSION = 1
"""Of the schema, and of the keystream that its golden reports are made with."""

GOLDEN_SEED = 1
"""The `rng` of the golden reports; its keys are public, and stand in the document."""

_GOLDEN_BITS = 64  # of golden reports, at least, so that a wrong client hardly passes by chance
_MOST_GOLDEN = 64  # records
_MOST_PARTS = 1024
_MOST_COLUMNS = 1 << 22
_MOST_LABELS = 1 << 16


@dataclass(frozen=True)
class Keyed:
    """How reports follow from a key that stays with the client.

    Attributes
    ----------
    context : bytes
        Purpose of the randomness.
    column : int
        Number of the record's first column among all under the key and context.
    id : {"u64", "digest", "text"}
        What names a record: a number, 32 bytes, or a text, of which SHA-256 makes them.
    """

    context: bytes
    column: int = 0
    id: Literal["u64", "digest", "text"] = "u64"


@dataclass(frozen=True)
class Promise:
    """What a report promises, for people and for the server.

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
    program : Program
        What is done to a record.
    keyed : Keyed or None
        How a client answers for ever alike; None where each report is drawn anew.
    spends : (str, int) or None
        Name of a ledger, and how many reports it allows.
    text : str
        The document.
    """

    promise: Promise
    program: Program
    keyed: Keyed | None
    spends: tuple[str, int] | None
    text: str

    @property
    def epsilon(self) -> float:
        """Epsilon of a record, computed from the integers of the document and rounded up."""
        return self.program.epsilon(self.promise.delta, self.promise.epsilon)

    @property
    def delta(self) -> float:
        """Chance with which epsilon may fail; 0 for every pure mechanism."""
        return self.promise.delta

    @property
    def fingerprint(self) -> str:
        """What the server calls the mechanism: 32 hexadecimal digits."""
        return self.promise.fingerprint.hex()

    def report_bytes(self, records: int = 1) -> int:
        """Return the bytes of the reports of so many records in one call."""
        return self.program.report_bytes(records)

    def sentence(self) -> str:
        """Return what a person should know before they answer."""
        delta = f" (but for a chance of {self.delta:.2g})" if self.delta else ""
        times = math.exp(min(self.epsilon, 700.0))
        again = (
            " The answer stays the same for as long as the value does, and repeated reports cost nothing more."
            if self.keyed
            else " Each further report costs as much again."
        )
        return (
            f"What is sent is {self.report_bytes():,} bytes. Whatever they are, they are at most "
            f"{number(times)} times as likely with your values as with any others{delta}: epsilon is "
            f"{number(self.epsilon, 6)}.{again}"
        )

    def randomize(self, *x: ArrayLike, rng: RandomSource = None) -> bytes:
        """Return the report of a record: bytes that may be sent.

        Parameters
        ----------
        *x : array_like
            The values of a record, or of n records, for each of the `program.records`: numbers, or categories
            by code or by label.
        rng : None, int, SeedSequence or Generator
            As of every mechanism; None takes fresh keys of the operating system.

        Raises
        ------
        ValueError, TypeError
            For a value that the mechanism refuses; its place is named, never the value.
        """
        records = self.program.records
        if len(x) != len(records):
            raise ValueError(f"x: {len(records)} arrays are needed, got {len(x)}")
        values = [_values(each, record) for each, record in zip(x, records, strict=True)]
        if len({len(each) for each in values}) > 1:
            raise ValueError("x: the arrays must be of as many records")
        fresh = [keystream_key() if key is None else key for key in keys(rng, self.program.streams)]
        return self.program.packed(values, fresh)


def keystream_key() -> bytes:
    """Return a fresh key of the operating system."""
    import os

    return os.urandom(32)


def _values(x: ArrayLike, record: Record) -> NDArray[Any]:
    """Return values of a record as an array of its columns; labels become codes."""
    values = np.asarray(x)
    if record.labels is not None and values.dtype.kind in "US":
        known = {label: code for code, label in enumerate(record.labels)}
        if not all(label in known for label in values.ravel().tolist()):
            raise ValueError("x: a label is not one of the document's")
        codes = [known[label] for label in values.ravel().tolist()]
        values = np.array(codes, np.int64).reshape(values.shape)
    if record.below is not None:
        if values.dtype.kind not in "iu":
            raise TypeError(f"x: must be whole numbers, not {values.dtype}")
        if values.size and (values.min() < 0 or values.max() >= record.below):
            raise ValueError(f"x: a category is not below {record.below}")
    elif values.dtype.kind not in "iuf":
        raise TypeError(f"x: must be numbers, not {values.dtype}")
    if values.size % record.columns or not values.size:
        raise ValueError(f"x: {values.size} values are no records of {record.columns}")
    return values.astype(record.dtype.newbyteorder("=")).reshape(-1, record.columns)


# -- writing


def write(
    program: Program,
    promise: Promise,
    golden: Sequence[NDArray[Any]],
    *,
    keyed: Keyed | None = None,
    spends: tuple[str, int] | None = None,
) -> str:
    """Return the canonical text of a document.

    Parameters
    ----------
    program, promise, keyed, spends
        What it says.
    golden : sequence of ndarray
        What the mechanism itself reports about `golden_inputs`, with ``rng=GOLDEN_SEED``: its codes, an array
        for each field.

    Raises
    ------
    ArithmeticError
        If the program makes other reports or costs more than the mechanism says: no document is written.
    """
    inputs = golden_inputs(program)
    own: list[bytes] = [key for key in keys(GOLDEN_SEED, program.streams) if key is not None]
    report = packed(golden, program.fields)
    if report != program.packed(inputs, own):
        raise ArithmeticError("client_document: a client would not make this mechanism's reports")
    exact = program.epsilon(promise.delta, promise.epsilon)
    if not within(exact, promise.epsilon):
        raise ArithmeticError("client_document: a client would not find this mechanism's epsilon")
    fields: dict[str, Any] = {
        "bitldp": VERSION,
        "mechanism": promise.mechanism[:4096],
        "fingerprint": promise.fingerprint.hex(),
        "unit": promise.unit,
        "epsilon": double(promise.epsilon),
        "delta": double(promise.delta),
        **_of_program(program),
        "golden": {
            "key": b"".join(own).hex(),
            "input": text_of(b"".join(_raw(each, record) for each, record in zip(inputs, program.records))),
            "report": text_of(report),
        },
    }
    if promise.given:
        fields["given"] = promise.given
    if keyed is not None:
        fields["keyed"] = {"context": keyed.context.hex(), "column": keyed.column, "id": keyed.id}
    if spends is not None:
        fields["spends"] = {"ledger": spends[0], "most": spends[1]}
    return canonical(fields | {"sha256": digest(fields)})


def within(exact: float, claimed: float) -> bool:
    """Tell whether a claimed epsilon is the exact one: equal, or apart by the rounding of a sum."""
    return exact == claimed or abs(exact - claimed) <= rounding(exact)


def _raw(values: NDArray[Any], record: Record) -> bytes:
    return np.ascontiguousarray(values, record.dtype).tobytes()


def golden_inputs(program: Program) -> list[NDArray[Any]]:
    """Return records that a client tries itself with: as many as make 64 bits of report, at most 64."""
    bits = sum(columns * size for columns, size in program.fields)
    count = max(1, min(_MOST_GOLDEN, math.ceil(_GOLDEN_BITS / bits)))
    result, key = [], bytes(range(32))
    for index, record in enumerate(program.records):
        words = np.frombuffer(keystream(key, index, 8 * count * record.columns), "<u8")
        if record.below is not None:
            values: NDArray[Any] = scaled(words, record.below)
        else:
            low, high = record.interval or (-1.0, 1.0)
            shares = (words >> np.uint64(11)) * 2.0**-53
            values = np.clip(low * (1.0 - shares) + high * shares, low, high)
        kind = record.dtype.newbyteorder("=")
        own = values.astype(kind).reshape(count, record.columns)
        if record.interval is not None and record.outside == "refuse":
            low, high = (kind.type(end) for end in record.interval)
            own = np.clip(own, low, high)
        result.append(own)
    return result


def _of_program(program: Program) -> dict[str, Any]:
    """Return the fields of a program: those of a document, or of a part of it."""
    fields: dict[str, Any] = {
        "report": {"form": "packed", "fields": [list(part) for part in program.fields]},
        "keys": program.streams,
    }
    if program.parts:
        parts = [_of_program(part) for part in program.parts]
        return fields | {"parts": parts} | ({"chunked": True} if program.chunked else {})
    assert program.record is not None
    fields |= {"record": _of_record(program.record), "channel": laws.written(program.channel)}
    if program.ends is not None:
        fields["channel"] |= {"ends": _of_grid(program.ends)}
    if program.second is not None:
        fields["second"] = laws.written(program.second)
    if program.codec is not None:
        fields["codec"] = _of_codec(program.codec)
    draw = program.draw
    if draw is not None:
        names = {"coordinates": ("of", "k"), "affine": ("prime", "values"), "step": ("count", "cells")}
        of, count = names[draw.kind]
        fields["public"] = [{"draw": draw.kind, of: draw.of, count: draw.count}]
    return fields


def _of_record(record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": record.type, "columns": record.columns}
    if record.below is not None:
        fields["below"] = record.below
        return fields if record.labels is None else fields | {"labels": list(record.labels)}
    fields["outside"] = record.outside
    if record.interval is not None:
        fields["interval"] = [double(end) for end in record.interval]
    return fields


def _of_grid(grid: Grid) -> dict[str, Any]:
    return {
        "kind": "grid",
        "points": grid.points,
        "low": double(grid.low),
        "high": double(grid.high),
        "rounding": grid.rounding,
        "clip": grid.clip,
    }


def _of_codec(codec: Grid | FixedPoint | Signs | OneHot) -> dict[str, Any]:
    if isinstance(codec, Grid):
        return _of_grid(codec)
    if isinstance(codec, Signs):
        return _of_grid(codec.grid) | {"kind": "signs", "columns": codec.columns}
    if isinstance(codec, OneHot):
        return {"kind": "onehot", "categories": codec.categories, "top": codec.top}
    return {
        "kind": "fixed",
        "bits": codec.bits,
        "integer_bits": codec.integer_bits,
        "sign": codec.sign,
        "infinities": codec.infinities,
    }


# -- reading


def open_document(text: str) -> ClientDocument:
    """Return the mechanism of a document, all of whose claims were checked.

    Parameters
    ----------
    text : str
        A document, as `Mechanism.client_document` writes it.

    Returns
    -------
    ClientDocument
        Its `randomize` makes the reports; its `epsilon` is computed from the document's integers.

    Raises
    ------
    DocumentError
        For another version, a field that is missing, unknown or out of range, integers that make no law, an
        epsilon that does not follow from them, sizes that do not fit each other, or a sum or golden report
        that is not the document's. It names the field, and shows none of the contents.
    TypeError
        If it is no str.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.client import open_document
    >>> document = open_document(bitldp.GRR(16, epsilon=1.0).client_document())
    >>> document.epsilon, document.report_bytes()
    (1.0, 1)
    >>> len(document.randomize(3))
    1
    """
    contents = parsed(text)
    fields = Fields(contents)
    if fields.any("bitldp") != VERSION:
        raise fields.refuse("bitldp", f"is of another version; this one is {VERSION}")
    if fields.hex("sha256", 32).hex() != digest(contents):
        raise fields.refuse("sha256", "is not that of the other fields")
    promise = Promise(
        fields.text("mechanism"),
        fields.hex("fingerprint", 16),
        fields.double("epsilon"),
        fields.double("delta"),
        "record" if fields.choice("unit", ("record", "feature")) == "record" else "feature",
        fields.text("given") if "given" in fields else "",
    )
    if promise.epsilon < 0.0:
        raise fields.refuse("epsilon", "must be zero or more")
    if not 0.0 <= promise.delta < 1.0:
        raise fields.refuse("delta", "must be from 0 to below 1")
    golden = fields.object("golden")
    keyed = _keyed(fields.object("keyed")) if "keyed" in fields else None
    spends = _spends(fields.object("spends")) if "spends" in fields else None
    program = _program(fields)
    if not within(program.epsilon(promise.delta, promise.epsilon), promise.epsilon):
        raise DocumentError("epsilon", "does not follow from the integers of the channel")
    _try(golden, program)
    return ClientDocument(promise, program, keyed, spends, text.strip("\n"))


def _try(golden: Fields, program: Program) -> None:
    """Refuse a program that does not make the golden report."""
    raw = golden.hex("key", 32 * program.streams)
    given, report = golden.raw("input"), golden.raw("report")
    golden.done()
    own = [raw[start : start + 32] for start in range(0, len(raw), 32)]
    try:
        made = program.packed(program.split(given), own)
    except (ValueError, TypeError):
        raise golden.refuse("input", "is not what the record says") from None
    if made != report:
        raise golden.refuse("report", "is not what this client makes of the input")


def _keyed(fields: Fields) -> Keyed:
    context, column = fields.hex("context", None), fields.count("column", 0, (1 << 32) - 1)
    kind = fields.choice("id", ("u64", "digest", "text"))
    fields.done()
    return Keyed(context, column, kind)  # type: ignore[arg-type]


def _spends(fields: Fields) -> tuple[str, int]:
    result = fields.text("ledger", 256), fields.count("most", 1)
    fields.done()
    return result


def _program(fields: Fields) -> Program:
    """Return the program of a document, or of a part of it."""
    streams = fields.count("keys", 1, 1 << 16)
    report = fields.object("report")
    report.choice("form", ("packed",))
    stated = tuple(tuple(each) for each in report.list("fields", 4096, 1) if isinstance(each, list))
    report.done()
    program = _of_parts(fields) if "parts" in fields else _alone(fields)
    fields.done()
    if stated != program.fields:
        raise fields.refuse("report", "is not what the channel reports")
    if streams != program.streams:
        raise fields.refuse("keys", "are not as many as the channel takes")
    return program


def _of_parts(fields: Fields) -> Program:
    parts = tuple(_program(each) for each in fields.objects("parts", _MOST_PARTS, 1))
    every = tuple(field for part in parts for field in part.fields)
    return Program(None, every, parts=parts, chunked=fields.flag("chunked"))


def _alone(fields: Fields) -> Program:
    record, draw = _record(fields.object("record")), None
    if "public" in fields:
        (drawn,) = fields.objects("public", 1, 1)
        draw = _draw(drawn)
    codec = _codec(fields.object("codec")) if "codec" in fields else None
    channel, ends = _channel(fields)
    second = laws.read(fields.object("second")) if "second" in fields else None
    program = Program(record, (), channel, codec, ends, second, draw)
    return replace(program, fields=_fitting(program, fields))


def _channel(fields: Fields) -> tuple[Any, Grid | None]:
    given = fields.object("channel")
    ends = None
    if "ends" in given:
        ends = _codec(given.object("ends"))
        if not isinstance(ends, Grid):
            raise given.refuse("ends", "must be a grid")
    channel = laws.read(given)
    if isinstance(channel, Mixture) != (ends is not None):
        raise given.refuse("ends", "are of a mixture, and of nothing else")
    return channel, ends


def _record(fields: Fields) -> Record:
    kind: Any = fields.choice("type", ("f32", "f64", "u8", "u16", "u32"))
    columns = fields.count("columns", 1, _MOST_COLUMNS)
    if kind[0] == "u":
        below = fields.count("below", 2, 1 << int(kind[1:]))
        labels = None
        if "labels" in fields:
            given = fields.list("labels", _MOST_LABELS, 1)
            if len(given) != below or len(set(map(str, given))) != below:
                raise fields.refuse("labels", "must be different texts, one for each category")
            if not all(isinstance(each, str) and len(each) <= 4096 for each in given):
                raise fields.refuse("labels", "must be texts of at most 4096 characters")
            labels = tuple(given)
        fields.done()
        return Record(kind, columns, below, labels)
    outside: Any = fields.choice("outside", ("clip", "refuse"))
    interval = None
    if "interval" in fields:
        low, high = (fields.double_of(end, "interval") for end in fields.list("interval", 2, 2))
        if not low < high:
            raise fields.refuse("interval", "must ascend")
        interval = low, high
    if outside == "refuse" and interval is None:
        raise fields.refuse("interval", "is missing, where numbers outside it are refused")
    fields.done()
    return Record(kind, columns, interval=interval, outside=outside)


def _draw(fields: Fields) -> PublicDraw:
    kind: Any = fields.choice("draw", ("coordinates", "affine", "step"))
    if kind == "coordinates":
        of = fields.count("of", 1, _MOST_COLUMNS)
        count = fields.count("k", 1, of)
    elif kind == "affine":
        of = fields.count("prime", 3, 1 << 25)
        count = fields.count("values", 2, of)
    else:
        of = fields.count("count", 1, 1 << 16)
        count = fields.count("cells", 3, 1 << 16)
    fields.done()
    return PublicDraw(kind, of, count)


def _codec(fields: Fields) -> Grid | FixedPoint | Signs | OneHot:
    kind = fields.choice("kind", ("grid", "fixed", "signs", "onehot"))
    if kind == "onehot":
        made: Any = OneHot(fields.count("categories", 2, 1 << 16), fields.count("top", 1, (1 << 16) - 1))
        fields.done()
        return made
    if kind == "fixed":
        bits, whole = fields.count("bits", 2, 32), fields.count("integer_bits", -(1 << 10), 1 << 10)
        sign, infinities = (
            fields.choice("sign", ("bitrand", "ldpfl")),
            fields.choice("infinities", ("refuse", "saturate")),
        )
        arguments: Mapping[str, Any] = {"integer_bits": whole, "sign": sign, "infinities": infinities}
        columns = 0
    else:
        columns = fields.count("columns", 1, 16) if kind == "signs" else 0
        bits = fields.count("points", 2, (1 << 32) - 1)
        low, high = fields.double("low"), fields.double("high")
        clip, rounded = fields.any("clip"), fields.choice("rounding", ("dither", "nearest"))
        if not isinstance(clip, bool):
            raise fields.refuse("clip", "must be true or false")
        arguments = {"low": low, "high": high, "rounding": rounded, "clip": clip}
    fields.done()
    try:
        made = FixedPoint(bits, **arguments) if kind == "fixed" else Grid(bits, **arguments)
    except (ValueError, TypeError, OverflowError):
        raise fields.refuse("kind", "these numbers make no codec") from None
    return Signs(made, columns) if kind == "signs" else made


def _fitting(program: Program, fields: Fields) -> tuple[Part, ...]:
    """Return the fields of a report; refuse a record, draw and codec that do not fit the channel."""
    record, draw, codec, channel = program.record, program.draw, program.codec, program.channel
    assert record is not None
    columns, numbers = record.columns, record.below is None
    if numbers == (codec is None or isinstance(codec, OneHot)) and not isinstance(channel, laws.Select):
        raise fields.refuse("codec", "does not take what the record holds")
    width, bits = field_bits(channel)
    takes = inputs_of(channel)
    head: tuple[Part, ...] = ()
    if draw is not None and draw.kind == "coordinates":
        if draw.of != columns or not numbers:
            raise fields.refuse("public", "does not draw from the columns of the record")
        head, columns = ((draw.count, index_bits(draw.of)),), draw.count
    if isinstance(codec, Signs):
        if codec.grid.points != 2 or codec.columns != columns or takes != 1 << codec.columns:
            raise fields.refuse("codec", "does not make the inputs of the channel")
        columns = 1
    elif isinstance(codec, OneHot):
        if (columns, record.below, takes) != (1, codec.categories, codec.top + 1):
            raise fields.refuse("codec", "does not make the inputs of the channel")
        columns = codec.categories
    elif isinstance(codec, FixedPoint):
        if not isinstance(channel, laws.Bits) or codec.bits != channel.bits:
            raise fields.refuse("codec", "does not make the inputs of the channel")
    elif isinstance(codec, Grid):
        points = {laws.Cube: 2, laws.Cap: channel.windows[0][0] if isinstance(channel, laws.Cap) else 0}
        needed = points.get(type(channel), takes)
        if isinstance(channel, Mixture):
            needed = channel.window.cells
        if needed != codec.points:
            raise fields.refuse("codec", "does not make the inputs of the channel")
    if isinstance(channel, (laws.Bits, laws.Cube, laws.Cap)):
        if width != columns:
            raise fields.refuse("channel", "does not take the columns of the record")
        if isinstance(channel, laws.Cap) and (len(set(channel.windows)) > 1 or channel.subsets):
            raise fields.refuse("channel", "must be of like windows alone")
        return (*head, (width, bits))
    if isinstance(channel, laws.Select):
        if channel.dimensions != columns or not numbers or codec is not None:
            raise fields.refuse("channel", "does not take the columns of the record")
        return (*head, (1, bits))
    if draw is not None and draw.kind != "coordinates":
        return _by_chance(program, fields)
    if codec is None and not (numbers or takes == record.below):
        raise fields.refuse("record", "has other categories than the channel")
    if isinstance(channel, (laws.Unary, laws.Subset, laws.Design)) and columns != 1:
        raise fields.refuse("record", "has several columns, where the channel takes one")
    _second(program, fields)
    return (*head, (width * columns, bits))


def _by_chance(program: Program, fields: Fields) -> tuple[Part, ...]:
    """Return the fields of a report that begins with a hash function or a step."""
    record, draw, channel = program.record, program.draw, program.channel
    assert record is not None and draw is not None and record.below is not None
    if record.columns != 1 or program.codec is not None:
        raise fields.refuse("public", "is for a record of one category")
    _second(program, fields)
    if draw.kind == "affine":
        if not isinstance(channel, Window) or channel.cells != draw.count or not record.below <= draw.of:
            raise fields.refuse("public", "does not make the inputs of the channel")
        return ((3, (draw.of - 1).bit_length()),)
    steps = isinstance(channel, laws.Design) and channel.order is None
    fits = steps and (channel.cells, (channel.cells - 1) // 2) == (draw.count, draw.of)
    if not fits or channel.inputs != record.below or program.second is not None:
        raise fields.refuse("public", "does not make the inputs of the channel")
    return (1, max(1, (draw.of - 1).bit_length())), (1, (draw.count - 1).bit_length())


def _second(program: Program, fields: Fields) -> None:
    """Refuse a second step that does not take the reports of the first."""
    first, second = program.channel, program.second
    if second is None:
        return
    unary = isinstance(first, laws.Unary) and isinstance(second, laws.Bits)
    if unary and (second.features, second.bits) == (first.categories, 1):
        return
    if isinstance(first, Window) and isinstance(second, Window) and second.cells == first.cells:
        return
    raise fields.refuse("second", "does not take the reports of the channel")
