"""Reading of client documents: every claim is checked before a document is returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from bitldp._core import FixedPoint, Grid, Mixture, Rotation
from bitldp.client import laws
from bitldp.client.codec import Codec, Item, OneHot, Placed, Signs
from bitldp.client.document import ClientDocument, KeyedAnswers, ModelUpdate, Promise, exact_of, within
from bitldp.client.fitting import fields_of, fields_of_parts
from bitldp.client.message import CHECKSUM, Field, WireError, parse
from bitldp.client.notation import VERSION, DocumentError, Fields, digest, parsed
from bitldp.client.program import Cell, ClientProgram, PublicDraw, PublicRotation
from bitldp.client.record import UNITS, ClientRecord

__all__ = ["open_document"]

_MOST_PARTS = 1024
_MOST_HEADER = 1024
_MOST_COLUMNS = 1 << 22
_MOST_LABELS = 1 << 16
_MOST_POINTS = 1 << 31
_MOST_ROWS = 1 << 20
_MOST_CELLS = 1 << 12
_MOST_TERMS = 8


def open_document(text: str) -> ClientDocument:
    """Read a client document, and check every claim that it makes.

    Parameters
    ----------
    text : str
        Text that `Mechanism.client_document` or `TablePlan.client_document` wrote.

    Returns
    -------
    ClientDocument
        The checked document. Its `randomize` makes reports; its `epsilon`, between any two records, is
        computed from the document's integers.

    Raises
    ------
    DocumentError
        For another version; a field that is missing, unknown or out of range; integers that make no law; an
        epsilon that does not follow from them; sizes that do not fit; a wrong SHA-256; or a golden report
        that this client does not make. The error names the field, and shows nothing that it holds.
    TypeError
        If `text` is not a str.

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
        raise fields.refuse("sha256", "does not match the other fields")
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
    update = _update(fields.object("update")) if "update" in fields else None
    headed = "header" in fields
    header = fields.raw("header", _MOST_HEADER) if headed else b""
    if update is not None and (headed or keyed is not None):
        raise fields.refuse("update", "has a header of its own, and allows no keyed answers")
    program = _program(fields)
    if update is not None and (len(program.records) != 1 or program.records[0].below is not None):
        raise DocumentError("update", "needs one record, of numbers")
    if headed or update is not None:
        _check_header(header, program, promise, update)
    if not within(exact_of(program, promise, update), promise.epsilon):
        raise DocumentError("epsilon", "does not follow from the integers of the channel")
    _try(golden, program)
    return ClientDocument(promise, program, keyed, spends, text.strip("\n"), update, header)


def _check_header(given: bytes, program: ClientProgram, promise: Promise, update: ModelUpdate | None) -> None:
    """Refuse a header that contradicts the other fields; arrays, round and words are free."""
    if update is not None:
        given = update.header
    wrong = DocumentError("header", "does not match the other fields")
    try:
        stated = parse(given + bytes(CHECKSUM.size))
    except WireError:
        raise wrong from None
    expected = replace(
        stated,
        mechanism=promise.fingerprint,
        norm=update.norm if update else "l2",
        clip=update.clip if update else 0.0,
        low=update.low if update else 0.0,
        high=update.high if update else 0.0,
        coordinates=sum(each.columns for each in program.records)
        * (update.records // update.rows if update else 1),
        records=update.records if update else 1,
        fields=tuple(Field(*part) for part in program.fields),
    )
    if expected.encoded() != given:
        raise wrong


def _try(golden: Fields, program: ClientProgram) -> None:
    """Refuse a program that does not make the golden report."""
    raw = golden.hex("key", 32 * program.streams)
    given, report = golden.raw("input"), golden.raw("report")
    golden.done()
    own = [raw[start : start + 32] for start in range(0, len(raw), 32)]
    try:
        made = program.packed(program.split(given), own)
    except (ValueError, TypeError):
        raise golden.refuse("input", "holds values that the record does not allow") from None
    if made != report:
        raise golden.refuse("report", "differs from what this client makes of the input")


def _keyed(fields: Fields) -> KeyedAnswers:
    context, column = fields.hex("context", None), fields.count("column", 0, (1 << 32) - 1)
    kind, apart = fields.choice("id", ("u64", "digest", "text")), fields.flag("apart")
    fields.done()
    return KeyedAnswers(context, column, kind, apart)  # type: ignore[arg-type]


def _update(fields: Fields) -> ModelUpdate:
    clip, low, high = (fields.double(name) for name in ("clip", "low", "high"))
    norm: Any = fields.choice("norm", ("l2", "l1", "linf"))
    records, header = fields.count("records", 1, 1 << 32), fields.raw("header", _MOST_HEADER)
    rows = fields.count("rows", 2, _MOST_ROWS) if "rows" in fields else 1
    fields.done()
    if not clip > 0.0:
        raise fields.refuse("clip", "must be above zero")
    if not low < high:
        raise fields.refuse("high", "must be above low")
    if records % rows:
        raise fields.refuse("rows", "must divide the number of records")
    return ModelUpdate(clip, norm, low, high, records, header, rows)


def _spends(fields: Fields) -> tuple[str, int]:
    result = fields.text("ledger", 256), fields.count("most", 1)
    fields.done()
    return result


def _program(fields: Fields) -> ClientProgram:
    """Return the program of a document, or of a part of it."""
    streams = fields.count("keys", 1, 1 << 16)
    report = fields.object("report")
    report.choice("form", ("packed",))
    stated = tuple(tuple(each) for each in report.entries("fields", 4096, 1) if isinstance(each, list))
    report.done()
    program = _of_parts(fields) if "parts" in fields else _alone(fields)
    fields.done()
    if stated != program.fields:
        raise fields.refuse("report", "does not match the reports of the channel")
    if streams != program.streams:
        raise fields.refuse("keys", "must be the number of keys that the channel takes")
    return program


def _of_parts(fields: Fields) -> ClientProgram:
    parts = tuple(_program(each) for each in fields.objects("parts", _MOST_PARTS, 1))
    draw = _public(fields, None)
    if isinstance(draw, PublicRotation):
        raise fields.refuse("public", "must not be a rotation, where there are parts")
    record = None
    cells: tuple[tuple[Cell, ...], ...] = ()
    if "cells" in fields:
        record = _record(fields.object("record"))
        cells = _cells(fields, record)
    chunked = fields.flag("chunked")
    program = ClientProgram(record, (), parts=parts, chunked=chunked, draw=draw, cells=cells)
    return replace(program, fields=fields_of_parts(program, fields))


def _cells(fields: Fields, record: ClientRecord) -> tuple[tuple[Cell, ...], ...]:
    """Take the cells of a record whose sums are the columns of the parts."""
    most = (record.columns - 1, (1 << 31), 1 << 32, 1 << 32)
    result = []
    for index, cells in enumerate(fields.entries("cells", _MOST_CELLS, 1)):
        name = f"cells[{index}]"
        if not isinstance(cells, list) or len(cells) > _MOST_TERMS:
            raise fields.refuse(name, f"must be a list of at most {_MOST_TERMS} cells")
        for cell in cells:
            if not isinstance(cell, list) or len(cell) != len(most):
                raise fields.refuse(name, "must be lists of a column and three numbers")
            bounds = zip(cell, (0, 1, 1, 1), most, strict=True)
            if not all(type(each) is int and low <= each <= high for each, low, high in bounds):
                raise fields.refuse(name, "holds a column that does not exist, or a number out of range")
        result.append(tuple((c, t, o, s) for c, t, o, s in cells))
    return tuple(result)


def _alone(fields: Fields) -> ClientProgram:
    record = _record(fields.object("record"))
    draw = _public(fields, record)
    codec = _codec(fields.object("codec")) if "codec" in fields else None
    channel, ends = _channel(fields)
    second = laws.read(fields.object("second")) if "second" in fields else None
    order = None
    if "order" in fields:
        order = fields.counts("order", 0, record.columns - 1, record.columns)
    program = ClientProgram(record, (), channel, codec, ends, second, draw, order=order)
    return replace(program, fields=fields_of(program, fields))


def _public(fields: Fields, record: ClientRecord | None) -> PublicDraw | PublicRotation | None:
    if "public" not in fields:
        return None
    (drawn,) = fields.objects("public", 1, 1)
    return _DRAWS[drawn.choice("draw", tuple(_DRAWS))](drawn, record)


def _channel(fields: Fields) -> tuple[Any, Grid | None]:
    given = fields.object("channel")
    ends: Any = None
    if "ends" in given:
        ends = _codec(given.object("ends"))
        if not isinstance(ends, Grid):
            raise given.refuse("ends", "must be a grid")
    channel = laws.read(given)
    if isinstance(channel, Mixture) != (ends is not None):
        raise given.refuse("ends", "are needed for a mixture, and allowed for nothing else")
    return channel, ends


def _record(fields: Fields) -> ClientRecord:
    kind: Any = fields.choice("type", ("f32", "f64", "u8", "u16", "u32"))
    columns = fields.count("columns", 1, _MOST_COLUMNS)
    names = _texts(fields, "names", columns) if "names" in fields else None
    if kind[0] == "u":
        below = _below(fields, (1 << int(kind[1:])) - ("fill" in fields), columns)
        filled = None
        if isinstance(below, int):
            filled = fields.count("fill", 0, below - 1) if "fill" in fields else None
        labels = _labels(fields, below, filled is not None, columns) if "labels" in fields else None
        fields.done()
        return ClientRecord(kind, columns, below, labels, names=names, fill=filled)
    gaps = fields.flag("gaps")
    unit = fields.choice("unit", tuple(UNITS)) if "unit" in fields else None
    outside: Any = fields.choice("outside", ("clip", "refuse"))
    interval = _interval(fields, "interval") if "interval" in fields else None
    if outside == "refuse" and interval is None and "span" not in fields:
        raise fields.refuse("interval", "is missing, where numbers outside it are refused")
    fill = fields.double("fill") if "fill" in fields else None
    intervals: tuple[tuple[float, float], ...] = ()
    points = fields.count("points", 2, _MOST_POINTS) if "points" in fields else None
    span = None
    if points is not None:
        if "span" in fields or gaps or interval is not None or outside != "clip":
            raise fields.refuse("points", "are of columns with intervals, whose numbers are clipped")
        span = (0.0, points - 1.0)
    elif "span" in fields:
        span = _interval(fields, "span")
    if span is not None:
        given = fields.entries("intervals", columns, columns)
        intervals = tuple(_ends(fields, "intervals", each) for each in given)
        if kind != "f64":
            raise fields.refuse("type", "must be f64, where columns are mapped")
    if gaps and (span != (-1.0, 1.0) or interval is not None):
        raise fields.refuse("gaps", "are allowed only where columns are mapped to [-1, 1]")
    fields.done()
    return ClientRecord(
        kind,
        columns,
        points,
        interval=interval,
        outside=outside,
        names=names,
        fill=fill,
        intervals=intervals,
        span=span,
        unit=unit,
        gaps=gaps,
    )


def _interval(fields: Fields, name: str) -> tuple[float, float]:
    """Take two doubles that ascend."""
    return _ends(fields, name, fields.any(name))


def _ends(fields: Fields, name: str, value: Any) -> tuple[float, float]:
    """Return two doubles of a field that ascend."""
    if not isinstance(value, list) or len(value) != 2:
        raise fields.refuse(name, "must be two doubles")
    low, high = (fields.double_of(end, name) for end in value)
    if not low < high:
        raise fields.refuse(name, "must ascend")
    return low, high


def _below(fields: Fields, most: int, columns: int) -> int | tuple[int, ...]:
    """Take the number of categories: one number, or one for each column."""
    value = fields.any("below")
    listed = value if isinstance(value, list) else [value]
    if not all(type(each) is int and 2 <= each <= most for each in listed):
        raise fields.refuse("below", f"must be whole numbers from 2 to {most:,}")
    if isinstance(value, list) and len(value) != columns:
        raise fields.refuse("below", f"must be one number, or {columns:,}")
    return tuple(value) if isinstance(value, list) else listed[0]


def _labels(
    fields: Fields, below: int | tuple[int, ...], filled: bool, columns: int
) -> tuple[str, ...] | tuple[tuple[str, ...], ...]:
    """Take the texts of categories: one list for all columns, or one for each."""
    given = fields.entries("labels", _MOST_LABELS, 1)
    if isinstance(below, int) and not isinstance(given[0], list):
        return _different(fields, "labels", given, below + filled)
    if len(given) != columns or not all(isinstance(each, list) for each in given):
        raise fields.refuse("labels", f"must be {columns:,} lists of texts")
    counts = below if isinstance(below, tuple) else (below + filled,) * columns
    return tuple(_different(fields, "labels", *each) for each in zip(given, counts, strict=True))


def _texts(fields: Fields, name: str, count: int) -> tuple[str, ...]:
    """Take `count` different texts."""
    return _different(fields, name, fields.entries(name, _MOST_LABELS, 1), count)


def _different(fields: Fields, name: str, given: list[Any], count: int) -> tuple[str, ...]:
    """Return the `count` different texts of a field."""
    if not all(isinstance(each, str) and len(each) <= 4096 for each in given):
        raise fields.refuse(name, "must be texts of at most 4096 characters")
    if len(given) != count or len(set(given)) != count:
        raise fields.refuse(name, f"must be {count:,} different texts")
    return tuple(given)


def _coordinates(fields: Fields, record: ClientRecord | None) -> PublicDraw:
    of = fields.count("of", 1, _MOST_COLUMNS)
    count = fields.count("k", 1, of)
    fields.done()
    return PublicDraw("coordinates", of, count)


def _affine(fields: Fields, record: ClientRecord | None) -> PublicDraw:
    prime = fields.count("prime", 3, 1 << 25)
    values = fields.count("values", 2, prime)
    fields.done()
    return PublicDraw("affine", prime, values)


def _step(fields: Fields, record: ClientRecord | None) -> PublicDraw:
    count, cells = fields.count("count", 1, 1 << 16), fields.count("cells", 3, 1 << 16)
    fields.done()
    return PublicDraw("step", count, cells)


def _rotation(fields: Fields, record: ClientRecord | None) -> PublicRotation:
    kind: Any = fields.choice("kind", ("hadamard", "haar"))
    key, radius = fields.hex("key", 32), fields.double("radius")
    rotations, reports = fields.count("rotations", 1, 1 << 32), fields.count("reports", 1, 64)
    fields.done()
    if record is None:
        raise fields.refuse("draw", "is allowed only for a single record")
    if record.below is not None:
        raise fields.refuse("draw", "is for a record of numbers")
    try:
        return PublicRotation(Rotation(record.columns, radius, kind, key), rotations, reports)
    except (ValueError, TypeError, OverflowError):
        raise fields.refuse("kind", "these numbers make no rotation") from None


_DRAWS: Mapping[str, Callable[[Fields, ClientRecord | None], PublicDraw | PublicRotation]] = {
    "coordinates": _coordinates,
    "affine": _affine,
    "step": _step,
    "rotation": _rotation,
}


def _codec(fields: Fields) -> Codec:
    kind = fields.choice("kind", ("grid", "fixed", "signs", "placed", "onehot", "item"))
    make = {"fixed": _fixed, "onehot": _onehot, "item": _item}.get(kind)
    if make is not None:
        return make(fields)
    columns = fields.count("columns", 1, 16) if kind == "signs" else 0
    grid = _grid(fields)
    return grid if kind == "grid" else Placed(grid) if kind == "placed" else Signs(grid, columns)


def _onehot(fields: Fields) -> Codec:
    made = OneHot(fields.count("categories", 2, 1 << 16), fields.count("top", 1, (1 << 16) - 1))
    fields.done()
    return made


def _item(fields: Fields) -> Codec:
    items, padding = fields.count("items", 2, 1 << 20), fields.count("padding", 1, 1 << 16)
    made = Item(items, padding, fields.flag("signs"))
    fields.done()
    return made


def _fixed(fields: Fields) -> Codec:
    bits, integer_bits = fields.count("bits", 2, 32), fields.count("integer_bits", -(1 << 10), 1 << 10)
    sign: Any = fields.choice("sign", ("bitrand", "ldpfl"))
    infinities: Any = fields.choice("infinities", ("refuse", "saturate"))
    fields.done()
    try:
        return FixedPoint(bits, integer_bits=integer_bits, sign=sign, infinities=infinities)
    except (ValueError, TypeError, OverflowError):
        raise fields.refuse("kind", "these numbers make no codec") from None


def _grid(fields: Fields) -> Grid:
    points, low, high = fields.count("points", 2, (1 << 32) - 1), fields.double("low"), fields.double("high")
    clip, rounding = fields.any("clip"), fields.choice("rounding", ("dither", "nearest"))
    if not isinstance(clip, bool):
        raise fields.refuse("clip", "must be true or false")
    fields.done()
    try:
        return Grid(points, low=low, high=high, rounding=rounding, clip=clip)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        raise fields.refuse("kind", "these numbers make no codec") from None
