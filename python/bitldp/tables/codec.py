"""Columns of one mechanism: how they are read, released, written, counted and answered.

A kind of column is one subclass of `ColumnCodec`. It says what a mechanism takes of a table, and everything
that plans, releases, aggregates, the command line and its privacy report ask of such columns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp import _core
from bitldp.base.errors import DataError, PlanError
from bitldp.estimate.estimates import Estimate
from bitldp.tables.counts import Unestimated
from bitldp.tables.frames import Missing, first_row_of, plain_column, worded
from bitldp.tables.intervals import Intervals
from bitldp.tables.reading import Of, Reading, refused
from bitldp.tables.values import features_of
from bitldp.tables.written import Decoding

__all__ = [
    "DECODES",
    "KINDS",
    "Batch",
    "ColumnCodec",
    "ColumnSettings",
]

#: Rows of a table, or of an array: (n, columns) or (n,).
Batch: TypeAlias = "pa.Table | NDArray[Any]"

#: Numbers that are written: decoded values whose mean is right, or what each report says by itself.
DECODES = ("unbiased", "reported")

_AT_ONCE = 1 << 16  # bytes of a table whose columns are copied at once
_INT32 = 31  # bits of a code that int32 holds


def _as_in_a_plan(setting: str, value: str = "") -> str:
    """Return a setting of a column as a plan has it."""
    return f'{setting} = "{value}" in the plan' if value else setting


@dataclass(frozen=True)
class ColumnSettings:
    """Settings of a column beside its mechanism, and the names that errors give them.

    Attributes
    ----------
    columns : tuple of str
    categories : tuple or None
        As `Column` keeps them.
    interval : (float, float) or None
    intervals : tuple of (float, float)
        Of columns of numbers that differ in theirs.
    missing : Missing
    output, decode : str or None
        As they were asked for; None: the codec chooses.
    mechanism : str
        Name of the mechanism in errors.
    spelled : callable
        Name of a setting, alone or with a value, for who may change it.
    unit : str or None
        Unit of the numbers that dates and times become.
    listed : str or None
        Column of lists that the columns are the features of.
    """

    columns: tuple[str, ...]
    categories: tuple[Any, ...] | None = None
    interval: tuple[float, float] | None = None
    intervals: tuple[tuple[float, float], ...] = ()
    missing: Missing = field(default_factory=Missing)
    output: str | None = None
    decode: str | None = None
    mechanism: str = ""
    spelled: Callable[..., str] = _as_in_a_plan
    unit: str | None = None
    listed: str | None = None

    @property
    def title(self) -> str:
        """The columns, as errors name them."""
        return f"column {', '.join(map(repr, self.columns[:3]))}{' ...' if len(self.columns) > 3 else ''}"

    def refuse_count(self, mechanism: Any) -> None:
        """Refuse another number of columns than the mechanism takes."""
        if len(self.columns) != mechanism.columns:
            raise PlanError(
                f"{self.title}: {self.mechanism} takes {mechanism.columns} columns, got {len(self.columns)}"
            )

    def refuse_several(self) -> None:
        """Refuse several columns for a mechanism that takes one."""
        if len(self.columns) > 1:
            raise PlanError(f"{self.title}: give each of them a mechanism of its own, whose epsilons add up")

    def refuse_unless_numeric(self) -> None:
        """Refuse a policy for missing values that columns of numbers cannot follow."""
        missing = self.missing
        if missing.policy == "category":
            raise PlanError(
                f"{self.title}: nulls='category' is for categories; numbers are refused, filled or reported"
            )
        number = isinstance(missing.fill, (int, float)) and not isinstance(missing.fill, bool)
        if missing.policy == "fill" and not (number and math.isfinite(float(missing.fill or 0))):
            raise PlanError(f"{self.title}: fill: must be a finite number")


#: Each kind of column by `takes` of the mechanisms that it serves.
KINDS: dict[str, type[ColumnCodec]] = {}


@dataclass(frozen=True)
class ColumnCodec(ABC):
    """One mechanism on the columns that it randomizes together.

    A subclass is a kind of column; ``takes=`` of its class statement names the mechanisms that it serves, by
    what these take. It refuses what it cannot read by row (counted from 1, a header not counted) and column,
    and never shows the value.

    Parameters
    ----------
    mechanism : Mechanism
    settings : ColumnSettings

    Attributes
    ----------
    output : {"values", "codes", "bits"}
        Form of the released columns.
    decoding : Decoding
        What they stand for.

    Raises
    ------
    PlanError
        For settings that do not fit the mechanism.
    """

    floats: ClassVar[bool] = False  # whether an array must hold floats

    mechanism: Any
    settings: ColumnSettings
    output: str = field(init=False)
    decoding: Decoding = field(init=False, repr=False, compare=False)

    def __init_subclass__(cls, *, takes: str | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if takes is not None:
            KINDS[takes] = cls

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "output", self._form())
        object.__setattr__(self, "decoding", self._decoding())

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the mechanism takes together."""
        return self.settings.columns

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns of a table that are read: one column of lists, or the columns."""
        return self.columns if self.settings.listed is None else (self.settings.listed,)

    # -- what the settings say

    @abstractmethod
    def _check(self) -> None:
        """Refuse settings that do not fit the mechanism."""

    def _form(self) -> str:
        """Return the form of the released columns, or refuse one that the mechanism does not have."""
        mechanism, output = self.mechanism, self.settings.output
        name, spelled = self.settings.mechanism, self.settings.spelled
        asked = spelled("output", output or "")
        if "codes" not in mechanism.outputs:
            if output not in (None, "bits"):
                raise PlanError(f"{asked}: a report of {name} is one bit for each category; use bits")
            return "bits"
        if not mechanism._alike:
            if len(mechanism._report_parts) > 1:
                raise PlanError(f"{name}: a report has two parts; with public=False it is one code")
            if output not in (None, "codes"):
                raise PlanError(f"{asked}: a report of {name} is a code, not a category; use codes")
            return "codes"
        if output == "codes" and len(mechanism._report_parts) > 1:
            sampled = spelled("spend", "sample")
            raise PlanError(f"{asked}: with {sampled} a report is indices and codes; use values")
        if output == "bits" and "bits" not in mechanism.outputs:
            raise PlanError(f"{asked}: {name} reports one symbol; use values or codes")
        if output is None:  # words of bits are no unbiased numbers by themselves
            return "codes" if "bits" in mechanism.outputs else "values"
        return output

    def _decoding(self) -> Decoding:
        """Return what the columns stand for: here, for columns that hold no numbers."""
        if self.settings.decode is not None:
            decode, name = self.settings.spelled("decode"), self.settings.mechanism
            raise PlanError(f"{decode} does not apply to {name}: its columns are not numbers")
        return Decoding(estimate=f"{self._maker}(...).estimate_frequencies, of the numbers of the categories")

    @property
    def _maker(self) -> str:
        """Class of the mechanism, as Python code names it."""
        return f"bitldp.{type(self.mechanism).__name__}"

    @property
    def categories(self) -> tuple[Any, ...]:
        """Public values of the columns of categories; of a record, a list for each such column."""
        return ()

    @property
    def public(self) -> dict[str, Any]:
        """Public facts of the columns, for a reader of codes."""
        return {"categories": list(self.categories)}

    @property
    def numeric(self) -> tuple[str, ...]:
        """The columns of numbers, whose reports depend on their precision."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on how values change before they are randomized."""
        return ()

    @property
    def neutral(self) -> float | None:
        """Number whose report has it for its mean; of use where a missing value must have a report."""
        return None

    @property
    def filling(self) -> str | None:
        """Note on the bias of answers where missing values count as a public one."""
        if self.settings.missing.policy != "fill":
            return None
        return f"missing values count as {self.settings.missing.fill}: biased, as to those who answered"

    @property
    def caveat(self) -> str | None:
        """Qualification of a mean: the numbers that it is of, where these are rounded first."""
        return None

    # -- reading

    @abstractmethod
    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return the mechanism's input for a batch whose first row has the number `first_row`."""

    def read(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return `encode` of a batch; what Arrow says of values it cannot convert is not shown."""
        with worded(self.inputs):
            if self.settings.listed is not None and not isinstance(batch, np.ndarray):
                batch = features_of(batch, self.settings.listed, self.columns, first_row)
            return self.encode(batch, first_row)

    def outside(self, x: NDArray[Any]) -> int:
        """Return how many numbers of an encoded batch are outside the range, and move to its ends."""
        return 0

    # -- releasing

    @property
    def released(self) -> int:
        """Number of columns of a row that are released: all, or those that are sampled."""
        return len(self.columns)

    @property
    def whole(self) -> bool:
        """True if a record is released as one symbol."""
        return False

    @property
    def per_row(self) -> int:
        """Values of a chunk of the keystream that one row takes."""
        return 1 if self.whole else self.released

    @property
    def width(self) -> int:
        """Bytes of a row's input and output, about."""
        return 16 * len(self.columns) + self._several * 4 * int(self.mechanism.report_bits)

    @property
    def _several(self) -> bool:
        """True if a report becomes more columns than there were."""
        return self.output == "bits"

    def randomize(
        self,
        x: NDArray[Any],
        *,
        rng: np.random.SeedSequence | None = None,
        first: int = 0,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Randomize an encoded batch.

        Parameters
        ----------
        x : ndarray
        rng : numpy.random.SeedSequence, optional
            None: fresh keys of the operating system for every batch.
        first : int
            Rows before this batch, under the same `rng`.
        threads : int, optional

        Returns
        -------
        ndarray
            The reports, in the form of `output`.
        """
        options = self._options() | {"threads": threads}
        if rng is None:
            return self._values(self.mechanism.randomize(*self._inputs(x), **options))
        if not self.whole:
            # A seed makes one stream for the whole file: a batch takes the chunks after those of the rows
            # before it.
            chunk = first * self.per_row // _core.CHUNK
            return self._values(
                self.mechanism.randomize(*self._inputs(x), rng=rng, first_chunk=chunk, **options)
            )
        # Such streams do not go on where a batch ends: every so many rows have a seed of their own.
        pieces: list[Any] = [
            self.mechanism.randomize(
                *self._inputs(x[start : start + _core.CHUNK]),
                rng=np.random.SeedSequence(
                    rng.entropy, spawn_key=(*rng.spawn_key, (first + start) // _core.CHUNK)
                ),
                **options,
            )
            for start in range(0, max(1, len(x)), _core.CHUNK)
        ]
        if isinstance(pieces[0], tuple):  # which of the columns were drawn, and codes about them
            parts: Any = type(pieces[0])(*map(np.concatenate, zip(*pieces, strict=True)))
            return self._values(parts)
        return self._values(np.concatenate(pieces))

    def randomize_keyed(
        self, x: NDArray[Any], *, key: bytes, ids: NDArray[Any], column: int, threads: int | None = None
    ) -> NDArray[Any]:
        """Randomize an encoded batch with keyed random bits.

        Each of the records' `ids` comes up once. The reports depend on the records alone. `column` is the
        number of the first column among all that are released under the key.
        """
        options = self._options() | {"threads": threads}
        return self._values(
            self.mechanism.randomize_keyed(
                *self._inputs(x), key=key, ids=ids, column=column, duplicates=True, **options
            )
        )

    def _options(self) -> dict[str, Any]:
        """Return the options of a call of the mechanism."""
        return {"output": "bits"} if self.output == "bits" else {}

    def _inputs(self, x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return an encoded batch as the arguments of the mechanism."""
        return (x,)

    def _values(self, reports: NDArray[Any]) -> NDArray[Any]:
        """Return what the columns hold of the mechanism's reports."""
        return reports

    # -- writing

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the released columns."""

    def written(self, reports: NDArray[Any], arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return named columns for the reports on columns of an Arrow type."""
        return list(zip(self.names, _columns_of(reports), strict=True))

    def signed(self, values: Any) -> Any:
        """Return a released column with signed integers, which every engine has."""
        if isinstance(values, np.ndarray) and values.dtype.kind == "u":
            if self.output == "bits":
                return pa.array(values.view(np.int8) if values.dtype == np.uint8 else values.astype(np.int8))
            wide = max(bits for _, bits in self.mechanism._report_parts) > _INT32
            return pa.array(values.astype(np.int64 if wide else np.int32))
        return pa.array(values) if isinstance(values, np.ndarray) else values

    def written_array(self, reports: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return reports as an array of numbers of a dtype became."""
        return reports

    def by_column(self, written: list[tuple[str, Any]]) -> dict[str, list[tuple[str, Any]]]:
        """Return released columns by the column that each comes from."""
        each = len(written) // len(self.columns)
        return {name: written[i * each : (i + 1) * each] for i, name in enumerate(self.columns)}

    # -- collecting

    def collect(self, table: pa.Table, first_row: int) -> tuple[Any, str]:
        """Return the reports in released columns, and the form that an accumulator takes them in.

        Parameters
        ----------
        table : pyarrow.Table
            With at least the released columns.
        first_row : int
            Number of its first row, for errors.

        Returns
        -------
        reports, form
            As `randomize` of the mechanism gives them, "codes" or "bits".

        Raises
        ------
        PlanError
            For a column that is not there once.
        DataError
            For a value that is no report; row and column are named.
        """
        schema = table.schema
        for name in self.names:
            if len(schema.get_all_field_indices(name)) != 1:
                raise PlanError(f"column {name!r}: is not there once among the released columns")
        with worded(self.names):
            columns = [plain_column(table.column(name)) for name in self.names]
            if self.output == "values":
                return self._from_values(columns, first_row), "codes"
            return self._from_codes(np.stack(self._unsigned(columns, first_row), axis=1))

    def _from_values(self, columns: list[Any], first_row: int) -> Any:
        """Return the reports that written values stand for."""
        raise NotImplementedError(f"{type(self).__name__}: writes no values")

    def _from_codes(self, codes: NDArray[Any]) -> tuple[Any, str]:
        """Return the reports of a table of codes or bits, and their form."""
        return codes, "codes"

    def _unsigned(self, columns: list[Any], first_row: int) -> list[NDArray[Any]]:
        """Return columns of codes as unsigned integers."""
        numbered = []
        for name, column in zip(self.names, columns, strict=True):
            try:
                numbers = column.cast(pa.uint32())
            except pa.ArrowException:
                raise DataError(f"column {name!r}: holds something else than the codes of a report") from None
            if numbers.null_count:
                row = first_row + first_row_of(numbers.is_null())
                raise DataError(f"row {row}, column {name!r}: missing, where a report is needed")
            numbered.append(np.asarray(numbers.to_numpy()))
        return numbered

    def _floats(self, columns: list[Any]) -> tuple[NDArray[np.float64], type]:
        """Return written numbers as one table, and the type of float that they had."""
        try:
            floats = [
                each if pa.types.is_floating(each.type) else each.cast(pa.float64()) for each in columns
            ]
        except pa.ArrowException:
            raise DataError(f"columns {', '.join(self.names)}: numbers are needed") from None
        single = np.float32 if all(each.type == pa.float32() for each in floats) else np.float64
        return np.stack([np.asarray(each.to_numpy(), np.float64) for each in floats], axis=1), single

    # -- counting and answering

    @property
    def apart(self) -> bool:
        """True if the columns are released independently of each other, given the record."""
        return False

    def reading(self, column: str, of: Of) -> Reading:
        """Return what reports say of a number, of its square, or of the category of one column.

        Raises
        ------
        PlanError
            For what they do not tell; the message says which plan would.
        """
        raise refused(f"column {column!r}", self.settings.mechanism, of)

    def unit(self, column: str) -> float:
        """Return how many of a column's units one of the mechanism is."""
        return 1.0

    def rescaled(self, estimate: Estimate, columns: Sequence[str]) -> Estimate:
        """Return the estimate of a mechanism about some columns, in their units but for its influence."""
        return estimate

    @property
    def alone(self) -> bool:
        """True if the counts of the mechanism itself answer questions about one column."""
        return True

    def together(self, columns: Sequence[str]) -> tuple[float, float]:
        """Return how the product of centred readings of several columns is made unbiased.

        Returns
        -------
        (float, float)
            The factor of the product, and the share of the records whose reports are about all of them.

        Raises
        ------
        PlanError
            If reports do not tell them together; the message says which plan would.
        """
        mechanism, names = self.mechanism, " and ".join(map(repr, columns))
        try:
            if not hasattr(mechanism, "_together"):
                raise ValueError("how they depend on each other there is not known")
            factor, chance = mechanism._together([self.columns.index(each) for each in columns])
        except ValueError as error:
            raise PlanError(
                f"columns {names}: one report of {self.settings.mechanism} does not cover them together "
                f"({error}); a plan with a mechanism for each column (GRR, OUE, Piecewise, whose epsilons "
                "add up) would, or one with RecordCap, JointWindow or MixedCap for all of them"
            ) from None
        return factor, chance

    def middle(self, reading: Reading) -> float:
        """Return what a reading is where a report is about other columns, or near no record."""
        return sum(reading.span) / 2.0 if reading.labels == (None,) else 1.0 / len(reading.labels)

    @cached_property
    def counted(self) -> Any:
        """Owner of the counts: the mechanism, or what stands for one that has no unbiased estimate."""
        try:
            self.mechanism.accumulator()
        except ValueError as error:
            return Unestimated(self.mechanism, str(error))
        return self.mechanism

    def counts(self) -> Any:
        """Return empty counts of reports."""
        return self.counted.accumulator()

    def answers(self, counts: Any, intervals: Intervals) -> Iterator[dict[str, Any]]:
        """Yield the answers that counts give: here, a mean for each column.

        Parameters
        ----------
        counts : Accumulator
            As `counts` begins them.
        intervals : Intervals
            To which estimates are added. An answer holds the number of its interval there.
        """
        yield from self._answers(counts, self.columns, "mean", None, intervals)

    def _answers(
        self,
        counts: Any,
        columns: Sequence[str],
        what: Literal["mean", "share"],
        labels: Sequence[Any] | None,
        intervals: Intervals,
    ) -> Iterator[dict[str, Any]]:
        """Yield a mean for each column, or a share of one column for each label."""
        note = "; ".join(filter(None, [self.caveat if what == "mean" else None, self.filling])) or None
        influence = first = None
        try:
            estimate = self.rescaled(counts.estimate(), columns)
            value, stderr = np.atleast_1d(estimate.value).ravel(), np.atleast_1d(estimate.stderr).ravel()
            first = intervals.add(estimate, counts.mechanism)
            influence = estimate.influence
            note = "; ".join(each for each in (note, estimate.doubt) if each) or None
        except ValueError as error:  # the reports say nothing, or no such estimate exists
            note, labels = str(error), None
            value = stderr = np.full(len(columns), math.nan)
        for j in range(len(value)):
            figures = {"estimate": value[j], "stderr": stderr[j]}
            yield {
                "column": columns[0] if what == "share" else columns[j],
                "what": what,
                "category": None if labels is None else labels[j],
                **{name: None if math.isnan(number) else float(number) for name, number in figures.items()},
                "interval": None if first is None else first + j,
                "records": int(counts.n),
                "note": note,
                "influence": None
                if influence is None
                else influence * self.unit(columns[min(j, len(columns) - 1)]),
            }


def _columns_of(table: NDArray[Any]) -> NDArray[Any]:
    """Return the columns of a table as rows, copied a block at a time that stays in a cache."""
    columns = np.empty(table.shape[::-1], table.dtype)
    rows = max(256, _AT_ONCE // max(1, table.shape[1] * table.itemsize))
    for start in range(0, len(table), rows):
        columns[:, start : start + rows] = table[start : start + rows].T
    return columns
