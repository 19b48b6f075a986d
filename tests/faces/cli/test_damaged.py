"""Files of which some bytes are wrong: no crash, no value in an error, and nothing invalid is released."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

pytestmark = pytest.mark.slow

SECRET = "Berne"
PLAN = """keep = ["kept", "flag"]

[[column]]
mechanism = "GRR"
parameters = { categories = 3, epsilon = 1.0 }
columns = "city"
categories = ["Paris", "Rome", "Berne"]

[[column]]
mechanism = "Piecewise"
parameters = { epsilon = 1.0, interval = [0, 100] }
columns = "age"

[[column]]
mechanism = "GRR"
parameters = { categories = 2, epsilon = 1.0 }
columns = "category"
categories = ["a", "b"]
"""

# In a process of its own: what a damaged file crashes is not the suite.
RUN = """
import sys
from pathlib import Path
import pyarrow.feather
from bitldp.cli.perturb import table_files
from support.command import invoke

table_files.HELD = int(sys.argv[1])
for source in sorted(Path(sys.argv[2]).glob("in*")):
    target = source.with_name("out.arrow")
    plan = source.with_name("plan.toml")
    key = ("--record", "id", "--key-env", "BITLDP_TEST_KEY")
    result = invoke("perturb", source, "-o", target, "--plan", plan, *key, "--force", "-q")
    if result.exit_code not in (0, 1, 2) or "Traceback" in result.stderr or "Berne" in result.stderr:
        print(source.name, result.exit_code, result.exception, result.stderr)
    elif result.exit_code == 0:
        pyarrow.feather.read_table(target).validate(full=True)
        print("released")
print("done")
"""


def written(path: Path, number: int) -> None:
    """Write a file of some record batches, compressed or not."""
    rng, n = np.random.default_rng(1), 400
    table = pa.table(
        {
            "city": rng.choice(["Paris", "Rome", SECRET], n),
            "age": rng.integers(0, 90, n),
            "kept": pa.array([f"k{i % 7}" for i in range(n)]),
            "category": pa.array(rng.choice(["a", "b"], n)).dictionary_encode(),
            "id": [f"id{i}" for i in range(n)],
            "flag": rng.random(n) < 0.5,
        }
    )
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=150, compression=["none", "zstd"][number % 2])
    elif path.name.endswith(".stream.arrow"):
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=150)
    else:
        compression = ["uncompressed", "uncompressed", "lz4"][number % 3]
        pa.feather.write_feather(table, path, compression=compression, chunksize=150)


@pytest.mark.parametrize(
    ("suffix", "held", "files"),
    [(".arrow", 1 << 25, 150), (".arrow", 0, 75), (".stream.arrow", 1 << 25, 75), (".parquet", 1 << 25, 75)],
    ids=["file", "file, some rows at a time", "stream", "parquet"],
)
def test_damaged_files_never_crash_and_release_nothing_invalid(
    tmp_path: Path, suffix: str, held: int, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 1 to 4 bytes of each are others."""
    monkeypatch.setenv("BITLDP_TEST_KEY", "5eed" * 16)
    (tmp_path / "plan.toml").write_text(PLAN)
    for number in range(files):
        path, draw = tmp_path / f"in{number:03}{suffix}", random.Random(number)
        written(path, number)
        data = bytearray(path.read_bytes())
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(8, len(data))] = draw.randrange(256)
        path.write_bytes(data)
    command = [sys.executable, "-c", RUN, str(held), str(tmp_path)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500, env=paths)
    assert done.returncode == 0, done.stderr[-2000:]
    said = done.stdout.splitlines()
    assert said[-1] == "done"
    assert not set(said) - {"released", "done"}, said
    assert 0 < said.count("released") < files  # some bytes mean nothing, or another value
