"""Programs of clients: the steps from a record to a report, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bitldp._core import (
    Bits,
    Cap,
    Cube,
    Design,
    FixedPoint,
    Grid,
    Matrix,
    Mixture,
    Rotation,
    Select,
    Shift,
    Subset,
    Unary,
    Window,
    function_values,
    keystream,
    pack,
)
from bitldp.client.codec import Codec, Item, OneHot, Placed, Signs
from bitldp.client.record import ClientRecord
from bitldp.privacy import ONE, added, composed
from bitldp.release.base import Call
from bitldp.release.draws import coordinates, functions, whole_numbers
from bitldp.release.rotated import RotatedRelease
from bitldp.release.window import drawn_in_secret

__all__ = [
    "Cell",
    "ClientProgram",
    "Part",
    "PublicDraw",
    "PublicRotation",
    "cap_fields",
    "field_bits",
    "inputs_of",
    "packed",
    "spelled",
]

Part = tuple[int, int]
"""Number of columns of an array of codes, and number of bits of a code."""

Cell = tuple[int, int, int, int]
"""Numbers (c, t, o, s), which stand for the cell ``s * (value[c] * t // o)`` of a record's column c."""

_KEY = 32
_DITHER = Window(2, 1, 1.0)  # never leaves its cell: the dither alone


@dataclass(frozen=True)
class PublicDraw:
    """Draw that does not depend on the record, and is part of its report.

    Attributes
    ----------
    kind : {"coordinates", "affine", "step"}
        "coordinates" draws the columns that are released, "affine" a hash function x -> (a x + b) mod P, and
        "step" the step of a progression.
    of, count : int
        For coordinates: the number of columns, and of those drawn. For affine: the prime P, and the number of
        values of the function. For step: the number of steps, and of cells.
    """

    kind: Literal["coordinates", "affine", "step"]
    of: int
    count: int


@dataclass(frozen=True)
class PublicRotation:
    """Draw of public rotations of a vector, one for each of its reports.

    Attributes
    ----------
    rotation : Rotation
        Codec of the core, with the radius of the ball, the kind of rotation and the public key.
    count : int
        Number of rotations to draw from, up to 2**32.
    reports : int
        Number of reports about a record.
    """

    rotation: Rotation
    count: int
    reports: int

    kind: ClassVar[str] = "rotation"


@dataclass(frozen=True)
class ClientProgram:
    """Steps that turn records into reports, with the epsilon of one report.

    A program has a channel, or parts that are programs themselves.

    Attributes
    ----------
    record : ClientRecord or None
        Values that go in. None where the parts have records of their own; these then follow each other.
    fields : tuple of Part
        Arrays of codes that come out, each packed to whole bytes.
    channel : object
        Channel of the core; None where there are parts.
    codec : Codec or None
        Maker of codes from the values; None where the values are codes.
    ends : Grid or None
        Grid of a mixture's table; None for any other channel.
    second : Window, Bits or None
        Channel of a second step, which takes the report of the first.
    draw : PublicDraw, PublicRotation or None
        Draw that does not depend on the record.
    parts : tuple of ClientProgram
        Programs of the parts of a record. Their reports follow each other. With a draw, only the columns
        drawn are reported, in a form common to all parts.
    chunked : bool
        True where each given key stands for the first 32 bytes of its keystream. The first key is then the
        draw's, and the parts take the others.
    order : tuple of int or None
        Column of the record that each window and subset of a cap is about; None for any other channel.
    cells : tuple of tuple of Cell
        Cells of the record whose sum is each column of the parts, where columns are drawn. Empty where the
        values are the columns.
    """

    record: ClientRecord | None
    fields: tuple[Part, ...]
    channel: Any = None
    codec: Codec | None = None
    ends: Grid | None = None
    second: Any = None
    draw: PublicDraw | PublicRotation | None = None
    parts: tuple[ClientProgram, ...] = ()
    chunked: bool = False
    order: tuple[int, ...] | None = None
    cells: tuple[tuple[Cell, ...], ...] = ()

    @property
    def records(self) -> tuple[ClientRecord, ...]:
        """Records of the program or of all its parts, in order."""
        if self.record is not None:
            return (self.record,)
        return tuple(each for part in self.parts for each in part.records)

    @property
    def streams(self) -> int:
        """Number of keys of 32 bytes that a call takes, in the order of codec, channel, second step, draw.

        With parts, the keys are those of the parts. A cap over subsets does not use its first key.
        """
        if self.parts:
            return self.chunked + sum(part.streams for part in self.parts)
        if self.order is not None:
            return 2
        own = 2 if isinstance(self.channel, Mixture) else 1
        if isinstance(self.draw, PublicRotation):
            own = self.draw.reports
        return (
            own
            + isinstance(self.codec, (Signs, Placed))
            + (self.codec.streams if isinstance(self.codec, Item) else 0)
            + (self.second is not None)
            + (self.draw is not None)
        )

    @property
    def is_plain(self) -> bool:
        """True where there is only a channel of codes, or of numbers by a grid or fixed-point code."""
        straight = self.codec is None or isinstance(self.codec, (Grid, FixedPoint))
        more = self.parts or self.draw or self.order
        return straight and not more and self.second is None

    def report_bytes(self, records: int = 1) -> int:
        """Return the number of bytes of the reports about so many records."""
        return sum((records * columns * bits + 7) // 8 for columns, bits in self.fields)

    # -- privacy

    @property
    def symbols(self) -> int:
        """Number of uses of the channel on a record; 1 where it takes all columns together."""
        if isinstance(self.draw, PublicRotation):
            return self.draw.reports
        if isinstance(self.codec, OneHot):
            return 2  # two categories differ in two entries
        if self._at_once or self.record is None or self.order is not None:
            return 1
        drawn = self.draw is not None and self.draw.kind == "coordinates"
        return self.draw.count if drawn and self.draw else self.record.columns

    @property
    def _at_once(self) -> bool:
        if isinstance(self.codec, Placed):
            return False
        return isinstance(self.codec, (Signs, Item)) or isinstance(self.channel, (Bits, Cap, Cube, Select))

    def epsilon(self, delta: float = 0.0, claimed: float = 0.0) -> float:
        """Return epsilon of a report between any two records, from the integers and rounded up.

        Parameters
        ----------
        delta, claimed : float
            For one symbol with noise that is cut off. The answer is `claimed` where the noise has at most
            `delta` there, and infinite elsewhere. 0 for a pure mechanism.
        """
        if self.parts:
            if self.draw is None:
                return added(*(part.epsilon() for part in self.parts))
            each = sorted((cost for part in self.parts for cost in part._columns_cost()), reverse=True)
            count = self.draw.count
            return composed(each[0], count) if each[0] == each[-1] else added(*each[:count])
        if delta and isinstance(self.channel, Shift) and self.symbols == 1:
            return claimed if self.channel.delta(claimed) <= delta else float("inf")
        one = self._cost
        return one if self.symbols == 1 else composed(one, self.symbols)

    @property
    def _cost(self) -> float:
        """Epsilon of one use of the channel."""
        codec, channel = self.codec, self.channel
        if (
            isinstance(codec, Item)
            and isinstance(channel, Window)
            and (self.draw, self.second) == (None, None)
        ):
            # A report is evidence for one code alone, where no code is likelier than the true one.
            above = channel.high * (channel.cells - 1) >= ONE - channel.high
            if channel.width == 1 and channel.order is None and not channel.mute and above:
                return drawn_in_secret(channel, codec.padding)
        exact = channel.epsilon
        return float(exact[2] if isinstance(exact, tuple) else exact)

    def _columns_cost(self) -> list[float]:
        """Return the epsilon of each column, which may use its channel more than once."""
        columns = self.record.columns if self.record is not None else 1
        return [composed(self._cost, max(1, self.symbols // columns))] * columns

    # -- work

    def codes(self, x: Sequence[NDArray[Any]], keys: Sequence[bytes]) -> list[NDArray[Any]]:
        """Return the codes of n records: an array of shape (n, columns) for each field.

        Parameters
        ----------
        x : sequence of ndarray
            An array of shape (n, columns) for each of `records`.
        keys : sequence of bytes
            Keys of 32 bytes, as many as `streams` says.

        Raises
        ------
        ValueError
            For a value that is refused. The error names its place.
        """
        if self.parts:
            return self._of_parts(x, keys)
        assert self.record is not None
        values, keys = self.record.checked(x[0]), list(keys)
        if self.order is not None:
            return self._capped(values, keys)
        if isinstance(self.codec, Item):
            own = len(keys) - self.codec.streams
            values, keys = self.codec.drawn(values, keys[own:])[:, None], keys[:own]
        if self.draw is None:
            return [self._released(values, keys).reshape(len(values), -1)]
        if isinstance(self.draw, PublicRotation):
            return self._rotated(values, keys, self.draw)
        last = keys.pop()
        work = {"affine": self._hashed, "step": self._stepped, "coordinates": self._sampled}
        return work[self.draw.kind](values, keys, last, self.draw)

    def _of_parts(self, x: Sequence[NDArray[Any]], keys: Sequence[bytes]) -> list[NDArray[Any]]:
        head = b""
        if self.chunked:
            head, *keys = (keystream(key, 0, _KEY) for key in keys)
        if self.record is not None:
            x = self._columns_of(self.record.checked(x[0]).astype(np.int64))
        if isinstance(self.draw, PublicDraw):
            return self._drawn(x, head, keys, self.draw)
        result, first, record = [], 0, 0
        for part in self.parts:
            last, after = first + part.streams, record + len(part.records)
            result += part.codes(x[record:after], keys[first:last])
            first, record = last, after
        return result

    def _columns_of(self, values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the columns of each part, which are sums of cells of the record's values."""
        columns = np.zeros((len(values), len(self.cells)), np.int64)
        for column, cells in enumerate(self.cells):
            for c, t, o, s in cells:
                columns[:, column] += s * (values[:, c] * t // o)
        widths = [part.record.columns for part in self.parts if part.record is not None]
        return np.split(columns, np.cumsum(widths)[:-1], axis=1)

    def _drawn(
        self, x: Sequence[NDArray[Any]], head: bytes, keys: Sequence[bytes], draw: PublicDraw
    ) -> list[NDArray[Any]]:
        """Return the columns drawn, and their reports in the common form."""
        tables = [part.record.checked(own) for part, own in zip(self.parts, x, strict=True) if part.record]
        records, k, (columns, bits) = len(tables[0]), draw.count, self.fields[1]
        width = columns // k
        indices = coordinates(head, records, draw.of, k, 0)
        flat = indices.ravel().astype(np.intp)
        codes = np.zeros((len(flat), width), np.min_scalar_type((1 << bits) - 1))
        start, first = 0, 0
        for part, table in zip(self.parts, tables, strict=True):
            stop, last = start + table.shape[1], first + part.streams
            rows = np.flatnonzero((flat >= start) & (flat < stop))
            values = table[rows // k, flat[rows] - start][:, None]
            if len(rows):
                answers = part._released(values, list(keys[first:last])).reshape(len(rows), -1)
                if width > 1:
                    answers = spelled(answers, field_bits(part.channel)[1])
                codes[rows, : answers.shape[1]] = answers
            start, first = stop, last
        return [indices, codes.reshape(records, -1)]

    def _capped(self, values: NDArray[Any], keys: list[bytes]) -> list[NDArray[Any]]:
        """Return the reports of the columns of a cap over subsets, a field for each run of like columns."""
        assert self.order is not None
        order = np.array(self.order)
        given = np.ascontiguousarray(values[:, order])
        reports = self.channel.randomize(given, None, None, keys[1], "codes", None, None, 0)
        edges = np.cumsum([columns for columns, _ in _cap_columns(self.channel)])[:-1]
        answers = np.split(reports, edges, axis=1)
        every = np.concatenate([answers[column] for column in np.argsort(order)], axis=1)
        ends = np.cumsum([columns for columns, _ in self.fields])[:-1]
        return np.split(every, ends, axis=1)

    def _released(self, values: NDArray[Any], keys: list[bytes]) -> NDArray[Any]:
        """Return the reports of values of shape (n, columns)."""
        codec: Any = self.codec
        if isinstance(codec, Signs):
            signs = _DITHER.randomize(values, codec.grid, None, keys.pop(0), "codes", None, None, 0)
            values = signs.astype(np.int64) @ (1 << np.arange(codec.columns - 1, -1, -1))
            codec = None
        elif isinstance(codec, Placed):
            kept = Matrix(np.eye(codec.grid.points))  # leaves a point where it is: the dither alone
            codes = kept.randomize(values, codec.grid, None, keys.pop(0), "codes", None, None, 0)
            values, codec = codes.ravel(), None
        elif isinstance(codec, Item):
            codec = None  # `codes` used it already
        elif isinstance(codec, OneHot):
            entries = (values == np.arange(codec.categories)).astype(np.uint16)
            values, codec = entries * np.uint16(codec.top), None
        reports = self._channelled(self.channel, values, codec, keys)
        if self.second is None:
            return reports
        if isinstance(self.second, Bits):
            return self.second.randomize(reports, None, keystream(keys[-1], 0, _KEY), "codes", None, None, 0)
        return self._channelled(self.second, reports, None, keys[-1:])

    def _channelled(self, channel: Any, values: NDArray[Any], codec: Any, keys: list[bytes]) -> NDArray[Any]:
        if isinstance(channel, Mixture):
            both = keys[0], keys[1]
            grids: Any = codec, self.ends
            return channel.randomize(values, grids, None, both, "codes", None, None, 0)
        if isinstance(channel, Bits):
            return channel.randomize(values, codec, keys[0], "codes", None, None, 0)
        if isinstance(channel, (Unary, Subset)):
            return channel.randomize(values.ravel(), keys[0], "bits", None, None, 0)
        if isinstance(channel, Design):
            return channel.randomize(values.ravel(), keys[0], "codes", None, None, 0)
        if isinstance(channel, Select):
            return channel.randomize(values, keys[0], "codes", None, None, 0)
        return channel.randomize(values, codec, None, keys[0], "codes", None, None, 0)

    def _rotated(self, values: NDArray[Any], keys: list[bytes], draw: PublicRotation) -> list[NDArray[Any]]:
        """Return the numbers of the rotations, and the codes of the rotated vectors."""
        channel: Any = self.channel
        release = RotatedRelease(
            channel,
            channel.epsilon,
            channel.outputs,
            rotation=draw.rotation,
            count=draw.reports,
            rotations=draw.count,
        )
        rotations = release.drawn(keys, len(values), 0)
        return [rotations, release.select(values, rotations, Call(keys, "codes", None, None, 0))]

    def _sampled(
        self, values: NDArray[Any], keys: list[bytes], last: bytes, draw: PublicDraw
    ) -> list[NDArray[Any]]:
        """Return the columns drawn, and their reports."""
        indices = coordinates(last, len(values), draw.of, draw.count, 0)
        chosen = np.take_along_axis(values, indices.astype(np.intp), axis=1)
        return [indices, self._released(chosen, keys).reshape(len(values), -1)]

    def _hashed(
        self, values: NDArray[Any], keys: list[bytes], last: bytes, draw: PublicDraw
    ) -> list[NDArray[Any]]:
        """Return triples (a, b, report of the hashed value)."""
        own = functions(last, len(values), draw.of, 0)
        hashed = function_values(own, values[:, 0].astype(np.uint32), draw.of, draw.count)
        return [np.column_stack([own, self._released(hashed, keys)]).astype(np.uint32)]

    def _stepped(
        self, values: NDArray[Any], keys: list[bytes], last: bytes, draw: PublicDraw
    ) -> list[NDArray[Any]]:
        """Return steps less 1, and cells of the progressions that begin at the values.

        The channel draws a rank that does not depend on the value, which is then added.
        """
        cells = draw.count
        steps = whole_numbers(last, len(values), draw.of, 0)
        zeros = np.zeros(len(values), np.uint32)
        ranks = _ranks(self.channel).randomize(zeros, keys[0], "codes", None, None, 0).astype(np.int64)
        chosen = steps.astype(np.int64) + 1
        # Where the step shares a divisor with the cells, its multiples return to 0; the next cells follow.
        offsets = (ranks * chosen + ranks * np.gcd(chosen, cells) // cells) % cells
        reported = offsets + (0 if self.channel.mute else values[:, 0].astype(np.int64))
        reported -= cells * (reported >= cells)
        return [steps[:, None].astype(np.uint32), reported[:, None].astype(np.uint32)]

    def packed(self, x: Sequence[NDArray[Any]], keys: Sequence[bytes]) -> bytes:
        """Return the bytes of reports: all fields in order, each packed to whole bytes."""
        return packed(self.codes(x, keys), self.fields)

    def received(self, reports: Sequence[bytes]) -> list[NDArray[Any]]:
        """Return the codes of n reports about one record each: an array of shape (n, columns) for each field.

        Raises
        ------
        ValueError
            For a report of another length, or with a bit set after the last code of a field.
        TypeError
            For anything but bytes.
        """
        size = self.report_bytes()
        for index, report in enumerate(reports):
            if not isinstance(report, bytes):
                raise TypeError(f"reports: must be bytes, not {type(report).__name__}, at index {index}")
            if len(report) != size:
                raise ValueError(
                    f"reports: {size} bytes each are needed, not {len(report)}, at index {index}"
                )
        table = np.frombuffer(b"".join(reports), np.uint8).reshape(len(reports), size)
        result, start = [], 0
        for columns, bits in self.fields:
            own = np.unpackbits(table[:, start : start + (columns * bits + 7) // 8], axis=1)
            spare = own[:, columns * bits :].any(axis=1)
            if spare.any():
                raise ValueError(f"reports: bits are set after the codes, at index {int(np.argmax(spare))}")
            places = np.uint64(1) << np.arange(bits - 1, -1, -1, dtype=np.uint64)
            words = own[:, : columns * bits].reshape(len(table), columns, bits) @ places
            result.append(words.astype(np.min_scalar_type((1 << bits) - 1)))
            start += (columns * bits + 7) // 8
        return result

    def split(self, raw: bytes) -> list[NDArray[Any]]:
        """Return the values that bytes of one or more records hold, an array for each of `records`.

        The bytes are ordered by part: n records of the first part, then n records of the next.
        """
        size = sum(each.bytes for each in self.records)
        count, rest = divmod(len(raw), size)
        if rest or not count:
            raise ValueError(f"x: {len(raw)} bytes do not make records of {size} bytes each")
        result, start = [], 0
        for each in self.records:
            own = np.frombuffer(raw, each.dtype, count * each.columns, start)
            result.append(own.reshape(count, each.columns))
            start += count * each.bytes
        return result


def cap_fields(channel: Cap, order: Sequence[int]) -> tuple[Part, ...]:
    """Return the fields of a cap over subsets: one for each run of like columns of the record."""
    own = [(column, *each) for column, each in zip(order, _cap_columns(channel), strict=True)]
    sizes = [*channel.windows, *channel.subsets]
    result: list[Part] = []
    before = None
    for (_, columns, bits), size in sorted(zip(own, sizes, strict=True), key=lambda each: each[0][0]):
        if size == before:
            result[-1] = result[-1][0] + columns, bits
        else:
            result.append((columns, bits))
        before = size
    return tuple(result)


def _cap_columns(channel: Cap) -> list[Part]:
    """Return (columns, bits) of the report about each window and subset."""
    windows = [(1, (points + 2 * reach - 1).bit_length()) for points, reach in channel.windows]
    return windows + [(1, (k - 1).bit_length()) if w == 1 else (k, 1) for k, w in channel.subsets]


def spelled(codes: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """Return the bits of codes in order, each code's highest bit first."""
    places = np.arange(bits - 1, -1, -1, dtype=np.uint64)
    spelled = codes[..., None].astype(np.uint64) >> places & np.uint64(1)
    return spelled.reshape(len(codes), -1).astype(np.uint8)


def _ranks(channel: Design) -> Design:
    """Return the channel that draws ranks of cells by the law of a progression's window."""
    order = np.arange(channel.cells, dtype=np.uint32)
    return Design.from_integers(
        "translates", channel.cells, channel.cells, channel.width, channel.high, order, channel.mute
    )


def packed(codes: Sequence[NDArray[Any]], fields: Sequence[Part]) -> bytes:
    """Return arrays of codes as bytes, each array packed to whole bytes."""
    return b"".join(
        pack(np.ascontiguousarray(each).ravel(), bits).tobytes()
        for each, (_, bits) in zip(codes, fields, strict=True)
    )


def field_bits(channel: Any) -> Part:
    """Return (columns, bits) of the report of one use of a channel."""
    if isinstance(channel, Bits):
        return channel.features, channel.bits
    if isinstance(channel, Unary):
        return channel.categories, 1
    if isinstance(channel, Subset):
        return channel.elements, 1
    if isinstance(channel, Cube):
        return channel.bits, 1
    if isinstance(channel, Cap):
        points, reach = channel.windows[0]
        return len(channel.windows), (points + 2 * reach - 1).bit_length()
    outputs = channel.cells if isinstance(channel, Window) else channel.outputs
    return 1, (outputs - 1).bit_length()


def inputs_of(channel: Any) -> int | None:
    """Return the number of codes that a channel takes; None for a channel of numbers alone."""
    if isinstance(channel, (Matrix, Shift, Design)):
        return channel.inputs
    if isinstance(channel, Window):
        return channel.cells
    if isinstance(channel, Unary):
        return channel.categories
    return channel.elements if isinstance(channel, Subset) else None
