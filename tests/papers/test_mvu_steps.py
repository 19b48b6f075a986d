"""The system mvu: how bits are chosen, both ways to account signs, public features, rounds on tables."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.compression import InterpolatedMVU, SignSGD, VectorMVU
from bitldp.federated.client.composed import composed
from bitldp_papers import get
from bitldp_papers.mvu.figures_learning import front
from bitldp_papers.mvu.inputs import convolved, inputs
from bitldp_papers.mvu.system import corrected, descend

SMALL: dict[str, Any] = {"data": "wine", "clients": 3, "rounds": 2, "batch": 10, "features": "features"}
SIZE = 42  # coordinates of a linear model of wine


def settings(**given: Any) -> Any:
    return get("mvu").configure(preset="quick", **{**SMALL, **given})


def test_bits_are_chosen_by_the_variance() -> None:
    # One bit has a variance of 1 and more: at a large budget that is too much.
    few, many = settings(output_bits=0, epsilon=2.0), settings(output_bits=0, epsilon=25.0)
    one = few.release(SIZE)
    assert isinstance(one, VectorMVU)
    assert one.report_bits == SIZE
    more = many.release(SIZE)
    assert isinstance(more, InterpolatedMVU)
    assert more.report_bits > SIZE
    assert more.worst_variance() < settings(output_bits=1, epsilon=25.0).release(SIZE).worst_variance()
    assert composed(more, many.releases(), many.delta).epsilon <= 25.0


def test_signs_are_accounted_both_ways() -> None:
    noise, bits = (settings(mechanism=name).release(SIZE) for name in ("signsgd-noise", "signsgd"))
    gaussian = settings(mechanism="gaussian").release(SIZE)
    assert isinstance(noise, SignSGD)
    assert isinstance(bits, SignSGD)
    assert noise.sigma > 1.1 * bits.sigma  # the noise by itself needs more
    assert noise.parameters["epsilon"] == gaussian.parameters["epsilon"]
    spent = settings(mechanism="signsgd-noise").spent(SIZE).epsilon
    assert spent < 0.95 * settings(mechanism="signsgd").spent(SIZE).epsilon <= 5.0


def test_interpolated_and_automatic_bits_keep_the_budget() -> None:
    for given in ({"mechanism": "interpolated"}, {"mechanism": "gaussian", "noise_bits": 0}):
        chosen = settings(**given)
        assert 4.0 < chosen.spent(SIZE).epsilon <= 5.0
    with pytest.raises(ValueError, match="output_bits: 'interpolated' has 2 to 5"):
        settings(mechanism="interpolated", output_bits=6)
    with pytest.raises(ValueError, match="features: must be one of"):
        settings(features="words")


def test_the_majority_and_the_mean_of_signs_become_steps() -> None:
    mean = np.array([0.5, -0.1, 0.0, 0.2])
    step = corrected(settings(mechanism="signsgd", clip=2.0), mean)
    assert step.tolist() == [1.0, -1.0, 0.0, 1.0]
    chosen = settings(mechanism="signsgd-mean")
    scale = corrected(chosen, np.ones(SIZE))
    assert scale == pytest.approx(chosen.release(SIZE).sigma * np.sqrt(np.pi / 2.0))
    assert np.array_equal(corrected(settings(), mean), mean)


def test_public_features_depend_on_the_image_alone() -> None:
    rng = np.random.default_rng(3)
    images = rng.uniform(-1.0, 1.0, (5, 784)).astype(np.float32)
    found = convolved(images)
    assert found.shape == (5, 64)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)
    assert np.allclose(found.mean(axis=1), 0.0, atol=1e-6)
    assert np.allclose(found[3:4], convolved(images[3:4]), atol=1e-6)
    # A brighter image has the same features; another one has not.
    assert np.allclose(convolved(images * 0.5 + 0.25), found, atol=1e-3)
    assert np.abs(found[0] - found[1]).max() > 0.01
    with pytest.raises(ValueError, match="not a square image"):
        convolved(images[:, :30])
    with pytest.raises(ValueError, match="not a square image"):
        inputs("wine", "convolutions")


def test_images_in_colour_have_public_features_too() -> None:
    images = np.random.default_rng(3).uniform(-1.0, 1.0, (4, 32 * 32 * 3)).astype(np.float32)
    found = convolved(images)
    assert found.shape == (4, 64)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)
    # The three channels of a pixel stand together: another order is another image.
    assert not np.allclose(
        convolved(images.reshape(4, 32, 32, 3)[..., ::-1].reshape(4, -1)), found, atol=1e-2
    )
    with pytest.raises(ValueError, match="not a square image"):
        convolved(images[:, : 3 * 31 * 32])


def test_rounds_on_tables_are_those_of_messages_without_noise(tmp_path: Path) -> None:
    chosen = settings(mechanism="noiseless", clients=1, batch=143, rounds=3, out=str(tmp_path))
    summary = get("mvu").run(chosen, seeded=True)
    assert descend(chosen)[-1]["accuracy"] == pytest.approx(summary.score, abs=1e-12)
    with pytest.raises(ValueError, match="level: must be 'example'"):
        descend(settings(level="client"))


def test_a_large_budget_learns_digits() -> None:
    words: dict[str, Any] = {"features": "convolutions", "rounds": 20, "batch": 50, "rate": 5.0}
    chosen = get("mvu").configure(preset="quick", epsilon=30.0, **words)
    assert descend(chosen)[-1]["accuracy"] > 0.3  # ten classes


def test_the_front_is_what_no_other_point_beats() -> None:
    points = [(1.0, 0.2), (2.0, 0.1), (3.0, 0.4), (3.0, 0.5), (5.0, 0.5), (6.0, 0.6)]
    assert front(points) == [(1.0, 0.2), (3.0, 0.5), (6.0, 0.6)]


@pytest.mark.skipif("BITLDP_DATA" not in os.environ, reason="BITLDP_DATA does not name a folder of data sets")
def test_figure_4_one_bit_is_near_the_gaussian_mechanism_with_twelve_times_fewer_bits() -> None:
    scores, bits = {}, {}
    for name in ("mvu", "gaussian"):
        runs = [
            get("mvu").configure(preset="paper", mechanism=name, epsilon=5.0, seed=seed) for seed in (1, 2, 3)
        ]
        scores[name] = fmean(descend(run)[-1]["accuracy"] for run in runs)  # type: ignore[arg-type]
        bits[name] = runs[0].release(650).report_bits  # type: ignore[attr-defined]
    assert bits["gaussian"] == 12 * bits["mvu"]
    assert scores["mvu"] > scores["gaussian"] - 0.05
