"""LDPFL, Figures 10, 11 and 13, and what it has none of: accuracy by clients, by epsilon, by alpha."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from bitldp_papers.figures import Compared, FigureRun, FigureResult, figure
from bitldp_papers.figures.drawing import lines
from bitldp_papers.ldpfl import courses
from bitldp_papers.ldpfl.courses import Row


def _crowd(run: FigureRun, metric: str, paper: float | None) -> FigureResult:
    """Return the figure of how the number of clients tells, each with as many records."""
    run.data("mnist")
    numbers = (2, 4, 8) if run.quick else (2, 5, 10, 20, 50)
    each = 300 if run.quick else 1200
    rows: list[Row] = []
    for seed in run.each(courses.seeds(run)[:1] if run.quick else courses.seeds(run), "seed"):
        for count in numbers:
            words = {"clients": count, "records": each * count, "data": "mnist"}
            if run.quick:
                words |= {"extractor_epochs": 3, "filters": 16}
            else:
                words["rounds"] = 500
            found = courses.ran(run, courses.settings_of(run, courses.MNIST, seed, **words))
            for turn, (hit, loss) in enumerate(zip(found["accuracy"], found["loss"], strict=True), 1):
                scores = {"accuracy": 100 * hit, "loss": loss, "exact": found["exact"]}
                rows.append({"clients": count, "seed": seed, "round": turn, **scores})
    rounds = sorted({row["round"] for row in rows})

    def at(count: int, turn: int) -> list[float]:
        return [row[metric] for row in rows if (row["clients"], row["round"]) == (count, turn)]

    def draw(canvas: Any) -> None:
        shown = {
            f"{count} clients": (rounds, [fmean(at(count, turn)) for turn in rounds]) for count in numbers
        }
        lines(
            canvas.subplots(), shown, xlabel="round", ylabel="accuracy, %" if metric == "accuracy" else metric
        )

    last = {count: at(count, rounds[-1]) for count in numbers}
    compared = [
        Compared(
            f"{count} clients, {metric}",
            paper if count == 2 else None,
            fmean(ends),
            courses.spread(ends),
            rows[0]["exact"],
            0.5,
        )
        for count, ends in last.items()
    ]
    said = ", ".join(f"{fmean(ends):.3g} with {count}" for count, ends in last.items())
    return FigureResult(
        rows,
        draw,
        compared,
        honest=courses.HONEST,
        stand_in=courses.STAND_INS["SVHN"],
        verdict=f"{metric} after {rounds[-1]} rounds: {said} clients of {each} records each",
        parameters={"records of a client": each, "clients": numbers},
    )


_SVHN = {"source": "LDPFL, Fig. {}", "claim": "More clients converge later, to slightly less; 85 % with two."}


@figure(
    "ldpfl-10",
    source="LDPFL, Fig. 10",
    title="Loss by clients, SVHN",
    claim=_SVHN["claim"],
    minutes=(1.0, 400.0),
)
def crowd_loss(run: FigureRun) -> FigureResult:
    return _crowd(run, "loss", None)


@figure(
    "ldpfl-11",
    source="LDPFL, Fig. 11",
    title="Accuracy by clients, SVHN",
    claim=_SVHN["claim"],
    minutes=(0.1, 10.0),
)
def crowd_accuracy(run: FigureRun) -> FigureResult:
    return _crowd(run, "accuracy", 85.0)


@figure(
    "ldpfl-13",
    source="LDPFL, Fig. 13",
    title="Test accuracy by clients, SVHN",
    claim=_SVHN["claim"],
    minutes=(0.1, 10.0),
)
def crowd_compared(run: FigureRun) -> FigureResult:
    return _crowd(run, "accuracy", 85.0)


@figure(
    "ldpfl-sweep",
    source="LDPFL, Section IV-D (the paper has no sweep)",
    title="Epsilon and alpha: what the accuracy follows",
    claim="Raising epsilon within 0 < epsilon <= 10 has a negligible impact on the randomization.",
    minutes=(0.6, 60.0),
)
def sweep(run: FigureRun) -> FigureResult:
    """Return accuracy by epsilon at alpha 10, and by alpha at epsilon .5: alpha alone decides."""
    run.data("mnist")
    budgets = (0.5, 10.0, 1e4, 1e5) if run.quick else (0.1, 0.5, 2.0, 10.0, 1e3, 1e4, 3e4, 1e5)
    alphas = (1.0, 1.5, 3.0, 30.0) if run.quick else (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
    points = [("epsilon", e, 10.0) for e in budgets] + [("alpha", 0.5, a) for a in alphas]
    rows: list[Row] = []
    for seed in run.each(courses.seeds(run), "seed"):
        for panel, epsilon, alpha in points:
            words: dict[str, Any] = {"data": "mnist", "epsilon": epsilon, "alpha": alpha}
            if not run.quick:
                words["rounds"] = 20
            found = courses.ran(run, courses.settings_of(run, courses.MNIST, seed, **words))
            scores = {"accuracy": 100 * found["accuracy"][-1], "exact": found["exact"]}
            rows.append({"panel": panel, "epsilon": epsilon, "alpha": alpha, "seed": seed, **scores})

    def at(panel: str, value: float) -> list[float]:
        return [row["accuracy"] for row in rows if row["panel"] == panel and row[panel] == value]

    def exact(panel: str, value: float) -> float:
        return float(next(row["exact"] for row in rows if row["panel"] == panel and row[panel] == value))

    def draw(canvas: Any) -> None:
        canvas.set_size_inches(8.0, 4.4)
        pairs = {"epsilon": budgets, "alpha": alphas}
        for axes, (panel, values) in zip(canvas.subplots(1, 2, sharey=True), pairs.items(), strict=True):
            line = {"accuracy": (values, [fmean(at(panel, value)) for value in values])}
            title = f"{panel} ({'alpha 10' if panel == 'epsilon' else 'epsilon .5'})"
            lines(axes, line, xscale="log", xlabel=panel, title=title, ylabel="accuracy, %")

    low, high = fmean(at("epsilon", 0.5)), fmean(at("epsilon", 10.0))
    one = fmean(at("alpha", 1.0))
    compared = [
        Compared(
            f"{panel} {value:g}, %",
            None,
            fmean(at(panel, value)),
            courses.spread(at(panel, value)),
            exact(panel, value),
            0.5 if panel == "alpha" else value,
        )
        for panel, values in (("epsilon", budgets), ("alpha", alphas))
        for value in values
    ]
    return FigureResult(
        rows,
        draw,
        compared,
        honest=courses.HONEST,
        stand_in="",
        verdict=f"from epsilon .5 to 10 accuracy goes from {low:.1f} to {high:.1f} %, for epsilon is divided "
        f"by r l = 10,240 and alpha decides the flips: the exact epsilon is {exact('epsilon', 0.5):,.0f} at "
        f"both. At alpha 1, where the claim of .5 holds ({exact('alpha', 1.0):.2g}), it is {one:.1f} %: "
        "chance",
        parameters={"budgets": budgets, "alphas": alphas},
    )
