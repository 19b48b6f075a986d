"""Columns of numbers: as fixed-point words, or as numbers of a public interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.arrays import first
from bitldp.base.errors import DataError, PlanError
from bitldp.tables.codec import MISSING_TEXTS, Batch, ColumnCodec, Decoding, Missing, codes_of_values
from bitldp.tables.frames import is_text, plain_column, refuse_null
from bitldp.tables.reading import Of, Reading, by_code, refused, squares, steps
from bitldp.tables.values import in_unit

__all__ = [
    "Numbers",
    "NumericColumns",
    "Reals",
    "is_missing",
    "numbers_of",
    "refuse_outside",
    "unbiased_or_reported",
    "undecoded",
]

_MOST_BITS = 16  # of a code word whose values are looked up


class NumericColumns(ColumnCodec):
    """Columns that become an (n, r) array of float32 or float64."""

    floats = True

    def _check(self) -> None:
        settings = self.settings
        settings.refuse_count(self.mechanism)
        if settings.categories is not None:
            raise PlanError(f"{settings.title}: categories: {settings.mechanism} takes numbers")
        settings.refuse_unless_numeric()

    @property
    def numeric(self) -> tuple[str, ...]:
        """The columns, all of which are numbers."""
        return self.columns

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n, r) floats, float32 where the file holds no wider type."""
        return numbers_of(batch, self.columns, first_row, self.settings.missing, self.settings.unit)

    def outside(self, x: NDArray[Any]) -> int:
        """Return how many numbers are outside the range, so that they move to its ends."""
        return int(self.mechanism.outside(x))

    @property
    def apart(self) -> bool:
        """True unless records are released as a whole, or some of their columns."""
        return not (self.whole or getattr(self.mechanism, "k", None) is not None)

    @property
    def _truths(self) -> tuple[float, float]:
        """The least and the largest number that is released."""
        low, high = self.mechanism._span
        return low, high

    def reading(self, column: str, of: Of) -> Reading:
        """Return the letter of a column's number; see `ColumnCodec.reading`."""
        if of != "number":
            raise refused(f"column {column!r}", self.settings.mechanism, of)
        mechanism, place = self.mechanism, self.columns.index(column)
        try:
            law = mechanism._letter_law
        except ValueError as error:
            law, reason = None, str(error)
        else:
            reason = "they are drawn alike for all records"
        if law is None:
            raise refused(f"column {column!r}", self.settings.mechanism, of, reason)
        low, high = law.mixed.points[0], law.mixed.points[-1]
        ends = np.array([[-1.0], [1.0]]) * law.reach + (low + high) / 2.0
        floor = float(law.mixed.bounds(law.mixed.points)[0].min())
        note = "; ".join(filter(None, [self.caveat, self.filling]))

        def read(reports: Any) -> NDArray[np.float64]:
            bits = np.asarray(reports).shape[1] // len(self.columns) if self.output == "bits" else 1
            if bits > 1:  # the sign first
                powers = 1 << np.arange(bits - 1, -1, -1, dtype=np.uint32)
                reports = np.asarray(reports, np.uint32).reshape(len(reports), -1, bits) @ powers
            return np.asarray(mechanism.unbias(reports))[:, [place]]

        return Reading(column, (None,), read, ends, self._truths, max(floor, 0.0), rate=law.rate, note=note)

    @property
    def names(self) -> list[str]:
        """The columns themselves, or for each of them its bits, named ``column_bit0`` (the sign) on."""
        each = int(self.mechanism.report_bits) // len(self.columns) if self.output == "bits" else 1
        if each == 1:
            return list(self.columns)
        return [f"{name}_bit{i}" for name in self.columns for i in range(each)]


class Numbers(NumericColumns, takes="numbers"):
    """Columns of numbers that are cut to fixed-point words, and released bit by bit."""

    def _decoding(self) -> Decoding:
        if self.output != "values":
            return undecoded(self, "code words" if self.output != "bits" else "")
        return unbiased_or_reported(
            self,
            self._unbiased,
            self.mechanism.decode_bias,
            float(self.mechanism.codec.step),
        )

    def _unbiased(self) -> None:
        """Raise ValueError where the mechanism has no unbiased value of a word; it knows them otherwise."""
        self.mechanism.accumulator()

    @property
    def public(self) -> dict[str, Any]:
        """The range and the step of the words."""
        codec = self.mechanism.codec
        return {"interval": [-codec.limit, codec.limit], "step": codec.step}

    @property
    def notes(self) -> tuple[str, ...]:
        """How numbers are cut."""
        codec = self.mechanism.codec
        return (
            f"numbers are cut to {-codec.limit:g} .. {codec.limit:g} and to multiples of {codec.step:g} "
            "before they are randomized; --bits and --integer-bits change that",
        )

    @property
    def neutral(self) -> float:
        """The word of zeros."""
        return 0.0

    @property
    def caveat(self) -> str:
        """The step that numbers are cut to."""
        return f"of multiples of {self.mechanism.codec.step:g}"

    def _options(self) -> dict[str, Any]:
        return {"output": "codes" if self.decoding.decode == "unbiased" else self.output}

    def _values(self, reports: NDArray[Any]) -> NDArray[Any]:
        if self.decoding.decode != "unbiased":
            return reports
        values: NDArray[Any] = self.mechanism.unbias(reports)
        return values

    def _from_codes(self, codes: NDArray[Any]) -> tuple[Any, str]:
        return (codes.astype(np.uint8), "bits") if self.output == "bits" else (codes, "codes")

    def _from_values(self, columns: list[Any], first_row: int) -> NDArray[Any]:
        """Return the words of numbers, each column with decoded values of its own."""
        table, dtype = self._floats(columns)
        mechanism, names = self.mechanism, self.names
        bits = int(mechanism.report_bits) // len(names)
        if bits > _MOST_BITS:
            raise PlanError(
                f"columns {', '.join(names)}: words of {bits} bits are estimated from codes, not values"
            )
        every = np.repeat(np.arange(1 << bits, dtype=np.uint32)[:, None], len(names), axis=1)
        reported = self.decoding.decode == "reported"
        decoded = mechanism.decode(every) if reported else mechanism.unbias(every)
        codes = [
            codes_of_values(table[:, j : j + 1], decoded[:, j].astype(dtype), names[j : j + 1], first_row)
            for j in range(len(names))
        ]
        return np.concatenate(codes, axis=1)


class Reals(NumericColumns, takes="reals"):
    """Columns of numbers of a public interval, all of which are released, or some that are sampled."""

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the interval."""
        low, high = self.mechanism._span
        return low, high

    def _decoding(self) -> Decoding:
        if self.output != "values":
            return undecoded(self)
        if self.settings.decode == "reported":
            reported, name = self.settings.spelled("decode", "reported"), self.settings.mechanism
            raise PlanError(f"{reported}: the numbers of {name} are unbiased as they are")
        return Decoding("unbiased", 0.0, "the mean of the column")

    @property
    def public(self) -> dict[str, Any]:
        """The interval, and the decoded value of each code where codes are written."""
        letters = {"letters": self.mechanism.letters.tolist()} if self.output == "codes" else {}
        return {"interval": list(self.interval), **letters}

    @property
    def notes(self) -> tuple[str, ...]:
        """Where numbers outside the interval move."""
        low, high = self.interval
        return (f"numbers outside {low:g} .. {high:g} move to the ends before they are randomized",)

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n, r) floats; refuse what is outside the interval where it does not move to its ends."""
        numbers = super().encode(batch, first_row)
        if not self.mechanism.clip:
            refuse_outside(numbers, self.interval, self.columns, first_row)
        return numbers

    @property
    def neutral(self) -> float:
        """The middle of the interval."""
        return float(np.float32(sum(self.interval) / 2.0))

    @property
    def released(self) -> int:
        """How many numbers of a row are released: all, or those that are sampled."""
        return int(self.mechanism._drawn or len(self.columns))

    @property
    def whole(self) -> bool:
        """True if a record of numbers is released as one symbol."""
        return bool(self.mechanism._whole)

    def reading(self, column: str, of: Of) -> Reading:
        """Return the letter of a column's number, or of its square; see `ColumnCodec.reading`."""
        mechanism, place, title = self.mechanism, self.columns.index(column), f"column {column!r}"
        windows = hasattr(mechanism, "estimate_distribution") and mechanism.k is None
        if (of == "category" and not windows) or mechanism.k is not None or self.whole:
            if of == "square":
                raise refused(title, self.settings.mechanism, of, "of some columns of a record")
            return super().reading(column, of)
        made, many = super().reading(column, "number"), len(self.columns)

        def codes(reports: Any) -> NDArray[np.int64]:
            return np.asarray(reports, np.int64).reshape(-1, many)[:, place]

        letters, note = mechanism.letters, made.note
        if of == "category":
            dithered = f"of numbers on {len(mechanism.points)} points"
            return steps(column, mechanism.probabilities(), mechanism.points, codes, dithered)
        if of == "number":
            return by_code(column, letters, codes, made.span, made.floor, note)
        spread = getattr(mechanism, "_spread", None)
        known = None if spread is None else squares(spread, letters)
        if known is None:
            raise refused(title, self.settings.mechanism, of, "too few letters tell them from other squares")
        values, bias = known
        low, high = made.span
        span = (0.0 if low <= 0.0 <= high else min(low**2, high**2), max(low**2, high**2))
        return by_code(column, values, codes, span, 0.0, f"squares are at most {bias:.3g} too large")

    def _options(self) -> dict[str, Any]:
        return {"output": self.output}

    def _from_values(self, columns: list[Any], first_row: int) -> Any:
        table, dtype = self._floats(columns)
        if self.mechanism._drawn is None:
            return codes_of_values(table, self.mechanism.letters.astype(dtype), self.names, first_row)
        return self._sampled(table, dtype, first_row)

    def _sampled(self, table: NDArray[Any], dtype: type, first_row: int) -> Any:
        """Return the sampled coordinates of records and their codes.

        A coordinate that was not sampled holds the middle of the interval. A decoded value may be the middle,
        too: such a report adds nothing to a sum, wherever it is counted, so any coordinate will do for it.
        """
        mechanism = self.mechanism
        features, k = len(self.columns), int(mechanism._drawn)
        # All sampled coordinates together may be one symbol, a bit each.
        signs = mechanism._report_parts[1] == (1, k)

        def reports(indices: NDArray[Any], codes: NDArray[Any]) -> Any:
            if signs:
                codes = (codes.astype(np.int64) << np.arange(k - 1, -1, -1)).sum(axis=1, keepdims=True)
            return mechanism._join([indices.astype(np.uint32), codes])

        # A record for each code, which all of its sampled coordinates report.
        every = np.repeat(np.arange(2 if signs else mechanism.alphabet)[:, None], k, axis=1)
        dense = mechanism.decode(reports(np.broadcast_to(np.arange(k), every.shape), every))
        dense = dense.astype(dtype).astype(np.float64)
        away = table != (dense[0, k] if k < features else np.nan)
        if (away.sum(axis=1) > k).any():
            row = first_row + int(np.argmax(away.sum(axis=1) > k))
            raise DataError(f"row {row}: more columns were sampled than the plan's mechanism samples")
        # The sampled coordinates first, then as many others as are missing: those that hold the middle.
        indices = np.sort(np.argsort(~away, axis=1, kind="stable")[:, :k], axis=1)
        values = np.take_along_axis(table, indices, axis=1)
        return reports(indices, codes_of_values(values, dense[:, 0], self.names, first_row))


# -- decoded values


def undecoded(codec: ColumnCodec, held: str = "") -> Decoding:
    """Return the decoding of codes or bits; `held` names those that look like numbers."""
    settings, maker = codec.settings, f"bitldp.{type(codec.mechanism).__name__}"
    if settings.decode is not None:
        decode, values = settings.spelled("decode"), settings.spelled("output", "values")
        raise PlanError(f"{decode} is for {values}, not for {codec.output}")
    sentence = (
        f"the columns hold {held}, and no numbers: {maker}(...).estimate_mean estimates from them; "
        f"{settings.spelled('output', 'values')} writes numbers"
    )
    return Decoding(
        estimate=f"{maker}(...).estimate_mean, of the codes and with the parameters of this report",
        sentence=sentence if held else "",
    )


def unbiased_or_reported(
    codec: ColumnCodec,
    unbiased: Callable[[], NDArray[np.float64] | None],
    bias: Callable[[], float],
    rounding: float,
    reported: NDArray[np.float64] | None = None,
) -> Decoding:
    """Return the decoding of numbers that stand for codes, as it was asked for.

    Parameters
    ----------
    codec : ColumnCodec
    unbiased : callable
        Returns the unbiased value of each code, or None where the mechanism knows it; raises ValueError where
        there is no such value.
    bias : callable
        Returns the bias of what reports say by themselves.
    rounding : float
        How far a number moves before it is randomized.
    reported : ndarray, optional
        What reports say by themselves.
    """
    settings, reason = codec.settings, ""
    spelled = settings.spelled
    if settings.decode != "reported":
        try:
            numbers = unbiased()
        except ValueError as error:
            if settings.decode == "unbiased":
                raise PlanError(f"{spelled('decode', 'unbiased')}: {error}") from None
            reason = str(error)
        else:
            return Decoding(
                "unbiased",
                rounding,
                "the mean of the column",
                "values are letters, which may lie outside the range: their mean is right; "
                f"{spelled('decode', 'reported')} writes what each report says by itself",
                numbers=numbers,
            )
    distance = bias() + rounding
    cure = f"there are no others ({reason})" if reason else f"{spelled('decode', 'unbiased')} writes others"
    return Decoding(
        "reported",
        distance,
        f"not from these numbers: {cure}",
        f"the numbers of {settings.mechanism} are biased toward the middle: the mean of a column may be off "
        f"by up to {distance:.4g}; {cure}",
        alarming=True,
        numbers=reported,
    )


# -- numbers of a table


def numbers_of(
    batch: Batch, columns: Sequence[str], first_row: int, missing: Missing, unit: str | None = None
) -> NDArray[Any]:
    """Return the numeric columns of a batch as one (n, r) array without missing values; times in a unit."""
    if isinstance(batch, np.ndarray):
        numbers = batch if batch.dtype in (np.float32, np.float64) else batch.astype(np.float32)
        numbers = numbers.reshape(len(numbers), len(columns))
    else:
        numbers = _matrix(batch, columns, first_row, missing, unit)
    finite = np.isfinite(numbers)
    if not finite.all():
        row, column = np.unravel_index(int(np.argmin(finite)), numbers.shape)
        problem = "missing value (NaN)" if np.isnan(numbers[row, column]) else "infinite value"
        raise DataError(f"row {first_row + int(row)}, column {columns[int(column)]!r}: {problem}")
    return numbers


def refuse_outside(
    numbers: NDArray[Any], interval: tuple[float, float], columns: Sequence[str], first_row: int
) -> None:
    """Refuse a number outside an interval by its row."""
    inside = (numbers >= interval[0]) & (numbers <= interval[1])
    if not inside.all():
        row, column = first(~inside)
        raise DataError(f"row {first_row + row}, column {columns[column]!r}: outside the range (--no-clip)")


def _matrix(
    table: pa.Table, columns: Sequence[str], first_row: int, missing: Missing, unit: str | None
) -> NDArray[Any]:
    """Return the numeric columns of a table as one array; NaN stays."""
    narrow = all(table.schema.field(name).type in (pa.float16(), pa.float32()) for name in columns)
    matrix = np.empty((table.num_rows, len(columns)), np.float32 if narrow else np.float64)
    for j, name in enumerate(columns):
        column = plain_column(table.column(name))
        if is_text(column.type):
            column = _parse(column, name, first_row, missing, unit)
        else:
            column = in_unit(column, unit, name, first_row)
        if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
            column = column.cast(pa.float64())
        elif not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise PlanError(f"column {name!r} holds {column.type}: this mechanism takes numbers")
        if missing.filled:
            if column.type not in (pa.float32(), pa.float64()):  # which hold every number to fill in
                column = column.cast(pa.float64(), safe=False)
            column = pc.fill_null(column, pa.scalar(missing.fill, column.type))
        refuse_null(column, name, first_row)
        matrix[:, j] = column.to_numpy()
    if missing.filled:
        matrix[np.isnan(matrix)] = missing.fill
    return matrix


def is_missing(column: Any) -> Any:
    """Return where a column of numbers has none: a null, NaN, or a text of a text file that says so."""
    if not is_text(column.type):
        return pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    return pc.fill_null(pc.is_in(texts, value_set=pa.array(MISSING_TEXTS, column.type)), True)


def _parse(
    column: pa.ChunkedArray, name: str, first_row: int, missing: Missing, unit: str | None
) -> pa.ChunkedArray:
    """Read text as numbers; the first text that is none is refused by its row."""
    if missing.filled:
        column = pc.if_else(is_missing(column), pa.scalar(None, column.type), column)
    else:
        refuse_null(column, name, first_row)
    try:
        return column.cast(pa.float64())
    except pa.ArrowException:
        trimmed = pc.utf8_trim_whitespace(column)
    if unit is not None:
        return in_unit(column, unit, name, first_row)
    try:
        return trimmed.cast(pa.float64())
    except pa.ArrowException:
        for row, text in enumerate(trimmed):
            try:
                text.cast(pa.float64())
            except pa.ArrowException:
                problem = "missing value" if str(text).lower() in MISSING_TEXTS else "not a number"
                raise DataError(f"row {first_row + row}, column {name!r}: {problem}") from None
        raise DataError(f"column {name!r}: not a number") from None
