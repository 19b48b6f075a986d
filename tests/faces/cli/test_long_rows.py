"""Rows of a CSV file that are longer than what is read at once, and those that are longer than any may be."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
from bitldp.cli.commands import form_of
from bitldp.cli.errors import CommandError
from bitldp.cli.perturb.table_files import open_reader, opened

ROWS = 60_000  # some blocks


def read(path: Path, lengths: dict[int, int], batch: int) -> pa.Table:
    """Write rows with texts of these lengths in some of them, and read the file again."""
    with path.open("w") as file:
        file.write("number,text\n")
        file.writelines(f'{row},"{"x" * lengths.get(row, 3)}"\n' for row in range(ROWS))
    with opened(path, form_of(path, None, "--from")) as source:
        return pa.concat_tables(open_reader(source).batches(["text", "number"], batch))


@pytest.mark.parametrize("lengths", [{}, {0: 300_000}, {40_000: 1_000_000}, {ROWS - 1: 700_000, 9: 300_000}])
@pytest.mark.parametrize("batch", [1000, 1 << 16])
def test_a_long_row_is_read_with_all_others(tmp_path: Path, lengths: dict[int, int], batch: int) -> None:
    table = read(tmp_path / "a.csv", lengths, batch)
    assert table.column("number").to_pylist() == [str(row) for row in range(ROWS)]
    assert [len(text) for text in table.column("text").to_pylist()] == [
        lengths.get(row, 3) for row in range(ROWS)
    ]


def test_a_row_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="a row longer than 1 MiB"):
        read(tmp_path / "a.csv", {40_000: 2_200_000}, 1000)
