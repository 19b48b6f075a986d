"""The examples of tables, run as they are written."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import TableRelease
from support.engines import ordered, plain

pytestmark = pytest.mark.engine

EXAMPLES = Path(__file__).parents[2] / "examples" / "tables"
DOCS = EXAMPLES.parents[1] / "docs"
ENGINES = {"polars": "polars", "dask": "dask.dataframe", "duckdb": "duckdb", "ray": "ray", "spark": "pyspark"}


def run(command: list[str], folder: Path) -> str:
    """Run a command; return what it prints."""
    found = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=240, env=os.environ
    )
    assert found.returncode == 0, found.stderr[-2_000:]
    return found.stdout


def installed(module: str) -> bool:
    """Whether a module can be imported, without importing it."""
    return importlib.util.find_spec(module.partition(".")[0]) is not None


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_gives_the_same_rows_again(name: str) -> None:
    if not installed(ENGINES[name]):
        pytest.skip(f'needs pip install "bitldp[{name}]"')
    if name == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    said = run([sys.executable, str(EXAMPLES / f"on_{name}.py")], EXAMPLES)
    assert "the same rows again: True" in said
    assert "exact epsilon 4 a record, 20,000 records" in said
    assert "city = Paris" in said


def test_there_is_an_example_for_every_engine() -> None:
    assert {path.stem.removeprefix("on_") for path in EXAMPLES.glob("on_*.py")} == set(ENGINES)


def test_the_commands_of_its_page(tmp_path: Path) -> None:
    if not installed("typer"):
        pytest.skip('needs pip install "bitldp[cli]"')
    for name in ("people.py", "plan.toml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    (block,) = re.findall(r"```sh\n(.*?)```", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    said = []
    for line in block.splitlines():
        program, *rest = shlex.split(line)
        command = [sys.executable, *(["-m", "bitldp"] if program == "bitldp" else []), *rest]
        said.append(run(command, tmp_path))
    assert len(said) == 6
    assert "exact epsilon 4 a row" in said[1]
    assert "share of Paris" in said[2]
    assert "autumn" in said[3]
    assert "mean of height" in said[4]
    assert said[5].rstrip().endswith("proven")


def lines_of(engine: str) -> list[str]:
    """Return the two lines of the page on tables that a user of an engine types: a release, a look at ids."""
    text = (DOCS / "tables.md").read_text(encoding="utf-8")
    found = re.findall(rf"^{engine} +(.*release\..*|.*\(release.*)$", text, re.MULTILINE)
    assert len(found) == 2, engine
    return found


@pytest.mark.parametrize("engine", ["Spark", "Ray", "Dask", "polars", "DuckDB"])
def test_the_lines_of_the_pages(
    request: pytest.FixtureRequest, engine: str, table: pa.Table, release: TableRelease
) -> None:
    """They run as they are written, and the guide has the same."""
    name = engine.lower()
    module = pytest.importorskip(
        ENGINES[name].partition(".")[0], reason=f'needs pip install "bitldp[{name}]"'
    )
    some = table.slice(0, 2_000)
    known: dict[str, Any] = {"release": release}
    if name == "spark":
        known["frame"] = request.getfixturevalue("spark").createDataFrame(some.to_pandas())
    elif name == "ray":
        known["data"] = request.getfixturevalue("ray").data.from_arrow([some.slice(0, 999), some.slice(999)])
    elif name == "dask":
        known["frame"] = request.getfixturevalue("dask").from_pandas(some.to_pandas(), npartitions=2)
    elif name == "polars":
        known |= {"pl": module, "frame": module.from_arrow(some).lazy()}
    else:
        known["connection"] = module.connect()
        known["connection"].register("people", some)
    released, looked = lines_of(engine)
    found = eval(released, known)
    finish = {"spark": "toPandas", "ray": "to_pandas", "dask": "compute", "polars": "collect"}
    rows = getattr(found, finish.get(name, "to_arrow_table"))()
    rows = rows if isinstance(rows, pa.Table) else rows.to_arrow() if name == "polars" else plain(rows)
    assert ordered(rows).equals(ordered(release(some)))
    assert eval(looked, known) == 2_000
    guide = (DOCS / "guides" / "cluster.md").read_text(encoding="utf-8")
    assert re.search(rf'=== "{engine}"\n\n    ```text\n    released = {re.escape(released)}\n    ```', guide)
