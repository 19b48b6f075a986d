"""The system brr: what its reports are worth, the ranges that tell a sign, and its networks."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import bitldp
from bitldp_papers import get
from bitldp_papers.brr.settings import MECHANISMS
from bitldp_papers.brr.sgd import descend, gain, next_clip, sign_split
from bitldp_papers.models import cnn

SMALL: dict[str, Any] = {"clients": 5, "rounds": 3, "data": "breast_cancer", "hidden": 4}


def settings(**given: Any) -> Any:
    return get("brr").configure(preset="quick", **{**SMALL, **given})


@pytest.mark.parametrize("points", [20, 21])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_the_gain_is_the_slope_of_the_mean_report_about_zero(points: int, epsilon: float) -> None:
    mechanism = bitldp.BRR(points, epsilon=epsilon, interval=(-1.0, 1.0))
    width, law = mechanism.m, mechanism.channel.probabilities()
    # A window of m that moves by a point moves the mean by m points of weight p - q.
    assert gain(mechanism) == pytest.approx(width * (law.max() - law.min()), rel=1e-9)
    assert 0.0 < gain(mechanism) < 1.0
    # A shifted window: what goes out on one side comes in on the other.
    middle = points // 2
    reported = law @ np.linspace(-1.0, 1.0, points)
    assert gain(mechanism) == pytest.approx(
        (reported[middle] - reported[middle - 1]) * (points - 1) / 2, rel=1e-9
    )


def test_mechanisms_that_are_right_on_average_need_no_correction() -> None:
    assert gain(bitldp.BRR(21, epsilon=1.0, m=1, interval=(-1.0, 1.0))) == 1.0
    assert gain(bitldp.Piecewise(epsilon=1.0)) == 1.0
    with pytest.raises(ValueError, match="epsilon: at 0"):
        gain(bitldp.BRR(21, epsilon=0.0, m=5, interval=(-1.0, 1.0)))


def test_the_threshold_follows_the_norm_without_the_noise() -> None:
    chosen = settings(norm="l2", decay=0.5, clip_least=0.1)
    mean = np.array([3.0, 4.0])
    assert next_clip(chosen, 1.0, mean, 0.0) == pytest.approx(0.5 + 2.5)
    assert next_clip(chosen, 1.0, mean, 2.0) == pytest.approx(0.5 + 0.5 * np.sqrt(25.0 - 8.0))
    assert next_clip(chosen, 0.02, mean, 100.0) == 0.1
    assert next_clip(settings(decay=0.0), 1.0, mean, 0.0) == pytest.approx(5.0 / np.sqrt(2.0))


def test_the_papers_ranges_tell_the_sign(tmp_path: Path) -> None:
    chosen = settings(mechanism="sign-split", epsilon=0.25, norm="linf")
    rows = np.array([[0.01, -0.01, 3.0, -3.0]] * 500)
    released = sign_split(chosen, rows, 1.0, rng=3)
    assert np.all(np.sign(released) * np.sign(rows) >= 0.0)
    assert np.abs(released).max() <= 1.0
    summary = get("brr").run(settings(mechanism="sign-split", out=str(tmp_path)), seeded=True)
    assert summary.privacy.record == np.inf
    assert summary.privacy.claimed == 4.0
    assert "the sign of every number" in summary.privacy.covers
    with pytest.raises(ValueError, match="is for task='sgd'"):
        settings(mechanism="sign-split", task="trees")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_learns_something(mechanism: str) -> None:
    scores = descend(settings(mechanism=mechanism, epsilon=8.0, rounds=20, hidden=16, batch=90), every=20)
    assert scores[0]["round"] == 0
    assert scores[-1]["round"] == 20
    # 113 test records, 0.63 of them of one class.
    assert scores[-1]["accuracy"] > 0.7


def test_rounds_on_tables_are_those_of_messages_without_noise(tmp_path: Path) -> None:
    chosen = settings(mechanism="noiseless", rounds=4, batch=1000, rate=0.3, out=str(tmp_path))
    # All of a client's records in every round: no draw differs between the two.
    summary = get("brr").run(chosen, seeded=True)
    assert descend(chosen)[-1]["accuracy"] == pytest.approx(summary.score, abs=1e-12)


def test_the_correction_is_what_brings_brr_above_laplace_on_digits() -> None:
    words: dict[str, Any] = {"data": "digits", "clients": 20, "hidden": 32, "rounds": 15, "epsilon": 0.25}
    corrected, plain, laplace = (
        fmean(descend(settings(**words, seed=seed, **more), every=15)[-1]["accuracy"] for seed in (1, 2))
        for more in ({}, {"corrected": False}, {"mechanism": "laplace"})
    )
    assert corrected > laplace > plain


def test_the_papers_network_has_its_size_and_learns() -> None:
    model = cnn.initial(10, 1)
    assert sum(array.size for array in model) == 26_010
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(40, cnn.PIXELS)).astype(np.float32)
    y = np.arange(40) % 10
    before = cnn.scores(model, x, y)["loss"]
    for _ in range(3):
        model = [a - np.float32(0.1) * g for a, g in zip(model, cnn.gradient(model, x, y), strict=True)]
    assert cnn.scores(model, x, y)["loss"] < before
    with pytest.raises(ValueError, match="net: 'cnn' needs images"):
        descend(settings(net="cnn"))


@pytest.mark.skipif("BITLDP_DATA" not in os.environ, reason="BITLDP_DATA does not name a folder of data sets")
def test_figure_9_brr_above_laplace_at_small_epsilon_and_close_above() -> None:
    words: dict[str, Any] = {"net": "dense", "hidden": 32, "rounds": 40}

    def score(mechanism: str, epsilon: float) -> float:
        given = {**words, "mechanism": mechanism, "epsilon": epsilon}
        runs = [get("brr").configure(preset="paper", **given, seed=seed) for seed in range(1, 6)]
        return fmean(descend(run, every=40)[-1]["accuracy"] for run in runs)  # type: ignore[arg-type]

    for epsilon in (0.1, 0.3):
        assert score("brr", epsilon) > score("laplace", epsilon)
    assert score("brr", 1.0) > score("laplace", 1.0) - 0.02
