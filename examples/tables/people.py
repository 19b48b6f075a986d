"""Make people.csv and people.parquet: 20,000 simulated records, each of one person."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

ROWS = 20_000
CITIES = ["Paris", "Rome", "Oslo"]


def people(rows: int = ROWS, seed: int = 1) -> pa.Table:
    """Return the table: id, height, city, drink (some missing), age, survey."""
    rng = np.random.default_rng(seed)
    drink = pa.array(rng.choice(["tea", "coffee"], rows, p=[0.7, 0.3]), mask=rng.random(rows) < 0.1)
    return pa.table(
        {
            "id": np.arange(rows),
            "height": rng.normal(172.0, 9.0, rows).clip(120.0, 220.0).round(1),
            "city": rng.choice(CITIES, rows, p=[0.5, 0.3, 0.2]),
            "drink": drink,
            "age": rng.integers(18, 95, rows),
            "survey": rng.choice(["spring", "autumn"], rows),
        }
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    table = people()
    pyarrow.csv.write_csv(table, folder / "people.csv")
    pyarrow.parquet.write_table(table, folder / "people.parquet")
    print(f"{folder / 'people.csv'}, {folder / 'people.parquet'}: {table.num_rows} records")
