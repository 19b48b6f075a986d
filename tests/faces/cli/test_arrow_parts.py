"""Arrow record batches that are read some rows at a time are what is in the file, and damage is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from bitldp.cli.perturb.arrow_parts import DamagedError, blocks, rows_of

if not hasattr(os, "preadv"):
    pytest.skip("read as a whole where there is no preadv", allow_module_level=True)

N = 10_007
RNG = np.random.default_rng(1)
WORDS = ["", "a", "é" * 9, None, "long " * 20]

COLUMNS = {
    "f4": pa.array(RNG.normal(size=N).astype(np.float32)),
    "f8": pa.array(RNG.normal(size=N), mask=RNG.random(N) < 0.1),
    "i8": pa.array(RNG.integers(0, 99, N).astype(np.int8)),
    "bool": pa.array(RNG.random(N) < 0.5, mask=RNG.random(N) < 0.1),
    "time": pa.array(np.arange(N), pa.timestamp("us")),
    "bytes": pa.array([b"%03d" % (i % 999) for i in range(N)], pa.binary(3)),
    "text": pa.array([WORDS[i % 5] for i in range(N)]),
    "large": pa.array([WORDS[i % 5] for i in range(N)], pa.large_string()),
    "category": pa.array([WORDS[i % 5] for i in range(N)]).dictionary_encode(),
}


def written(path: Path, **options: object) -> pa.Table:
    table = pa.table(COLUMNS)
    pa.feather.write_feather(table, path, **{"compression": "uncompressed", "chunksize": 4_000, **options})
    return table


@pytest.mark.parametrize("rows", [1_000, 1_001, 7, 4_000, 9_999])
def test_rows_are_those_of_the_file(tmp_path: Path, rows: int) -> None:
    table = written(path := tmp_path / "x.arrow")
    names = ["category", *COLUMNS] if rows == 1_000 else list(COLUMNS)
    names = list(dict.fromkeys(names))
    found = []
    for number, start in enumerate(range(0, N, 4_000)):
        parts = rows_of(path, number, names, rows)
        assert parts is not None
        pieces = list(parts)
        assert [len(piece) for piece in pieces[:-1]] == [rows] * (len(pieces) - 1)
        joined = pa.Table.from_batches(pieces)
        joined.validate(full=True)
        assert joined.equals(table.select(names).slice(start, 4_000))
        found.append(joined)
    assert pa.concat_tables(found).equals(table.select(names))


def test_what_lies_elsewhere_in_memory_is_read_as_a_whole(tmp_path: Path) -> None:
    written(path := tmp_path / "x.arrow", compression="lz4")
    assert rows_of(path, 0, ["f4"], 100) is None
    nested = pa.table({"x": pa.array([[1, 2], [3]] * 50), "y": np.arange(100)})
    pa.feather.write_feather(nested, path, compression="uncompressed")
    assert rows_of(path, 0, ["x", "y"], 100) is None
    assert rows_of(path, 0, ["y"], 100) is not None


@pytest.mark.parametrize("at", ["body", "offsets", "cut"])
def test_damage_is_refused(tmp_path: Path, at: str) -> None:
    written(path := tmp_path / "x.arrow")
    block = blocks(path).batches[1]
    data = bytearray(path.read_bytes())
    if at == "cut":
        parts = rows_of(path, 1, list(COLUMNS), 500)
        assert parts is not None
        next(parts)
        os.truncate(path, block.offset + block.metadata + 100)
        with pytest.raises(DamagedError):
            list(parts)
        return
    if at == "offsets":  # of the texts: they would be followed anywhere
        with pa.memory_map(str(path)) as source:
            column = pa.ipc.open_file(source).get_batch(1).column("text")
            place = data.find(column.buffers()[1].to_pybytes(), block.offset)
            del column
        data[place + 400 : place + 404] = (1 << 30).to_bytes(4, "little")
    else:
        data[block.offset + 8 : block.offset + 40] = bytes(32)
    path.write_bytes(data)
    with pytest.raises((DamagedError, pa.ArrowException, OSError)):
        list(rows_of(path, 1, ["text"], 500) or [])
