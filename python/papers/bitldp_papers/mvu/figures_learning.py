"""MVU, Figure 4: DP-SGD by budget, over a grid of settings, with the best of each mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import product
from statistics import fmean
from typing import Any

from bitldp.base.palette import STYLES

from bitldp_papers.figures import (
    Compared,
    FigureResult,
    FigureRun,
    Finding,
    everywhere,
    figure,
    sure,
    trained,
)
from bitldp_papers.figures.drawing import lines
from bitldp_papers.mvu.settings import WITHOUT, MVUSettings
from bitldp_papers.mvu.system import SYSTEM, descend, privacy
from bitldp_papers.mvu.system import size as size_of

__all__ = ["front"]

_SHOWN = {
    "mvu": "MVU, 1 bit",
    "gaussian": "Gaussian, 12 bits",
    "signsgd-noise": "signSGD, noise accounted (the paper)",
    "signsgd": "signSGD, bits accounted",
    "signsgd-mean": "mean of signs, bits accounted",
}


@lru_cache(maxsize=512)
def _scored(settings: MVUSettings) -> dict[str, float]:
    if not settings.private:
        return {"accuracy": descend(settings)[-1]["accuracy"], "bits": math.inf, "exact": math.inf}
    released = settings.release(size_of(settings))
    return {
        "accuracy": descend(settings)[-1]["accuracy"],
        "bits": float(released.report_bits),
        "exact": privacy(settings).record,
    }


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points (epsilon, score) that no other one beats at as small an epsilon, by epsilon."""
    best: list[tuple[float, float]] = []
    for epsilon, score in sorted(points, key=lambda point: (point[0], -point[1])):
        if not best or score > best[-1][1]:
            best.append((epsilon, score))
    return best


def _sweep(run: FigureRun, name: str, stand_in: str, more: Sequence[Compared] = ()) -> FigureResult:
    """Return the grid of settings of DP-SGD on a set, with the best of each mechanism and budget."""
    data = run.data(name)
    budgets = run.choose(quick=(1.0, 5.0), medium=(1.0, 3.0, 5.0), full=(0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0))
    rates = run.choose(quick=(2.0, 5.0), medium=(2.0, 5.0), full=(0.5, 1.0, 2.0, 5.0, 10.0))
    clips = run.choose(quick=(1.0,), medium=(1.0,), full=(0.5, 1.0))
    rounds = 15 if run.quick else 30
    few = ("mvu", "gaussian", "signsgd-noise")
    names = run.choose(quick=few, medium=few, full=(*_SHOWN, "interpolated", "skellam"))
    rows: list[dict[str, Any]] = []

    def add(mechanism: str, epsilon: float, rate: float, clip: float) -> None:
        for seed in run.seeds:
            words = {"mechanism": mechanism, "epsilon": epsilon, "rate": rate, "clip": clip, "seed": seed}
            settings = SYSTEM.configure(preset="paper", data=name, rounds=rounds, **words)
            assert isinstance(settings, MVUSettings)
            rows.append({**words, **run.cached(str(settings), partial(_scored, settings))})

    for mechanism, epsilon in run.each(list(product(names, budgets))):
        for rate, clip in product(rates, clips):
            add(mechanism, epsilon, rate, clip)
    for rate in rates:
        add(WITHOUT, budgets[-1], rate, clips[-1])

    def best(mechanism: str, epsilon: float) -> list[dict[str, Any]]:
        """Return the rows of the seeds at the rate and clip whose mean is the largest."""
        grid: dict[tuple[float, float], list[dict[str, Any]]] = {}
        for row in rows:
            if (row["mechanism"], row["epsilon"]) == (mechanism, epsilon):
                grid.setdefault((row["rate"], row["clip"]), []).append(row)
        return max(grid.values(), key=lambda some: fmean(row["accuracy"] for row in some))

    def scores(mechanism: str, epsilon: float) -> list[float]:
        return [row["accuracy"] for row in best(mechanism, epsilon)]

    clean = scores(WITHOUT, budgets[-1])
    compared = []
    for mechanism, epsilon in product(names, budgets):
        what = f"{_SHOWN.get(mechanism, mechanism)}, epsilon {epsilon:g}"
        own = best(mechanism, epsilon)
        compared.append(Compared.scored(what, None, scores(mechanism, epsilon), own[0]["exact"], epsilon))
    compared.append(Compared.scored("without noise, clipped", None, clean))
    compared.append(Compared("constant (majority class)", None, data.majority))

    def gains(of: str, over: str, some: Sequence[float]) -> dict[str, list[float]]:
        return {
            f"epsilon {epsilon:g}": [
                a - b for a, b in zip(scores(of, epsilon), scores(over, epsilon), strict=True)
            ]
            for epsilon in some
        }

    ratio = best("gaussian", 5.0)[0]["bits"] / best("mvu", 5.0)[0]["bits"]
    weakest = min((scores("mvu", epsilon) for epsilon in budgets), key=fmean)
    findings = [
        trained(
            everywhere(f"MVU is above signSGD, {how}, at every budget", gains("mvu", sign, budgets)),
            weakest,
            data.majority,
            clean,
        )
        for sign, how in (("signsgd-noise", "as the paper accounts it"), ("signsgd", "its bits accounted"))
        if sign in names
    ]
    (apart,) = gains("mvu", "gaussian", (5.0,)).values()
    lead, half = sure(apart)
    near = Finding(
        "MVU is near the Gaussian mechanism at epsilon 5 (5 points)",
        True if abs(lead) + half < 0.05 else (False if abs(lead) - half > 0.05 else None),
        f"{100 * lead:+.1f} ± {100 * half:.1f} points with {ratio:.0f} times fewer bits",
    )
    findings.append(trained(near, scores("mvu", 5.0), data.majority, clean))

    def draw(canvas: Any) -> None:
        canvas.set_size_inches(5.6, 5.0)
        axes = canvas.subplots()
        for mechanism, (color, marker) in zip(names, STYLES, strict=False):
            points = [(row["epsilon"], row["accuracy"]) for row in rows if row["mechanism"] == mechanism]
            axes.plot(*zip(*points, strict=True), color=color, marker=marker, linestyle="", alpha=0.35)
            line = front([(epsilon, fmean(scores(mechanism, epsilon))) for epsilon in budgets])
            label = _SHOWN.get(mechanism, mechanism)
            axes.plot(*zip(*line, strict=True), color=color, linestyle="--", label=label)
        lines(axes, {"constant (majority class)": data.majority, "without noise, clipped": fmean(clean)})
        axes.set(xlabel="epsilon of a record", ylabel="accuracy")

    return FigureResult(
        rows=rows,
        draw=draw,
        compared=[*compared, *more],
        honest="Epsilon is a record's, over all rounds, and exact: these claims hold. What leaves is one "
        "record's gradient; for a whole client's update see `bitldp fl honest`. A point is a setting, and "
        "every one is drawn: the front takes the best of each on the test records, as the paper's.",
        stand_in=stand_in,
        findings=findings,
        parameters={
            "data": name,
            "rates": rates,
            "clips": clips,
            "clients": 100,
            "batch": 20,
            "rounds": rounds,
            "delta": 1e-5,
        },
    )


_FEATURES = "a fixed random convolution of 64 features for the scattering network"
_CLAIM = (
    "MVU with one bit a coordinate is above signSGD at nearly all budgets, and near the Gaussian mechanism."
)


@figure(
    "mvu-4",
    source="MVU, Fig. 4, left (Section 5.2)",
    title="DP-SGD on MNIST: accuracy against epsilon over a grid of settings, with the best of each",
    claim=_CLAIM,
    minutes=(1.0, 5.0, 40.0),
)
def sweep(run: FigureRun) -> FigureResult:
    return _sweep(run, "mnist", _FEATURES)


@figure(
    "mvu-4-right",
    source="MVU, Fig. 4, right (Section 5.2)",
    title="DP-SGD on CIFAR-10: accuracy against epsilon over a grid of settings",
    claim=_CLAIM,
    minutes=(1.0, 5.0, 40.0),
)
def sweep_of_photographs(run: FigureRun) -> FigureResult:
    if run.has("cifar10"):
        return _sweep(run, "cifar10", _FEATURES)
    needed = Compared("CIFAR-10", None, "needs FILE: --data cifar10=FILE --label COLUMN")
    return _sweep(run, "fashion_mnist", f"Fashion-MNIST for CIFAR-10; {_FEATURES}", [needed])
