"""Columns of words that nobody could list, of which the most frequent are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.errors import DataError, PlanError
from bitldp.estimate.estimates import Estimate
from bitldp.tables.codec import Batch, ColumnCodec
from bitldp.tables.frames import first_row_of, plain_column, refuse_null
from bitldp.tables.intervals import Intervals
from bitldp.tables.reading import Of, Reading
from bitldp.tables.written import Decoding

__all__ = ["WordColumn"]

_SHOWN = 10  # words of an aggregate's answer
_CLEAR = 2.0  # standard errors above 0, from which on a word is taken for one


class WordColumn(ColumnCodec, takes="words"):
    """A column of words of an alphabet, or of integers, and reports to three columns.

    A missing value is a null or the empty text. With ``nulls="category"`` it counts as the empty word.
    """

    def _check(self) -> None:
        settings, missing = self.settings, self.settings.missing
        settings.refuse_several()
        for name, value in (("categories", settings.categories), ("interval", settings.interval)):
            if value is not None:
                raise PlanError(
                    f"{settings.title}: {name}: {settings.mechanism} takes words without a public list"
                )
        if missing.policy == "report" or (missing.policy == "category" and self._alphabet is None):
            raise PlanError(
                f"{settings.title}: nulls={missing.policy!r}: missing words are refused or filled"
                + (", or a category" if self._alphabet is not None else "")
            )
        if missing.policy == "fill":
            kind = int if self._alphabet is None else str
            fits = isinstance(missing.fill, kind) and not isinstance(missing.fill, bool)
            if not fits or self._wrong(pa.array([missing.fill])).to_pylist() != [False]:
                raise PlanError(f"{settings.title}: fill: must be a word of the mechanism")

    def _form(self) -> str:
        if self.settings.output not in (None, "codes"):
            asked = self.settings.spelled("output", self.settings.output)
            raise PlanError(f"{asked}: a report of {self.settings.mechanism} is not a word; use codes")
        return "codes"

    def _decoding(self) -> Decoding:
        if self.settings.decode is not None:
            raise PlanError(f"{self.settings.spelled('decode')} is for values, not for codes")
        return Decoding(estimate=f"{self._maker}(...).estimate_top, of the three columns")

    @property
    def _alphabet(self) -> str | None:
        """Letters of the words; None where words are integers."""
        alphabet: str | None = self.mechanism.alphabet
        return alphabet

    @property
    def public(self) -> dict[str, Any]:
        """Letters and length of the words, or the bits of integers."""
        if self._alphabet is None:
            return {"bits": int(self.mechanism.bits)}
        return {"alphabet": self._alphabet, "length": int(self.mechanism.length)}

    # -- reading

    @cached_property
    def _pattern(self) -> str:
        """Pattern of the words of the alphabet, of any length."""
        letters = "".join(f"\\x{{{ord(each):x}}}" for each in self._alphabet or "")
        return f"^[{letters}]*$"

    def _wrong(self, values: Any) -> Any:
        """Return where values are no words; null where a value is missing."""
        if self._alphabet is not None:
            listed = pc.match_substring_regex(values, self._pattern)
            return pc.or_(pc.invert(listed), pc.greater(pc.utf8_length(values), self.mechanism.length))
        if pa.types.is_unsigned_integer(values.type):
            most = (1 << min(int(self.mechanism.bits), values.type.bit_width)) - 1
            return pc.greater(values, pa.scalar(most, values.type))
        most = (1 << min(int(self.mechanism.bits), values.type.bit_width - 1)) - 1
        return pc.or_(pc.less(values, 0), pc.greater(values, pa.scalar(most, values.type)))

    def encode(self, batch: Batch, first_row: int) -> NDArray[Any]:
        """Return (n,) words: texts of the mechanism's length, or uint64."""
        (column,) = self.columns
        if isinstance(batch, np.ndarray):
            raise TypeError("batch: must be a table")
        values, texts = plain_column(batch.column(column)), self._alphabet is not None
        held, name = values.type, self.settings.mechanism
        if pa.types.is_null(held):
            values = values.cast(pa.string() if texts else pa.int64())
        elif texts and not (pa.types.is_string(held) or pa.types.is_large_string(held)):
            raise PlanError(f"column {column!r}: holds {held}, where {name} with an alphabet takes text")
        elif not texts and not pa.types.is_integer(held):
            raise PlanError(
                f"column {column!r}: holds {held}, where {name} with bits takes integers; it takes text with "
                "an alphabet and a length"
            )
        if texts:
            values = pc.if_else(pc.equal(values, ""), pa.scalar(None, values.type), values)
        missing = self.settings.missing
        if missing.policy == "refuse":
            refuse_null(values, column, first_row)
        wrong = pc.fill_null(self._wrong(values), False)
        if pc.any(wrong).as_py():
            row = first_row + first_row_of(wrong)
            longest = (
                f"has other letters than the {len(self._alphabet or '')} of the alphabet, or more than "
                f"{self.mechanism.length}"
                if texts
                else f"is not an integer of {self.mechanism.bits} bits"
            )
            raise DataError(f"row {row}, column {column!r}: {longest}")
        fill = ("" if texts else 0) if missing.fill is None else missing.fill
        if values.null_count:
            values = pc.fill_null(values, pa.scalar(fill, values.type))
        if not texts:
            return np.asarray(values.to_numpy()).astype(np.uint64)
        return np.array(values.to_pylist(), dtype=f"U{self.mechanism.length}")

    # -- releasing and collecting

    @property
    def _several(self) -> bool:
        return True

    @property
    def names(self) -> list[str]:
        """The beginning that a report is about, its hash function, and the code of its cell."""
        return [f"{self.columns[0]}_{part}" for part in ("group", "function", "code")]

    def written(self, reports: Any, arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return the three columns."""
        return [(name, np.ascontiguousarray(part)) for name, part in zip(self.names, reports, strict=True)]

    def _from_codes(self, codes: NDArray[Any]) -> tuple[Any, str]:
        return self.mechanism._join(list(codes.T)), "codes"

    # -- answering

    def reading(self, column: str, of: Of) -> Reading:
        """Refuse: no report stands for a word; see `ColumnCodec.reading`."""
        raise PlanError(
            f"column {column!r}: reports of {self.settings.mechanism} give only its most frequent "
            f"words, by "
            f"top({column!r}); a plan with GRR or OUE and a public list of them would give all shares"
        )

    def labelled(self, words: Any) -> list[Any]:
        """Return words, and None for the one that stands for a missing one."""
        absent = self.settings.missing.policy == "category"
        return [None if absent and word == "" else word for word in words.tolist()]

    def top(self, counts: Any, most: int) -> Estimate:
        """Return the most frequent words and their shares, which other reports tell than choose the words."""
        estimate: Estimate = counts.estimate(most, apart=True)
        return estimate

    @staticmethod
    def doubt(found: Estimate, j: int) -> str:
        """Return what a reader of a word should know of it."""
        rare = found.value[j] < _CLEAR * found.stderr[j]
        return "may be nobody's word: its share is not significantly above 0" if rare else ""

    def answers(self, counts: Any, intervals: Intervals) -> Iterator[dict[str, Any]]:
        """Yield the shares of the most frequent words."""
        about = {"column": self.columns[0], "what": "share", "records": int(counts.n)}
        try:
            found = self.top(counts, _SHOWN)
        except ValueError as error:
            empty = dict.fromkeys(("category", "estimate", "stderr", "interval", "influence"))
            yield {**about, **empty, "note": str(error)}
            return
        first = intervals.add(found, counts.mechanism)
        for j, word in enumerate(self.labelled(found.labels)):
            doubt = self.doubt(found, j)
            yield {
                **about,
                "category": None if word is None else str(word),
                "estimate": float(found.value[j]),
                "stderr": float(found.stderr[j]),
                "interval": first + j,
                "note": "; ".join(filter(None, [doubt, self.filling])) or None,
                "influence": found.influence,
            }
