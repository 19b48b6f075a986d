"""Sweeps that BitRand's learning figures share: one run a setting and seed, done once a process and kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from statistics import fmean, stdev
from typing import Any

from bitldp_papers.bitrand.direct import learned
from bitldp_papers.bitrand.settings import BitRandSettings
from bitldp_papers.figures import FigureRun

__all__ = ["PANELS", "STAND_IN", "Row", "budgets", "honest", "measured", "of", "panels", "seeds", "spread"]

Row = dict[str, Any]

#: Data sets of the paper's panels, and what stands in for each.
PANELS = {"AG": "ag_news", "SEC": "breast_cancer", "FEMNIST": "mnist"}
STAND_IN = (
    "AG: MiniLM embeddings (384 numbers; the paper's BERT has 768) of 8,000 of its 120,000 records; SEC: "
    "breast cancer; FEMNIST: MNIST; CelebA: Adult and Bank"
)

_QUICK = {"hidden": 32, "rounds": 60, "rate": 0.5}
_FULL = {"hidden": 1500, "rounds": 200, "rate": 0.3}
_CLIENTS = {"ag_news": 186, "breast_cancer": 152, "mnist": 264, "adult": 1628, "bank_marketing": 1808}


def panels(run: FigureRun) -> dict[str, str]:
    """Return the data sets of a figure, whose checksums are noted: AG alone in the short form."""
    chosen = {"AG": "ag_news"} if run.quick else PANELS
    for name in chosen.values():
        run.data(name)
    return dict(chosen)


def seeds(run: FigureRun) -> Sequence[int]:
    """Return the seeds of a figure: two in the short form."""
    return run.seeds[:2] if run.quick else run.seeds


def budgets(run: FigureRun) -> tuple[float, ...]:
    """Return the budgets of the features."""
    return (1.0, 10.0) if run.quick else tuple(map(float, range(1, 11)))


@lru_cache(maxsize=4096)
def _learned(settings: BitRandSettings) -> dict[str, float]:
    return learned(settings)


def measured(run: FigureRun, data: str, seed: int, **words: Any) -> Row:
    """Return the scores of one run on a data set, with its settings."""
    shape = _QUICK if run.quick else _FULL
    given = {**BitRandSettings.presets["paper"], **shape, "clients": _CLIENTS[data], **words}
    if given.get("place") == "updates":  # every weight of every client is drawn in every round
        given |= {"rounds": 15 if run.quick else 60, "hidden": 32 if run.quick else 128}
        given["rounds"] = words.get("rounds", given["rounds"])
        given["clients"] = words.get("clients", min(given["clients"], 200))
    if run.quick and data in ("adult", "bank_marketing"):
        given["rounds"] = min(given["rounds"], 20)  # these have four times as many records
    settings = BitRandSettings(**{**given, "data": data, "seed": seed})
    key = ", ".join(f"{name} {value}" for name, value in sorted(asdict(settings).items()))
    found = run.cached(key, lambda: dict(_learned(settings)))
    return {
        "data": data,
        "place": settings.place,
        "mechanism": settings.mechanism,
        "label": settings.label,
        "epsilon": settings.epsilon,
        "label_epsilon": settings.label_epsilon,
        "seed": seed,
        **found,
    }


def of(rows: Sequence[Row], metric: str, **where: Any) -> list[float]:
    """Return the scores of the rows that are as said, in points of a hundred."""
    return [100.0 * row[metric] for row in rows if all(row[name] == value for name, value in where.items())]


def spread(scores: Sequence[float]) -> float | None:
    """Return the standard deviation over the seeds; None of one."""
    return stdev(scores) if len(scores) > 1 else None


def honest(run: FigureRun, metric: str = "accuracy", data: str = "ag_news") -> str:
    """Return what records released once at a true epsilon are worth, in a sentence."""
    said = []
    for epsilon in (8.0, 4.0, 1.0):
        words = {**BitRandSettings.presets["honest"], "epsilon": epsilon}
        del words["clients"], words["data"]
        scores = [100.0 * measured(run, data, seed, **words)[metric] for seed in seeds(run)]
        said.append(f"{fmean(scores):.1f} at {epsilon:g}")
    return (
        "released once at a true epsilon of features and label together (bitldp fl bitrand --preset "
        f"honest): {metric} {', '.join(said)}"
    )


def infinite(epsilon: float) -> str:
    """Return a budget of labels as the figures name it."""
    return "inf" if epsilon == math.inf else f"{epsilon:g}"
