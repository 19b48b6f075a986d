"""Keep the answers of the guide "Ask a released table", from which its pictures are drawn.

    python docs/asked.py [--check]

The records are those of the RAND Health Insurance Experiment, in the public domain, which statsmodels
brings. The plan is the one in the guide. The release has a key that everybody can read here, so that the same
answers come out again. With ``--check`` nothing is written; the exit code is 1 where an answer differs.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bitldp.estimate.intervals import Limits
from bitldp.tables import ReleasedTable, ReleaseKey, TableAnswer, TablePlan
from numpy.typing import NDArray

GUIDE = Path(__file__).parent / "guides" / "asking.md"
RECORD = Path(__file__).parents[1] / "benches" / "records" / "asked.json"
KEY = ReleaseKey(hashlib.sha256(b"the guide's own key, which is no secret").digest())
SHARES = [0.1, 0.25, 0.5, 0.75, 0.9]


def people() -> pa.Table:
    """Return the records, by the block of the guide that makes them."""
    source = re.search(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    assert source is not None
    namespace: dict[str, Any] = {}
    made = source[1].rpartition("\npyarrow.parquet.write_table")[0]
    exec(compile(made, GUIDE.name, "exec"), namespace)  # the guide is ours
    table: pa.Table = namespace["people"]
    return table


def plan() -> TablePlan:
    """Return the guide's plan."""
    text = re.search(r'^```toml title="plan.toml"\n(.*?)^```', GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    assert text is not None
    return TablePlan.from_toml(text[1])


def answers() -> dict[str, TableAnswer]:
    """Return the answers of the guide."""
    released = ReleasedTable(plan(), plan().release(KEY, record="id")(people()))
    return {
        "shares": released.share("health", by="insurance"),
        "visits": released.mean("visits", by="insurance"),
        "apart": released.difference("visits", by="insurance"),
        "cells": released.table("health", "insurance"),
        "diseases": released.table("health", "diseases"),
        "quantiles": released.quantile("diseases", SHARES, by="health"),
        "coefficients": released.regress("visits", ["diseases", "insurance"]),
        "odds": released.logistic("health", "insurance", "excellent"),
        "ill": released.mean("visits", where={"health": ["fair", "poor"]}),
    }


def kept(answer: TableAnswer) -> dict[str, Any]:
    """Return what is kept of an answer."""
    low, high = answer.interval
    figures = {"value": answer.value, "stderr": answer.stderr, "low": low, "high": high}
    return {
        "what": answer.what,
        "column": answer.column,
        "keys": {name: each.to_pylist() for name, each in answer.keys.items()},
        **{name: [float(f"{each:.6g}") for each in column.tolist()] for name, column in figures.items()},
        "n": answer.n.tolist(),
        "whole": answer.whole,
        "span": list(answer.span) if np.isfinite(answer.span).all() else None,
        "notes": list(answer.notes),
    }


@dataclass(frozen=True, eq=False)
class Kept(Limits):
    """Limits that were kept."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def method(self) -> str:
        """Name of the method."""
        return "kept"

    def limits(self, value: Any, stderr: Any, tail: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the limits."""
        return self.low, self.high

    def at(self, index: Any) -> Kept:
        """Return those of some entries."""
        return Kept(self.low[index], self.high[index])


def recalled(name: str) -> TableAnswer:
    """Return an answer that was kept."""
    each = json.loads(RECORD.read_text(encoding="utf-8"))[name]
    value, stderr, low, high = (np.array(each[part]) for part in ("value", "stderr", "low", "high"))
    keys = {key: pa.array(column) for key, column in each["keys"].items()}
    return TableAnswer(
        *(each["what"], each["column"], keys, value, stderr, np.array(each["n"]), each["notes"]),
        Kept(low, high),
        whole=each["whole"],
        span=tuple(each["span"] or (-np.inf, np.inf)),
    )


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two answers are one, but for the last digits."""
    figures = ("value", "stderr", "low", "high")
    near = all(np.allclose(one[name], other[name], rtol=1e-4, atol=1e-6, equal_nan=True) for name in figures)
    return near and all(one[name] == other[name] for name in one if name not in figures)


def main(arguments: list[str]) -> int:
    """Keep the answers, or compare them with those that are kept."""
    made = {name: kept(each) for name, each in answers().items()}
    if "--check" in arguments:
        before = json.loads(RECORD.read_text(encoding="utf-8"))
        return int(made.keys() != before.keys() or not all(alike(made[name], before[name]) for name in made))
    RECORD.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
