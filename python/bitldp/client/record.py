"""Values that go into a client: their type, what is allowed, and what happens to numbers first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bitldp.base.arrays import position

__all__ = ["UNITS", "ClientRecord", "Type"]

Type = Literal["f32", "f64", "u8", "u16", "u32"]

DTYPES = {"f32": "<f4", "f64": "<f8", "u8": "u1", "u16": "<u2", "u32": "<u4"}
"""Bytes of the values of a record, by their type: little-endian."""

UNITS = {
    "days": "D",
    "hours": "h",
    "minutes": "m",
    "seconds": "s",
    "milliseconds": "ms",
    "microseconds": "us",
}
"""Units of numbers that are dates or times, and NumPy's names of them."""


@dataclass(frozen=True)
class ClientRecord:
    """Values of a record.

    Attributes
    ----------
    type : str
        "f32", "f64", "u8", "u16" or "u32".
    columns : int
        How many values it has.
    below : int, tuple of int or None
        Of categories: how many there are, in all columns or in each. Of numbers: how many equidistant points
        each of `intervals` has, of which the nearest one takes a number's place.
    labels : tuple of str, tuple of tuple of str, or None
        Of categories: their texts, by code, or those of each column; with `fill`, that of a missing value is
        the last one.
    interval : (float, float) or None
        Of numbers: where they lie, if that is anywhere.
    outside : {"clip", "refuse"}
        Of numbers: what becomes of those outside the interval, or outside that of their column. NaN is
        refused always.
    names : tuple of str or None
        What each value is called, in a form.
    fill : float, int or None
        What takes the place of a missing value: of numbers, of NaN; of categories, of the code `below`. None:
        it is refused.
    intervals : tuple of (float, float)
        Of numbers: an interval for each column, which is mapped to `span`.
    span : (float, float) or None
        Interval that all columns are mapped to. Of points: from 0 to the last one.
    gaps : bool
        Of numbers that are mapped to [-1, 1]: whether NaN says that there is none.
    unit : str or None
        Of numbers that are dates or times: what they count, one of `UNITS`. Instants and dates count from
        1970-01-01 00:00 UTC, times of day from midnight.
    """

    type: Type
    columns: int = 1
    below: int | tuple[int, ...] | None = None
    labels: tuple[str, ...] | tuple[tuple[str, ...], ...] | None = None
    interval: tuple[float, float] | None = None
    outside: Literal["clip", "refuse"] = "clip"
    names: tuple[str, ...] | None = None
    fill: float | int | None = None
    intervals: tuple[tuple[float, float], ...] = ()
    span: tuple[float, float] | None = None
    unit: str | None = None
    gaps: bool = False

    @classmethod
    def of_codes(
        cls, below: int | tuple[int, ...], columns: int = 1, labels: Iterable[Any] | None = None
    ) -> ClientRecord:
        """Return the record of categories from 0, of the smallest type."""
        most = max(below) if isinstance(below, tuple) else below
        kind: Type = "u8" if most <= 1 << 8 else "u16" if most <= 1 << 16 else "u32"
        return cls(kind, columns, below, None if labels is None else tuple(map(str, labels)))

    @property
    def real(self) -> bool:
        """True where numbers are given, whatever becomes of them."""
        return self.type[0] == "f"

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The labels of each column, or those of all columns; none where there are none."""
        if not self.labels:
            return ()
        several: Any = self.labels if isinstance(self.labels[0], tuple) else (self.labels,)
        return tuple(several)

    @property
    def codes(self) -> int | tuple[int, ...] | None:
        """How many codes may be given: as many as categories, and one more where a value may be missing."""
        if self.fill is None or not isinstance(self.below, int):
            return self.below
        return self.below + 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a value in memory."""
        return np.dtype(DTYPES[self.type])

    @property
    def bytes(self) -> int:
        """Bytes of a record."""
        return self.columns * self.dtype.itemsize

    def checked(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return values of shape (n, columns) in the machine's byte order; refuse those not allowed.

        Numbers of points are those of the nearest ones, of two as near that of the even one.
        """
        values = self._prepared(np.ascontiguousarray(x, self.dtype.newbyteorder("=")))
        if self.below is not None and not self.real:
            wrong, reason = values >= np.array(self.below), f"is not below {self.below}"
        else:
            wrong, reason = np.isnan(values), "is NaN"
            if self.gaps:
                wrong, reason = np.isinf(values), "is outside its interval"
            elif self.interval is None and self.span is not None and self.outside == "refuse":
                wrong, reason = ~np.isfinite(values), "is NaN or outside its interval"
            elif self.interval is not None and self.outside == "refuse":
                low, high = (values.dtype.type(end) for end in self.interval)
                wrong, reason = ~((values >= low) & (values <= high)), f"is NaN or outside {self.interval}"
        if wrong.any():
            raise ValueError(f"x: {position(wrong)} {reason}")
        return np.rint(values).astype(np.uint32) if self.real and self.below is not None else values

    def _prepared(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values with a public one in place of each missing one, and columns mapped to the span.

        A number that is refused since it is outside its column's interval becomes infinite.
        """
        if self.fill is not None:
            missing = np.isnan(values) if self.real else values == self.below
            values = np.where(missing, values.dtype.type(self.fill), values)
        if self.span is None:
            return values
        (low, high), (first, last) = np.array(self.intervals).T, self.span
        beyond = (values < low) | (values > high) if self.outside == "refuse" else False
        shares = (values.clip(low, high) - low) / (high - low)
        mapped = np.where(shares >= 1.0, last, first + shares * (last - first)).clip(first, last)
        return np.ascontiguousarray(np.where(beyond, np.inf, mapped))
