"""The telemetry example runs as written, and its estimates are near the truth."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).parents[2] / "examples" / "telemetry" / "telemetry.py"


@pytest.fixture(scope="module")
def telemetry() -> ModuleType:
    spec = importlib.util.spec_from_file_location("telemetry", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["telemetry"] = module  # where its named tuples look for themselves
    spec.loader.exec_module(module)
    return module


@pytest.mark.statistical
def test_every_answer_is_near_the_truth(telemetry: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """At n = 80,000: 13 answers within 5 standard errors (alpha 8e-6), but for the bias of the smoothing."""
    found = telemetry.main(["--users", "80000", "--reports-seed", "3"])
    for answer in found:
        bias = 0.05 if answer.question.startswith("seconds") else 0.0
        assert abs(answer.estimate - answer.truth) < 5.0 * answer.stderr + bias, answer
    searched = [answer.question.removeprefix("searched for: ") for answer in found[-5:]]
    assert sorted(searched) == sorted(telemetry.SEARCHED)
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 1 + len(found) + 2
    assert "epsilon 8 for all answers of a user" in printed


@pytest.mark.slow
def test_it_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--users", "3000"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert re.search(r"3,000 users, \d+ bits each", done.stdout)
