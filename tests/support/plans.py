"""Plans of tables: one of every mechanism that takes columns, and people to release by them."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
from bitldp.mechanism.base import Mechanism
from bitldp.tables import Column, TablePlan

TAKEN = ("numbers", "reals", "categories", "points", "ordered", "words")


def columns_of_every_mechanism(epsilon: float = 4.0) -> dict[str, Column]:
    """Return a column for every public mechanism that takes any, by the mechanism's name."""
    found = {}
    for name in bitldp.__all__:
        kind = getattr(bitldp, name)
        if not (inspect.isclass(kind) and issubclass(kind, Mechanism)) or inspect.isabstract(kind):
            continue
        if kind._takes not in TAKEN:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
            found[name] = _column(kind._for_record(**kind._usual(epsilon)))
    return found


def _column(mechanism: Any) -> Column:
    names = [f"x{j}" for j in range(mechanism.columns)]
    if len(mechanism._members) > 1:
        classes = mechanism.parameters["categories"]
        names = [f"x{j}" for j in range(mechanism.parameters["features"])]
        return Column(mechanism, names, label="y", categories=[f"c{i}" for i in range(classes)])
    if mechanism._takes in ("ordered", "words"):
        return Column(mechanism, "y")
    if mechanism._takes in ("numbers", "reals") or mechanism._span is not None:
        return Column(mechanism, names)
    size = mechanism._usual_size if mechanism._sized_by is None else mechanism.parameters[mechanism._sized_by]
    return Column(mechanism, "y", categories=[f"c{i}" for i in range(size)])


def table_for(column: Column, rows: int, seed: int) -> pa.Table:
    """Return people for a column: numbers within its interval, categories more or less frequent."""
    rng = np.random.default_rng(seed)
    made: dict[str, Any] = {}
    for codec in column.codecs:
        if codec.categories:
            shares = np.arange(1.0, len(codec.categories) + 1.0)
            made[codec.columns[0]] = rng.choice(codec.categories, rows, p=shares / shares.sum())
            continue
        if codec.mechanism._takes == "words":
            made[codec.columns[0]] = rng.choice(5, rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])
            continue
        low, high = codec.mechanism._span or getattr(codec, "interval", (0.0, 1.0))
        for name in codec.columns:
            made[name] = low + (high - low) * rng.beta(2.0, 4.0, rows)
    return pa.table({**made, "id": np.arange(rows), "group": rng.choice(["a", "b"], rows)})


def people(rows: int = 2_000, seed: int = 7) -> pa.Table:
    """Return a table of several kinds of columns, one of them with missing values."""
    rng = np.random.default_rng(seed)
    drinks = rng.choice(["tea", "coffee"], rows)
    return pa.table(
        {
            "name": [f"secret {i}" for i in range(rows)],
            "id": np.arange(rows),
            "height": rng.normal(170.0, 8.0, rows),
            "weight": rng.normal(70.0, 9.0, rows),
            "city": rng.choice(["Paris", "Rome", "Oslo"], rows, p=[0.5, 0.3, 0.2]),
            "age": rng.integers(18, 90, rows),
            "drink": pa.array(drinks, mask=rng.random(rows) < 0.2),
            "survey": rng.choice(["a", "b"], rows),
        }
    )


def plan() -> TablePlan:
    """Return a plan for `people`."""
    return TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=4.0, features=2, interval=(40.0, 220.0)), ["height", "weight"]),
            Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["Paris", "Rome", "Oslo"]),
            Column(bitldp.GRR(11, epsilon=2.0), "age", interval=(0.0, 100.0)),
            Column(bitldp.OUE(3, epsilon=2.0), "drink", categories=["tea", "coffee"], nulls="category"),
        ],
        keep=["survey"],
    )
