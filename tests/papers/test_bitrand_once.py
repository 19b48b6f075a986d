"""Records released once at a true epsilon: what is reported is unbiased, and the way to do it is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import bitldp
from bitldp.federated import PrivateData
from bitldp.ledger import Ledger
from bitldp_papers.bitrand import once
from bitldp_papers.bitrand.settings import BitRandSettings
from bitldp_papers.bitrand.system import learned
from bitldp_papers.run.vectors import in_ball
from support.small_runs import run

HONEST = {"mechanism": "once", "epsilon": 12.0, "rounds": 1, "label_epsilon": 0.0}


@pytest.mark.parametrize("classes", [2, 3, 4, 10])
def test_the_corners_are_a_regular_simplex(classes: int) -> None:
    corners = once.corners(classes)
    assert corners.shape == (classes, classes - 1)
    assert np.allclose(corners @ corners.T, (classes * np.eye(classes) - 1.0) / (classes - 1), atol=1e-12)


@pytest.mark.parametrize("way", ["joint", "split"])
def test_reports_are_unbiased_and_as_noisy_as_the_release_says(way: str) -> None:
    classes, features, records = 3, 12, 60_000
    rng = np.random.default_rng(5)
    x = rng.normal(size=(records, features))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.integers(0, classes, records)
    x[:, 0] = 0.6 * (y - 1.0)  # something to find
    x = in_ball(x, 1.0)
    release = once.record_release(features, classes, 4.0, 1.0, way)
    assert release.epsilon <= 4.0 + 1e-9
    rows = once.packed(x, y, classes) if release.joint else x
    reports = release.features.randomize(rows, rng=6)  # type: ignore[attr-defined]
    labels = None if release.labels is None else release.labels.randomize(y, rng=7)  # type: ignore[attr-defined]
    flat = np.hstack([part.reshape(records, -1) for part in reports])
    found = once.cross(release, flat, labels, classes)
    truth = once.packed(x, y, classes).mean(axis=0).reshape(features, classes)
    assert np.abs(truth).max() > 0.1
    error = float(np.square(found - truth)[:, :-1].sum())
    # The sum of 24 squared errors is within a factor 2 of its mean but for 1 in 10,000.
    assert error < 2.0 * release.noise / records
    assert error > 0.3 * release.noise / records


def test_the_best_release_is_the_less_noisy_one() -> None:
    for epsilon in (1.0, 4.0, 8.0):
        ways = {way: once.record_release(384, 4, epsilon, 1.0, way) for way in ("joint", "split", "best")}
        assert ways["best"].noise == min(ways["joint"].noise, ways["split"].noise)
        assert ways["joint"].noise < ways["split"].noise
        assert all(way.epsilon <= epsilon + 1e-9 for way in ways.values())
    with pytest.raises(ValueError, match="epsilon: must be above zero"):
        once.record_release(384, 4, 0.0, 1.0)


@pytest.mark.parametrize("mechanism", ["once-joint", "once-split"])
def test_a_run_releases_each_record_once_and_learns(mechanism: str, tmp_path: Path) -> None:
    summary, rows = run("bitrand", tmp_path, **{**HONEST, "mechanism": mechanism, "data": "breast_cancer"})
    assert summary.privacy.claimed == 12.0
    assert 11.9 < summary.privacy.record <= 12.0 + 1e-9
    assert [row["round"] for row in rows] == [0, 1]
    assert summary.caveat.startswith("released as: ")
    for folder in (tmp_path / "clients").iterdir():
        assert Ledger.load(folder / "ledger.json").spent == pytest.approx(summary.privacy.record)
    assert summary.score > 0.75


def test_the_run_without_messages_is_as_good() -> None:
    scores = [
        learned(BitRandSettings(**HONEST, data="breast_cancer", clients=3, seed=seed))["accuracy"]
        for seed in (1, 2, 3)
    ]
    assert np.mean(scores) > 0.8
    silent = learned(BitRandSettings(**{**HONEST, "epsilon": 0.01}, data="breast_cancer", clients=3))
    assert silent["accuracy"] < 0.8  # it does not learn from what was not released


def test_reports_of_two_parts_are_kept_side_by_side(tmp_path: Path) -> None:
    mechanism = bitldp.CrossPolytope(20, epsilon=5.0)
    x = np.random.default_rng(8).normal(size=(9, 20))
    data = PrivateData(tmp_path / "released.npz", mechanism, output="codes", ledger=Ledger(5.0))
    kept = data.get(lambda: (x, None), rng=9).features
    assert kept.shape == (9, 2)
    assert np.array_equal(data.get(lambda: 1 / 0).features, kept)  # type: ignore[arg-type, return-value]
    decoded = mechanism.decode(mechanism._join([kept[:, :1], kept[:, 1:]]))
    seed = np.random.SeedSequence(9).spawn(2)[0]
    assert np.array_equal(decoded, mechanism.decode(mechanism.randomize(x, rng=seed)))
