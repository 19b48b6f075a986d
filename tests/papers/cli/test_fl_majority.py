"""What `bitldp fl` prints beside an accuracy: the majority class, and the AUC where it is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

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
    error = dataclasses.replace(summary, metric="rmse", majority=None)
    print_summary(error, tmp_path, "", as_json=False)
    assert "majority class" not in capsys.readouterr().out
