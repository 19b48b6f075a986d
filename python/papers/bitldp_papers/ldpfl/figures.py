"""LDPFL, Figures 5 to 14 and Table I: clients' own networks, and the dense network of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from statistics import fmean
from typing import Any

from bitldp_papers.figures import Compared, FigureResult, FigureRun, column, figure
from bitldp_papers.figures.drawing import lines, panels
from bitldp_papers.ldpfl.settings import WITHOUT, LDPFLSettings
from bitldp_papers.ldpfl.system import learned
from bitldp_papers.ldpfl.system import own_networks as client_networks

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
    group = client_networks(settings)
    return tuple(
        (fmean(each.course[turn][0] for each in group), fmean(each.course[turn][1] for each in group))
        for turn in range(settings.extractor_epochs)
    )


def _key(settings: LDPFLSettings) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(asdict(settings).items()))


def ran(run: FigureRun, settings: LDPFLSettings) -> dict[str, Any]:
    """Return the course of a run, done once a process and kept."""
    return run.cached(_key(settings), lambda: dict(_learned(settings)))


def own_networks(run: FigureRun, spec: dict[str, Any], data: str, stand_in: str = "") -> FigureResult:
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
    shown = {
        name: (epochs, [fmean(column(rows, name, epoch=turn)) for turn in epochs])
        for name in ("own records", "test records")
    }
    return FigureResult(
        rows,
        panels({"": shown}, xlabel="epoch", ylabel="accuracy, %"),
        [Compared.scored("a client's own network, last epoch, %", None, last, math.inf, 0.5)],
        honest=HONEST,
        stand_in=stand_in,
        verdict=f"{fmean(last):.1f} % on test records after {epochs[-1]} epochs of "
        f"{settings.records or 'all'} records; this network is trained on the records as they are, and "
        "nothing of it is private",
        parameters=asdict(settings),
    )


def dense_network(
    run: FigureRun, spec: dict[str, Any], data: str, paper: float, stand_in: str = ""
) -> FigureResult:
    """Return the figure of the dense network, round by round, with and without noise."""
    run.data(data)
    rows: list[Row] = []
    ends: dict[str, list[float]] = {}
    for seed in run.each(seeds(run), "seed"):
        for mechanism in ("uer-paper", WITHOUT):
            course = ran(run, settings_of(run, spec, seed, data=data, mechanism=mechanism))
            ends.setdefault(mechanism, []).append(100 * course["accuracy"][-1])
            for turn, (hit, loss) in enumerate(zip(course["accuracy"], course["loss"], strict=True), 1):
                scores = {"accuracy": 100 * hit, "loss": loss}
                rows.append({"mechanism": mechanism, "seed": seed, "round": turn, **scores})
            if mechanism != WITHOUT:
                exact = course["exact"]
    rounds = sorted({row["round"] for row in rows})
    shown = {
        name: (rounds, [fmean(column(rows, "accuracy", mechanism=name, round=turn)) for turn in rounds])
        for name in ends
    }
    ours, clean = ends["uer-paper"], ends[WITHOUT]
    settings = settings_of(run, spec, 1, data=data)
    return FigureResult(
        rows,
        panels({"": shown}, xlabel="round", ylabel="accuracy, %"),
        [
            Compared.scored("LDPFL, last round, %", paper, ours, exact, settings.epsilon),
            Compared.scored("the same without noise, %", None, clean, math.inf, math.inf),
        ],
        honest=HONEST,
        stand_in=stand_in,
        verdict=f"{fmean(ours):.1f} % at claimed .5, whose exact epsilon is {exact:,.0f} for the features of "
        f"one record ({fmean(clean):.1f} without noise; the paper {paper:g}); labels and the clients' "
        "networks are not covered at all",
        parameters=asdict(settings),
    )


for _number, _title, _claim, _minutes, _make in (
    (
        "5",
        "A client's own network, MNIST",
        "Local networks reach about 99 % on MNIST.",
        (1.0, 240.0),
        partial(own_networks, spec=MNIST, data="mnist"),
    ),
    (
        "6",
        "Two clients of MNIST, epsilon .5",
        "Two clients reach 96 % at epsilon .5 (the abstract says 98).",
        (0.4, 300.0),
        partial(dense_network, spec=MNIST, data="mnist", paper=96.0),
    ),
    (
        "7",
        "A client's own network, CIFAR-10",
        "Local networks of three blocks learn CIFAR-10 well.",
        (1.0, 240.0),
        partial(own_networks, spec=CIFAR, data="fashion_mnist", stand_in=STAND_INS["CIFAR"]),
    ),
    (
        "8",
        "Two clients of CIFAR-10, epsilon .5",
        "Two clients reach 80 % at epsilon .5.",
        (0.4, 300.0),
        partial(dense_network, spec=CIFAR, data="fashion_mnist", paper=80.0, stand_in=STAND_INS["CIFAR"]),
    ),
    (
        "9",
        "A client's own network, SVHN",
        "Local networks of three blocks learn SVHN well, with 4,514 records each.",
        (0.1, 120.0),
        partial(own_networks, spec=MNIST, data="mnist", stand_in=STAND_INS["SVHN"]),
    ),
    (
        "12",
        "A client's own network, Fashion-MNIST",
        "Local networks of three blocks learn Fashion-MNIST well, with 6,000 records each.",
        (1.0, 400.0),
        partial(own_networks, spec=FASHION, data="fashion_mnist"),
    ),
    (
        "14",
        "Ten clients of Fashion-MNIST, one dropped a round, epsilon .5",
        "Ten clients reach 81 % after 80 rounds.",
        (0.5, 400.0),
        partial(dense_network, spec=FASHION, data="fashion_mnist", paper=81.0),
    ),
):
    figure(f"ldpfl-{_number}", source=f"LDPFL, Fig. {_number}", title=_title, claim=_claim, minutes=_minutes)(
        _make
    )


@figure(
    "ldpfl-table-1",
    source="LDPFL, Table I",
    title="Fashion-MNIST after 80 rounds",
    claim="LDPFL (81 %) is above DP-SGD (80) at the strictest privacy of all.",
    minutes=(0.1, 10.0),
)
def table_1(run: FigureRun) -> FigureResult:
    """Return the table, LDPFL and training without noise run here, the rest as printed."""
    outcome = dense_network(run, FASHION, "fashion_mnist", 81.0)
    ours, clean = outcome.compared
    rows: list[Row] = [
        {"method": "non-private", "paper, %": "~90", "ours, %": clean.ours, "exact epsilon": math.inf},
        {"method": "SMC", "paper, %": "~90", "ours, %": None, "exact epsilon": None},
        {"method": "DP-SGD", "paper, %": "~80", "ours, %": None, "exact epsilon": None},
        {"method": "alpha-CLDP-Fed", "paper, %": "85.28 to 86.93", "ours, %": None, "exact epsilon": None},
        {"method": "LDPFL", "paper, %": "~81", "ours, %": ours.ours, "exact epsilon": ours.exact},
    ]
    return FigureResult(
        rows,
        None,
        [ours, Compared("non-private, %", 90.0, clean.ours, clean.spread, math.inf, math.inf)],
        honest=HONEST,
        stand_in="",
        verdict=f"the table's own alpha-CLDP-Fed (85.28 to 86.93) is above LDPFL (81; ours {ours.ours:.1f}); "
        f"LDPFL's {ours.exact:,.0f} is not the strictest privacy of the five",
        parameters=outcome.parameters,
    )


def _crowd(run: FigureRun, metric: str, paper: float | None) -> FigureResult:
    """Return the figure of how the number of clients tells, each with as many records."""
    run.data("mnist")
    numbers = (2, 4, 8) if run.quick else (2, 5, 10, 20, 50)
    each = 300 if run.quick else 1200
    rows: list[Row] = []
    for seed in run.each(seeds(run)[:1] if run.quick else seeds(run), "seed"):
        for count in numbers:
            words = {"clients": count, "records": each * count, "data": "mnist"}
            if run.quick:
                words |= {"extractor_epochs": 3, "filters": 16}
            else:
                words["rounds"] = 500
            course = ran(run, settings_of(run, MNIST, seed, **words))
            for turn, (hit, loss) in enumerate(zip(course["accuracy"], course["loss"], strict=True), 1):
                scores = {"accuracy": 100 * hit, "loss": loss, "exact": course["exact"]}
                rows.append({"clients": count, "seed": seed, "round": turn, **scores})
    rounds = sorted({row["round"] for row in rows})

    def at(count: int, turn: int) -> list[float]:
        return column(rows, metric, clients=count, round=turn)

    shown = {f"{count} clients": (rounds, [fmean(at(count, turn)) for turn in rounds]) for count in numbers}
    last = {count: at(count, rounds[-1]) for count in numbers}
    exact = rows[0]["exact"]
    compared = [
        Compared.scored(f"{count} clients, {metric}", paper if count == 2 else None, ends, exact, 0.5)
        for count, ends in last.items()
    ]
    said = ", ".join(f"{fmean(ends):.3g} with {count}" for count, ends in last.items())
    return FigureResult(
        rows,
        panels({"": shown}, xlabel="round", ylabel="accuracy, %" if metric == "accuracy" else metric),
        compared,
        honest=HONEST,
        stand_in=STAND_INS["SVHN"],
        verdict=f"{metric} after {rounds[-1]} rounds: {said} clients of {each} records each",
        parameters={"records of a client": each, "clients": numbers},
    )


for _number, _title, _metric, _paper, _minutes in (
    ("10", "Loss by clients, SVHN", "loss", None, (1.0, 400.0)),
    ("11", "Accuracy by clients, SVHN", "accuracy", 85.0, (0.1, 10.0)),
    ("13", "Test accuracy by clients, SVHN", "accuracy", 85.0, (0.1, 10.0)),
):
    figure(
        f"ldpfl-{_number}",
        source=f"LDPFL, Fig. {_number}",
        title=_title,
        claim="More clients converge later, to slightly less; 85 % with two.",
        minutes=_minutes,
    )(partial(_crowd, metric=_metric, paper=_paper))


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
    for seed in run.each(seeds(run), "seed"):
        for panel, epsilon, alpha in points:
            words: dict[str, Any] = {"data": "mnist", "epsilon": epsilon, "alpha": alpha}
            if not run.quick:
                words["rounds"] = 20
            course = ran(run, settings_of(run, MNIST, seed, **words))
            scores = {"accuracy": 100 * course["accuracy"][-1], "exact": course["exact"]}
            rows.append({"panel": panel, "epsilon": epsilon, "alpha": alpha, "seed": seed, **scores})

    def at(panel: str, value: float) -> list[float]:
        return column(rows, "accuracy", panel=panel, **{panel: value})

    def exact(panel: str, value: float) -> float:
        return float(column(rows, "exact", panel=panel, **{panel: value})[0])

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
        Compared.scored(f"{panel} {value:g}, %", None, at(panel, value), exact(panel, value), claimed)
        for panel, values in (("epsilon", budgets), ("alpha", alphas))
        for value in values
        for claimed in (0.5 if panel == "alpha" else value,)
    ]
    return FigureResult(
        rows,
        draw,
        compared,
        honest=HONEST,
        stand_in="",
        verdict=f"from epsilon .5 to 10 accuracy goes from {low:.1f} to {high:.1f} %, for epsilon is divided "
        f"by r l = 10,240 and alpha decides the flips: the exact epsilon is {exact('epsilon', 0.5):,.0f} at "
        f"both. At alpha 1, where the claim of .5 holds ({exact('alpha', 1.0):.2g}), it is {one:.1f} %: "
        "chance",
        parameters={"budgets": budgets, "alphas": alphas},
    )
