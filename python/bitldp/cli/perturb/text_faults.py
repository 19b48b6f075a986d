"""Second reading of a text that Arrow refused, which says what is wrong without the row that Arrow quotes."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Protocol, TextIO

from bitldp.cli.commands import FileFormat

__all__ = ["CSV_BLOCK", "is_header_only", "open_quote", "problem"]

#: Bytes of a row, at most.
CSV_BLOCK = 1 << 20


class _Source(Protocol):
    """The part of `InputSource` that is read here."""

    @property
    def form(self) -> FileFormat: ...

    def text(self, encoding: str, errors: str = "strict") -> TextIO: ...

    def blocks(self) -> Iterator[bytes]: ...


def open_quote(source: _Source) -> str:
    """Say where a quote is never closed, if one is: read slowly, for quotes may stand within a text."""
    limit = csv.field_size_limit(CSV_BLOCK)
    try:
        with source.text("utf-8-sig", "replace") as file:
            rows = csv.reader(file, delimiter=source.form.delimiter, strict=True)
            good = 0
            try:
                for _ in rows:
                    good += 1
            except csv.Error as error:
                if "limit" in str(error):  # a field longer than any row may be
                    return ""
                where = f"row {good}" if good else "the header"
                return f"{where} has a quote that is not closed, or text after one that is"
    finally:
        csv.field_size_limit(limit)
    return ""


def is_header_only(source: _Source) -> bool:
    """Tell whether the file is a header without the end of its line, which Arrow takes for no CSV."""
    for _ in source.blocks():  # a compressed file that is damaged is refused as such
        pass
    with suppress(csv.Error, UnicodeDecodeError), source.text("utf-8-sig", "strict") as file:
        rows = csv.reader(file, delimiter=source.form.delimiter, strict=True)
        return bool(next(rows, [])) and next(rows, None) is None
    return False


def problem(source: _Source, names: Sequence[str]) -> str:
    """Say why Arrow refused the file: a second reading, as Arrow's own words quote the row."""
    for _ in source.blocks():  # a compressed file that is damaged is refused as such
        pass
    with suppress(csv.Error), source.text("utf-8", "replace") as file:
        rows = csv.reader(file, delimiter=source.form.delimiter)
        next(rows, None)
        for number, row in enumerate(rows, 1):
            if row and len(row) != len(names):  # a blank line is a row without values
                return f"row {number} has {len(row)} fields, where the header has {len(names)}"
    return open_quote(source) or f"not well-formed CSV in UTF-8, or a row longer than {CSV_BLOCK >> 20} MiB"
