"""Figures of BitRand and LDPFL: which runs they share, and what they say of the scores that come back.

Training is replaced by scores that are set here, so that what is tested is the finding, not the model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")
pytest.importorskip("sklearn", reason="the extra fl is not installed")

from bitldp_papers.bitrand import figures_learning, figures_tables, runs
from bitldp_papers.bitrand.settings import BitRandSettings
from bitldp_papers.bitrand.system import every_record, rounds_of, scoring_records
from bitldp_papers.data import load
from bitldp_papers.figures import FigureResult, FigureRun, figures
from bitldp_papers.ldpfl import figures as ldpfl
from bitldp_papers.ldpfl.settings import LDPFLSettings
from bitldp_papers.ldpfl.system import fitted_network, looked, of_networks

Score = Callable[[Any], float]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[FigureResult, int]]:
    """Return a function that makes a figure from set scores, and the number of runs that it took."""
    digits = load("digits")
    monkeypatch.setattr(FigureRun, "data", lambda self, name: digits)

    def make(name: str, score: Score, *, form: str = "quick") -> tuple[FigureResult, int]:
        done = []

        def learned(settings: Any, *_: Any) -> dict[str, Any]:
            done.append(settings)
            value = score(settings) + 0.002 * settings.seed
            course = [0.5 * value, value]
            if isinstance(settings, LDPFLSettings):
                return {"accuracy": course, "loss": [1.0, 0.5], "claimed": 0.5, "exact": 8000.0}
            return {"accuracy": value, "auc": value, "claimed": settings.epsilon, "exact": 1655.0}

        monkeypatch.setattr(runs, "learned", learned)
        monkeypatch.setattr(ldpfl, "learned", learned)
        monkeypatch.setattr(ldpfl, "networks", lambda run, settings: ())
        run = FigureRun(tmp_path / name, form=form)
        return figures()[name].make(run), len(done)

    return make


def good(settings: BitRandSettings) -> float:
    """Score f-RR and what has no noise high, LDP-FL higher than f-RR, the rest by chance."""
    if settings.mechanism == runs.OURS:
        return 0.8 - 0.1 * (settings.label == "label-laplace")
    return {"noiseless": 0.9, "ldp-fl": 0.85}.get(settings.mechanism, 0.15)


def words(result: FigureResult) -> list[str]:
    return [each.word for each in result.findings]


def test_figures_of_accuracy_and_auc_share_every_run(made: Any) -> None:
    first, runs_of_15 = made("bitrand-15", good)
    second, runs_of_19 = made("bitrand-19", good)
    assert runs_of_15 == 3 * (2 * (2 + 7) + 1) + 3 * 3  # seeds, budgets, mechanisms; the honest ones
    assert runs_of_19 == 0
    assert len(first.rows) == len(second.rows)
    assert made("bitrand-16", good)[1] == 3 * 2 * 5  # the mechanisms on gradients alone
    assert made("bitrand-17", good)[1] == 3 * 2 * 6
    assert made("bitrand-8", good)[1] == made("bitrand-20", good)[1] == 0


def test_a_gain_is_a_finding(made: Any) -> None:
    result, _ = made("bitrand-15", good)
    assert words(result) == ["holds", "holds", "does not hold"]
    assert "+65" in result.findings[0].because
    assert "46.03" in figures()["bitrand-15"].claim
    assert result.compared[0].kind == "printed"

    def small(settings: BitRandSettings) -> float:
        return 0.3 if settings.mechanism == runs.OURS else good(settings)

    assert words(_again(made, "bitrand-19", small))[0] == "holds"  # the runs of before are read


def _again(made: Any, name: str, score: Score) -> FigureResult:
    result: FigureResult = made(name, score)[0]
    return result


@pytest.mark.parametrize(
    ("ours", "clean", "word"),
    [
        (0.3, 0.9, "sign holds, size does not"),
        (0.05, 0.9, "a constant does better"),
        (0.3, 0.06, "not reached in this form"),
    ],
)
def test_what_is_not_learned_decides_nothing(made: Any, ours: float, clean: float, word: str) -> None:
    def score(settings: BitRandSettings) -> float:
        if settings.mechanism == runs.OURS:
            return ours
        return clean if settings.mechanism == "noiseless" else 0.15

    assert words(made("bitrand-15", score)[0])[0] == word


def test_ldp_fl_above_f_rr_is_said(made: Any) -> None:
    behind, _ = made("bitrand-17", good)
    assert words(behind)[:2] == ["holds", "does not hold"]
    assert "ldp-fl" in behind.findings[1].because
    table, _ = made("bitrand-table-2", good)
    assert words(table)[:2] == ["does not hold", "holds"]
    assert "at 10 of 10 epsilons" in table.findings[0].because
    leads = [a.value - b.value for a, b in zip(figures_tables.LDP_FL, figures_tables.FRR, strict=True)]
    assert min(leads) > 0.0
    assert f"by {min(leads):.2f} to {max(leads):.2f}" in table.findings[0].because


def test_label_gains_are_means_over_the_budgets(made: Any) -> None:
    result, _ = made("bitrand-18", good)
    assert [each.ours for each in result.compared] == [pytest.approx(10.0)] * 2
    assert words(result) == ["holds", "holds"]


def test_the_texts_gains_are_held_against_the_tables(made: Any) -> None:
    said = {number: made(f"bitrand-table-{number}", good)[0].findings[-1] for number in (3, 4, 5)}
    assert {number: each.word for number, each in said.items()} == {
        **{3: "holds", 4: "does not hold", 5: "does not hold"}
    }
    assert "1.28" in said[5].because  # the text has it for the anonymiser, that is, Table 4
    assert "1.28" in said[4].says


def test_table_1_says_which_file_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BITLDP_DATA", raising=False)
    real = FigureRun.data
    digits = load("digits")
    bundled = ("breast_cancer", "sec", "celeba", "femnist")
    monkeypatch.setattr(
        *(FigureRun, "data"), lambda self, name: real(self, name) if name in bundled else digits
    )
    result = figures()["bitrand-table-1"].make(FigureRun(tmp_path / "table", form="quick"))
    needs = [row["here"] for row in result.rows[1:]]
    assert needs == [f"needs FILE: --data {name}=FILE" for name in ("sec", "celeba", "femnist")]
    assert words(result)[0] == "not reached in this form"


@pytest.mark.slow
def test_fewer_records_of_bitrand() -> None:
    given: dict[str, Any] = {"data": "digits", "records": 90, "tested": 40, "clients": 3, "batch": 0}
    settings = BitRandSettings(mechanism="noiseless", hidden=4, rounds=2, **given)
    assert len(every_record(settings).x) == 90
    assert len(scoring_records(settings).x) == 40
    assert 0.0 <= rounds_of(settings).scores(rounds_of(settings).trained())["accuracy"] <= 1.0
    with pytest.raises(ValueError, match="records"):
        BitRandSettings(records=-1)


def test_ldpfl_levels_wait_for_a_model_without_noise(made: Any) -> None:
    def score(settings: LDPFLSettings) -> float:
        return 0.95 if settings.mechanism == "noiseless" else 0.8

    result, count = made("ldpfl-14", score)
    assert count == 6
    assert words(result)[:2] == ["holds", "holds"]
    assert made("ldpfl-table-1", score)[1] == 0
    low, _ = made("ldpfl-6", lambda settings: 0.7)
    assert words(low) == ["not reached in this form", "holds", "does not hold", "does not hold"]
    table, _ = made("ldpfl-table-1", score)
    own = [each for each in table.findings if "table" in each.says]
    assert [each.holds for each in own] == [True, False]
    assert "85.28 to 86.93" in own[1].because


@pytest.mark.slow
def test_a_client_of_two_holds_what_it_holds_as_one_of_eight(tmp_path: Path) -> None:
    base: dict[str, Any] = {"data": "digits", "records": 80, "filters": 2, "extractor_epochs": 1}
    two, eight = (LDPFLSettings(**base, dealt=8, clients=clients, hidden=clients) for clients in (2, 8))
    assert of_networks(two) == of_networks(eight)
    run = FigureRun(tmp_path / "figure", form="quick")
    first = ldpfl.networks(run, two)
    again = ldpfl.networks(FigureRun(tmp_path / "other", form="quick"), eight)
    assert [len(each.labels) for each in again] == [10] * 8
    for one, same in zip(first, again, strict=False):
        assert np.array_equal(one.features, same.features)
        assert one.course.shape == (1, 2)
    assert len(list((tmp_path / "shared").glob("*.npz"))) == 8  # each is trained once
    made_again = looked(of_networks(two), 0, fitted_network(of_networks(two), 0))
    assert np.array_equal(made_again.features, first[0].features)
    with pytest.raises(ValueError, match="dealt"):
        LDPFLSettings(**base, dealt=2, clients=3)


def test_every_form_has_its_settings(tmp_path: Path) -> None:
    for form, records in (("quick", 2000), ("medium", 15_000), ("full", 0)):
        run = FigureRun(tmp_path, form=form)
        settings = ldpfl.settings_of(run, ldpfl.FASHION, 1)
        assert (settings.clients, settings.records) == (10, records)  # ten clients are ten in every form
        assert figures_learning.budgets(run)[0] == 1.0
