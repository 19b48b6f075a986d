"""The demonstration's table: mixed columns, a plan, a released file, and answers beside the truth."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import bitldp
from bitldp.base.errors import missing
from bitldp_papers.data import load
from bitldp.tables import Column, ReleaseKey, TablePlan, TableRelease

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["tables"]

_KEY = bytes(range(32))  # of a demonstration: whoever has it can undo the noise


def tables(console: Console) -> None:
    """Release a table of digits by a plan, to a file; estimate from the file, with intervals."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    start = time.perf_counter()
    table, plan = _digits(), _plan()
    release = plan.release(ReleaseKey(_KEY), record="id", snapshot="demo")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "released.parquet"
        pyarrow.parquet.write_table(release(table), path)
        answers = plan.aggregate().update(pyarrow.parquet.read_table(path)).estimate()
    shown = Table(
        title=f"{table.num_rows} images as a table, at exact ε = {plan.guarantee.record:.3g} a record",
        box=SIMPLE_HEAD,
        padding=(0, 1),
        show_edge=False,
    )
    for name in ("column", "of", "estimate", "95 % interval", "truth"):
        shown.add_column(name, justify="left" if name in ("column", "of") else "right", no_wrap=True)
    for row in answers.to_pylist():
        values = np.asarray(table.column(row["column"]).to_pylist())
        share = row["what"] == "share"
        truth = float(np.mean(values == row["category"]) if share else np.mean(values))
        shown.add_row(
            row["column"],
            f"share of {row['category']}" if share else "mean",
            f"{row['estimate']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            f"{truth:.3f}",
        )
    console.print(shown)
    console.print(f"{_on_engines(release, table)} {time.perf_counter() - start:.1f} s.", markup=False)


def _digits() -> pa.Table:
    """Return the images as a table of mixed columns."""
    data = load("digits")
    ink = np.asarray(data.train, np.float64)
    labels = [f"{label}" for label in data.train_labels]
    dark = (ink > 8.0).sum(axis=1)
    top = np.where(ink[:, :32].sum(axis=1) > ink[:, 32:].sum(axis=1), "top", "bottom")
    ids = np.arange(len(ink))
    return pa.table({"id": ids, "ink": ink.mean(axis=1), "dark": dark, "heavier": top, "digit": labels})


def _plan() -> TablePlan:
    return TablePlan(
        [
            Column(bitldp.Piecewise(2.0, interval=(0.0, 16.0)), "ink"),
            Column(bitldp.MVU(2.0, input_bits=3, output_bits=3, interval=(0.0, 64.0)), "dark"),
            Column(bitldp.GRR(2, epsilon=1.0), "heavier", categories=["top", "bottom"]),
            Column(bitldp.OUE(10, epsilon=3.0), "digit", categories=[str(digit) for digit in range(10)]),
        ]
    )


def _on_engines(release: TableRelease, table: pa.Table) -> str:
    """Release once more on an engine that is installed, and say whether the rows are the same."""
    absent = missing(["polars"])
    if absent:
        return 'With an engine (pip install "bitldp[polars]") the rows would be the same.'
    import polars

    frame = polars.DataFrame(table).lazy()
    schema = release.polars_schema(frame.collect_schema())
    lazy = frame.map_batches(release.polars, schema=schema)
    same = lazy.collect().to_arrow().to_pydict() == release(table).to_pydict()
    return f"Released again by polars, lazily: {'the same rows' if same else 'OTHER ROWS'}."
