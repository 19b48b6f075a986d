"""Records of a client: the type of their values, the values allowed, and how numbers are prepared."""

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
"""NumPy names of the types of values, little-endian."""

UNITS = {
    "days": "D",
    "hours": "h",
    "minutes": "m",
    "seconds": "s",
    "milliseconds": "ms",
    "microseconds": "us",
}
"""Units of numbers that are dates or times, with their names in NumPy."""


@dataclass(frozen=True)
class ClientRecord:
    """Description of the values of a record: numbers or categories, and which of them are allowed.

    Attributes
    ----------
    type : str
        Type of a value: "f32" or "f64" for numbers; "u8", "u16" or "u32" for the codes of categories.
    columns : int
        Number of values of a record.
    below : int, tuple of int or None
        Number of categories, the same in all columns or one for each column. Of numbers, the number of
        equidistant points of each of `intervals`: the nearest point takes the place of a number. None for
        other numbers.
    labels : tuple of str, tuple of tuple of str, or None
        Texts of the categories, by code, for all columns or for each one. With `fill`, the last label is that
        of a missing value.
    interval : (float, float) or None
        Interval that the numbers lie in; None where there is no such interval.
    outside : {"clip", "refuse"}
        Whether numbers outside the interval, or outside that of their column, are clipped or refused. NaN is
        refused in both cases, unless `fill` or `gaps` allows it.
    names : tuple of str or None
        Names of the values, in a form.
    fill : float, int or None
        Public value in place of a missing one. A missing number is NaN; a missing category is the code
        `below`. None refuses missing values.
    intervals : tuple of (float, float)
        Interval of each column of numbers, which is mapped to `span`. Empty where nothing is mapped.
    span : (float, float) or None
        Interval that all columns are mapped to. Of points: from 0 to the last one.
    gaps : bool
        True where NaN stands for an item that a set lacks. The numbers are mapped to [-1, 1].
    unit : str or None
        Unit of numbers that are dates or times, one of `UNITS`. Instants and dates count from 1970-01-01
        00:00 UTC, times of day from midnight.
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
        """Return the record of categories with codes from 0, in the smallest type that holds them."""
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
        """Number of codes that are allowed: the categories, and one more where a value may be missing."""
        if self.fill is None or not isinstance(self.below, int):
            return self.below
        return self.below + 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a value as NumPy has it."""
        return np.dtype(DTYPES[self.type])

    @property
    def bytes(self) -> int:
        """Number of bytes of a record."""
        return self.columns * self.dtype.itemsize

    def checked(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return prepared values of shape (n, columns), in the machine's byte order; refuse others.

        Where numbers move to points, the values are the numbers of the points, uint32. A number halfway
        between two points moves to the even one.
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
        """Return values with missing ones filled and columns mapped to the span.

        A number outside its column's interval becomes infinite where such numbers are refused.
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
