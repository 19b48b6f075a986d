"""What `bitldp fl` prints beside a score: the majority class and the AUC, or the mean beside an error."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp_papers import get
from bitldp_papers.cli.fl import _print_runs as print_runs
from bitldp_papers.cli.fl import _print_summary as print_summary
from bitldp_papers.data import load
from support.fedsel_runs import run


def test_the_majority_class_stands_beside_the_accuracy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = run(tmp_path, rounds=1)
    assert summary.majority == load("breast_cancer").majority
    assert 0.0 <= summary.scores["auc"] <= 1.0
    capsys.readouterr()
    print_summary(summary, tmp_path, "", as_json=False)
    shown = capsys.readouterr().out
    assert "majority class" in shown
    assert "AUC" in shown
    print_runs([summary, dataclasses.replace(summary, seed=2)], tmp_path, "", as_json=False)
    assert "majority class: 0." in capsys.readouterr().out


def test_the_mean_stands_beside_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system = get("brr")
    given = {"task": "trees", "data": "wine", "clients": 20, "rounds": 1, "depth": 1}
    summary = system.run(system.configure(**given, out=str(tmp_path / "run")))
    data = load("wine")  # its classes 0, 1, 2 are targets of -1, 0, 1
    off = data.test_labels - np.mean(data.train_labels)
    assert summary.constant == pytest.approx(float(np.sqrt(np.mean(np.square(off)))))
    assert summary.majority is None
    capsys.readouterr()
    print_summary(summary, tmp_path, "", as_json=False)
    shown = capsys.readouterr().out
    assert "a constant, the mean" in shown
    assert "majority class" not in shown
    print_runs([summary, dataclasses.replace(summary, seed=2)], tmp_path, "", as_json=False)
    assert "a constant, the mean: 0." in capsys.readouterr().out
