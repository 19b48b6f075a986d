"""Frames of Arrow, pandas and polars to Arrow tables, and released tables back to the same kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from bitldp.base.errors import PlanError

__all__ = ["alike", "metadata_of", "opened"]

Back = Callable[[pa.Table, Sequence[str]], Any]


def opened(frame: Any, columns: Sequence[str]) -> tuple[pa.Table, Back]:
    """Return some columns of a frame as an Arrow table, and a way back from a table to a frame of its kind.

    Parameters
    ----------
    frame : pyarrow.Table, pyarrow.RecordBatch, pandas.DataFrame, polars.DataFrame or dict of arrays
    columns : sequence of str
        Names that it must have once.

    Returns
    -------
    table : pyarrow.Table
    back : callable
        Takes a released table and the names of the columns that are kept, which are taken from the frame as
        they are.

    Raises
    ------
    TypeError
        For a frame of another kind.
    PlanError
        For a column that the frame does not have once.
    """
    if isinstance(frame, pa.RecordBatch):
        return _chosen(pa.Table.from_batches([frame]), columns), _batch
    if isinstance(frame, pa.Table):
        return _chosen(frame, columns), lambda table, kept: table
    library = type(frame).__module__.partition(".")[0]
    if library == "pandas" and hasattr(frame, "columns"):
        _refuse_absent([str(name) for name in frame.columns], columns)
        table = pa.Table.from_pandas(frame[list(columns)], preserve_index=False)
        return table.replace_schema_metadata(None), lambda made, kept: _pandas(made, kept, frame)
    if library == "polars" and hasattr(frame, "to_arrow"):
        _refuse_absent(frame.columns, columns)
        return frame.select(list(columns)).to_arrow(), lambda made, kept: _polars(made, kept, frame)
    if isinstance(frame, Mapping):
        return _chosen(pa.table(dict(frame)), columns), lambda table, kept: _arrays(table)
    raise TypeError(
        f"frame: must be a table of Arrow, pandas or polars, or a dict of arrays, not {type(frame).__name__}"
    )


def alike(table: pa.Table, frame: Any) -> Any:
    """Return a table as a frame of the kind of another: of pandas or polars, otherwise of Arrow."""
    library = type(frame).__module__.partition(".")[0]
    if library == "pandas":
        return table.to_pandas()
    if library == "polars":
        import polars

        return polars.from_arrow(table)
    return _batch(table, ()) if isinstance(frame, pa.RecordBatch) else table


def metadata_of(frame: Any) -> Mapping[bytes, bytes]:
    """Return the metadata of a released frame; nothing where its kind carries none."""
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return frame.schema.metadata or {}
    attributes = getattr(frame, "attrs", None)
    if isinstance(attributes, Mapping):
        return {str(name).encode(): str(value).encode() for name, value in attributes.items()}
    return {}


def _refuse_absent(names: Sequence[str], columns: Sequence[str]) -> None:
    times = Counter(names)
    for name in columns:
        if times[name] != 1:
            problem = "has several columns of that name" if times[name] else "has no such column"
            raise PlanError(f"column {name!r}: the table {problem}")


def _chosen(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    _refuse_absent(table.column_names, columns)
    return table.select(list(columns))


def _batch(table: pa.Table, kept: Sequence[str]) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _pandas(table: pa.Table, kept: Sequence[str], frame: Any) -> Any:
    made = table.to_pandas()
    made.index = frame.index
    for name in kept:  # of the dtype that they have
        made[name] = frame[name]
    made.attrs |= {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    return made


def _polars(table: pa.Table, kept: Sequence[str], frame: Any) -> Any:
    import polars

    made = polars.from_arrow(table)
    if not isinstance(made, polars.DataFrame):
        raise TypeError("frame: no polars table")
    return made.with_columns([frame[name] for name in kept]) if kept else made


def _arrays(table: pa.Table) -> dict[str, Any]:
    return {name: table.column(name).to_numpy() for name in table.column_names}
