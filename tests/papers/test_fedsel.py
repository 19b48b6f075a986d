"""The system fedsel: its runs, its baselines, Algorithm 1 step by step, and its settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.federated import Layout
from bitldp.federated.client.mod import PrivateUpdateMod
from bitldp.ledger import Ledger
from bitldp.selection import FedSel
from bitldp_papers.fedsel.settings import codec, selecting
from bitldp_papers.models import linear
from bitldp_papers.run.share import holding, loaded
from support.fedsel_runs import SIZE, run, settings, weights


@pytest.mark.parametrize("values", ["pm", "hm", "duchi"])
@pytest.mark.parametrize("select", ["PS", "EXP", "PE"])
def test_every_selection_with_every_value(select: str, values: str, tmp_path: Path) -> None:
    given = {"select": select, "values": values, "rounds": 2, "split": "free", "model": "svm"}
    summary = run(tmp_path, **given)
    chosen = settings(tmp_path, **given)
    stages = selecting(chosen, SIZE).stages
    assert summary.privacy.claimed == 8.0
    assert 7.9 < summary.privacy.record <= 8.0
    assert summary.privacy.record == stages.guarantee.record  # two rounds are less than an epoch
    assert "biased" in summary.caveat
    header = codec(chosen).plan(Layout.of({"000": np.zeros((SIZE, 1), np.float32)})).header
    assert header.payload <= -(-stages.report_bits // 8) + 1 <= 3
    assert summary.bytes_up == 4 * header.size  # two clients, two rounds
    assert np.count_nonzero(weights(tmp_path)) <= 4


def test_every_client_takes_part_once_in_an_epoch(tmp_path: Path) -> None:
    summary = run(tmp_path, rounds=5)  # two epochs, the second cut short
    exact = selecting(settings(tmp_path, rounds=5), SIZE).guarantee.record
    assert summary.privacy.record == exact
    ledgers = [Ledger.load(folder / "ledger.json") for folder in (tmp_path / "clients").iterdir()]
    counts = sorted(sum(entry.count for entry in ledger.entries) for ledger in ledgers)
    assert counts == [1, 1, 2, 2, 2, 2]
    assert max(ledger.spent for ledger in ledgers) == exact
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert all(row["reports"] == 2 for row in rows[1:])


def test_a_paper_calibration_says_what_it_is_worth(tmp_path: Path) -> None:
    summary = run(tmp_path, select="PE", calibration="paper", mu=0.5)
    assert summary.privacy.claimed == 8.0 < summary.privacy.record < 8.0 + 2 * np.log(2.0)


@pytest.mark.parametrize("mechanism", ["flat", "compressed", "full", "random", "top"])
def test_the_baselines(mechanism: str, tmp_path: Path) -> None:
    summary = run(tmp_path, mechanism=mechanism, c=2, values="hm")
    if mechanism in ("flat", "compressed"):
        assert 7.9 < summary.privacy.record <= summary.privacy.claimed == 8.0
    else:
        assert summary.privacy.record == np.inf
        assert summary.bytes_up >= 12 * 4 * SIZE
    assert ("biased" in summary.caveat) == (mechanism in ("compressed", "top"))
    folders = list((tmp_path / "clients").iterdir())
    kept = mechanism not in ("full", "random")
    assert all((folder / "residual.npz").exists() == kept for folder in folders)


def test_a_selection_that_hardly_errs_is_the_largest_coordinate(tmp_path: Path) -> None:
    run(tmp_path / "top", mechanism="top")
    run(tmp_path / "PS", values="none", k=1, epsilon=80.0)
    assert np.array_equal(weights(tmp_path / "top"), weights(tmp_path / "PS"))
    summary = run(tmp_path / "blind", values="none", k=1, epsilon=1e-9)
    assert summary.privacy.record == np.inf
    assert not np.array_equal(weights(tmp_path / "top"), weights(tmp_path / "blind"))


@pytest.mark.parametrize("delay", ["gradients", "steps"])
def test_a_run_is_algorithm_1(delay: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams: dict[tuple[int, int], np.random.SeedSequence] = {}
    plain = PrivateUpdateMod._stream

    def noted(self: PrivateUpdateMod, message: Any, context: Any, asked: bytes) -> Any:
        found = plain(self, message, context, asked)
        assert found is not None
        place = int(context.node_config["partition-id"])
        streams[place, int(message.content["config"]["server-round"])] = found[0]
        return found

    monkeypatch.setattr(PrivateUpdateMod, "_stream", noted)
    words: dict[str, Any] = {"momentum": 0.5, "rate": 3.0, "delay": delay, "mu": 0.3, "select": "PE"}
    run(tmp_path, clients=3, batch=3, rounds=4, **words)  # everybody in every round: four epochs
    held = [holding("breast_cancer", place, 3, seed=1) for place in range(3)]
    clients = [
        FedSel(SIZE, epsilon=8.0, rounds=4, select="PE", mu=0.3, batch=3, momentum=0.5) for _ in range(3)
    ]
    w = np.zeros((SIZE, 1), np.float32)
    inner, outer = (3.0, 1.0) if delay == "steps" else (1.0, 3.0)
    for turn in range(1, 5):
        total = np.zeros(SIZE)
        for place, client in enumerate(clients):
            x, y = linear.design(held[place].x, -1.0), linear.targets(held[place].y, 1)
            gradient = (inner * linear.gradient(w, x, y, "logistic", 1e-4)).astype(np.float32)
            record = gradient.reshape(1, -1).astype(np.float64)
            reports = client.release(record, rng=streams[place, turn])
            total += client.stages.decode(reports)[0]
        w = (w.astype(np.float64) - outer * (total / 3)[:, None]).astype(np.float32)
    assert np.allclose(weights(tmp_path), w, rtol=1e-5, atol=1e-6)
    for place, client in enumerate(clients):
        with np.load(tmp_path / "clients" / f"{place:05}" / "residual.npz") as file:
            assert np.allclose(file["residual"], client.state()["residual"], rtol=1e-5, atol=1e-6)


def test_the_largest_coordinate_is_sent_and_begins_anew(tmp_path: Path) -> None:
    run(tmp_path, mechanism="top", clients=1, batch=1, rounds=6, rate=0.5, momentum=0.25)
    held = holding("breast_cancer", 0, 1, seed=1)
    x, y = linear.design(held.x, -1.0), linear.targets(held.y, 1)
    w, residual = np.zeros((SIZE, 1), np.float32), np.zeros(SIZE)
    for _ in range(6):
        before = residual.copy()
        residual += linear.gradient(w, x, y, "logistic", 1e-4).ravel()
        place = np.argmax(np.abs(residual))
        update = np.zeros((SIZE, 1))
        update[place] = residual[place] + 0.25 * before[place]
        residual[place] = 0.0
        w = (w - 0.5 * update).astype(np.float32)
    assert np.allclose(weights(tmp_path), w, rtol=1e-5, atol=1e-6)


def test_a_round_is_a_step_along_the_mean_of_the_sparse_updates(tmp_path: Path) -> None:
    run(tmp_path, clients=2, rounds=1, rate=3.0)
    chosen = settings(tmp_path, clients=2, rounds=1, rate=3.0)
    plan = codec(chosen).plan(Layout.of({"000": np.zeros((SIZE, 1), np.float32)}))
    total = np.zeros(SIZE)
    for place in range(2):
        with np.load(tmp_path / "clients" / f"{place:05}" / "residual.npz") as file:
            total += plan.at(1).decode(file["answer"])
    assert np.allclose(weights(tmp_path).ravel(), -3.0 * total / 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "fragment"),
    [
        ({"batch": 7}, "batch: must be between 1 and 6"),
        ({"select": "PX"}, "select: must be one of"),
        ({"values": "none", "mechanism": "flat"}, "values: 'none' is not for"),
        ({"calibration": "paper"}, "calibration: 'paper' needs select='PE'"),
        ({"mu": 1.0}, "mu: must be in"),
        ({"ratio": 1.5}, "ratio: must be at most 1"),
        ({"lowest": 0.5}, "lowest: must be between"),
        ({"epsilon": 0.0}, "epsilon: must be above zero"),
        ({"model": "tree"}, "model: must be one of"),
    ],
)
def test_settings_are_checked(given: dict[str, Any], fragment: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=fragment):
        settings(tmp_path, **given)


def test_the_screen_says_that_the_estimate_is_biased(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from bitldp_papers.cli.fl import _print_summary as print_summary

    summary = run(tmp_path, rounds=1)
    assert json.loads((tmp_path / "summary.json").read_text())["caveat"] == summary.caveat
    capsys.readouterr()
    print_summary(summary, tmp_path, "", as_json=False)
    shown = capsys.readouterr().out
    assert "caveat" in shown
    assert "biased" in shown
    print_summary(run(tmp_path / "full", mechanism="full", rounds=1), tmp_path, "", as_json=False)
    assert "caveat" not in capsys.readouterr().out


def test_more_than_two_classes(tmp_path: Path) -> None:
    run(tmp_path, data="digits", rounds=2, model="svm")
    assert weights(tmp_path).shape == (65, 10)


def test_a_regression_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    from bitldp_papers.fedsel import system

    data, train, test = loaded("breast_cancer")
    other = (dataclasses.replace(data, task="regression"), train, test)
    monkeypatch.setattr(system, "loaded", lambda name: other)
    with pytest.raises(ValueError, match="has no classes to tell apart"):
        run(tmp_path)
