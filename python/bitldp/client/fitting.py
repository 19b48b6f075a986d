"""Rules by which record, draw, codec and channel of a document fit, and the fields of a report."""

from __future__ import annotations

from typing import Any

from bitldp._core import Bits, Cap, Cube, Design, FixedPoint, Grid, Mixture, Select, Subset, Unary, Window
from bitldp.client.codec import Item, OneHot, Placed, Signs
from bitldp.client.notation import Fields
from bitldp.client.program import (
    ClientProgram,
    Part,
    PublicDraw,
    PublicRotation,
    cap_fields,
    field_bits,
    inputs_of,
)
from bitldp.client.record import ClientRecord
from bitldp.release.sampled import index_bits

__all__ = ["fields_of", "fields_of_parts"]


def fields_of(program: ClientProgram, fields: Fields) -> tuple[Part, ...]:
    """Return the fields of a report of a program without parts.

    Raises
    ------
    DocumentError
        For a record, draw, codec and channel that do not fit each other.
    """
    record, draw, channel = program.record, program.draw, program.channel
    assert record is not None  # of no parts
    if record.gaps and not isinstance(program.codec, Item):
        raise fields.refuse("record", "has gaps, which this codec does not take")
    if program.order is not None:
        return _of_cap(program, record, fields)
    if isinstance(draw, PublicRotation):
        return _of_rotation(program, draw, fields)
    if draw is not None and draw.kind != "coordinates":
        return _of_function(program, record, draw, fields)
    if program.second is not None:
        _second(program, fields)
    head: tuple[Part, ...] = ()
    columns = record.columns
    if draw is not None:
        if draw.of != columns or record.below is not None:
            raise fields.refuse("public", "does not draw from the columns of the record")
        head, columns = ((draw.count, index_bits(draw.of)),), draw.count
    columns = _coded(program, record, columns, fields)
    width, bits = field_bits(channel)
    if isinstance(channel, Select):
        if channel.dimensions != columns or channel.signed:
            raise fields.refuse("channel", "does not take the columns of the record")
        columns = 1
    elif isinstance(channel, (Bits, Cube, Cap)) and not isinstance(program.codec, Placed):
        if width != columns:
            raise fields.refuse("channel", "does not take the columns of the record")
        columns = 1
    elif width > 1 and isinstance(channel, Bits):
        raise fields.refuse("channel", "must be of one feature, behind this codec")
    return (*head, (width * columns, bits))


def _coded(program: ClientProgram, record: ClientRecord, columns: int, fields: Fields) -> int:
    """Return the number of codes that go into the channel; refuse a codec that does not make its inputs."""
    codec, takes = program.codec, _points(program)
    wrong = fields.refuse("codec", "does not make the inputs of the channel")
    if codec is None or isinstance(codec, (OneHot, Item)):
        return _categories(program, record, columns, fields)
    if record.below is not None:
        raise fields.refuse("codec", "does not accept the values of the record")
    if isinstance(codec, FixedPoint):
        if not isinstance(program.channel, Bits) or codec.bits != program.channel.bits:
            raise wrong
        return columns
    if isinstance(codec, Signs):
        if (codec.grid.points, codec.columns, takes) != (2, columns, 1 << columns):
            raise wrong
        return 1
    grid: Grid = codec.grid if isinstance(codec, Placed) else codec
    placed = isinstance(codec, Placed)
    if takes != grid.points or placed != isinstance(program.channel, Bits):
        raise wrong
    if isinstance(program.channel, (Unary, Subset, Design, Select)) or (placed and grid.points > 1 << 12):
        raise wrong
    return columns


def _categories(program: ClientProgram, record: ClientRecord, columns: int, fields: Fields) -> int:
    """Return the number of codes that go into the channel: of categories, sets or a vector to select from."""
    codec, takes = program.codec, _points(program)
    wrong = fields.refuse("codec", "does not make the inputs of the channel")
    if isinstance(codec, Item):
        fits = _of_items(codec, record) and takes == codec.codes
        if not fits or not isinstance(program.channel, (Window, Design)) or program.draw is not None:
            raise wrong
        return 1
    if record.below is None:
        if codec is None and isinstance(program.channel, Select):
            return columns
        raise fields.refuse("codec", "does not accept the values of the record")
    if isinstance(codec, OneHot):
        if (columns, record.below, takes) != (1, codec.categories, codec.top + 1):
            raise wrong
        return codec.categories
    if takes != record.below or isinstance(program.channel, (Bits, Cube, Cap, Mixture, Select)):
        raise fields.refuse("record", "has other categories than the channel")
    return columns


def _of_items(codec: Item, record: ClientRecord) -> bool:
    """Tell whether a codec takes the values of a record."""
    values = record.gaps if codec.signs else record.below == 2
    return bool(values) and record.columns == codec.items


def _points(program: ClientProgram) -> int | None:
    """Return the number of codes that the channel knows for one value; None where there is no one number."""
    channel = program.channel
    if isinstance(channel, Cube):
        return 2
    if isinstance(channel, Cap):
        alike = not channel.subsets and len(set(channel.windows)) == 1
        return channel.windows[0][0] if alike else None
    if isinstance(channel, Mixture):
        fits = program.ends is not None and program.ends.points == channel.matrix.inputs
        return channel.window.cells if fits else None
    return 1 << channel.bits if isinstance(channel, Bits) else inputs_of(channel)


def _of_cap(program: ClientProgram, record: ClientRecord, fields: Fields) -> tuple[Part, ...]:
    channel, order = program.channel, program.order or ()
    plain = (program.codec, program.draw, program.second) == (None, None, None)
    if not isinstance(channel, Cap) or record.below is None or not plain:
        raise fields.refuse("order", "is for categories and a cap, and nothing else")
    if sorted(order) != list(range(len(channel.windows) + len(channel.subsets))):
        raise fields.refuse("order", "must name each column once")
    every = [points for points, _ in [*channel.windows, *channel.subsets]]
    below = [size for _, size in sorted(zip(order, every, strict=True))]
    given = record.below if isinstance(record.below, tuple) else (record.below,) * record.columns
    if list(given) != below:
        raise fields.refuse("record", "has other categories than the channel")
    return cap_fields(channel, order)


def _of_rotation(program: ClientProgram, draw: PublicRotation, fields: Fields) -> tuple[Part, ...]:
    channel: Any = program.channel
    if (
        not isinstance(channel, Select)
        or not channel.signed
        or channel.dimensions != draw.rotation.dimensions
    ):
        raise fields.refuse("channel", "does not take the rotated vector")
    if (program.codec, program.second) != (None, None):
        raise fields.refuse("codec", "is not for a rotated vector")
    number = max(1, (draw.count - 1).bit_length())
    return (draw.reports, number), (draw.reports, field_bits(channel)[1])


def _of_function(
    program: ClientProgram, record: ClientRecord, draw: PublicDraw, fields: Fields
) -> tuple[Part, ...]:
    """Return the fields of a report that begins with a hash function or a step."""
    channel = program.channel
    alike, codec = record.below, program.codec
    if isinstance(codec, Item):
        if not _of_items(codec, record):
            raise fields.refuse("codec", "does not take the values of the record")
        alike = codec.codes
    elif record.columns != 1 or not isinstance(alike, int) or codec is not None:
        raise fields.refuse("public", "is for a record of one category")
    if program.second is not None:
        _second(program, fields)
    if draw.kind == "affine":
        if not isinstance(channel, Window) or channel.cells != draw.count or not alike <= draw.of:
            raise fields.refuse("public", "does not make the inputs of the channel")
        return ((3, (draw.of - 1).bit_length()),)
    steps = isinstance(channel, Design) and channel.family == "progressions"
    fits = steps and (channel.cells, (channel.cells - 1) // 2) == (draw.count, draw.of)
    if not fits or channel.inputs != alike or program.second is not None:
        raise fields.refuse("public", "does not make the inputs of the channel")
    return (1, max(1, (draw.of - 1).bit_length())), (1, (draw.count - 1).bit_length())


def _second(program: ClientProgram, fields: Fields) -> None:
    """Refuse a second step that does not take the reports of the first."""
    first, second = program.channel, program.second
    if isinstance(first, Unary) and isinstance(second, Bits):
        fits = (second.features, second.bits) == (first.categories, 1) and program.symbols == 1
    else:
        both = isinstance(first, Window) and isinstance(second, Window)
        fits = both and (second.cells, second.order) == (first.cells, None)
    if not fits:
        raise fields.refuse("second", "does not take the reports of the channel")


def fields_of_parts(program: ClientProgram, fields: Fields) -> tuple[Part, ...]:
    """Return the fields of a report of a program with parts: of all parts, or of the columns drawn.

    Raises
    ------
    DocumentError
        For a draw of columns whose parts do not have one field each, or any other parts that do not fit.
    """
    parts, draw = program.parts, program.draw
    if draw is None and program.record is not None:
        raise fields.refuse(
            "record", "is for parts whose columns are drawn; other parts have records of their own"
        )
    if draw is None:
        return tuple(field for part in parts for field in part.fields)
    if draw.kind != "coordinates" or not isinstance(draw, PublicDraw) or not program.chunked:
        raise fields.refuse("public", "must be coordinates, and the parts chunked")
    columns, forms = 0, []
    for part in parts:
        if part.record is None or part.draw is not None or part.order is not None or len(part.fields) != 1:
            raise fields.refuse("parts", "must be of one field each, where columns are drawn")
        ((width, bits),) = part.fields
        columns += part.record.columns
        each, rest = divmod(width, part.record.columns)
        if rest:
            raise fields.refuse("parts", "must answer for each column by itself")
        forms.append((each, bits))
    if columns != draw.of:
        raise fields.refuse("public", "does not draw from the columns of the parts")
    if program.record is not None:
        _cells(program, program.record, fields)
    if all(width == 1 for width, _ in forms):
        form = 1, max(bits for _, bits in forms)
    else:
        form = max(width * bits for width, bits in forms), 1
    return (draw.count, index_bits(draw.of)), (draw.count * form[0], form[1])


def _cells(program: ClientProgram, record: ClientRecord, fields: Fields) -> None:
    """Refuse cells that do not give a category of each column of the parts."""
    wrong = fields.refuse("cells", "do not make the columns of the parts")
    below: list[int] = []
    for part in program.parts:
        if part.record is None or part.record.below is None:
            raise wrong
        each = part.record.below
        below += each if isinstance(each, tuple) else (each,) * part.record.columns
    if record.below is None or len(program.cells) != len(below):
        raise wrong
    given = record.below if isinstance(record.below, tuple) else (record.below,) * record.columns
    for cells, most in zip(program.cells, below, strict=True):
        if sum(s * ((given[c] - 1) * t // o) for c, t, o, s in cells) >= most:
            raise wrong
