"""Runs of the federated systems in settings that take a few seconds each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from bitldp_papers import get

#: A few seconds each: what differs from ``--quick``.
SMALL: dict[str, dict[str, Any]] = {
    "bitrand": {"clients": 3, "rounds": 3, "hidden": 8, "epochs": 1},
    "ldpfl": {"clients": 3, "rounds": 2, "hidden": 8, "epochs": 1, "filters": 2, "extractor_epochs": 1},
    "fedsel": {"clients": 6, "batch": 2, "rounds": 5},
    "brr": {"clients": 3, "rounds": 2, "hidden": 4, "batch": 8},
    "mvu": {"clients": 3, "rounds": 2, "batch": 3},
}


def run(name: str, out: Path, **given: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Run a system in a small setting; return its summary and the lines of its metrics."""
    system = get(name)
    threads = given.pop("threads", 1)
    recorder = given.pop("recorder", None)
    settings = system.configure(preset="quick", **{**SMALL[name], "out": str(out), **given})
    summary = system.run(settings, seeded=True, threads=threads, recorder=recorder)
    return summary, [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def model(out: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a run's last checkpoint."""
    with np.load(out / "checkpoint.npz") as file:
        return {name: file[name] for name in file.files}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Whether two checkpoints hold the same."""
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
