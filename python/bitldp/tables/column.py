"""One mechanism of a plan, and the columns that it releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bitldp.base import checks
from bitldp.base.errors import PlanError
from bitldp.mechanism.base import Mechanism
from bitldp.tables.attributes import Attributes
from bitldp.tables.cells import Codec, Labels, Missing, Numbers, Points, Reals
from bitldp.tables.part import Part, form
from bitldp.tables.worth import worth

__all__ = ["Column"]

_POLICIES = ("refuse", "category", "fill")
_TAKEN = ("numbers", "reals", "categories", "points", "record")


@dataclass(frozen=True)
class Column:
    """One mechanism, and the column or columns of a table that it releases.

    Parameters
    ----------
    mechanism : Mechanism
        Any that takes columns: numbers, categories, or points of an interval. Its epsilon is that of one
        record over all columns named here.
    columns : str or sequence of str
        As many as the mechanism takes, together.
    categories : sequence, optional
        The public list of the values of a column of categories, in the order of the mechanism's categories;
        of a mechanism with labels, its labels. Of `label`, where there is one. Of `CategoricalRecord` and
        `MixedRecord`, a list for each column of categories, which come after the columns of numbers.
    interval : (float, float), optional
        For a mechanism of categories on a column of numbers: its categories are as many points of this
        interval, both ends among them, and each number counts as the nearest.
    nulls : {"refuse", "category", "fill"}
        A missing value (null or NaN) is refused; is a category of its own, after all others (the mechanism
        has one more then); or counts as the public value `fill`. It never passes through.
    fill : float or str, optional
        With ``nulls="fill"``: what a missing value counts as.
    output : {"values", "codes", "bits"}, optional
        What the released columns hold. "values": numbers whose mean is right, or category labels. "codes":
        numbers of reports. "bits": a column for each bit. Default: values; code words of mechanisms of bits;
        bits where a report is nothing else.
    label : str, optional
        For `BitRand`: the column of its class label.
    decode : {"unbiased", "reported"}, optional
        For numbers as values: letters whose mean is right (default, where there are any), or what each report
        says by itself, which is biased.

    Raises
    ------
    PlanError
        For a mechanism that takes no columns, or another number of them, and for what does not apply to it.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.tables import Column
    >>> Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["Paris", "Rome", "Oslo"])
    Column(GRR(categories=3, epsilon=1.0, features=1, unit='record'), columns=('city',))
    """

    mechanism: Mechanism
    columns: Sequence[str]
    categories: Sequence[Any] | None = None  # of a record, lists of them
    interval: tuple[float, float] | None = None
    nulls: Literal["refuse", "category", "fill"] = "refuse"
    fill: float | str | None = None
    output: Literal["values", "codes", "bits"] | None = None
    label: str | None = None
    decode: Literal["unbiased", "reported"] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise PlanError(f"mechanism: must be one of bitldp's, not {type(self.mechanism).__name__}")
        columns = (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)
        if not columns or not all(isinstance(name, str) and name for name in columns):
            raise PlanError("columns: must be one or more names")
        self._set("columns", columns)
        if self.categories is not None:
            if isinstance(self.categories, str):
                raise PlanError("categories: must be a list of values, not one text")
            listed = _texts if self.mechanism.takes == "record" else _text
            self._set("categories", tuple(listed(value) for value in self.categories))
        if self.interval is not None:
            self._set("interval", checks.interval("interval", self.interval))
        checks.choice("nulls", self.nulls, _POLICIES)
        if (self.nulls == "fill") != (self.fill is not None):
            raise PlanError(f"{self._name}: nulls='fill' and fill= go together")
        self._set("_parts", self._made())

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def of(cls, part: Part) -> Column:
        """Return the column of one mechanism that is already on its columns."""
        codec = part.codec
        return cls(
            part.mechanism,
            codec.columns,
            categories=codec.categories if isinstance(codec, (Labels, Attributes)) else None,
            interval=(codec.low, codec.high) if isinstance(codec, Points) and codec.indices else None,
            output=part.output,  # type: ignore[arg-type]
            decode=part.worth.decode or None,  # type: ignore[arg-type]
        )

    @property
    def _name(self) -> str:
        return f"column {', '.join(map(repr, self.columns[:3]))}{' ...' if len(self.columns) > 3 else ''}"

    @property
    def parts(self) -> tuple[Part, ...]:
        """The independent mechanisms behind it, each with its columns."""
        made: tuple[Part, ...] = self._parts  # type: ignore[attr-defined]
        return made

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that it reads, in its order."""
        return tuple(name for part in self.parts for name in part.codec.columns)

    def _made(self) -> tuple[Part, ...]:
        mechanism = self.mechanism
        if mechanism.takes not in _TAKEN:
            raise PlanError(f"{type(mechanism).__name__}: takes no columns of a table")
        if mechanism.takes == "record":
            if self.label is not None or self.interval is not None:
                raise PlanError(f"{self._name}: {type(mechanism).__name__} takes neither label nor interval")
            return (self._part(mechanism, self._record(mechanism)),)
        if len(mechanism.parts) > 1:  # features, and a label
            if self.label is None:
                raise PlanError(f"{type(mechanism).__name__}: name its label's column by label=")
            features, label = mechanism.parts
            return (
                self._part(features, self._codec(features, labelled=False)),
                self._part(label, self._labels(label, self.label), self.output != "bits"),
            )
        if self.label is not None:
            raise PlanError(
                f"label: {type(mechanism).__name__} has none; give the column a mechanism of its own"
            )
        plain = _without_labels(mechanism)
        return (self._part(plain, self._codec(plain, labelled=True)),)

    def _part(self, mechanism: Any, codec: Codec, same: bool = True) -> Part:
        output = form(type(mechanism).__name__, mechanism, self.output if same else None)
        decode = self.decode if same else None
        return Part(
            mechanism, codec, output, worth(type(mechanism).__name__, mechanism, codec, output, decode)
        )

    def _codec(self, mechanism: Any, *, labelled: bool) -> Codec:
        if len(self.columns) != mechanism.columns:
            raise PlanError(
                f"{self._name}: {type(mechanism).__name__} takes {mechanism.columns} columns, "
                f"got {len(self.columns)}"
            )
        columns, missing = tuple(self.columns), Missing(self.nulls, self.fill)
        if mechanism.takes in ("numbers", "reals"):
            if labelled and self.categories is not None:
                raise PlanError(f"{self._name}: categories: {type(mechanism).__name__} takes numbers")
            self._numeric(missing)
            if mechanism.takes == "numbers":
                return Numbers(columns, missing=missing)
            low, high = mechanism.ends
            return Reals(columns, low, high, mechanism.k or len(columns), mechanism.clip, missing=missing)
        if len(self.columns) > 1:
            raise PlanError(f"{self._name}: give each of them a mechanism of its own, whose epsilons add up")
        ends = mechanism.ends if mechanism.takes == "points" else None
        if ends is None and self.interval is None:
            return self._labels(mechanism, self.columns[0])
        if ends is not None and self.interval is not None:
            raise PlanError(f"{self._name}: interval: {type(mechanism).__name__} has its own")
        if ends is None and not mechanism.on_points:
            raise PlanError(f"{self._name}: interval: {type(mechanism).__name__} takes categories")
        self._numeric(missing)
        low, high = ends or self.interval or (0.0, 1.0)
        return Points(columns, low, high, _cells(mechanism), ends is None, missing)

    def _record(self, mechanism: Any) -> Attributes:
        """Return the codec of a record of several columns under one budget."""
        if len(self.columns) != mechanism.columns:
            raise PlanError(
                f"{self._name}: {type(mechanism).__name__} takes {mechanism.columns} columns, "
                f"got {len(self.columns)}"
            )
        if self.nulls == "fill":
            raise PlanError(f"{self._name}: nulls='fill' is for one column, and a record has several")
        sizes = tuple(int(each) for each in mechanism.sizes)
        numbers = tuple(self.columns[: len(self.columns) - len(sizes)])
        names = self.columns[len(numbers) :]
        if self.categories is None or len(self.categories) != len(sizes):
            raise PlanError(
                f"{self._name}: needs categories=, the public lists of the values of {len(sizes)} columns"
            )
        missing = Missing(self.nulls)
        labels = []
        for name, size, categories in zip(names, sizes, self.categories, strict=True):
            own = len(categories) + (self.nulls == "category")
            if own != size:
                extra = " and one of missing values" if self.nulls == "category" else ""
                raise PlanError(
                    f"column {name!r}: {type(mechanism).__name__} has {size} categories there, the list "
                    f"{len(categories)}{extra}"
                )
            if len(set(categories)) != len(categories):
                raise PlanError(f"column {name!r}: categories: two are the same")
            labels.append(Labels((name,), tuple(categories), missing))
        reals = None
        if numbers:
            if self.nulls == "category":
                self._numeric(missing)
            low, high = mechanism.interval
            reals = Reals(numbers, low, high, len(numbers), mechanism.clip)
        return Attributes(reals, tuple(labels), mechanism.k is not None, mechanism.report_parts)

    def _numeric(self, missing: Missing) -> None:
        """Refuse what says nothing to a column of numbers."""
        if missing.policy == "category":
            raise PlanError(
                f"{self._name}: nulls='category' is for categories; numbers are refused or filled"
            )
        number = isinstance(self.fill, (int, float)) and not isinstance(self.fill, bool)
        if missing.policy == "fill" and not (number and math.isfinite(float(self.fill or 0))):
            raise PlanError(f"{self._name}: fill: must be a finite number")

    def _labels(self, mechanism: Any, column: str) -> Labels:
        categories = self.categories if self.categories is not None else _labels_of(self.mechanism)
        if categories is None:
            raise PlanError(
                f"{self._name}: needs categories=, the public list of its values; a list learned from "
                "private data would reveal which values occur in it"
            )
        own = len(categories) + (self.nulls == "category")
        if own != _cells(mechanism):
            extra = " and one of missing values" if self.nulls == "category" else ""
            raise PlanError(
                f"{self._name}: {type(mechanism).__name__} has {_cells(mechanism)} categories, "
                f"the list {len(categories)}{extra}"
            )
        if len(set(categories)) != len(categories):
            raise PlanError(f"{self._name}: categories: two are the same")
        if self.nulls == "fill" and _text(self.fill) not in categories:
            raise PlanError(f"{self._name}: fill: must be one of the categories")
        fill = None if self.fill is None else _text(self.fill)
        return Labels((column,), tuple(categories), Missing(self.nulls, fill), mechanism.report_names)

    def __repr__(self) -> str:
        """Return the mechanism and the names of its columns."""
        label = "" if self.label is None else f", label={self.label!r}"
        return f"Column({self.mechanism!r}, columns={tuple(self.columns)!r}{label})"


def _text(value: Any) -> str:
    """Return a category as it is written in a table."""
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else str(value)


def _texts(values: Any) -> tuple[str, ...]:
    """Return the categories of one column of a record."""
    if isinstance(values, str) or not np.iterable(values):
        raise PlanError("categories: must be a list of values for each column of categories")
    return tuple(_text(value) for value in values)


def _cells(mechanism: Any) -> int:
    """Return how many categories or points a mechanism has."""
    size = mechanism.usual_size if mechanism.sized_by is None else mechanism.parameters[mechanism.sized_by]
    return int(size) if isinstance(size, (int, np.integer)) else len(size)


def _labels_of(mechanism: Any) -> tuple[str, ...] | None:
    labels = getattr(mechanism, "labels", None)
    return None if labels is None else tuple(_text(label) for label in labels.tolist())


def _without_labels(mechanism: Any) -> Any:
    """Return a mechanism of numbered categories with the law of one with labels."""
    if getattr(mechanism, "labels", None) is None:
        return mechanism
    parameters = dict(mechanism.parameters)
    parameters[mechanism.sized_by] = len(mechanism.labels)
    return type(mechanism)._quiet(**parameters)
