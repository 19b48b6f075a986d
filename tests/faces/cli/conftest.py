"""Files to perturb: a table of every kind of column, and people with one secret value.

What needs pyarrow or typer is imported in the fixtures: tests that skip without them live here, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pyarrow as pa


@pytest.fixture(scope="module")
def table() -> pa.Table:
    from support.tables import make_table

    return make_table()


@pytest.fixture(scope="module")
def parquet(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from support.tables import write

    return write(table, tmp_path_factory.mktemp("data") / "people.parquet")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    from support.refusals import PEOPLE

    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path
