"""The demonstration of learning: its rows are honest, its result repeats, and it writes its plot."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import bitldp
import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from bitldp.cli import learning as demo
from rich.console import Console


def small(names: tuple[str, ...], budgets: int) -> list[demo.Method]:
    """Return some methods with the ends of their budgets."""
    chosen = [method for method in demo.METHODS if method.name in names]
    assert len(chosen) == len(names)
    return [replace(method, budgets=(method.budgets[0], method.budgets[-1])[:budgets]) for method in chosen]


@pytest.mark.slow
def test_a_short_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "DATA_SETS", ("breast_cancer",))
    monkeypatch.setattr(demo, "_SPEED_VALUES", 10_000)
    screen = io.StringIO()
    out = tmp_path / "new" / "demo.png"
    methods = small(("FRR", "FRR, paper", "GRR, 5 points"), 2)
    outcomes = demo.run(out, Console(file=screen, width=150), methods=methods, repeats=1)
    text = screen.getvalue()
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "Million" in text
    assert "Telemetry, OUE" in text
    assert "Federated, 10 clients" in text
    assert "share of 7" in text  # the table of digits
    assert "OTHER ROWS" not in text
    assert str(out) in text.replace("\n", "")
    assert len(outcomes) == 6
    for outcome in outcomes:
        assert outcome.holds is (outcome.exact <= outcome.claimed)
        assert outcome.holds is (outcome.method != "FRR, paper")
        assert outcome.speed > 0
        assert f"{outcome.accuracy:.3f}" in text
    least, most = (outcome for outcome in outcomes if outcome.method == "FRR")
    assert least.accuracy < 0.8 < most.accuracy  # 10 teaches next to nothing, 1000 nearly everything
    assert most.error < least.error


@pytest.mark.statistical
def test_it_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "DATA_SETS", ("breast_cancer",))
    monkeypatch.setattr(demo, "_SPEED_VALUES", 1000)
    monkeypatch.setattr(demo, "EPILOGUES", ())
    console = Console(file=io.StringIO())
    methods = small(("BRR, 16 points", "MOUE, alpha 1"), 1)
    first, second = (demo.run(tmp_path / "demo.png", console, methods=methods, repeats=1) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert replace(one, speed=0.0) == replace(other, speed=0.0)


@pytest.mark.parametrize("method", demo.METHODS, ids=lambda method: method.name)
def test_methods(method: demo.Method) -> None:
    train = demo.records("wine").train
    warned = pytest.warns(bitldp.PrivacyClaimWarning) if "paper" in method.name else nullcontext()
    with warned:
        mechanism = method.build(train.shape[1], method.budgets[-1])
    reports = mechanism.randomize(method.encode(train), rng=1)
    values = method.decode(mechanism, reports)
    assert values.shape == train.shape
    assert np.abs(values).max() <= 1.0
    # Without noise, the values are those of the codec: within half a grid step, or a step of the fixed point.
    step = {"GRR, 5 points": 0.25, "BRR, 16 points": 1 / 15}.get(method.name, 1 / 128)
    if method.name in ("FRR", "GRR, 5 points", "BRR, 16 points"):
        sure = method.build(train.shape[1], 1e5)
        exact = method.decode(sure, sure.randomize(method.encode(train), rng=1))
        assert np.abs(exact - train).max() <= step + 1e-6


def test_budgets_are_kept() -> None:
    seeds = np.random.SeedSequence(1).spawn(1)
    for method in small(("FRR", "GRR, 5 points", "BRR, 16 points", "MOUE, alpha 1"), 1):
        outcome = demo._try("wine", method, 30.0, seeds)
        assert 29.9 < outcome.exact <= 30.0


def test_records_are_scaled_by_the_published_ranges() -> None:
    """The table of a data set's description holds every record, and some records lie at its ends."""
    for name, features, classes in (("digits", 64, 10), ("breast_cancer", 30, 2), ("wine", 13, 3)):
        data = demo.records(name)
        assert (data.train.shape[1], data.classes) == (features, classes)
        whole = np.vstack([data.train, data.test])
        assert whole.min() == -1.0
        assert whole.max() == 1.0


@pytest.mark.slow
def test_it_needs_no_flower_and_no_papers() -> None:
    program = "import sys, bitldp.cli.learning as demo; demo.records('wine'); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"flwr", "jax", "bitldp_papers"} & set(shown.split())
