"""Released columns back to the reports that they were: what an estimate is made from."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp.base.errors import DataError, PlanError
from bitldp.tables.attributes import Attributes
from bitldp.tables.cells import Labels, Numbers, Points, Reals
from bitldp.tables.part import Part

__all__ = ["collected", "released_names"]

_MOST_BITS = 16  # of a code word whose values are looked up


def released_names(part: Part) -> list[str]:
    """Return the names of the columns that a part releases."""
    codec = part.codec
    width = len(codec.columns)
    if isinstance(codec, Labels) and (part.split or part.output == "bits"):
        width = int(part.mechanism.report_parts[0][0])
        width = width if width > 1 else int(part.mechanism.report_bits)
    elif part.output == "bits":
        width = int(part.mechanism.report_bits)
    return list(codec.names(width))


def collected(part: Part, table: pa.Table, first_row: int) -> tuple[Any, str]:
    """Return the reports in a part's released columns, and the form that an accumulator takes them in.

    Parameters
    ----------
    part : Part
    table : pyarrow.Table
        With at least the columns that the part releases.
    first_row : int
        Number of its first row, for errors.

    Returns
    -------
    reports, form
        As `randomize` gives them, "codes" or "bits".

    Raises
    ------
    DataError
        For a value that is no report of the part; row and column are named.
    """
    names = released_names(part)
    times = Counter(table.column_names)
    columns = [_column(table, name, times[name]) for name in names]
    codec = part.codec
    if isinstance(codec, Attributes):
        whole = [_whole(column, name, first_row) for column, name in zip(columns, names, strict=True)]
        return part.mechanism.join(codec.arrays(whole)), "codes"
    if isinstance(codec, Labels) and len(columns) == 1 and part.output == "values":
        return _categories(codec, columns[0], names[0], first_row), "codes"
    if part.output == "values":
        return _values(part, columns, names, first_row), "codes"
    numbers = np.stack(
        [_whole(column, name, first_row) for column, name in zip(columns, names, strict=True)], 1
    )
    if isinstance(codec, Numbers) and not isinstance(codec, Reals) and part.output == "bits":
        return numbers.astype(np.uint8), "bits"
    single = isinstance(codec, (Labels, Points)) and len(names) == 1
    return numbers[:, 0] if single else numbers, "codes"


def _column(table: pa.Table, name: str, times: int) -> Any:
    if times != 1:
        raise PlanError(f"column {name!r}: is not there once among the released columns")
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column


def _whole(column: Any, name: str, first_row: int) -> NDArray[Any]:
    """Return a column of codes as unsigned integers."""
    try:
        numbers = column.cast(pa.uint32())
    except pa.ArrowException:
        raise DataError(f"column {name!r}: holds something else than the codes of a report") from None
    if numbers.null_count:
        row = first_row + int(pc.index(numbers.is_null(), True).as_py())
        raise DataError(f"row {row}, column {name!r}: missing, where a report is needed")
    return np.asarray(numbers.to_numpy())


def _categories(codec: Labels, column: Any, name: str, first_row: int) -> NDArray[Any]:
    """Return labels as the numbers of their categories."""
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    dictionary = codec.dictionary(column.type)
    codes = pc.index_in(column, value_set=dictionary)
    if codec.missing.policy == "category":
        absent = column.is_null()
        if pa.types.is_string(column.type):
            absent = pc.or_(absent, pc.fill_null(pc.equal(column, ""), True))
        codes = pc.if_else(absent, pa.scalar(len(codec.categories), codes.type), codes)
    if codes.null_count:
        row = first_row + int(pc.index(codes.is_null(), True).as_py())
        raise DataError(f"row {row}, column {name!r}: is not one of the plan's categories")
    return np.asarray(codes.to_numpy(), np.uint32)


def _values(part: Part, columns: list[Any], names: list[str], first_row: int) -> Any:
    """Return written numbers as the codes that they stand for."""
    try:
        floats = [
            column if pa.types.is_floating(column.type) else column.cast(pa.float64()) for column in columns
        ]
    except pa.ArrowException:
        raise DataError(f"columns {', '.join(names)}: numbers are needed") from None
    table = np.stack([np.asarray(column.to_numpy(), np.float64) for column in floats], axis=1)
    single = np.float32 if all(column.type == pa.float32() for column in floats) else np.float64
    mechanism, codec = part.mechanism, part.codec
    if isinstance(codec, Points):
        numbers = part.worth.numbers
        letters = mechanism.decode(np.arange(codec.points)) if numbers is None else numbers
        return _codes(table, letters.astype(single), names, first_row)[:, 0]
    if isinstance(codec, Labels):  # an entry for each category, all with the same letters
        return _codes(table, mechanism.letters.astype(single), names, first_row)
    if isinstance(codec, Reals):
        if mechanism.k is None:
            return _codes(table, mechanism.letters.astype(single), names, first_row)
        return _pairs(part, table, single, names, first_row)
    return _words(part, table, single, names, first_row)


def _codes(table: NDArray[Any], letters: NDArray[Any], names: list[str], first_row: int) -> NDArray[Any]:
    """Return the code of each letter in a table."""
    order = np.argsort(letters, kind="stable")
    ascending = letters[order].astype(np.float64)
    # A table has few letters: each is looked for once.
    encoded = pa.array(table.ravel()).dictionary_encode()
    numbers, which = encoded.dictionary.to_numpy(), encoded.indices.to_numpy()
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    wrong = ascending[places] != numbers  # NaN, a missing value, too
    if wrong.any():  # perhaps in single precision, in a text file
        short, rounded = ascending.astype(np.float32), numbers.astype(np.float32)
        places = np.minimum(np.searchsorted(short, rounded), len(ascending) - 1)
        wrong = short[places] != rounded
    if wrong.any():
        row, column = divmod(int(np.argmax(wrong[which])), table.shape[1])
        raise DataError(
            f"row {first_row + row}, column {names[column]!r}: is no report of the plan's mechanism"
        )
    codes: NDArray[Any] = order[places].astype(np.uint32)[which].reshape(table.shape)
    return codes


def _pairs(part: Part, table: NDArray[Any], dtype: Any, names: list[str], first_row: int) -> Any:
    """Return the sampled coordinates of records and their codes.

    A coordinate that was not sampled holds the middle of the interval. A letter may be the middle, too: such
    a report adds nothing to a sum, wherever it is counted, so any coordinate will do for it.
    """
    mechanism = part.mechanism
    features, k = len(part.codec.columns), int(mechanism.k)
    signs = mechanism.report_parts[1] == (1, k)  # all sampled coordinates together are one symbol, a bit each

    def reports(indices: NDArray[Any], codes: NDArray[Any]) -> Any:
        if signs:
            codes = (codes.astype(np.int64) << np.arange(k - 1, -1, -1)).sum(axis=1, keepdims=True)
        return mechanism.join([indices.astype(np.uint32), codes])

    # A record for each code, which all of its sampled coordinates report.
    every = np.repeat(np.arange(2 if signs else mechanism.alphabet)[:, None], k, axis=1)
    dense = mechanism.decode(reports(np.broadcast_to(np.arange(k), every.shape), every))
    dense = dense.astype(dtype).astype(np.float64)
    away = table != (dense[0, k] if k < features else np.nan)
    if (away.sum(axis=1) > k).any():
        row = int(np.argmax(away.sum(axis=1) > k))
        raise DataError(f"row {first_row + row}: more columns were sampled than the plan's mechanism samples")
    # The sampled coordinates first, then as many others as are missing: those whose letter is the middle.
    indices = np.sort(np.argsort(~away, axis=1, kind="stable")[:, :k], axis=1)
    values = np.take_along_axis(table, indices, axis=1)
    return reports(indices, _codes(values, dense[:, 0], names, first_row))


def _words(part: Part, table: NDArray[Any], dtype: Any, names: list[str], first_row: int) -> NDArray[Any]:
    """Return code words of numbers, each column with letters of its own."""
    mechanism = part.mechanism
    bits = int(mechanism.report_bits) // len(names)
    if bits > _MOST_BITS:
        raise PlanError(
            f"columns {', '.join(names)}: words of {bits} bits are estimated from codes, not values"
        )
    words = np.arange(1 << bits, dtype=np.uint32)
    every = np.repeat(words[:, None], len(names), axis=1)
    letters = mechanism.decode(every) if part.worth.decode == "reported" else mechanism.unbias(every)
    return np.concatenate(
        [
            _codes(table[:, j : j + 1], letters[:, j].astype(dtype), names[j : j + 1], first_row)
            for j in range(len(names))
        ],
        axis=1,
    )
