"""Releases whose privacy reports are verified, and reports that were changed after that."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from bitldp import verify
from bitldp.tables import Column, TablePlan
from bitldp.tables.column import canonical_digest

from support.command import invoke
from support.plans import people

Report = dict[str, Any]


def released_report(
    folder: Path, plan: TablePlan, table: pa.Table, suffix: str = "csv"
) -> tuple[Report, Path]:
    """Release a table by a plan, and return its report and its file."""
    source, target = folder / "people.parquet", folder / f"released.{suffix}"
    pa.parquet.write_table(table, source)
    plan.write(folder / "plan.toml")
    result = invoke("perturb", source, "-o", target, "--plan", folder / "plan.toml", "--force")
    assert result.exit_code == 0, result.output
    return json.loads(Path(f"{target}.privacy.json").read_text()), target


def verdict_of(report: Report, target: Path | None = None) -> str:
    return verify.verdict(verify.verify(report, target))


def sealed(report: Report) -> Report:
    """Return a report with digests of its plan and of itself made anew, as everybody can."""
    made = copy.deepcopy(report)
    if made["plan"] is not None:
        made["plan_sha256"] = canonical_digest(made["plan"])
    made["report_sha256"] = canonical_digest({k: v for k, v in made.items() if k != "report_sha256"})
    return made


def put(report: Report, path: tuple[Any, ...], value: Any) -> Report:
    made = copy.deepcopy(report)
    inner: Any = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


def with_gaps(table: pa.Table, name: str, every: int = 5) -> pa.Table:
    """Return a table with a column of numbers in which some are missing."""
    numbers = pa.array(table.column(name).to_numpy(), mask=np.arange(table.num_rows) % every == 1)
    return table.set_column(table.column_names.index(name), name, numbers)


def typed_with_gaps(rows: int) -> tuple[TablePlan, pa.Table]:
    """Return a plan that states types and reports gaps, and people for it."""
    table = with_gaps(people(rows), "weight")
    made = TablePlan(
        [
            Column(
                bitldp.Piecewise(epsilon=1.0, interval=(0.0, 250.0)), "weight", nulls="report", output="codes"
            ),
            Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["Paris", "Rome", "Oslo"]),
        ],
        keep=["survey"],
    )
    return made.typed(table, record="id"), table
