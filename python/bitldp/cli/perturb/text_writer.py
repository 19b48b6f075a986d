"""Text of tables: rows of CSV, made by the core a batch at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp._core import csv_rows
from bitldp.cli.commands import FileFormat
from bitldp.cli.errors import UsageError

__all__ = ["TextWriter"]

#: A column of the core: numbers; or indices, offsets, bytes of words, and whether they are in quotes.
_Fields = NDArray[Any] | tuple[NDArray[np.int32] | None, NDArray[np.int64], NDArray[np.uint8], bool]

_NUMBERS = (pa.float32(), pa.float64())


class TextWriter:
    """A CSV file: texts in quotes, doubled within; missing values as nothing.

    Parameters
    ----------
    file : file object
        Binary; it stays open.
    form : FileFormat
    schema : pyarrow.Schema

    Raises
    ------
    UsageError
        For a column of a type that no text holds.
    """

    def __init__(self, file: Any, form: FileFormat, schema: pa.Schema) -> None:
        for field in schema:
            try:
                _fields(pa.array([], field.type))
            except pa.ArrowException:
                raise UsageError(f"column {field.name!r} holds {field.type}, which no text holds") from None
        self._file, self._delimiter = file, form.delimiter
        file.write((self._delimiter.join(map(_quoted, schema.names)) + "\n").encode())

    def write(self, table: pa.Table) -> None:
        """Append the rows of a table."""
        if table.num_rows:
            whole = [_whole(column) for column in table.columns]
            fields = [_alone(whole[0])] if len(whole) == 1 else [_fields(column) for column in whole]
            self._file.write(csv_rows(fields, self._delimiter).data)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _whole(column: Any) -> Any:
    """Return a column in one piece."""
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _fields(column: Any) -> _Fields:
    """Return a column as the core takes it."""
    if pa.types.is_dictionary(column.type):
        if column.dictionary.null_count:
            return _fields(column.cast(column.type.value_type))
        slots = pc.fill_null(column.indices.cast(pa.int32()), -1).to_numpy()
        return (slots, *_words(column.dictionary))
    if not column.null_count:
        if pa.types.is_integer(column.type) or column.type in _NUMBERS:
            numbers: NDArray[Any] = column.to_numpy()
            return numbers
        return (None, *_words(column))
    there = column.is_valid().to_numpy(zero_copy_only=False)
    return (np.where(there, np.arange(len(column), dtype=np.int32), np.int32(-1)), *_words(column))


def _alone(column: Any) -> _Fields:
    """Return a table's only column: a missing value is empty quotes, since readers skip a blank line."""
    fields = _fields(column)
    if isinstance(fields, np.ndarray):
        return fields
    slots, starts, content, quoted = fields
    if slots is None:
        return fields
    empty = np.frombuffer(b"" if quoted else b'""', np.uint8)
    words = np.concatenate([content[: starts[-1]], empty])
    places = np.where(slots < 0, len(starts) - 1, slots).astype(np.int32)
    return places, np.append(starts, np.int64(len(words))), words, quoted


def _words(values: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8], bool]:
    """Return where values begin among the bytes of all of them, these, and whether they are in quotes.

    Texts are; all else is as Arrow writes it.
    """
    quoted = str(values.type) in ("string", "large_string", "string_view", "binary", "large_binary")
    viewed = not quoted or str(values.type) == "string_view"
    texts = values.cast(pa.string()) if viewed else values
    offsets, content = texts.buffers()[1:]
    wide = np.int64 if str(texts.type).startswith("large") else np.int32
    if not len(texts):
        return np.zeros(1, np.int64), np.empty(0, np.uint8), quoted
    slots = np.frombuffer(offsets, wide)[texts.offset : texts.offset + len(texts) + 1]
    return slots.astype(np.int64, copy=False), np.frombuffer(content or b"", np.uint8), quoted
