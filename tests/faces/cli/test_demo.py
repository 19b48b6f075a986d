"""The demonstration: real people's table is released and asked, and its intervals hold the truth."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("statsmodels", reason='needs pip install "bitldp[demo]"')

from bitldp.cli import demo, learning
from bitldp.cli.program import app
from rich.console import Console
from typer.testing import CliRunner


@pytest.mark.slow
def test_what_it_prints_is_what_was_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_SPEED_ROWS", 10_000)
    monkeypatch.setattr(demo, "_CURVE", (1.0, 4.0))
    screen, out = io.StringIO(), tmp_path / "new" / "demo.png"
    answers = demo.run(out, Console(file=screen, width=150))
    text = screen.getvalue()
    assert out.read_bytes().startswith(b"\x89PNG")
    assert len(answers) == len(demo.BUDGETS) * 17
    given = [answer for answer in answers if not math.isnan(answer.estimate)]
    held = sum(answer.holds for answer in given)
    assert f"{held} of {len(given)} intervals" in text
    assert text.count("*") == len(given) - held + 1  # and the one that is explained
    assert held >= 0.85 * len(given)  # a fixed key; 95 % in the long run
    for answer in given:
        assert f"{answer.truth:.3f}" in text
        assert f"{answer.estimate:.3f} ({answer.low:.3f} to {answer.high:.3f})" in text
    budgets = dict.fromkeys(answer.epsilon for answer in answers)
    for asked, exact in zip(demo.BUDGETS, budgets, strict=True):
        assert asked - 1e-9 < exact <= asked
    widths = [
        [a.high - a.low for a in given if a.epsilon == e and a.question == "share: good"] for e in budgets
    ]
    assert widths == sorted(widths, reverse=True)


def test_the_people() -> None:
    table = demo.people()
    assert table.num_rows == 20_190
    assert set(table["health"].to_pylist()) == set(demo.HEALTH)
    assert set(table["insurance"].to_pylist()) == set(demo.INSURANCE)
    assert np.max(table["visits"].to_numpy()) == 77.0


def test_a_miss_is_marked() -> None:
    answer = demo.DemoAnswer("share: good", 1.0, 0.5, 0.3, 0.2, 0.4)
    assert not answer.holds
    assert demo._cell(answer).endswith("*")
    assert "*" not in demo._cell(replace(answer, truth=0.3))
    assert demo._cell(replace(answer, estimate=math.nan)) == "too few records"


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(demo, "run", lambda out, console: called.append(out))
    monkeypatch.setattr(learning, "run", lambda out, console: called.append(("learning", out)))
    assert CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "x.png")]).exit_code == 0
    assert CliRunner().invoke(app, ["demo"]).exit_code == 0
    assert CliRunner().invoke(app, ["demo", "--learning"]).exit_code == 0
    usual = Path("demo-output") / "demo.png"
    assert called == [tmp_path / "x.png", usual, ("learning", usual)]


def test_the_next_commands_exist() -> None:
    shown = " ".join(line for _, line in demo._NEXT)
    names = set(re.findall(r"bitldp (\w+)", shown))
    for name in sorted(names):
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0
