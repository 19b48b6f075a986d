"""The gate for foreign data: frames to checked Arrow tables, and released tables back to the same kind.

Only the columns that are asked for are looked at, one by one. What a library says of a value that it cannot
read quotes the value, so that its errors end here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from bitldp.base.errors import DataError, PlanError

__all__ = [
    "COUNTED",
    "MISSING_TEXTS",
    "TAKEN",
    "Missing",
    "alike",
    "checked",
    "first_row_of",
    "is_missing",
    "is_text",
    "metadata_of",
    "opened",
    "plain_column",
    "plain_type",
    "refuse_absent",
    "refuse_null",
    "refuse_other_plan",
    "worded",
]

Back = Callable[[pa.Table, Sequence[str]], Any]

#: Texts of a CSV field that mean "no value".
MISSING_TEXTS = ("", "na", "n/a", "nan", "null", "none", "?")


@dataclass(frozen=True)
class Missing:
    """Policy for a missing value (a null, or NaN); never does it pass through.

    Attributes
    ----------
    policy : {"refuse", "category", "fill", "report"}
        Refused by its row; a category of its own, the last one; a public value in its place; or that, beside
        a report of whether there is a value.
    fill : float, str or None
        That public value.
    """

    policy: Literal["refuse", "category", "fill", "report"] = "refuse"
    fill: Any = None

    @property
    def filled(self) -> bool:
        """True if a public value takes the place of a missing one."""
        return self.policy in ("fill", "report")


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
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        refuse_absent(frame.schema.names, columns)
        chosen = frame.select(list(columns))
        if isinstance(chosen, pa.Table):
            return checked(chosen), lambda table, kept: table
        return checked(pa.Table.from_batches([chosen])), _batch
    library = type(frame).__module__.partition(".")[0]
    if library == "pandas" and hasattr(frame, "columns"):
        names = [str(name) for name in frame.columns]
        refuse_absent(names, columns)
        series = {name: frame.iloc[:, names.index(name)] for name in columns}
        return _converted(series), lambda made, kept: _pandas(made, series, kept, frame)
    if library == "polars" and hasattr(frame, "to_arrow"):
        refuse_absent(frame.columns, columns)
        return _converted({name: frame.get_column(name) for name in columns}), lambda made, kept: _polars(
            made, kept, frame
        )
    if isinstance(frame, Mapping):
        refuse_absent(list(frame), columns)
        return _converted({name: frame[name] for name in columns}), lambda table, kept: _arrays(table)
    raise TypeError(
        f"frame: must be a table of Arrow, pandas or polars, or a dict of arrays, not {type(frame).__name__}"
    )


def checked(table: pa.Table) -> pa.Table:
    """Return a table after a look at all its bytes: whoever computes with it follows what they say.

    Raises
    ------
    DataError
        For a column whose bytes do not fit its type, such as a text that ends beyond its buffer or is no
        UTF-8.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowException:
            raise DataError(f"column {name!r}: its data are damaged, or no {column.type}") from None
    return table


@contextmanager
def worded(columns: Sequence[str]) -> Iterator[None]:
    """Say an error of Arrow about some columns without the values that it quotes.

    Raises
    ------
    DataError
        In place of any error of Arrow.
    """
    try:
        yield
    except (pa.ArrowException, UnicodeError, OverflowError):
        named = ", ".join(map(repr, columns[:3]))
        raise DataError(f"column {named}: holds values that the plan's mechanism cannot read") from None


# -- columns of Arrow


def first_row_of(mask: Any) -> int:
    """Return the index of the first true value of an Arrow mask."""
    return int(pc.index(mask, True).as_py())


def plain_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type that a dictionary-encoded or viewed column stands for."""
    if pa.types.is_dictionary(arrow_type):
        return plain_type(arrow_type.value_type)
    return pa.string() if str(arrow_type) == "string_view" else arrow_type


def is_text(kind: pa.DataType) -> bool:
    """Return whether a plain type is text, of pandas and polars too."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def plain_column(column: Any) -> Any:
    """Return a column without dictionary encoding or views."""
    wanted = plain_type(column.type)
    return column if column.type == wanted else column.cast(wanted)


#: What a plan can do about missing values: of categories, and of a column of numbers.
COUNTED = 'nulls = "category" in a plan counts them as one more category'
TAKEN = 'nulls = "report" or "fill" in a plan allows them'


def refuse_null(column: Any, name: str, first_row: int, hint: str = "") -> None:
    """Refuse a missing value by its row; `hint` says what a plan can do about it."""
    if column.null_count:
        row = first_row + first_row_of(column.is_null())
        raise DataError(f"row {row}, column {name!r}: missing value{'; ' if hint else ''}{hint}")


# -- frames of other libraries


def is_missing(column: Any) -> Any:
    """Return where a column of numbers has none: a null, NaN, or a text of a text file that says so."""
    if not is_text(column.type):
        return pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    return pc.fill_null(pc.is_in(texts, value_set=pa.array(MISSING_TEXTS, column.type)), True)


def _converted(columns: Mapping[str, Any]) -> pa.Table:
    """Return columns of another library, or of nobody's, as a checked table."""
    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        if isinstance(values, (str, bytes)):
            raise DataError(f"column {name!r}: must be an array, not one text")
        try:
            arrays[name] = values.to_arrow() if hasattr(values, "to_arrow") else _array(values)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException:  # of any library, and polars panics: its words quote what it could not read
            raise DataError(
                f"column {name!r}: must be an array of one type: numbers, text, bytes, booleans or dates"
            ) from None
        first = next(iter(arrays))
        if len(arrays[name]) != len(arrays[first]):
            raise DataError(f"column {name!r}: is not as long as column {first!r}")
    return checked(pa.table(arrays))


def _array(values: Any) -> Any:
    own = isinstance(values, (pa.Array, pa.ChunkedArray))
    return values if own else pa.array(values, from_pandas=_is_pandas(values))


def _is_pandas(values: Any) -> bool:
    """Return whether NaN is a missing value of its library."""
    return type(values).__module__.partition(".")[0] == "pandas"


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
    schema = getattr(frame, "schema", None)  # also of a dataset and of a reader
    if isinstance(schema, pa.Schema):
        return schema.metadata or {}
    attributes = getattr(frame, "attrs", None)
    if isinstance(attributes, Mapping):
        return {str(name).encode(): str(value).encode() for name, value in attributes.items()}
    return {}


def refuse_other_plan(metadata: Mapping[bytes, bytes] | None, plan: str, argument: str = "source") -> None:
    """Refuse a table that says that another plan released it, by the name of the argument that it is."""
    stated = (metadata or {}).get(b"bitldp.plan")
    if stated is not None and stated != plan.encode():
        raise PlanError(f"{argument}: was released by another plan")


def refuse_absent(names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a table that has not each of some columns once."""
    times = Counter(names)
    for name in columns:
        if times[name] != 1:
            problem = "has several columns of that name" if times[name] else "has no such column"
            raise PlanError(f"column {name!r}: the table {problem}")


def _batch(table: pa.Table, kept: Sequence[str]) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _pandas(table: pa.Table, series: Mapping[str, Any], kept: Sequence[str], frame: Any) -> Any:
    made = table.to_pandas()
    made.index = frame.index
    for name in kept:  # of the dtype that they have
        made[name] = series[name]
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
