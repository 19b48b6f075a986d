"""Runs of the system fedsel in a small setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from bitldp_papers import get

SMALL = {"clients": 6, "batch": 2, "rounds": 6, "epsilon": 8.0}
SIZE = 31  # coordinates of a linear model of breast_cancer


def settings(out: Path, **given: Any) -> Any:
    return get("fedsel").configure(preset="quick", **{**SMALL, "out": str(out), **given})


def run(out: Path, **given: Any) -> Any:
    words = {name: given.pop(name) for name in ("recorder", "watcher", "threads") if name in given}
    return get("fedsel").run(settings(out, **given), seeded=True, **words)


def weights(out: Path) -> np.ndarray:
    with np.load(out / "checkpoint.npz") as file:
        return file["000"]
