"""One mechanism of a plan and the columns that it releases: in Python, as JSON values, and in TOML."""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

import bitldp
from bitldp.base import checks
from bitldp.base.errors import MissingExtraError, PlanError, require
from bitldp.codecs import Categories
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.parameters import lasting, short_name
from bitldp.record.categorical import LabelledAttributes
from bitldp.tables import numbers, ranges, record, words  # noqa: F401  # kinds of columns, which register
from bitldp.tables.codec import KINDS, ColumnCodec, ColumnSettings
from bitldp.tables.frames import Missing
from bitldp.tables.intervals import Intervals
from bitldp.tables.labels import text_of
from bitldp.tables.presence import answers_of_present, with_presence
from bitldp.tables.values import UNITS

__all__ = ["Column", "canonical_digest", "columns_of_toml", "toml_of"]

_POLICIES = ("refuse", "category", "fill", "report")
_FIELDS = ("categories", "interval", "nulls", "fill", "output", "label", "decode", "unit")
_KEYS = ("mechanism", "parameters", "columns", *_FIELDS)
_DEFAULTS: dict[str, Any] = dict.fromkeys(_FIELDS) | {"nulls": "refuse"}


def canonical_digest(values: Any) -> str:
    """Return the SHA-256 of JSON values, written in the one way that has keys sorted and no spaces."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Column:
    """One mechanism, and the column or columns of a table that it releases.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism for columns of numbers, categories, or points of an interval. Its epsilon is that of one
        record over all columns named here.
    columns : str or sequence of str
        As many columns as the mechanism takes; or, for several features, one column of lists with that many
        numbers, such as embeddings. A list column "x" is released as the columns "x[0]", "x[1]" and so on.
    categories : sequence, optional
        Public list of the values of a column of categories, in the order of the mechanism's categories (its
        labels, if the mechanism has labels). With `label`, the list is for that column. For
        `CategoricalRecord` and `MixedRecord`, a list for each column of categories, which come after the
        columns of numbers.
    interval : (float, float), or a sequence of them, optional
        For a mechanism of categories on a column of numbers: its categories are that many points of this
        interval, including both ends, and each number counts as the nearest point. For a mechanism of several
        numbers (`JointWindow`, `MixedRecord`, ...): an interval for each column of numbers, or one for all of
        them. It is mapped to the mechanism's interval before randomizing, and back in every answer.
    nulls : {"refuse", "category", "fill", "report"}
        What to do with a missing value (null or NaN). "refuse": raise an error. "category": treat it as a
        category of its own, after all others (a mechanism with as many categories as are listed gets one
        more). "fill": treat it as the public value `fill`, which biases the answers about those who answered.
        "report": for one column of numbers, also report a bit that says whether there is a value; the bit
        takes a third of the mechanism's epsilon. A missing value is never released as it is.
    fill : float or str, optional
        Value of a missing entry, with ``nulls="fill"``.
    output : {"values", "codes", "bits"}, optional
        Content of the released columns. "values": unbiased numbers, or category labels. "codes": numbers of
        reports. "bits": a column for each bit. Default: values; for mechanisms of bits, code words; bits if a
        report consists of bits only.
    label : str, optional
        For `BitRand`: the column of its class label.
    decode : {"unbiased", "reported"}, optional
        For numbers as values: unbiased decoded values (default, if there are any), or the number that each
        report spells by itself, which is biased.
    unit : str, optional
        For dates and times as numbers: one of "days", "hours", "minutes", "seconds", "milliseconds" and
        "microseconds", which the mechanism's interval counts, too. Instants and dates count from 1970-01-01
        00:00 UTC, times of day from midnight; texts are ISO 8601. Without it dates count days, and other
        times are refused.

    Raises
    ------
    PlanError
        For a mechanism that does not take columns, or another number of them, and for an option that does not
        apply to it.

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
    interval: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    nulls: Literal["refuse", "category", "fill", "report"] = "refuse"
    fill: float | str | None = None
    output: Literal["values", "codes", "bits"] | None = None
    label: str | None = None
    decode: Literal["unbiased", "reported"] | None = None
    unit: str | None = None

    #: How each independent mechanism behind the column reads, releases and answers.
    codecs: tuple[ColumnCodec, ...] = field(init=False, repr=False, compare=False)

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
            listed = _texts if self.mechanism._takes == "record" else text_of
            self._set("categories", tuple(listed(value) for value in self.categories))
        if self.interval is not None:
            self._set("interval", _intervals(self.interval))
        if self.nulls == "category":
            self._count_missing()
        checks.choice("nulls", self.nulls, _POLICIES)
        if (self.nulls == "fill") != (self.fill is not None):
            raise PlanError(f"{ColumnSettings(columns).title}: nulls='fill' and fill= need each other")
        if self.unit is not None:
            checks.choice("unit", self.unit, tuple(UNITS))
        self._set("codecs", self._made())
        if self.unit is not None and not any(codec.numeric for codec in self.codecs):
            raise PlanError(
                f"{ColumnSettings(columns).title}: unit: is for numbers, and these are categories"
            )

    def _count_missing(self) -> None:
        """Give a mechanism that has as many categories as are listed one more, for missing values."""
        mechanism, listed = self.mechanism, self.categories
        if listed is None:
            listed = _labels_of(mechanism)
        if listed is None or len(mechanism._members) > 1:
            return
        if isinstance(mechanism, LabelledAttributes):
            sizes = tuple(map(len, listed))
            if mechanism._sizes != sizes:
                return
            more: Any = {"attributes": tuple(size + 1 for size in sizes)}
        elif mechanism._sized_by is not None and mechanism.parameters[mechanism._sized_by] is not None:
            size = mechanism.parameters[mechanism._sized_by]
            if (size if isinstance(size, (int, np.integer)) else len(size)) != len(listed):
                return
            more = {mechanism._sized_by: len(listed) + 1}
        else:
            return
        self._set("mechanism", type(mechanism)._quiet(**{**mechanism.parameters, **more}))
        self._set("categories", tuple(listed))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that it reads, in its order."""
        return (*self.columns, *(() if self.label is None else (self.label,)))

    def settings(self, mechanism: Mechanism) -> ColumnSettings:
        """Return the settings of one mechanism of the column; its errors name them as a plan does."""
        categories = self.categories if self.categories is not None else _labels_of(self.mechanism)
        own = mechanism._takes in ("reals", "record")
        interval: Any = self.interval
        several: Any = interval if interval is not None and isinstance(interval[0], tuple) else ()
        if several and not own:
            raise PlanError(f"interval: {type(mechanism).__name__} takes one")
        columns, listed = tuple(self.columns), None
        if len(columns) == 1 and mechanism.columns > 1 and mechanism._takes in ("numbers", "reals"):
            listed = columns[0]
            columns = tuple(f"{listed}[{j}]" for j in range(mechanism.columns))
        return ColumnSettings(
            columns=columns,
            listed=listed,
            categories=None if categories is None else tuple(categories),
            interval=None if own else interval,
            intervals=several or ((interval,) if own and interval is not None else ()),
            missing=Missing(self.nulls, self.fill),
            output=self.output,
            decode=self.decode,
            unit=self.unit,
            mechanism=type(mechanism).__name__,
        )

    def _made(self) -> tuple[ColumnCodec, ...]:
        mechanism = self.mechanism
        if len(mechanism._members) == 1:
            if self.label is not None:
                raise PlanError(
                    f"label: {type(mechanism).__name__} has no label; give the column a mechanism of its own"
                )
            settings = self.settings(mechanism)
            if self.nulls == "report":
                return with_presence(self._codec, mechanism, settings)
            return (self._codec(_without_labels(mechanism), settings),)
        if self.label is None:
            raise PlanError(f"{type(mechanism).__name__}: name its label's column by label=")
        if self.nulls == "report":
            raise PlanError(
                f"nulls='report': is for one column of numbers; {type(mechanism).__name__} has a label, too"
            )
        features, label = mechanism._members  # features, and a label
        both = self.settings(features)
        alone = replace(self.settings(label), columns=(self.label,), interval=None)
        if self.output == "bits":  # of numbers
            alone = replace(alone, output=None, decode=None)
        return self._codec(features, replace(both, categories=None)), self._codec(label, alone)

    def _codec(self, mechanism: Any, settings: ColumnSettings) -> ColumnCodec:
        takes = mechanism._takes
        if takes in ("categories", "points"):  # of an interval, or of a public list
            takes = "categories" if mechanism._span is None and settings.interval is None else "points"
        if takes not in KINDS:
            raise PlanError(f"{type(mechanism).__name__}: takes no columns of a table")
        return KINDS[takes](mechanism, settings)

    def answers(self, counts: Sequence[Any], intervals: Intervals) -> Iterator[dict[str, Any]]:
        """Yield the answers that counts give, one accumulator for each of `codecs`."""
        if self.nulls == "report":
            yield from answers_of_present(self.codecs, counts, intervals)
            return
        for codec, each in zip(self.codecs, counts, strict=True):
            yield from codec.answers(each, intervals)

    def __repr__(self) -> str:
        """Return the mechanism and the names of its columns."""
        label = "" if self.label is None else f", label={self.label!r}"
        return f"Column({self.mechanism!r}, columns={tuple(self.columns)!r}{label})"

    def explicit(self) -> Column:
        """Return the column with its output and its decoding as they were chosen."""
        (codec,) = self.codecs
        made = replace(
            self,
            mechanism=codec.mechanism,
            categories=codec.categories or None,
            output=codec.output,  # type: ignore[arg-type]
            decode=codec.decoding.decode or None,  # type: ignore[arg-type]
        )
        made._set("codecs", self.codecs)  # which know why a decoding was chosen
        return made

    def to_document(self, *, named: bool = False) -> dict[str, Any]:
        """Return the column as JSON values.

        Parameters
        ----------
        named : bool
            Whether to use the parameter names of the constructor, for readers. Otherwise the permanent names,
            which the plan's digest covers.

        Raises
        ------
        PlanError
            For a mechanism with a parameter that is a function, which no file can hold.
        """
        document = {**_described(self.mechanism, named), "columns": list(self.columns)}
        for name in _FIELDS:
            value = getattr(self, name)
            if value != _DEFAULTS[name]:
                document[name] = _listed(value)
        return document

    @classmethod
    def from_document(cls, document: Any) -> Column:
        """Return the column that JSON values say.

        Raises
        ------
        PlanError
            For an unknown key, mechanism or parameter, and for what a constructor refuses.
        """
        if not isinstance(document, Mapping):
            raise PlanError("column: must be a table of keys")
        for name in document:
            if name not in _KEYS:
                raise PlanError(f"{name}: no such key; a column has {', '.join(_KEYS)}")
        for name in ("mechanism", "columns"):
            if name not in document:
                raise PlanError(f"{name}: is needed")
        mechanism = _constructed(document["mechanism"], document.get("parameters", {}))
        columns = document["columns"]
        if not isinstance(columns, (str, list)):
            raise PlanError("columns: must be a name or a list of names")
        try:
            return cls(mechanism, columns, **{name: document[name] for name in _FIELDS if name in document})
        except (TypeError, ValueError) as error:
            raise PlanError(str(error)) from None


def _intervals(value: Any) -> Any:
    """Return an interval, or several."""
    given: list[Any] = list(value) if np.iterable(value) else []
    if given and all(np.iterable(each) and not isinstance(each, str) for each in given):
        return tuple(checks.interval(f"interval[{i}]", each) for i, each in enumerate(given))
    return checks.interval("interval", value)


def _listed(value: Any) -> Any:
    """Return tuples as lists, those in them, too."""
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


def _texts(values: Any) -> tuple[str, ...]:
    """Return the categories of one column of a record."""
    if isinstance(values, str) or not np.iterable(values):
        raise PlanError("categories: must be a list of values for each column of categories")
    return tuple(text_of(value) for value in values)


def _labels_of(mechanism: Mechanism) -> tuple[Any, ...] | None:
    """Return the labels, as text, that a mechanism was given in place of its numbers of categories."""
    if isinstance(mechanism, LabelledAttributes):
        several = mechanism._dictionaries
        return None if None in several else tuple(_label_texts(each) for each in several if each is not None)
    size = None if mechanism._sized_by is None else mechanism.parameters[mechanism._sized_by]
    return _label_texts(size) if isinstance(size, Categories) else None


def _label_texts(labels: Categories) -> tuple[str, ...]:
    return tuple(map(text_of, labels.labels.tolist()))


def _without_labels(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism of numbered categories with the law of one with labels."""
    if isinstance(mechanism, LabelledAttributes):
        return mechanism._without_labels()
    labels = _labels_of(mechanism)
    if labels is None or mechanism._sized_by is None:
        return mechanism
    return type(mechanism)._quiet(**{**mechanism.parameters, mechanism._sized_by: len(labels)})


# -- mechanisms as JSON values


def _described(mechanism: Mechanism, named: bool) -> dict[str, Any]:
    """Return a mechanism by its class and parameters: by lasting names, or those of the constructor."""
    kind = type(mechanism)
    ids = lasting(kind)
    return {
        "mechanism": kind.__name__ if named else short_name(kind),
        "parameters": {
            name if named else ids[name]: _plain(kind.__name__, name, value, named)
            for name, value in mechanism.parameters.items()
            if value is not None
        },
    }


def _plain(kind: str, name: str, value: Any, named: bool) -> Any:
    if isinstance(value, Categories):
        return value.labels.tolist()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return [_plain(kind, name, each, named) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise PlanError(f"{kind}: its {name} is infinite, which a plan's file does not hold")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mechanism):
        return _described(value, named)
    raise PlanError(f"{kind}: its {name} is a {type(value).__name__}, which a plan's file does not hold")


def _constructed(name: Any, parameters: Any) -> Mechanism:
    kind = getattr(bitldp, name, None) if isinstance(name, str) and name in bitldp.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, Mechanism)):
        alike = {each.casefold(): each for each in bitldp.__all__ if each[0].isupper()}
        close = get_close_matches(str(name).casefold(), alike, 1)
        meant = f"is {alike[close[0]]} meant?" if close else "it is the name of a class, as GRR"
        raise PlanError(f"mechanism: {name!r} is not a mechanism of bitldp; {meant}")
    if not isinstance(parameters, Mapping):
        raise PlanError("parameters: must be a table of the mechanism's parameters")
    names = {before: now for now, before in lasting(kind).items()}
    given = {names.get(str(key), str(key)): _parameter(each) for key, each in parameters.items()}
    try:
        return kind(**given)
    except MissingExtraError:
        raise
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        text = str(error).replace(
            f"{kind.__name__}.__init__() got an unexpected keyword argument ", "no parameter "
        )
        raise PlanError(f"{kind.__name__}: {text}") from None


def _parameter(value: Any) -> Any:
    """Return a parameter of a document as a constructor takes it."""
    if isinstance(value, Mapping):
        return _constructed(value.get("mechanism"), value.get("parameters", {}))
    if isinstance(value, list) and value and isinstance(value[0], list):
        sizes = {len(each) if isinstance(each, list) else 0 for each in value}
        return np.asarray(value) if len(sizes) == 1 else value  # a matrix, or lists of labels
    return value


# -- plans as TOML


def toml_of(
    columns: Sequence[Mapping[str, Any]],
    keep: Sequence[str],
    types: Mapping[str, str],
    keep_as: Mapping[str, str],
) -> str:
    """Return a plan as TOML, of its columns as JSON values.

    Raises
    ------
    MissingExtraError
        Without tomli-w.
    """
    require("writing a plan as TOML", ["tomli_w"], "tables")
    import tomli_w

    stated = {"keep": list(keep), "types": dict(types), "keep_as": dict(keep_as)}
    return tomli_w.dumps({**{name: each for name, each in stated.items() if each}, "column": list(columns)})


def columns_of_toml(text: str) -> tuple[list[Column], list[str], dict[str, Any], dict[str, Any]]:
    """Return the columns of a plan's TOML, its kept names, stated types, and what is kept in another form.

    Raises
    ------
    PlanError
        For a text that is no plan; the message begins with the line that is wrong.
    """
    document = _loads(text)
    for name in document:
        if name not in ("column", "keep", "types", "keep_as"):
            raise PlanError(
                f"line {_line(text, name)}: {name}: no such key; a plan has column, keep, types and keep_as"
            )
    keep = document.get("keep", [])
    if not (isinstance(keep, list) and all(isinstance(name, str) for name in keep)):
        raise PlanError(f"line {_line(text, 'keep')}: keep: must be a list of names")
    types = document.get("types", {})
    if not isinstance(types, dict):
        raise PlanError(f"line {_line(text, 'types')}: types: must be a type for each name of a column")
    keep_as = document.get("keep_as", {})
    if not isinstance(keep_as, dict):
        raise PlanError(f"line {_line(text, 'keep_as')}: keep_as: must be a form for the name of a column")
    tables = document.get("column", [])
    if not isinstance(tables, list) or not tables:
        raise PlanError("line 1: a plan has one or more [[column]] tables")
    starts = [number for number, line in enumerate(text.splitlines(), 1) if _HEAD.match(line)]
    if len(starts) != len(tables):  # written in another form of TOML
        starts = [1] * len(tables)
    made = [_located(text, start, table) for start, table in zip(starts, tables, strict=True)]
    return made, keep, types, keep_as


_HEAD = re.compile(r"\s*\[\[\s*column\s*\]\]")


def _located(text: str, start: int, table: Any) -> Column:
    """Return a column; an error begins with the line of the text that is wrong."""
    try:
        return Column.from_document(table)
    except PlanError as error:
        named = str(error).partition(":")[0].split()[-1]
        lines = text.splitlines()[start:]
        ends = next((i for i, line in enumerate(lines) if line.lstrip().startswith("[[")), len(lines))
        key = re.compile(rf"\s*(\[column\.)?{re.escape(named)}\b")
        own = next((i for i, line in enumerate(lines[:ends], start + 1) if key.match(line)), start)
        raise PlanError(f"line {own}: {error}") from None


def _line(text: str, name: str) -> int:
    key = re.compile(rf"\s*\[*{re.escape(name)}\b")
    return next((i for i, line in enumerate(text.splitlines(), 1) if key.match(line)), 1)


def _loads(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        require("plan files on Python 3.10", ["tomli"], "tables")
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise PlanError("line 1: lists or tables are nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"at line (\d+)", str(error))
        line = where[1] if where else str(len(text.splitlines()) or 1)
        raise PlanError(f"line {line}: {re.sub(r' [(]at .*[)]', '', str(error))}") from None
