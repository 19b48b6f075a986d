"""The long checks of `benches` in short: each kernel holds its law, and a law a little off is missed."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

BENCHES = Path(__file__).parents[3] / "benches"


@pytest.fixture
def bench(monkeypatch):
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHES))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(BENCHES) in str(getattr(sys.modules[name], "__file__", "")):
            sys.modules.pop(name)


@pytest.mark.statistical
def test_every_kernel_holds_and_a_wrong_law_does_not(bench):
    soak = bench("soak")
    # n = 4 * 10^5 a kernel, alpha = 1e-6, fixed keys
    for title, kernel in soak.kernels():
        result = soak.soak(title, kernel, 400_000)
        assert result["samples"] == 400_000
        assert result["chi_square"] < result["limit"], title
        assert np.allclose(kernel.law.sum(axis=1), 1.0)
        shifted = 0.5 * (kernel.law + np.roll(kernel.law, 1, axis=1))
        wrong = soak.soak(title, replace(kernel, law=shifted), 400_000)
        assert wrong["chi_square"] > wrong["limit"], title


@pytest.mark.slow
def test_every_case_of_the_clock_can_be_timed(bench):
    timing = bench("timing")
    cases = list(timing.cases().values())
    for dtype, call in cases:
        call(np.zeros(timing.NUMBERS, dtype))
    found = timing.measure(cases[0][1], cases[0][0], rounds=3)
    assert found.keys() == timing.PAIRS.keys()
    assert all(np.isfinite([pair.ratio, pair.t]).all() for pair in found.values())


def test_a_check_keeps_its_figures_where_it_passes(bench, monkeypatch, tmp_path, capsys):
    keep = bench("keep")
    monkeypatch.setattr(keep, "RECORDS", tmp_path)
    says = "print('12 passed, 1 skipped'); print('fuzzed bits: 250 cases, 90 answered')"
    assert keep.main("some", [sys.executable, "-c", says]) == 0
    assert keep.main("some", [sys.executable, "-c", f"{says}; raise SystemExit(3)"]) == 3
    (line,) = (tmp_path / "checks.jsonl").read_text().splitlines()
    kept = json.loads(line)
    assert (kept["name"], kept["passed"]) == ("some", 12)
    assert kept["fuzzed"] == {"bits": {"cases": 250, "answered": 90}}
    assert capsys.readouterr().out.count("12 passed") == 2
