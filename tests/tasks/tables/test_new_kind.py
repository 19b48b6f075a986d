"""A kind of column that the package does not know: one class, and everything that asks columns works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')
pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from bitldp.tables import Aggregate, Column, DataError, ReleaseKey, TablePlan
from bitldp.tables.codec import KINDS, ColumnCodec
from bitldp.tables.frames import refuse_null
from support.command import invoke

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
ROWS = 20_000


class DayResponse(bitldp.GRR):
    """Randomized response of a day of the week."""

    _takes = "weekdays"  # type: ignore[assignment]


class Weekdays(ColumnCodec):
    """A column of dates, whose day of the week is released by its name."""

    categories = tuple(DAYS)

    def _check(self) -> None:
        self.settings.refuse_count(self.mechanism)

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def encode(self, batch: Any, first_row: int) -> Any:
        days = batch.column(self.columns[0])
        refuse_null(days, self.columns[0], first_row)
        return np.asarray(pc.day_of_week(days).to_numpy(), np.uint32)

    def written(self, reports: Any, arrow_type: Any) -> list[tuple[str, Any]]:
        return [(self.columns[0], pa.array(DAYS).take(pa.array(reports)))]

    def _from_values(self, columns: list[Any], first_row: int) -> Any:
        return np.asarray(pc.index_in(columns[0], value_set=pa.array(DAYS)).to_numpy(), np.uint32)

    def answers(self, counts: Any, level: float) -> Iterator[dict[str, Any]]:
        yield from self._answers(counts, self.columns, "share", DAYS, level)


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let plans name the mechanism, and give its columns their kind."""
    monkeypatch.setattr(bitldp, "DayResponse", DayResponse, raising=False)
    monkeypatch.setattr(bitldp, "__all__", [*bitldp.__all__, "DayResponse"])
    monkeypatch.setitem(KINDS, "weekdays", Weekdays)


@pytest.fixture
def visits() -> pa.Table:
    """Days of which Monday has a share of .4, each other day .1."""
    offsets = np.random.default_rng(5).choice(7, ROWS, p=[0.4, *[0.1] * 6])
    days = [date(2026, 11, 2) + timedelta(days=int(each)) for each in offsets]
    return pa.table({"id": np.arange(ROWS), "day": pa.array(days, pa.date32())})


def plan() -> TablePlan:
    return TablePlan([Column(DayResponse(7, epsilon=2.0), "day")])


def near_the_truth(answers: list[dict[str, Any]]) -> None:
    """N = 20,000, each answer within 6 standard errors (alpha 2e-9)."""
    assert [row["category"] for row in answers] == DAYS
    for row, truth in zip(answers, [0.4, *[0.1] * 6], strict=True):
        assert (row["what"], row["records"]) == ("share", ROWS)
        assert abs(row["estimate"] - truth) < 6.0 * row["stderr"]


def test_from_a_plan_to_an_answer(visits: pa.Table) -> None:
    again = TablePlan.from_toml(plan().to_toml())
    assert again == plan()
    released = again.release(ReleaseKey(b"z" * 32), record="id")(visits)
    assert released.equals(plan().release(ReleaseKey(b"z" * 32), record="id")(visits))
    halves = [plan().aggregate().update(released.slice(start, ROWS // 2)) for start in (0, ROWS // 2)]
    merged = Aggregate.from_json(halves[0].to_json(), plan()).merge(halves[1])
    near_the_truth(merged.estimate().to_pylist())
    missing = pa.table({"id": [1], "day": pa.array([None], pa.date32())})
    with pytest.raises(DataError, match="row 1, column 'day': missing value"):
        plan().release()(missing)


def test_from_the_command_line_to_a_verdict(visits: pa.Table, tmp_path: Path) -> None:
    source, target = tmp_path / "visits.parquet", tmp_path / "released.csv"
    pa.parquet.write_table(visits, source)
    plan().write(tmp_path / "plan.toml")
    made = invoke("perturb", source, "-o", target, "--plan", tmp_path / "plan.toml")
    assert made.exit_code == 0, made.output
    report = json.loads(target.with_name("released.csv.privacy.json").read_text())
    assert report["mechanisms"][0]["categories"] == DAYS
    assert report["mechanisms"][0]["mechanism"] == "DayResponse"
    answers = invoke("estimate", target, "--format", "json")
    assert answers.exit_code == 0, answers.output
    near_the_truth(json.loads(answers.output))
    # The verifier builds laws by itself, and cannot know this one; it says what the stated law has.
    verdict = invoke("verify", f"{target}.privacy.json", target)
    assert verdict.exit_code == 3
    assert (
        "the mechanism 'DayResponse' is not known here; the law that is stated has epsilon 2"
        in verdict.output
    )
