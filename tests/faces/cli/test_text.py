"""CSV as it is written: the bytes that Arrow's own writer gives."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.csv
from bitldp.cli.commands import FileFormat
from bitldp.cli.errors import UsageError
from bitldp.cli.perturb.table_files import TextWriter

ROWS = 40_000
RNG = np.random.default_rng(0)
SOME = RNG.random(ROWS) < 0.1
EVEN = np.arange(ROWS) % 2
COLUMNS: dict[str, Any] = {
    "letters": RNG.choice([1.5, 2.25, 1e-7, 1e22, -0.0, np.nan, np.inf], ROWS),
    "every": RNG.random(ROWS).astype(np.float32),
    "whole": pa.array(RNG.integers(-9, 9, ROWS), mask=SOME),
    'a "text"': pa.array(RNG.choice(["x", 'y"z', "", "a,b", "c\nd", "Zoë"], ROWS), mask=SOME),
    "all texts": pa.array([f"person {i}" for i in range(ROWS)]),
    "large": pa.array(["a", None] * (ROWS // 2), pa.large_string()),
    "kinds": pa.array(["u", "v"]).take(pa.array(EVEN)).dictionary_encode(),
    "flag": RNG.random(ROWS) < 0.5,
    "day": pa.array(EVEN.astype(np.int32)).cast(pa.date32()),
    "time": pa.array(EVEN).cast(pa.timestamp("us", "Europe/Paris")),
    "money": pa.array(EVEN).cast(pa.decimal128(22, 2)),
    "bytes": pa.array([b"ab", None] * (ROWS // 2)),
    "null": pa.nulls(ROWS),
}


def written(table: pa.Table, delimiter: str) -> bytes:
    sink = io.BytesIO()
    TextWriter(sink, FileFormat("csv", delimiter), table.schema).write(table)
    return sink.getvalue()


def by_arrow(table: pa.Table, delimiter: str) -> bytes:
    sink = io.BytesIO()
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(delimiter=delimiter))
    return sink.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [ROWS, 20])
def test_every_type_is_written_as_arrow_does(name: str, rows: int) -> None:
    table = pa.table({name: COLUMNS[name], "row": np.arange(ROWS)}).slice(3, rows)
    assert written(table, ",") == by_arrow(table, ",")


@pytest.mark.parametrize("name", ["whole", 'a "text"', "large", "kinds", "bytes", "null"])
def test_a_null_alone_in_its_row_is_read_back(name: str) -> None:
    """Python's reader, pandas and Arrow skip a blank line, or leave it without a field."""
    values = pa.array(COLUMNS[name]).slice(7, 30) if name != "kinds" else pa.array(["u", None, "v"])
    table = pa.table({name: values.dictionary_encode() if name == "kinds" else values})
    text = written(table, ",").decode()
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) == 1 + len(values)
    assert all(len(row) == 1 for row in rows)
    shown = [None if not row[0] else row[0] for row in rows[1:]]
    plain = [each.decode() if isinstance(each, bytes) else each for each in values.to_pylist()]
    assert shown == [None if each in (None, "") else str(each) for each in plain]
    read = pa.csv.read_csv(
        io.BytesIO(text.encode()), parse_options=pa.csv.ParseOptions(newlines_in_values=True)
    )
    assert read.num_rows == len(values)


@pytest.mark.slow
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_columns_beside_each_other(delimiter: str) -> None:
    table = pa.table(COLUMNS)
    assert written(table, delimiter) == by_arrow(table, delimiter)
    pieces = pa.concat_tables([table.slice(0, 7), table.slice(9000, 0), table.slice(20_001, 30)])
    assert written(pieces, delimiter) == by_arrow(pieces, delimiter)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_have_arrows_layout_and_come_back(dtype: Any) -> None:
    numbers = np.concatenate(
        [
            RNG.integers(0, 256, ROWS * 8, np.uint8).view(dtype),  # any bits
            (RNG.choice([-1.0, 1.0], ROWS) * 10.0 ** RNG.uniform(-8.0, 12.0, ROWS)).astype(dtype),
            np.round(RNG.normal(0.0, 100.0, ROWS), 2).astype(dtype),
        ]
    )
    texts = written(pa.table({"x": numbers}), ",").decode().splitlines()[1:]
    arrows = by_arrow(pa.table({"x": numbers}), ",").decode().splitlines()[1:]
    np.testing.assert_array_equal(np.array(texts, dtype), numbers)
    for text, arrow in zip(texts, arrows, strict=True):
        # Of two shortest decimals the nearer one is written, Arrow has either.
        assert text == arrow or (len(text) == len(arrow) and dtype(text) == dtype(arrow)), (text, arrow)


def test_categories_that_hold_a_null() -> None:
    names = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["a", None, 'b"']))
    beside = pa.array([1, 2, 3, 4])
    assert written(pa.table({"x": names, "y": beside}), ",") == b'"x","y"\n"a",1\n,2\n,3\n"b""",4\n'
    assert written(pa.table({"x": names}), ",") == b'"x"\n"a"\n""\n""\n"b"""\n'


def test_a_type_that_no_text_holds_is_refused() -> None:
    with pytest.raises(UsageError, match=r"column 'x' holds list<item: int64>, which no text holds"):
        TextWriter(io.BytesIO(), FileFormat("csv"), pa.schema([("x", pa.list_(pa.int64()))]))
