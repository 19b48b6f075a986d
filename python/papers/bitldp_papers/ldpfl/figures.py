"""LDPFL, Figures 5 to 14 and Table I: clients' own networks, and the dense network of all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from statistics import fmean
from typing import Any

import numpy as np

from bitldp_papers.data import Dataset
from bitldp_papers.figures import (
    Compared,
    FigureResult,
    FigureRun,
    Finding,
    MissingData,
    Printed,
    column,
    figure,
    gain,
    sure,
    trained,
)
from bitldp_papers.figures.drawing import lines, panels, scored
from bitldp_papers.ldpfl.settings import WITHOUT, LDPFLSettings
from bitldp_papers.ldpfl.system import (
    OwnNetwork,
    fitted_network,
    learned,
    looked,
    of_networks,
    own_networks,
)

Row = dict[str, Any]

#: Networks of the shorter forms: Adam, few records and epochs, fewer filters, images as they are.
_SHORT: dict[str, Any] = {
    **{"extractor_rate": 0.002, "extractor_optimizer": "adam", "batch_norm": False, "augment": False},
    **{"hidden": 64, "rate": 0.1, "optimizer": "sgd", "epochs": 2, "batch": 16},
}
_QUICK = {**_SHORT, **{"filters": 8, "extractor_epochs": 4, "tested": 500, "rounds": 8}}
_MEDIUM = {**_SHORT, **{"filters": 16, "extractor_epochs": 3, "tested": 1000, "rounds": 20}}
MNIST: dict[str, Any] = {
    "preset": "paper",
    "quick": {**_QUICK, "records": 2000},
    "medium": {**_MEDIUM, "records": 10_000},
}
#: Fifty clients in the paper, of 4,514 records of SVHN each.
CROWD: dict[str, Any] = {
    "preset": "paper",
    "quick": {**_QUICK, "extractor_epochs": 6, "dealt": 8, "records": 1600, "tested": 300},
    "medium": {
        **_MEDIUM,
        **{"extractor_epochs": 5, "dealt": 20, "records": 10_000, "tested": 300, "rounds": 30},
    },
    "full": {"dealt": 50, "rounds": 500},
}
FASHION: dict[str, Any] = {
    "preset": "paper-fashion",
    "quick": {**_QUICK, "records": 2000},
    "medium": {**_MEDIUM, "extractor_epochs": 4, "records": 15_000},
}
CIFAR: dict[str, Any] = {
    "preset": "paper-fashion",
    "quick": {**_QUICK, "records": 2000, "clients": 2},
    "medium": {**_MEDIUM, "records": 10_000, "clients": 2},
    "full": {"clients": 2, "rounds": 100},
}
#: Sets that need a file of the user's, and what stands in for each.
_SETS = {"cifar10": ("cifar10", "fashion_mnist"), "svhn": ("svhn", "mnist")}
STAND_INS = {
    "cifar10": "Fashion-MNIST stands in for CIFAR-10 (with the paper's network of three blocks)",
    "svhn": "MNIST stands in for SVHN: 60,000 images for 451,461, so clients hold fewer records",
}
HONEST = (
    "no epsilon of a record's features is near .5 in this system; bitldp fl honest and bitldp fl bitrand "
    "--preset honest show what keeps one"
)
#: Points that a level of accuracy may be off by.
LEVEL = 3.0
#: What the paper prints, in the order of its datasets, and in its Table I.
ABSTRACT = Printed("98", "3d9a22f03889")
REACHED = {
    "MNIST": Printed("96", "ae27ed61253e"),
    "CIFAR": Printed("80", "ff93981b1f72"),
    "SVHN": Printed("85", "a538e18582e0"),
}
NON_PRIVATE = Printed("90", "17c0ca0a8415")
SMC = Printed("90", "d86e71e625b2")
DP_SGD = Printed("80", "d44cd4323871")
CLDP = (Printed("85.28", "70d7cb24c793"), Printed("86.93", "1053567cf648"))
LDPFL = Printed("81", "043fcf5c8945")
PAPERS_OWN = "uer-paper"


def settings_of(run: FigureRun, spec: dict[str, Any], seed: int, **words: Any) -> LDPFLSettings:
    """Return the settings of a run in the form that is asked for."""
    more = run.choose(quick=spec["quick"], medium=spec["medium"], full=spec.get("full", {}))
    preset = LDPFLSettings.presets[spec["preset"]]
    return LDPFLSettings(**{**preset, **more, **words, "seed": seed})


def constant_of(data: Dataset) -> float:
    """Return the accuracy, in percent, of naming the largest class of the training records always."""
    values = data.train_labels.tolist()
    largest = max(set(values), key=values.count)
    return 100.0 * float((data.test_labels == largest).mean())


def either(run: FigureRun, data: str) -> str:
    """Return the paper's data set where the user has its file, else the one that stands in for it."""
    own, other = _SETS.get(data, (data, data))
    try:
        run.data(own)
    except (MissingData, ValueError):
        run.data(other)
        return other
    return own


def _stand_in(run: FigureRun, data: str) -> str:
    return "" if either(run, data) == data else STAND_INS[data]


def _key(settings: LDPFLSettings) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(asdict(settings).items()))


def networks(run: FigureRun, settings: LDPFLSettings) -> tuple[OwnNetwork, ...]:
    """Return the clients' own networks, each trained once for all figures."""
    if settings.most is None:  # in full they are large: kept in the process alone
        return own_networks(settings)
    chosen = of_networks(settings)
    return tuple(_network(run, chosen, index) for index in range(settings.clients))


@lru_cache(maxsize=64)
def _network(run: FigureRun, settings: LDPFLSettings, index: int) -> OwnNetwork:
    fit = partial(fitted_network, settings, index)
    return looked(settings, index, run.shared(f"own network {index}, {_key(settings)}", fit))


def ran(run: FigureRun, settings: LDPFLSettings) -> dict[str, Any]:
    """Return the course of a run, done once for all figures."""
    return run.shared(f"run, {_key(settings)}", lambda: learned(settings, networks(run, settings)))


def local_networks(run: FigureRun, spec: dict[str, Any], data: str) -> FigureResult:
    """Return the figure of clients' own networks, epoch by epoch."""
    said, data = _stand_in(run, data), either(run, data)
    constant = constant_of(run.data(data))
    rows: list[Row] = []
    kinds = ("own records", "test records")
    for seed in run.each(run.seeds, "seed"):
        group = networks(run, settings_of(run, spec, seed, data=data))
        course = np.mean([each.course for each in group], axis=0)
        for turn, scores in enumerate(100.0 * course, 1):
            rows.append({"seed": seed, "epoch": turn, **dict(zip(kinds, map(float, scores), strict=True))})
    epochs = sorted({row["epoch"] for row in rows})
    last = column(rows, "test records", epoch=epochs[-1])
    shown = {name: scored(epochs, [column(rows, name, epoch=turn) for turn in epochs]) for name in kinds}
    settings = settings_of(run, spec, 1, data=data)
    held = (settings.records or len(run.data(data).train)) // settings.shares
    mean, half = sure(last)
    learns = mean - half > constant
    because = (
        f"{mean:.1f} ± {half:.1f} % on test records after {epochs[-1]} epochs of {held:,} records each, "
        f"the largest class {constant:.1f}"
    )
    return FigureResult(
        rows,
        panels({"": {**shown, "constant": constant}}, xlabel="epoch", ylabel="accuracy, %"),
        [Compared.scored("a client's own network, last epoch, %", None, last, math.inf, settings.epsilon)],
        honest=HONEST,
        stand_in=said,
        findings=[
            Finding("local networks learn from a client's records", True if learns else None, because),
            Finding.of(
                "how well: the paper draws it",
                "not printed",
                "the network is trained on the records as they are, and nothing of it is private",
            ),
        ],
        parameters=asdict(settings),
    )


def _level(
    says: str, printed: Printed, scores: Sequence[float], clean: Sequence[float], constant: float
) -> Finding:
    """Return whether a level of accuracy is reached, where the model without noise reaches it."""
    word = gain(says, None, [each - printed.value + LEVEL for each in scores])
    mean, half = sure(scores)
    because = f"{mean:.1f} ± {half:.1f} % against {printed.text}, {len(scores)} seeds"
    finding = Finding(says, word.holds, because)
    return trained(finding, scores, constant, clean, reach=printed.value - LEVEL)


def dense_network(run: FigureRun, spec: dict[str, Any], data: str, paper: Printed) -> FigureResult:
    """Return the figure of the dense network, round by round, with and without noise."""
    said, data = _stand_in(run, data), either(run, data)
    constant = constant_of(run.data(data))
    rows: list[Row] = []
    ends: dict[str, list[float]] = {PAPERS_OWN: [], WITHOUT: []}
    exact = math.nan
    for seed in run.each(run.seeds, "seed"):
        for mechanism, own in ends.items():
            course = ran(run, settings_of(run, spec, seed, data=data, mechanism=mechanism))
            own.append(100.0 * course["accuracy"][-1])
            for turn, (hit, loss) in enumerate(zip(course["accuracy"], course["loss"], strict=True), 1):
                scores = {"accuracy": 100.0 * hit, "loss": loss}
                rows.append({"mechanism": mechanism, "seed": seed, "round": turn, **scores})
            if mechanism != WITHOUT:
                exact = course["exact"]
    rounds = sorted({row["round"] for row in rows})
    shown = {
        title: scored(rounds, [column(rows, "accuracy", mechanism=name, round=turn) for turn in rounds])
        for title, name in (("LDPFL", PAPERS_OWN), ("without noise", WITHOUT))
    }
    ours, clean = ends[PAPERS_OWN], ends[WITHOUT]
    settings = settings_of(run, spec, 1, data=data)
    findings = [
        _level(f"LDPFL reaches {paper.text} % at claimed {settings.epsilon:g}", paper, ours, clean, constant),
        trained(
            gain("more than the largest class is learned", None, [each - constant for each in ours]),
            *(ours, constant, clean),
        ),
        _budget(settings, exact),
    ]
    return FigureResult(
        rows,
        panels({"": {**shown, "largest class": constant}}, xlabel="round", ylabel="accuracy, %"),
        [
            Compared.scored(
                "LDPFL, last round, %",
                *(paper, ours, exact, settings.epsilon, LEVEL),
                reached=fmean(clean) >= paper.value - LEVEL,
            ),
            Compared.scored("the same without noise, %", None, clean, math.inf, math.inf),
            Compared("the largest class, %", None, constant, None, 0.0, 0.0),
        ],
        honest=HONEST,
        stand_in=said,
        findings=findings,
        parameters=asdict(settings),
    )


def _budget(settings: LDPFLSettings, exact: float) -> Finding:
    """Return whether a record's features cost what is claimed."""
    return Finding(
        f"the released features of a record cost {settings.epsilon:g}",
        exact <= settings.epsilon * (1.0 + 1e-9),
        f"exact {exact:,.0f}; labels and the clients' networks are not covered at all",
    )


def _abstract(run: FigureRun) -> FigureResult:
    """Return Figure 6, with the abstract's number beside the body's."""
    result = dense_network(run, MNIST, "mnist", REACHED["MNIST"])
    body = REACHED["MNIST"]
    said = Finding(
        f"the abstract's {ABSTRACT.text} %",
        body.value >= ABSTRACT.value,
        f"its conclusion has {body.text} for this figure, the highest of its three data sets",
    )
    return _with(result, findings=[*result.findings, said])


def _with(result: FigureResult, **words: Any) -> FigureResult:
    """Return a result with some of its fields replaced; its verdict follows its findings."""
    names = ("rows", "draw", "compared", "honest", "stand_in", "parameters", "findings")
    return FigureResult(**{**{name: getattr(result, name) for name in names}, **words})


for _number, _title, _claim, _minutes, _make in (
    (
        "5",
        "A client's own network, MNIST",
        "Local networks of MNIST perform well.",
        (0.6, 2.5, 240.0),
        partial(local_networks, spec=MNIST, data="mnist"),
    ),
    (
        "6",
        "Two clients of MNIST, epsilon .5",
        "Two clients reach 96 % at epsilon .5 (the abstract says 98).",
        (0.3, 1.5, 300.0),
        _abstract,
    ),
    (
        "7",
        "A client's own network, CIFAR-10",
        "Local networks of three blocks learn CIFAR-10 well.",
        (0.6, 4.0, 240.0),
        partial(local_networks, spec=CIFAR, data="cifar10"),
    ),
    (
        "8",
        "Two clients of CIFAR-10, epsilon .5",
        "Two clients reach 80 % at epsilon .5.",
        (0.3, 1.5, 300.0),
        partial(
            dense_network,
            spec=CIFAR,
            data="cifar10",
            paper=REACHED["CIFAR"],
        ),
    ),
    (
        "9",
        "A client's own network, SVHN",
        "Local networks of three blocks learn SVHN well, with 4,514 records each.",
        (0.8, 4.5, 120.0),
        partial(local_networks, spec=CROWD, data="svhn"),
    ),
    (
        "12",
        "A client's own network, Fashion-MNIST",
        "Local networks of three blocks learn Fashion-MNIST well, with 6,000 records each.",
        (0.8, 8.0, 400.0),
        partial(local_networks, spec=FASHION, data="fashion_mnist"),
    ),
    (
        "14",
        "Ten clients of Fashion-MNIST, one dropped a round, epsilon .5",
        "Ten clients reach 81 % after 80 rounds.",
        (0.4, 3.0, 400.0),
        partial(dense_network, spec=FASHION, data="fashion_mnist", paper=LDPFL),
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
    minutes=(0.2, 0.5, 10.0),
)
def table_1(run: FigureRun) -> FigureResult:
    """Return the table, LDPFL and training without noise run here, the rest as printed."""
    result = dense_network(run, FASHION, "fashion_mnist", LDPFL)
    ours, clean, constant = result.compared
    cldp = " to ".join(each.text for each in CLDP)
    rows: list[Row] = [
        {
            "method": "non-private",
            "paper, %": NON_PRIVATE.text,
            "ours, %": clean.ours,
            "exact epsilon": math.inf,
        },
        {"method": "SMC", "paper, %": SMC.text, "ours, %": None, "exact epsilon": None},
        {"method": "DP-SGD", "paper, %": DP_SGD.text, "ours, %": None, "exact epsilon": None},
        {"method": "alpha-CLDP-Fed", "paper, %": cldp, "ours, %": None, "exact epsilon": None},
        {"method": "LDPFL", "paper, %": LDPFL.text, "ours, %": ours.ours, "exact epsilon": ours.exact},
        {"method": "largest class", "paper, %": None, "ours, %": constant.ours, "exact epsilon": 0.0},
    ]
    own = "of the paper's own table"
    compared = [
        ours,
        Compared.scored(
            "non-private, %",
            *(NON_PRIVATE, [float(clean.ours)], math.inf, math.inf, LEVEL),
            reached=ours.reached,
        ),
        constant,
    ]
    findings = [
        Finding(
            f"LDPFL is above DP-SGD, {own}",
            LDPFL.value > DP_SGD.value,
            f"~{LDPFL.text} against ~{DP_SGD.text}",
        ),
        Finding(
            f"LDPFL is overall better than the existing methods, {own}",
            all(LDPFL.value > each.value for each in (*CLDP, SMC)),
            f"alpha-CLDP-Fed has {cldp}, with no trusted party either, and SMC ~{SMC.text}; "
            f"LDPFL ~{LDPFL.text}",
        ),
        *result.findings,
    ]
    return _with(result, rows=rows, draw=None, compared=compared, findings=findings)


def _crowd(run: FigureRun, metric: str, paper: Printed | None) -> FigureResult:
    """Return the figure of how the number of clients tells, each with as many records."""
    data = either(run, "svhn")
    constant = constant_of(run.data(data))
    numbers = run.choose(quick=(2, 4, 8), medium=(2, 5, 10, 20), full=(2, 5, 10, 20, 50))
    each = settings_of(run, CROWD, 1).shares
    rows: list[Row] = []
    for seed in run.each(run.seeds, "seed"):
        for count in numbers:
            course = ran(run, settings_of(run, CROWD, seed, data=data, clients=count))
            for turn, (hit, loss) in enumerate(zip(course["accuracy"], course["loss"], strict=True), 1):
                scores = {"accuracy": 100.0 * hit, "loss": loss, "exact": course["exact"]}
                rows.append({"clients": count, "seed": seed, "round": turn, **scores})
    rounds = sorted({row["round"] for row in rows})
    held = (settings_of(run, CROWD, 1).records or len(run.data(data).train)) // each

    def at(count: int, turn: int, name: str = metric) -> list[float]:
        return column(rows, name, clients=count, round=turn)

    shown: dict[str, Any] = {
        f"{count} clients": scored(rounds, [at(count, turn) for turn in rounds]) for count in numbers
    }
    last = {count: at(count, rounds[-1], "accuracy") for count in numbers}
    local = [100.0 * fmean(_locals(run, data, seed)) for seed in run.seeds]
    fewest, most = numbers[0], numbers[-1]
    half_way = rounds[len(rounds) // 2]
    later = [
        (b - a) - (d - c)
        for a, b, c, d in zip(
            *(at(most, half_way, "accuracy"), last[most]),
            *(at(fewest, half_way, "accuracy"), last[fewest]),
            strict=True,
        )
    ]
    more = [a - b for a, b in zip(last[fewest], last[most], strict=True)]
    needed = (last, fmean(local), constant)
    findings = [
        _learned(
            gain(f"with {most} clients the model converges later than with {fewest}", None, later),
            *needed,
        ),
        _learned(
            gain(f"with {most} clients the accuracy is slightly lower than with {fewest}", None, more),
            *needed,
        ),
    ]
    exact = rows[0]["exact"]
    if paper is not None:
        says = f"two clients reach {paper.text} %"
        findings.insert(0, _level(says, paper, last[fewest], local, constant))
    compared = [
        Compared.scored(
            f"{count} clients, {metric}",
            paper if count == fewest and metric == "accuracy" else None,
            *(at(count, rounds[-1]), exact, 0.5, LEVEL),
            reached=paper is None or fmean(local) >= paper.value - LEVEL,
        )
        for count in numbers
    ]
    floor = constant if metric == "accuracy" else math.log(10)
    return FigureResult(
        rows,
        panels(
            {"": {**shown, "constant": floor}},
            xlabel="round",
            ylabel="accuracy, %" if metric == "accuracy" else metric,
        ),
        compared,
        honest=HONEST,
        stand_in=_stand_in(run, "svhn"),
        findings=findings,
        parameters={
            **asdict(settings_of(run, CROWD, 1, data=data)),
            **{"records of a client": held, "clients": numbers},
            "local networks, %": round(fmean(local), 1),
        },
    )


def _locals(run: FigureRun, data: str, seed: int) -> list[float]:
    """Return the accuracy of two clients' own networks: about what their features can give."""
    settings = settings_of(run, CROWD, seed, data=data, clients=2)
    return [float(each.course[-1, 1]) for each in networks(run, settings)]


def _learned(finding: Finding, last: Mapping[int, Sequence[float]], local: float, floor: float) -> Finding:
    """Return a finding on numbers of clients, where each learned half of what their own networks did."""
    count = min(last, key=lambda each: fmean(last[each]))
    weakest, reach = fmean(last[count]), 0.5 * (floor + local)
    if weakest >= reach:
        return finding
    because = f"{weakest:.1f} % with {count} clients, where {reach:.1f} is needed; {finding.because}"
    return Finding.of(finding.says, "not reached in this form", because)


for _number, _title, _metric, _paper, _minutes in (
    ("10", "Loss by clients, SVHN", "loss", None, (0.6, 4.0, 400.0)),
    ("11", "Accuracy by clients, SVHN", "accuracy", REACHED["SVHN"], (0.1, 0.3, 10.0)),
    ("13", "Test accuracy by clients, SVHN", "accuracy", REACHED["SVHN"], (0.1, 0.3, 10.0)),
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
    title="Accuracy by epsilon and alpha",
    claim="Raising epsilon within 0 < epsilon <= 10 has a negligible impact on the randomization.",
    minutes=(0.8, 3.0, 60.0),
)
def sweep(run: FigureRun) -> FigureResult:
    """Return accuracy by epsilon at alpha 10, and by alpha at epsilon .5: alpha alone decides."""
    constant = constant_of(run.data("mnist"))
    long = (0.1, 0.5, 2.0, 10.0, 1e3, 1e4, 3e4, 1e5)
    budgets = run.choose(quick=(0.5, 10.0, 1e4, 1e5), medium=(0.5, 10.0, 1e3, 1e4, 1e5), full=long)
    many = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
    alphas = run.choose(quick=(1.0, 1.5, 3.0, 30.0), medium=(1.0, 1.5, 3.0, 10.0, 30.0), full=many)
    points = [("epsilon", e, 10.0) for e in budgets] + [("alpha", 0.5, a) for a in alphas]
    rows: list[Row] = []
    clean = []
    rounds = {"rounds": run.choose(quick=4, medium=6, full=20)}
    for seed in run.each(run.seeds, "seed"):
        for panel, epsilon, alpha in points:
            words: dict[str, Any] = {"data": "mnist", "epsilon": epsilon, "alpha": alpha, **rounds}
            course = ran(run, settings_of(run, MNIST, seed, **words))
            scores = {"accuracy": 100.0 * course["accuracy"][-1], "exact": course["exact"]}
            rows.append({"panel": panel, "epsilon": epsilon, "alpha": alpha, "seed": seed, **scores})
        without = ran(run, settings_of(run, MNIST, seed, data="mnist", mechanism=WITHOUT, **rounds))
        clean.append(100.0 * without["accuracy"][-1])

    def at(panel: str, value: float) -> list[float]:
        return column(rows, "accuracy", panel=panel, **{panel: value})

    def exact(panel: str, value: float) -> float:
        return float(column(rows, "exact", panel=panel, **{panel: value})[0])

    def draw(canvas: Any) -> None:
        canvas.set_size_inches(8.0, 4.4)
        pairs = {"epsilon": budgets, "alpha": alphas}
        for axes, (panel, values) in zip(canvas.subplots(1, 2, sharey=True), pairs.items(), strict=True):
            line = {
                "accuracy": scored(values, [at(panel, value) for value in values]),
                "constant": constant,
                "without noise": fmean(clean),
            }
            title = f"{panel} ({'alpha 10' if panel == 'epsilon' else 'epsilon .5'})"
            lines(axes, line, xscale="log", xlabel=panel, title=title, ylabel="accuracy, %")

    moved, half = sure([b - a for a, b in zip(at("epsilon", 0.5), at("epsilon", 10.0), strict=True)])
    largest = abs(moved) + half
    findings = [
        trained(
            Finding(
                "epsilon from .5 to 10 has a negligible impact",
                True if largest < LEVEL else None if abs(moved) < LEVEL else False,
                f"{moved:+.2f} ± {half:.1g} points: epsilon is divided by r l bits, and alpha decides the "
                f"flips; the exact epsilon is {exact('epsilon', 0.5):,.0f} and {exact('epsilon', 10.0):,.0f}",
            ),
            *(at("epsilon", 10.0), constant, clean),
        ),
        _budget(settings_of(run, MNIST, 1, data="mnist"), exact("epsilon", 0.5)),
    ]
    honest_one = at("alpha", 1.0)
    mean, spread_of = sure([each - constant for each in honest_one])
    findings.append(
        Finding(
            "something is learned where the claim of .5 is true (alpha 1)",
            True if mean > spread_of else False if mean + spread_of < LEVEL else None,
            f"{fmean(honest_one):.1f} % at an exact {exact('alpha', 1.0):.2g}, the largest class "
            f"{constant:.1f}",
        )
    )
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
        findings=findings,
        parameters={**asdict(settings_of(run, MNIST, 1, data="mnist", **rounds)), "alphas": alphas},
    )
