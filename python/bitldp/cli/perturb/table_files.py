"""Tables of the command line: inputs, and CSV, Parquet and Arrow files read and written a batch at a time."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from bitldp._core import csv_rows
from bitldp.base.errors import DataError
from bitldp.cli.commands import PIPE, FileFormat, is_pipe
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.perturb import text_faults as faults
from bitldp.cli.perturb.arrow_parts import DamagedError, blocks, rows_of
from bitldp.cli.perturb.outputs import Unchanged
from bitldp.tables.frames import checked

__all__ = [
    "Behind",
    "InputSource",
    "TableReader",
    "TableWriter",
    "TextWriter",
    "open_reader",
    "open_writer",
    "opened",
    "spooled",
]

_BLOCK = 1 << 20
_OPEN = Path("/proc/self/fd")  # where Linux shows files that are open, also those without a name

#: Errors that reading damaged compressed data raises; an OSError of the system has a number.
DAMAGED = (EOFError, OSError, zlib.error)


@dataclass(frozen=True)
class InputSource:
    """An input and its form.

    Attributes
    ----------
    path : pathlib.Path
        Where its bytes are.
    form : FileFormat
    name : str
        What errors call it.
    """

    path: Path
    form: FileFormat
    name: str

    def __str__(self) -> str:
        """Return the name that errors call it by."""
        return self.name

    def open(self) -> BinaryIO:
        """Open its contents, uncompressed, for Python."""
        compression = self.form.compression
        if compression == "zstd":  # which the standard library does not read
            raw = pa.CompressedInputStream(pa.OSFile(str(self.path)), compression)
            return cast("BinaryIO", io.BufferedReader(raw, _BLOCK))
        packed: dict[str | None, Any] = {"gzip": gzip.open, "bz2": bz2.open}
        return cast("BinaryIO", packed.get(compression, open)(self.path, "rb"))

    def text(self, encoding: str, errors: str = "strict") -> TextIO:
        """Open its contents as text whose ends of lines stay as they are."""
        return io.TextIOWrapper(self.open(), encoding=encoding, errors=errors, newline="")

    def arrow(self, raw: Any) -> Any:
        """Return a stream of its contents of the file that Arrow opened: nothing of it is Python's.

        Arrow reads ahead in threads of its own, and one that asks for the interpreter while it shuts down
        aborts the process.
        """
        compression = self.form.compression
        return raw if compression is None else pa.CompressedInputStream(raw, compression)

    def blocks(self) -> Iterator[bytes]:
        """Yield its contents, uncompressed.

        Raises
        ------
        CommandError
            For a compressed file that is damaged or too short.
        """
        try:
            with self.open() as file:
                while block := file.read(_BLOCK):
                    yield block
        except DAMAGED as error:
            if getattr(error, "errno", None) is not None:
                raise
            raise CommandError(f"{self}: compressed data that are damaged, or end too early") from None

    def digest(self, of: Callable[[Iterator[bytes]], str]) -> str:
        """Return a digest of its contents."""
        return of(self.blocks())

    def unchanged(self) -> Unchanged:
        """Return the state of its file, to tell later whether it changed."""
        return Unchanged(self.path)


@contextmanager
def opened(path: Path, form: FileFormat) -> Iterator[InputSource]:
    """Open an input; what can be read only once is read first, into a file without a name.

    So a pipe is refused by its row, like a file, and its digest can be charged before anything is released.
    The file is in the folder for temporary files (`TMPDIR`), its owner's alone, and goes with the process.
    """
    if not is_pipe(path):
        yield InputSource(path, form, str(path))
        return
    if path == PIPE:
        name, stream = "standard input", sys.stdin.buffer
        with spooled(stream) as copy:
            yield InputSource(copy, form, name)
        return
    with path.open("rb") as pipe, spooled(pipe) as copy:
        yield InputSource(copy, form, str(path))


@contextmanager
def spooled(stream: BinaryIO) -> Iterator[Path]:
    """Copy a stream into a file without a name, where the system has such."""
    with tempfile.TemporaryFile() if _OPEN.is_dir() else tempfile.NamedTemporaryFile() as file:
        shutil.copyfileobj(stream, file, _BLOCK)
        file.flush()
        yield _OPEN / str(file.fileno()) if _OPEN.is_dir() else Path(file.name)


def rebatch(pieces: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Cut or join tables into tables of exactly `rows` rows, checked; the last may be shorter."""
    waiting: list[pa.Table] = []
    held = 0
    for piece in map(checked, pieces):
        start = 0
        while held + piece.num_rows - start >= rows:
            yield pa.concat_tables([*waiting, piece.slice(start, rows - held)])
            start += rows - held
            waiting, held = [], 0
        if start < piece.num_rows:
            waiting.append(piece.slice(start))
            held += piece.num_rows - start
    if held:
        yield pa.concat_tables(waiting)


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


#: Bytes of a record batch that is read as a whole; a larger one is read some rows at a time, where it can be.
HELD = 1 << 25


class ArrowReader:
    """Arrow IPC: the file format (also called Feather 2) and the stream format."""

    def __init__(self, source: InputSource) -> None:
        self._source, self._path = source, source.path
        self._position = 0
        self.total = self._path.stat().st_size
        with pa.OSFile(str(self._path)) as file:
            self._stream = file.read(6) != b"ARROW1"
            file.seek(0)
            reader = pa.ipc.open_stream(file) if self._stream else pa.ipc.open_file(file)
            self._schema = reader.schema
            self.names = list(self._schema.names)
            self._batches = 0 if self._stream else reader.num_record_batches

    def position(self) -> int:
        """Return how much of `total` has been read."""
        return self._position

    def batches(self, columns: Sequence[str], rows: int) -> Generator[pa.Table, None, None]:
        """Yield an empty table that shows the types, then the chosen columns in pieces of `rows` rows."""
        yield pa.schema([self._schema.field(name) for name in columns]).empty_table()
        try:
            yield from self._from_stream(columns, rows) if self._stream else self._from_file(columns, rows)
        except (pa.ArrowException, DamagedError, DataError, OSError):
            raise CommandError(f"{self._source}: damaged Arrow data, or not readable") from None

    def _options(self, columns: Sequence[str]) -> Any:
        fields = [self.names.index(name) for name in columns]
        return pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)

    def _from_stream(self, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
        with pa.OSFile(str(self._path)) as source:
            reader = pa.ipc.open_stream(source, options=self._options(columns))
            tables = (pa.Table.from_batches([batch]).select(list(columns)) for batch in reader)
            for table in rebatch(tables, rows):
                self._position = source.tell()
                yield table

    def _from_file(self, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
        with pa.OSFile(str(self._path)) as source:
            reader = pa.ipc.open_file(source, options=self._options(columns))
            yield from rebatch(self._pieces(reader, columns, rows), rows)

    def _pieces(self, reader: Any, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
        batches = blocks(self._path).batches
        for number, block in enumerate(batches):
            parts = None if block.body <= HELD else rows_of(self._path, number, list(columns), rows)
            for part in [reader.get_batch(number)] if parts is None else parts:
                yield pa.Table.from_batches([part]).select(list(columns))
            self._position = self.total * (number + 1) // len(batches)


_TITLES = {"csv": "a CSV", "parquet": "a Parquet", "arrow": "an Arrow"}


#: Bytes of a CSV file that are parsed at once: few, for Arrow reads 32 such blocks ahead. No row is longer
#: than a block; where one is, the file is read on in large blocks, and is refused if it is longer still.
_SMALL_BLOCK = 1 << 18
#: Rows and bytes at which a group of Parquet is written.
GROUP_ROWS, GROUP_BYTES = 1 << 20, 1 << 26
#: Columns that are written with dictionaries; of more, each has too few values in a group.
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


def open_reader(source: InputSource) -> TableReader:
    """Open a table for reading; nothing but its header is read."""
    kind = source.form.kind
    try:
        if kind == "csv":
            return _CsvReader(source)
        if kind == "parquet":
            return _ParquetReader(source)
        return ArrowReader(source)
    except (pa.ArrowException, UnicodeDecodeError, csv.Error):
        raise CommandError(f"{source}: not {_TITLES[kind]} file") from None
    except DAMAGED as error:
        if getattr(error, "errno", None) is not None:
            raise
        packed = source.form.compression is not None
        problem = "compressed data that are damaged, or end too early" if packed else "damaged"
        raise CommandError(
            f"{source}: {problem}" if packed else f"{source}: {problem}, or not {_TITLES[kind]} file"
        ) from None


def open_writer(file: Any, form: FileFormat, schema: pa.Schema) -> TableWriter:
    """Start a table with the columns of `schema` in an open binary file."""
    if form.kind == "csv":
        return _CsvWriter(file, form, schema)
    if form.kind == "parquet":
        return _ParquetWriter(file, schema)
    writer: TableWriter = pa.ipc.new_stream(file, schema) if form.stream else pa.ipc.new_file(file, schema)
    return writer


class Behind:
    """Writes in a thread of its own, one table at a time: two are held at most.

    Parameters
    ----------
    writer : TableWriter
    """

    def __init__(self, writer: TableWriter) -> None:
        self._writer = writer
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bitldp-write")
        self._going: Future[None] | None = None

    def write(self, table: Any) -> None:
        """Begin to append a table; raise what went wrong with the one before."""
        self._wait()
        self._going = self._thread.submit(self._writer.write, table)

    def _wait(self) -> None:
        going, self._going = self._going, None
        if going is not None:
            going.result()

    def close(self) -> None:
        """Finish what was begun, and write the end."""
        try:
            self._wait()
        finally:
            self._thread.shutdown()
            self._writer.close()


class _CsvWriter:
    """CSV, compressed where its form says so."""

    def __init__(self, file: Any, form: FileFormat, schema: pa.Schema) -> None:
        packed = form.compression
        self._compressed = None if packed is None else pa.CompressedOutputStream(file, packed)
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


def _encoding(start: bytes) -> str:
    """Return the encoding of a text that is not UTF-8, by its first bytes; nothing of another."""
    if start[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        return "UTF-32"
    marked = start[:2] in (b"\xff\xfe", b"\xfe\xff")
    return "UTF-16" if marked or start[:2].count(0) == 1 else ""


class _CsvReader:
    """CSV with a header. Every field is read as text; numbers are parsed where the row is known."""

    def __init__(self, source: InputSource) -> None:
        self._source = source
        self._delimiter = source.form.delimiter
        # Bytes that are no UTF-8 concern only the columns that hold them: the header's reader lets them pass.
        with source.open() as start:
            if encoding := _encoding(start.read(4)):
                raise CommandError(f"{source}: is text in {encoding}; a CSV file is read in UTF-8")
        with source.text("utf-8-sig", "surrogateescape") as file:
            self._header = next(csv.reader(file, delimiter=self._delimiter), [])
        if not self._header:
            raise CommandError(f"{source}: empty; a CSV file starts with a row of column names")
        skips = source.form.skip_blanks
        #: The columns, where asked for without the blanks before their names.
        self.names = [name.lstrip(" \t") if skips else name for name in self._header]
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
                with closing(self._parsed(columns, faults.CSV_BLOCK)) as tables:
                    for table in tables:
                        yield table.slice(rows)
                        rows -= min(rows, table.num_rows)
            except (pa.ArrowException, OSError):
                if not faults.is_header_only(self._source):
                    raise CommandError(
                        f"{self._source}: {faults.problem(self._source, self.names)}"
                    ) from None
        # An odd number of quotes may mean that one swallowed what follows.
        quotes = sum(block.count(b'"') for block in self._source.blocks())
        if quotes % 2 and (found := faults.open_quote(self._source)):
            raise CommandError(f"{self._source}: {found}")

    def _parsed(self, columns: Sequence[str], block: int) -> Generator[pa.Table, None, None]:
        own = [self._header[self.names.index(name)] for name in columns]
        # Arrow reads ahead in threads of its own, which must have nothing of Python in their hands: neither a
        # file object nor a handler of bad rows (see `InputSource.arrow`). Nor is the file closed here, for a
        # thread that is still reading would take its bytes from the file that is opened next under the same
        # number. The last holder closes it.
        file = pa.OSFile(str(self._source.path))
        with pa.csv.open_csv(
            self._source.arrow(file),
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=block),
            parse_options=pa.csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                # A blank line is a record too: without a value, and refused for it.
                ignore_empty_lines=False,
            ),
            convert_options=pa.csv.ConvertOptions(
                include_columns=list(own),
                column_types=dict.fromkeys(own, pa.string()),
                strings_can_be_null=False,
            ),
        ) as reader:
            for batch in reader:
                self._position = file.tell()
                table = pa.Table.from_batches([batch])
                if self._source.form.skip_blanks:
                    texts = [pc.utf8_ltrim(column, " \t") for column in table.columns]
                    table = pa.table(texts, names=list(columns))
                yield table


class _ParquetReader:
    """Parquet, read through pages: a row group larger than memory is no obstacle."""

    def __init__(self, source: InputSource) -> None:
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
        except (pa.ArrowException, DataError, OSError):
            raise CommandError(f"{self._source}: damaged Parquet data, or not readable") from None
