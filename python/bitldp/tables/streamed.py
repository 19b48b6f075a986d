"""Tables that come as a stream of batches: datasets, readers, relations of DuckDB, whatever Arrow can stream.

They may be larger than memory, so that they are released and counted a batch at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from os import PathLike, fspath
from typing import Any, Protocol

import pyarrow as pa

from bitldp.base.errors import DataError, PlanError
from bitldp.tables.dataset import dataset_of
from bitldp.tables.frames import checked, metadata_of, opened, refuse_absent, refuse_other_plan
from bitldp.tables.ids import FirstIds

__all__ = ["released_stream", "rows_of", "stream_of", "streamed"]

_ROWS = 1 << 17  # of a batch that is released at once
_SCAN: dict[str, Any] = {"batch_size": _ROWS, "batch_readahead": 2}  # of a dataset, by pyarrow


class _Release(Protocol):
    """The part of `bitldp.tables.TableRelease` that a stream of batches depends on."""

    record: str | None

    @property
    def reads(self) -> tuple[str, ...]: ...

    def piece(self, table: pa.Table, first_row: int = 1, *, seen: Any = None) -> pa.Table: ...

    def schema(self, schema: pa.Schema) -> pa.Schema: ...


def stream_of(source: Any, columns: Sequence[str]) -> pa.RecordBatchReader | None:
    """Return the reader of a table that comes as a stream; None of one that is whole.

    Parameters
    ----------
    source : pyarrow.dataset.Dataset, pyarrow.dataset.Scanner, pyarrow.RecordBatchReader, or other
        Anything else with an Arrow C stream, such as a relation of DuckDB, but for tables of Arrow, pandas
        and polars.
    columns : sequence of str
        Names that are needed. A reader may have more.

    Raises
    ------
    PlanError
        For a dataset or relation without one of them.
    DataError
        For one that cannot be read; no value is shown.
    """
    library = type(source).__module__.partition(".")[0]
    if isinstance(source, pa.RecordBatchReader):
        return source
    dataset = sys.modules.get("pyarrow.dataset")
    try:
        if dataset is not None and isinstance(source, dataset.Dataset):
            refuse_absent(source.schema.names, columns)
            return source.scanner(columns=list(columns), fragment_readahead=1, **_SCAN).to_reader()
        if dataset is not None and isinstance(source, dataset.Scanner):
            return source.to_reader()
        if library in ("duckdb", "_duckdb") and hasattr(source, "project"):
            refuse_absent(source.columns, columns)
            source = source.project(", ".join(map(_quoted, columns)))
        elif isinstance(source, (pa.Table, pa.RecordBatch)) or library in ("pandas", "polars"):
            return None
        if hasattr(source, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(source)
    except PlanError:
        raise
    except Exception:  # of any library: its words may quote what it could not read
        raise DataError("source: cannot be read as a stream of Arrow") from None
    return None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def streamed(source: Any, columns: Sequence[str], plan: str) -> Iterator[pa.Table] | None:
    """Yield some columns of a released table that comes as a stream; return None for one that is whole.

    Each table has the metadata of the file that it is of, or of the stream. The arguments are those of
    `rows_of`.

    Raises
    ------
    PlanError
        For a stream of another plan, also in one of its files, or without a column.
    DataError
        For a stream that cannot be read.
    """
    refuse_other_plan(stated := metadata_of(source), plan)
    dataset = sys.modules.get("pyarrow.dataset")
    if stated and dataset is not None and isinstance(source, dataset.FileSystemDataset):
        refuse_absent(source.schema.names, columns)
        with suppress(ValueError):  # of a dataset that was filtered, files cannot be told apart
            return _by_file(source, source.get_fragments(), columns, plan)
    reader = stream_of(source, columns)
    return None if reader is None else _batches_of(reader, columns)


def _by_file(dataset: Any, files: Iterable[Any], columns: Sequence[str], plan: str) -> Iterator[pa.Table]:
    """Yield some columns of a dataset, file by file, and of Parquet one row group after the other.

    Arrow reads ahead of a slow consumer, up to a GiB: so it is given no more than a row group.
    """
    for file in files:
        try:
            metadata = file.physical_schema.metadata
            refuse_other_plan(metadata, plan)
            pieces = file.split_by_row_group() if hasattr(file, "split_by_row_group") else [file]
        except (pa.ArrowException, OSError):
            raise DataError("source: cannot be read as a stream of Arrow") from None
        for piece in pieces:
            reader = piece.scanner(schema=dataset.schema, columns=list(columns), **_SCAN).to_reader()
            for table in _batches_of(reader, columns):
                yield table.replace_schema_metadata(metadata)


def _batches_of(reader: pa.RecordBatchReader, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield some columns of a stream as checked tables, some rows at a time.

    Raises
    ------
    PlanError
        For a stream without one of the columns.
    DataError
        For a stream that ends in an error; no value is shown.
    """
    refuse_absent(reader.schema.names, columns)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (DataError, PlanError):  # of a release that this stream is of
            raise
        except Exception:
            raise DataError("source: its data are damaged, or could not be read to their end") from None
        table = checked(pa.Table.from_batches([batch]).select(list(columns)))
        for start in range(0, table.num_rows, _ROWS):
            yield table.slice(start, _ROWS)


def released_stream(release: _Release, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return what is released of a stream, as a stream that is released while it is read.

    An id that comes up again is refused before its row is released: the rows before it have left then.
    """
    refuse_absent(reader.schema.names, release.reads)
    schema = release.schema(reader.schema)
    seen = None if release.record is None else FirstIds(release.record)

    def batches() -> Iterator[pa.RecordBatch]:
        row = 1
        for table in _batches_of(reader, release.reads):
            made = release.piece(table, row, seen=seen)
            row += table.num_rows
            yield from made.combine_chunks().to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def rows_of(source: Any, names: Sequence[str], plan: str) -> Iterator[pa.Table]:
    """Yield some columns of a released table, some rows at a time, with the metadata of where they are from.

    Parameters
    ----------
    source : frame, sequence of frames, path, sequence of paths, stream, or callable
        A callable is given the names. A stream is what `stream_of` takes.
    names : sequence of str
        Columns that are needed.
    plan : str
        Digest of the plan that released it.

    Raises
    ------
    PlanError
        For a table of another plan, or without a column; for a reader, which can be read only once.
    DataError
        For a table that cannot be read.
    """
    if isinstance(source, pa.RecordBatchReader):
        raise PlanError(
            "source: a reader can be read once, and each question reads the table; give a dataset, a path, "
            "or a function that returns readers"
        )
    if isinstance(source, (str, PathLike)):
        source = [source]
    if isinstance(source, (list, tuple)) and source and isinstance(source[0], (str, PathLike)):
        source = dataset_of([fspath(each) for each in source])
    if callable(source):
        frames: Iterable[Any] = source(names)
    else:
        frames = source if isinstance(source, (list, tuple)) else [source]
    for frame in frames:
        if (tables := streamed(frame, names, plan)) is not None:
            yield from tables
            continue
        table = opened(frame, names)[0].replace_schema_metadata(metadata_of(frame))
        for start in range(0, table.num_rows, _ROWS):
            yield table.slice(start, _ROWS)
