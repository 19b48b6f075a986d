"""Plots of answers: a line for each interval, a cell for each pair, a band for each group."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason='needs pip install "bitldp[plot]"')
pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.estimate.intervals import Deviation
from bitldp.report import plot_answer
from bitldp.tables import TableAnswer
from matplotlib.figure import Figure


def answer(keys: dict[str, list[Any]], what: str = "mean", **options: Any) -> TableAnswer:
    rows = max([1, *map(len, keys.values())])
    value = np.linspace(0.1, 0.9, rows)
    arrays = {name: pa.array(values) for name, values in keys.items()}
    return TableAnswer(
        *(what, "x", arrays, value, np.full(rows, 0.1), np.full(rows, 100), [""] * rows, Deviation(100)),
        **options,
    )


def drawn(own: TableAnswer, kind: str | None = None) -> Any:
    return plot_answer(own, kind=kind, ax=Figure().subplots())


def test_a_forest_has_an_interval_for_each_answer() -> None:
    keys = {"city": ["Oslo", "Rome", None], "survey": ["a", "a", "b"]}
    own = answer(keys, span=(0.0, 1.0), projected=True)  # so that intervals are longer on one side
    axes = drawn(own)
    (container,) = axes.containers
    assert container.lines[0].get_xdata() == pytest.approx(own.value)
    low, high = own.interval
    for segment, one, other in zip(container.lines[2][0].get_segments(), low, high, strict=True):
        assert segment[:, 0] == pytest.approx([one, other])
    assert [each.get_text() for each in axes.get_yticklabels()] == ["Oslo, a", "Rome, a", "b"]
    assert axes.get_xlabel() == "mean of x, 95% intervals"
    assert len(drawn(answer({})).containers) == 1


def test_a_heat_map_has_a_cell_for_each_pair() -> None:
    own = answer(
        {"city": ["Oslo", "Oslo", "Rome", "Rome"], "color": ["red", "green"] * 2},
        "share",
        span=(0.0, 1.0),
        whole=True,
    )
    axes = drawn(own)
    assert len(axes.collections) == 4
    assert [each.get_text() for each in axes.texts] == ["10.0", "36.7", "63.3", "90.0"]
    assert axes.collections[3].get_alpha() > axes.collections[0].get_alpha() > 0.0
    assert [each.get_text() for each in axes.get_xticklabels()] == ["red", "green"]
    with pytest.raises(ValueError, match="a heat map is of two keys, and the answer has 1"):
        drawn(answer({"city": ["Oslo"]}), "heat")


@pytest.mark.parametrize("along", [("q", [0.1, 0.5]), ("date", [date(2026, 1, 1), date(2026, 2, 1)])])
def test_a_band_has_a_line_for_each_group(along: Any) -> None:
    name, places = along
    axes = drawn(answer({"city": ["Oslo", "Oslo", "Rome", "Rome"], name: places * 2}, "quantile"))
    assert [each.get_label() for each in axes.lines] == ["Oslo", "Rome"]
    assert len(axes.collections) == 2
    assert axes.get_legend() is not None
    alone = drawn(answer({name: places}))
    assert alone.get_legend() is None
    with pytest.raises(ValueError, match="a band is along quantiles"):
        drawn(answer({"city": ["Oslo"]}), "band")


def test_other_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="kind: must be one of 'forest', 'heat', 'band'"):
        drawn(answer({}), "pie")
