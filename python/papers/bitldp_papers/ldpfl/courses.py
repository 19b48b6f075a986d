"""Runs that LDPFL's figures share: clients' own networks by epoch, the dense network by round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from statistics import fmean, stdev
from typing import Any

from bitldp_papers.figures import Compared, FigureRun, FigureResult
from bitldp_papers.figures.drawing import lines
from bitldp_papers.ldpfl.direct import clients, learned
from bitldp_papers.ldpfl.settings import WITHOUT, LDPFLSettings

__all__ = [
    "CIFAR",
    "FASHION",
    "HONEST",
    "MNIST",
    "STAND_INS",
    "Row",
    "dense_network",
    "own_networks",
    "ran",
    "seeds",
    "settings_of",
    "spread",
]

Row = dict[str, Any]

#: A client's network of the short form: plain gradient descent, few records and epochs.
_SHORT = {"extractor_epochs": 4, "extractor_rate": 0.03, "extractor_optimizer": "sgd", "tested": 1000}
_QUICK = {
    **_SHORT,
    **{"batch_norm": False, "augment": False, "hidden": 64, "rounds": 5, "epochs": 2},
    **{"rate": 0.1, "optimizer": "sgd"},
}
MNIST = {"preset": "paper", "quick": {**_QUICK, "records": 2000}}
FASHION = {"preset": "paper-fashion", "quick": {**_QUICK, "records": 1500, "clients": 3}}
CIFAR = {
    "preset": "paper-fashion",
    "full": {"clients": 2, "rounds": 100},
    "quick": {**_QUICK, "records": 1500, "clients": 2},
}
STAND_INS = {
    "CIFAR": "Fashion-MNIST stands in for CIFAR-10 (with the paper's network of three blocks)",
    "SVHN": "MNIST stands in for SVHN: 60,000 images for 451,461, so clients hold fewer records",
}
HONEST = (
    "no epsilon of a record's features is near .5 in this system; bitldp fl honest and bitldp fl bitrand "
    "--preset honest show what keeps one"
)


def settings_of(run: FigureRun, spec: dict[str, Any], seed: int, **words: Any) -> LDPFLSettings:
    """Return the settings of a run, of the short form or in full."""
    more = spec["quick"] if run.quick else spec.get("full", {})
    preset = LDPFLSettings.presets[spec["preset"]]
    return LDPFLSettings(**{**preset, **more, **words, "seed": seed})


def seeds(run: FigureRun) -> Sequence[int]:
    """Return the seeds of a figure: two in the short form."""
    return run.seeds[:2] if run.quick else run.seeds


@lru_cache(maxsize=256)
def _learned(settings: LDPFLSettings) -> dict[str, Any]:
    return learned(settings)


@lru_cache(maxsize=64)
def _course(settings: LDPFLSettings) -> tuple[tuple[float, float], ...]:
    group = clients(settings)
    return tuple(
        (fmean(each.course[turn][0] for each in group), fmean(each.course[turn][1] for each in group))
        for turn in range(settings.extractor_epochs)
    )


def _key(settings: LDPFLSettings) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(asdict(settings).items()))


def ran(run: FigureRun, settings: LDPFLSettings) -> dict[str, Any]:
    """Return the course of a run, done once a process and kept."""
    return run.cached(_key(settings), lambda: dict(_learned(settings)))


def spread(values: Sequence[float]) -> float | None:
    """Return the standard deviation over the seeds; None of one."""
    return stdev(values) if len(values) > 1 else None


def own_networks(
    run: FigureRun, spec: dict[str, Any], data: str, paper: float | None, stand_in: str
) -> FigureResult:
    """Return the figure of clients' own networks, epoch by epoch."""
    run.data(data)
    rows: list[Row] = []
    for seed in run.each(seeds(run), "seed"):
        settings = settings_of(run, spec, seed, data=data)
        course = run.cached("course, " + _key(settings), partial(_course, settings))
        for turn, (own, test) in enumerate(course, 1):
            rows.append({"seed": seed, "epoch": turn, "own records": 100 * own, "test records": 100 * test})
    last = [row["test records"] for row in rows if row["epoch"] == rows[-1]["epoch"]]
    epochs = sorted({row["epoch"] for row in rows})

    def draw(canvas: Any) -> None:
        shown = {
            name: (epochs, [fmean(row[name] for row in rows if row["epoch"] == turn) for turn in epochs])
            for name in ("own records", "test records")
        }
        lines(canvas.subplots(), shown, xlabel="epoch", ylabel="accuracy, %")

    return FigureResult(
        rows,
        draw,
        [Compared("a client's own network, last epoch, %", paper, fmean(last), spread(last), math.inf, 0.5)],
        honest=HONEST,
        stand_in=stand_in,
        verdict=f"{fmean(last):.1f} % on test records after {epochs[-1]} epochs of "
        f"{settings.records or 'all'} records; this network is trained on the records as they are, and "
        "nothing of it is private",
        parameters=asdict(settings),
    )


def dense_network(
    run: FigureRun, spec: dict[str, Any], data: str, paper: float, metric: str, stand_in: str
) -> FigureResult:
    """Return the figure of the dense network, round by round, with and without noise."""
    run.data(data)
    rows: list[Row] = []
    ends: dict[str, list[float]] = {}
    for seed in run.each(seeds(run), "seed"):
        for mechanism in ("uer-paper", WITHOUT):
            found = ran(run, settings_of(run, spec, seed, data=data, mechanism=mechanism))
            ends.setdefault(mechanism, []).append(100 * found["accuracy"][-1])
            for turn, (hit, loss) in enumerate(zip(found["accuracy"], found["loss"], strict=True), 1):
                scores = {"accuracy": 100 * hit, "loss": loss}
                rows.append({"mechanism": mechanism, "seed": seed, "round": turn, **scores})
            if mechanism != WITHOUT:
                exact = found["exact"]
    rounds = sorted({row["round"] for row in rows})

    def draw(canvas: Any) -> None:
        shown = {
            name: (
                rounds,
                [
                    fmean(r[metric] for r in rows if (r["mechanism"], r["round"]) == (name, turn))
                    for turn in rounds
                ],
            )
            for name in ends
        }
        unit = "accuracy, %" if metric == "accuracy" else metric
        lines(canvas.subplots(), shown, xlabel="round", ylabel=unit)

    ours, clean = ends["uer-paper"], ends[WITHOUT]
    settings = settings_of(run, spec, 1, data=data)
    return FigureResult(
        rows,
        draw,
        [
            Compared("LDPFL, last round, %", paper, fmean(ours), spread(ours), exact, settings.epsilon),
            Compared("the same without noise, %", None, fmean(clean), spread(clean), math.inf, math.inf),
        ],
        honest=HONEST,
        stand_in=stand_in,
        verdict=f"{fmean(ours):.1f} % at claimed .5, whose exact epsilon is {exact:,.0f} for the features of "
        f"one record ({fmean(clean):.1f} without noise; the paper {paper:g}); labels and the clients' "
        "networks are not covered at all",
        parameters=asdict(settings),
    )
