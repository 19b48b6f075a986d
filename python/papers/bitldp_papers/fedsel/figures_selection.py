"""FedSel, Figure 2 (a) to (e): the selection of a coordinate alone, and its time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
from bitldp.selection import EXP, PE, PS
from numpy.typing import NDArray

from bitldp_papers.data import Dataset, load
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
from bitldp_papers.figures.drawing import lines, panels, scored

ROUNDS, RIDGE, RATE = 100, 1e-4, 3.0
RATES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_CHOICE_SEED = 101  # of the choice of a rate: never one of a figure's
STRIDE, TESTED = 10, 5000
WITHOUT = ("NP, full gradient", "NP-RS, random", "NP-K, largest")
SELECTIONS = ("EXP", "PE", "PS")
SETS = {"low": "syn-L-0.01-0.9", "high": "syn-H-0.01-0.9"}
#: Where a method's public rate is chosen: another set that anybody can generate.
OTHERS = {"low": "syn-L-0.1-0.6", "high": "syn-H-0.1-0.6"}
_FEW = 16_000  # clients of the quick form, and of the choice of a rate
EQUAL, PUBLIC = "rate 3 for all", "each at its public rate"
SIZES = (10, 100, 1000, 10_000)
_CLOCK = 0.1  # times that are nearer than this share are not told apart
_HONEST = (
    "the selection is honest, the value that follows it is not: it leaves as it is, so the exact epsilon "
    "of what a "
    "client sends is infinite; this figure, as the paper's, looks at the selection alone"
)


def selection(name: str, dimensions: int, epsilon: float) -> Any:
    """Return a selection, of the d/10 largest where it knows a k."""
    if name == "EXP":
        return EXP(dimensions, epsilon=epsilon)
    kind = PE if name == "PE" else PS
    return kind(dimensions, k=max(1, dimensions // 10), epsilon=epsilon)


def _coordinates(
    name: str, mechanism: Any, gradients: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.intp]:
    if name == WITHOUT[1]:
        return rng.integers(gradients.shape[1], size=len(gradients))
    if name == WITHOUT[2]:
        return np.asarray(np.abs(gradients).argmax(axis=1))
    return np.asarray(mechanism.randomize(np.abs(gradients), rng=rng), dtype=np.intp)


def errors_by_round(
    data: Dataset, name: str, epsilon: float, seed: int, clients: int, rate: float = RATE
) -> list[float]:
    """Return the misclassification of a logistic model after every tenth round of one epoch.

    Every client has one record and takes part once; it sends one coordinate of its gradient as it is.
    """
    rng = np.random.default_rng(seed)
    x, test = data.scaled()
    y, wanted = (np.float32(2 * each - 1) for each in (data.train_labels, data.test_labels))
    dimensions = x.shape[1]
    mechanism = selection(name, dimensions, epsilon) if name in SELECTIONS else None
    weights = np.zeros(dimensions, np.float32)
    errors = []
    test, wanted = test[:TESTED], wanted[:TESTED]
    batches = np.array_split(rng.permutation(len(x))[:clients], ROUNDS)
    for turn, batch in enumerate(batches, 1):
        margin = np.clip(y[batch] * (x[batch] @ weights), -30.0, 30.0)
        gradients = (-y[batch] / (1.0 + np.exp(margin)))[:, None] * x[batch] + RIDGE * weights
        if name == WITHOUT[0]:
            update = gradients.mean(axis=0)
        else:
            chosen = _coordinates(name, mechanism, gradients, rng)
            values = gradients[np.arange(len(batch)), chosen]
            update = np.bincount(chosen, values, minlength=dimensions) / len(batch)
            if name == WITHOUT[1]:
                update *= dimensions  # unbiased
        weights -= rate * update
        if turn % STRIDE == 0:
            errors.append(float(np.mean(np.sign(test @ weights) != wanted)))
    return errors


def public_rate(run: FigureRun, name: str, method: str, epsilon: float) -> float:
    """Return the rate at which a method has the least misclassification on the set of `OTHERS`."""

    def ends() -> dict[str, float]:
        data = load(OTHERS[name])  # generated: always there
        return {
            str(rate): errors_by_round(data, method, epsilon, _CHOICE_SEED, _FEW, rate)[-1] for rate in RATES
        }

    found = run.shared(f"fedsel selection rate {OTHERS[name]} {method} {epsilon} {RATES}", ends)
    return float(min(found, key=lambda rate: found[rate]))


def _ends(run: FigureRun, name: str, budgets: Sequence[float]) -> list[dict[str, Any]]:
    """Return the errors by round of each method, budget and seed, with one rate and with public ones."""
    data = run.data(SETS[name])
    clients = run.choose(quick=_FEW, medium=2 * _FEW, full=len(data.train))
    steps = [
        (method, epsilon, rates)
        for epsilon in budgets
        for method in (*WITHOUT, *SELECTIONS)
        if method in SELECTIONS or epsilon == budgets[0]  # without privacy a budget says nothing
        for rates in (EQUAL, PUBLIC)
    ]
    results = []
    for method, epsilon, rates in run.each(steps):
        rate = RATE if rates == EQUAL else public_rate(run, name, method, epsilon)
        own = {"method": method, "epsilon": epsilon, "rates": rates, "rate": rate}
        for seed in run.seeds:
            call = partial(errors_by_round, data, method, epsilon, seed, clients, rate)
            errors = run.cached(f"{name} {method} {epsilon} {seed} {rate}", call)
            results.append({**own, "seed": seed, "errors": errors})
    return results


def _last(
    results: Sequence[dict[str, Any]], method: str, rates: str, epsilon: float | None = None
) -> list[float]:
    """Return the errors after the last round, by seed."""
    return [
        each["errors"][-1]
        for each in results
        if (each["method"], each["rates"]) == (method, rates) and epsilon in (None, each["epsilon"])
    ]


def _less(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    return [b - a for a, b in zip(ours, theirs, strict=True)]


def _by_round(name: str, run: FigureRun) -> FigureResult:
    results = _ends(run, name, (4.0,))
    constant = 1.0 - run.data(SETS[name]).majority
    turns = range(STRIDE, ROUNDS + 1, STRIDE)
    shown: dict[str, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    compared: list[Compared] = []
    findings: list[Finding] = []
    for rates in (EQUAL, PUBLIC):
        panel = shown.setdefault(rates, {})
        for method in (*WITHOUT, *SELECTIONS):
            mine = [each for each in results if (each["method"], each["rates"]) == (method, rates)]
            means = np.mean([each["errors"] for each in mine], axis=0)
            panel[method] = (turns, means)
            rows += [
                {"rates": rates, "method": method, "round": turn, "misclassification": float(value)}
                for turn, value in zip(turns, means, strict=True)
            ]
            private = method in SELECTIONS
            compared.append(
                Compared.scored(
                    f"{method}, after {ROUNDS} rounds, rate {mine[0]['rate']:g}",
                    None,
                    _last(results, method, rates),
                    None if private else float("inf"),
                    4.0 if private else None,
                )
            )
        panel["constant (majority class)"] = constant
        full, random, largest = (_last(results, method, rates) for method in WITHOUT)
        own = {each: _last(results, each, rates) for each in SELECTIONS}
        gains = {f"{each} over NP-RS": _less(errors, random) for each, errors in own.items()}
        weakest = max(own.values(), key=fmean)
        says = f"EXP, PE and PS at epsilon 4 misclassify less than a random coordinate, {rates}"
        findings.append(trained(everywhere(says, gains), weakest, constant, full, higher=False))
        gap, half = sure(_less(full, largest))
        near = Finding(
            f"NP-K is within 5 points of NP, {rates}",
            True if abs(gap) + half < _NEAR else (False if abs(gap) - half > _NEAR else None),
            f"{100 * gap:+.1f} ± {100 * half:.1f} points more misclassified",
        )
        findings.append(trained(near, largest, constant, full, higher=False))
    compared.append(Compared("constant (majority class)", None, constant))
    draw = panels(shown, size=(7.6, 4.4), xlabel="round", ylabel="misclassification", sharey=True)
    return FigureResult(
        rows,
        draw,
        compared,
        honest=_HONEST,
        stand_in=_STAND_IN,
        findings=findings,
        parameters={
            "rate": RATE,
            "rounds": ROUNDS,
            "ridge": RIDGE,
            "data": SETS[name],
            "chosen on": OTHERS[name],
        },
    )


def _by_budget(name: str, run: FigureRun) -> FigureResult:
    budgets = run.choose(quick=(4.0, 1.0, 8.0), medium=(4.0, 1.0, 8.0), full=(4.0, 0.5, 1.0, 2.0, 8.0))
    results = _ends(run, name, budgets)
    order = sorted(budgets)
    constant = run.data(SETS[name]).majority
    rows = [
        {
            "rates": each["rates"],
            "rate": each["rate"],
            "method": each["method"],
            "epsilon": each["epsilon"] if each["method"] in SELECTIONS else None,
            "seed": each["seed"],
            "accuracy": 1.0 - each["errors"][-1],
        }
        for each in results
    ]
    shown: dict[str, dict[str, Any]] = {}
    compared: list[Compared] = []
    findings: list[Finding] = []
    for rates in (EQUAL, PUBLIC):
        panel = shown.setdefault(rates, {})
        score = {
            (each, e): [1.0 - error for error in _last(results, each, rates, e)]
            for each in SELECTIONS
            for e in order
        }
        for each in SELECTIONS:
            panel[each] = scored(order, [score[each, e] for e in order])
            compared += [
                Compared.scored(f"{each}, epsilon {e:g}, {rates}", None, score[each, e], None, e)
                for e in order
            ]
        for method in WITHOUT:
            own = [1.0 - error for error in _last(results, method, rates)]
            panel[method] = fmean(own)
            compared.append(Compared.scored(f"{method}, {rates}", None, own))
        panel["constant (majority class)"] = constant
        clean = [1.0 - error for error in _last(results, WITHOUT[0], rates)]
        low, high = order[0], order[-1]
        more = {each: _less(score[each, low], score[each, high]) for each in SELECTIONS}
        weakest = min((score[each, high] for each in SELECTIONS), key=fmean)
        says = f"EXP, PE and PS are more accurate at epsilon {high:g} than at {low:g}, {rates}"
        findings.append(trained(everywhere(says, more), weakest, constant, clean))
        lead = {f"{each} over EXP": _less(score["EXP", high], score[each, high]) for each in ("PE", "PS")}
        says = f"PE and PS are better than EXP at epsilon {high:g}, {rates}"
        findings.append(trained(everywhere(says, lead), weakest, constant, clean))
    compared.append(Compared("constant (majority class)", None, constant))
    words: dict[str, Any] = {"xscale": "log", "xlabel": "epsilon of the selection", "ylabel": "accuracy"}
    return FigureResult(
        rows,
        panels(shown, size=(7.6, 4.6), sharey=True, **words),
        compared,
        honest=_HONEST,
        stand_in=_STAND_IN,
        findings=findings,
        parameters={
            "rate": RATE,
            "rounds": ROUNDS,
            "ridge": RIDGE,
            "data": SETS[name],
            "chosen on": OTHERS[name],
        },
    )


_NEAR = 0.05
_STAND_IN = "data generated by the paper's procedure (C1 .01, C2 .9)"


for _letter, _name, _what in (("a", "low", 100), ("b", "high", 300)):
    figure(
        f"fedsel-2-{_letter}",
        source=f"FedSel (DASFAA 2020), Fig. 2({_letter})",
        title=f"Selection alone, {_what} dimensions: misclassification by round",
        claim="NP-K approaches the full gradient; EXP, PE and PS at epsilon 4 converge faster than a "
        "random coordinate.",
        minutes=(0.3, 0.8, 2.0),
    )(partial(_by_round, _name))
for _letter, _name, _what in (("c", "low", 100), ("d", "high", 300)):
    figure(
        f"fedsel-2-{_letter}",
        source=f"FedSel, Fig. 2({_letter})",
        title=f"Selection alone, {_what} dimensions: accuracy by budget",
        claim="With more budget EXP, PE and PS approach NP-K; PE and PS are better than EXP.",
        minutes=(0.5, 1.5, 8.0),
    )(partial(_by_budget, _name))


@figure(
    "fedsel-2-e",
    source="FedSel, Fig. 2(e)",
    title="Time of a selection, by dimensions",
    claim="Selecting costs extra time, and PS the least.",
)
def times(run: FigureRun) -> FigureResult:
    rows: list[dict[str, Any]] = []
    for dimensions in run.each(SIZES, "d"):
        clients = max(64, (1 << 18 if run.quick else 1 << 21) // dimensions)
        scores = np.random.default_rng(1).random((clients, dimensions))
        for name in SELECTIONS:
            mechanism = selection(name, dimensions, 1.0)
            mechanism.randomize(scores, threads=1)
            taken = []
            for _ in range(5):
                begun = time.perf_counter()
                mechanism.randomize(scores, threads=1)
                taken.append(time.perf_counter() - begun)
            rows.append(
                {"mechanism": name, "dimensions": dimensions, "microseconds": 1e6 * min(taken) / clients}
            )

    def of(name: str) -> list[float]:
        return [row["microseconds"] for row in rows if row["mechanism"] == name]

    def draw(canvas: Any) -> None:
        lines(
            canvas.subplots(),
            {name: (SIZES, of(name)) for name in SELECTIONS},
            xscale="log",
            yscale="log",
            xlabel="dimensions d",
            ylabel="microseconds a client, one thread",
        )

    compared = [Compared(f"{name}, d = 10,000, microseconds", None, of(name)[-1]) for name in SELECTIONS]
    last = {name: of(name)[-1] for name in SELECTIONS}
    others = min(value for name, value in last.items() if name != "PS")
    ratio = last["PS"] / others
    return FigureResult(
        rows,
        draw,
        compared,
        findings=[
            Finding(
                "PS takes the least time of the three",
                True if ratio < 1.0 - _CLOCK else (False if ratio > 1.0 + _CLOCK else None),
                "d = 10,000: " + ", ".join(f"{name} {value:.2g} µs" for name, value in last.items()),
            )
        ],
        parameters={"repeats": 5, "threads": 1},
    )
