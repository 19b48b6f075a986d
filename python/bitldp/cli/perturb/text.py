"""CSV as it is written: a row is joined from texts; a value that comes up often is put into words once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bitldp.cli.perturb.files import UsageError
from bitldp.cli.perturb.forms import Form

__all__ = ["TextWriter"]

#: A column is looked through for values that come up again where it has so many rows for each of them.
_OFTEN = 8
_MOST = 1 << 12  # values of a column that are put into words once
_LOOK = 1 << 10  # rows that tell whether a column is such a one
_LONG = 1 << 30


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
                _texts(pa.array([], field.type))
            except pa.ArrowException:
                raise UsageError(f"column {field.name!r} holds {field.type}, which no text holds") from None
        self._file, self._delimiter = file, form.delimiter
        file.write((self._delimiter.join(map(_quoted_text, schema.names)) + "\n").encode())

    def write(self, table: pa.Table) -> None:
        """Append the rows of a table."""
        if not table.num_rows:
            return
        texts = [_texts(column) for column in table.columns]
        # Offsets have 32 bits, but where a batch is of very long texts.
        kind = pa.string() if sum(each.nbytes for each in texts) < _LONG else pa.large_string()
        rows = [each if each.type == kind else each.cast(kind) for each in texts]
        *first, last = rows
        ended = pc.binary_join_element_wise(last, pa.scalar("", kind), pa.scalar("\n", kind))
        if first:
            ended = pc.binary_join_element_wise(*first, ended, pa.scalar(self._delimiter, kind))
        _, offsets, content = ended.buffers()
        ends = memoryview(offsets).cast("i" if kind == pa.string() else "q")
        start, stop = ends[ended.offset], ends[ended.offset + len(ended)]
        self._file.write(memoryview(content)[start:stop])


def _quoted_text(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _texts(column: Any) -> Any:
    """Return the fields of a column, in one piece without nulls."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    if not pa.types.is_dictionary(whole.type) and _often(whole):
        whole = whole.dictionary_encode()
    if pa.types.is_dictionary(whole.type):
        found = _worded(whole.dictionary).take(whole.indices)
    else:
        found = _worded(whole)
    return pc.fill_null(found, "")


def _often(column: Any) -> bool:
    """Whether few values are behind many rows, as of the letters of a mechanism; the first rows tell."""
    if not (pa.types.is_floating(column.type) or _is_text(column.type)):
        return False  # integers are put into words as fast
    looked = column.slice(0, _LOOK)
    return len(pc.unique(looked)) * 2 < len(looked) and len(column) >= _OFTEN * _MOST


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view", "binary", "large_binary")


def _worded(values: Any) -> Any:
    """Return values as fields: texts in quotes, all else as Arrow writes it."""
    if not _is_text(values.type):
        return values.cast(pa.string())
    wide = str(values.type).startswith("large")
    texts = values.cast(pa.string()) if str(values.type) == "string_view" else values
    texts = texts.view(pa.large_string() if wide else pa.string())  # bytes stay as they are
    quote = pa.scalar('"', texts.type)
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.binary_join_element_wise(quote, doubled, quote, pa.scalar("", texts.type))
