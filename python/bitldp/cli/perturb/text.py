"""CSV as it is written: the core joins columns of numbers, and of words and which of them each row has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitldp._core import csv_rows
from bitldp.cli.perturb.files import UsageError
from bitldp.cli.perturb.forms import Form

__all__ = ["TextWriter"]

#: A column of the core: numbers; or places, offsets, bytes of words, and whether they are in quotes.
_Fields = NDArray[Any] | tuple[NDArray[np.int32] | None, NDArray[np.int64], NDArray[np.uint8], bool]

_NUMBERS = (pa.float32(), pa.float64())


class TextWriter:
    """A CSV file: texts in quotes, doubled within; missing values as nothing.

    Parameters
    ----------
    file : file object
        Binary; it stays open.
    form : Form
    schema : pyarrow.Schema

    Raises
    ------
    UsageError
        For a column of a type that no text holds.
    """

    def __init__(self, file: Any, form: Form, schema: pa.Schema) -> None:
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
            fields = [_fields(_whole(column)) for column in table.columns]
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
        places = pc.fill_null(column.indices.cast(pa.int32()), -1).to_numpy()
        return (places, *_words(column.dictionary))
    if not column.null_count:
        if pa.types.is_integer(column.type) or column.type in _NUMBERS:
            numbers: NDArray[Any] = column.to_numpy()
            return numbers
        return (None, *_words(column))
    there = column.is_valid().to_numpy(zero_copy_only=False)
    return (np.where(there, np.arange(len(column), dtype=np.int32), np.int32(-1)), *_words(column))


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
    places = np.frombuffer(offsets, wide)[texts.offset : texts.offset + len(texts) + 1]
    return places.astype(np.int64, copy=False), np.frombuffer(content or b"", np.uint8), quoted
