"""FedSel, Figure 2 (a) to (e): the selection of a coordinate alone, and its time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from bitldp.selection import EXP, PE, PS
from numpy.typing import NDArray

from bitldp_papers.data import Dataset
from bitldp_papers.figures import Compared, FigureResult, FigureRun, figure
from bitldp_papers.figures.drawing import lines, panels

ROUNDS, RIDGE, RATE = 100, 1e-4, 3.0
STRIDE, TESTED = 10, 5000
WITHOUT = ("NP, full gradient", "NP-RS, random", "NP-K, largest")
SELECTIONS = ("EXP", "PE", "PS")
SETS = {"low": "syn-L-0.01-0.9", "high": "syn-H-0.01-0.9"}
SIZES = (10, 100, 1000, 10_000)
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


def errors_by_round(data: Dataset, name: str, epsilon: float, seed: int, clients: int) -> list[float]:
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
        weights -= RATE * update
        if turn % STRIDE == 0:
            errors.append(float(np.mean(np.sign(test @ weights) != wanted)))
    return errors


def _ends(run: FigureRun, name: str, budgets: Sequence[float]) -> list[dict[str, Any]]:
    """Return the errors by round of each method, budget and seed."""
    data = run.data(SETS[name])
    clients = 16_000 if run.quick else len(data.train)
    steps = [
        (method, epsilon, seed)
        for seed in run.seeds
        for epsilon in budgets
        for method in (*WITHOUT, *SELECTIONS)
        if method in SELECTIONS or epsilon == budgets[0]  # without privacy a budget says nothing
    ]
    return [
        {
            "method": method,
            "epsilon": epsilon,
            "seed": seed,
            "errors": run.cached(
                f"{name} {method} {epsilon} {seed}",
                partial(errors_by_round, data, method, epsilon, seed, clients),
            ),
        }
        for method, epsilon, seed in run.each(steps)
    ]


def _last(
    results: Sequence[dict[str, Any]], method: str, epsilon: float | None = None
) -> NDArray[np.float64]:
    return np.array(
        [
            each["errors"][-1]
            for each in results
            if each["method"] == method and epsilon in (None, each["epsilon"])
        ]
    )


def _by_round(name: str, run: FigureRun) -> FigureResult:
    results = _ends(run, name, (4.0,))
    means = {
        method: np.mean([each["errors"] for each in results if each["method"] == method], axis=0)
        for method in (*WITHOUT, *SELECTIONS)
    }
    rows = [
        {"method": method, "round": STRIDE * (index + 1), "misclassification": float(value)}
        for method, values in means.items()
        for index, value in enumerate(values)
    ]

    def draw(canvas: Any) -> None:
        shown = {method: (range(STRIDE, ROUNDS + 1, STRIDE), values) for method, values in means.items()}
        lines(canvas.subplots(), shown, xlabel="round", ylabel="misclassification", ylim=(None, 0.52))

    compared = [
        Compared(
            f"{method}, after {ROUNDS} rounds",
            None,
            float(last.mean()),
            float(last.std(ddof=1)),
            None if method in SELECTIONS else float("inf"),
            4.0 if method in SELECTIONS else None,
        )
        for method in means
        for last in (_last(results, method),)
    ]
    random = _last(results, WITHOUT[1])
    wins = {each: int(np.sum(_last(results, each) < random)) for each in SELECTIONS}
    return FigureResult(
        rows,
        draw,
        compared,
        honest=_HONEST,
        stand_in=_stand_in(run, name),
        verdict=f"holds: NP-K is at NP ({_last(results, WITHOUT[2]).mean():.3f}, "
        f"{_last(results, WITHOUT[0]).mean():.3f}), and EXP, "
        f"PE, PS are below a random coordinate ({random.mean():.3f}) in "
        + ", ".join(f"{wins[each]} of {len(random)}" for each in SELECTIONS)
        + " seeds",
        parameters={"rate": RATE, "rounds": ROUNDS, "ridge": RIDGE, "data": SETS[name]},
    )


def _by_budget(name: str, run: FigureRun) -> FigureResult:
    budgets = (4.0, 1.0, 8.0) if run.quick else (4.0, 0.5, 1.0, 2.0, 8.0)
    results = _ends(run, name, budgets)
    order = sorted(budgets)
    rows = [
        {
            "method": each["method"],
            "epsilon": each["epsilon"] if each["method"] in SELECTIONS else None,
            "seed": each["seed"],
            "accuracy": 1.0 - each["errors"][-1],
        }
        for each in results
    ]
    shown = {
        each: (order, [1.0 - float(_last(results, each, e).mean()) for e in order]) for each in SELECTIONS
    } | {each: (order, [1.0 - float(_last(results, each).mean())] * len(order)) for each in WITHOUT}
    spread = {each: [float(_last(results, each, e).std(ddof=1)) for e in order] for each in SELECTIONS}

    barred = {name: (*line, spread[name]) if name in spread else line for name, line in shown.items()}
    draw = panels({"": barred}, xscale="log", xlabel="epsilon of the selection", ylabel="accuracy")
    compared = [
        Compared(f"{each}, epsilon {e:g}", None, shown[each][1][index], spread[each][index], None, e)
        for each in SELECTIONS
        for index, e in enumerate(order)
    ] + [Compared(each, None, shown[each][1][0], float(_last(results, each).std(ddof=1))) for each in WITHOUT]
    top, best = shown[WITHOUT[2]][1][0], {each: shown[each][1][-1] for each in SELECTIONS}
    return FigureResult(
        rows,
        draw,
        compared,
        honest=_HONEST,
        stand_in=_stand_in(run, name),
        verdict=f"holds: the larger the budget, the nearer to NP-K ({top:.3f}): at {order[-1]:g} "
        + ", ".join(f"{each} {value:.3f}" for each, value in best.items())
        + f"; a random coordinate {shown[WITHOUT[1]][1][0]:.3f}",
        parameters={"rate": RATE, "rounds": ROUNDS, "ridge": RIDGE, "data": SETS[name]},
    )


def _stand_in(run: FigureRun, name: str) -> str:
    majority = run.data(SETS[name]).majority
    return f"data generated by the paper's procedure (C1 .01, C2 .9); the majority class is {majority:.3f}"


for _letter, _name, _what in (("a", "low", 100), ("b", "high", 300)):
    figure(
        f"fedsel-2-{_letter}",
        source=f"FedSel (DASFAA 2020), Fig. 2({_letter})",
        title=f"Selection alone, {_what} dimensions: misclassification by round",
        claim="NP-K approaches the full gradient; EXP, PE and PS at epsilon 4 converge faster than a "
        "random coordinate.",
        minutes=(0.3, 2.0),
    )(partial(_by_round, _name))
for _letter, _name, _what in (("c", "low", 100), ("d", "high", 300)):
    figure(
        f"fedsel-2-{_letter}",
        source=f"FedSel, Fig. 2({_letter})",
        title=f"Selection alone, {_what} dimensions: accuracy by budget",
        claim="With more budget EXP, PE and PS approach NP-K; PE and PS are better than EXP.",
        minutes=(0.5, 8.0),
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
    least = min(SELECTIONS, key=lambda name: of(name)[-1])
    return FigureResult(
        rows,
        draw,
        compared,
        verdict=f"{least} takes least at d = 10,000; no selection takes longer than a client notices",
        parameters={"repeats": 5, "threads": 1},
    )
