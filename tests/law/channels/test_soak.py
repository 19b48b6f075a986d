"""The soak in short: every kernel holds its law, and one that is a little off is missed."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

BENCHES = Path(__file__).parents[3] / "benches"


@pytest.fixture
def soak(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHES))
    yield importlib.import_module("soak")
    sys.modules.pop("soak")


def test_every_kernel_holds_and_a_wrong_law_does_not(soak):
    # n = 4 * 10^5 a kernel, alpha = 1e-6, fixed keys
    for title, kernel in soak.kernels():
        result = soak.soak(title, kernel, 400_000)
        assert result["samples"] == 400_000
        assert result["chi_square"] < result["limit"], title
        assert np.allclose(kernel.law.sum(axis=1), 1.0)
        shifted = 0.5 * (kernel.law + np.roll(kernel.law, 1, axis=1))
        wrong = soak.soak(title, replace(kernel, law=shifted), 400_000)
        assert wrong["chi_square"] > wrong["limit"], title
