"""A released table is asked by its path in a process that has imported nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

SCRIPT = """
import sys, pyarrow as pa, bitldp
from bitldp.tables import Column, ReleasedTable, TablePlan
plan = TablePlan([Column(bitldp.GRR(2, epsilon=8.0), "city", categories=["Rome", "Oslo"])])
table = plan.release()(pa.table({"city": ["Rome", "Oslo"] * 50}))
with pa.ipc.new_file(sys.argv[1], table.schema) as file:
    file.write_table(table)
print(ReleasedTable(plan, sys.argv[1]).share("city").n.tolist())
"""


@pytest.mark.slow
def test_a_path_needs_no_import_of_the_user(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "released.arrow")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout == "[100, 100]\n", run.stderr
