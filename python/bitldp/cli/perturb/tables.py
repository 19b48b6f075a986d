"""Tables of the command line: CSV, Parquet and Arrow files read and written a batch at a time.

A reader holds one batch and what its format forces on it: a block of a CSV file, a page of a Parquet column.
No error passes on the text of a library, since that may quote a value of the file.
"""

from __future__ import annotations

import csv
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from bitldp.cli.perturb.arrow import ArrowReader
from bitldp.cli.perturb.files import CommandError
from bitldp.cli.perturb.forms import Form
from bitldp.cli.perturb.rebatch import rebatch
from bitldp.cli.perturb.sources import DAMAGED, Source
from bitldp.cli.perturb.text import TextWriter

_TITLES = {"csv": "a CSV", "parquet": "a Parquet", "arrow": "an Arrow"}

__all__ = ["TableReader", "TableWriter", "open_reader", "open_writer"]

#: Bytes of a CSV file that are parsed at once: few, for Arrow reads 32 such blocks ahead. No row is longer
#: than a block; where one is, the file is read on in large blocks, and is refused if it is longer still.
_SMALL_BLOCK, CSV_BLOCK = 1 << 18, 1 << 20
#: Rows and bytes at which a group of Parquet is written.
GROUP_ROWS, GROUP_BYTES = 1 << 20, 1 << 26
#: Columns that are worth dictionaries; of more, each has too few values in a group.
MOST_DICTIONARIES = 256


class TableReader(Protocol):
    """A table file.

    Attributes
    ----------
    names : list of str
        The columns, in the order of the file.
    total : int
        The end of the progress bar: rows, or bytes of a CSV file.
    """

    names: list[str]
    total: int

    def batches(self, columns: Sequence[str], rows: int) -> Generator[pa.Table, None, None]:
        """Yield an empty table that shows the types, then the chosen columns in pieces of `rows` rows.

        Only the last piece may be shorter.
        """
        ...

    def position(self) -> int:
        """Return how much of `total` has been read."""
        ...


class TableWriter(Protocol):
    """A table file being written."""

    def write(self, table: pa.Table) -> None:
        """Append the rows of `table`."""
        ...

    def close(self) -> None:
        """Write what the format needs at its end; the file itself stays open."""
        ...


def open_reader(source: Source) -> TableReader:
    """Open a table for reading; nothing but its header is read."""
    kind = source.form.kind
    try:
        if kind == "csv":
            return _CsvReader(source)
        if kind == "parquet":
            return _ParquetReader(source)
        return ArrowReader(source)
    except (pa.ArrowException, csv.Error):
        raise CommandError(f"{source}: not {_TITLES[kind]} file") from None
    except DAMAGED:
        raise CommandError(f"{source}: compressed data that are damaged, or end too early") from None


def open_writer(file: Any, form: Form, schema: pa.Schema) -> TableWriter:
    """Start a table with the columns of `schema` in an open binary file."""
    if form.kind == "csv":
        return _CsvWriter(file, form, schema)
    if form.kind == "parquet":
        return _ParquetWriter(file, schema)
    writer: TableWriter = pa.ipc.new_stream(file, schema) if form.stream else pa.ipc.new_file(file, schema)
    return writer


class _CsvWriter:
    """CSV, compressed where its form says so."""

    def __init__(self, file: Any, form: Form, schema: pa.Schema) -> None:
        self._compressed = pa.CompressedOutputStream(file, "gzip") if form.gzip else None
        self._writer = TextWriter(self._compressed or file, form, schema)

    def write(self, table: pa.Table) -> None:
        self._writer.write(table)

    def close(self) -> None:
        if self._compressed is not None:
            self._compressed.close()


class _ParquetWriter:
    """Parquet in large groups of rows, whatever the batches are: a group costs every column a header."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        # A dictionary of each of many columns would be held until its group is written.
        few = len(schema) <= MOST_DICTIONARIES
        self._writer = pa.parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=few)
        self._waiting: list[pa.Table] = []
        self._rows = self._bytes = 0

    def write(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._rows += table.num_rows
        self._bytes += table.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            group = pa.concat_tables(self._waiting)
            self._waiting, self._rows, self._bytes = [], 0, 0
            self._writer.write_table(group, row_group_size=max(1, group.num_rows))

    def close(self) -> None:
        try:
            self._flush()
        finally:
            self._writer.close()


class _CsvReader:
    """CSV with a header. Every field is read as text; numbers are parsed where the row is known."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._delimiter = source.form.delimiter
        # Bytes that are no UTF-8 concern only the columns that hold them: the header's reader lets them pass.
        with source.text("utf-8-sig", "surrogateescape") as file:
            self.names = next(csv.reader(file, delimiter=self._delimiter), [])
        if not self.names:
            raise CommandError(f"{source}: empty; a CSV file starts with a row of column names")
        self.total = source.path.stat().st_size
        self._position = 0

    def position(self) -> int:
        return self._position

    def batches(self, columns: Sequence[str], rows: int) -> Generator[pa.Table, None, None]:
        yield pa.table({name: pa.array([], pa.string()) for name in columns})
        with closing(self._blocks(columns)) as blocks:
            yield from rebatch(blocks, rows)

    def _blocks(self, columns: Sequence[str]) -> Generator[pa.Table, None, None]:
        rows = 0
        try:
            with closing(self._parsed(columns, _SMALL_BLOCK)) as tables:
                for table in tables:
                    yield table
                    rows += table.num_rows
        except (pa.ArrowException, OSError):  # a compressed file that ends too early is no ArrowException
            try:
                with closing(self._parsed(columns, CSV_BLOCK)) as tables:
                    for table in tables:
                        yield table.slice(rows)
                        rows -= min(rows, table.num_rows)
            except (pa.ArrowException, OSError):
                raise CommandError(f"{self._source}: {self._problem()}") from None
        # An odd number of quotes may mean that one swallowed what follows.
        quotes = sum(block.count(b'"') for block in self._source.blocks())
        if quotes % 2 and (problem := self._open_quote()):
            raise CommandError(f"{self._source}: {problem}")

    def _parsed(self, columns: Sequence[str], block: int) -> Generator[pa.Table, None, None]:
        # Arrow reads ahead in threads of its own, which must have nothing of Python in their hands: neither a
        # file object nor a handler of bad rows (see `Source.arrow`).
        with (
            pa.OSFile(str(self._source.path)) as file,
            pa.csv.open_csv(
                self._source.arrow(file),
                read_options=pa.csv.ReadOptions(use_threads=False, block_size=block),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=True,
                    # A blank line is a record too: without a value, and refused for it.
                    ignore_empty_lines=False,
                ),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=list(columns),
                    column_types=dict.fromkeys(columns, pa.string()),
                    strings_can_be_null=False,
                ),
            ) as reader,
        ):
            for batch in reader:
                self._position = file.tell()
                yield pa.Table.from_batches([batch])

    def _open_quote(self) -> str:
        """Say where a quote is never closed, if one is: read slowly, for quotes may stand within a text."""
        limit = csv.field_size_limit(CSV_BLOCK)
        try:
            with self._source.text("utf-8-sig", "replace") as file:
                rows = csv.reader(file, delimiter=self._delimiter, strict=True)
                good = 0
                try:
                    for _ in rows:
                        good += 1
                except csv.Error as error:
                    if "limit" in str(error):  # a field longer than any row may be
                        return ""
                    place = f"row {good}" if good else "the header"
                    return f"{place} has a quote that is not closed, or text after one that is"
        finally:
            csv.field_size_limit(limit)
        return ""

    def _problem(self) -> str:
        """Say why Arrow refused the file: a second reading, as Arrow's own words quote the row."""
        for _ in self._source.blocks():  # a compressed file that is damaged is refused as such
            pass
        with suppress(csv.Error), self._source.text("utf-8", "replace") as file:
            rows = csv.reader(file, delimiter=self._delimiter)
            next(rows, None)
            for number, row in enumerate(rows, 1):
                if row and len(row) != len(self.names):  # a blank line is a row without values
                    return f"row {number} has {len(row)} fields, where the header has {len(self.names)}"
        return (
            self._open_quote() or f"not well-formed CSV in UTF-8, or a row longer than {CSV_BLOCK >> 20} MiB"
        )


class _ParquetReader:
    """Parquet, read through pages: a row group larger than memory is no obstacle."""

    def __init__(self, source: Source) -> None:
        self._source = source
        with pa.parquet.ParquetFile(source.path) as file:
            self.names = list(file.schema_arrow.names)
            self.total = file.metadata.num_rows
        self._position = 0

    def position(self) -> int:
        return self._position

    def batches(self, columns: Sequence[str], rows: int) -> Generator[pa.Table, None, None]:
        try:
            # A buffer makes columns stream; without it each column chunk of a row group is read whole.
            with pa.parquet.ParquetFile(self._source.path, buffer_size=1 << 16, pre_buffer=False) as file:
                schema = file.schema_arrow
                yield pa.schema([schema.field(name) for name in columns]).empty_table()
                batches = file.iter_batches(batch_size=rows, columns=list(columns), use_threads=False)
                tables = (pa.Table.from_batches([batch]).select(list(columns)) for batch in batches)
                for table in rebatch(tables, rows):
                    self._position += table.num_rows
                    yield table
        except (pa.ArrowException, OSError):
            raise CommandError(f"{self._source}: damaged Parquet data, or not readable") from None
