"""The frame of the figures: register, files, steps that are kept, data that are missing, one page."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.cli import main
from bitldp_papers.figures import (
    Compared,
    FigureEntry,
    FigureResult,
    FigureRun,
    chosen,
    figure,
    figures,
    make,
)
from bitldp_papers.figures.drawing import panels
from bitldp_papers.figures.points import points
from matplotlib.figure import Figure


def entry(function) -> FigureEntry:
    return FigureEntry("paper-1", "Paper, Fig. 1", "A title", "It is so.", (0.1, 1.0), function)


def draw(canvas) -> None:
    canvas.subplots().plot([1, 2], [3, 4])


def outcome(run: FigureRun) -> FigureResult:
    rows = [{"epsilon": 1.0, "value": 2.0}, {"epsilon": float("inf"), "value": 3.0, "note": "a, b"}]
    return FigureResult(rows, draw, [Compared("it", None, 2.0, 0.1, float("inf"), 1.0)])


def test_a_figure_leaves_its_files(tmp_path: Path) -> None:
    found = make(entry(outcome), tmp_path, form="quick")
    own = tmp_path / "paper-1"
    assert {path.name for path in own.iterdir()} == {"figure.json", "figure.csv", "figure.svg", "figure.png"}
    assert json.loads((own / "figure.json").read_text()) == found
    assert found["status"] == "done"
    assert (found["form"], found["asked"], found["seeds"]) == ("quick", [1, 2, 3], [])
    assert found["compared"][0]["exact"] == "infinity"
    assert found["versions"]["bitldp"]
    with (own / "figure.csv").open() as file:
        assert list(csv.DictReader(file)) == [
            {"epsilon": "1.0", "value": "2.0", "note": ""},
            {"epsilon": "inf", "value": "3.0", "note": "a, b"},
        ]
    assert (own / "figure.png").read_bytes().startswith(b"\x89PNG")
    first = (own / "figure.svg").read_bytes()
    make(entry(outcome), tmp_path, form="quick")
    assert (own / "figure.svg").read_bytes() == first


def test_a_table_without_a_drawing_is_drawn(tmp_path: Path) -> None:
    make(entry(lambda run: FigureResult([{"a": 1.5, "b": None}])), tmp_path)
    assert b"1.5" in (tmp_path / "paper-1" / "figure.svg").read_bytes()


def test_steps_are_kept_for_resuming(tmp_path: Path) -> None:
    calls = []
    fail = [True]

    def begun(run: FigureRun) -> FigureResult:
        values = [
            run.cached(f"step {k}", lambda k=k: calls.append(k) or [k, float("inf")])
            for k in run.each((1, 2))
        ]
        if fail:
            raise ZeroDivisionError("late")
        return FigureResult([{"value": value[0], "end": value[1]} for value in values], draw)

    found = make(entry(begun), tmp_path)
    assert (found["status"], found["reason"]) == ("failed", "ZeroDivisionError: late")
    fail.clear()
    assert make(entry(begun), tmp_path, resume=True)["rows"][1] == {"value": 2, "end": "infinity"}
    assert calls == [1, 2]
    make(entry(begun), tmp_path, resume=True)  # it is there
    make(entry(begun), tmp_path, resume=True, form="quick")  # in another form
    assert calls == [1, 2, 1, 2]
    make(entry(begun), tmp_path)  # from the beginning
    assert calls == [1, 2, 1, 2, 1, 2]


def test_used_seeds_are_noted(tmp_path: Path) -> None:
    def some(run: FigureRun) -> FigureResult:
        run.take(2, "expensive runs")
        return FigureResult([{"seeds": len(run.seeds), "form": run.choose(quick=1, medium=2, full=3)}], draw)

    found = make(entry(some), tmp_path, form="medium", seeds=range(7, 11))
    assert found["seeds"] == [7, 8, 9, 10]
    assert found["fewer"] == {"expensive runs": [7, 8]}
    assert found["rows"] == [{"seeds": 4, "form": 2}]
    with pytest.raises(ValueError, match="form: must be one of quick, medium, full; got 'long'"):
        FigureRun(tmp_path, form="long")


def test_shared_steps_are_made_once_for_several_figures(tmp_path: Path) -> None:
    calls = []

    def step() -> dict[str, np.ndarray]:
        time.sleep(0.05)
        calls.append(1)
        return {"x": np.arange(3.0)}

    runs = [FigureRun(tmp_path / name, form=form) for name, form in (("a", "quick"), ("b", "full"))]
    for each in runs:
        assert each.shared("step", step)["x"].tolist() == [0.0, 1.0, 2.0]
        assert each.shared("other", lambda: [1, float("inf")]) == [1, float("inf")]
    assert len(calls) == 1
    assert runs[0].borrowed == 0.0
    assert runs[1].borrowed >= 0.05


def test_seconds_count_what_an_earlier_run_made(tmp_path: Path) -> None:
    fail = [True]

    def begun(run: FigureRun) -> FigureResult:
        run.cached("step", lambda: time.sleep(0.2))
        if fail:
            raise ZeroDivisionError
        return FigureResult([{"a": 1}], draw)

    make(entry(begun), tmp_path)
    fail.clear()
    assert make(entry(begun), tmp_path, resume=True)["seconds"] >= 0.2


def test_a_constant_is_a_rule_with_a_name() -> None:
    found = points(panels({"": {"PS": ((1, 2), (0.7, 0.8)), "constant": 0.76}}))
    assert [line["name"] for line in found[0]["lines"]] == ["PS"]
    assert found[0]["rules"] == [{"axis": "y", "at": 0.76, "name": "constant"}]


def test_axes_are_marked_where_the_values_are() -> None:
    canvas = Figure()
    shown = {"few": {"a": ((1.0, 4.0, 8.0), (0.1, 0.2, 0.3))}}
    panels(shown, xscale="log")(canvas)
    axes = canvas.axes[0]
    assert [each.get_text() for each in axes.get_xticklabels()] == ["1", "4", "8"]
    assert not len(axes.get_xticks(minor=True))
    canvas = Figure()
    panels({"": {"epochs": ((1, 2, 3), (0.1, 0.2, 0.3))}})(canvas)
    assert all(float(each).is_integer() for each in canvas.axes[0].get_xticks())


def test_missing_data_leave_a_figure_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BITLDP_DATA", raising=False)
    found = make(entry(lambda run: run.data("mnist") and outcome(run)), tmp_path)
    assert found["status"] == "skipped"
    assert "BITLDP_DATA" in found["reason"]


def test_bundled_data_have_a_checksum(tmp_path: Path) -> None:
    run = FigureRun(tmp_path)
    run.data("wine")
    assert len(run.checksums["wine"]["arrays"]) == 64


def test_names_are_checked() -> None:
    known = figures()
    assert [each.name for each in chosen(["bitrand-3"])] == ["bitrand-3"]
    assert {each.paper for each in chosen(["bitrand"])} == {"bitrand"}
    with pytest.raises(ValueError, match="no figure 'bitrand-99'"):
        chosen(["bitrand-99"])
    with pytest.raises(ValueError, match="two figures are called 'bitrand-3'"):
        figure("bitrand-3", source="", title="", claim="")(outcome)
    for each in known.values():
        assert each.source, each.name
        assert each.title, each.name
        assert each.claim, each.name
        assert 0 < each.minutes[0] <= each.minutes[1] <= each.minutes[2], each.name


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: object) -> int:
        with pytest.raises(SystemExit) as exit_of:
            main(["paper", *map(str, arguments)])
        return int(exit_of.value.code or 0)

    assert run("list") == 0
    assert "bitrand-3" in capsys.readouterr().out
    assert run("bitrand-3", "--quick", "--out", tmp_path) == 0
    shown = capsys.readouterr()
    assert "1 done" in shown.out
    assert "[1/1] bitrand-3 done" in shown.err
    assert (tmp_path / "report.html").exists()
    assert run("nothing-1") == 2
    assert "no figure" in capsys.readouterr().err
    assert run("bitrand-3", "--all") == 2
