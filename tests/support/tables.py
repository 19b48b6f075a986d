"""Tables of every kind of column, and ``bitldp perturb`` on them in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
from typer.testing import Result

from support.command import invoke

ROWS = 3 * 8192 + 77
COLOURS = ("red", "green", "blue")

# The numbers that code words spell: biased, and easy to compare with the library's.
SPELLED = ("--output", "values", "--decode", "reported")


def perturb(source: Path, target: Path, *options: object) -> Result:
    """Run ``bitldp perturb`` and expect success."""
    result = invoke("perturb", source, "-o", target, *options)
    assert result.exit_code == 0, result.stderr
    return result


def make_table(rows: int = ROWS) -> pa.Table:
    """Return a table with a column of every kind."""
    rng = np.random.default_rng(11)
    return pa.table(
        {
            "name": [f"person {i}" for i in range(rows)],
            "height": rng.normal(0.0, 3.0, rows),
            "weight": rng.normal(0.0, 3.0, rows).astype(np.float32),
            "count": rng.integers(-9, 9, rows),
            "colour": pa.array(np.array(COLOURS)[rng.integers(0, 3, rows)]),
            "level": rng.integers(0, 5, rows).astype(np.int16),
            "member": rng.integers(0, 2, rows).astype(bool),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    """Write a table in the format of the suffix; ``.stream.arrow`` is the stream format."""
    if path.name.endswith(".stream.arrow"):
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=999)
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=5000)
    else:
        pa.feather.write_feather(table, path, chunksize=7000)
    return path


def read(path: Path) -> pa.Table:
    """Read a table back."""
    if path.suffix == ".csv":
        return pa.csv.read_csv(path)
    if path.suffix == ".parquet":
        return pa.parquet.read_table(path)
    return pa.feather.read_table(path)


def report_of(path: Path) -> dict[str, Any]:
    """Return the privacy report of an output."""
    report: dict[str, Any] = json.loads(path.with_name(path.name + ".privacy.json").read_text())
    return report
