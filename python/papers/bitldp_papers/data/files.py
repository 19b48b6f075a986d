"""Data sets of anybody: a file of records, and the public ranges of its columns."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from bitldp.base.errors import require
from numpy.typing import NDArray

from bitldp_papers.data.dataset import Dataset, DatasetError
from bitldp_papers.data.sources import parts

__all__ = ["SUFFIXES", "PublicRanges", "read", "vectors"]

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npz")

Columns = Mapping[str, Any]

_HOW = (
    "what a column can hold is public, and never read off the records. A file of TOML says it: [intervals] "
    'with lines like age = [0, 120] or "pixel_*" = [0, 255], [categories] with lines like kind = ["a", "b"], '
    'ignore = ["id"] above both; the label is in either'
)
_UNNAMED = "'' has no name, as the index that pandas writes: to_csv(index=False), or ignore = [\"\"]"
_EXAMPLES = 3  # columns that an error names


@dataclass(frozen=True)
class PublicRanges:
    """Public facts of the columns of a table, from its documentation or its purpose.

    Attributes
    ----------
    intervals : mapping of str to (float, float)
        Range of each column of numbers; records beyond it are clipped. A name may hold ``*`` for any letters.
    categories : mapping of str to sequence
        Values of each other column: of a feature, one column of 0 and 1 for each; of the label, its classes.
    ignore : sequence of str
        Columns that are left out; with ``*`` likewise.

    Raises
    ------
    ValueError
        For an interval that is none, or a list of categories that is empty or names one twice.
    """

    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    categories: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    ignore: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the intervals and the lists."""
        for name, ends in self.intervals.items():
            if not _is_interval(ends):
                raise ValueError(f"ranges: intervals of {name!r} must be two numbers, low below high")
        for name, values in self.categories.items():
            if isinstance(values, str) or len(set(map(str, values))) != len(values) or len(values) < 2:
                raise ValueError(f"ranges: categories of {name!r} must be two or more different values")

    @classmethod
    def of(cls, given: PublicRanges | Mapping[str, Any] | str | os.PathLike[str] | None) -> PublicRanges:
        """Return ranges of an object, of a mapping with the three names, or of a file of TOML.

        Raises
        ------
        ValueError
            Without any, or for a file that cannot be read, is no TOML, or has other names.
        """
        if isinstance(given, PublicRanges):
            return given
        if given is None:
            raise ValueError(f"ranges: none are given; {_HOW}")
        words = dict(given) if isinstance(given, Mapping) else _toml(Path(given))
        known = ("intervals", "categories", "ignore")
        for name in words:
            if name not in known:
                raise ValueError(f"ranges: has no {name!r}; there are {', '.join(known)}")
        return cls(**words)

    def interval(self, column: str) -> tuple[float, float] | None:
        """Return the range of a column of numbers; a name without ``*`` counts before one with it."""
        if column in self.intervals:
            return self.intervals[column]
        return next((ends for name, ends in self.intervals.items() if fnmatchcase(column, name)), None)

    def ignored(self, column: str) -> bool:
        """Return whether a column is left out."""
        return any(fnmatchcase(column, name) for name in self.ignore)


def read(
    path: str | os.PathLike[str],
    *,
    label: str,
    ranges: PublicRanges | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    test: str | os.PathLike[str] | None = None,
) -> Dataset:
    r"""Read a data set from a file of records.

    Parameters
    ----------
    path : path
        A ``.csv`` (or ``.csv.gz``) file whose first line names the columns, a ``.parquet`` file, or a
        ``.npz`` file of arrays of one length, whose first axis counts the records: of one axis a column, of
        more the columns NAME_0, NAME_1, ... Columns of lists of one length, as of embeddings, are taken
        likewise.
    label : str
        Column of the labels: with categories it is a classification, with an interval a regression.
    ranges : PublicRanges, mapping or path
        Public facts of every column; ``ranges.toml`` beside the file where none are given. They are never
        read off the records: see `PublicRanges`.
    test : path, optional
        A file of test records with the same columns; without one a fifth of the records, in a fixed random
        order.

    Returns
    -------
    Dataset
        Features in their units, float32, and the public ranges that they are scaled and clipped by.

    Raises
    ------
    DatasetError
        For a file that cannot be read, a column without a public range, a missing value or one that no list
        has. No value is in the message.
    ValueError
        For a label that is no column, or ranges that are none.
    MissingExtraError
        Without pyarrow, of a ``.csv`` or ``.parquet`` file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from bitldp_papers.data import read
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("age,kind,ill\n" + "30,a,no\n61,b,yes\n" * 10)
    >>> known = {"intervals": {"age": (0, 120)}, "categories": {"kind": ["a", "b"], "ill": ["no", "yes"]}}
    >>> read(file, label="ill", ranges=known)
    Dataset('mine.csv': classification, 16 + 4 records, 3 features, 2 classes)
    """
    file = Path(path)
    table = _columns(file, "data")
    beside = file.with_name("ranges.toml")
    public = PublicRanges.of(beside if ranges is None and beside.exists() else ranges)
    if label not in table:
        raise ValueError(f"label: {label!r} is not a column of {file.name}")
    features, columns, low, high = _features(table, label, public, "data")
    labels, classes, targets = _labels(table[label], label, public, "data")
    if test is None:
        first, second = parts(len(labels))
        train, held, truth = features[first], features[second], labels[second]
        labels = labels[first]
    else:
        train, more = features, _columns(Path(test), "test")
        if label not in more:
            raise ValueError(f"label: {label!r} is not a column of {Path(test).name}")
        held, names, _, _ = _features(more, label, public, "test")
        if names != columns:
            raise DatasetError("test: must have the columns of the training file, in the same order")
        truth, _, _ = _labels(more[label], label, public, "test")
    return Dataset(
        name=file.name,
        task="classification" if classes else "regression",
        train=train,
        test=held,
        train_labels=labels,
        test_labels=truth,
        low=low,
        high=high,
        public_ranges=True,
        classes=classes,
        columns=columns,
        targets=targets,
    )


def vectors(path: str | os.PathLike[str], columns: Sequence[str]) -> NDArray[np.float32]:
    """Return records without labels, of the columns of a data set; a label that is there is not read.

    Parameters
    ----------
    path : path
        A file as in `read`; a ``.npz`` file of one array with as many numbers a record may name it otherwise.
    columns : sequence of str
        Of the data set: ``kind=a`` is 1 where the column ``kind`` is ``a``.

    Returns
    -------
    ndarray of float32, shape (n, columns)

    Raises
    ------
    DatasetError
        For a file that cannot be read, lacks a column or a value. No value is in the message.
    """
    table = _columns(Path(path), "pool")
    if Path(path).suffix == ".npz" and not all(name in table for name in columns):
        only = [each for each in _arrays(Path(path), "pool").values() if each.ndim > 1]
        if len(only) == 1 and only[0][0].size == len(columns):
            return _numbers(only[0].reshape(len(only[0]), -1), Path(path).name, "pool").astype(np.float32)
    made = []
    for name in columns:
        column, is_one, value = name.partition("=")
        if name in table:
            made.append(_numbers(table[name], name, "pool"))
        elif is_one and column in table:
            made.append(np.array([str(each) == value for each in table[column].tolist()], np.float64))
        else:
            raise DatasetError(f"pool: lacks the column {name!r} of the data set")
    return np.stack(made, axis=1).astype(np.float32)


def _features(
    table: Columns, label: str, ranges: PublicRanges, argument: str
) -> tuple[NDArray[np.float32], tuple[str, ...], NDArray[np.float64], NDArray[np.float64]]:
    """Return the features, their names, and the ends of their ranges."""
    blocks: list[NDArray[Any]] = []
    named: list[tuple[str, float, float]] = []
    lacking: list[str] = []
    for name, values in table.items():
        if name == label or ranges.ignored(name):
            continue
        if name in ranges.categories:
            known = ranges.categories[name]
            codes = _codes(values, known, name, argument)
            blocks.append(np.eye(len(known), dtype=np.float32)[codes])
            named += [(f"{name}={value}", 0.0, 1.0) for value in known]
        elif (ends := ranges.interval(name)) is not None:
            blocks.append(_numbers(values, name, argument).astype(np.float32)[:, None])
            named.append((name, float(ends[0]), float(ends[1])))
        else:
            lacking.append(name)
    if lacking:
        some = ", ".join(map(repr, lacking[:_EXAMPLES])) + (", ..." if len(lacking) > _EXAMPLES else "")
        unnamed = f"; {_UNNAMED}" if "" in lacking else ""
        raise DatasetError(f"ranges: {len(lacking)} columns have none ({some}){unnamed}; {_HOW}")
    if not blocks:
        raise DatasetError(f"{argument}: needs a column besides the label")
    names, low, high = zip(*named, strict=True)
    return np.hstack(blocks), names, np.array(low), np.array(high)


def _labels(
    values: Any, label: str, ranges: PublicRanges, argument: str
) -> tuple[NDArray[Any], int, tuple[float, float] | None]:
    """Return class numbers or targets, how many classes there are, and the range of targets."""
    if label in ranges.categories:
        known = ranges.categories[label]
        return _codes(values, known, label, argument), len(known), None
    ends = ranges.interval(label)
    if ends is None:
        raise DatasetError(f"ranges: the label {label!r} has neither classes nor an interval; {_HOW}")
    low, high = map(float, ends)
    return np.clip(_numbers(values, label, argument), low, high), 0, (low, high)


def _numbers(values: NDArray[Any], name: str, argument: str) -> NDArray[np.float64]:
    """Return a column of finite numbers."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):  # the text of these has values
        raise DatasetError(
            f"{argument}: the column {name!r} must hold numbers; other columns have [categories]"
        ) from None
    if not np.isfinite(numbers).all():
        raise DatasetError(
            f"{argument}: the column {name!r} has missing values, or values that are not finite"
        )
    return numbers


def _codes(values: NDArray[Any], known: Sequence[Any], name: str, argument: str) -> NDArray[np.int64]:
    """Return the place of each value in a list of all; equal are those of the same text, or number."""
    places = {_key(value): place for place, value in enumerate(known)}
    found = [places.get(_key(value), places.get(str(value))) for value in values.tolist()]
    if None in found:
        raise DatasetError(f"{argument}: the column {name!r} has values that are not in its [categories]")
    return np.array(found, np.int64)


def _key(value: Any) -> Any:
    """Return what equal values have in common: numbers of any type their amount, others their text."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _columns(path: Path, argument: str) -> dict[str, NDArray[Any]]:
    """Return the columns of a file, each an array of one axis."""
    reader = next((READERS[suffix] for suffix in READERS if path.name.endswith(suffix)), None)
    if reader is None:
        raise DatasetError(f"{argument}: {path.name} must be one of {', '.join(SUFFIXES)}")
    table: dict[str, NDArray[Any]] = {}
    for name, values in reader(path, argument).items():
        if values.ndim == 1:
            table[name] = values
        else:
            wide = values.reshape(len(values), -1)
            table |= {f"{name}_{index}": wide[:, index] for index in range(wide.shape[1])}
    if len({len(values) for values in table.values()}) != 1 or not len(next(iter(table.values()))):
        raise DatasetError(f"{argument}: {path.name} must have columns of one length, above zero")
    return table


def _arrays(path: Path, argument: str) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: np.atleast_1d(file[name]) for name in file.files}
    except OSError as error:
        raise DatasetError(f"{argument}: {path}: cannot be read ({_reason(error)})") from None
    except ValueError:
        raise DatasetError(f"{argument}: {path}: is not a file of plain arrays") from None


def _tables(path: Path, argument: str) -> dict[str, NDArray[Any]]:
    require(f"reading {path.name}", ["pyarrow"], "tables")
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv, parquet

    try:
        table = parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    except OSError as error:
        raise DatasetError(f"{argument}: {path}: cannot be read ({_reason(error)})") from None
    except (pa.ArrowException, UnicodeDecodeError):  # the text of these has values
        kind = "Parquet" if path.suffix == ".parquet" else "CSV"
        raise DatasetError(f"{argument}: {path}: is no {kind} file that can be read") from None
    if path.suffix != ".parquet" and not _is_header(table.column_names):
        raise DatasetError(f"{argument}: the first line of {path.name} must name the columns, each once")
    made: dict[str, NDArray[Any]] = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        kind = column.type
        if column.null_count:
            raise DatasetError(
                f"{argument}: the column {name!r} has missing values: fill them, or drop the records"
            )
        if pa.types.is_dictionary(kind):
            column = column.dictionary_decode()
        if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
            flat = column.flatten().to_numpy(zero_copy_only=False)
            if len(set(pc.list_value_length(column).to_pylist())) != 1:
                raise DatasetError(f"{argument}: the column {name!r} must have lists of one length")
            made[name] = flat.reshape(len(column), -1)
        else:
            made[name] = column.to_numpy(zero_copy_only=False)
    return made


READERS: dict[str, Callable[[Path, str], dict[str, NDArray[Any]]]] = {
    ".csv": _tables,
    ".csv.gz": _tables,
    ".parquet": _tables,
    ".npz": _arrays,
}


def _is_header(names: Sequence[str]) -> bool:
    """Return whether the first line of a file may name its columns: numbers may count them, no more."""
    counted = re.compile(r"\d{1,6}")
    for name in names:
        try:
            float(name)
        except ValueError:
            continue
        if not counted.fullmatch(name) or int(name) > len(names):
            return False
    return len(set(names)) == len(names)


def _is_interval(ends: Any) -> bool:
    if isinstance(ends, str) or not isinstance(ends, Iterable):
        return False
    both = tuple(ends)
    numbers = all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in both)
    return numbers and len(both) == 2 and -np.inf < both[0] < both[1] < np.inf


def _reason(error: OSError) -> str:
    return error.strerror or "is there such a file?"


def _toml(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        require("ranges on Python 3.10", ["tomli"], "tables")
        import tomli as tomllib
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"ranges: {path}: cannot be read ({_reason(error)})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"ranges: {path}: is not valid TOML ({error})") from None
