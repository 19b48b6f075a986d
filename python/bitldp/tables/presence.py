"""Numbers with gaps: whether there is a value is reported beside the number, and both share one budget.

A missing number has no neutral stand-in: whatever takes its place moves the mean. Here a public number does
whose report has it for its mean, so that decoded numbers, less that number, are zero on average for those who
gave none. Their mean is the share of those who answered, times how far above the public number their own mean
is; the bits tell the share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.categorical import GRR
from bitldp.estimate.ratio import fieller
from bitldp.tables.codec import Batch, ColumnCodec, ColumnSettings
from bitldp.tables.frames import Missing, is_missing, plain_column
from bitldp.tables.intervals import Intervals
from bitldp.tables.reading import Of, Reading, by_code

__all__ = ["Presence", "answers_of_present", "with_presence"]

#: Share of the budget that the bit takes: near the best for the mean where that is far from the middle.
_SHARE = 1.0 / 3.0


class Presence(ColumnCodec):
    """Bit of randomized response on whether a column of numbers has a value, in a column of its own."""

    def _check(self) -> None:
        """Take what `with_presence` makes."""

    @property
    def numeric(self) -> tuple[str, ...]:
        """The column."""
        return self.columns

    @property
    def span(self) -> None:
        """None: the bit has no range."""
        return None

    @property
    def public(self) -> dict[str, Any]:
        """Meaning of the two codes."""
        return {"categories": ["missing", "present"]}

    def encode(self, batch: Batch, first_row: int) -> NDArray[np.uint32]:
        """Return (n,) codes: 0 where a value is missing, 1 where there is one."""
        if isinstance(batch, np.ndarray):
            raise TypeError("batch: must be a table")
        there = pc.invert(is_missing(plain_column(batch.column(self.columns[0]))))
        return np.asarray(there.to_numpy(), np.uint32)

    @property
    def names(self) -> list[str]:
        """The column of the bit."""
        return [f"{self.columns[0]}_present"]

    def written(self, reports: NDArray[Any], arrow_type: pa.DataType) -> list[tuple[str, Any]]:
        """Return the column of the bit."""
        return [(self.names[0], reports)]

    def _from_codes(self, codes: NDArray[Any]) -> tuple[Any, str]:
        return codes[:, 0], "codes"

    def reading(self, column: str, of: Of) -> Reading:
        """Return the number that says whether there is a value; see `ColumnCodec.reading`."""
        letters = self.mechanism._indicators(np.arange(2))[:, 1]
        floor = float(self.mechanism.variance(np.arange(2))[:, 1].min())
        return by_code(column, letters, lambda x: np.asarray(x, np.int64).reshape(-1), (0.0, 1.0), floor)

    def answers(self, counts: Any, intervals: Intervals) -> Iterator[dict[str, Any]]:
        """Yield the share of missing values."""
        yield next(self._answers(counts, self.columns, "share", [None, "present"], intervals))


def with_presence(
    codec_of: Callable[[Any, ColumnSettings], ColumnCodec], mechanism: Any, settings: ColumnSettings
) -> tuple[ColumnCodec, ColumnCodec]:
    """Return how a column of numbers and its bit are released, on the budget of the mechanism.

    Raises
    ------
    PlanError
        For several columns, for categories, and for a mechanism whose epsilon cannot be shared.
    """
    settings.refuse_several()
    epsilon = mechanism.parameters.get("epsilon")
    if epsilon is None:
        raise PlanError(f"{settings.title}: nulls='report': {settings.mechanism} has no epsilon to share")
    try:
        number = type(mechanism)._quiet(**{**mechanism.parameters, "epsilon": epsilon * (1.0 - _SHARE)})
        bit = GRR(2, epsilon=epsilon * _SHARE)
    except ValueError as error:
        raise PlanError(f"{settings.title}: nulls='report' takes a third of epsilon: {error}") from None
    codec = codec_of(number, settings)
    if codec.neutral is None:
        raise PlanError(
            f"{settings.title}: nulls='report' is for numbers; nulls='category' reports what is missing of "
            "categories"
        )
    settings = replace(settings, missing=Missing("report", codec.neutral))
    alone = ColumnSettings(settings.columns, missing=settings.missing, output="codes", mechanism="GRR")
    return codec_of(number, settings), Presence(bit, alone)


def answers_of_present(
    codecs: Sequence[ColumnCodec], counts: Sequence[Any], intervals: Intervals
) -> Iterator[dict[str, Any]]:
    """Yield the share of missing values, and the mean of those that are there: a ratio of two estimates.

    Its interval is Fieller's, which holds however near to nothing the share of answers is; the standard error
    is that of the ratio's first order.
    """
    number, bit = codecs
    share = next(bit.answers(counts[1], intervals))
    yield share
    filled = next(number.answers(counts[0], intervals))
    n, neutral = int(counts[0].n), number.neutral or 0.0
    figures: dict[str, float | None] = dict.fromkeys(("estimate", "stderr", "low", "high"))
    notes = [filled["note"]]
    if filled["estimate"] is not None:
        notes.insert(0, "of those who answered")
        present, more = 1.0 - share["estimate"], filled["estimate"] - neutral
        spread, joint = share["stderr"] or math.nan, more * (1.0 - present) / n
        squares = ((filled["stderr"] or math.nan) ** 2, joint, spread**2)
        ratio = fieller(more, present, squares, (1.0 - intervals.level) / 2.0)
        if ratio is None:
            notes.append("too few of them, or too few records, for an estimate")
        else:
            estimate, stderr, low, high = ratio
            figures = {
                "estimate": neutral + estimate,
                "stderr": stderr,
                "low": neutral + low,
                "high": neutral + high,
            }
    yield {**filled, **figures, "interval": None, "note": "; ".join(filter(None, notes)) or None}
