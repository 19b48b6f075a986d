"""What the examples of all engines share: the table, the release by its plan, and the answers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from bitldp.tables import ReleaseKey, TablePlan, TableRelease
from people import people

__all__ = ["answers", "people", "release"]

FOLDER = Path(__file__).parent


def release() -> TableRelease:
    """Return the release by plan.toml; its key is in the environment (here one is made, if there is none)."""
    os.environ.setdefault("BITLDP_RELEASE_KEY", ReleaseKey.new_text())
    plan = TablePlan.read(FOLDER / "plan.toml")
    return plan.release(ReleaseKey.from_env("BITLDP_RELEASE_KEY"), record="id", snapshot="2026-11")


def answers(released: pa.Table, truth: pa.Table) -> None:
    """Print the estimates of a released table beside the truth."""
    plan = TablePlan.read(FOLDER / "plan.toml")
    print(f"exact epsilon {plan.guarantee.record:.6g} a record, {released.num_rows:,} records")
    for row in plan.aggregate().update(released).estimate().to_pylist():
        values = truth.column(row["column"]).to_pylist()
        if row["what"] == "mean":
            true, name = float(np.mean(values)), row["column"]
        else:
            true = float(np.mean([value == row["category"] for value in values]))
            name = f"{row['column']} = {row['category'] or 'missing'}"
        print(
            f"{name:16}  {row['estimate']:9.3f}  ({row['low']:8.3f} to {row['high']:8.3f})  truth {true:8.3f}"
        )
