"""People whose columns depend on each other, a plan of them, and releases that come out the same."""

from __future__ import annotations

from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
from bitldp.tables import Column, TableAnswer, TablePlan

ROWS = 10_000
FAR = 5.0  # standard errors: two-sided, once in 1.7 million
CITIES = ["Paris", "Rome", "Oslo"]


def released(plan: TablePlan, table: pa.Table, seed: int) -> pa.Table:
    """Release reproducibly: each codec by hand, with a seed; kept columns as they are."""
    made: dict[str, Any] = {}
    for codec, own in zip(plan.codecs, np.random.SeedSequence(seed).spawn(len(plan.codecs)), strict=True):
        reports = codec.randomize(codec.encode(table, 1), rng=own)
        made |= dict(codec.written(reports, table.schema.field(codec.columns[0]).type))
    return pa.table({**made, **{name: table[name] for name in plan.keep}})


def workers(rows: int = ROWS, seed: int = 3) -> pa.Table:
    """Return people whose hours, color and age depend on their city."""
    rng = np.random.default_rng(seed)
    city = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    return pa.table(
        {
            "city": np.array(CITIES)[city],
            "color": np.where(rng.random(rows) < 0.2 + 0.2 * city, "red", "green"),
            "hours": np.clip(rng.normal(30.0 + 8.0 * city, 8.0), 0.0, 80.0),
            "wage": np.clip(rng.normal(20.0 + 4.0 * city, 5.0), 0.0, 50.0),
            "age": rng.choice(np.arange(20.0, 71.0, 10.0), rows) + 0.0,
            "survey": rng.choice(["a", "b"], rows),
        }
    )


def plan(epsilon: float = 4.0) -> TablePlan:
    return TablePlan(
        [
            Column(bitldp.GRR(3, epsilon=epsilon), "city", categories=CITIES),
            Column(bitldp.OUE(2, epsilon=epsilon), "color", categories=["red", "green"]),
            Column(
                bitldp.Piecewise(epsilon=2.0 * epsilon, features=2, interval=(0.0, 80.0)), ["hours", "wage"]
            ),
            Column(bitldp.GRR(6, epsilon=epsilon), "age", interval=(20.0, 70.0)),
        ],
        keep=["survey"],
    )


def near(answer: TableAnswer, truths: list[float]) -> None:
    """Assert that answers are within 5 standard errors of the truth, and inside their intervals."""
    low, high = answer.interval
    assert len(answer) == len(truths)
    assert (np.abs(answer.value - truths) <= FAR * answer.stderr).all(), (answer, truths)
    assert ((low <= answer.value) & (answer.value <= high)).all()


def where(people: pa.Table, **values: Any) -> Any:
    kept = np.ones(people.num_rows, bool)
    for name, value in values.items():
        kept &= people[name].to_numpy(zero_copy_only=False) == value
    return kept
