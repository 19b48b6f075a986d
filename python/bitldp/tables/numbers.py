"""Columns of numbers: as fixed-point words, or as numbers of a public interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.arrays import first
from bitldp.base.errors import DataError, PlanError
from bitldp.estimate.estimates import Estimate
from bitldp.tables.codec import Batch, ColumnCodec, ColumnSettings
from bitldp.tables.frames import MISSING_TEXTS, TAKEN, Missing, is_missing, is_text, plain_column, refuse_null
from bitldp.tables.reading import Of, Reading, by_code, refused, squared, squares, steps
from bitldp.tables.scales import Scales
from bitldp.tables.values import in_unit
from bitldp.tables.written import Decoding, codes_of_values

__all__ = [
    "Numbers",
    "NumericColumns",
    "Reals",
    "numbers_of",
    "refuse_outside",
    "scales_of",
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

    @cached_property
    def scales(self) -> Scales | None:
        """The maps of the columns' own intervals, where they have such."""
        return scales_of(self.settings, self.columns, self.mechanism._span)

    def unit(self, column: str) -> float:
        """Return how many of a column's units one of the mechanism is."""
        return 1.0 if self.scales is None else self.scales.unit(self.columns.index(column))

    def rescaled(self, estimate: Estimate, columns: Sequence[str]) -> Estimate:
        """Return means in the intervals of their columns."""
        places = [self.columns.index(each) for each in columns]
        return estimate if self.scales is None else self.scales.estimate(estimate, places)

    @property
    def numeric(self) -> tuple[str, ...]:
        """The columns, all of which are numbers."""
        return self.columns

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n, r) floats, float32 where the file holds no wider type."""
        return numbers_of(batch, self.columns, first_row, self.settings.missing, self.settings.unit)

    def outside(self, x: NDArray[Any]) -> int:
        """Return how many numbers are outside the range, so that they move to its ends."""
        return int(self.mechanism.outside(x)) if self.scales is None else self.scales.outside(x)

    def _inputs(self, x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        return (x if self.scales is None else self.scales.mapped(x),)

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

    def _check(self) -> None:
        super()._check()
        if self.settings.interval is not None:
            raise PlanError(f"{self.settings.title}: interval: words of bits have a range of their own")

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

    def _check(self) -> None:
        super()._check()
        if self.scales is None:
            return
        if len(self.columns) == 1 or hasattr(self.mechanism, "estimate_distribution"):
            raise PlanError(
                f"{self.settings.title}: interval: {self.settings.mechanism} has its own, a parameter"
            )

    def _form(self) -> str:
        if self.scales is None:
            return super()._form()
        if self.settings.output not in (None, "codes"):
            asked = self.settings.spelled("output", self.settings.output)
            raise PlanError(f"{asked}: numbers of intervals of their own are released as codes")
        return "codes"

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
        letters = (
            {"letters": self.mechanism.letters.tolist()} if self.output == "codes" and not self._pairs else {}
        )
        own = {} if self.scales is None else {"intervals": [list(each) for each in self.scales.intervals]}
        return {"interval": list(self.interval), **letters, **own}

    @property
    def notes(self) -> tuple[str, ...]:
        """Where numbers outside the interval move."""
        if self.scales is not None:
            return ("numbers outside the interval of their column move to its ends",)
        low, high = self.interval
        return (f"numbers outside {low:g} .. {high:g} move to the ends before they are randomized",)

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n, r) floats; refuse what is outside the interval where it does not move to its ends."""
        numbers = super().encode(batch, first_row)
        if not self.mechanism.clip:
            refuse_outside(numbers, self.scales or self.interval, self.columns, first_row)
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
        made = self._reading(column, of)
        if self.scales is None:
            return made
        number = self._reading(column, "number") if of == "square" else None
        return self.scales.reading(made, self.columns.index(column), number)

    def _reading(self, column: str, of: Of) -> Reading:
        """Return the reading of a column in the interval of the mechanism."""
        mechanism, place, title = self.mechanism, self.columns.index(column), f"column {column!r}"
        windows, drawn = hasattr(mechanism, "estimate_distribution"), mechanism._drawn
        if of == "category" and (drawn is not None or not windows):
            return super().reading(column, of)
        made, many = super().reading(column, "number"), len(self.columns)
        if drawn is not None:
            return self._of_drawn(made, place, of)

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
            raise refused(
                title, self.settings.mechanism, of, "too few letters separate them from other squares"
            )
        values, bias = known
        note = f"squares are at most {bias * self.unit(self.columns[place]) ** 2:.3g} too large"
        return by_code(column, values, codes, squared(made.span), 0.0, note)

    def _of_drawn(self, made: Reading, place: int, of: Of) -> Reading:
        """Return the reading of a number, or of its square, of records whose reports may be about others.

        These count as the middle.
        """
        mechanism, letters, note = self.mechanism, self.mechanism.letters, made.note
        values, span = letters, made.span
        chance = mechanism._drawn / len(self.columns)
        if of == "square":
            spread = mechanism._release.spread
            known = None if spread is None else squares(spread, letters)
            if known is None:
                raise refused(
                    f"column {made.column!r}",
                    self.settings.mechanism,
                    of,
                    "too few letters separate them from other squares",
                )
            values, bias = known
            note = f"squares are at most {bias * self.unit(self.columns[place]) ** 2:.3g} too large"
            span = squared(span)
        middle = sum(span) / 2.0

        def read(reports: Any) -> NDArray[np.float64]:
            indices, codes = (np.asarray(each) for each in reports)
            rows, which = np.nonzero(indices == place)
            result = np.full((len(indices), 1), middle)
            result[rows, 0] += (values[codes[rows, which]] - middle) / chance
            return result

        ends = middle + (np.array([[values.min()], [values.max()]]) - middle) / chance
        ends = np.stack([ends[0].clip(max=middle), ends[1].clip(min=middle)])
        if of == "number":
            return replace(made, ends=ends)
        return replace(made, read=read, ends=ends, span=span, floor=0.0, note=note)

    @property
    def _pairs(self) -> bool:
        """True if reports are released as they are: which columns were drawn, and codes about them."""
        return self.scales is not None and self.mechanism._drawn is not None

    @property
    def names(self) -> list[str]:
        """The columns themselves; of numbers that are drawn and have intervals of their own, of a report."""
        if not self._pairs:
            return super().names
        first, ((drawn, _), (codes, _)) = self.columns[0], self.mechanism._report_parts
        return [f"{first}_attribute{i}" for i in range(drawn)] + [f"{first}_code{i}" for i in range(codes)]

    def written(self, reports: Any, arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return a column for each number, or for each number of a report."""
        if self._pairs:
            parts = zip(reports, self.mechanism._report_parts, strict=True)
            reports = np.concatenate([np.asarray(each).reshape(-1, n) for each, (n, _) in parts], axis=1)
        return super().written(reports, arrow_type)

    def by_column(self, written: list[tuple[str, Any]]) -> dict[str, list[tuple[str, Any]]]:
        """Return released columns by the column that each comes from, or all beside the first one."""
        return {self.columns[0]: written} if self._pairs else super().by_column(written)

    def _from_codes(self, codes: NDArray[Any]) -> tuple[Any, str]:
        if not self._pairs:
            return super()._from_codes(codes)
        drawn = self.mechanism._report_parts[0][0]
        return self.mechanism._join([codes[:, :drawn], codes[:, drawn:]]), "codes"

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


# -- columns as an array


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
        absent = "missing value (NaN)" if isinstance(batch, np.ndarray) else f"missing value (NaN); {TAKEN}"
        problem = absent if np.isnan(numbers[row, column]) else "infinite value"
        raise DataError(f"row {first_row + int(row)}, column {columns[int(column)]!r}: {problem}")
    return numbers


def refuse_outside(
    numbers: NDArray[Any], interval: tuple[float, float] | Scales, columns: Sequence[str], first_row: int
) -> None:
    """Refuse a number outside an interval, or outside that of its column, by its row."""
    low, high = np.array(interval.intervals).T if isinstance(interval, Scales) else interval
    inside = (numbers >= low) & (numbers <= high)
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
        refuse_null(column, name, first_row, TAKEN)
        matrix[:, j] = column.to_numpy()
    if missing.filled:
        matrix[np.isnan(matrix)] = missing.fill
    return matrix


def _parse(
    column: pa.ChunkedArray, name: str, first_row: int, missing: Missing, unit: str | None
) -> pa.ChunkedArray:
    """Read text as numbers; the first text that is none is refused by its row."""
    if missing.filled:
        column = pc.if_else(is_missing(column), pa.scalar(None, column.type), column)
    else:
        refuse_null(column, name, first_row, TAKEN)
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
                absent = str(text).lower() in MISSING_TEXTS
                problem = f"missing value; {TAKEN}" if absent else "not a number"
                raise DataError(f"row {first_row + row}, column {name!r}: {problem}") from None
        raise DataError(f"column {name!r}: not a number") from None


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


def scales_of(
    settings: ColumnSettings, numbers: Sequence[str], span: tuple[float, float] | None
) -> Scales | None:
    """Return the maps of the intervals that columns of numbers have, or None where they have none."""
    given = settings.intervals
    if not given:
        return None
    if span is None or not numbers:
        raise PlanError(f"{settings.title}: interval: {settings.mechanism} takes no numbers of an interval")
    if len(given) not in (1, len(numbers)):
        raise PlanError(
            f"{settings.title}: interval: one, or one for each of {len(numbers)} columns of numbers, got "
            f"{len(given)}"
        )
    return Scales(given * (len(numbers) // len(given)), span)
