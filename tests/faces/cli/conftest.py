"""Files to perturb: a table of every kind of column, and people with one secret value.

What needs pyarrow or typer is imported in the fixtures: tests that skip without them live here, too.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pyarrow as pa


@pytest.fixture(autouse=True)
def _heeded() -> Iterator[None]:
    """Heed signals that are ignored where the tests run in the background."""
    numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGHUP")]
    ignored = [number for number in numbers if number and signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


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
