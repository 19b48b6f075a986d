"""Figures of BRR and FedSel: constants, rates that are chosen elsewhere, sets that a user has to bring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp_papers.brr import figures_points, figures_trees
from bitldp_papers.data import Dataset, load, regions_by_prefix
from bitldp_papers.fedsel import figures_table, runs
from bitldp_papers.figures import FigureRun, Printed, figures
from bitldp_papers.models import linear
from bitldp_papers.mvu import figures_learning as mvu_figures
from bitldp_papers.run.share import loaded
from sklearn.metrics import roc_auc_score


def two_classes(name: str = "two", share: float = 0.3, seed: int = 1) -> Dataset:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (600, 4)).astype(np.float32)
    y = (x[:, 0] > np.quantile(x[:, 0], 1.0 - share)).astype(np.int64)
    ends = np.array([1.0] * 4)
    return Dataset(
        name, "classification", x[100:], x[:100], y[100:], y[:100], -ends, ends, True, 2, tuple("abcd")
    )


@pytest.fixture
def run(tmp_path: Path) -> Iterator[FigureRun]:
    made = FigureRun(tmp_path / "figure", form="quick", seeds=(1, 2), given=("adult", two_classes()))
    yield made
    made.close()


@pytest.mark.parametrize("model", ["logistic", "svm"])
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_constants_are_the_scores_of_an_intercept(model: str, share: float) -> None:
    data = two_classes(share=share)
    found = runs.constants(data, model)
    x = linear.design(np.zeros((len(data.test), 1)), -1.0)
    y = linear.targets(data.test_labels, 1)
    ones = np.mean(data.train_labels)
    best = np.log(ones / (1.0 - ones)) if model == "logistic" else np.sign(ones - 0.5)
    weights = np.array([[0.0], [best]])
    assert found["loss"] == pytest.approx(linear.loss(weights, x, y, model))
    assert found["accuracy"] == pytest.approx(linear.accuracy(weights, x, data.test_labels))
    assert found["auc"] == roc_auc_score(data.test_labels, np.zeros(100))


def test_a_public_rate_is_the_best_on_another_set(run: FigureRun, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def scored(settings: Any) -> dict[str, float]:
        asked.append(settings)
        return {"loss": abs(settings.rate - 0.3)}

    monkeypatch.setattr(runs, "_scored", scored)
    monkeypatch.setitem(runs._ELSEWHERE, "adult", ("breast_cancer",))
    run.data("adult")
    assert runs.public_rate(run, "adult", "PM", epsilon=8.0, clients=500, batch=5, rate=1.0) == 0.3
    assert {each.data for each in asked} == {"breast_cancer"}
    assert not {each.seed for each in asked} & set(run.given_seeds)
    assert {each.clients for each in asked} == {456}
    first = len(asked)
    assert runs.public_rate(run, "adult", "PM", epsilon=8.0) == 0.3
    assert len(asked) == first  # kept for all figures


def test_scores_are_compared_so_that_more_is_better(run: FigureRun) -> None:
    data = run.data("adult")
    some = runs.Runs(run, "adult", **runs.cohort(data), rate=1.0)
    some.add(runs.methods("NP", "PM"), (8.0,))
    for score, sign in (("accuracy", 1.0), ("auc", 1.0), ("loss", -1.0)):
        pairs = zip(some.of("NP", score), some.of("PM", score), strict=True)
        assert some.differences("NP", "PM", score) == pytest.approx([sign * (a - b) for a, b in pairs])
    assert fmean(some.differences("NP", "PM", "auc")) > 0.0
    assert {row["rate"] for row in some.rows} == {1.0}
    assert run.used[""] == [1, 2]


def test_digits_stand_as_odd_against_even() -> None:
    digits = load("digits")
    with runs.odd_against_even(digits) as name:
        halves = load(name)
        assert halves.classes == 2
        assert np.array_equal(halves.test_labels, digits.test_labels % 2)


def test_rows_of_a_set_that_is_not_there_say_which_file(
    run: FigureRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures_table, "_PRINTED", {("kdd99", "logistic"): ((Printed("1", "0"),) * 2,) * 3})
    result = figures_table.gain_and_loss.__wrapped__(run)  # type: ignore[attr-defined]
    assert len(result.compared) == 6
    assert all("--data kdd99=FILE" in str(each.ours) for each in result.compared)
    assert all(each.agrees is None for each in result.compared)
    assert not result.findings


def test_trees_stand_beside_the_mean_of_the_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.0, 1.0, (400, 3)).astype(np.float32)
    y = np.where(x[:, 0] > 0.0, 1.0, -1.0) * 0.2 + 0.5
    ends = np.array([1.0] * 3)
    data = Dataset(
        "mine",
        "regression",
        x[80:],
        x[:80],
        y[80:],
        y[:80],
        -ends,
        ends,
        True,
        0,
        tuple("abc"),
        targets=(-1.0, 1.0),
    )
    monkeypatch.setattr(figures_trees, "_RATIOS", {name: Printed("45", "0") for name in ("abalone", "bias")})
    monkeypatch.setattr(figures_trees, "_TREES", 3)
    run = FigureRun(tmp_path / "figure", form="quick", seeds=(1, 2), given=("abalone", data))
    try:
        result = figures_trees.trees.__wrapped__(run)  # type: ignore[attr-defined]
    finally:
        run.close()
    ours = {each.what: each.ours for each in result.compared}
    assert ours["constant (mean of the targets), abalone"] == pytest.approx(np.std(y[:80]), rel=0.02)
    assert "--data bias=FILE" in str(ours["error of BRR over Laplace, bias, epsilon 5"])
    assert {row["leaves"] for row in result.rows} >= {"brr", "brr-corrected", "laplace", "noiseless"}
    words_of = {each.says: each.word for each in result.findings}
    # Three small trees do not reach the mean of targets that are far from zero.
    assert words_of["BRR is below Laplace on abalone at epsilon 5"] == "not reached in this form"
    assert run.used["trees without noise, which draw nothing"] == [1]


def test_places_of_a_user_get_codes_of_tiles(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    points = np.concatenate(
        [rng.normal(centre, 0.02, (50, 2)) for centre in ((0.1, 0.1), (0.9, 0.1), (0.9, 0.9))]
    )
    codes = figures_points.tile_codes(points)
    assert {len(code) for code in codes} == {32}
    assert len(set(regions_by_prefix(codes, least=40))) == 3
    # A prefix of two characters is a quarter of the square around all.
    quarter = {code[:2] for code, (x, y) in zip(codes, points, strict=True) if x < 0.4}
    assert len(quarter) == 1
    words: dict[str, Any] = {"train": points[20:], "test": points[:20], "classes": 0, "columns": ("x", "y")}
    words |= {"train_labels": np.empty(0), "test_labels": np.empty(0), "low": np.zeros(2), "high": np.ones(2)}
    places = replace(two_classes(), task="locations", **words)
    run = FigureRun(tmp_path / "figure", form="quick", given=("foursquare", places))
    try:
        regions, errors = (figures()[name].make(run) for name in ("brr-6-b", "brr-7-b"))
    finally:
        run.close()
    assert sum(row["first"] >= -1.0 for row in regions.rows) == 150
    assert regions.findings[0].word == "does not hold"  # the paper's sizes are of other places
    assert errors.findings[0].word == "holds"
    assert "codes are our own" in errors.stand_in


def test_figure_4_right_is_of_photographs_or_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(mvu_figures, "_sweep", lambda run, *given: asked.append(given))
    for given in (None, ("cifar10", two_classes())):
        run = FigureRun(tmp_path / "figure", form="quick", given=given)
        try:
            mvu_figures.sweep_of_photographs.__wrapped__(run)  # type: ignore[attr-defined]
        finally:
            run.close()
    (instead, words, rows), (name, *_) = asked
    assert (instead, name) == ("fashion_mnist", "cifar10")
    assert "Fashion-MNIST for CIFAR-10" in words
    assert "--data cifar10=FILE" in rows[0].ours


FEDSEL = [f"fedsel-{each}" for each in ("2-f", "2-g", "2-h", "2-i", "3-a", "3-b", "3-c", "rates", "table-3")]


@pytest.mark.parametrize("name", FEDSEL)
def test_every_learning_figure_of_fedsel_has_constants_in_table_and_drawing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "bank_marketing" if name == "fedsel-2-g" else "adult"
    monkeypatch.setattr(runs, "_FEW_RATES", (0.3, 3.0))
    monkeypatch.setattr(runs, "_ELSEWHERE", {"adult": (), "bank_marketing": ()})
    monkeypatch.setattr(runs, "loaded", lambda other: loaded("breast_cancer"))
    printed = {key: value for key, value in figures_table._PRINTED.items() if key == ("adult", "logistic")}
    monkeypatch.setattr(figures_table, "_PRINTED", printed)
    run = FigureRun(tmp_path / "figure", form="quick", seeds=(1, 2), given=(own, two_classes()))
    try:
        result = figures()[name].make(run)
    finally:
        run.close()
    assert any(each.what.startswith("constant") for each in result.compared)
    assert result.findings
    assert run.used[""] == [1, 2]
    assert {"accuracy", "auc", "loss", "seed", "rate"} <= set(result.rows[0])
    if result.draw is not None:
        canvas = Figure(figsize=(4.0, 3.0))
        result.draw(canvas)
        for axes in canvas.axes:
            assert "constant" in axes.get_legend_handles_labels()[1]
